/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receiving programs of bpf/ as functions of this process: what XDP does where an interface has
 * no XDP program. The program before the clients' (bpf/xroce_broker.bpf.c) finds the client of a
 * packet, whose program (bpf/xroce.bpf.c) checks it, delivers it to the client's ring, and wakes
 * its threads. xroce/abi.h describes the maps. One thread uses a struct host.
 */
#ifndef HOST_PROGRAM_H
#define HOST_PROGRAM_H

#include "client.h"
#include "map.h"

/* Maps of the broker, with their names in xroce/abi.h without the prefix. */
enum host_map_name {
	HOST_OWNER,
	HOST_CM_CLIENT,
	HOST_SERVICE,
	HOST_ASKED,
	HOST_CONN,
	HOST_MEMBERS,
	HOST_GID,
	HOST_MAPS,
};

struct host {
	struct host_map map[HOST_MAPS];
	struct xroce_engine engine; /* entry 0 of the GID table */
	struct xroce_drops drops;
	struct xroce_rx_stats stats;
	/* gets the frames of MADs without an owner (xroce_unowned); NULL: they are dropped */
	void (*unowned)(void *arg, const u8 *frame, u32 len);
	void *unowned_arg;
	struct host_client *client[XROCE_MAX_CLIENT];
	/* clients whose rings have new records */
	u32 num_fed;
	u16 fed[XROCE_MAX_CLIENT];
	bool is_fed[XROCE_MAX_CLIENT];
};

/* Returns 0 or -errno. */
int host_make(struct host **out);
void host_free(struct host *h);

/* Handles a frame: an Ethernet header, IP without options, UDP, a RoCEv2 packet or super-packet. */
void host_input(struct host *h, u8 *frame, u32 len);
/* Passes a client's report to its tracers, as xroce_trace_tx (xroce/trace.h). */
int host_report(struct host *h, struct host_client *c, struct xroce_trace_report *report);
/* Wakes the readers of all rings that have new records. Call it after a batch. */
void host_wake(struct host *h);

#endif
