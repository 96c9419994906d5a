/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The application of the simulated machine; see app.h. */
#define _GNU_SOURCE
#include "app.h"

#include <stdlib.h>
#include <string.h>

#include "../../user/os/kernel.h"

#define PORTS_MAX 2
#define CQS_MAX	  64

static struct port *ports[PORTS_MAX];
static u32 num_ports;
static struct app_cq *cqs[CQS_MAX];

struct port *app_port(u32 number)
{
	return ports[number];
}

void app_each_cq(void (*fn)(struct app_cq *cq, void *arg), void *arg)
{
	for (u32 i = 0; i < CQS_MAX; i++)
		if (cqs[i])
			fn(cqs[i], arg);
}

static void *new_aligned(size_t bytes)
{
	const size_t rounded = (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	void *p = aligned_alloc(CACHE_LINE, rounded);

	sim_check(p);
	return memset(p, 0, rounded);
}

void app_ports_open(u32 n)
{
	struct netdev dev;

	num_ports = n;
	for (u32 i = 0; i < n; i++) {
		made_netdev(i, &dev);
		sim_check(port_get(&dev, &ports[i]) == 0);
	}
}

void app_ports_close(void)
{
	for (u32 i = 0; i < num_ports; i++)
		port_put(ports[i]);
	num_ports = 0;
}

/* ---- channels and their events: as user/verbs/events.c ---- */

/* Under the channel's lock. */
static void channel_raise(struct app_channel *ch)
{
	port_channel_raise(ch->pc);
	ch->raised = true;
}

static void on_event(const struct engine_event *event)
{
	struct app_cq *cq = event->cq ? event->cq->owner : NULL;
	struct app_channel *ch = cq ? cq->channel : NULL;

	if (event->type != EVENT_COMPLETION) {
		sim_check(event->type == EVENT_COMM_EST);
		return;
	}
	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	sched_trace("event of CQ %u", cq->cq.index);
	cq->events++;
	/* at most one event for each arming, plus the events that were provoked */
	if (cq->events > cq->armings + ch->extras)
		sched_fail("an event too many of CQ %u: %u of %u armings", cq->cq.index,
			   cq->events, cq->armings);
	if (!cq->events_pending++) {
		cq->event_next = NULL;
		*ch->tail = cq;
		ch->tail = &cq->event_next;
	}
	channel_raise(ch);
	pthread_mutex_unlock(&ch->lock);
}

void app_begin(void)
{
	shards_set_event_handler(on_event);
	memset(cqs, 0, sizeof(cqs));
}

struct app_channel *app_channel_new(void)
{
	struct app_channel *ch = calloc(1, sizeof(*ch));

	sim_check(ch && port_channel_create(&ch->pc) == 0);
	pthread_mutex_init(&ch->lock, NULL);
	ch->tail = &ch->head;
	return ch;
}

void app_channel_free(struct app_channel *ch)
{
	port_channel_destroy(ch->pc);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
}

static struct app_cq *channel_next(struct app_channel *ch)
{
	struct app_cq *cq;

	pthread_mutex_lock(&ch->lock);
	cq = ch->head;
	if (cq) {
		ch->head = cq->event_next;
		if (!ch->head)
			ch->tail = &ch->head;
		if (--cq->events_pending) {
			cq->event_next = NULL;
			*ch->tail = cq;
			ch->tail = &cq->event_next;
		}
		if (!ch->head && ch->raised) {
			port_channel_clear(ch->pc);
			ch->raised = false;
		}
	}
	pthread_mutex_unlock(&ch->lock);
	return cq;
}

/* Raises an event without a completion, which takes no arming away. */
static void get_extra(struct app_channel *ch)
{
	u32 pushed[CQS_MAX] = { 0 };

	for (u32 i = 0; i < CQS_MAX; i++)
		if (cqs[i] && cqs[i]->channel == ch) {
			pushed[i] = cq_next_index(&cqs[i]->cq) + 1;
			if (!cq_is_armed(&cqs[i]->cq))
				pushed[i] = 0;
		}
	port_channel_extra(ch->pc);
	for (u32 i = 0; i < CQS_MAX; i++)
		if (pushed[i] && !cq_is_armed(&cqs[i]->cq) &&
		    pushed[i] == cq_next_index(&cqs[i]->cq) + 1)
			sched_fail("CQ %u was armed, and nothing has come", cqs[i]->cq.index);
}

/* Returns a CQ whose event an engine took and which is not reported yet, or NULL. */
static struct app_cq *find_unreported(const struct app_channel *ch)
{
	for (u32 i = 0; i < CQS_MAX; i++)
		if (cqs[i] && cqs[i]->channel == ch && cqs[i]->outstanding &&
		    !cqs[i]->events_pending && !cq_is_armed(&cqs[i]->cq))
			return cqs[i];
	return NULL;
}

struct app_cq *app_get_event(struct app_channel *ch, bool block)
{
	struct app_cq *cq, *unreported;
	int err;

	for (;;) {
		cq = channel_next(ch);
		if (cq)
			break;
		err = port_channel_wait(ch->pc, block);
		cq = channel_next(ch);
		if (cq)
			break;
		if (err > 0) {
			unreported = find_unreported(ch);
			port_channel_await_reports(ch->pc);
			cq = channel_next(ch);
			if (cq)
				break;
			if (unreported)
				sched_fail("an extra event, before that of CQ %u is reported",
					   unreported->cq.index);
			ch->extras++;
			get_extra(ch);
		} else if (!block) {
			return NULL;
		}
	}
	port_channel_settle(ch->pc);
	cq->outstanding = false;
	return cq;
}

static void forget_events(struct app_cq *cq)
{
	struct app_channel *ch = cq->channel;
	struct app_cq **at = &ch->head;

	pthread_mutex_lock(&ch->lock);
	if (cq->events_pending) {
		while (*at != cq)
			at = &(*at)->event_next;
		*at = cq->event_next;
		if (!*at)
			ch->tail = at;
		if (!ch->head && ch->raised) {
			port_channel_clear(ch->pc);
			ch->raised = false;
		}
	}
	pthread_mutex_unlock(&ch->lock);
}

/* ---- CQs ---- */

struct app_cq *app_cq_new(struct app_thread *t, u32 port, u32 vector)
{
	struct app_cq *cq = new_aligned(sizeof(*cq));
	u32 i = 0;

	sim_check(cq_init(&cq->cq, 256) == 0);
	cq->port = ports[port];
	cq->port_number = port;
	cq->channel = t->channel;
	cq->thread = t;
	cq->vector = vector;
	cq->cq.owner = cq;
	cq->cq.with_channel = t->channel != NULL;
	sim_check(port_cq_add(cq->port, &cq->cq, t->channel ? t->channel->pc : NULL, vector) == 0);
	sim_check(t->num_cqs < APP_CQS);
	t->cq[t->num_cqs++] = cq;
	while (cqs[i])
		sim_check(++i < CQS_MAX);
	cqs[i] = cq;
	return cq;
}

void app_cq_free(struct app_cq *cq)
{
	struct app_thread *t = cq->thread;

	for (u32 i = 0; i < CQS_MAX; i++)
		if (cqs[i] == cq)
			cqs[i] = NULL;
	for (u32 i = 0; i < t->num_cqs; i++)
		if (t->cq[i] == cq)
			t->cq[i--] = t->cq[--t->num_cqs];
	port_cq_remove(cq->port, &cq->cq);
	if (cq->channel)
		forget_events(cq);
	cq_free(&cq->cq);
	free(cq);
}

void app_arm(struct app_cq *cq)
{
	/* arming after polling completions pushed after the last arming yields two events */
	cq->owed += cq->armings && (s32)(cq->popped - cq->armed_at) > 0;
	cq->armings++;
	cq->outstanding = true;
	sched_trace("arms CQ %u", cq->cq.index);
	port_cq_arm(cq->port, &cq->cq, false);
	cq->armed_at = cq_next_index(&cq->cq);
}

static void arm(struct app_cq *cq, bool again)
{
	/* its event is pending; arming again is allowed, and counts again if it was just raised */
	if (!cq->outstanding || again || !rng_below(sched_rng(), 4))
		app_arm(cq);
}

/* ---- connections ---- */

#define SEND_AT	 (APP_RECEIVES * APP_MESSAGE_MAX)
#define SENDS	 32u /* more than any window */
#define OTHER_AT (SEND_AT + SENDS * APP_MESSAGE_MAX)
#define END_BYTES (OTHER_AT + APP_MESSAGE_MAX)

static struct app_end *end_new(const struct app_connect *c, u32 side)
{
	struct app_end *e = calloc(1, sizeof(*e));
	struct qp_init init = { .transport = XROCE_RC, .max_send_wr = 64, .max_send_sge = 1,
				.max_recv_wr = APP_RECEIVES, .max_recv_sge = 1,
				.pd = APP_PD, .send_cq = &c->send[side]->cq,
				.recv_cq = &c->recv[side]->cq };
	const u32 vector = c->recv[side]->vector;

	sim_check(e);
	e->port = ports[c->port[side]];
	e->port_number = c->port[side];
	e->send = c->send[side];
	e->recv = c->recv[side];
	e->thread = c->thread[side];
	e->to_send = c->requests[side];
	e->window = c->window;
	e->bytes = malloc(END_BYTES);
	sim_check(e->bytes);
	port_lock(e->port);
	sim_check(mr_add(engine_mr_table(port_engine(e->port)), APP_PD, e->bytes, END_BYTES,
			 (u64)(uintptr_t)e->bytes,
			 MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ, &e->mr) == 0);
	sim_check(qp_create(port_engine_for(e->port, vector), &init, &e->qp) == 0);
	shards_steer(port_shards(e->port), e->qp);
	port_unlock(e->port);
	return e;
}

static struct path path_between(u32 from, u32 to)
{
	struct path p = { .hop_limit = 64, .udp_sport = ROCE_UDP_SPORT_MIN + 17 };

	nic_mac(from, p.smac);
	nic_mac(to, p.dmac);
	p.local = made_gid(from);
	p.peer = made_gid(to);
	return p;
}

static void modify(struct app_end *e, const struct qp_attr *attr, u32 mask)
{
	port_lock(e->port);
	sim_check(qp_modify(port_engine(e->port), e->qp, attr, mask, sched_now_ns()) == 0);
	shards_steer(port_shards(e->port), e->qp);
	shards_run_locked(port_shards(e->port));
	port_unlock(e->port);
}

static void end_connect(struct app_end *e, const struct app_connect *c)
{
	struct qp_attr a = { .state = QPS_INIT, .port = 1,
			     .access = MR_REMOTE_WRITE | MR_REMOTE_READ };

	modify(e, &a, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
	a = (struct qp_attr){ .state = QPS_RTR, .path = path_between(e->port_number,
								      e->peer->port_number),
			      .path_mtu = c->path_mtu, .dest_qpn = e->peer->qp->qpn,
			      .rq_psn = 100, .max_dest_rd_atomic = 4, .min_rnr_timer = 1 };
	modify(e, &a, QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
			      QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	a = (struct qp_attr){ .state = QPS_RTS, .sq_psn = 100, .timeout = c->timeout,
			      .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4 };
	modify(e, &a, QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
			      QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC);
}

static void end_give(struct app_end *e)
{
	struct app_thread *t = e->thread;

	sim_check(t->num_ends < APP_ENDS);
	t->end[t->num_ends++] = e;
}

void app_connect(const struct app_connect *c, struct app_end *ends[2])
{
	for (u32 i = 0; i < 2; i++)
		ends[i] = end_new(c, i);
	for (u32 i = 0; i < 2; i++) {
		ends[i]->peer = ends[!i];
		/* a post determines how many requests take a receive: a request without one is
		 * followed by one with a receive */
		ends[i]->to_receive = c->requests[!i];
	}
	for (u32 i = 0; i < 2; i++)
		end_connect(ends[i], c);
	for (u32 i = 0; i < 2; i++)
		end_give(ends[i]);
}

void app_end_free(struct app_end *e)
{
	struct app_thread *t = e->thread;

	for (u32 i = 0; i < t->num_ends; i++)
		if (t->end[i] == e)
			t->end[i--] = t->end[--t->num_ends];
	port_lock(e->port);
	port_destroy_qp(e->port, e->qp);
	mr_remove(engine_mr_table(port_engine(e->port)), e->mr);
	port_unlock(e->port);
	free(e->bytes);
	free(e);
}

/* ---- work: message n of an end ---- */

/* Both ends draw the same message. */
static struct rng message_rng(const struct app_end *from, u32 n)
{
	return (struct rng){ from->qp->qpn * 1000003ull + n };
}

static u32 message_length(const struct app_end *from, u32 n)
{
	struct rng r = message_rng(from, n);
	const u32 kind = rng_below(&r, 16);

	return kind < 11 ? rng_below(&r, 200) : kind < 15 ? rng_below(&r, 2000) :
							    rng_below(&r, APP_MESSAGE_MAX);
}

static enum wr_opcode message_opcode(const struct app_end *from, u32 n)
{
	struct rng r = message_rng(from, n + (1u << 20));
	const u32 kind = rng_below(&r, 16);

	return kind < 11 ? WR_SEND_WITH_IMM : kind < 14 ? WR_WRITE_WITH_IMM :
	       kind == 14			      ? WR_READ :
							WR_WRITE;
}

static bool takes_receive(enum wr_opcode opcode)
{
	return opcode == WR_SEND_WITH_IMM || opcode == WR_WRITE_WITH_IMM;
}

static u8 message_byte(u32 n, u32 i)
{
	return (u8)(n * 59 + i * 167 + (i >> 8));
}

static void message_fill(u8 *to, u32 n, u32 len)
{
	for (u32 i = 0; i < len; i++)
		to[i] = message_byte(n, i);
}

static void message_check(const u8 *bytes, u32 n, u32 len)
{
	for (u32 i = 0; i < len; i++)
		if (bytes[i] != message_byte(n, i))
			sched_fail("byte %u of message %u is another's", i, n);
}

bool app_post_receives(struct app_end *e)
{
	struct recv_wqe *wqe;
	u32 n = 0;

	while (e->receives < e->to_receive && e->receives - e->received < APP_RECEIVES) {
		wqe = rq_slot(&e->qp->rq, n);
		if (!wqe)
			break;
		wqe->wr_id = e->receives;
		wqe->num_sge = 1;
		wqe->sge[0] = (struct sge){
			.addr = (u64)(uintptr_t)e->bytes +
				e->receives % APP_RECEIVES * APP_MESSAGE_MAX,
			.length = APP_MESSAGE_MAX, .lkey = e->mr->key };
		e->receives++;
		n++;
	}
	if (n)
		rq_publish(&e->qp->rq, n);
	return n;
}

/* WRITEs and READs have their own area at either end. */
static void fill_wqe(struct app_end *e, struct send_wqe *wqe, u32 n)
{
	const enum wr_opcode opcode = message_opcode(e, n);
	u32 len = message_length(e, n);

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = n;
	wqe->opcode = (u8)opcode;
	wqe->flags = WR_SIGNALED;
	wqe->imm = htobe32(n);
	wqe->num_sge = 1;
	wqe->length = len;
	wqe->remote_addr = (u64)(uintptr_t)e->peer->bytes + OTHER_AT;
	wqe->rkey = e->peer->mr->key;
	wqe->sge[0] = (struct sge){ .addr = (u64)(uintptr_t)e->bytes + OTHER_AT, .length = len,
				    .lkey = e->mr->key };
	if (opcode != WR_READ) {
		wqe->sge[0].addr += (u64)SEND_AT + n % SENDS * APP_MESSAGE_MAX - OTHER_AT;
		message_fill((u8 *)(uintptr_t)wqe->sge[0].addr, n, len);
	}
	sim_check(send_wqe_check(e->qp, wqe) == 0);
}

bool app_post(struct app_end *e)
{
	u32 n, max = e->window - (e->posted - e->completed);

	if (e->posted == e->to_send || !max)
		return false;
	max = min_u32(max, e->to_send - e->posted);
	max = 1 + rng_below(sched_rng(), max);
	sq_begin(&e->qp->sq);
	for (n = 0; n < max; n++) {
		struct send_wqe *wqe = sq_slot(&e->qp->sq, n);

		if (!wqe)
			break;
		fill_wqe(e, wqe, e->posted + n);
	}
	if (!n)
		return false;
	e->posted += n;
	sq_publish(&e->qp->sq, n);
	sched_trace("posts %u on QP %x, to %u", n, e->qp->qpn, e->posted);
	shards_post(port_shards(e->port), e->qp);
	return true;
}

static struct app_end *end_of(const struct app_thread *t, u32 qpn)
{
	for (u32 i = 0; i < t->num_ends; i++)
		if (t->end[i]->qp->qpn == qpn)
			return t->end[i];
	sched_fail("a completion of a QP that is not the thread's");
}

static void take_receive(struct app_end *e, const struct cqe *c)
{
	const u32 n = be32toh(c->imm);

	sim_check(c->wr_id == e->received);
	/* in order: the messages between take no receive */
	for (u32 i = e->told; i < n; i++)
		sim_check(!takes_receive(message_opcode(e->peer, i)));
	sim_check(n >= e->told && takes_receive(message_opcode(e->peer, n)));
	sim_check(c->byte_len == message_length(e->peer, n));
	if (message_opcode(e->peer, n) == WR_SEND_WITH_IMM)
		message_check(e->bytes + e->received % APP_RECEIVES * APP_MESSAGE_MAX, n,
			      c->byte_len);
	memset(e->bytes + e->received % APP_RECEIVES * APP_MESSAGE_MAX, 0xee, 64);
	e->told = n + 1;
	e->received++;
}

static void take_completion(struct app_thread *t, const struct cqe *c)
{
	struct app_end *e = end_of(t, c->qpn);

	if (c->status != CQE_SUCCESS)
		sched_fail("QP %x: a completion with status %u, vendor error %u", c->qpn,
			   c->status, c->vendor_err);
	if (c->opcode & CQE_RECV) {
		take_receive(e, c);
		return;
	}
	sim_check(c->wr_id == e->completed);
	e->completed++;
}

/* ibv_poll_cq(): true if there was any. */
static bool poll_cq(struct app_thread *t, struct app_cq *cq)
{
	u32 left = 1 + rng_below(sched_rng(), 16);
	const struct cqe *c = cq_peek(&cq->cq);
	bool any = false;

	if (!c) {
		shards_poll_cq(port_shards(cq->port), &cq->cq);
		c = cq_peek(&cq->cq);
	}
	for (; c; c = --left ? cq_peek(&cq->cq) : NULL) {
		take_completion(t, c);
		cq_pop(&cq->cq);
		cq->popped++;
		any = true;
	}
	return any;
}

bool app_poll(struct app_thread *t)
{
	bool any = false;

	for (u32 i = 0; i < t->num_cqs; i++)
		while (poll_cq(t, t->cq[i]))
			any = true;
	return any;
}

/* Returns true if all messages from the peer that take a receive have arrived. */
static bool all_received(const struct app_end *e)
{
	for (u32 i = e->told; i < e->to_receive; i++)
		if (takes_receive(message_opcode(e->peer, i)))
			return false;
	return true;
}

static bool all_done(const struct app_thread *t)
{
	for (u32 i = 0; i < t->num_ends; i++)
		if (t->end[i]->completed != t->end[i]->to_send || !all_received(t->end[i]))
			return false;
	return true;
}

/* ---- threads ---- */

static void compute(const struct app_thread *t)
{
	u64 ns = rng_next(sched_rng()) % (t->compute_max_ns + 1);

	/* mostly short; longer while idle, as a run has a limited number of steps */
	ns >>= rng_below(sched_rng(), 12);
	sched_sleep("computes", ns + (1ull << min_u32(t->idle, 16)));
}

static u32 draw_again(void)
{
	return rng_below(sched_rng(), 8) ? 1 : 1 + rng_below(sched_rng(), 6);
}

/* Sleeps until there may be an event. Armed CQs have been polled once more. */
static void wait_for_event(struct app_thread *t)
{
	struct pollfd p = { .fd = port_channel_fd(t->channel->pc), .events = POLLIN };
	const bool own = t->mode == APP_OWN_LOOP ||
			 (t->mode == APP_MIXED && rng_below(sched_rng(), 2));

	/* sometimes more often than needed, while others run the engine */
	for (u32 again = draw_again(); again; again--)
		for (u32 i = 0; i < t->num_cqs; i++)
			arm(t->cq[i], again > 1);
	if (app_poll(t))
		return;
	t->waiting = true;
	if (!own)
		app_get_event(t->channel, true);
	else if (kernel_sleep(&p, 1, NSEC_NEVER) > 0 && !app_get_event(t->channel, false))
		sched_fail("%s: a readable descriptor, and no event", t->name);
	t->waiting = false;
}

static void idle(struct app_thread *t)
{
	if (!t->channel || t->mode == APP_POLL ||
	    (t->mode == APP_MIXED && rng_below(sched_rng(), 4) == 0))
		compute(t);
	else
		wait_for_event(t);
}

void app_thread_main(void *thread)
{
	struct app_thread *t = thread;

	machine_takes_signals();
	for (;;) {
		bool did = false;

		for (u32 i = 0; i < t->num_ends; i++) {
			did |= app_post_receives(t->end[i]);
			did |= app_post(t->end[i]);
		}
		/* posted requests leave without a further call */
		if (did && rng_below(sched_rng(), 8) == 0)
			compute(t);
		did |= app_poll(t);
		if (all_done(t))
			break;
		t->idle = did ? 0 : t->idle + 1;
		if (!did)
			idle(t);
		else if (rng_below(sched_rng(), 8) == 0)
			compute(t);
	}
	t->done = true;
	sched_trace("is done");
}
