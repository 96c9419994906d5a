/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An attacker on the path: forwards all frames between two interfaces as they are, and sends, ahead
 * of some RoCEv2 packets, modified copies of them with correct ICRCs. None may do harm beyond
 * retransmissions. Attacks that always succeed with knowledge of the PSNs are left out: a forged
 * packet at exactly the expected PSN, an acknowledgement of packets in flight.
 *
 *	attack [-s SEED] [-r OF-A-THOUSAND] [-k KIND] IFACE IFACE
 *
 * Prints a line when it forwards. On USR1, and on TERM when it ends, prints its counts for each
 * direction: RoCEv2 frames that left, and sent forgeries of each kind.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../user/engine/icrc.h"
#include "../../user/engine/packet.h"
#include "../../user/engine/types.h"
#include "lib/checksum.h"
#include "lib/ctl.h"
#include "lib/wire.h"

#define REPLAYS	   512	/* kept frames of each direction, for repetition */
#define FRAME_ROOM 4400	/* bytes of a kept frame; longer ones are only forwarded */
#define WINDOW	   512	/* PSNs: more than either end has in flight */

struct sequence {
	bool is_known;
	u32 psn;
};

struct direction {
	int to;			/* socket of the interface that frames leave by */
	unsigned long left;	/* RoCEv2 frames, ours and others' */
	struct sequence newest[2]; /* of the forwarded responses, and requests */
	struct sequence acked;	   /* the last request that the other end has acknowledged */
	unsigned int count, next;
	struct {
		u32 len;
		u8 bytes[FRAME_ROOM];
	} kept[REPLAYS];
};

/* A genuine packet, and its modified copy. */
struct forgery {
	struct direction *d;
	struct packet p;
	bool ipv6;
	size_t ip, bth, len;
	u8 bytes[FRAME_ROOM];
};

static struct direction direction[2];
static volatile sig_atomic_t stop, tell;
static u64 dice;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		tell = 1;
	else
		stop = 1;
}

/* 0 .. n - 1; xorshift64 (Marsaglia). */
static u32 roll(u32 n)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (u32)(dice >> 20) % n;
}

/* ---- changing a copy ---- */

static void put16(u8 *at, u32 v)
{
	at[0] = (u8)(v >> 8);
	at[1] = (u8)v;
}

static void put24(u8 *at, u32 v)
{
	at[0] = (u8)(v >> 16);
	put16(at + 1, v);
}

static void set_psn(struct forgery *f, s32 ahead)
{
	put24(f->bytes + f->bth + 9, psn_add(f->p.psn, (u32)ahead & ROCE_PSN_MASK));
}

static void set_opcode(struct forgery *f, u8 opcode)
{
	f->bytes[f->bth] = opcode;
}

static u8 *aeth(struct forgery *f)
{
	return f->bytes + f->bth + 12;
}

/* Other data, and other addresses and keys if present: after the BTH, before the ICRC. */
static void spoil(struct forgery *f)
{
	for (size_t i = f->bth + 12; i < f->len - ROCE_ICRC_BYTES; i++)
		f->bytes[i] ^= (u8)(0x5a + i);
}

static void seal(struct forgery *f)
{
	u8 *ip = f->bytes + f->ip;

	if (!f->ipv6) {
		put16(ip + 10, 0);
		put16(ip + 10, ~sum16(ip, 20, 0));
	}
	icrc_store(icrc_packet(ip, f->ipv6, f->len - f->ip - ROCE_ICRC_BYTES),
		   f->bytes + f->len - ROCE_ICRC_BYTES);
}

/* Sets the length to len bytes. */
static void resize(struct forgery *f, size_t len)
{
	const size_t udp = f->bth - 8;

	f->len = len;
	if (f->ipv6)
		put16(f->bytes + f->ip + 4, (u32)(len - udp));
	else
		put16(f->bytes + f->ip + 2, (u32)(len - f->ip));
	put16(f->bytes + udp + 4, (u32)(len - udp));
}

static s32 far(void)
{
	const s32 distance = (s32)(WINDOW + roll((1 << 23) - 2 * WINDOW));

	return roll(2) ? distance : -distance;
}

/* ---- the kinds: each returns false for a packet of no use ---- */

/* A PSN that is finished at both ends, or far from being sent. */
static bool kind_far(struct forgery *f)
{
	set_psn(f, far());
	spoil(f);
	return true;
}

/* A request that was executed and acknowledged before, with other content. */
static bool kind_repeated(struct forgery *f)
{
	if (!(f->p.flags & OP_REQUEST) || !f->d->acked.is_known)
		return false;
	set_psn(f, psn_diff(f->d->acked.psn, f->p.psn) - (s32)roll(256));
	spoil(f);
	return true;
}

/*
 * A request or response ahead of the genuine one, so that its PSN is not expected yet. This cannot
 * be known of a packet that is sent again.
 */
static bool kind_early(struct forgery *f)
{
	const struct sequence *seq = &f->d->newest[!!(f->p.flags & OP_REQUEST)];

	if (seq->is_known && psn_diff(f->p.psn, seq->psn) <= 0)
		return false;
	if (f->p.flags & (OP_ACK | OP_READ | OP_ATOMIC | OP_ATOMIC_ACK_ETH) &&
	    !(f->p.flags & OP_PAYLOAD))
		return false;
	set_psn(f, (s32)(1 + roll(256)));
	for (size_t i = f->len - ROCE_ICRC_BYTES - f->p.payload_len - f->p.pad;
	     i < f->len - ROCE_ICRC_BYTES; i++)
		f->bytes[i] ^= 0x5a;
	return true;
}

static bool kind_replay(struct forgery *f)
{
	const struct direction *d = f->d;
	const u32 i = d->count ? roll(d->count) : 0;

	if (!d->count)
		return false;
	f->len = d->kept[i].len;
	memcpy(f->bytes, d->kept[i].bytes, f->len);
	return true;
}

/*
 * Sequence and RNR NAKs for acknowledged packets; fatal NAKs for long finished ones.
 */
static bool kind_nak(struct forgery *f)
{
	const u32 which = roll(8);

	if (!(f->p.flags & OP_ACK))
		return false;
	if (which < 2) {
		aeth(f)[0] = which ? 0x21 : 0x60; /* RNR of 10 us; PSN sequence error */
		return true;
	}
	aeth(f)[0] = (u8)roll(256);
	set_psn(f, far());
	return true;
}

static bool kind_cnp(struct forgery *f)
{
	set_opcode(f, 0x81);
	f->bytes[f->bth + 4] = 0x40;
	put24(f->bytes + f->bth + 9, 0);
	if (f->bth + 12 + 16 + ROCE_ICRC_BYTES > sizeof(f->bytes))
		return false;
	memset(f->bytes + f->bth + 12, 0, 16);
	f->bytes[f->bth + 1] &= 0xcf; /* pad */
	resize(f, f->bth + 12 + 16 + ROCE_ICRC_BYTES);
	return true;
}

/* At the exact PSN, but not for this QP: another P_Key, version, transport service, address. */
static bool kind_misaddressed(struct forgery *f)
{
	u8 *bth = f->bytes + f->bth;

	spoil(f);
	switch (roll(4)) {
	case 0: put16(bth + 2, 0x8000 | (1 + roll(0x7ffe))); break;
	case 1: bth[1] |= (u8)(1 + roll(15)); break;
	case 2: bth[0] = (u8)((bth[0] & 0x1f) | (1 + roll(4)) << 5); break;
	case 3: f->bytes[f->ip + (f->ipv6 ? 23 : 15)] ^= 0x10; break;
	}
	return true;
}

/* Any opcode, any length, far from the sequence. */
static bool kind_strange(struct forgery *f)
{
	set_psn(f, far());
	set_opcode(f, (u8)roll(256));
	f->bytes[f->bth + 1] = (u8)roll(256);
	spoil(f);
	if (f->len > f->bth + 20)
		resize(f, f->bth + 16 + roll((u32)(f->len - f->bth - 16)) / 4 * 4);
	return true;
}

/*
 * As a sender with segmentation offload passes on many packets in one: an identification, a partial
 * checksum.
 */
static bool kind_lookalike(struct forgery *f)
{
	u8 *udp = f->bytes + f->bth - 8;

	if (f->ipv6)
		return false;
	set_psn(f, far());
	put16(f->bytes + f->ip + 4, (u32)(f->len - f->bth) / (1 + roll(3)));
	put16(udp + 6, sum16(f->bytes + f->ip + 12, 8, 17 + (u32)(f->len - f->bth + 8)));
	return true;
}

/* First fragments: RoCEv2 is never fragmented. */
static bool kind_fragment(struct forgery *f)
{
	if (f->ipv6)
		return false;
	f->bytes[f->ip + 6] = 0x20;
	spoil(f);
	return true;
}

static const struct {
	const char *name;
	bool (*forge)(struct forgery *f);
} kinds[] = {
	{ "far", kind_far },
	{ "repeated", kind_repeated },
	{ "early", kind_early },
	{ "replay", kind_replay },
	{ "nak", kind_nak },
	{ "cnp", kind_cnp },
	{ "misaddressed", kind_misaddressed },
	{ "strange", kind_strange },
	{ "lookalike", kind_lookalike },
	{ "fragment", kind_fragment },
};
static unsigned long sent[ARRAY_SIZE(kinds)];

/* ---- the path ---- */

static void forge(struct direction *d, const u8 *frame, size_t len, size_t ip, bool ipv6, u32 first,
		  u32 last)
{
	static struct forgery f;
	const struct rx_frame rx = { .data = frame, .len = (u32)len };
	const u32 kind = first + roll(last - first + 1);

	if (len > sizeof(f.bytes) - 64 || packet_parse(&f.p, &rx))
		return;
	f.d = d;
	f.ipv6 = ipv6;
	f.ip = ip;
	f.bth = ip + (ipv6 ? 48 : 28);
	f.len = len;
	memcpy(f.bytes, frame, len);
	if (!kinds[kind].forge(&f))
		return;
	if (kinds[kind].forge != kind_replay)
		seal(&f);
	wire_send(d->to, f.bytes, f.len);
	d->left++;
	sent[kind]++;
}

static void advance(struct sequence *seq, u32 psn)
{
	if (!seq->is_known || psn_diff(psn, seq->psn) > 0)
		*seq = (struct sequence){ true, psn };
}

static void keep(struct direction *d, struct direction *other, const u8 *frame, size_t len)
{
	const struct rx_frame rx = { .data = frame, .len = (u32)len };
	struct packet p;

	if (!packet_parse(&p, &rx) && !(p.flags & OP_CNP)) {
		if (p.flags & OP_ACK)
			advance(&other->acked,
				p.syndrome >> 5 ? psn_add(p.psn, ROCE_PSN_MASK) : p.psn);
		else
			advance(&d->newest[!!(p.flags & OP_REQUEST)], p.psn);
	}
	if (len > FRAME_ROOM)
		return;
	memcpy(d->kept[d->next].bytes, frame, len);
	d->kept[d->next].len = (u32)len;
	d->next = (d->next + 1) % REPLAYS;
	d->count += d->count < REPLAYS;
}

static void report(void)
{
	printf("to first %lu to second %lu:", direction[1].left, direction[0].left);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		printf(" %s %lu", kinds[i].name, sent[i]);
	printf("\n");
	fflush(stdout);
}

static u32 number(const char *text, u32 most)
{
	char *end;
	unsigned long v = strtoul(text, &end, 0);

	must(*text && !*end && v <= most, "attack: '%s' is not a number up to %u", text, most);
	return (u32)v;
}

static u32 kind_number(const char *name)
{
	for (u32 i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(name, kinds[i].name))
			return i;
	die("attack: no kind '%s'", name);
}

int main(int argc, char **argv)
{
	static u8 frame[WIRE_FRAME_MAX];
	struct pollfd pfd[2] = { { .events = POLLIN }, { .events = POLLIN } };
	const struct sigaction sa = { .sa_handler = on_signal };
	u32 permille = 200, first = 0, last = ARRAY_SIZE(kinds) - 1;
	size_t len, ip;
	bool ipv6;
	int c;

	dice = 1;
	while ((c = getopt(argc, argv, "s:r:k:")) != -1) {
		switch (c) {
		case 's': dice = number(optarg, 1000000) + 1; break;
		case 'r': permille = number(optarg, 1000); break;
		case 'k': first = last = kind_number(optarg); break;
		default: return 1;
		}
	}
	dice *= 0x9e3779b97f4a7c15ull;
	must(argc - optind == 2, "attack: two interfaces, please");
	for (int i = 0; i < 2; i++)
		pfd[i].fd = direction[!i].to = wire_open(argv[optind + i], true);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	printf("forwarding\n");
	fflush(stdout);

	while (!stop) {
		poll(pfd, 2, -1);
		if (tell) {
			tell = 0;
			report();
		}
		for (int i = 0; i < 2; i++) {
			struct direction *d = &direction[i];

			for (int n = 0;
			     n < 64 && (len = wire_receive(pfd[i].fd, frame, sizeof(frame))); n++) {
				ip = wire_roce_ip(frame, len, &ipv6);
				if (ip && roll(1000) < permille)
					forge(d, frame, len, ip, ipv6, first, last);
				wire_send(d->to, frame, len);
				if (!ip)
					continue;
				d->left++;
				keep(d, &direction[!i], frame, len);
			}
		}
	}
	report();
	return 0;
}
