/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What our library has for its librdmacm (user/verbs/xroce_cm.h), found when the program runs: the
 * library that it is linked with may be another's.
 */
#ifndef NETNS_QP1_H
#define NETNS_QP1_H

#include "../../../user/verbs/xroce_cm.h"

struct qp1_calls {
	struct ibv_qp *(*create)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*place)(struct ibv_context *context, uint32_t *first_id, uint32_t *num_ids);
	int (*bind)(struct ibv_context *context, const struct xroce_cm_service *service);
	int (*unbind)(struct ibv_context *context, const struct xroce_cm_service *service);
	int (*ifindex)(struct ibv_device *device);
};

/* Dies if the library is not ours. */
struct qp1_calls qp1_calls(void);

/* RESET to RTS as the public verbs do it; PSNs from 0. */
void qp1_to_rts(struct ibv_qp *qp);

#endif
