/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether an interface takes redirected frames, and how many at a time. Those that it has no room
 * for are lost without a word, and so are those that were cut from super-packets on their way to
 * such an interface. So its counters are read now and then: when they tell of losses while we send,
 * frames are let out in portions, which halve while there are losses and grow again when there are
 * none. Losses that do not end so are not of our making. Under the shard's lock.
 */
#ifndef IO_TX_PACER_H
#define IO_TX_PACER_H

#include <xroce/abi.h>

#include "../os/link_watch.h"

/*
 * What the kernel says of an interface that frames are redirected to: whether its driver takes them
 * now, how long they may be, how many it has dropped. The kernel answers under its RTNL lock, which
 * others may hold for seconds, so the watch thread asks it and nobody waits for the answer. Over
 * netlink sockets of its own, in the network namespace in which it was opened; it only reads.
 */

struct mnl_socket;

struct tx_reading {
	bool is_known;		/* false: the interface is gone, or the kernel did not answer */
	bool takes_redirected;	/* NETDEV_XDP_ACT_NDO_XMIT */
	u32 frame_max;		/* bytes, by the link MTU */
	u64 dropped;		/* transmit drops and errors of the interface, all senders' */
};

struct tx_counters {
	struct mnl_socket *route, *generic;
	u32 ifindex;
	int family;	/* "netdev" of generic netlink */
	struct link_watch_job job;
	/* the watch thread's from tx_counters_ask() on until it is answered */
	struct tx_reading reading;
	_Atomic bool answered;
};

/* Returns 0, -ENOENT (the kernel does not tell; before 6.3) or -errno. */
int tx_counters_open(struct tx_counters *w, u32 ifindex);
/* One that could not be opened is ignored. */
void tx_counters_close(struct tx_counters *w);

/* Ask for a new reading. Not again before tx_counters_answer() has given this one. Never waits. */
void tx_counters_ask(struct tx_counters *w);
/* True, once for each tx_counters_ask(): *reading is what the kernel said. */
bool tx_counters_answer(struct tx_counters *w, struct tx_reading *reading);

struct tx_pacer {
	struct tx_counters watch;
	struct xroce_engine_stats *stats;
	bool takes_redirected;	/* by the last answer */
	u32 frame_max;		/* bytes, by the link MTU */
	u64 dropped;		/* the interface's counter, when last looked at, */
	u32 looks;		/* which was so many times */
	/* tx_pacer.c's */
	bool at_risk;		/* frames that may have been lost have been sent since then */
	bool is_asked;		/* the kernel, and has not answered yet */
	u64 look_ns;		/* when to ask again */
	u64 asked_ns, taken_ns;	/* of the last question, of the last answer */
	u32 size, left;		/* frames in a pacer; of these still to go */
	u64 next_ns;		/* when the next one begins */
};

/*
 * Returns 0 or -errno, as tx_counters_open(). Until the first answer the interface takes nothing.
 */
int tx_pacer_open(struct tx_pacer *p, u32 ifindex, struct xroce_engine_stats *stats);
void tx_pacer_close(struct tx_pacer *p);

/*
 * Take what the kernel has answered, and ask again if it is time. An answer that is too old, as
 * nothing was sent for long or the kernel is slow, counts as "takes nothing" until the next comes.
 */
void tx_pacer_look(struct tx_pacer *p, u64 now_ns);
/* Portions are as small as they get, and the losses go on. */
bool tx_pacer_is_smallest(const struct tx_pacer *p);
/* How many frames may be sent now that the interface may lose; UINT32_MAX: any number. */
u32 tx_pacer_room(struct tx_pacer *p, u64 now_ns);
/* So many of them were. */
void tx_pacer_sent(struct tx_pacer *p, u32 frames);

#endif
