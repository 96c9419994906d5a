/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cable for cm_trials.c: forwards frames between two interfaces and loses the first MADs of one
 * kind of each connection, as its row of cm_trials.h has it.
 *
 *	mad_cable [-f] IFACE IFACE
 *
 *   -f	loses nothing, and adds forged MADs to the forwarded ones: with the ids and the
 *	transaction id of the connection and another IP address, or with the address and another
 *	transaction id, id or QPN. The connection must not notice.
 *
 * On TERM it prints what each row has lost: "lost NAME N" or "kept NAME". MADs are read and made
 * byte by byte, at the offsets of IBTA's tables. IPv4 alone.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../user/engine/icrc.h"
#include "cm_trials.h"
#include "lib/checksum.h"
#include "lib/ctl.h"
#include "lib/wire.h"

#define ETH	     14u
#define IP	     20u
#define UDP	     8u
#define BTH_AND_DETH 20u
#define MAD_AT	     (ETH + IP + UDP + BTH_AND_DETH)
#define MAD_BYTES    256u
#define FRAME_BYTES  (MAD_AT + MAD_BYTES + 4)
/* offsets within a MAD */
#define TID	    8
#define ATTRIBUTE   16
#define LOCAL_ID    24
#define REMOTE_ID   28
#define SERVICE_ID  32
#define CONNECTIONS 8192
#define STRANGER    0x0a4d00c8u /* 10.77.0.200 */
#define FORGED_ID   0x00beef01u
#define FORGED_QPN  0x00beef02u

struct connection {
	int side;    /* of the cable, that the active end is on */
	uint32_t id; /* of the active end */
	uint32_t row, lost;
};

static struct connection connections[CONNECTIONS];
static uint32_t num_connections;
static bool forges;
static unsigned long forged;
static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = sig;
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return ntohl(v);
}

static void put32(uint8_t *at, uint32_t v)
{
	v = htonl(v);
	memcpy(at, &v, sizeof(v));
}

/* ---- whose a MAD is ---- */

static bool is_mad(const uint8_t *frame, size_t len)
{
	bool ipv6;

	return len == FRAME_BYTES && wire_roce_ip(frame, len, &ipv6) == ETH && !ipv6 &&
	       frame[ETH + IP + UDP + 7] == 1 && frame[MAD_AT + 1] == 7;
}

static struct connection *find(int side, uint32_t id)
{
	for (uint32_t i = 0; i < num_connections; i++)
		if (connections[i].side == side && connections[i].id == id)
			return &connections[i];
	return NULL;
}

/* The connection of a MAD that came from a side; NULL: none of a row. */
static struct connection *connection_of(int side, const uint8_t *mad)
{
	const enum mad kind = mad[ATTRIBUTE + 1];
	struct connection *c;
	uint32_t row;

	if (kind == MAD_SIDR_REP)
		return find(!side, get32(mad + LOCAL_ID));
	if ((c = find(side, get32(mad + LOCAL_ID))))
		return c;
	if (kind != MAD_REQ && kind != MAD_SIDR_REQ)
		return find(!side, get32(mad + REMOTE_ID));
	row = get16(mad + SERVICE_ID + 6) - TRIALS_PORT;
	if (row >= NUM_ROWS || num_connections == CONNECTIONS)
		return NULL;
	c = &connections[num_connections++];
	*c = (struct connection){ .side = side, .id = get32(mad + LOCAL_ID), .row = row };
	return c;
}

static bool is_lost(struct connection *c, const uint8_t *mad)
{
	const struct row *row = &rows[c->row];

	if (forges || mad[ATTRIBUTE + 1] != (uint8_t)row->lost || c->lost == row->times)
		return false;
	c->lost++;
	return true;
}

/* ---- forged MADs ---- */

static void seal(uint8_t *frame)
{
	uint8_t *ip = frame + ETH;
	uint32_t sum;

	ip[10] = ip[11] = 0;
	sum = ~sum16(ip, IP, 0);
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
	icrc_store(icrc_packet(ip, false, FRAME_BYTES - ETH - 4), frame + FRAME_BYTES - 4);
}

/* An answer to a frame's sender, in the name of its receiver; kind and ids alone are set. */
static void make_answer(uint8_t *to, const uint8_t *frame, enum mad kind)
{
	memcpy(to, frame, FRAME_BYTES);
	memcpy(to, frame + 6, 6);
	memcpy(to + 6, frame, 6);
	memcpy(to + ETH + 12, frame + ETH + 16, 4);
	memcpy(to + ETH + 16, frame + ETH + 12, 4);
	memset(to + MAD_AT + LOCAL_ID, 0, MAD_BYTES - LOCAL_ID);
	to[MAD_AT + ATTRIBUTE + 1] = (uint8_t)kind;
	put32(to + MAD_AT + LOCAL_ID, FORGED_ID);
	put32(to + MAD_AT + REMOTE_ID, get32(frame + MAD_AT + LOCAL_ID));
}

static void fill(uint8_t *mad)
{
	switch ((enum mad)mad[ATTRIBUTE + 1]) {
	case MAD_REP:
		put32(mad + 36, FORGED_QPN << 8);
		mad[48] = mad[49] = 1;
		break;
	case MAD_REJ:
		mad[35] = 28;
		break;
	case MAD_MRA:
		mad[33] = 31 << 3;
		break;
	case MAD_SIDR_REP:
		put32(mad + 28, 0); /* success */
				    /* fallthrough */
	case MAD_DREQ:
		put32(mad + 32, FORGED_QPN << 8);
		break;
	default:
		break;
	}
}

/* By a stranger with all that the wire shows; and in the peer's name with another transaction. */
static void forge_one(int fd, const uint8_t *frame, enum mad kind, uint32_t local_id,
		      bool other_tid)
{
	static uint8_t f[FRAME_BYTES];

	make_answer(f, frame, kind);
	put32(f + MAD_AT + LOCAL_ID, local_id);
	fill(f + MAD_AT);
	if (other_tid)
		f[MAD_AT + TID + 7] ^= 1;
	else
		put32(f + ETH + 12, STRANGER);
	seal(f);
	wire_send(fd, f, FRAME_BYTES);
	forged++;
}

/* back: a socket to the sender of the frame, before that has an answer. */
static void forge(int back, const uint8_t *frame)
{
	static const enum mad answers[] = { MAD_REP, MAD_REJ, MAD_MRA };
	const uint32_t known = get32(frame + MAD_AT + REMOTE_ID);

	switch ((enum mad)frame[MAD_AT + ATTRIBUTE + 1]) {
	case MAD_REQ:
		for (int i = 0; i < 3; i++) {
			forge_one(back, frame, answers[i], FORGED_ID, false);
			forge_one(back, frame, answers[i], FORGED_ID, true);
		}
		forge_one(back, frame, MAD_REJ, 0, false);
		forge_one(back, frame, MAD_REJ, 0, true);
		break;
	case MAD_SIDR_REQ:
		forge_one(back, frame, MAD_SIDR_REP, get32(frame + MAD_AT + LOCAL_ID), false);
		forge_one(back, frame, MAD_SIDR_REP, get32(frame + MAD_AT + LOCAL_ID), true);
		break;
	case MAD_REP:
		forge_one(back, frame, MAD_RTU, known, false);
		forge_one(back, frame, MAD_REJ, known, false);
		forge_one(back, frame, MAD_MRA, known, false);
		forge_one(back, frame, MAD_DREQ, known, false);
		forge_one(back, frame, MAD_DREQ, known, true); /* and another QPN */
		break;
	case MAD_RTU:
		forge_one(back, frame, MAD_REJ, known, false);
		forge_one(back, frame, MAD_DREQ, known, false);
		forge_one(back, frame, MAD_DREQ, known, true);
		forge_one(back, frame, MAD_LAP, known, false);
		break;
	case MAD_DREQ:
		forge_one(back, frame, MAD_DREP, known, true);
		break;
	default:
		break;
	}
}

/* ---- the cable ---- */

static void forward(const int fd[2], int side, const uint8_t *frame, size_t len)
{
	struct connection *c = NULL;

	if (is_mad(frame, len))
		c = connection_of(side, frame + MAD_AT);
	if (c && is_lost(c, frame + MAD_AT))
		return;
	if (c && forges)
		forge(fd[side], frame);
	wire_send(fd[!side], frame, len);
}

static void report(void)
{
	for (uint32_t i = 0; i < num_connections; i++) {
		const struct row *row = &rows[connections[i].row];

		if (connections[i].lost)
			printf("lost %s %u\n", row->name, connections[i].lost);
		else if (row->times && !forges)
			printf("kept %s\n", row->name);
	}
	printf("connections %u forged %lu\n", num_connections, forged);
}

int main(int argc, char **argv)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	const struct sigaction sa = { .sa_handler = on_signal };
	struct pollfd pfd[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int fd[2];
	size_t len;

	forges = argc > 1 && !strcmp(argv[1], "-f");
	must(argc == 3 + forges, "usage: mad_cable [-f] IFACE IFACE");
	for (int i = 0; i < 2; i++)
		pfd[i].fd = fd[i] = wire_open(argv[1 + forges + i], true);
	sigaction(SIGTERM, &sa, NULL);
	printf("forwarding\n");
	fflush(stdout);
	while (!stop) {
		poll(pfd, 2, -1);
		for (int i = 0; i < 2; i++)
			while ((len = wire_receive(fd[i], frame, sizeof(frame))))
				forward(fd, i, frame, len);
	}
	report();
	return 0;
}
