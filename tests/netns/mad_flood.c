/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs of the connection manager in any number, whole frames by a packet socket, in the name of one
 * address or of many; it hears no answer.
 *
 *	mad_flood IFACE FROM-MAC TO-MAC FIRST-IPV4 ADDRESSES TO-IPV4 PORT KIND COUNT [PER-SECOND]
 *
 * KIND: req, "rsocket" (the REQ of an rsocket), sidr, "leaves" (a REQ and at once the REJ of a peer
 * that aborts), or "others" (each other kind, with unused ids). Each REQ is for another connection.
 * PER-SECOND: without it, at full speed.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../user/engine/icrc.h"
#include "lib/checksum.h"
#include "lib/ctl.h"
#include "lib/wire.h"
#include "mad_kinds.h"

#define ETH	    14u
#define IP_AT	    ETH
#define UDP_AT	    (IP_AT + 20)
#define BTH_AT	    (UDP_AT + 8)
#define MAD_AT	    (BTH_AT + 20)
#define MAD_BYTES   256u
#define FRAME_BYTES (MAD_AT + MAD_BYTES + 4)
#define ROCE_PORT   4791u
#define QKEY	    0x80010000u
#define PS_TCP	    0x0106u
#define PS_UDP	    0x0111u

static uint8_t frame[FRAME_BYTES];
static uint8_t *const mad = frame + MAD_AT;
static uint32_t first, to, port;

static void put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static void put32(uint8_t *at, uint32_t v)
{
	put16(at, v >> 16);
	put16(at + 2, v);
}

static void put_mac(uint8_t *at, const char *text)
{
	unsigned int b[6];

	must(sscanf(text, "%x:%x:%x:%x:%x:%x", b, b + 1, b + 2, b + 3, b + 4, b + 5) == 6,
	     "no MAC address: %s", text);
	for (int i = 0; i < 6; i++)
		at[i] = (uint8_t)b[i];
}

static uint32_t ipv4(const char *text)
{
	struct in_addr a;

	must(inet_pton(AF_INET, text, &a) == 1, "no IPv4 address: %s", text);
	return ntohl(a.s_addr);
}

/* IPv4 in a GID, or in the address of an IP header of rdma_cm without the 0xffff. */
static void put_gid(uint8_t *at, uint32_t address, bool mapped)
{
	memset(at, 0, 16);
	if (mapped)
		at[10] = at[11] = 0xff;
	put32(at + 12, address);
}

static void make_headers(uint32_t from, uint32_t n)
{
	uint8_t *ip = frame + IP_AT, *bth = frame + BTH_AT;
	uint32_t sum;

	put16(frame + 12, 0x0800);
	put32(ip, 0x45000000u | (FRAME_BYTES - ETH));
	put32(ip + 4, 0x00004000);
	put32(ip + 8, 0x40110000);
	put32(ip + 12, from);
	put32(ip + 16, to);
	sum = ~sum16(ip, 20, 0);
	put16(ip + 10, sum);
	put16(frame + UDP_AT, 0xc000u | (n & 0x3fff));
	put16(frame + UDP_AT + 2, ROCE_PORT);
	put16(frame + UDP_AT + 4, FRAME_BYTES - UDP_AT);
	put16(frame + UDP_AT + 6, 0);
	put32(bth, 0x6440ffff);
	put32(bth + 4, 1);
	put32(bth + 8, 0);
	put32(bth + 12, QKEY);
	put32(bth + 16, 1);
}

static void make_mad(enum mad kind, uint32_t n)
{
	memset(mad, 0, MAD_BYTES);
	mad[0] = 1;
	mad[1] = 7;
	mad[2] = 2;
	mad[3] = 3;
	put32(mad + 8, 0x5eed0000u);
	put32(mad + 12, n);
	put16(mad + 16, kind);
	put32(mad + 24, 0x00a00000u + n);
	put32(mad + 28, n * 2654435761u);
}

/* 36 bytes that say which address connects to which. */
static void put_ip_header(uint8_t *at, uint32_t from)
{
	at[1] = 0x40;
	put16(at + 2, 0x8001);
	put_gid(at + 4, from, false);
	put_gid(at + 20, to, false);
}

static void make_req(uint32_t from, uint32_t n)
{
	make_mad(MAD_REQ, n);
	put32(mad + 28, 0);
	put32(mad + 36, PS_TCP << 16 | port);
	put32(mad + 56, (0x010000u + n) << 8 | 1); /* QPN, responder resources */
	mad[63] = 1;				   /* initiator depth */
	mad[67] = 20u << 3;			   /* remote response time-out, RC */
	mad[71] = 20u << 3 | 7;			   /* local response time-out, retries */
	put16(mad + 72, 0xffff);		   /* P_Key */
	mad[74] = 3u << 4 | 7;			   /* MTU, RNR retries */
	mad[75] = 15u << 4;			   /* CM retries */
	put16(mad + 76, 0xffff);
	put16(mad + 78, 0xffff);
	put_gid(mad + 80, from, true);
	put_gid(mad + 96, to, true);
	mad[117] = 64; /* hop limit */
	mad[119] = 17u << 3;
	put_ip_header(mad + 164, from);
}

/* Private data of an rsocket, after the IP header: version 1, 16 credits, 2 entries, 1024 bytes. */
static void make_rsocket_req(uint32_t from, uint32_t n)
{
	uint8_t *data = mad + 200;

	make_req(from, n);
	data[0] = 1;
	data[3] = 16;
	data[23] = 2;
	data[38] = 4;
}

static void make_sidr(uint32_t from, uint32_t n)
{
	make_mad(MAD_SIDR_REQ, n);
	put16(mad + 28, 0xffff);
	put16(mad + 30, 0);
	put32(mad + 36, PS_UDP << 16 | port);
	put_ip_header(mad + 40, from);
}

/* Of the REQ before. */
static void make_rej(uint32_t n)
{
	make_mad(MAD_REJ, n);
	put32(mad + 28, 0);
	mad[32] = 2u << 6; /* about no message */
	mad[35] = 4;	   /* a time-out */
}

static void make_other(uint32_t n)
{
	static const enum mad kinds[] = { MAD_MRA,  MAD_REJ,	  MAD_REP, MAD_RTU, MAD_DREQ,
					  MAD_DREP, MAD_SIDR_REP, MAD_LAP, MAD_APR };

	make_mad(kinds[n % 9], n);
}

static void pace(uint64_t since_ms, uint32_t n, uint32_t per_second)
{
	const struct timespec t = { 0, 1000000 };

	while (per_second && (now_ms() - since_ms) * per_second / 1000 < n)
		nanosleep(&t, NULL);
}

static void send_frame(int fd, uint32_t from, uint32_t n)
{
	make_headers(from, n);
	icrc_store(icrc_packet(frame + IP_AT, false, FRAME_BYTES - ETH - 4),
		   frame + FRAME_BYTES - 4);
	wire_send(fd, frame, FRAME_BYTES);
}

int main(int argc, char **argv)
{
	uint32_t addresses, count, per_second;
	uint64_t since_ms;
	int fd;

	must(argc == 10 || argc == 11, "usage: mad_flood IFACE FROM-MAC TO-MAC FIRST-IPV4 "
				       "ADDRESSES TO-IPV4 PORT KIND COUNT [PER-SECOND]");
	fd = wire_open(argv[1], false);
	put_mac(frame + 6, argv[2]);
	put_mac(frame, argv[3]);
	first = ipv4(argv[4]);
	addresses = (uint32_t)atoi(argv[5]);
	to = ipv4(argv[6]);
	port = (uint32_t)atoi(argv[7]);
	count = (uint32_t)atoi(argv[9]);
	per_second = argc == 11 ? (uint32_t)atoi(argv[10]) : 0;
	must(addresses, "no addresses");
	since_ms = now_ms();
	for (uint32_t n = 0; n < count; n++) {
		const uint32_t from = first + n % addresses;

		if (!strcmp(argv[8], "req") || !strcmp(argv[8], "leaves"))
			make_req(from, n);
		else if (!strcmp(argv[8], "rsocket"))
			make_rsocket_req(from, n);
		else if (!strcmp(argv[8], "sidr"))
			make_sidr(from, n);
		else
			make_other(n);
		send_frame(fd, from, n);
		if (!strcmp(argv[8], "leaves")) {
			make_rej(n);
			send_frame(fd, from, n);
		}
		pace(since_ms, n, per_second);
	}
	printf("flooded: %u in %llu ms\n", count, (unsigned long long)(now_ms() - since_ms));
	return 0;
}
