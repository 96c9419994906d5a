/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receive side scaling: a raw packet QP without queues passes each frame to a work queue (WQ) of
 * its indirection table. The Toeplitz hash of the frame's addresses and ports selects the WQ.
 *
 * A WQ is a raw packet QP with only a receive queue and with a WQ's states (wq_modify()). No flow
 * is attached to it: its frames come through the QPs whose tables list it.
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
 * Creates a table of num WQs, a power of 2; a WQ may be listed several times. The WQs must outlive
 * it. fields: RSS_*; 0: all frames go to the first WQ. Returns 0, -EINVAL or -ENOMEM.
 */
int rss_create(const u8 key[RSS_KEY_BYTES], u32 fields, struct qp *const *wq, u32 num,
	       struct rss **out);
void rss_free(struct rss *rss);

/*
 * Returns the hash of the selected fields that the frame has: source and destination address,
 * source and destination port. Ports of fragments are left out, also the first one's: all fragments
 * of a packet go to one WQ. 0 if the frame has no such field.
 */
u32 rss_hash(const struct rss *rss, const struct xroce_flow_key *key);
/* Returns the frame's WQ. */
struct qp *rss_pick(const struct rss *rss, const struct xroce_flow_key *key);

/* Returns the CQ of all WQs, or NULL if they have several. */
const struct cq *rss_cq(const struct rss *rss);
/* Return whether any of their CQs asks for times, or for flow tags. */
bool rss_with_time(const struct rss *rss);
bool rss_with_flow_tag(const struct rss *rss);

/*
 * [all] ibv_modify_wq(3). Any state to RESET or itself, RESET to RDY, RDY to ERR. Returns 0 or
 * -EINVAL. For RESET, the CQ's consumer and producer sides must be held.
 */
int wq_modify(struct engine *e, struct qp *wq, enum wq_state to, u64 now_ns);
/* [any thread] */
enum wq_state wq_state(const struct qp *wq);

#endif
