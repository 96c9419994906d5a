/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The window, the adaptive time-out, DCQCN and rate limits. Private to user/engine. */
#ifndef ENGINE_CONGESTION_H
#define ENGINE_CONGESTION_H

#include "internal.h"

void congestion_start(struct engine *e, struct qp *qp);
u32 congestion_window(const struct engine *e, const struct requester *req);
void congestion_sent(struct engine *e, struct qp *qp, u32 psn, bool ackreq, u64 now_ns);
void congestion_progress(struct engine *e, struct qp *qp, u32 packets, u64 now_ns);
void congestion_loss(struct engine *e, struct qp *qp);
/* Cancels the sample: a packet is sent twice, so its round trip cannot be timed. */
static inline void congestion_untime(struct qp *qp)
{
	qp->req.rtt.sample_start_ns = 0;
}
/* Prepares for the adaptive time-out resending the oldest packet. */
void congestion_probe(struct qp *qp);
/*
 * Handles a second answer to psn. If it shows that the last probe was spurious, the probe is
 * counted, and the time-out becomes longer.
 */
rare void congestion_answered_twice(struct engine *e, struct qp *qp, u32 psn, u64 now_ns);
/* Restarts or stops the adaptive time-out. */
void congestion_rearm(struct engine *e, struct qp *qp, u64 now_ns);
/*
 * DCQCN, and the application's limit. Code for QPs with a limit is out of line: inlined, it would
 * slow down the other QPs.
 */
void rate_marked(struct engine *e, struct qp *qp, u64 now_ns);
/* Handles a CNP; drops it if no packet of this QP can have caused it. */
enum xroce_drop rate_cut(struct engine *e, struct qp *qp, u64 now_ns);
/* Returns true if a data packet may be sent now; else sets the QP's timer for when it may. */
rare bool rate_allows_now(struct engine *e, struct qp *qp, u64 now_ns);
static inline bool rate_allows(struct engine *e, struct qp *qp, u64 now_ns)
{
	return likely(!qp->rate_limited) || rate_allows_now(e, qp, now_ns);
}
void rate_sent(struct engine *e, struct qp *qp, u32 bytes, u64 now_ns);
/* With qp->rate_limited: returns whether no packet may follow one of maximum length for now. */
rare bool rate_pauses(const struct qp *qp, u64 now_ns);
/* With qp->rate_limited: serves responses that wait for their rate and have lost their timer. */
rare void rate_look_again(struct engine *e, struct qp *qp);
/* Returns the packet length that bursts are computed with: by default the longest packet's. */
static inline u32 rate_typical_bytes(const struct rate_limit *l, u32 path_mtu)
{
	return l->typical_bytes ? l->typical_bytes
				: PACKET_FRAME_MAX - ROCE_PMTU_MAX + path_mtu;
}
/* Applies a new attr.rate_limit. */
void rate_set_limit(struct engine *e, struct qp *qp, u64 now_ns);

#endif
