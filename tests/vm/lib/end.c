/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See end.h. */
#include "end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../netns/lib/ctl.h"
#include "../../netns/lib/device.h"

#define DEPTH	  64
#define RD_ATOMIC 4

#define END_ACCESS                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |            \
	 IBV_ACCESS_REMOTE_ATOMIC)

static enum ibv_mtu end_mtu(uint32_t bytes)
{
	enum ibv_mtu mtu;

	for (mtu = IBV_MTU_256; mtu < IBV_MTU_4096 && 128u << mtu < bytes; mtu++)
		;
	return mtu;
}

static void end_open_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = e->type,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = END_QKEY };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	e->qp = ibv_create_qp(e->pd, &init);
	must(e->qp, "ibv_create_qp: %s", strerror(errno));
	if (e->type == IBV_QPT_UD) {
		mask |= IBV_QP_QKEY;
	} else {
		mask |= IBV_QP_ACCESS_FLAGS;
		attr.qp_access_flags = e->type == IBV_QPT_RC ? END_ACCESS
							     : IBV_ACCESS_REMOTE_WRITE;
	}
	errno = ibv_modify_qp(e->qp, &attr, mask);
	must(errno == 0, "ibv_modify_qp to INIT: %s", strerror(errno));
}

static struct ibv_mr *end_register(struct end *e, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->memory, END_AREAS * END_AREA, access);

	must(mr, "ibv_reg_mr with access %#x: %s", access, strerror(errno));
	return mr;
}

void end_open(struct end *e, const struct end_options *o, enum ibv_qp_type type)
{
	memset(e, 0, sizeof(*e));
	e->o = o;
	e->type = type;
	e->ctx = open_device(o->device);
	e->pd = ibv_alloc_pd(e->ctx);
	must(e->pd, "ibv_alloc_pd: %s", strerror(errno));
	e->cq = ibv_create_cq(e->ctx, 2 * DEPTH, NULL, NULL, 0);
	must(e->cq, "ibv_create_cq: %s", strerror(errno));
	e->memory = aligned_alloc(4096, END_AREAS * END_AREA);
	must(e->memory, "no memory");
	memset(e->memory, END_POISON, END_AREAS * END_AREA);
	e->mr = end_register(e, END_ACCESS | IBV_ACCESS_MW_BIND);
	e->write_mr = end_register(e, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	e->read_mr = end_register(e, IBV_ACCESS_REMOTE_READ);
	end_open_qp(e);
	errno = ibv_query_gid(e->ctx, 1, o->gid_index, &e->own.gid);
	must(errno == 0, "ibv_query_gid(%d): %s", o->gid_index, strerror(errno));
	e->own.qpn = e->qp->qp_num;
	e->own.psn = o->psn;
	e->own.rkey = e->mr->rkey;
	e->own.write_rkey = e->write_mr->rkey;
	e->own.read_rkey = e->read_mr->rkey;
	e->own.addr = (uintptr_t)e->memory;
}

void end_connect(struct end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = end_mtu(e->o->path_mtu),
		.dest_qp_num = e->peer.qpn,
		.rq_psn = e->peer.psn,
		.max_dest_rd_atomic = RD_ATOMIC,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e->peer.gid,
				      .sgid_index = e->o->gid_index,
				      .hop_limit = 64 } },
	};
	int mask = IBV_QP_STATE;

	if (e->type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (e->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	errno = ibv_modify_qp(e->qp, &attr, mask);
	must(errno == 0, "ibv_modify_qp to RTR: %s", strerror(errno));
	if (e->type == IBV_QPT_UD) {
		e->ah = ibv_create_ah(e->pd, &attr.ah_attr);
		must(e->ah, "ibv_create_ah: %s", strerror(errno));
	}
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = e->own.psn;
	attr.timeout = e->o->timeout;
	attr.retry_cnt = e->o->retry_cnt;
	attr.rnr_retry = e->o->rnr_retry;
	attr.max_rd_atomic = RD_ATOMIC;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (e->type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	errno = ibv_modify_qp(e->qp, &attr, mask);
	must(errno == 0, "ibv_modify_qp to RTS: %s", strerror(errno));
}

static void end_must(int rc, const char *what)
{
	must(rc == 0, "%s: %s", what, strerror(rc));
}

void end_close(struct end *e)
{
	if (e->ah)
		end_must(ibv_destroy_ah(e->ah), "ibv_destroy_ah");
	end_must(ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	end_must(ibv_destroy_cq(e->cq), "ibv_destroy_cq");
	end_must(ibv_dereg_mr(e->mr), "ibv_dereg_mr");
	end_must(ibv_dereg_mr(e->write_mr), "ibv_dereg_mr");
	end_must(ibv_dereg_mr(e->read_mr), "ibv_dereg_mr");
	end_must(ibv_dealloc_pd(e->pd), "ibv_dealloc_pd");
	end_must(ibv_close_device(e->ctx), "ibv_close_device");
	free(e->memory);
}

void end_receive(struct end *e, uint64_t id, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)end_at(e, END_RECEIVE),
			       .length = len + (e->type == IBV_QPT_UD ? END_GRH : 0),
			       .lkey = e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id | END_RECEIVE_ID, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	errno = ibv_post_recv(e->qp, &wr, &bad);
	must(errno == 0, "ibv_post_recv: %s", strerror(errno));
}

static bool end_is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

void end_post(struct end *e, const struct end_request *r)
{
	struct ibv_sge sge = { .addr = (uintptr_t)e->memory + r->local,
			       .length = r->len,
			       .lkey = e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = r->id, .opcode = r->opcode, .imm_data = r->imm };
	struct ibv_send_wr *bad;

	wr.send_flags = r->is_unsignaled ? 0 : IBV_SEND_SIGNALED;
	/* A message of 0 bytes has no entry that could have a bad key. */
	wr.sg_list = &sge;
	wr.num_sge = r->len != 0;
	if (e->type == IBV_QPT_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->peer.qpn;
		wr.wr.ud.remote_qkey = END_QKEY;
	} else if (end_is_atomic(r->opcode)) {
		wr.wr.atomic.remote_addr = e->peer.addr + r->remote;
		wr.wr.atomic.rkey = r->rkey ? r->rkey : e->peer.rkey;
		wr.wr.atomic.compare_add = r->compare_add;
		wr.wr.atomic.swap = r->swap;
	} else {
		wr.wr.rdma.remote_addr = e->peer.addr + r->remote;
		wr.wr.rdma.rkey = r->rkey ? r->rkey : e->peer.rkey;
	}
	errno = ibv_post_send(e->qp, &wr, &bad);
	must(errno == 0, "ibv_post_send of opcode %d: %s", r->opcode, strerror(errno));
}

bool end_poll(struct end *e, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(e->cq, 1, wc);

	must(n >= 0, "ibv_poll_cq: %d", n);
	return n == 1;
}

void end_wait(struct end *e, struct ibv_wc *wc)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (!end_poll(e, wc))
		must(now_ms() < end, "no completion in %d ms", WAIT_MS);
}

void end_judge_request(const struct end *e, const struct end_request *r, const struct ibv_wc *wc)
{
	static const int opcodes[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	};

	must(wc->wr_id == r->id, "request %#llx: wr_id %#llx", (unsigned long long)r->id,
	     (unsigned long long)wc->wr_id);
	must(wc->status == IBV_WC_SUCCESS, "request %#llx, opcode %d, %u bytes: %s, vendor_err %#x",
	     (unsigned long long)r->id, r->opcode, r->len, ibv_wc_status_str(wc->status),
	     wc->vendor_err);
	must(wc->qp_num == e->qp->qp_num, "request: qp_num %#x", wc->qp_num);
	must((int)wc->opcode == opcodes[r->opcode], "request of opcode %d: completion opcode %d",
	     r->opcode, wc->opcode);
	if (r->opcode == IBV_WR_RDMA_READ || end_is_atomic(r->opcode))
		must(wc->byte_len == r->len, "request of opcode %d and %u bytes: byte_len %u",
		     r->opcode, r->len, wc->byte_len);
}

void end_judge_receive(const struct end *e, const struct end_request *r, uint64_t id,
		       const struct ibv_wc *wc)
{
	bool is_write = r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool has_imm = is_write || r->opcode == IBV_WR_SEND_WITH_IMM;
	bool has_inv = r->opcode == IBV_WR_SEND_WITH_INV;
	bool is_ud = e->type == IBV_QPT_UD;

	must(wc->wr_id == (id | END_RECEIVE_ID), "receive %#llx: wr_id %#llx",
	     (unsigned long long)id, (unsigned long long)wc->wr_id);
	must(wc->status == IBV_WC_SUCCESS, "receive of opcode %d, %u bytes: %s, vendor_err %#x",
	     r->opcode, r->len, ibv_wc_status_str(wc->status), wc->vendor_err);
	must(wc->qp_num == e->qp->qp_num, "receive: qp_num %#x", wc->qp_num);
	must(wc->opcode == (is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV),
	     "receive of opcode %d: completion opcode %d", r->opcode, wc->opcode);
	must(wc->byte_len == r->len + (is_ud ? END_GRH : 0),
	     "receive of opcode %d, %u bytes: byte_len %u", r->opcode, r->len, wc->byte_len);
	must(!!(wc->wc_flags & IBV_WC_WITH_IMM) == has_imm, "receive of opcode %d: wc_flags %#x",
	     r->opcode, wc->wc_flags);
	must(!has_imm || wc->imm_data == r->imm, "receive: immediate %#x where %#x was sent",
	     wc->imm_data, r->imm);
	/* Soft-RoCE gives the kernel's own flag, which is another bit. */
	if (!e->o->is_rxe)
		must(!!(wc->wc_flags & IBV_WC_WITH_INV) == has_inv,
		     "receive of opcode %d: wc_flags %#x", r->opcode, wc->wc_flags);
	must(!has_inv || wc->invalidated_rkey == r->imm, "receive: R_Key %#x where %#x was sent",
	     wc->invalidated_rkey, r->imm);
	if (is_ud) {
		must(wc->src_qp == e->peer.qpn, "receive: src_qp %#x where %#x sent", wc->src_qp,
		     e->peer.qpn);
		must(wc->wc_flags & IBV_WC_GRH, "a UD receive without IBV_WC_GRH");
	}
}

enum ibv_qp_state end_state(struct end *e)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	errno = ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init);
	must(errno == 0, "ibv_query_qp: %s", strerror(errno));
	return attr.qp_state;
}

uint8_t end_content(uint32_t key, uint32_t i)
{
	uint32_t x = (key + 1) * 0x9e3779b1u ^ i * 0x85ebca6bu;

	return x >> 24 ^ x >> 11;
}

void end_fill(uint8_t *at, uint32_t key, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = end_content(key, i);
}

uint32_t end_differs(const uint8_t *at, uint32_t key, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len && *(volatile const uint8_t *)(at + i) == end_content(key, i); i++)
		;
	return i;
}

uint32_t end_not_poison(const uint8_t *at, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len && at[i] == END_POISON; i++)
		;
	return i;
}
