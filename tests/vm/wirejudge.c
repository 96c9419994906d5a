/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Judges every RoCEv2 packet that one host of a capture sent: headers, checksums and ICRC each by
 * itself (packets of a connection against each other: lib/track.c).
 *
 *	wirejudge -a MAC -m PATH-MTU [-t HOP-LIMIT] [-f] [-s] CAPTURE
 *
 * MAC is the judged host's. -s: it sends by UDP sockets, which choose the source port; the first
 * packet of a super-packet has a code for its length. -f judges the judge: a bit of each right IPv4
 * packet is turned over, another in each, and that must be noticed. Prints "wrong PACKET-NUMBER
 * WHAT" for the first wrong packets, a line "ours OPCODE COUNT" or "theirs OPCODE COUNT" for each
 * opcode seen, "ours RNR_NAK COUNT", and the sum. Exit status 1 if a packet was wrong or none was
 * there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../user/engine/packet.h"
#include "../netns/lib/checksum.h"
#include "../netns/lib/ctl.h"
#include "../netns/lib/wire.h"
#include "lib/track.h"

#define SHOWN 10

struct judge {
	u8 mac[6];
	u32 path_mtu;
	u32 hop_limit;
	bool has_sockets;
	unsigned long number, packets, wrong;
	bool flips;
	unsigned long flipped, unnoticed;
	unsigned long ours[256], theirs[256], rnr_naks;
	struct track *track;
};

static const char *judge_ip(const struct judge *j, const struct packet *p)
{
	const u8 *udp = p->ip + (p->is_ipv6 ? 40 : 20);
	u32 bytes = get16(udp + 4), sum;

	if (!p->is_ipv6) {
		if (sum16(p->ip, 20, 0) != 0xffff)
			return "IPv4 checksum";
		if (get16(p->ip + 6) != 0x4000)
			return "IPv4 flags: not DF alone";
		if (get16(p->ip + 2) != 20 + bytes)
			return "IPv4 and UDP lengths differ";
		sum = sum16(p->ip + 12, 8, 17 + bytes);
	} else {
		if (get16(p->ip + 4) != bytes)
			return "IPv6 and UDP lengths differ";
		sum = sum16(p->ip + 8, 32, 17 + bytes);
	}
	if (p->hop_limit != j->hop_limit)
		return "TTL or hop limit";
	if (p->udp_sport < (j->has_sockets ? 1024 : ROCE_UDP_SPORT_MIN))
		return "UDP source port";
	if (get16(udp + 6) && sum16(udp, bytes, sum) != 0xffff)
		return "UDP checksum";
	return NULL;
}

static const char *judge_bth(const struct judge *j, const struct packet *p)
{
	const u8 *bth = p->ip + (p->is_ipv6 ? 48 : 28);
	const u32 code = bth[4] & 0x3f;
	u8 pad[3];

	if ((code && (!j->has_sockets || roce_segment_of_code[code] != p->end - bth)) ||
	    bth[8] & 0x7f)
		return "reserved bits of the BTH";
	if (p->pkey != ROCE_DEFAULT_PKEY)
		return "P_Key";
	if (p->fecn || (p->becn && !(p->flags & OP_CNP)))
		return "FECN or BECN";
	if (p->pad != (-p->payload_len & 3))
		return "pad count";
	if (p->payload_len && !(p->flags & OP_PAYLOAD))
		return "payload where the opcode has none";
	memcpy(pad, p->payload + p->payload_len, p->pad);
	for (u32 i = 0; i < p->pad; i++)
		if (pad[i])
			return "pad bytes";
	if (p->solicited && !(p->flags & OP_END && (p->flags & OP_SEND || p->flags & OP_IMM)))
		return "solicited event on what completes no receive";
	if (p->ackreq && OPCODE_TRANSPORT(p->opcode) != XROCE_RC &&
	    OPCODE_TRANSPORT(p->opcode) != XROCE_XRC)
		return "AckReq on an unreliable transport";
	return NULL;
}

/* The error of a packet by itself, or NULL. */
static const char *judge_alone(const struct judge *j, const struct packet *p)
{
	const char *what = packet_icrc_ok(p) ? NULL : "ICRC";

	if (!what)
		what = judge_ip(j, p);
	return what ? what : judge_bth(j, p);
}

static void judge_flipped(struct judge *j, const u8 *frame, size_t len)
{
	static u8 copy[WIRE_FRAME_MAX];
	const struct rx_frame f = { .data = copy, .len = (u32)len };
	struct packet p;
	size_t at;

	memcpy(copy, frame, len);
	if (packet_parse(&p, &f) || p.is_ipv6)
		return;
	/* from the IP header to the last byte of the ICRC, one bit further with every packet */
	at = (size_t)(p.ip - copy) * 8 + j->flipped++ % (((size_t)(p.end - p.ip)) * 8);
	copy[at / 8] ^= 1 << at % 8;
	if (packet_parse(&p, &f) == 0 && !judge_alone(j, &p) && j->unnoticed++ < SHOWN)
		printf("unnoticed: bit %zu of packet %lu\n", at, j->number);
}

static void judge_frame(struct judge *j, const u8 *frame, size_t len)
{
	const struct rx_frame f = { .data = frame, .len = (u32)len };
	bool is_ipv6, is_ours = memcmp(frame + 6, j->mac, 6) == 0;
	const char *what, *in_sequence;
	struct packet p;

	j->number++;
	if (!wire_roce_ip(frame, len, &is_ipv6))
		return;
	if (packet_parse(&p, &f)) {
		j->packets += is_ours;
		if (is_ours && j->wrong++ < SHOWN)
			printf("wrong %lu: does not parse\n", j->number);
		return;
	}
	if (!is_ours) {
		j->theirs[p.opcode]++;
		track_theirs(j->track, &p);
		return;
	}
	j->packets++;
	j->ours[p.opcode]++;
	j->rnr_naks += p.flags & OP_AETH && (p.syndrome & AETH_CLASS_MASK) == AETH_RNR_NAK;
	what = judge_alone(j, &p);
	if (!what && j->flips)
		judge_flipped(j, frame, len);
	in_sequence = track_ours(j->track, &p);
	if (!what)
		what = in_sequence;
	if (!what)
		return;
	if (j->wrong++ < SHOWN)
		printf("wrong %lu %s PSN %u: %s\n", j->number, opcode_name(p.opcode), p.psn, what);
}

/* Both passes over a capture: the first only tells the tracker which QPs talk. */
static void judge_file(struct judge *j, const char *name, bool is_first)
{
	static u8 frame[WIRE_FRAME_MAX];
	u32 head[6], rec[4];
	FILE *f = fopen(name, "rb");

	must(f, "cannot read %s", name);
	must(fread(head, sizeof(head), 1, f) == 1 && head[0] == 0xa1b2c3d4 && head[5] == 1,
	     "%s: not an Ethernet capture of this machine's byte order", name);
	/* The last record may be cut off where the capture was ended. */
	while (fread(rec, sizeof(rec), 1, f) == 1 && rec[2] <= sizeof(frame) &&
	       fread(frame, 1, rec[2], f) == rec[2]) {
		const struct rx_frame rx = { .data = frame, .len = rec[2] };
		struct packet p;
		bool is_ipv6;

		must(rec[2] == rec[3], "%s: a packet is cut short", name);
		if (!is_first)
			judge_frame(j, frame, rec[2]);
		else if (wire_roce_ip(frame, rec[2], &is_ipv6) && packet_parse(&p, &rx) == 0)
			track_meet(j->track, &p, memcmp(frame + 6, j->mac, 6) == 0);
	}
	fclose(f);
}

static void judge_report(const struct judge *j)
{
	for (unsigned int op = 0; op < 256; op++) {
		if (j->ours[op])
			printf("ours %s %lu\n", opcode_name(op), j->ours[op]);
		if (j->theirs[op])
			printf("theirs %s %lu\n", opcode_name(op), j->theirs[op]);
	}
	printf("ours RNR_NAK %lu\n", j->rnr_naks);
	if (j->flips)
		printf("flipped %lu, unnoticed %lu\n", j->flipped, j->unnoticed);
	printf("judged %lu packets, %lu wrong\n", j->packets, j->wrong);
}

int main(int argc, char **argv)
{
	struct judge j = { .path_mtu = 1024, .hop_limit = 64 };
	unsigned int b[6] = { 0 }, i;
	int c;

	while ((c = getopt(argc, argv, "a:m:t:fs")) != -1) {
		switch (c) {
		case 'a':
			must(sscanf(optarg, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4],
				    &b[5]) == 6, "wirejudge: MAC %s", optarg);
			break;
		case 'm': j.path_mtu = strtoul(optarg, NULL, 0); break;
		case 't': j.hop_limit = strtoul(optarg, NULL, 0); break;
		case 'f': j.flips = true; break;
		case 's': j.has_sockets = true; break;
		default: return 1;
		}
	}
	must(argc - optind == 1, "wirejudge -a MAC -m PATH-MTU [-t HOP-LIMIT] [-f] [-s] CAPTURE");
	for (i = 0; i < 6; i++)
		j.mac[i] = b[i];
	j.track = track_open(j.path_mtu, j.has_sockets);
	judge_file(&j, argv[optind], true);
	judge_file(&j, argv[optind], false);
	judge_report(&j);
	if (track_unfinished(j.track)) {
		printf("wrong: %u connections end without a request that is answered\n",
		       track_unfinished(j.track));
		j.wrong++;
	}
	track_close(j.track);
	return j.wrong || j.unnoticed || !j.packets;
}
