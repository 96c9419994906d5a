/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets of UD QPs, multicast groups and raw packet QPs. Private to user/engine. */
#ifndef ENGINE_DATAGRAM_H
#define ENGINE_DATAGRAM_H

#include "internal.h"

enum xroce_drop datagram_input(struct engine *e, struct qp *qp, const struct packet *p,
			       const struct xroce_rx_cqe *hint, u64 now_ns);
/*
 * Into the QP's next receive: the GRH, which is NULL if there is none, and the payload behind it.
 * The receive completes as cqe says, or in error.
 */
enum xroce_drop datagram_receive(struct engine *e, struct qp *qp, const struct packet *p,
				 const struct xroce_rx_cqe *hint, const u8 *grh, struct cqe *cqe,
				 u64 now_ns);
u32 datagram_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);

/*
 * A packet that is for no QP of the device by its number: to the members of its group. Returns
 * XROCE_DROP_none if any has taken it; what others had against their copies is counted.
 * XROCE_DROP_not_handed: it is engine number 0's.
 */
enum xroce_drop group_input(struct engine *e, const struct packet *p,
			    const struct rx_frame *frame, const struct xroce_rx_cqe *hint,
			    u64 now_ns);

/* raw.c */
/*
 * A frame that is no RoCEv2 packet for a QP: to those QPs whose flows take it. As group_input();
 * XROCE_DROP_flow: none does.
 */
enum xroce_drop raw_input(struct engine *e, const struct xroce_rx_cqe *hint,
			  const struct rx_frame *frame, u64 now_ns);
u32 raw_output(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns);

#endif
