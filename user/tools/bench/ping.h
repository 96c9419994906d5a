/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce ping: round trips to a peer's device. Each is a SIDR_REQ of the connection manager for
 * ping's service. The owner of QP 1 there answers: the kernel's CM of Soft-RoCE or an adapter, or
 * an xroce CM, which rejects an unknown service. `xroce ping --server` accepts, and its answer has
 * a UD QP that echoes datagrams of any size. They allow chosen sizes (-s) and finding the path MTU.
 */
#ifndef BENCH_PING_H
#define BENCH_PING_H

#include "../../cm/cm.h"
#include "args.h"
#include "histogram.h"
#include "verbs.h"

/* Locally administered (the first byte is 2), and outside the IP port spaces. */
#define PING_SERVICE 0x0258524f43450001ull
#define PING_QKEY    0x58524f43u

/* Header of a datagram; each later byte is the low byte of seq + offset. */
struct ping_header {
	__be32 magic;
	u8 kind;
	u8 zero[3];
	__be64 session; /* random, chosen by the client; the answer repeats it */
	__be64 seq;
};
_Static_assert(sizeof(struct ping_header) == 24, "as on the wire");

#define PING_MAGIC 0x58525047u /* XRPG */
enum ping_kind { PING_REQUEST = 1, PING_REPLY = 2 };

struct ping_options {
	const char *peer;  /* client */
	const char *iface; /* NULL: any */
	int family;
	u64 count; /* 0: until interrupted */
	u64 interval_ns, timeout_ns, deadline_ns; /* deadline_ns 0: none */
	u32 size;  /* bytes of a datagram; 0: MADs */
	bool quiet, json;
};

/* Exit codes as of ping(8). */
enum { PING_ANSWERED = 0, PING_SILENT = 1, PING_ERROR = 2 };

/* Return exit codes. */
int ping_client(const struct ping_options *options);
int ping_server(const struct ping_options *options);

/* ---- shared by client and server: wire.c, pure ---- */

/* len is at least the header's size. */
void ping_fill(u8 *data, u32 len, enum ping_kind kind, u64 session, u64 seq);
/* Returns whether this is an intact datagram of that kind. */
bool ping_check(const u8 *data, u32 len, enum ping_kind kind, u64 *session, u64 *seq);

/* ---- results: ping.c ---- */

struct ping_result {
	u64 sent, received, duplicates, damaged;
	u64 elapsed_ns;
	bool by_mads;	   /* otherwise by datagrams */
	u32 bytes;
	u32 path_mtu;	   /* found by datagrams; 0: not tried or none returned */
	u32 path_mtu_most; /* limit by the interface and the kernel's route */
	u32 link_mtu, route_mtu;
	bool has_server;
	bool mtu_is_measured; /* all sizes were tried; otherwise interrupted, or no server */
	struct histogram rtt;
};

void ping_print(const struct ping_options *options, const struct peer *peer,
		const struct ping_result *result);

#endif
