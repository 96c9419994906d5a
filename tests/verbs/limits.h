/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared parts of the tests of the device's maxima: a QP of any size that is connected to itself,
 * and the attributes of the device and its port.
 */
#ifndef TESTS_VERBS_LIMITS_H
#define TESTS_VERBS_LIMITS_H

#include "man.h"

#define ALL_ACCESS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* XROCE_LIMITS_LONG: also cases that take gigabytes or minutes. */
bool limits_long(void);
struct ibv_device_attr limits_device(void);
struct ibv_port_attr limits_port(void);

struct loop {
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_qp_cap cap; /* as it was made */
	struct ibv_mr *mr;
	uint8_t *buf;
};

/* All but its QP; two CQs of this size, and 2 * BUF_BYTES of memory. */
bool loop_begin(struct loop *l, int cqe);
struct ibv_qp *loop_qp(struct loop *l, enum ibv_qp_type type, struct ibv_qp_cap cap);
/* Both, and connected. */
bool loop_open(struct loop *l, enum ibv_qp_type type, int cqe, struct ibv_qp_cap cap);
bool loop_close(struct loop *l);

/* A request whose remote memory, if it has any, is the second half of the loop's. */
struct ibv_send_wr loop_send(const struct loop *l, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			     int num_sge);
/* n elements of one byte, backwards, two bytes apart, from this offset on. */
void loop_elements(const struct loop *l, struct ibv_sge *sge, int n, uint32_t offset);
/* A successful completion of this request; of byte_len bytes, unless that is UINT32_MAX. */
bool loop_done(struct ibv_cq *cq, uint64_t wr_id, uint32_t byte_len);

/* An RC QP from INIT, to itself: the answer must be this errno, and the state what follows. */
bool qp_to_rtr_with(struct ibv_qp *qp, int dest_rd_atomic, int mtu, int pkey_index, int sgid,
		    int want);
bool qp_to_rts_with(struct ibv_qp *qp, int rd_atomic, int want);

#endif
