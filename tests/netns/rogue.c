/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer that is no device: it completes the connections of victim.c, with right addresses, PSNs
 * and R_Keys, and then breaks one rule after another (rogue.h), by packets with right ICRCs from a
 * UDP socket.
 *
 *	rogue OWN-IPV4 HOST
 *
 * Where the victim's QP must live, it closes each with a WRITE that is acknowledged.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../../user/engine/icrc.h"
#include "../../user/engine/types.h"
#include "lib/ctl.h"
#include "rogue.h"

#define ROCE_PORT   4791
#define STORM	    40	/* packets a round */
#define HEADERS	    28	/* IPv4 and UDP, which the kernel makes and the ICRC covers */
#define BTH	    12
#define ICRC    4
#define ROGUE_PSN   1000u
#define ACK	    0x11
#define SEND_FIRST  0x00
#define SEND_MIDDLE 0x01
#define SEND_LAST   0x02
#define SEND_ONLY   0x04
#define WRITE_FIRST 0x06
#define WRITE_ONLY  0x0a
#define READ_REQ    0x0c
#define RESP_FIRST  0x0d
#define RESP_MIDDLE 0x0e
#define RESP_LAST   0x0f
#define RESP_ONLY   0x10
#define ATOMIC_ACK  0x12
#define FETCH_ADD   0x14
#define SEND_INV    0x17
#define FLUSH	    0x1c
#define CNP	    0x81
#define PROBE	    0xc0
#define ANSWER	    0xc1

struct rogue {
	int ctl, udp;
	struct sockaddr_in to;
	struct rc_address own, victim;
	u32 psn;	 /* that the victim expects */
	unsigned int round;
};

static struct rogue r;
static u8 packet[HEADERS + 4200];

/* ---- packets ---- */

static u8 *put(u8 *at, u64 v, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		at[i] = (u8)(v >> 8 * (bytes - 1 - i));
	return at + bytes;
}

/* The BTH, with AckReq; returns where its extension headers go. */
static u8 *packet_start(u8 opcode, u32 psn)
{
	u8 *at = packet + HEADERS;

	at = put(at, (u64)opcode << 24 | 0x40ffff, 4);
	at = put(at, r.victim.qpn, 4);
	return put(at, 0x80000000u | (psn & ROCE_PSN_MASK), 4);
}

static void packet_send(u8 *at, u32 payload)
{
	size_t len;

	memset(at, 'z', payload);
	at += payload;
	len = (size_t)(at - packet) + ICRC;
	put(packet, 0x45000000u | (u32)len, 4);
	put(packet + 4, 0x00004000, 4); /* identification 0, do not fragment */
	put(packet + 8, 0x40110000, 4);
	memcpy(packet + 12, r.own.gid.raw + 12, 4);
	memcpy(packet + 16, &r.to.sin_addr, 4);
	put(packet + 20, (u64)ROCE_PORT << 16 | ROCE_PORT, 4);
	put(packet + 24, (u64)(len - 20) << 16, 4);
	icrc_store(icrc_packet(packet, false, (size_t)(at - packet)), at);
	while (sendto(r.udp, packet + HEADERS, len - HEADERS, 0, (void *)&r.to, sizeof(r.to)) < 0)
		must(errno == EAGAIN || errno == ENOBUFS || errno == EINTR, "sendto: %s",
		     strerror(errno));
}

static void send_plain(u8 opcode, u32 psn, u32 payload)
{
	packet_send(packet_start(opcode, psn), payload);
}

static void send_aeth(u8 opcode, u32 psn, u8 syndrome, u32 payload)
{
	packet_send(put(packet_start(opcode, psn), (u64)syndrome << 24, 4), payload);
}

static void send_ack(u32 psn, u8 syndrome)
{
	send_aeth(ACK, psn, syndrome, 0);
}

static void send_reth(u8 opcode, u32 psn, u64 addr, u32 rkey, u32 bytes, u32 payload)
{
	u8 *at = put(packet_start(opcode, psn), addr, 8);

	packet_send(put(put(at, rkey, 4), bytes, 4), payload);
}

static void send_atomic(u32 psn, u64 addr)
{
	u8 *at = put(packet_start(FETCH_ADD, psn), addr, 8);

	packet_send(put(put(put(at, r.victim.rkey, 4), 1, 8), 0, 8), 0);
}

static void send_flow(u8 opcode)
{
	u8 *at = put(put(packet_start(opcode, 0), 0x1234567, 4), ROGUE_QPN, 4);

	packet_send(put(put(at, r.round, 4), 0xffffffff, 4), 0);
}

/* ---- a round of each kind that does not wait to be asked ---- */

static void storm_of_acks(u32 psn, u8 syndrome)
{
	for (int i = 0; i < STORM; i++)
		send_ack(psn, syndrome);
}

static void round_run(enum rogue_kind kind)
{
	const struct rc_address *v = &r.victim;
	const u32 first = v->psn, region = ROGUE_REGION / ROGUE_MTU;

	switch (kind) {
	case KIND_rnr_storm:
		storm_of_acks(first, 0x21);
		break;
	case KIND_nak_storm:
		storm_of_acks(first, 0x60);
		break;
	case KIND_ack_of_unsent:
		for (u32 i = 0; i < STORM; i++)
			send_ack(psn_add(first, ROGUE_RECEIVES + i), 0x1f);
		break;
	case KIND_ack_of_past:
		for (u32 i = 1; i <= STORM; i++)
			send_ack(first - i, 0x1f);
		break;
	case KIND_nak_of_past:
		for (u32 i = 1; i <= STORM; i++)
			send_ack(first - i, (u8)(0x61 + i % 3));
		break;
	case KIND_read_of_2gib:
		send_reth(READ_REQ, r.psn, v->addr, v->rkey, 0x80000000u, 0);
		break;
	case KIND_read_of_4gib:
		send_reth(READ_REQ, r.psn, v->addr, v->rkey, 0xffffffffu, 0);
		break;
	case KIND_read_duplicates:
		for (int i = 0; i < STORM; i++)
			send_reth(READ_REQ, ROGUE_PSN, v->addr, v->rkey, ROGUE_REGION, 0);
		r.psn = ROGUE_PSN + region;
		break;
	case KIND_read_one_too_many:
		/* again, until several arrive before the last is answered */
		for (u32 i = 0; i <= ROGUE_RD_ATOMIC; i++, r.psn += region)
			send_reth(READ_REQ, r.psn, v->addr, v->rkey, ROGUE_REGION, 0);
		break;
	case KIND_atomic_misaligned:
		send_atomic(r.psn, v->addr + 1);
		break;
	case KIND_atomic_duplicates:
		for (int i = 0; i < STORM; i++)
			send_atomic(r.psn, v->addr);
		r.psn++;
		break;
	case KIND_sends_ahead:
		for (u32 i = 1; i < STORM; i++)
			send_plain(SEND_ONLY, r.psn + i, 512);
		break;
	case KIND_first_twice:
		send_plain(SEND_FIRST, r.psn + (r.round > 0), ROGUE_MTU);
		break;
	case KIND_middle_without_first:
		send_plain(SEND_MIDDLE, r.psn, ROGUE_MTU);
		break;
	case KIND_last_without_first:
		send_plain(SEND_LAST, r.psn, 512);
		break;
	case KIND_middles_without_end:
		send_plain(r.round ? SEND_MIDDLE : SEND_FIRST, r.psn + r.round, ROGUE_MTU);
		break;
	case KIND_sends_past_receives:
		for (u32 i = 0; i <= ROGUE_RECEIVES; i++)
			send_plain(SEND_ONLY, ROGUE_PSN + i, 512);
		r.psn = ROGUE_PSN + ROGUE_RECEIVES;
		break;
	case KIND_send_duplicates:
		for (int i = 0; i < STORM; i++)
			send_plain(SEND_ONLY, ROGUE_PSN, 512);
		r.psn = ROGUE_PSN + 1;
		break;
	case KIND_congestion_storm:
		for (int i = 0; i < STORM; i++) {
			u8 *at = packet_start(CNP, 0);

			packet[HEADERS + 4] = 0x40;
			memset(at, 0, 16);
			packet_send(at + 16, 0);
		}
		break;
	case KIND_probe_storm:
	case KIND_probe_answers:
		for (int i = 0; i < STORM; i++)
			send_flow(kind == KIND_probe_storm ? PROBE : ANSWER);
		break;
	case KIND_write_wrong_key:
		send_reth(WRITE_ONLY, r.psn, v->addr, v->rkey ^ 1, 512, 512);
		break;
	case KIND_write_of_2gib:
		send_reth(WRITE_FIRST, r.psn, v->addr, v->rkey, 0x80000000u, ROGUE_MTU);
		break;
	case KIND_write_around_the_end:
		send_reth(WRITE_ONLY, r.psn, (u64)-256, v->rkey, 512, 512);
		break;
	case KIND_write_longer_than_said:
		send_reth(WRITE_ONLY, r.psn, v->addr, v->rkey, 8, 512);
		break;
	case KIND_write_shorter_than_said:
		send_reth(WRITE_ONLY, r.psn, v->addr, v->rkey, 512, 8);
		break;
	case KIND_invalidate_a_region:
		packet_send(put(packet_start(SEND_INV, r.psn), v->rkey, 4), 512);
		break;
	case KIND_flush_of_no_type:
		send_plain(FLUSH, r.psn, 20);
		break;
	default:
		break;
	}
}

/* ---- answers to the victim's requests ---- */

static void read_answer(enum rogue_kind kind, u32 psn, u32 bytes)
{
	switch (kind) {
	case KIND_read_short: send_aeth(RESP_ONLY, psn, 0x1f, ROGUE_MTU); break;
	case KIND_read_long: send_aeth(RESP_ONLY, psn, 0x1f, bytes + 4); break;
	case KIND_read_empty: send_aeth(RESP_ONLY, psn, 0x1f, 0); break;
	case KIND_read_never_last:
		send_aeth(RESP_FIRST, psn, 0x1f, ROGUE_MTU);
		send_plain(RESP_MIDDLE, psn + 1, ROGUE_MTU);
		send_plain(RESP_MIDDLE, psn + 2, ROGUE_MTU);
		break;
	case KIND_read_last_first: send_aeth(RESP_LAST, psn, 0x1f, bytes % ROGUE_MTU); break;
	case KIND_read_middle_first: send_plain(RESP_MIDDLE, psn, ROGUE_MTU); break;
	case KIND_read_dribbles: send_aeth(RESP_FIRST, psn, 0x1f, ROGUE_MTU); break;
	case KIND_read_gets_ack: send_ack(psn, 0x1f); break;
	case KIND_read_gets_atomic_ack:
		packet_send(put(put(packet_start(ATOMIC_ACK, psn), 0x1f000000, 4), 7, 8), 0);
		break;
	default: break;
	}
}

static void request_answer(enum rogue_kind kind, u32 psn)
{
	/* A NAK acknowledges all packets before it: so it is always of the first. */
	const u32 first = r.victim.psn;

	switch (kind) {
	case KIND_rnr_for_ever: send_ack(first, 0x21); break;
	case KIND_ack_reserved: send_ack(psn, 0x40 + r.round % 32); break;
	case KIND_nak_unknown: send_ack(first, 0x65 + r.round % 27); break;
	case KIND_nak_invalid_request: send_ack(first, 0x61); break;
	case KIND_nak_access: send_ack(first, 0x62); break;
	case KIND_nak_operation: send_ack(first, 0x63); break;
	case KIND_send_gets_read_response:
	case KIND_atomic_gets_read_response: send_aeth(RESP_ONLY, first, 0x1f, 8); break;
	case KIND_send_gets_atomic_ack:
		packet_send(put(put(packet_start(ATOMIC_ACK, first), 0x1f000000, 4), 7, 8), 0);
		break;
	case KIND_credit_none: send_ack(psn, 0); break;
	case KIND_credit_random:
		packet_send(put(packet_start(ACK, psn), (psn * 7 % 31) << 24 | psn * 77777 % 65536,
				4), 0);
		break;
	default: break;
	}
}

/* Take what came. True if there was an acknowledgement of psn. */
static bool packets_take(enum rogue_kind kind, u32 psn)
{
	u8 got[4400];
	bool acked = false;
	ssize_t len;

	while ((len = recv(r.udp, got, sizeof(got), MSG_DONTWAIT)) > 0) {
		const u32 at = (u32)got[9] << 16 | (u32)got[10] << 8 | got[11];
		const u8 opcode = got[0];

		if (len < BTH + ICRC)
			continue;
		acked |= opcode == ACK && at == (psn & ROCE_PSN_MASK) && got[BTH] >> 5 == 0;
		if (opcode >= RESP_FIRST && opcode <= ATOMIC_ACK)
			continue;
		if (opcode == READ_REQ)
			read_answer(kind, at, (u32)got[BTH + 14] << 8 | got[BTH + 15]);
		else if (opcode <= FETCH_ADD)
			request_answer(kind, at);
	}
	return acked;
}

/* ---- one kind ---- */

static bool is_readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

/* Something to answer, or the victim's word that it is done, or a short while. */
static void round_pause(void)
{
	struct pollfd pfd[2] = { { .fd = r.udp, .events = POLLIN },
				 { .fd = r.ctl, .events = POLLIN } };

	poll(pfd, 2, 2);
}

/* A WRITE in its turn, until it is acknowledged: the QP is alive, all before it is done. */
static void prove_alive(enum rogue_kind kind)
{
	uint64_t end = now_ms() + WAIT_MS;

	do {
		must(now_ms() < end, "%s: the victim's QP does not answer", rogue_rows[kind].name);
		send_reth(WRITE_ONLY, r.psn, r.victim.addr + ROGUE_PROOF, r.victim.rkey, 8, 8);
		is_readable(r.udp, 10);
	} while (!packets_take(kind, r.psn));
}

static void kind_run(enum rogue_kind kind)
{
	const struct rogue_row *row = &rogue_rows[kind];

	ctl_swap(r.ctl, &r.own, &r.victim, sizeof(r.own));
	ctl_barrier(r.ctl, kind); /* connected */
	r.psn = ROGUE_PSN;
	/* The victim says when its requests have ended. */
	for (r.round = 0; row->request ? !is_readable(r.ctl, 0) : r.round < ROGUE_ROUNDS;
	     r.round++) {
		round_run(kind);
		round_pause();
		packets_take(kind, 0);
	}
	if (row->lives)
		prove_alive(kind);
	ctl_barrier(r.ctl, kind);
}

int main(int argc, char **argv)
{
	struct sockaddr_in me = { .sin_family = AF_INET, .sin_port = htons(ROCE_PORT) };
	int df = IP_PMTUDISC_DO;

	must(argc == 3 && inet_pton(AF_INET, argv[1], &me.sin_addr) == 1, "rogue OWN-IPV4 HOST");
	r.to = me;
	must(inet_pton(AF_INET, argv[2], &r.to.sin_addr) == 1, "rogue OWN-IPV4 HOST");
	r.udp = socket(AF_INET, SOCK_DGRAM, 0);
	must(r.udp >= 0 && !setsockopt(r.udp, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df)) &&
		     !bind(r.udp, (void *)&me, sizeof(me)), "UDP socket: %s", strerror(errno));
	r.own = (struct rc_address){ .qpn = ROGUE_QPN, .psn = ROGUE_PSN, .rkey = 0x1111,
				     .bytes = 1 << 20, .addr = 0x7000000000 };
	r.own.gid.raw[10] = r.own.gid.raw[11] = 0xff;
	memcpy(r.own.gid.raw + 12, &me.sin_addr, 4);
	r.ctl = ctl_open(argv[2], ROGUE_PORT);
	for (enum rogue_kind kind = 0; kind < ROGUE_NUM_KINDS; kind++)
		kind_run(kind);
	printf("rogue: %d kinds\n", ROGUE_NUM_KINDS);
	return 0;
}
