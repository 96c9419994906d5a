/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Raw packet QPs: what they send and receive is whole Ethernet frames. Which frames a QP receives,
 * its flows say (ibv_create_flow(3)); a frame may be for several.
 *
 * All raw packet QPs are engine number 0's, as a frame comes once for all of them.
 */
#ifndef TRANSPORT_RAW_H
#define TRANSPORT_RAW_H

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
	u32 order;		     /* below 1 << 31; the smaller comes first */
	u32 tag;		     /* of completions; 0: none */
	struct xroce_flow_tunnel tunnel_value, tunnel_mask; /* of kind XROCE_FLOW_TUNNEL */
	bool drops;		     /* for nobody: not even for other flows of its order */
	struct raw_counter *counter; /* or NULL */
};

/*
 * Flows in the order that frames are compared with them: by order, of that first those that drop,
 * then by age.
 */
struct raw_flow {
	struct raw_flow *next;
	struct qp *qp;
	struct raw_rule rule;
	u32 order; /* no two of one order differ in whether they drop */
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
/* Are there raw packet QPs? */
bool raw_any(const struct engine *e);

/* By what XDP wrote: a frame that a flow takes, and no RoCEv2 packet. */
static inline bool raw_is_hinted(const struct xroce_rx_cqe *hint)
{
	return hint && !hint->l3_offset;
}

#endif
