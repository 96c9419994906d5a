/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames out through a packet socket, as super-packets where they may share one
 * (../transport/gso.h): up to 64 frames pass the kernel at the cost of one. On veth the whole
 * reaches a peer that has no native XDP; everybody else gets the frames, cut by the kernel or the
 * NIC. Which way a frame goes is tx_policy.c's business. Under the shard's lock.
 */
#ifndef PORT_TX_GSO_H
#define PORT_TX_GSO_H

#include <xroce/abi.h>

#include "../transport/gso.h"

struct tx_gso_call;

struct tx_gso {
	int fd;
	/* the kernel knows no such super-packets (before 6.2): frames leave one by one */
	bool refused;
	/* so they do, as the interface does not take any: see tx_health.h. The caller's */
	bool is_off;
	/* a super-packet in the last call, for want of room or for good */
	bool was_refused;
	u32 supers;		  /* super-packets sent in the last call */
	struct gso_ids *ids;
	struct tx_gso_call *call; /* what one system call takes */
};

/*
 * Returns 0 or -errno, with *why the step that failed. In the network namespace of the interface;
 * needs CAP_NET_RAW.
 */
int tx_gso_open(struct tx_gso *g, u32 ifindex, const char **why);
void tx_gso_close(struct tx_gso *g);

/*
 * Send n frames in order. Returns how many of them are done with: fewer than n if there is no room
 * for more, which should be tried again later. Counts in stats what was sent and what the kernel
 * refused.
 */
u32 tx_gso_send(struct tx_gso *g, const struct gso_frame *frame, u32 n,
		struct xroce_engine_stats *stats);

/* Nothing that was sent is still on its way to the interface. A system call. */
bool tx_gso_is_idle(const struct tx_gso *g);

#endif
