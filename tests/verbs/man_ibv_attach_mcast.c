/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* ibv_attach_mcast(3), which is ibv_detach_mcast(3) as well */
#include "man.h"

#define MEMBERS	 3
#define GRH	 40
#define MULTICAST_QPN 0xffffff

static union ibv_gid group_of(uint8_t last)
{
	return (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, 239, 3, 2, last } };
}

struct members {
	struct ibv_pd *pd;
	struct ibv_cq *cq[MEMBERS];
	struct ibv_qp *qp[MEMBERS];
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	char buf[MEMBERS][GRH + 64], data[64];
};

static bool post_receive(struct members *m, int i)
{
	struct ibv_sge sge = { (uintptr_t)m->buf[i], sizeof(m->buf[i]), m->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 50 + (uint64_t)i, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST_EQ(ibv_post_recv(m->qp[i], &wr, &bad), 0);
	return true;
}

static struct ibv_qp *ud_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { QUEUE, QUEUE, 1, 1, 0 } };

	return ibv_create_qp(pd, &init);
}

static bool members_open(struct members *m)
{
	struct ibv_ah_attr attr = own_address();

	memset(m, 0, sizeof(*m));
	MUST(m->pd = ibv_alloc_pd(ctx));
	MUST(m->mr = ibv_reg_mr(m->pd, m, sizeof(*m), IBV_ACCESS_LOCAL_WRITE));
	for (int i = 0; i < MEMBERS; i++) {
		MUST(m->cq[i] = ibv_create_cq(ctx, 4 * QUEUE, NULL, NULL, 0));
		MUST(m->qp[i] = ud_qp(m->pd, m->cq[i]));
		MUST_EQ(qp_to_init(m->qp[i]), 0);
		MUST_EQ(qp_to_rts(m->qp[i], 0, 0), 0);
		for (int k = 0; k < 4; k++)
			MUST(post_receive(m, i));
	}
	attr.grh.dgid = group_of(1);
	MUST(m->ah = ibv_create_ah(m->pd, &attr));
	return true;
}

static bool members_close(struct members *m)
{
	MUST_EQ(ibv_destroy_ah(m->ah), 0);
	for (int i = 0; i < MEMBERS; i++) {
		MUST_EQ(ibv_destroy_qp(m->qp[i]), 0);
		MUST_EQ(ibv_destroy_cq(m->cq[i]), 0);
	}
	MUST_EQ(ibv_dereg_mr(m->mr), 0);
	MUST_EQ(ibv_dealloc_pd(m->pd), 0);
	return true;
}

/* From the first QP, and all of it has been sent. */
static bool send_to_group(struct members *m, const char *text)
{
	struct ibv_sge sge = { (uintptr_t)m->data, (uint32_t)strlen(text), m->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 9,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .wr.ud = { m->ah, MULTICAST_QPN, UD_QKEY } },
			   *bad;
	struct ibv_wc wc;

	strcpy(m->data, text);
	MUST_EQ(ibv_post_send(m->qp[0], &wr, &bad), 0);
	MUST(wait_wc(m->cq[0], &wc));
	/* the sender's own copy may be there first */
	MUST_EQ(wc.wr_id, 9);
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	return true;
}

static bool has_copy(struct members *m, int i, const char *text)
{
	const union ibv_gid group = group_of(1);
	struct ibv_wc wc;

	MUST(wait_wc(m->cq[i], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 50 + i);
	MUST_EQ(wc.byte_len, GRH + strlen(text));
	MUST_EQ(wc.wc_flags, IBV_WC_GRH);
	MUST_EQ(wc.src_qp, m->qp[0]->qp_num);
	MUST_EQ(wc.qp_num, m->qp[i]->qp_num);
	MUST_EQ(memcmp(m->buf[i] + GRH, text, strlen(text)), 0);
	MUST_EQ(memcmp(m->buf[i] + GRH - 4, group.raw + 12, 4), 0);
	return post_receive(m, i);
}

/* "attaches the QP qp to the multicast group having MGID gid", "detaches" */
static bool members_get_what_is_sent(void)
{
	const union ibv_gid group = group_of(1), other = group_of(2);
	struct members m;

	MUST(members_open(&m));
	/* the LID is nothing on RoCE */
	MUST_EQ(ibv_attach_mcast(m.qp[1], &group, 0xc001), 0);
	MUST_EQ(ibv_attach_mcast(m.qp[2], &other, 0), 0);
	MUST(send_to_group(&m, "one"));
	MUST(has_copy(&m, 1, "one"));
	MUST_EQ(ibv_attach_mcast(m.qp[2], &group, 0), 0);
	MUST(send_to_group(&m, "both"));
	MUST(has_copy(&m, 1, "both") && has_copy(&m, 2, "both"));
	MUST_EQ(ibv_detach_mcast(m.qp[1], &group, 0), 0);
	MUST(send_to_group(&m, "the other"));
	MUST(has_copy(&m, 2, "the other"));
	MUST(cq_is_empty(m.cq[0]) && cq_is_empty(m.cq[1]) && cq_is_empty(m.cq[2]));
	MUST_EQ(ibv_detach_mcast(m.qp[2], &group, 0), 0);
	MUST_EQ(ibv_detach_mcast(m.qp[2], &other, 0), 0);
	return members_close(&m);
}

/*
 * "If a QP is attached to the same multicast group multiple times, the QP will still receive a
 * single copy of a multicast message."
 */
static bool copies_are_single(void)
{
	const union ibv_gid group = group_of(1);
	struct members m;

	MUST(members_open(&m));
	for (int i = 0; i < 3; i++)
		MUST_EQ(ibv_attach_mcast(m.qp[1], &group, 0), 0);
	MUST_EQ(ibv_attach_mcast(m.qp[2], &group, 0), 0);
	MUST(send_to_group(&m, "once"));
	MUST(has_copy(&m, 1, "once") && has_copy(&m, 2, "once"));
	MUST(send_to_group(&m, "again"));
	MUST(has_copy(&m, 1, "again") && has_copy(&m, 2, "again"));
	MUST_EQ(ibv_detach_mcast(m.qp[1], &group, 0), 0);
	MUST_EQ(ibv_detach_mcast(m.qp[1], &group, 0), EINVAL);
	MUST(send_to_group(&m, "no more"));
	MUST(has_copy(&m, 2, "no more"));
	MUST(cq_is_empty(m.cq[1]));
	MUST_EQ(ibv_detach_mcast(m.qp[2], &group, 0), 0);
	return members_close(&m);
}

/* "Only QPs of Transport Service Type IBV_QPT_UD may be attached to multicast groups." */
static bool others_are_refused(void)
{
	union ibv_gid group = group_of(1), gid;
	struct members m;
	struct pair p;
	int err;

	MUST(pair_open(&p, OPTIONS(0)));
	err = ibv_attach_mcast(p.qp[0], &group, 0);
	MUST(pair_close(&p));
	MUST_EQ(err, EINVAL);
	MUST(members_open(&m));
	/* nor is an address that is no group */
	MUST_EQ(ibv_query_gid(ctx, 1, 0, &gid), 0);
	MUST_EQ(ibv_attach_mcast(m.qp[0], &gid, 0), EINVAL);
	group.raw[12] = 240;
	MUST_EQ(ibv_attach_mcast(m.qp[0], &group, 0), EINVAL);
	MUST_EQ(ibv_detach_mcast(m.qp[0], &group, 0), EINVAL);
	return members_close(&m);
}

/* ibv_destroy_qp(3): "fails if the QP is attached to a multicast group" */
static bool destroy_fails_while_attached(void)
{
	const union ibv_gid group[2] = { group_of(1), group_of(2) };
	struct members m;

	MUST(members_open(&m));
	MUST_EQ(ibv_attach_mcast(m.qp[1], &group[0], 0), 0);
	MUST_EQ(ibv_attach_mcast(m.qp[1], &group[1], 0), 0);
	MUST_EQ(ibv_destroy_qp(m.qp[1]), EBUSY);
	MUST_EQ(ibv_detach_mcast(m.qp[1], &group[0], 0), 0);
	MUST_EQ(ibv_destroy_qp(m.qp[1]), EBUSY);
	MUST_EQ(ibv_detach_mcast(m.qp[1], &group[1], 0), 0);
	return members_close(&m);
}

/* ibv_query_device(3), maxima of groups, QPs a group, and both: one more is refused. */
static bool limits_are_true(void)
{
	struct ibv_device_attr attr;
	struct ibv_qp *qp[256];
	struct members m;

	MUST_EQ(ibv_query_device(ctx, &attr), 0);
	MUST(attr.max_mcast_grp >= 16 && attr.max_mcast_grp < 65536);
	MUST(attr.max_mcast_qp_attach >= 16 && attr.max_mcast_qp_attach < 256);
	MUST_EQ(attr.max_total_mcast_qp_attach, attr.max_mcast_grp * attr.max_mcast_qp_attach);
	MUST(members_open(&m));
	for (int i = 0; i <= attr.max_mcast_grp; i++) {
		union ibv_gid group = group_of((uint8_t)i);

		group.raw[14] = (uint8_t)(i >> 8);
		MUST_EQ(ibv_attach_mcast(m.qp[0], &group, 0),
			i < attr.max_mcast_grp ? 0 : ENOMEM);
	}
	for (int i = 0; i < attr.max_mcast_qp_attach; i++) {
		const union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, 239, 3, 0, 0 } };

		MUST(qp[i] = ud_qp(m.pd, m.cq[1]));
		MUST_EQ(ibv_attach_mcast(qp[i], &group, 0),
			i < attr.max_mcast_qp_attach - 1 ? 0 : ENOMEM);
	}
	for (int i = 0; i < attr.max_mcast_qp_attach; i++) {
		const union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, 239, 3, 0, 0 } };

		MUST_EQ(ibv_detach_mcast(qp[i], &group, 0),
			i < attr.max_mcast_qp_attach - 1 ? 0 : EINVAL);
		MUST_EQ(ibv_destroy_qp(qp[i]), 0);
	}
	for (int i = 0; i < attr.max_mcast_grp; i++) {
		union ibv_gid group = group_of((uint8_t)i);

		group.raw[14] = (uint8_t)(i >> 8);
		MUST_EQ(ibv_detach_mcast(m.qp[0], &group, 0), 0);
	}
	return members_close(&m);
}

const struct test_case man_cases[] = {
	CASE(members_get_what_is_sent),
	CASE(copies_are_single),
	CASE(others_are_refused),
	CASE(destroy_fails_while_attached),
	CASE(limits_are_true),
	{ 0 },
};
