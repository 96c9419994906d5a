/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san */
/*
 * ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3) and ibv_query_comp_cntr_caps(3): the values,
 * what counts there, and errors.
 */
#include "man.h"
#include "newer.h"

#define BYTES 100


static struct cntr *cntr_new(uint32_t type)
{
	struct cntr_attr attr = { .type = type };

	return v_create_comp_cntr(ctx, &attr);
}

static int attach(struct ibv_qp *qp, struct cntr *c, uint32_t ops)
{
	struct cntr_attach attr = { .op_mask = ops };

	return v_qp_attach_comp_cntr(qp, c, &attr);
}

static bool reads(struct cntr *c, uint64_t done, uint64_t failed)
{
	uint64_t value = 12345;

	MUST_EQ(v_read_comp_cntr(c, &value), 0);
	MUST_EQ(value, done);
	MUST_EQ(v_read_err_comp_cntr(c, &value), 0);
	MUST_EQ(value, failed);
	return true;
}

/* Waits until the counter reads this: for operations without a completion. */
static bool becomes(struct cntr *c, uint64_t done)
{
	const long long until = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
	uint64_t value = 0;

	do {
		MUST_EQ(v_read_comp_cntr(c, &value), 0);
	} while (value != done && clock_ns(CLOCK_MONOTONIC) < until);
	MUST_EQ(value, done);
	return true;
}

static bool symbols(void)
{
	return !newer_missing();
}

static bool capabilities(void)
{
	struct {
		struct cntr_caps caps;
		uint64_t later;
	} big = { .later = 1 };
	struct cntr_caps caps = { 0 };

	MUST_EQ(v_query_comp_cntr_caps(ctx, &caps, sizeof(caps)), 0);
	MUST(caps.max_value == UINT64_MAX && caps.max_counters == 65536 && caps.ops == ALL_OPS);
	MUST_EQ(v_query_comp_cntr_caps(ctx, &big.caps, sizeof(big)), 0);
	MUST(!memcmp(&big.caps, &caps, sizeof(caps)) && big.later == 0);
	caps.max_counters = 7;
	MUST_EQ(v_query_comp_cntr_caps(ctx, &caps, sizeof(caps.max_value)), 0);
	MUST(caps.max_value == UINT64_MAX && caps.max_counters == 7);
	return true;
}

static bool attributes(void)
{
	struct cntr_attr attr = { .type = 2 };

	MUST_FAIL(v_create_comp_cntr(ctx, &attr), ENOTSUP);
	attr = (struct cntr_attr){ .comp_mask = 1 };
	MUST_FAIL(v_create_comp_cntr(ctx, &attr), EINVAL);
	attr = (struct cntr_attr){ .flags = 1 };
	MUST_FAIL(v_create_comp_cntr(ctx, &attr), EINVAL);
	return true;
}

/* "The maximum number of completion counters a device supports" */
static bool all_of_them(void)
{
	struct cntr **c = calloc(65536, sizeof(*c));

	MUST(c);
	for (int i = 0; i < 65536; i++)
		MUST(c[i] = cntr_new(0));
	MUST_FAIL(cntr_new(0), ENOMEM);
	for (int i = 0; i < 65536; i++)
		MUST_EQ(v_destroy_comp_cntr(c[i]), 0);
	free(c);
	return true;
}

/* "wraps the counter to zero"; the two counts are independent. */
static bool values(void)
{
	struct cntr *c = cntr_new(0);

	MUST(c && c->context == ctx && c->handle);
	MUST(reads(c, 0, 0));
	MUST_EQ(v_set_comp_cntr(c, UINT64_MAX - 1), 0);
	MUST_EQ(v_set_err_comp_cntr(c, 5), 0);
	MUST(reads(c, UINT64_MAX - 1, 5));
	MUST_EQ(v_inc_comp_cntr(c, 3), 0);
	MUST_EQ(v_inc_err_comp_cntr(c, 10), 0);
	MUST(reads(c, 1, 15));
	MUST_EQ(v_inc_err_comp_cntr(c, UINT64_MAX), 0);
	MUST(reads(c, 1, 14));
	c->handle++;
	MUST_EQ(v_set_comp_cntr(c, 0), ENOENT);
	MUST_EQ(v_inc_comp_cntr(c, 0), ENOENT);
	MUST_EQ(v_destroy_comp_cntr(c), ENOENT);
	c->handle--;
	MUST_EQ(v_destroy_comp_cntr(c), 0);
	return true;
}

/* ---- attaching ---- */

/* "The QP must be in IBV_QPS_RESET or IBV_QPS_INIT state"; in the others EINVAL. */
static bool states_body(struct pair *p)
{
	struct cntr *c = cntr_new(0);

	MUST(c);
	MUST_EQ(attach(p->qp[0], c, OP_SEND), EINVAL); /* RTS */
	MUST_EQ(qp_to_state(p->qp[0], IBV_QPS_SQD), 0);
	MUST_EQ(attach(p->qp[0], c, OP_SEND), EINVAL);
	MUST_EQ(qp_to_state(p->qp[0], IBV_QPS_ERR), 0);
	MUST_EQ(attach(p->qp[0], c, OP_SEND), EINVAL);
	MUST_EQ(qp_to_state(p->qp[0], IBV_QPS_RESET), 0);
	MUST_EQ(attach(p->qp[0], c, OP_SEND), 0);
	MUST_EQ(qp_to_init(p->qp[0]), 0);
	MUST_EQ(attach(p->qp[0], c, OP_RECV), 0);
	MUST_EQ(qp_to_rtr(p->qp[0], p->qp[1]->qp_num), 0);
	MUST_EQ(attach(p->qp[0], c, OP_READ), EINVAL);
	MUST_EQ(v_destroy_comp_cntr(c), EBUSY);
	MUST_EQ(ibv_destroy_qp(p->qp[0]), 0);
	p->qp[0] = NULL;
	MUST_EQ(v_destroy_comp_cntr(c), 0);
	return true;
}
ON_PAIR(states, states_body)

/* "Each QP and operation type pair can be associated with at most one completion counter." */
static bool masks_body(struct pair *p)
{
	struct ibv_context *other = ibv_open_device(ctx->device);
	struct cntr_attr attr = { 0 };
	struct cntr *a = cntr_new(0), *b = cntr_new(0), *foreign;
	struct cntr_attach wrong = { .comp_mask = 1, .op_mask = OP_SEND };

	MUST(a && b && other);
	MUST(foreign = v_create_comp_cntr(other, &attr));
	MUST_EQ(qp_to_state(p->qp[0], IBV_QPS_RESET), 0);
	MUST_EQ(v_qp_attach_comp_cntr(p->qp[0], a, &wrong), EINVAL);
	MUST_EQ(attach(p->qp[0], a, 0), EINVAL);
	MUST_EQ(attach(p->qp[0], foreign, OP_SEND), EINVAL);
	for (uint32_t bit = ALL_OPS + 1; bit; bit <<= 1)
		MUST_EQ(attach(p->qp[0], a, OP_SEND | bit), ENOTSUP);
	MUST_EQ(attach(p->qp[0], a, OP_SEND | OP_RECV), 0);
	MUST_EQ(attach(p->qp[0], b, OP_RECV | OP_READ), EBUSY);
	MUST_EQ(attach(p->qp[0], a, OP_SEND), EBUSY);
	MUST_EQ(attach(p->qp[0], b, OP_READ), 0); /* the failed call attached nothing */
	MUST_EQ(v_destroy_comp_cntr(b), EBUSY);
	MUST_EQ(ibv_destroy_qp(p->qp[0]), 0);
	p->qp[0] = NULL;
	MUST_EQ(v_destroy_comp_cntr(a), 0);
	MUST_EQ(v_destroy_comp_cntr(b), 0);
	MUST_EQ(v_destroy_comp_cntr(foreign), 0);
	MUST_EQ(ibv_close_device(other), 0);
	return true;
}
ON_PAIR(masks, masks_body)

/* ---- counting ---- */

/* A counter for each operation of both ends: c[end][operation]. */
struct counted {
	struct pair *p;
	struct cntr *c[2][6];
};

static bool counted_open(struct counted *n, struct pair *p, uint32_t type)
{
	n->p = p;
	for (int end = 0; end < 2; end++) {
		MUST_EQ(qp_to_state(p->qp[end], IBV_QPS_RESET), 0);
		for (int op = 0; op < 6; op++) {
			MUST(n->c[end][op] = cntr_new(type));
			MUST_EQ(attach(p->qp[end], n->c[end][op], 1u << op), 0);
		}
	}
	return pair_reconnect(p);
}

static bool counted_close(struct counted *n)
{
	for (int end = 0; end < 2; end++) {
		MUST_EQ(ibv_destroy_qp(n->p->qp[end]), 0);
		n->p->qp[end] = NULL;
		for (int op = 0; op < 6; op++)
			MUST_EQ(v_destroy_comp_cntr(n->c[end][op]), 0);
	}
	return true;
}

/* What the counters of an end read, in the order SEND, RECV, READ, REMOTE_READ, WRITE, REMOTE_. */
static bool end_reads(struct counted *n, int end, const uint64_t want[6])
{
	for (int op = 0; op < 6; op++)
		MUST(reads(n->c[end][op], want[op], 0));
	return true;
}

static bool rdma(struct pair *p, enum ibv_wr_opcode opcode, unsigned int flags)
{
	struct ibv_sge sge = sge_of(p, 0, 0, BYTES);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = flags, .imm_data = 7 };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)p->buf[1];
	wr.wr.rdma.rkey = p->mr[1]->rkey;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	return true;
}

/*
 * A SEND, a WRITE, a WRITE with immediate data and two READs, the last of each kind signaled.
 * unit: what one operation counts.
 */
static bool operations(struct counted *n, uint64_t unit)
{
	const uint64_t local[6] = { unit, 0, 2 * unit, 0, 2 * unit, 0 };
	const uint64_t remote[6] = { 0, 2 * unit, 0, 2 * unit, 0, 2 * unit };
	struct pair *p = n->p;
	struct ibv_wc wc;

	MUST_EQ(post_recv(p, 1, 0, BYTES), 0);
	MUST_EQ(post_recv(p, 2, 0, BYTES), 0);
	MUST_EQ(post_send(p, 3, 0, BYTES, 0), 0);
	MUST(rdma(p, IBV_WR_RDMA_WRITE, 0));
	MUST(rdma(p, IBV_WR_RDMA_WRITE_WITH_IMM, 0));
	MUST(rdma(p, IBV_WR_RDMA_READ, 0));
	MUST(rdma(p, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED));
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++) {
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
	}
	return end_reads(n, 0, local) && end_reads(n, 1, remote);
}

/* Counts operations without a completion too; a WRITE with immediate data is also a receive. */
static bool work_requests_body(struct pair *p)
{
	struct counted n;

	MUST(counted_open(&n, p, 0));
	MUST(operations(&n, 1));
	return counted_close(&n);
}
ON_PAIR(work_requests, work_requests_body)

/* "IBV_COMP_CNTR_TYPE_BYTES counts completed bytes." */
static bool bytes_body(struct pair *p)
{
	struct counted n;

	MUST(counted_open(&n, p, 1));
	MUST(operations(&n, BYTES));
	return counted_close(&n);
}
ON_PAIR(bytes, bytes_body)

/* A message of several packets is one operation, of all its bytes. */
static bool long_messages_body(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 0, BUF_BYTES);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct counted n;
	struct ibv_wc wc;

	MUST(counted_open(&n, p, 1));
	wr.wr.rdma.remote_addr = (uintptr_t)p->buf[1];
	wr.wr.rdma.rkey = p->mr[1]->rkey;
	MUST_EQ(post_recv(p, 1, 0, BUF_BYTES), 0);
	wr.opcode = IBV_WR_RDMA_WRITE;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	wr.opcode = IBV_WR_SEND;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.send_flags = IBV_SEND_SIGNALED;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST(end_reads(&n, 0, (uint64_t[6]){ BUF_BYTES, 0, BUF_BYTES, 0, BUF_BYTES, 0 }));
	MUST(end_reads(&n, 1, (uint64_t[6]){ 0, BUF_BYTES, 0, BUF_BYTES, 0, BUF_BYTES }));
	return counted_close(&n);
}
ON_PAIR(long_messages, long_messages_body)

/* Nothing else counts: atomics have no bit. */
static bool atomics_body(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD }, *bad;
	static const uint64_t none[6];
	struct counted n;
	struct ibv_wc wc;

	MUST(counted_open(&n, p, 0));
	wr.wr.atomic.remote_addr = (uintptr_t)p->buf[1];
	wr.wr.atomic.rkey = p->mr[1]->rkey;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST(end_reads(&n, 0, none) && end_reads(&n, 1, none));
	return counted_close(&n);
}
ON_PAIR(atomics, atomics_body)

/* "an error count that is incremented when operations complete in error": also when flushed. */
static bool errors_body(struct pair *p)
{
	struct counted n;
	struct ibv_wc wc;

	MUST(counted_open(&n, p, 1));
	MUST_EQ(post_recv(p, 1, 0, 10), 0); /* too short */
	MUST_EQ(post_recv(p, 2, 0, BYTES), 0);
	MUST_EQ(post_send(p, 3, 0, BYTES, 0), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
	for (int i = 0; i < 2; i++)
		MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	MUST(rdma(p, IBV_WR_RDMA_READ, 0));
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	MUST(reads(n.c[0][0], 0, 1)); /* one failed SEND, not its bytes */
	MUST(reads(n.c[0][2], 0, 1));
	MUST(reads(n.c[1][1], 0, 2));
	return counted_close(&n);
}
ON_PAIR(errors, errors_body)

/* "will accumulate values from all attached QPs into the same counter", through RESET too. */
static bool shared_body(struct pair *p)
{
	struct cntr *c = cntr_new(0);
	struct ibv_wc wc;

	MUST(c);
	for (int end = 0; end < 2; end++) {
		MUST_EQ(qp_to_state(p->qp[end], IBV_QPS_RESET), 0);
		MUST_EQ(attach(p->qp[end], c, ALL_OPS), 0);
	}
	for (uint64_t round = 1; round <= 3; round++) {
		MUST(pair_reconnect(p));
		MUST_EQ(post_recv(p, 1, 0, BYTES), 0);
		MUST_EQ(post_send(p, 2, 0, BYTES, IBV_SEND_SIGNALED), 0);
		MUST(wait_wc(p->cq[0], &wc) && wait_wc(p->cq[1], &wc));
		MUST(reads(c, 2 * round, 0));
	}
	for (int end = 0; end < 2; end++) {
		MUST_EQ(v_destroy_comp_cntr(c), EBUSY);
		MUST_EQ(ibv_destroy_qp(p->qp[end]), 0);
		p->qp[end] = NULL;
	}
	MUST_EQ(v_destroy_comp_cntr(c), 0);
	return true;
}
ON_PAIR(shared, shared_body)

/* Receives of an SRQ count for the QP that got the message, flushed ones of the queue for none. */
static bool srq_body(struct pair *p)
{
	struct cntr *c = cntr_new(0);
	struct ibv_wc wc;

	MUST(c);
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_RESET), 0);
	MUST_EQ(attach(p->qp[1], c, OP_RECV), 0);
	MUST(pair_reconnect(p));
	for (uint64_t i = 1; i <= 3; i++)
		MUST_EQ(post_recv(p, i, 0, BYTES), 0);
	for (uint64_t i = 1; i <= 2; i++) {
		MUST_EQ(post_send(p, 9, 0, BYTES, 0), 0);
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST(reads(c, i, 0));
	}
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	MUST(reads(c, 2, 0));
	MUST_EQ(ibv_destroy_qp(p->qp[1]), 0);
	p->qp[1] = NULL;
	MUST_EQ(v_destroy_comp_cntr(c), 0);
	return true;
}
ON_PAIR(srq, srq_body, .srq = true)

/* "ENOTSUP: Requested operation is not supported": the QP of several handles. */
static bool xrc(void)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1, .oflags = O_CREAT };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD };
	struct cntr *c = cntr_new(0);
	struct ibv_qp *qp;

	MUST(c && (init.xrcd = ibv_open_xrcd(ctx, &attr)));
	MUST(qp = ibv_create_qp_ex(ctx, &init));
	MUST_EQ(attach(qp, c, OP_REMOTE_WRITE), ENOTSUP);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_close_xrcd(init.xrcd), 0);
	MUST_EQ(v_destroy_comp_cntr(c), 0);
	return true;
}

/* Counts datagrams. A receiver needs no CQ entry to see the number of its messages. */
static bool datagrams_body(struct pair *p)
{
	struct ibv_qp_init_attr init = { .send_cq = p->cq[0], .recv_cq = p->cq[1],
					 .qp_type = IBV_QPT_UD, .cap = { QUEUE, QUEUE, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(p->pd, &init);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = UD_QKEY };
	struct ibv_ah_attr to = own_address();
	struct cntr *sent = cntr_new(0), *received = cntr_new(1);
	struct ibv_sge out = sge_of(p, 0, 0, BYTES), in = sge_of(p, 1, 0, 40 + BYTES);
	struct ibv_send_wr wr = { .sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rr = { .sg_list = &in, .num_sge = 1 }, *bad_rr;
	struct ibv_ah *ah = ibv_create_ah(p->pd, &to);

	MUST(qp && ah && sent && received);
	MUST_EQ(attach(qp, sent, OP_SEND), 0);
	MUST_EQ(attach(qp, received, OP_RECV), 0);
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
		0);
	MUST_EQ(qp_to_state(qp, IBV_QPS_RTR), 0);
	a.qp_state = IBV_QPS_RTS;
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = UD_QKEY;
	for (uint64_t i = 1; i <= 3; i++) {
		MUST_EQ(ibv_post_recv(qp, &rr, &bad_rr), 0);
		MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
		MUST(becomes(sent, i));
		MUST(becomes(received, i * (40 + BYTES)));
	}
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	MUST_EQ(v_destroy_comp_cntr(sent), 0);
	MUST_EQ(v_destroy_comp_cntr(received), 0);
	return true;
}
ON_PAIR(datagrams, datagrams_body)

/* The child's copy keeps its value; new ones are EIO. */
static bool child_body(void *arg)
{
	struct cntr *c = arg;
	struct cntr_attr attr = { 0 };

	MUST_FAIL(v_create_comp_cntr(ctx, &attr), EIO);
	MUST(reads(c, 3, 0));
	MUST_EQ(v_inc_comp_cntr(c, 1), 0);
	MUST_EQ(v_destroy_comp_cntr(c), 0);
	return true;
}

static bool in_child(void)
{
	struct cntr *c = cntr_new(0);

	MUST(c);
	MUST_EQ(v_set_comp_cntr(c, 3), 0);
	MUST(in_a_child(child_body, c));
	MUST(reads(c, 3, 0));
	MUST_EQ(v_destroy_comp_cntr(c), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(symbols),
	CASE(capabilities),
	CASE(attributes),
	CASE(all_of_them),
	CASE(values),
	CASE(states),
	CASE(masks),
	CASE(work_requests),
	CASE(bytes),
	CASE(long_messages),
	CASE(atomics),
	CASE(errors),
	CASE(shared),
	CASE(srq),
	CASE(xrc),
	CASE(datagrams),
	CASE(in_child),
	{ 0 },
};
