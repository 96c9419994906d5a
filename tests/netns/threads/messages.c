/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages under way: posted, completed, received, and looked at; see threads.h. */
#include <errno.h>
#include <string.h>

#include "threads.h"

_Atomic uint64_t progress;

bool other_end_knows(void)
{
	return is_target && (!ops[config.op].receives || ops[config.op].may_lose);
}

bool looks_up(void)
{
	return one_cq || one_channel || other_end_knows();
}

/* ---- sending ---- */

static uint8_t *send_slot(unsigned int q, uint64_t k)
{
	return send_area + (size_t)(q * config.depth + k % config.depth) * config.bytes;
}

static void prepare(struct ibv_send_wr *wr, struct ibv_sge *sge, unsigned int q, uint64_t k,
		    bool signal)
{
	/* the peer's areas lie as ours do */
	const uint64_t there = peer.base + (uint64_t)(send_slot(q, k) - send_area);

	*sge = (struct ibv_sge){ (uintptr_t)send_slot(q, k), config.bytes, mr->lkey };
	*wr = (struct ibv_send_wr){ .wr_id = SEND_ID | stamp(0, q, k),
				    .sg_list = sge,
				    .num_sge = 1,
				    .opcode = ops[config.op].opcode,
				    .send_flags = signal ? IBV_SEND_SIGNALED : 0 };
	switch (config.op) {
	case OP_WRITE:
		wr->wr.rdma.remote_addr = there + (uint64_t)(write_area - memory);
		wr->wr.rdma.rkey = peer.rkey;
		break;
	case OP_READ:
		wr->wr.rdma.remote_addr = there + (uint64_t)(read_area - memory);
		wr->wr.rdma.rkey = peer.rkey;
		break;
	case OP_ADD:
		wr->wr.atomic.remote_addr = peer.base + (uint64_t)((uint8_t *)counter - memory);
		wr->wr.atomic.compare_add = 1;
		wr->wr.atomic.rkey = peer.rkey;
		break;
	case OP_UD:
		wr->wr.ud.ah = ah;
		wr->wr.ud.remote_qpn = peer.qpn[q];
		wr->wr.ud.remote_qkey = QKEY;
		break;
	}
	if (config.op == OP_READ && config.check)
		memset(send_slot(q, k), 0xee, config.bytes);
	else if (config.check && config.op != OP_ADD)
		fill(send_slot(q, k), stamp(is_client, q, k));
}

/* A message that is checked at its completion is signaled. */
static bool looks_at_each(void)
{
	return config.op == OP_ADD || (config.op == OP_READ && config.check);
}

/*
 * Messages of this QP that may be posted: a whole batch, or the last ones, or 0 while there is no
 * room for them.
 */
static uint32_t room(const struct queue *u)
{
	const uint32_t batch = config.depth < 2 * BATCH ? (config.depth + 1) / 2 : BATCH;
	const uint32_t n = config.messages - u->posted < batch ?
				   (uint32_t)(config.messages - u->posted) :
				   batch;

	if (config.depth - (u->posted - atomic_load_explicit(&u->completed, memory_order_acquire)) <
	    n)
		return 0;
	/* a later one's completion may have been taken by a thread that was quicker */
	for (uint32_t i = 0; looks_at_each() && i < n; i++)
		if (atomic_load_explicit(&u->busy[(u->posted + i) % config.depth],
					 memory_order_acquire))
			return 0;
	return n;
}

void post_sends(unsigned int q)
{
	struct queue *u = &queue[q];
	uint32_t n;

	while ((n = room(u))) {
		struct ibv_send_wr wr[BATCH], *bad;
		struct ibv_sge sge[BATCH];

		for (uint32_t i = 0; i < n; i++) {
			prepare(&wr[i], &sge[i], q, u->posted + i, looks_at_each() || i + 1 == n);
			atomic_store_explicit(&u->busy[(u->posted + i) % config.depth], 1,
					      memory_order_relaxed);
			wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		}
		errno = ibv_post_send(u->qp, wr, &bad);
		must(!errno, "ibv_post_send: %s", strerror(errno));
		u->posted += n;
	}
}

static void on_sent(unsigned int q, uint64_t k)
{
	struct queue *u = &queue[q];
	uint64_t before;

	must(q < num_qps && k < config.messages, "a send completion of nothing that was sent");
	if (config.op == OP_READ && config.check)
		check_bytes(send_slot(q, k), stamp(!is_client, q, k % config.depth), "READ");
	if (config.op == OP_ADD) {
		uint64_t value;

		memcpy(&value, send_slot(q, k), 8);
		must(value < num_qps * config.messages, "fetch and add gave %llu",
		     (unsigned long long)value);
		mark(added, value, "the sum", q);
		if (!one_cq && !one_channel)
			must(atomic_exchange(&u->last_added, value + 1) <= value,
			     "QP %u: the sum goes back to %llu", q, (unsigned long long)value);
	}
	atomic_store_explicit(&u->busy[k % config.depth], 0, memory_order_release);
	/* two threads may have taken completions of one QP */
	before = atomic_load(&u->completed);
	while (before < k + 1 &&
	       !atomic_compare_exchange_weak_explicit(&u->completed, &before, k + 1,
						      memory_order_release, memory_order_relaxed))
		;
}

/* ---- receiving ---- */

static unsigned int queue_of(uint32_t qpn)
{
	for (unsigned int q = 0; q < num_qps; q++)
		if (own.qpn[q] == qpn)
			return q;
	die("a completion of QP %#x, which is not ours", qpn);
}

static void on_received(const struct ibv_wc *wc)
{
	const unsigned int slot = (unsigned int)wc->wr_id,
			   q = srq ? queue_of(wc->qp_num) : slot / receives;
	const uint32_t grh = config.op == OP_UD ? GRH : 0;
	const uint8_t *p = recv_area + (size_t)slot * (config.bytes + GRH) + grh;
	struct queue *u = &queue[q];
	uint64_t first, n;

	must(slot < num_qps * receives && wc->qp_num == own.qpn[q],
	     "a receive completion with wr_id %llu, QP %#x", (unsigned long long)wc->wr_id,
	     wc->qp_num);
	must(wc->byte_len == config.bytes + grh, "%u bytes received, not %u", wc->byte_len,
	     config.bytes + grh);
	n = atomic_fetch_add_explicit(&u->received, 1, memory_order_relaxed);
	if (!config.check)
		return;
	memcpy(&first, p, 8);
	must((first >> 40 & 0xffff) == q && (first & 0xffffffffff) < config.messages,
	     "QP %u received %#llx", q, (unsigned long long)first);
	must(first >> 63 == !is_client, "QP %u received what it sent", q);
	mark(u->seen, first & 0xffffffffff, "message", q);
	must(one_cq || one_channel || ops[config.op].may_lose || (first & 0xffffffffff) == n,
	     "QP %u: message %llu came as number %llu", q,
	     (unsigned long long)(first & 0xffffffffff), (unsigned long long)n);
	check_bytes(p, first, "receive");
}

bool has_sent(unsigned int q)
{
	return !sends ||
	       atomic_load_explicit(&queue[q].completed, memory_order_relaxed) == config.messages;
}

bool has_received(unsigned int q)
{
	return !is_target || other_end_knows() ||
	       atomic_load_explicit(&queue[q].received, memory_order_relaxed) == config.messages;
}

int poll_cq(struct ibv_cq *cq)
{
	struct ibv_wc wc[BATCH];
	unsigned int run = 0, slot = 0;
	int n = ibv_poll_cq(cq, BATCH, wc);

	must(n >= 0, "ibv_poll_cq: %d", n);
	for (int i = 0; i < n; i++) {
		must(wc[i].status == IBV_WC_SUCCESS,
		     "wr_id %#llx ended with status %d (%s), vendor_err %u",
		     (unsigned long long)wc[i].wr_id, wc[i].status, ibv_wc_status_str(wc[i].status),
		     wc[i].vendor_err);
		if (wc[i].wr_id & SEND_ID) {
			on_sent((unsigned int)(wc[i].wr_id >> 40 & 0xffff),
				wc[i].wr_id & 0xffffffffff);
			continue;
		}
		on_received(&wc[i]);
		/* neighbours that follow each other are posted again together */
		if (run && (slot + run != wc[i].wr_id || (!srq && wc[i].wr_id % receives == 0))) {
			post_receive(slot, run);
			run = 0;
		}
		if (!run)
			slot = (unsigned int)wc[i].wr_id;
		run++;
	}
	if (run)
		post_receive(slot, run);
	if (n)
		atomic_fetch_add_explicit(&progress, (uint64_t)n, memory_order_relaxed);
	return n;
}
