/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends frames through a packet socket or a TAP device, joined to super-packets where possible
 * (../engine/gso.h): up to 64 frames pass the kernel at the cost of one. On veth a super-packet
 * reaches a peer without native XDP whole; for all others the kernel or the NIC cuts it. An
 * interface that does not take super-packets gets single frames for a time. tx_policy.c and
 * tx_shared.c choose the way of a frame. Under the shard's lock.
 */
#ifndef IO_TX_GSO_H
#define IO_TX_GSO_H

#include <xroce/abi.h>

#include "../engine/gso.h"
#include "../engine/types.h"

/*
 * Judges whether an interface takes super-packets. It does not if the kernel refuses one while no
 * frame of ours is queued, or accepts it and the interface's drop counter grows. If that persists,
 * super-packets are disabled for a time, twice as long after each failed retry. Makes no system
 * call; under the shard's lock.
 */

#define TX_HEALTH_REFUSALS   16u		   /* refusals in a row, and */
/* their least duration: a full ring at the other end empties sooner */
#define TX_HEALTH_REFUSED_NS (20 * NSEC_PER_MSEC)
#define TX_HEALTH_LOOKS	     3u			   /* looks in a row with half dropped, and */
#define TX_HEALTH_SENDS	     8u			   /* their least number of super-packets */
#define TX_HEALTH_AWAY_NS    (10 * NSEC_PER_SEC)
#define TX_HEALTH_AWAY_MAX_NS (640 * NSEC_PER_SEC)

struct tx_health {
	u32 refusals;
	u64 refused_ns;	   /* time of the first of these */
	u32 bad_looks;
	u64 bad_sends;	   /* super-packets sent in these */
	u64 sends;	   /* super-packets since the last look */
	u64 dropped;	   /* interface drop counter at the last look */
	bool has_looked;
	u64 away_ns;	   /* last pause; 0: never disabled */
	u64 until_ns;	   /* disabled until then; 0: enabled */
};

/* TX_REFUSES and TX_DROPS are returned once each time that super-packets become disabled. */
enum tx_verdict { TX_HEALTHY, TX_REFUSES, TX_DROPS };

/* Counts n super-packets that the kernel accepted. */
void tx_health_sent(struct tx_health *h, u32 n);
/* Records that a super-packet was refused while no frame of ours was queued. */
enum tx_verdict tx_health_refused(struct tx_health *h, u64 now_ns);
/* Evaluates the interface's drop counter, which counts packets of all senders. */
enum tx_verdict tx_health_look(struct tx_health *h, u64 dropped, u64 now_ns);
/*
 * Enables super-packets at once because the cause of refusals has ended. One more refusal or bad
 * look disables them again.
 */
void tx_health_again(struct tx_health *h);
/* Returns whether super-packets are disabled at now_ns. */
bool tx_health_is_away(struct tx_health *h, u64 now_ns);

struct tx_gso_call;

struct tx_gso {
	int fd;
	bool is_tap;
	/*
	 * A second TAP, for single frames up to TX_TAP_BYTES. Its XDP program redirects permitted
	 * frames to the interface. -1: there is none
	 */
	int single_fd;
	/*
	 * Set by the owner. is_direct: single_fd may redirect frames without an skb, as the
	 * interface takes redirected frames. is_alone: no frames are joined for now
	 */
	bool is_direct, is_alone;
	/* frames leave one by one: super-packets are not wanted, or not supported (before 6.2) */
	bool refused;
	/* frames leave one by one for a time, as the interface does not take super-packets */
	bool is_off;
	/* the last call failed for a super-packet other than by EAGAIN; for a frame by ENOBUFS */
	bool was_refused, was_full;
	/* super-packets were disabled because of refusals, and none has been accepted since */
	bool is_refusing;
	/* single frames dropped since a super-packet or a frame of doubted_len was accepted */
	u32 drops;
	/* length in bytes of the frame, or segment, that was refused last */
	u32 doubted_len;
	/* pause after a refusal: none sends before again_ns; its last length */
	u64 again_ns, pause_ns;
	/* interface name, for one line on standard error when super-packets become disabled */
	const char *tell;	  /* NULL: quiet, or the line was written */
	struct tx_health health;
	struct gso_ids *ids;
	struct tx_gso_call *call; /* frames gathered for the kernel */
};

/*
 * Opens a packet socket. Returns 0 or -errno, with the failed step in *why. Call it in the
 * interface's network namespace; needs CAP_NET_RAW.
 */
int tx_gso_open(struct tx_gso *g, u32 ifindex, const char **why);
/*
 * Uses two non-blocking TAP descriptors: fd with IFF_TAP | IFF_NO_PI | IFF_VNET_HDR, and single_fd
 * with the first two, or -1. Needs no privilege. Returns 0, and tx_gso_close() closes both; or
 * -errno, and both stay the caller's.
 */
int tx_gso_open_taps(struct tx_gso *g, int fd, int single_fd);
void tx_gso_close(struct tx_gso *g);

/*
 * Sends n frames in order. Returns how many are done with: fewer than n if there is no room, then
 * the caller retries later. Counts sent and refused frames in stats.
 */
u32 tx_gso_send(struct tx_gso *g, const struct gso_frame *frame, u32 n,
		struct xroce_engine_stats *stats);

/*
 * Returns whether a rule of the host may be what refuses frames. Then no frame may leave by another
 * way, which would bypass the rule.
 */
bool tx_gso_is_doubted(const struct tx_gso *g);

/* Returns whether all sent frames have reached the interface. One system call. Not for a TAP. */
bool tx_gso_is_idle(const struct tx_gso *g);

/*
 * These functions decide whether super-packets are disabled (is_off). tx_gso_refused(): the last
 * call was refused a super-packet while no frame of ours was queued. tx_gso_look(): the interface
 * has dropped `dropped` packets in all. tx_gso_try_again(), before a batch: ends the pause if its
 * time is over.
 */
void tx_gso_refused(struct tx_gso *g, u64 now_ns, struct xroce_engine_stats *stats);
/* Records a single frame lost: there was no room, while no frame of ours was queued. */
void tx_gso_dropped(struct tx_gso *g, struct xroce_engine_stats *stats);
void tx_gso_look(struct tx_gso *g, u64 dropped, u64 now_ns, struct xroce_engine_stats *stats);
void tx_gso_try_again(struct tx_gso *g, u64 now_ns);

/*
 * Returns whether later frames of the same QP must not overtake this frame, on an interface with
 * several queues. A UC message would be lost. Datagrams have no order, but a flow-control probe
 * must not pass the datagrams before it: it would report them as taken, and the sender would exceed
 * the receiver's room. RC and XRC keep early packets.
 */

/* The engine made the frame. */
bool tx_order_matters(const u8 *frame);

#endif
