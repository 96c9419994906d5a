/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the random walk expects; see walk.h. */
#include "walk.h"

struct model model;
static uint64_t state;

uint32_t walk_draw(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % n;
}

static struct expected {
	int cq;
	uint32_t qpn;
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t byte_len;
	bool met;
} expected[4 * DEPTH];
static int expecting;

void walk_begin(uint64_t seed)
{
	state = seed * 0x9e3779b97f4a7c15ull + 1;
	memset(&model, 0, sizeof(model));
	expecting = 0;
}

void walk_expect(int cq, int qp, uint64_t wr_id, enum ibv_wc_status status,
		 enum ibv_wc_opcode opcode, uint32_t byte_len)
{
	expected[expecting++] =
		(struct expected){ cq,	 model.qp[qp].o->qp_num, wr_id, status, opcode, byte_len,
				   false };
}

void walk_expect_error(int q)
{
	struct fifo *f = &model.qp[q].fifo;

	if (model.qp[q].state == IBV_QPS_ERR)
		return;
	model.qp[q].state = IBV_QPS_ERR;
	for (int i = 0; i < f->n; i++)
		walk_expect(model.qp[q].cq[1], q, f->r[i].wr_id, IBV_WC_WR_FLUSH_ERR, 0, 0);
	f->n = 0;
}

static bool met(int cq, const struct ibv_wc *wc)
{
	for (int i = 0; i < expecting; i++) {
		struct expected *e = &expected[i];

		if (e->met || e->cq != cq || e->qpn != wc->qp_num || e->wr_id != wc->wr_id)
			continue;
		MUST_EQ(wc->status, e->status);
		if (e->status == IBV_WC_SUCCESS) {
			MUST_EQ(wc->opcode, e->opcode);
			if (e->opcode == IBV_WC_RECV || e->opcode == IBV_WC_RDMA_READ)
				MUST_EQ(wc->byte_len, e->byte_len);
		}
		e->met = true;
		return true;
	}
	printf("# a completion of %#x, wr_id %llu, status %d, that nobody expects\n", wc->qp_num,
	       (unsigned long long)wc->wr_id, wc->status);
	return false;
}

bool walk_settled(void)
{
	long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
	struct ibv_wc wc;
	int open = expecting, n;

	while (open > 0) {
		for (int c = 0; c < CQS; c++) {
			if (!model.cq[c].o)
				continue;
			n = ibv_poll_cq(model.cq[c].o, 1, &wc);
			MUST(n >= 0);
			if (n) {
				MUST(met(c, &wc));
				open--;
			}
		}
		MUST(clock_ns(CLOCK_MONOTONIC) < end);
	}
	expecting = 0;
	return true;
}

bool walk_nothing_else(void)
{
	struct ibv_async_event event;
	struct ibv_wc wc;
	bool known;

	for (int c = 0; c < CQS; c++)
		MUST(!model.cq[c].o || !ibv_poll_cq(model.cq[c].o, 1, &wc) || met(c, &wc));
	while (!ibv_get_async_event(ctx, &event)) {
		known = false;
		for (int q = 0; q < QPS; q++)
			known |= model.qp[q].o && model.qp[q].o == event.element.qp;
		ibv_ack_async_event(&event);
		MUST(known);
	}
	MUST_EQ(memcmp(model.mem, model.want, MEM), 0);
	return true;
}
