/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer that is no device: MADs of the connection manager by a UDP socket, for what both ends of
 * our own would hide. The other end is cm_slow.c.
 *
 *	mad_peer OWN HOST asks PORT		asks, again until a MRA comes, says "delayed", and
 *						completes the connection
 *	mad_peer OWN HOST answers		gets a request, answers it until a MRA comes, prints
 *						"delayed", and gets the completion
 *	mad_peer OWN HOST stays PORT	connects, says "connected", and waits for a DREQ
 *	mad_peer OWN HOST waits PORT	asks, says "asked" when it was heard, and waits for
 *						a REJ
 *	mad_peer OWN HOST calls PORT [N]	asks N times, each for another connection, and is
 *						silent then
 *
 * Where the options and the vendor of the enhanced connection establishment lie is checked byte by
 * byte: in the MAD header's attribute modifier; in bytes 29 to 31 of a REQ, 39, 43 and 47 of a REP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../user/cm/mad.h"
#include "../../user/engine/icrc.h"
#include "cm_slow.h"
#include "lib/ctl.h"

#define ROCE_PORT 4791
/* IP and UDP headers, which the kernel makes and the ICRC covers */
#define HEADERS_4 28
#define HEADERS_6 48
#define MAD_AT	  20 /* after BTH and DETH */
#define BYTES	  (MAD_AT + CM_MAD_BYTES + 4)
#define REPEAT_MS 100
#define TID	  0x1122334455667788ull

static struct {
	int udp;
	union address {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} own, to; /* of one family */
	uint32_t own_id; /* another one each time */
	uint32_t id;	 /* of the other end */
	/* how many more times this may come, as its request was resent */
	enum cm_kind answer;
	int more_answers;
} peer;

/* ---- packets ---- */

static void put32(u8 *at, u32 v)
{
	v = htonl(v);
	memcpy(at, &v, sizeof(v));
}

static bool is_ipv6(void)
{
	return peer.own.any.sa_family == AF_INET6;
}

/* Writes the IP and UDP headers as the kernel does, except fields that the ICRC masks. */
static size_t put_headers(u8 *at)
{
	const size_t bytes = is_ipv6() ? HEADERS_6 : HEADERS_4;

	if (is_ipv6()) {
		put32(at, 0x60000000);
		put32(at + 4, (u32)(8 + BYTES) << 16 | IPPROTO_UDP << 8);
		memcpy(at + 8, &peer.own.in6.sin6_addr, 16);
		memcpy(at + 24, &peer.to.in6.sin6_addr, 16);
	} else {
		put32(at, 0x45000000u | (u32)(bytes + BYTES));
		put32(at + 4, 0x00004000); /* identification 0, do not fragment */
		put32(at + 8, 0x40110000);
		memcpy(at + 12, &peer.own.in.sin_addr, 4);
		memcpy(at + 16, &peer.to.in.sin_addr, 4);
	}
	put32(at + bytes - 8, (u32)ROCE_PORT << 16 | ROCE_PORT);
	put32(at + bytes - 4, (u32)(8 + BYTES) << 16);
	return bytes;
}

static void send_mad(const struct cm_mad *m)
{
	static u8 packet[HEADERS_6 + BYTES];
	const size_t headers = put_headers(packet);
	u8 *bth = packet + headers;

	put32(bth, 0x6440ffff); /* a datagram */
	put32(bth + 4, 1);
	put32(bth + 8, 0);
	put32(bth + 12, CM_QKEY);
	put32(bth + 16, 1);
	cm_mad_encode(bth + MAD_AT, m);
	icrc_store(icrc_packet(packet, is_ipv6(), headers + BYTES - 4), bth + BYTES - 4);
	must(sendto(peer.udp, bth, BYTES, 0, &peer.to.any, sizeof(peer.to)) == BYTES, "sendto: %s",
	     strerror(errno));
}

/* Gets the next MAD of the other end, within some milliseconds. Returns false if there is none. */
static bool receive_mad(struct cm_mad *m, u8 mad[CM_MAD_BYTES], int ms)
{
	struct pollfd p = { .fd = peer.udp, .events = POLLIN };
	u8 bytes[BYTES];

	do {
		if (poll(&p, 1, ms) != 1)
			return false;
		must(recv(peer.udp, bytes, sizeof(bytes), 0) == BYTES, "no MAD");
		memcpy(mad, bytes + MAD_AT, CM_MAD_BYTES);
		must(cm_mad_decode(m, mad, CM_MAD_BYTES) == CM_DROP_none,
		     "what came is no MAD");
		/* answers to an earlier one of this address are not for this one */
	} while (m->kind != CM_REQ && m->remote_id != peer.own_id);
	return true;
}

/* Duplicate requests are answered again: their answers come before all else. */
static bool is_answer_again(const struct cm_mad *m, enum cm_kind kind)
{
	return m->kind == peer.answer && m->kind != kind && peer.more_answers-- > 0;
}

static struct cm_mad wait_for(enum cm_kind kind, u8 mad[CM_MAD_BYTES])
{
	struct cm_mad m;

	do
		must(receive_mad(&m, mad, WAIT_MS), "no MAD of kind %#x", (unsigned int)kind);
	while (is_answer_again(&m, kind));
	must(m.kind == kind, "a MAD of kind %#x, instead of %#x", (unsigned int)m.kind,
	     (unsigned int)kind);
	return m;
}

/* Sent again and again until something comes, which must be of this kind. */
static struct cm_mad repeat_until(const struct cm_mad *m, enum cm_kind kind)
{
	u8 mad[CM_MAD_BYTES];
	struct cm_mad got;

	for (int i = 0; i < WAIT_MS / REPEAT_MS; i++) {
		send_mad(m);
		if (receive_mad(&got, mad, REPEAT_MS) && !is_answer_again(&got, kind)) {
			must(got.kind == kind, "a MAD of kind %#x", (unsigned int)got.kind);
			peer.answer = kind;
			peer.more_answers = i;
			return got;
		}
	}
	die("no MAD of kind %#x", (unsigned int)kind);
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

/* ---- messages ---- */

static void gid_of(struct gid *gid, const union address *address)
{
	*gid = (struct gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	if (is_ipv6())
		memcpy(gid->raw, &address->in6.sin6_addr, sizeof(gid->raw));
	else
		memcpy(gid->raw + 12, &address->in.sin_addr, 4);
}

static struct cm_mad make_req(u16 port)
{
	struct cm_mad m = {
		.kind = CM_REQ,
		.tid = TID,
		.attr_mod = SLOW_ECE_OPTIONS,
		.local_id = peer.own_id,
		.req = { .service_id = cm_service_id(CM_PS_TCP, port),
			 .vendor_id = SLOW_ECE_VENDOR,
			 .qpn = SLOW_PEER_QPN,
			 .remote_response_timeout = 20,
			 .local_response_timeout = 20,
			 .max_retries = 15,
			 .pkey = 0xffff,
			 .mtu = 3,
			 .primary = { .hop_limit = 64, .ack_timeout = 17 } },
	};
	struct cm_ip_header h = { .source_port = 0x8001 };

	gid_of(&m.req.primary.local, &peer.own);
	gid_of(&m.req.primary.remote, &peer.to);
	h.source = m.req.primary.local;
	h.destination = m.req.primary.remote;
	cm_ip_header_put(m.data, &h);
	return m;
}

static struct cm_mad make(enum cm_kind kind, u64 tid)
{
	return (struct cm_mad){ .kind = kind, .tid = tid, .local_id = peer.own_id,
				.remote_id = peer.id };
}

static void check_mra(const struct cm_mad *m, enum cm_about about, u64 tid)
{
	must(m->mra.about == about, "a MRA about %u", m->mra.about);
	must(m->mra.service_timeout == 24, "a MRA of 2^%u", m->mra.service_timeout);
	must(m->tid == tid && m->remote_id == peer.own_id, "a MRA of another connection");
	peer.id = m->local_id;
}

static void check_rep(const struct cm_mad *m, const u8 *mad)
{
	must(m->tid == TID && m->remote_id == peer.own_id, "a REP to another REQ");
	must(m->rep.qpn == SLOW_QPN, "a REP with QPN %#x", m->rep.qpn);
	must(!memcmp(mad + 20, "\x01\x23\x45\x67", 4), "the options of a REP");
	must(mad[39] == 0x12 && mad[43] == 0x34 && mad[47] == 0x56, "the vendor of a REP");
	peer.id = m->local_id;
}

/* ---- the cases ---- */

static void connect_to(u16 port)
{
	const struct cm_mad req = make_req(port);
	u8 mad[CM_MAD_BYTES];
	struct cm_mad m;

	send_mad(&req);
	m = wait_for(CM_REP, mad);
	peer.id = m.local_id;
	m = make(CM_RTU, TID);
	send_mad(&m);
}

static void asks(u16 port)
{
	const struct cm_mad req = make_req(port);
	u8 mad[CM_MAD_BYTES];
	struct cm_mad m;

	m = repeat_until(&req, CM_MRA);
	check_mra(&m, CM_ABOUT_REQ, TID);
	say("delayed");
	m = wait_for(CM_REP, mad);
	check_rep(&m, mad);
	/* a REQ that comes again has the REP for an answer by now */
	m = repeat_until(&req, CM_REP);
	m = make(CM_RTU, TID);
	send_mad(&m);
	m = make(CM_DREQ, TID + 1);
	m.dreq.qpn = SLOW_QPN;
	m = repeat_until(&m, CM_DREP);
	must(m.tid == TID + 1 && m.remote_id == peer.own_id, "a DREP to another DREQ");
}

static void answers(void)
{
	u8 mad[CM_MAD_BYTES];
	struct cm_mad m = wait_for(CM_REQ, mad);

	must(m.req.qpn == SLOW_QPN, "a REQ with QPN %#x", m.req.qpn);
	must(!memcmp(mad + 20, "\x01\x23\x45\x67", 4), "the options of a REQ");
	must(!memcmp(mad + 29, "\x12\x34\x56", 3), "the vendor of a REQ");
	peer.id = m.local_id;
	m = make(CM_REP, m.tid);
	m.attr_mod = SLOW_ECE_OPTIONS;
	m.rep = (struct cm_rep){ .qpn = SLOW_PEER_QPN, .vendor_id = SLOW_ECE_VENDOR };
	m = repeat_until(&m, CM_MRA);
	check_mra(&m, CM_ABOUT_REP, m.tid);
	say("delayed");
	wait_for(CM_RTU, mad);
}

static void stays(u16 port)
{
	u8 mad[CM_MAD_BYTES];
	struct cm_mad m;

	connect_to(port);
	say("connected");
	m = wait_for(CM_DREQ, mad);
	must(m.local_id == peer.id && m.remote_id == peer.own_id, "a DREQ of another connection");
	must(m.dreq.qpn == SLOW_PEER_QPN, "a DREQ for QPN %#x", m.dreq.qpn);
	m = make(CM_DREP, m.tid);
	send_mad(&m);
}

static void waits(u16 port)
{
	const struct cm_mad req = make_req(port);
	u8 mad[CM_MAD_BYTES];
	struct cm_mad m;

	m = repeat_until(&req, CM_MRA);
	say("asked");
	m = wait_for(CM_REJ, mad);
	must(m.tid == TID && m.remote_id == peer.own_id, "a REJ of another REQ");
	must(m.rej.about == CM_ABOUT_REQ && m.rej.reason == CM_REJ_CONSUMER_DEFINED,
	     "a REJ about %u for %u", m.rej.about, m.rej.reason);
}

static void calls(u16 port, int times)
{
	struct cm_mad req = make_req(port);

	for (int i = 0; i < times; i++) {
		req.local_id++;
		req.tid++;
		req.req.qpn = SLOW_PEER_QPN + (u32)i;
		send_mad(&req);
	}
}

/* Sets an address with RoCE's port. */
static void set_address(union address *address, const char *text)
{
	*address = (union address){ .in = { .sin_family = AF_INET, .sin_port = htons(ROCE_PORT) } };
	if (inet_pton(AF_INET, text, &address->in.sin_addr) == 1)
		return;
	*address = (union address){ .in6 = { .sin6_family = AF_INET6,
					     .sin6_port = htons(ROCE_PORT) } };
	must(inet_pton(AF_INET6, text, &address->in6.sin6_addr) == 1, "no address: %s", text);
}

static void open_socket(void)
{
	const int on = 1, df = IP_PMTUDISC_DO;

	peer.udp = socket(peer.own.any.sa_family, SOCK_DGRAM, 0);
	must(is_ipv6() || (!setsockopt(peer.udp, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)) &&
			   !setsockopt(peer.udp, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df))),
	     "setsockopt: %s", strerror(errno));
	must(!bind(peer.udp, &peer.own.any, sizeof(peer.own)), "bind: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	u16 port;

	must(argc >= 4 && argc <= 6, "usage: mad_peer OWN HOST CASE [PORT [N]]");
	port = argc >= 5 ? (u16)atoi(argv[4]) : 0;
	peer.own_id = 0x00a00000u | ((u32)getpid() & 0xfffff);
	set_address(&peer.own, argv[1]);
	set_address(&peer.to, argv[2]);
	open_socket();
	say("ready");
	if (!strcmp(argv[3], "asks"))
		asks(port);
	else if (!strcmp(argv[3], "answers"))
		answers();
	else if (!strcmp(argv[3], "stays"))
		stays(port);
	else if (!strcmp(argv[3], "waits"))
		waits(port);
	else if (!strcmp(argv[3], "calls"))
		calls(port, argc == 6 ? atoi(argv[5]) : 1);
	else
		die("no case %s", argv[3]);
	say("done");
	return 0;
}
