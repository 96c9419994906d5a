/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Raw packet QPs, which send and receive whole Ethernet frames. Flows (ibv_create_flow(3)) select
 * the frames that a QP receives; one frame may match several.
 *
 * A raw packet QP without queues passes each frame to a work queue (WQ) of its indirection table.
 *
 * Engine number 0 owns all raw packet QPs, as a frame arrives once for all of them.
 */
#ifndef ENGINE_RAW_H
#define ENGINE_RAW_H

#include <xroce/abi.h>

#include "qp.h"

#define RAW_FRAME_MIN 14u /* an Ethernet header */
/* beyond the MTU, in the longest frame of a link: Ethernet and a VLAN tag */
#define RAW_HEADER_BYTES 18u
/* with a larger link MTU the longest frames can neither be sent nor received */
#define RAW_MTU_MAX	 (PACKET_FRAME_MAX - RAW_HEADER_BYTES)

/*
 * Frames from QPs of this device: XDP counts all others (struct xroce_flow_count). Several flows
 * may share a counter.
 */
struct raw_counter {
	u32 key; /* in xroce_flow_cnt */
	struct xroce_flow_count own;
};

/* The frames that a flow matches, and its action. value has only bits that are set in mask. */
struct raw_rule {
	struct xroce_flow_key value, mask;
	u32 order;		     /* below 1 << 30; the smallest is compared first */
	u32 tag;		     /* of completions; 0: none */
	struct xroce_flow_tunnel tunnel_value, tunnel_mask; /* of kind XROCE_FLOW_TUNNEL */
	bool drops;		     /* drops matching frames, also for other flows of its order */
	bool copies;		     /* the QP gets a copy, and the frame continues */
	bool sniffs;		     /* with copies: also of sent frames */
	struct raw_counter *counter; /* or NULL */
};

/*
 * Flows in order of comparison: by order, within one order flows with copies first, then flows that
 * drop, then by age.
 */
struct raw_flow {
	struct raw_flow *next;
	struct qp *qp;
	struct raw_rule rule;
	u32 order; /* flows of one order agree in `copies` and `drops` */
};

struct engine;

/*
 * [all] Attaches a flow: matching frames go to the QP or are dropped, unless they match a flow of a
 * smaller order. Returns 0, -EINVAL if qp is not a raw packet QP or is a work queue, or -ENOMEM: no
 * memory, or XROCE_MAX_FLOW flows exist.
 */
int raw_attach(struct engine *e, struct qp *qp, const struct raw_rule *rule, struct raw_flow **out);
/* [all] Detaches and frees the flow. */
void raw_detach(struct engine *e, struct raw_flow *flow);

/*
 * Returns the first flow; `next` links the others. This and the next three: under the lock of any
 * engine.
 */
const struct raw_flow *raw_flows(const struct engine *e);
u32 raw_num_flows(const struct engine *e);
/* Returns whether any flow takes the frame. */
bool raw_takes_frame(const struct engine *e, const struct rx_frame *frame);
/* Returns whether there are flows with copies. */
bool raw_has_copies(const struct engine *e);

/* Kinds of frames of which flows have copies; the first two with XDP's values. */
enum raw_copy {
	RAW_COPY_NONE,
	RAW_COPY_OTHER = XROCE_COPY_OTHER,
	RAW_COPY_OWN = XROCE_COPY_OWN,
	RAW_COPY_LOOPED, /* as RAW_COPY_OWN, from a QP of this device */
	RAW_COPY_SENT,	 /* leaves on the wire */
};

/*
 * [engine number 0] Delivers copies to the QPs of flows that have them, and does nothing else with
 * the frame. RAW_COPY_OTHER: to flows before the first that takes the frame; sent frames: to
 * sniffers. Refused copies are counted as drops, the frame itself is not.
 */
void raw_copy(struct engine *e, enum raw_copy kind, u64 rx_time_ns, const struct rx_frame *frame,
	      u64 now_ns);

/* Returns whether there are raw packet QPs. */
bool raw_any(const struct engine *e);

/* Returns whether XDP's hint marks a frame for a flow that is not a RoCEv2 packet. */
static inline bool raw_is_hinted(const struct xroce_rx_cqe *hint)
{
	return hint && !hint->l3_offset;
}

/* Returns the kind of copy that shards hand over; RAW_COPY_NONE: the frame itself. */
static inline enum raw_copy raw_hinted_copy(const struct xroce_rx_cqe *hint)
{
	return raw_is_hinted(hint) ? (enum raw_copy)hint->opcode : RAW_COPY_NONE;
}

/* ---- receive side scaling ---- */

/*
 * Receive side scaling: the Toeplitz hash of a frame's addresses and ports selects the WQ that gets
 * the frame.
 *
 * A WQ is a raw packet QP with only a receive queue and with a WQ's states (wq_modify()). No flow
 * is attached to it: its frames come through the QPs whose tables list it.
 */

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

/* ---- private to user/engine ---- */

/*
 * Delivers a frame that is not a RoCEv2 packet for a QP to the QPs whose flows take it. Returns as
 * group_input(); XROCE_DROP_flow: no flow takes it.
 */
enum xroce_drop raw_input(struct engine *e, const struct xroce_rx_cqe *hint,
			  const struct rx_frame *frame, u64 now_ns);
u32 raw_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);

#endif
