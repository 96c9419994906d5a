/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See side.h: opening, connecting, the steps of a round. What completions must say is in judge.c.
 */
#include "side.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "ctl.h"
#include "device.h"
#include "judge.h"

#define QKEY	0x11111111
#define DEPTH	(PLAN_MESSAGES + 1) /* and the message that wakes */
#define WAKE_ID 0x3a4e
#define EMPTY_POLLS 500 /* before others are let run */

static uint8_t *slot(uint8_t *area, unsigned int i)
{
	return area + (size_t)i * SLOT_BYTES;
}

/* ---- opening ---- */

#define AREA_BYTES ((size_t)PLAN_MESSAGES * SLOT_BYTES)

static void area_map(uint8_t *area)
{
	must(!mprotect(area, AREA_BYTES, PROT_READ | PROT_WRITE), "no memory");
	memset(area, POISON, AREA_BYTES);
}

static uint8_t *open_area(struct side *s, int access, struct ibv_mr **mr)
{
	const bool whole = s->paging == SIDE_WHOLE_SPACE;
	uint8_t *area = mmap(NULL, AREA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(area != MAP_FAILED, "no memory");
	if (s->paging == SIDE_PINNED)
		area_map(area);
	else
		access |= IBV_ACCESS_ON_DEMAND;
	*mr = ibv_reg_mr(s->pd, whole ? NULL : area, whole ? SIZE_MAX : AREA_BYTES, access);
	must(*mr, "ibv_reg_mr with access %#x: %s", access, strerror(errno));
	if (s->paging != SIDE_PINNED)
		area_map(area);
	return area;
}

static enum ibv_qp_type qp_type(enum plan_transport t)
{
	static const enum ibv_qp_type types[] = {
		[PLAN_RC] = IBV_QPT_RC, [PLAN_UC] = IBV_QPT_UC, [PLAN_UD] = IBV_QPT_UD
	};

	return types[t];
}

static void open_qp(struct side *s)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = PLAN_SGE_MAX,
			 .max_recv_sge = PLAN_SGE_MAX,
			 .max_inline_data = PLAN_INLINE },
		.qp_type = qp_type(s->plan->transport),
		.qp_context = s,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	s->qp = ibv_create_qp(s->pd, &init);
	must(s->qp, "ibv_create_qp: %s", strerror(errno));
	must(init.cap.max_send_wr >= DEPTH && init.cap.max_recv_wr >= DEPTH &&
		     init.cap.max_send_sge >= PLAN_SGE_MAX &&
		     init.cap.max_recv_sge >= PLAN_SGE_MAX &&
		     init.cap.max_inline_data >= PLAN_INLINE,
	     "ibv_create_qp gave less than was asked for");
	if (s->plan->transport == PLAN_UD) {
		mask |= IBV_QP_QKEY;
	} else {
		mask |= IBV_QP_ACCESS_FLAGS;
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				       (s->plan->transport == PLAN_RC ? IBV_ACCESS_REMOTE_READ : 0);
	}
	errno = ibv_modify_qp(s->qp, &attr, mask);
	must(errno == 0, "ibv_modify_qp to INIT: %s", strerror(errno));
}

void side_open(struct side *s, const struct plan *plan, unsigned int number,
	       const struct side_options *o)
{
	memset(s, 0, sizeof(*s));
	s->plan = plan;
	s->number = number;
	s->events = o->events;
	s->gid_index = o->gid_index;
	s->timeout = o->timeout;
	s->retry_cnt = o->retry_cnt;
	s->paging = o->paging;
	for (s->mtu = IBV_MTU_256; s->mtu < IBV_MTU_4096 && 128u << s->mtu < o->path_mtu; s->mtu++)
		;
	s->ctx = open_device(o->device);
	s->pd = ibv_alloc_pd(s->ctx);
	must(s->pd, "ibv_alloc_pd: %s", strerror(errno));
	s->channel = ibv_create_comp_channel(s->ctx);
	must(s->channel, "ibv_create_comp_channel: %s", strerror(errno));
	s->recv_cq = ibv_create_cq(s->ctx, 2 * DEPTH, s, s->channel, 0);
	must(s->recv_cq, "ibv_create_cq: %s", strerror(errno));
	s->send_cq = o->one_cq ? s->recv_cq : ibv_create_cq(s->ctx, DEPTH, s, s->channel, 0);
	must(s->send_cq, "ibv_create_cq: %s", strerror(errno));

	s->tx = open_area(s, IBV_ACCESS_LOCAL_WRITE, &s->tx_mr);
	s->rx = open_area(s, IBV_ACCESS_LOCAL_WRITE, &s->rx_mr);
	s->written = open_area(s, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &s->written_mr);
	s->read = open_area(s, IBV_ACCESS_REMOTE_READ, &s->read_mr);
	open_qp(s);

	errno = ibv_query_gid(s->ctx, 1, o->gid_index, &s->own.gid);
	must(errno == 0, "ibv_query_gid(%d): %s", o->gid_index, strerror(errno));
	s->own.qpn = s->qp->qp_num;
	s->own.psn = (uint32_t)(plan->seed * 0x9e3779b1u + number * 0x7ffff1u) & 0xffffff;
	s->own.write_rkey = s->written_mr->rkey;
	s->own.read_rkey = s->read_mr->rkey;
	s->own.write_addr = (uintptr_t)s->written;
	s->own.read_addr = (uintptr_t)s->read;
}

void side_connect(struct side *s)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = s->mtu,
		.dest_qp_num = s->peer.qpn,
		.rq_psn = s->peer.psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = s->peer.gid,
				      .sgid_index = s->gid_index,
				      .hop_limit = 64 } },
	};
	struct ibv_qp_init_attr init;
	int mask = IBV_QP_STATE;

	if (s->plan->transport != PLAN_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (s->plan->transport == PLAN_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	errno = ibv_modify_qp(s->qp, &attr, mask);
	must(errno == 0, "ibv_modify_qp to RTR: %s", strerror(errno));
	if (s->plan->transport == PLAN_UD) {
		s->ah = ibv_create_ah(s->pd, &attr.ah_attr);
		must(s->ah, "ibv_create_ah: %s", strerror(errno));
	}

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = s->own.psn;
	attr.timeout = s->timeout;
	attr.retry_cnt = s->retry_cnt;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 4;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (s->plan->transport == PLAN_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	errno = ibv_modify_qp(s->qp, &attr, mask);
	must(errno == 0, "ibv_modify_qp to RTS: %s", strerror(errno));

	errno = ibv_query_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU, &init);
	must(errno == 0, "ibv_query_qp: %s", strerror(errno));
	must(attr.qp_state == IBV_QPS_RTS && s->qp->state == IBV_QPS_RTS, "the QP is not in RTS");
	must(s->plan->transport == PLAN_UD || attr.path_mtu == s->mtu,
	     "the QP's path MTU is another than was set");
}

static void must_end(int rc, const char *what)
{
	must(rc == 0, "%s: %s", what, strerror(rc));
}

void side_close(struct side *s)
{
	if (s->ah)
		must_end(ibv_destroy_ah(s->ah), "ibv_destroy_ah");
	must_end(ibv_destroy_qp(s->qp), "ibv_destroy_qp");
	if (s->send_cq != s->recv_cq)
		must_end(ibv_destroy_cq(s->send_cq), "ibv_destroy_cq");
	must_end(ibv_destroy_cq(s->recv_cq), "ibv_destroy_cq");
	must_end(ibv_dereg_mr(s->tx_mr), "ibv_dereg_mr");
	must_end(ibv_dereg_mr(s->rx_mr), "ibv_dereg_mr");
	must_end(ibv_dereg_mr(s->written_mr), "ibv_dereg_mr");
	must_end(ibv_dereg_mr(s->read_mr), "ibv_dereg_mr");
	must_end(ibv_destroy_comp_channel(s->channel), "ibv_destroy_comp_channel");
	must_end(ibv_dealloc_pd(s->pd), "ibv_dealloc_pd");
	must_end(ibv_close_device(s->ctx), "ibv_close_device");
	munmap(s->tx, AREA_BYTES);
	munmap(s->rx, AREA_BYTES);
	munmap(s->written, AREA_BYTES);
	munmap(s->read, AREA_BYTES);
}

/* ---- a round ---- */

static unsigned int sges(struct ibv_sge *sge, uint8_t *base, const struct span *spans,
			 unsigned int n, uint32_t lkey)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)base + spans[i].offset,
					   .length = spans[i].len,
					   .lkey = lkey };
	return n;
}

static void post_receives(struct side *s)
{
	struct ibv_recv_wr wr[PLAN_MESSAGES], *bad;
	struct ibv_sge sge[PLAN_MESSAGES][PLAN_SGE_MAX];
	unsigned int i, n = 0;

	for (i = 0; i < s->num_theirs; i++) {
		const struct message *m = &s->theirs[i];

		if (!op_takes_receive(m->op))
			continue;
		wr[n] = (struct ibv_recv_wr){ .wr_id = recv_id(s->round, i),
					      .sg_list = sge[n],
					      .next = NULL };
		wr[n].num_sge = sges(sge[n], slot(s->rx, i), m->recv, m->num_recv, s->rx_mr->lkey);
		if (n)
			wr[n - 1].next = &wr[n];
		n++;
	}
	if (!n)
		return;
	errno = ibv_post_recv(s->qp, wr, &bad);
	must(errno == 0, "ibv_post_recv of %u: %s", n, strerror(errno));
}

static void arm(struct ibv_cq *cq)
{
	errno = ibv_req_notify_cq(cq, 0);
	must(errno == 0, "ibv_req_notify_cq: %s", strerror(errno));
}

static void arm_both(struct side *s)
{
	arm(s->recv_cq);
	if (s->send_cq != s->recv_cq)
		arm(s->send_cq);
}

void side_prepare(struct side *s, uint32_t round)
{
	unsigned int i;

	s->round = round;
	s->num_mine = plan_round(s->plan, round, s->number, s->mine);
	s->num_theirs = plan_round(s->plan, round, !s->number, s->theirs);
	s->next_send = s->next_recv = s->num_receives = 0;
	for (i = 0; i < s->num_mine; i++)
		if (s->mine[i].op != PLAN_READ)
			slot_fill(slot(s->tx, i), s->mine[i].local, s->mine[i].num_local, 0,
				  &s->mine[i]);
	for (i = 0; i < s->num_theirs; i++) {
		const struct message *m = &s->theirs[i];
		struct span whole = { m->remote_offset, m->len };

		if (m->op == PLAN_READ)
			slot_fill(slot(s->read, i), &whole, 1, 0, m);
		s->num_receives += op_takes_receive(m->op);
	}
	if (s->events)
		arm_both(s);
	if (!plan_is_late(s->plan, round))
		post_receives(s);
}

static void make_request(struct side *s, unsigned int i, struct ibv_send_wr *wr,
			 struct ibv_sge *sge)
{
	static const enum ibv_wr_opcode opcodes[PLAN_OPS] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
							      IBV_WR_RDMA_WRITE,
							      IBV_WR_RDMA_WRITE_WITH_IMM,
							      IBV_WR_RDMA_READ };
	const struct message *m = &s->mine[i];
	uint64_t offset = (uint64_t)i * SLOT_BYTES + m->remote_offset;

	memset(wr, 0, sizeof(*wr));
	wr->wr_id = send_id(s->round, i);
	wr->sg_list = sge;
	/*
	 * Inline data needs no memory region: an lkey that no one gave out proves that it is not
	 * looked at.
	 */
	wr->num_sge = sges(sge, slot(s->tx, i), m->local, m->num_local,
			   m->is_inline ? 0xdeadbeef : s->tx_mr->lkey);
	wr->opcode = opcodes[m->op];
	wr->send_flags = (m->is_signaled ? IBV_SEND_SIGNALED : 0) |
			 (m->is_inline ? IBV_SEND_INLINE : 0) |
			 (m->is_solicited ? IBV_SEND_SOLICITED : 0);
	if (op_has_imm(m->op))
		wr->imm_data = m->imm;
	if (s->plan->transport == PLAN_UD) {
		wr->wr.ud.ah = s->ah;
		wr->wr.ud.remote_qpn = s->peer.qpn;
		wr->wr.ud.remote_qkey = QKEY;
	} else if (m->op == PLAN_READ) {
		wr->wr.rdma.remote_addr = s->peer.read_addr + offset;
		wr->wr.rdma.rkey = s->peer.read_rkey;
	} else if (m->op == PLAN_WRITE || m->op == PLAN_WRITE_IMM) {
		wr->wr.rdma.remote_addr = s->peer.write_addr + offset;
		wr->wr.rdma.rkey = s->peer.write_rkey;
	}
}

void side_post(struct side *s)
{
	struct ibv_send_wr wr[PLAN_MESSAGES], *bad;
	struct ibv_sge sge[PLAN_MESSAGES][PLAN_SGE_MAX];
	unsigned int i, k;

	for (i = 0; i < s->num_mine; i++) {
		make_request(s, i, &wr[i], sge[i]);
		if (i)
			wr[i - 1].next = &wr[i];
	}
	errno = ibv_post_send(s->qp, wr, &bad);
	must(errno == 0, "ibv_post_send of %u: %s", s->num_mine, strerror(errno));
	/*
	 * Inline data was copied by the call: later changes of the buffer must not matter.
	 */
	for (i = 0; i < s->num_mine; i++)
		for (k = 0; s->mine[i].is_inline && k < s->mine[i].num_local; k++)
			memset(slot(s->tx, i) + s->mine[i].local[k].offset, 0x5a,
			       s->mine[i].local[k].len);
	if (plan_is_late(s->plan, s->round))
		post_receives(s);
}

static bool round_is_complete(const struct side *s)
{
	unsigned int i, receives = 0;

	for (i = 0; i < s->next_recv; i++)
		receives += op_takes_receive(s->theirs[i].op);
	return s->next_send == s->num_mine && receives == s->num_receives;
}

static bool poll_once(struct side *s, struct ibv_cq *cq)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(cq, 4, wc), i;

	must(n >= 0, "ibv_poll_cq: %d", n);
	for (i = 0; i < n; i++)
		judge(s, cq, &wc[i]);
	return n > 0;
}

static bool poll_both(struct side *s)
{
	bool some = poll_once(s, s->recv_cq);

	if (s->send_cq != s->recv_cq)
		some |= poll_once(s, s->send_cq);
	return some;
}

/* Sleep until the channel has an event, take and acknowledge it. */
static void take_event(struct side *s)
{
	struct pollfd pfd = { .fd = s->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	/*
	 * poll(2) works on the channel's descriptor: it must become readable for the event that
	 * ibv_get_cq_event returns.
	 */
	must(poll(&pfd, 1, WAIT_MS) == 1,
	     "round %u: no completion event in %d ms (%u of %u sends, %u of %u requests of the "
	     "peer done)",
	     s->round, WAIT_MS, s->next_send, s->num_mine, s->next_recv, s->num_theirs);
	must(ibv_get_cq_event(s->channel, &cq, &context) == 0, "ibv_get_cq_event: %s",
	     strerror(errno));
	must(context == s && (cq == s->send_cq || cq == s->recv_cq),
	     "ibv_get_cq_event gave a CQ that is not ours");
	ibv_ack_cq_events(cq, 1);
	s->events_taken++;
}

void side_complete(struct side *s)
{
	uint64_t end = now_ms() + WAIT_MS;
	unsigned int empty = 0;

	/*
	 * Armed before anything was posted, and a round has at least one completion: so there is an
	 * event, however fast it all went.
	 */
	if (s->events)
		take_event(s);
	while (!round_is_complete(s)) {
		if (poll_both(s))
			continue;
		must(now_ms() < end,
		     "round %u: no completion in %d ms (%u of %u sends, %u of %u requests of the "
		     "peer done)",
		     s->round, WAIT_MS, s->next_send, s->num_mine, s->next_recv, s->num_theirs);
		if (!s->events) {
			/* the peer, or a cable process, may wait for this processor */
			if (!(++empty % EMPTY_POLLS))
				sched_yield();
			continue;
		}
		/* Arm, look once more (what came before arming raises no event), then sleep. */
		arm_both(s);
		if (!poll_both(s) && !round_is_complete(s))
			take_event(s);
	}
	must(!poll_both(s), "round %u: a completion too many", s->round);
}

static void must_hold(const struct side *s, const char *what, uint8_t *area, unsigned int i,
		      const struct span *spans, unsigned int n, uint32_t skip,
		      const struct message *m)
{
	uint64_t end = now_ms() + 5000;
	uint32_t where = 0;

	while (!slot_is_right(slot(area, i), spans, n, skip, m, &where)) {
		/* A WRITE over UC completes for its requester before it has arrived. */
		if (s->plan->transport == PLAN_UC && m->op == PLAN_WRITE && now_ms() < end)
			continue;
		die("round %u, %s %u of %u bytes: %s is wrong from offset %u of its slot on (%#x "
		    "there)",
		    s->round, op_names[m->op], i, m->len, what, where, slot(area, i)[where]);
	}
}

/* Bytes just seen to be poison stay poison: only the messages' bytes are poisoned again. */
void side_verify(struct side *s)
{
	struct message nothing = { .len = 0 };
	unsigned int i;

	for (i = 0; i < s->num_theirs; i++) {
		const struct message *m = &s->theirs[i];
		struct span whole = { m->remote_offset, m->len };
		bool is_write = m->op == PLAN_WRITE || m->op == PLAN_WRITE_IMM;
		bool is_send = m->op == PLAN_SEND || m->op == PLAN_SEND_IMM;
		bool is_ud = s->plan->transport == PLAN_UD;

		must_hold(s, "the receive buffer", s->rx, i, m->recv, m->num_recv,
			  is_ud ? PLAN_GRH : 0, is_send ? m : &nothing);
		must_hold(s, "the WRITE's target", s->written, i, &whole, 1, 0,
			  is_write ? m : &nothing);
		must_hold(s, "the READ's source", s->read, i, &whole, 1, 0,
			  m->op == PLAN_READ ? m : &nothing);
		if (is_ud)
			judge_grh(s, slot(s->rx, i), m);
		slot_wipe(slot(s->rx, i), m->recv, m->num_recv);
		slot_wipe(slot(s->written, i), &whole, 1);
		slot_wipe(slot(s->read, i), &whole, 1);
		s->bytes += m->len;
		s->messages++;
	}
	for (i = 0; i < s->num_mine; i++) {
		const struct message *m = &s->mine[i];

		if (!m->is_inline)
			must_hold(s, "the requester's buffer", s->tx, i, m->local, m->num_local, 0,
				  m);
		slot_wipe(slot(s->tx, i), m->local, m->num_local);
	}
}

/* ---- sleeping ---- */

static uint64_t cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000ull + u.ru_utime.tv_usec +
	       u.ru_stime.tv_usec;
}

static uint64_t wall_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ull + ts.tv_nsec / 1000;
}

void side_sleep_prepare(struct side *s)
{
	struct ibv_sge sge = { .addr = (uintptr_t)s->rx,
			       .length = 64 + PLAN_GRH,
			       .lkey = s->rx_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = WAKE_ID, .sg_list = &sge, .num_sge = 1 }, *bad;

	arm(s->recv_cq);
	errno = ibv_post_recv(s->qp, &wr, &bad);
	must(errno == 0, "ibv_post_recv: %s", strerror(errno));
}

static void judge_wake(const struct ibv_wc *wc, enum ibv_wc_opcode opcode)
{
	must(wc->status == IBV_WC_SUCCESS, "the message that wakes: %s",
	     ibv_wc_status_str(wc->status));
	must(wc->wr_id == WAKE_ID && wc->opcode == opcode,
	     "the message that wakes: wr_id %#llx, opcode %d", (unsigned long long)wc->wr_id,
	     wc->opcode);
}

void side_sleep(struct side *s, uint64_t *wall, uint64_t *cpu)
{
	uint64_t w = wall_us(), c = cpu_us();
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int n = 0;

	/*
	 * An older arming may have left an event: only the message's event counts. Arm before
	 * polling, or it is missed.
	 */
	do {
		must(ibv_get_cq_event(s->channel, &cq, &context) == 0, "ibv_get_cq_event: %s",
		     strerror(errno));
		ibv_ack_cq_events(cq, 1);
		if (cq != s->recv_cq)
			continue;
		arm(cq);
		n = ibv_poll_cq(cq, 1, &wc);
	} while (n == 0);
	must(n == 1, "ibv_poll_cq: %d", n);
	judge_wake(&wc, IBV_WC_RECV);
	*wall = wall_us() - w;
	*cpu = cpu_us() - c;
}

void side_wake(struct side *s)
{
	struct ibv_sge sge = { .addr = (uintptr_t)s->tx, .length = 64, .lkey = s->tx_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = WAKE_ID,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED },
			   *bad;
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	if (s->plan->transport == PLAN_UD) {
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = s->peer.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	errno = ibv_post_send(s->qp, &wr, &bad);
	must(errno == 0, "ibv_post_send: %s", strerror(errno));
	while ((n = ibv_poll_cq(s->send_cq, 1, &wc)) == 0)
		must(now_ms() < end, "no completion of the message that wakes in %d ms", WAIT_MS);
	must(n == 1, "ibv_poll_cq: %d", n);
	judge_wake(&wc, IBV_WC_SEND);
}
