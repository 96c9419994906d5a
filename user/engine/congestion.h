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
/* Something is sent twice: its round trip cannot be timed. */
static inline void congestion_untime(struct qp *qp)
{
	qp->req.rtt.sample_start_ns = 0;
}
/* The adaptive time-out is about to send the oldest packet again. */
void congestion_probe(struct qp *qp);
/*
 * An answer to psn has come, which had been answered before. If that shows that the last probe was
 * not needed, the probe is counted, and the time-out becomes longer.
 */
rare void congestion_answered_twice(struct engine *e, struct qp *qp, u32 psn, u64 now_ns);
/* The adaptive time-out starts again, or stops. */
void congestion_rearm(struct engine *e, struct qp *qp, u64 now_ns);
/*
 * DCQCN, and the application's limit. What is for QPs with a limit alone is out of the way of the
 * others': in their path it would cost them what is inlined there.
 */
void rate_marked(struct engine *e, struct qp *qp, u64 now_ns);
/* A notification has come; it is dropped where no packet of ours can have caused it. */
enum xroce_drop rate_cut(struct engine *e, struct qp *qp, u64 now_ns);
/* True if a data packet may leave now; else the QP's timer is set for when it may. */
rare bool rate_allows_now(struct engine *e, struct qp *qp, u64 now_ns);
static inline bool rate_allows(struct engine *e, struct qp *qp, u64 now_ns)
{
	return likely(!qp->rate_limited) || rate_allows_now(e, qp, now_ns);
}
void rate_sent(struct engine *e, struct qp *qp, u32 bytes, u64 now_ns);
/* With qp->rate_limited: after a packet of the longest, no other one may leave for now. */
rare bool rate_pauses(const struct qp *qp, u64 now_ns);
/* The same: responses that wait for their rate have lost the timer that they waited by. */
rare void rate_look_again(struct engine *e, struct qp *qp);
/* The length of a packet by which bursts are reckoned: the longest one's, if nothing is said. */
static inline u32 rate_typical_bytes(const struct rate_limit *l, u32 path_mtu)
{
	return l->typical_bytes ? l->typical_bytes
				: PACKET_FRAME_MAX - ROCE_PMTU_MAX + path_mtu;
}
/* attr.rate_limit was set. */
void rate_set_limit(struct engine *e, struct qp *qp, u64 now_ns);

#endif
