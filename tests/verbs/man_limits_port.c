/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The maxima of a port, of messages and of regions (see limits): tables, path MTUs, max_msg_sz,
 * max_mr_size.
 *
 * With XROCE_LIMITS_LONG=1 also messages of max_msg_sz by every operation that has a length.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "limits.h"

/* ---- active_mtu, pkey_tbl_len, gid_tbl_len ---- */

static bool tables_of_the_port(void)
{
	const struct ibv_port_attr p = limits_port();
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				 .pkey_index = p.pkey_tbl_len };
	struct ibv_ah_attr ah = own_address();
	union ibv_gid gid, none = { .raw = { 0 } };
	struct loop l;
	__be16 pkey;

	MUST_EQ(p.pkey_tbl_len, limits_device().max_pkeys);
	for (int i = 0; i < p.pkey_tbl_len; i++)
		MUST_EQ(ibv_query_pkey(ctx, 1, i, &pkey), 0);
	MUST_EQ(ibv_query_pkey(ctx, 1, p.pkey_tbl_len, &pkey), -1);
	MUST_EQ(ibv_query_pkey(ctx, 1, -1, &pkey), -1);
	/* an entry without a GID reads as zeros, one after the table fails */
	for (int i = 0; i < p.gid_tbl_len; i++)
		MUST_EQ(ibv_query_gid(ctx, 1, i, &gid), 0);
	MUST_EQ(memcmp(&gid, &none, sizeof(gid)), 0);
	MUST_EQ(ibv_query_gid(ctx, 1, p.gid_tbl_len, &gid), -1);

	MUST(loop_begin(&l, QUEUE));
	ah.grh.sgid_index = (uint8_t)p.gid_tbl_len;
	MUST_FAIL(ibv_create_ah(l.pd, &ah), EINVAL);
	MUST(l.qp = loop_qp(&l, IBV_QPT_RC, (struct ibv_qp_cap){ 1, 1, 1, 1, 0 }));
	MUST_EQ(ibv_modify_qp(l.qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		EINVAL);
	a.pkey_index--;
	MUST_EQ(ibv_modify_qp(l.qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	MUST(qp_to_rtr_with(l.qp, 1, IBV_MTU_1024, p.pkey_tbl_len, 0, EINVAL));
	MUST(qp_to_rtr_with(l.qp, 1, IBV_MTU_1024, 0, p.gid_tbl_len, EINVAL));
	MUST(qp_to_rtr_with(l.qp, 1, IBV_MTU_1024, p.pkey_tbl_len - 1, 0, 0));
	return loop_close(&l);
}

/* SENDs of n whole packets of this MTU, of one byte less and of one more. */
static bool packets_of(enum ibv_mtu mtu)
{
	const uint32_t bytes = 128u << mtu;
	struct ibv_sge from, to;
	struct ibv_recv_wr rr = { .wr_id = 1, .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_send_wr wr, *bad;
	struct loop l;

	MUST(loop_begin(&l, QUEUE));
	MUST(l.qp = loop_qp(&l, IBV_QPT_RC, (struct ibv_qp_cap){ 1, 1, 1, 1, 0 }));
	MUST_EQ(qp_to_init(l.qp), 0);
	MUST(qp_to_rtr_with(l.qp, 1, (int)mtu, 0, 0, 0));
	MUST(qp_to_rts_with(l.qp, 1, 0));
	for (uint32_t i = 0; i < BUF_BYTES; i++)
		l.buf[i] = (uint8_t)(i * 11 + i / 256);
	from = (struct ibv_sge){ (uintptr_t)l.buf, 0, l.mr->lkey };
	to = (struct ibv_sge){ (uintptr_t)l.buf + BUF_BYTES, BUF_BYTES, l.mr->lkey };
	for (uint32_t n = 1; n <= 3; n++) {
		for (uint32_t len = n * bytes - 1; len <= n * bytes + 1; len++) {
			memset(l.buf + BUF_BYTES, 0, BUF_BYTES);
			MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
			from.length = len;
			wr = loop_send(&l, IBV_WR_SEND, &from, 1);
			MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
			MUST(loop_done(l.scq, 0, UINT32_MAX) && loop_done(l.rcq, 1, len));
			MUST_EQ(memcmp(l.buf, l.buf + BUF_BYTES, len), 0);
		}
	}
	return loop_close(&l);
}

/* A datagram is one packet: of this many bytes, and not of one more. */
static bool datagrams_of(uint32_t mtu)
{
	struct ibv_ah_attr self = own_address();
	struct ibv_sge from, to;
	struct ibv_recv_wr rr = { .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_send_wr wr, *bad;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct loop l;

	MUST(loop_open(&l, IBV_QPT_UD, QUEUE, (struct ibv_qp_cap){ 2, 2, 1, 1, 0 }));
	MUST(ah = ibv_create_ah(l.pd, &self));
	for (uint32_t i = 0; i < mtu; i++)
		l.buf[i] = (uint8_t)(i * 5 + i / 256);
	to = (struct ibv_sge){ (uintptr_t)l.buf + BUF_BYTES, mtu + 40, l.mr->lkey };
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
	from = (struct ibv_sge){ (uintptr_t)l.buf, mtu, l.mr->lkey };
	wr = loop_send(&l, IBV_WR_SEND, &from, 1);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = l.qp->qp_num;
	wr.wr.ud.remote_qkey = UD_QKEY;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(loop_done(l.scq, 0, UINT32_MAX) && loop_done(l.rcq, 0, mtu + 40));
	MUST_EQ(memcmp(l.buf, l.buf + BUF_BYTES + 40, mtu), 0);
	MUST_EQ(ibv_post_recv(l.qp, &rr, &bad_rr), 0);
	from.length = mtu + 1;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(wait_wc(l.scq, &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
	MUST(cq_is_empty(l.rcq));
	MUST_EQ(ibv_destroy_ah(ah), 0);
	return loop_close(&l);
}

/* A path MTU that its link does not carry. */
static bool mtu_refused(int mtu)
{
	struct loop l;

	MUST(loop_begin(&l, QUEUE));
	MUST(l.qp = loop_qp(&l, IBV_QPT_RC, (struct ibv_qp_cap){ 1, 1, 1, 1, 0 }));
	MUST_EQ(qp_to_init(l.qp), 0);
	MUST(qp_to_rtr_with(l.qp, 1, mtu, 0, 0, EINVAL));
	return loop_close(&l);
}

static bool set_link_mtu(int mtu)
{
	char command[100];

	snprintf(command, sizeof(command), "ip link set dev %s mtu %d",
		 ibv_get_device_name(ctx->device) + strlen("xroce_"), mtu);
	return system(command) == 0;
}

/* active_mtu is the best value; up to max_mtu, all that the link carries works (docs/tx.md). */
static bool mtus_of_the_link(void)
{
	const struct ibv_port_attr p = limits_port();

	MUST(p.active_mtu <= p.max_mtu && p.active_mtu >= IBV_MTU_256);
	MUST_EQ(p.max_mtu, IBV_MTU_4096);
	for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		MUST(packets_of((enum ibv_mtu)mtu));
	MUST(datagrams_of(128u << p.active_mtu < 4096 ? 4096 : 128u << p.active_mtu));
	MUST(mtu_refused(0) && mtu_refused(p.max_mtu + 1));
	return true;
}

static bool mtus_of_a_smaller_link(void)
{
	bool good;

	MUST(set_link_mtu(1500));
	good = limits_port().active_mtu == IBV_MTU_1024 && packets_of(IBV_MTU_1024) &&
	       mtu_refused(IBV_MTU_2048) && mtu_refused(IBV_MTU_4096) && datagrams_of(1024);
	MUST(set_link_mtu(4500) && good);
	return true;
}

/* ---- max_msg_sz ---- */

#define PIECE (64u << 20)

/* This many bytes of address space, all of it the same PIECE of memory. */
static void *tiled(uint64_t bytes, int fd)
{
	uint8_t *at =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	for (uint64_t done = 0; done < bytes; done += PIECE)
		if (mmap(at + done, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			return NULL;
	return at;
}

struct huge {
	struct loop l;
	uint32_t *mem[2];
	struct ibv_mr *mr[2];
};

static bool huge_open(struct huge *h, enum ibv_qp_type type)
{
	const uint64_t room = (uint64_t)limits_port().max_msg_sz + PIECE;

	MUST(loop_open(&h->l, type, QUEUE, (struct ibv_qp_cap){ 2, 2, 2, 2, 0 }));
	for (int i = 0; i < 2; i++) {
		int fd = memfd_create("limits", MFD_CLOEXEC);

		MUST(fd >= 0 && !ftruncate(fd, PIECE));
		MUST(h->mem[i] = tiled(room, fd));
		close(fd);
		MUST(h->mr[i] = ibv_reg_mr(h->l.pd, h->mem[i], room, ALL_ACCESS));
	}
	for (uint32_t i = 0; i < PIECE / 4; i++)
		h->mem[0][i] = i * 2654435761u + 1;
	return true;
}

static bool huge_close(struct huge *h)
{
	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_dereg_mr(h->mr[i]), 0);
		MUST_EQ(munmap(h->mem[i], (uint64_t)limits_port().max_msg_sz + PIECE), 0);
	}
	return loop_close(&h->l);
}

/* Gigabytes take longer than wait_wc() waits; the program's own time is bounded by man.sh. */
static bool done_in_time(struct ibv_cq *cq, uint64_t wr_id)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	MUST_EQ(n, 1);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, wr_id);
	return true;
}

static bool huge_message(struct huge *h, enum ibv_wr_opcode opcode)
{
	const uint64_t max = limits_port().max_msg_sz;
	const bool read = opcode == IBV_WR_RDMA_READ;
	struct ibv_sge sge = { (uintptr_t)h->mem[read], (uint32_t)max, h->mr[read]->lkey },
		       to = { (uintptr_t)h->mem[1], (uint32_t)max, h->mr[1]->lkey };
	struct ibv_recv_wr rr = { .wr_id = 9, .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_send_wr wr = loop_send(&h->l, opcode, &sge, 1), *bad;

	wr.wr_id = 8;
	wr.wr.rdma.remote_addr = (uintptr_t)h->mem[!read];
	wr.wr.rdma.rkey = h->mr[!read]->rkey;
	memset(h->mem[1], 0, PIECE);
	if (opcode == IBV_WR_SEND)
		MUST_EQ(ibv_post_recv(h->l.qp, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(h->l.qp, &wr, &bad), 0);
	MUST(done_in_time(h->l.scq, 8));
	if (opcode == IBV_WR_SEND)
		MUST(done_in_time(h->l.rcq, 9));
	MUST_EQ(memcmp(h->mem[0], h->mem[1], PIECE), 0);
	return true;
}

/* One more than the port has: posted, and refused in its turn (docs/verbs.md). */
static bool too_huge(struct huge *h, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge[2] = { { (uintptr_t)h->mem[0], limits_port().max_msg_sz,
				    h->mr[0]->lkey },
				  { (uintptr_t)h->mem[0], 1, h->mr[0]->lkey } };
	struct ibv_send_wr wr = loop_send(&h->l, opcode, sge, 2), *bad;
	struct ibv_wc wc;

	memset(h->mem[1], 0, PIECE);
	wr.wr.rdma.remote_addr = (uintptr_t)h->mem[1];
	wr.wr.rdma.rkey = h->mr[1]->rkey;
	MUST_EQ(ibv_post_send(h->l.qp, &wr, &bad), 0);
	MUST(wait_wc(h->l.scq, &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
	MUST(cq_is_empty(h->l.rcq));
	MUST_EQ(h->mem[1][0], 0);
	return true;
}

static bool huge_of(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	struct huge h;

	MUST(huge_open(&h, type));
	MUST(huge_message(&h, opcode));
	MUST(too_huge(&h, opcode));
	return huge_close(&h);
}

static bool max_msg_sz_and_one(void)
{
	MUST_EQ(limits_port().max_msg_sz, 1u << 31);
	MUST(huge_of(IBV_QPT_RC, IBV_WR_RDMA_WRITE));
	if (!limits_long())
		return true;
	return huge_of(IBV_QPT_RC, IBV_WR_SEND) && huge_of(IBV_QPT_RC, IBV_WR_RDMA_READ) &&
	       huge_of(IBV_QPT_UC, IBV_WR_SEND) && huge_of(IBV_QPT_UC, IBV_WR_RDMA_WRITE);
}

/* ---- max_mr_size ---- */

/*
 * It is the whole address space, so nothing can be larger: it is reached by a region that pages on
 * demand; present memory is never that large.
 */
static bool max_mr_size_is_reached(void)
{
	const uint64_t max = limits_device().max_mr_size, room = 64ull << 30;
	struct ibv_device_attr_ex ex;
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct loop l;
	uint8_t *mem;

	MUST_EQ(max, SIZE_MAX);
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &ex), 0);
	MUST(ex.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT);
	MUST(loop_open(&l, IBV_QPT_RC, QUEUE, (struct ibv_qp_cap){ 2, 2, 1, 1, 0 }));
	MUST(mr = ibv_reg_mr(l.pd, NULL, max, ALL_ACCESS | IBV_ACCESS_ON_DEMAND));
	MUST(mr->addr == NULL && mr->length == max);
	sge = (struct ibv_sge){ (uintptr_t)l.buf, 4, mr->lkey };
	memcpy(l.buf, "ping", 4);
	wr = loop_send(&l, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.wr.rdma.rkey = mr->rkey;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(loop_done(l.scq, 0, UINT32_MAX));
	MUST_EQ(memcmp(l.buf + BUF_BYTES, "ping", 4), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	/* elsewhere `max` bytes end after the last address */
	MUST_FAIL(ibv_reg_mr(l.pd, l.buf, max, ALL_ACCESS), EINVAL);
	MUST_FAIL(ibv_reg_mr(l.pd, l.buf, SIZE_MAX - (uintptr_t)l.buf + 1, ALL_ACCESS), EINVAL);
	MUST_FAIL(ibv_reg_mr(l.pd, NULL, max, ALL_ACCESS), EINVAL);
	MUST_FAIL(ibv_reg_mr(l.pd, NULL, 1ull << 46, ALL_ACCESS), EFAULT);

	/* a region of more than 32 bits count, used at its end */
	mem = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	MUST(mem != MAP_FAILED);
	MUST(mr = ibv_reg_mr(l.pd, mem, room, ALL_ACCESS | IBV_ACCESS_ON_DEMAND));
	wr.wr.rdma.rkey = mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)mem + room - 4;
	sge.lkey = l.mr->lkey;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(loop_done(l.scq, 0, UINT32_MAX));
	MUST_EQ(memcmp(mem + room - 4, "ping", 4), 0);
	wr.wr.rdma.remote_addr++;
	MUST_EQ(ibv_post_send(l.qp, &wr, &bad), 0);
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, l.qp));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(munmap(mem, room), 0);
	return loop_close(&l);
}

const struct test_case man_cases[] = {
	CASE(tables_of_the_port),
	CASE(mtus_of_the_link),
	CASE(mtus_of_a_smaller_link),
	CASE(max_msg_sz_and_one),
	CASE(max_mr_size_is_reached),
	{ 0 },
};
