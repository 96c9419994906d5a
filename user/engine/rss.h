/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receive side scaling: a raw packet QP without queues of its own hands each frame to one of the
 * work queues (WQs) of its indirection table, by the Toeplitz hash of the frame's addresses and
 * ports.
 *
 * A WQ is a raw packet QP with a receive queue alone and with a WQ's states (wq_modify()). No flow
 * is attached to it: its frames come by the QPs whose tables it is in.
 */
#ifndef ENGINE_RSS_H
#define ENGINE_RSS_H

#include <xroce/abi.h>

#include "types.h"

#define RSS_KEY_BYTES 40
#define RSS_TABLE_MAX 2048u

/* Fields that are hashed, with the values of enum ibv_rx_hash_fields. */
enum {
	RSS_SRC_IPV4 = 1 << 0,
	RSS_DST_IPV4 = 1 << 1,
	RSS_SRC_IPV6 = 1 << 2,
	RSS_DST_IPV6 = 1 << 3,
	RSS_SRC_TCP = 1 << 4,
	RSS_DST_TCP = 1 << 5,
	RSS_SRC_UDP = 1 << 6,
	RSS_DST_UDP = 1 << 7,
	RSS_FIELDS = (1 << 8) - 1,
};

/* States of a WQ, with the values of enum ibv_wq_state. */
enum wq_state { WQS_RESET, WQS_RDY, WQS_ERR };

struct cq;
struct engine;
struct qp;
struct rss;

/*
 * num WQs, a power of 2, one several times if the caller wants that; they must daemonize it.
 * fields: RSS_*; 0: all frames go to the first WQ. Returns 0, -EINVAL or -ENOMEM.
 */
int rss_create(const u8 key[RSS_KEY_BYTES], u32 fields, struct qp *const *wq, u32 num,
	       struct rss **out);
void rss_free(struct rss *rss);

/*
 * Of those of the fields that the frame has: source and destination address, source and destination
 * port, what is not selected left out. Ports of fragments do not count, the first one's neither:
 * all of a packet go to one WQ. 0: it has none of them.
 */
u32 rss_hash(const struct rss *rss, const struct xroce_flow_key *key);
/* The WQ of the frame. */
struct qp *rss_pick(const struct rss *rss, const struct xroce_flow_key *key);

/* Where all WQs complete; NULL: they have several CQs. */
const struct cq *rss_cq(const struct rss *rss);
/* Has any of their CQs asked for times, for flow tags? */
bool rss_with_time(const struct rss *rss);
bool rss_with_flow_tag(const struct rss *rss);

/*
 * [all] ibv_modify_wq(3). RESET and RDY each stay or become the other, RDY becomes ERR, and what is
 * in ERR goes back to RESET alone. Returns 0 or -EINVAL. To RESET, the CQ's consumer side must be
 * held, and the producer's.
 */
int wq_modify(struct engine *e, struct qp *wq, enum wq_state to, u64 now_ns);
/* [any thread] */
enum wq_state wq_state(const struct qp *wq);

#endif
