/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tracks whether an interface takes redirected frames, and limits how many leave at a time. The
 * interface silently drops frames that it has no room for: redirected frames, and frames that the
 * kernel cut from super-packets for it. So its counters are read now and then. If they show losses
 * while we send, frames leave in portions, which halve while there are losses and grow when there
 * are none. Losses at the smallest portion come from other traffic. Under the shard's lock.
 */
#ifndef IO_TX_PACER_H
#define IO_TX_PACER_H

#include <xroce/abi.h>

#include "../os/link_watch.h"

/*
 * What the kernel reports about an interface that frames are redirected to: whether its driver
 * takes them now, their largest length, and its drops. The kernel answers under the RTNL lock,
 * which others may hold for seconds. So the watch thread asks, and no caller waits for the answer.
 * It only reads, over its own netlink sockets, in the network namespace in which they were opened.
 */

struct mnl_socket;

struct tx_reading {
	bool is_known;		/* false: the interface is gone, or the kernel did not answer */
	bool takes_redirected;	/* NETDEV_XDP_ACT_NDO_XMIT */
	u32 frame_max;		/* bytes, by the link MTU */
	u64 dropped;		/* transmit drops and errors of the interface, of all senders */
};

struct tx_counters {
	struct mnl_socket *route, *generic;
	u32 ifindex;
	int family;	/* genetlink family ID of "netdev" */
	struct link_watch_job job;
	/* owned by the watch thread from tx_counters_ask() until `answered` */
	struct tx_reading reading;
	_Atomic bool answered;
};

/* Returns 0, -ENOENT if the kernel does not report it (before 6.3), or -errno. */
int tx_counters_open(struct tx_counters *w, u32 ifindex);
/* Does nothing if tx_counters_open() failed. */
void tx_counters_close(struct tx_counters *w);

/* Asks for a new reading, without waiting. Not again before tx_counters_answer() is true. */
void tx_counters_ask(struct tx_counters *w);
/* Returns true once for each tx_counters_ask(), with the kernel's answer in *reading. */
bool tx_counters_answer(struct tx_counters *w, struct tx_reading *reading);

struct tx_pacer {
	struct tx_counters watch;
	struct xroce_engine_stats *stats;
	bool takes_redirected;	/* in the last answer */
	u32 frame_max;		/* bytes, by the link MTU */
	u64 dropped;		/* drops of the interface at the last look */
	u32 looks;		/* number of looks so far */
	/* the fields below are private to tx_pacer.c */
	bool at_risk;		/* frames that may be lost were sent since the last look */
	bool is_asked;		/* a question to the kernel is unanswered */
	u64 look_ns;		/* when to ask again */
	u64 asked_ns, taken_ns;	/* times of the last question and of the last answer */
	u32 size, left;		/* frames in a portion; rest of the current portion */
	u64 next_ns;		/* start of the next portion */
};

/*
 * Returns 0 or -errno, as tx_counters_open(). Until the first answer the interface takes nothing.
 */
int tx_pacer_open(struct tx_pacer *p, u32 ifindex, struct xroce_engine_stats *stats);
void tx_pacer_close(struct tx_pacer *p);

/*
 * Takes the kernel's answer if there is one, and asks again when it is time. After STALE_NS without
 * a fresh answer, because nothing was sent or the kernel is slow, the interface takes nothing.
 */
void tx_pacer_look(struct tx_pacer *p, u64 now_ns);
/* Returns whether portions have the smallest size because the losses go on. */
bool tx_pacer_is_smallest(const struct tx_pacer *p);
/* Returns how many frames may be sent now that the interface may drop; UINT32_MAX: no limit. */
u32 tx_pacer_room(struct tx_pacer *p, u64 now_ns);
/* Counts frames that were sent and that the interface may drop. */
void tx_pacer_sent(struct tx_pacer *p, u32 frames);

#endif
