/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Raw packet QPs: what they send and receive is whole Ethernet frames. Which frames a QP receives,
 * its flows say (ibv_create_flow(3)); a frame may be for several.
 *
 * All raw packet QPs are engine number 0's, as a frame comes once for all of them.
 */
#ifndef ENGINE_RAW_H
#define ENGINE_RAW_H

#include <xroce/abi.h>

#include "qp.h"

#define RAW_FRAME_MIN 14u /* an Ethernet header */
/* the longest frame of a link with that MTU: with a VLAN tag */
#define RAW_HEADER_BYTES 18u
/* of links with a larger one the longest frames can neither be sent nor received */
#define RAW_MTU_MAX	 (PACKET_FRAME_MAX - RAW_HEADER_BYTES)

/*
 * Frames that came from our own QPs: XDP counts all others (struct xroce_flow_count). May count for
 * several flows.
 */
struct raw_counter {
	u32 key; /* in xroce_flow_cnt */
	struct xroce_flow_count own;
};

/* What a flow does with which frames. value has no bit that mask has not. */
struct raw_rule {
	struct xroce_flow_key value, mask;
	u32 order;		     /* below 1 << 30; the smaller comes first */
	u32 tag;		     /* of completions; 0: none */
	struct xroce_flow_tunnel tunnel_value, tunnel_mask; /* of kind XROCE_FLOW_TUNNEL */
	bool drops;		     /* for nobody: not even for other flows of its order */
	bool copies;		     /* the QP has a copy, and the frame goes on */
	bool sniffs;		     /* with copies: what is sent as well */
	struct raw_counter *counter; /* or NULL */
};

/*
 * Flows in the order that frames are compared with them: by order, of that first those that have
 * copies, then those that drop, then by age.
 */
struct raw_flow {
	struct raw_flow *next;
	struct qp *qp;
	struct raw_rule rule;
	u32 order; /* no two of one order differ in whether they have copies, or drop */
};

struct engine;

/*
 * [all] Frames that match are the QP's, or dropped, unless they match a flow of a smaller order.
 * Returns 0, -EINVAL: it is no raw packet QP, or a work queue; or -ENOMEM: no memory, or
 * XROCE_MAX_FLOW are there.
 */
int raw_attach(struct engine *e, struct qp *qp, const struct raw_rule *rule, struct raw_flow **out);
/* [all] No more. The flow is freed. */
void raw_detach(struct engine *e, struct raw_flow *flow);

/* The first flow, by next the others. Under the lock of any engine, as what follows. */
const struct raw_flow *raw_flows(const struct engine *e);
u32 raw_num_flows(const struct engine *e);
/* Does any flow take the frame? */
bool raw_takes_frame(const struct engine *e, const struct rx_frame *frame);
/* Are there flows that have copies? */
bool raw_has_copies(const struct engine *e);

/* What a frame is that some flows have a copy of; the first two as XDP says it. */
enum raw_copy {
	RAW_COPY_NONE,
	RAW_COPY_OTHER = XROCE_COPY_OTHER,
	RAW_COPY_OWN = XROCE_COPY_OWN,
	RAW_COPY_LOOPED, /* the same, from a QP of this device */
	RAW_COPY_SENT,	 /* it leaves by the wire */
};

/*
 * [engine number 0] The QPs of flows that have copies get theirs, and nothing else is done with the
 * frame: of what is RAW_COPY_OTHER those before the first flow that takes it, of what is sent
 * sniffers. Refusals are counted as drops, the frame is not.
 */
void raw_copy(struct engine *e, enum raw_copy kind, u64 rx_time_ns, const struct rx_frame *frame,
	      u64 now_ns);

/* Are there raw packet QPs? */
bool raw_any(const struct engine *e);

/* By what XDP wrote: a frame that a flow takes, and no RoCEv2 packet. */
static inline bool raw_is_hinted(const struct xroce_rx_cqe *hint)
{
	return hint && !hint->l3_offset;
}

/* What shards hand over as a copy; RAW_COPY_NONE: the frame itself. */
static inline enum raw_copy raw_hinted_copy(const struct xroce_rx_cqe *hint)
{
	return raw_is_hinted(hint) ? (enum raw_copy)hint->opcode : RAW_COPY_NONE;
}

#endif
