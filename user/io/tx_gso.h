/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames out through a packet socket or a TAP device, as super-packets where they may share one
 * (../engine/gso.h): up to 64 frames pass the kernel at the cost of one. On veth the whole
 * reaches a peer that has no native XDP; everybody else gets the frames, cut by the kernel or the
 * NIC. An interface that does not take super-packets is sent single frames for a time
 * (tx_gso.h). Which way a frame goes is the business of tx_policy.c and tx_shared.c. Under the
 * shard's lock.
 */
#ifndef IO_TX_GSO_H
#define IO_TX_GSO_H

#include <xroce/abi.h>

#include "../engine/gso.h"
#include "../engine/types.h"

/*
 * Whether an interface does take super-packets, by what becomes of them: the kernel refuses one
 * while nothing of ours waits, or accepts them and the interface's counter says that it dropped
 * them. When that goes on they are given up for a time, twice as long after each try. It makes no
 * system call; under the shard's lock.
 */

#define TX_HEALTH_REFUSALS   16u		   /* in a row, */
/* and for so long: a full ring of the other end empties sooner */
#define TX_HEALTH_REFUSED_NS (20 * NSEC_PER_MSEC)
#define TX_HEALTH_LOOKS	     3u			   /* in a row that found half of them dropped, */
#define TX_HEALTH_SENDS	     8u			   /* and of so many super-packets at least */
#define TX_HEALTH_AWAY_NS    (10 * NSEC_PER_SEC)
#define TX_HEALTH_AWAY_MAX_NS (640 * NSEC_PER_SEC)

struct tx_health {
	u32 refusals;
	u64 refused_ns;	   /* of the first of these */
	u32 bad_looks;
	u64 bad_sends;	   /* super-packets in these */
	u64 sends;	   /* since the last look */
	u64 dropped;	   /* the interface's counter then */
	bool has_looked;
	u64 away_ns;	   /* how long they are given up the next time */
	u64 until_ns;	   /* given up until then; 0: not */
};

/* Returned once for each time that they are given up. */
enum tx_verdict { TX_HEALTHY, TX_REFUSES, TX_DROPS };

/* n super-packets were accepted. */
void tx_health_sent(struct tx_health *h, u32 n);
/* One was refused, and nothing of ours was on its way. */
enum tx_verdict tx_health_refused(struct tx_health *h, u64 now_ns);
/* The interface has dropped so many packets in all, of all senders. */
enum tx_verdict tx_health_look(struct tx_health *h, u64 dropped, u64 now_ns);
/*
 * The cause of refusals has ended: super-packets are tried again at once, and given up at one more
 * refusal or look.
 */
void tx_health_again(struct tx_health *h);
/* They are given up, for now. */
bool tx_health_is_away(struct tx_health *h, u64 now_ns);

struct tx_gso_call;

struct tx_gso {
	int fd;
	bool is_tap;
	/*
	 * A second TAP, for single frames up to TX_TAP_BYTES: its XDP program sends on to the
	 * interface what may leave. -1: there is none
	 */
	int single_fd;
	/*
	 * The owner's: such frames go without an skb, for which the interface must take redirected
	 * frames; and for now no frames are joined
	 */
	bool is_direct, is_alone;
	/*
	 * the kernel knows no such super-packets (before 6.2), or none are wanted: frames leave one
	 * by one
	 */
	bool refused;
	/* so they do, as the interface does not take any: they are given up for a time */
	bool is_off;
	/* in the last call: a super-packet, for want of room or for good; a frame, for room */
	bool was_refused, was_full;
	/* super-packets were given up, as they are refused, and none has been taken since */
	bool is_refusing;
	/* frames alone that were dropped, and none as long as doubted_len taken since */
	u32 drops;
	/* length in bytes of the frame, or segment, that was refused last */
	u32 doubted_len;
	/* after a refusal no packet is sent before again_ns; the last pause: pause_ns */
	u64 again_ns, pause_ns;
	/* the interface's name, for one line on standard error when super-packets are given up */
	const char *tell;	  /* NULL: none, or it has been written */
	struct tx_health health;
	struct gso_ids *ids;
	struct tx_gso_call *call; /* what is gathered for the kernel */
};

/*
 * Through a packet socket. Returns 0 or -errno, with *why the step that failed. In the network
 * namespace of the interface; needs CAP_NET_RAW.
 */
int tx_gso_open(struct tx_gso *g, u32 ifindex, const char **why);
/*
 * Through TAP devices, of which these are descriptors that do not block: fd with IFF_TAP |
 * IFF_NO_PI | IFF_VNET_HDR, single_fd with the first two, or -1. Needs no privilege. Returns 0:
 * both are closed with the rest; or -errno: they are not.
 */
int tx_gso_open_taps(struct tx_gso *g, int fd, int single_fd);
void tx_gso_close(struct tx_gso *g);

/*
 * Send n frames in order. Returns how many of them are done with: fewer than n if there is no room
 * for more, which should be tried again later. Counts in stats what was sent and what the kernel
 * refused.
 */
u32 tx_gso_send(struct tx_gso *g, const struct gso_frame *frame, u32 n,
		struct xroce_engine_stats *stats);

/*
 * What is refused may be so by a rule of the host: then no frame may leave by another way, which
 * would go round it.
 */
bool tx_gso_is_doubted(const struct tx_gso *g);

/* Nothing that was sent is still on its way to the interface. A system call. Not of a TAP. */
bool tx_gso_is_idle(const struct tx_gso *g);

/*
 * Whether super-packets are given up, is_off. The last call was refused one, and nothing of ours
 * was on its way; the interface has dropped so many packets in all; and, before a batch, whether
 * the time is over for which they were given up.
 */
void tx_gso_refused(struct tx_gso *g, u64 now_ns, struct xroce_engine_stats *stats);
/* In the last call a frame alone found no room, and nothing of ours was on its way: it is lost. */
void tx_gso_dropped(struct tx_gso *g, struct xroce_engine_stats *stats);
void tx_gso_look(struct tx_gso *g, u64 dropped, u64 now_ns, struct xroce_engine_stats *stats);
void tx_gso_try_again(struct tx_gso *g, u64 now_ns);

/*
 * Which frames must not be overtaken by later ones of their QP on an interface with several queues.
 * A message of UC is lost by it. Datagrams have no order among themselves, but a flow-control probe
 * must not pass those that it follows: it would say that they were taken, and more would be sent
 * than the receiver has room for. RC and XRC keep what comes early.
 */

/* Of a frame as the engine makes it. */
bool tx_order_matters(const u8 *frame);

#endif
