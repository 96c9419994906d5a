/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* dlvsym() */
#include "qp1.h"

#include <dlfcn.h>

#include "ctl.h"

static void *qp1_symbol(const char *name)
{
	void *at = dlvsym(RTLD_DEFAULT, name, "XROCE_PRIVATE_1");

	must(at, "the library has no %s", name);
	return at;
}

struct qp1_calls qp1_calls(void)
{
	struct qp1_calls calls;

	*(void **)&calls.create = qp1_symbol("xroce_create_qp1");
	*(void **)&calls.place = qp1_symbol("xroce_cm_place");
	*(void **)&calls.bind = qp1_symbol("xroce_cm_bind");
	*(void **)&calls.unbind = qp1_symbol("xroce_cm_unbind");
	*(void **)&calls.ifindex = qp1_symbol("xroce_device_ifindex");
	return calls;
}

void qp1_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = XROCE_CM_QKEY };

	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT refused");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "RTR refused");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS refused");
}
