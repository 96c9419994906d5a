/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce ping: round trips to a peer's device. Each is a SIDR_REQ of the connection manager for a
 * service that is ping's own; what answers it is whatever owns QP 1 there: the kernel's CM of
 * Soft-RoCE or an adapter, or one of ours, which says that nobody listens. An `xroce ping --server`
 * does listen, and its answer names a UD QP that echoes datagrams of any size: by these sizes are
 * chosen (-s) and the path MTU is found.
 */
#ifndef BENCH_PING_H
#define BENCH_PING_H

#include "../../cm/cm.h"
#include "args.h"
#include "datagrams.h"
#include "histogram.h"
#include "stop.h"

/* Locally administered (its first byte is 2), and not of an IP port space. */
#define PING_SERVICE 0x0258524f43450001ull
#define PING_QKEY    0x58524f43u

/* At the start of a datagram; what follows is filled with the low byte of seq + offset. */
struct ping_header {
	__be32 magic;
	u8 kind;
	u8 zero[3];
	__be64 session; /* drawn by the client; an answer has the same */
	__be64 seq;
};
_Static_assert(sizeof(struct ping_header) == 24, "as on the wire");

#define PING_MAGIC 0x58525047u /* XRPG */
enum ping_kind { PING_REQUEST = 1, PING_REPLY = 2 };

struct ping_options {
	const char *peer;  /* client */
	const char *iface; /* or NULL */
	int family;
	u64 count; /* 0: until interrupted */
	u64 interval_ns, timeout_ns, deadline_ns; /* deadline 0: none */
	u32 size;  /* bytes of a datagram; 0: MADs */
	bool quiet, json;
};

/* ping(8)'s. */
enum { PING_ANSWERED = 0, PING_SILENT = 1, PING_ERROR = 2 };

/* Exit codes. */
int ping_client(const struct ping_options *options);
int ping_server(const struct ping_options *options);

/* ---- what client and server share: ping_wire.c, pure ---- */

/* len is at least that of a header. */
void ping_fill(u8 *data, u32 len, enum ping_kind kind, u64 session, u64 seq);
/* Is this a datagram of that kind, with every byte as it was filled? */
bool ping_check(const u8 *data, u32 len, enum ping_kind kind, u64 *session, u64 *seq);

/* ---- what came of it: ping_print.c ---- */

struct ping_result {
	u64 sent, received, duplicates, damaged;
	u64 elapsed_ns;
	bool by_mads;	   /* else by datagrams */
	u32 bytes;
	u32 path_mtu;	   /* found by datagrams, 0: not tried or none came back */
	u32 path_mtu_most; /* by the interface and the kernel's route */
	u32 link_mtu, route_mtu;
	bool has_server;
	struct histogram rtt;
};

void ping_print(const struct ping_options *options, const struct peer *peer,
		const struct ping_result *result);

#endif
