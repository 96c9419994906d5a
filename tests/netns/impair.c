/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bad cable: forwards frames between two interfaces and drops, duplicates and reorders RoCEv2
 * packets on the way, marks them "congestion experienced" or corrupts a byte of them, some of a
 * thousand, by a seed. Everything else (ARP, neighbour discovery, TCP) passes untouched.
 * After 2000 / LOSS packets without a loss the next one is lost, so that a test with enough packets
 * has one whatever the seed; likewise for DUPLICATES and the others.
 *
 *	impair [-s SEED] [-l LOSS] [-u DUPLICATES] [-r REORDERED] [-e MARKED] [-c SPOILED]
 *		[-b BYTES] [-m MASK] IFACE IFACE
 *
 * Frames of more than BYTES are dropped, as by a link of a smaller MTU. Packets that are not
 * ECN-capable are not marked.
 * Bit n of MASK drops the nth packet to a QP 1 (a MAD of a connection), counted from 0 and both
 * ways together.
 *
 * Prints a line when it forwards, and its counts on TERM.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/checksum.h"
#include "lib/ctl.h"
#include "lib/wire.h"

#define HOLD_MS 2	/* a frame that waits to be overtaken waits no longer than this */

struct cable {
	int to;		/* socket of the interface that frames leave by */
	const char *from;
	/* to packets in this direction; marked: data packets, each as often as it left */
	struct {
		unsigned long roce, dropped, duplicated, spoiled, marked, reordered;
	} did;
	size_t held;	/* length of the frame that is waiting to be overtaken; 0 = none */
	uint64_t until_ms;
	uint8_t frame[WIRE_FRAME_MAX];
};

static struct {
	unsigned long forwarded, roce, mads, dropped, duplicated, reordered, marked, spoiled;
} did;
static unsigned int mad_mask;
static size_t longest = WIRE_FRAME_MAX;

static volatile sig_atomic_t stop;
static uint64_t dice;

enum fault { LOSE, DUPLICATE, REORDER, MARK, SPOIL, FAULTS };
static struct {
	unsigned int permille, spared; /* spared: packets since the last one */
} fault[FAULTS];

static void on_signal(int sig)
{
	stop = 1;
}

static unsigned int roll(void)
{
	/* xorshift64 (Marsaglia) */
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (dice >> 20) % 1000;
}

static bool happens(enum fault f)
{
	if (!fault[f].permille)
		return false;
	if (roll() >= fault[f].permille && ++fault[f].spared * fault[f].permille < 2000)
		return false;
	fault[f].spared = 0;
	return true;
}

static void release(struct cable *c)
{
	if (c->held)
		wire_send(c->to, c->frame, c->held);
	c->held = 0;
}

/* Does the mask drop this MAD, if it is one? ip: where its IP header begins. */
static bool mad_is_dropped(const uint8_t *frame, size_t len, size_t ip, bool ipv6)
{
	const size_t bth = ip + (ipv6 ? 40 : 20) + 8;
	const uint8_t *qpn = frame + bth + 5;
	unsigned long n;

	if (!mad_mask || len < bth + 12 || qpn[0] || qpn[1] || qpn[2] != 1)
		return false;
	n = did.mads++;
	return n < 32 && mad_mask >> n & 1;
}

/* ip: where the IP header begins */
static bool mark(uint8_t *frame, size_t ip, bool ipv6)
{
	uint8_t *h = frame + ip;
	uint32_t sum;

	if (ipv6 ? !(h[1] & 0x30) : !(h[1] & 3))
		return false;
	did.marked++;
	if (ipv6) {
		h[1] |= 0x30;
		return true;
	}
	h[1] |= 3;
	h[10] = h[11] = 0;
	sum = ~sum16(h, 20, 0);
	h[10] = (uint8_t)(sum >> 8);
	h[11] = (uint8_t)sum;
	return true;
}

/* No READ request, acknowledgement, atomic, CNP, or packet of flow control. */
static bool has_data(const uint8_t *bth)
{
	const unsigned int op = bth[0] & 0x1f;

	return bth[0] < 0x80 && op != 12 && (op < 17 || op > 20);
}

static void forward(struct cable *c, uint8_t *frame, size_t len)
{
	bool ipv6, marked = false, spoiled = false;
	size_t ip = wire_roce_ip(frame, len, &ipv6);

	did.forwarded++;
	if (!ip) {
		wire_send(c->to, frame, len);
		return;
	}
	did.roce++;
	c->did.roce++;
	if (mad_is_dropped(frame, len, ip, ipv6) || len > longest || happens(LOSE)) {
		did.dropped++;
		c->did.dropped++;
		return;
	}
	if (happens(MARK))
		marked = mark(frame, ip, ipv6) && has_data(frame + ip + (ipv6 ? 48 : 28));
	if (happens(SPOIL)) {
		frame[len - 5] ^= 1; /* in front of the ICRC */
		did.spoiled++;
		c->did.spoiled++;
		spoiled = true;
	}
	marked = marked && !spoiled;
	c->did.marked += marked;
	if (!c->held && happens(REORDER)) {
		memcpy(c->frame, frame, len);
		c->held = len;
		c->until_ms = now_ms() + HOLD_MS;
		did.reordered++;
		c->did.reordered++;
		return;
	}
	wire_send(c->to, frame, len);
	if (happens(DUPLICATE)) {
		wire_send(c->to, frame, len);
		did.duplicated++;
		c->did.duplicated++;
		c->did.spoiled += spoiled;
		c->did.marked += marked;
	}
	release(c);
}

static unsigned int number(const char *text, unsigned int most)
{
	char *end;
	unsigned long v = strtoul(text, &end, 0);

	must(*text && !*end && v <= most, "impair: '%s' is not a number up to %u", text, most);
	return (unsigned int)v;
}

int main(int argc, char **argv)
{
	static struct cable cable[2];
	static uint8_t frame[WIRE_FRAME_MAX];
	struct pollfd pfd[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct sigaction sa = { .sa_handler = on_signal };
	int c, i, n;
	size_t len;

	dice = 1;
	while ((c = getopt(argc, argv, "s:l:u:r:e:c:b:m:")) != -1) {
		switch (c) {
		case 's': dice = number(optarg, 1000000) + 1; break;
		case 'l': fault[LOSE].permille = number(optarg, 1000); break;
		case 'u': fault[DUPLICATE].permille = number(optarg, 1000); break;
		case 'r': fault[REORDER].permille = number(optarg, 1000); break;
		case 'e': fault[MARK].permille = number(optarg, 1000); break;
		case 'c': fault[SPOIL].permille = number(optarg, 1000); break;
		case 'b': longest = number(optarg, WIRE_FRAME_MAX); break;
		case 'm': mad_mask = number(optarg, UINT32_MAX); break;
		default: return 1;
		}
	}
	dice *= 0x9e3779b97f4a7c15ull;
	must(argc - optind == 2, "impair: two interfaces, please");
	for (i = 0; i < 2; i++) {
		pfd[i].fd = cable[!i].to = wire_open(argv[optind + i], true);
		cable[i].from = argv[optind + i];
	}
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	printf("forwarding\n");
	fflush(stdout);

	while (!stop) {
		poll(pfd, 2, cable[0].held || cable[1].held ? HOLD_MS : -1);
		for (i = 0; i < 2; i++) {
			for (n = 0; n < 64 && (len = wire_receive(pfd[i].fd, frame, sizeof(frame)));
			     n++)
				forward(&cable[i], frame, len);
			if (cable[i].held && now_ms() >= cable[i].until_ms)
				release(&cable[i]);
		}
	}
	for (i = 0; i < 2; i++)
		release(&cable[i]);
	printf("forwarded %lu roce %lu dropped %lu duplicated %lu reordered %lu marked %lu spoiled "
	       "%lu\n",
	       did.forwarded, did.roce, did.dropped, did.duplicated, did.reordered, did.marked,
	       did.spoiled);
	for (i = 0; i < 2; i++)
		printf("from %s: roce %lu dropped %lu duplicated %lu spoiled %lu marked %lu "
		       "reordered %lu\n",
		       cable[i].from, cable[i].did.roce, cable[i].did.dropped,
		       cable[i].did.duplicated, cable[i].did.spoiled, cable[i].did.marked,
		       cable[i].did.reordered);
	return 0;
}
