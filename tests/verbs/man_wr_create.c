/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_wr_post(3) and ibv_create_qp_ex(3), creation: "If the QP does not support all the requested
 * work request types then QP creation will fail", and "Select which QP send ops will be defined in
 * struct ibv_qp_ex": exactly these.
 */
#include "wr.h"

struct made {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
};

static bool made_open(struct made *m)
{
	struct ibv_xrcd_init_attr x = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
						     IBV_XRCD_INIT_ATTR_OFLAGS,
					.fd = -1,
					.oflags = O_CREAT };

	MUST(m->pd = ibv_alloc_pd(ctx));
	MUST(m->cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(m->xrcd = ibv_open_xrcd(ctx, &x));
	return true;
}

static bool made_close(struct made *m)
{
	MUST_EQ(ibv_close_xrcd(m->xrcd), 0);
	MUST_EQ(ibv_destroy_cq(m->cq), 0);
	MUST_EQ(ibv_dealloc_pd(m->pd), 0);
	return true;
}

static struct ibv_qp *create(struct made *m, enum ibv_qp_type type, uint32_t mask, uint64_t ops)
{
	struct ibv_qp_init_attr_ex a = { .send_cq = m->cq,
					 .recv_cq = m->cq,
					 .qp_type = type,
					 .cap = { 4, 4, 2, 2, 32 },
					 .comp_mask = IBV_QP_INIT_ATTR_PD | mask,
					 .pd = m->pd,
					 .send_ops_flags = ops };

	if (type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV)
		a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
	if (type == IBV_QPT_XRC_RECV) {
		a.comp_mask = IBV_QP_INIT_ATTR_XRCD | mask;
		a.xrcd = m->xrcd;
		a.cap = (struct ibv_qp_cap){ 0 };
	}
	errno = 0;
	return ibv_create_qp_ex(ctx, &a);
}

static const enum ibv_qp_type services[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND };

#define EACH(i, array) (unsigned int i = 0; i < sizeof(array) / sizeof((array)[0]); i++)

/* Builders: of the requested operations. Setters: of the service. */
static bool members_are(struct ibv_qp_ex *ex, uint64_t ops)
{
	const enum ibv_qp_type type = ex->qp_base.qp_type;

	for (int op = 0; op < OPS; op++)
		MUST_EQ(!!wr_member(ex, wr_ops[op].member), !!(ops & wr_ops[op].flag));
	MUST(ex->wr_start && ex->wr_complete && ex->wr_abort);
	MUST(ex->wr_set_sge && ex->wr_set_sge_list);
	MUST(ex->wr_set_inline_data && ex->wr_set_inline_data_list);
	MUST_EQ(!!ex->wr_set_ud_addr, type == IBV_QPT_UD);
	MUST_EQ(!!ex->wr_set_xrc_srqn, type == IBV_QPT_XRC_SEND);
	return true;
}

static bool asked_alone(struct made *m)
{
	for EACH(t, services)
		for (int op = 0; op < OPS; op++) {
			uint64_t flag = wr_ops[op].flag;
			bool has = wr_ops[op].services & (1u << services[t]);
			struct ibv_qp *qp;

			qp = create(m, services[t], IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, flag);
			if (!qp != !has || (!qp && errno != EOPNOTSUPP)) {
				printf("# QP type %d, ibv_wr_%s: %s, errno %d\n", services[t],
				       wr_ops[op].name, qp ? "created" : "refused", errno);
				return false;
			}
			if (!qp)
				continue;
			MUST(ibv_qp_to_qp_ex(qp));
			MUST(&ibv_qp_to_qp_ex(qp)->qp_base == qp);
			MUST(members_are(ibv_qp_to_qp_ex(qp), flag));
			MUST_EQ(ibv_destroy_qp(qp), 0);
		}
	return true;
}

#define ON_MADE(name, body)                                \
	static bool name(void)                             \
	{                                                  \
		struct made m = { 0 };                     \
		bool good = made_open(&m) && body(&m);     \
							   \
		return made_close(&m) && good;             \
	}

ON_MADE(each_operation_is_its_services_alone, asked_alone)

/* All that there are, and one more that there is not. */
static bool asked_together(struct made *m)
{
	for EACH(t, services) {
		const uint64_t all = wr_ops_of(services[t]);
		struct ibv_qp *qp;

		MUST(qp = create(m, services[t], IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, all));
		MUST(members_are(ibv_qp_to_qp_ex(qp), all));
		MUST_EQ(ibv_destroy_qp(qp), 0);
		for (int op = 0; op < OPS; op++) {
			const uint64_t more = all | wr_ops[op].flag;

			if (more == all)
				continue;
			MUST_FAIL(create(m, services[t], IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, more),
				  EOPNOTSUPP);
		}
		/* undefined bits */
		for (int bit = 13; bit < 64; bit++)
			MUST_FAIL(create(m, services[t], IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					 all | (uint64_t)1 << bit),
				  EOPNOTSUPP);
	}
	return true;
}

ON_MADE(one_that_is_not_there_refuses_all, asked_together)

/* Without the bit of comp_mask the flags are not looked at, and there is no ibv_qp_ex. */
static bool not_asked(struct made *m)
{
	struct ibv_qp_init_attr init = { .send_cq = m->cq, .recv_cq = m->cq,
					 .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qp;

	for EACH(t, services) {
		MUST(qp = create(m, services[t], 0, ~0ull));
		MUST(!ibv_qp_to_qp_ex(qp));
		MUST_EQ(ibv_destroy_qp(qp), 0);
	}
	MUST(qp = ibv_create_qp(m->pd, &init));
	MUST(!ibv_qp_to_qp_ex(qp));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	/* a target sends nothing */
	MUST(qp = create(m, IBV_QPT_XRC_RECV, 0, 0));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	for (int op = 0; op < OPS; op++)
		MUST_FAIL(create(m, IBV_QPT_XRC_RECV, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
				 wr_ops[op].flag),
			  EOPNOTSUPP);
	return true;
}

ON_MADE(there_is_no_ibv_qp_ex_unasked, not_asked)

/*
 * Raw packets: SEND, and TSO if tso_caps has it; nothing else. A device without such QPs makes none
 * with these flags either.
 */
static bool raw(struct made *m)
{
	struct ibv_device_attr_ex attr;
	struct ibv_qp *qp = create(m, IBV_QPT_RAW_PACKET, 0, 0);
	const bool there = qp;
	int op;

	MUST_EQ(ibv_query_device_ex(ctx, NULL, &attr), 0);
	MUST(!qp || !ibv_destroy_qp(qp));
	for (op = 0; op < OPS; op++) {
		const bool tso = op == OP_TSO && attr.tso_caps.max_tso &&
				 attr.tso_caps.supported_qpts & 1u << IBV_QPT_RAW_PACKET;
		const bool has = there && (op == OP_SEND || tso);

		qp = create(m, IBV_QPT_RAW_PACKET, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			    wr_ops[op].flag);
		MUST_EQ(!!qp, has);
		if (!qp && there)
			MUST_EQ(errno, EOPNOTSUPP);
		if (qp)
			MUST(members_are(ibv_qp_to_qp_ex(qp), wr_ops[op].flag));
		MUST(!qp || !ibv_destroy_qp(qp));
	}
	return true;
}

ON_MADE(raw_packets_are_sent_and_no_more, raw)

const struct test_case man_cases[] = {
	CASE(each_operation_is_its_services_alone),
	CASE(one_that_is_not_there_refuses_all),
	CASE(there_is_no_ibv_qp_ex_unasked),
	CASE(raw_packets_are_sent_and_no_more),
	{ 0 },
};
