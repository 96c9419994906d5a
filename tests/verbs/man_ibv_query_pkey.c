/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_query_pkey(3), ibv_get_pkey_index(3), and bad_pkey_cntr and qkey_viol_cntr of
 * ibv_query_port(3), of a process that has the interface alone: its table is the default P_Key. The
 * tables of brokers: tests/netns/partitions.sh.
 */
#include <arpa/inet.h>

#include "man.h"

#define QKEY 0x4711

/* "returns the P_Key value (in network byte order) in entry index"; "-1 on error" */
static bool query_pkey__entries(void)
{
	struct ibv_port_attr port;
	__be16 pkey = 0x1234;

	MUST_EQ(ibv_query_port(ctx, 1, &port), 0);
	MUST_EQ(port.pkey_tbl_len, 1);
	for (int i = -1; i < 70000; i += i == 1 ? 69997 : 1) {
		errno = 0;
		pkey = 0x1234;
		MUST_EQ(ibv_query_pkey(ctx, 1, i, &pkey), i ? -1 : 0);
		MUST(!i || errno == EINVAL);
		MUST_EQ(pkey, i ? 0x1234 : htons(0xffff));
	}
	MUST_EQ(ibv_query_pkey(ctx, 0, 0, &pkey), -1);
	MUST_EQ(ibv_query_pkey(ctx, 2, 0, &pkey), -1);
	MUST_EQ(errno, EINVAL);
	return true;
}

/* "accepts a P_Key in network byte order and ... returns an index"; "-1 on error" */
static bool get_pkey_index__of_entries_alone(void)
{
	static const uint16_t none[] = { 0, 0x7fff, 0x8000, 0xfffe, 0xff7f, 0x8001 };

	MUST_EQ(ibv_get_pkey_index(ctx, 1, htons(0xffff)), 0);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		errno = 0;
		MUST_EQ(ibv_get_pkey_index(ctx, 1, htons(none[i])), -1);
		MUST_EQ(errno, EINVAL);
	}
	MUST_EQ(ibv_get_pkey_index(ctx, 2, htons(0xffff)), -1);
	return true;
}

/* A UD QP that sends to itself. */
struct sender {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
};

static bool sender_open(struct sender *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 64, 1, 1, 1, 0 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } };

	MUST((s->pd = ibv_alloc_pd(ctx)) && (s->cq = ibv_create_cq(ctx, 128, NULL, NULL, 0)));
	init.send_cq = init.recv_cq = s->cq;
	MUST((s->qp = ibv_create_qp(s->pd, &init)));
	MUST_EQ(ibv_modify_qp(s->qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
	a.qp_state = IBV_QPS_RTR;
	MUST_EQ(ibv_modify_qp(s->qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	MUST_EQ(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	MUST_EQ(ibv_query_gid(ctx, 1, 0, &to.grh.dgid), 0);
	MUST((s->ah = ibv_create_ah(s->pd, &to)));
	return true;
}

static bool sender_close(struct sender *s)
{
	MUST_EQ(ibv_destroy_ah(s->ah), 0);
	MUST_EQ(ibv_destroy_qp(s->qp), 0);
	MUST_EQ(ibv_destroy_cq(s->cq), 0);
	MUST_EQ(ibv_dealloc_pd(s->pd), 0);
	return true;
}

/* Sends n datagrams with that Q_Key, up to 16 in flight. */
static bool send_with(struct sender *s, uint32_t qkey, uint32_t n)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .wr.ud = { .ah = s->ah, .remote_qpn = s->qp->qp_num,
					     .remote_qkey = qkey } }, *bad;
	const long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
	struct ibv_wc wc;

	for (uint32_t i = 1; i <= n; i++) {
		wr.send_flags = i % 16 && i < n ? 0 : IBV_SEND_SIGNALED;
		MUST_EQ(ibv_post_send(s->qp, &wr, &bad), 0);
		while (wr.send_flags && !ibv_poll_cq(s->cq, 1, &wc))
			MUST(clock_ns(CLOCK_MONOTONIC) < end);
		MUST(!wr.send_flags || wc.status == IBV_WC_SUCCESS);
	}
	return true;
}

static bool counters_are(uint32_t pkey, uint32_t qkey)
{
	const long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
	struct ibv_port_attr port;

	do {
		MUST_EQ(ibv_query_port(ctx, 1, &port), 0);
	} while (port.qkey_viol_cntr < qkey && clock_ns(CLOCK_MONOTONIC) < end);
	MUST_EQ(port.bad_pkey_cntr, pkey);
	MUST_EQ(port.qkey_viol_cntr, qkey);
	return true;
}

/* "bad_pkey_cntr: Bad P_Key counter", "qkey_viol_cntr: Q_Key violation counter": of 16 bits. */
static bool query_port__counts_violations(void)
{
	struct sender s;

	MUST(counters_are(0, 0)); /* there is no port */
	MUST(sender_open(&s));
	MUST(counters_are(0, 0));
	MUST(send_with(&s, QKEY, 1)); /* finds no receive */
	MUST(send_with(&s, QKEY + 1, 3));
	MUST(counters_are(0, 3));
	/* the sender may probe the receiver for room, and is refused as well */
	MUST(send_with(&s, QKEY ^ 0x100, 65600));
	MUST(counters_are(0, 65535));
	MUST(send_with(&s, QKEY + 1, 2));
	MUST(counters_are(0, 65535));
	return sender_close(&s);
}

const struct test_case man_cases[] = {
	CASE(query_pkey__entries),
	CASE(get_pkey_index__of_entries_alone),
	CASE(query_port__counts_violations),
	{ 0 },
};
