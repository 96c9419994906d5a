/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets of UD QPs, multicast groups and raw packet QPs. Private to user/engine. */
#ifndef ENGINE_DATAGRAM_H
#define ENGINE_DATAGRAM_H

#include "internal.h"

enum xroce_drop datagram_input(struct engine *e, struct qp *qp, const struct packet *p,
			       const struct xroce_rx_cqe *hint, u64 now_ns);
/*
 * Stores a packet in the QP's next receive: the GRH, unless it is NULL, then the payload. The
 * receive completes with cqe, or in error.
 */
enum xroce_drop datagram_receive(struct engine *e, struct qp *qp, const struct packet *p,
				 const struct xroce_rx_cqe *hint, const u8 *grh, struct cqe *cqe,
				 u64 now_ns);
u32 datagram_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);

/*
 * Delivers a packet whose QPN no QP of the device has to the members of its group. Returns
 * XROCE_DROP_none if any member took it; other members' refusals are counted.
 * XROCE_DROP_not_handed: engine number 0 must handle it.
 */
enum xroce_drop group_input(struct engine *e, const struct packet *p,
			    const struct rx_frame *frame, const struct xroce_rx_cqe *hint,
			    u64 now_ns);

/* raw.c */
/*
 * Delivers a frame that is not a RoCEv2 packet for a QP to the QPs whose flows take it. Returns as
 * group_input(); XROCE_DROP_flow: no flow takes it.
 */
enum xroce_drop raw_input(struct engine *e, const struct xroce_rx_cqe *hint,
			  const struct rx_frame *frame, u64 now_ns);
u32 raw_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);

#endif
