/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine's frame: creation, choosing the QP that sends next, deadlines, and the receive WQEs of
 * QPs and SRQs. Input is in input.c, events in cq.c, the protocol in requester.c, completer.c,
 * responder.c, reply.c and datagram.c, and the tables that a device's engines share in owner.c.
 */
#include <stdlib.h>

#include "types.h"
#include "credit.h"
#include "internal.h"
#include "recovery.h"
#include "requester.h"
#include "responder.h"
#include "stat.h"
#include "tag.h"

/*
 * Packets that one QP may send in a row before the next QP's turn: enough to reuse its cache lines.
 */
#define BURST_PACKETS 16

int engine_create(const struct engine_config *config, struct engine **out)
{
	struct engine *e = aligned_zero(sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	e->config = *config;
	e->number = config->number;
	icrc_table_init(&e->icrc);
	e->stats = config->stats;
	e->drops = config->drops;
	e->pkeys = config->pkeys ? *config->pkeys : PKEY_TABLE_DEFAULT;
	e->window = config->window_packets ? config->window_packets : ENGINE_WINDOW;
	e->cq_due_ns = NSEC_NEVER;
	atomic_store_explicit(&e->earliest_ns, NSEC_NEVER, memory_order_relaxed);
	err = timers_init(&e->timers) || reorder_init(e) || engine_unknown_make(e) ||
			      faults_init(e) ?
		      -ENOMEM :
										    owner_join(e);
	if (err) {
		faults_free(e);
		free(e->unknown);
		reorder_destroy(e);
		timers_free(&e->timers);
		free(e);
		return err;
	}
	*out = e;
	return 0;
}

void engine_destroy(struct engine *e)
{
	owner_leave(e);
	reorder_destroy(e);
	timers_free(&e->timers);
	faults_free(e);
	free(e->unknown);
	free(e);
}

struct mr_table *engine_mr_table(struct engine *e)
{
	return e->mrs;
}

struct qp *engine_find_qp(const struct engine *e, u32 qpn)
{
	struct qp *qp = e->qp[qpn % XROCE_MAX_QP];

	return qp && qp->qpn == qpn ? qp : NULL;
}

/* ---- the QP that sends next ---- */

static struct qp **engine_ready_at(struct engine *e, u32 index)
{
	return &e->ready[index % XROCE_MAX_QP];
}

void engine_ready(struct engine *e, struct qp *qp, u8 what)
{
	if (!qp->ready)
		*engine_ready_at(e, e->ready_tail++) = qp;
	qp->ready |= what;
}

static void engine_unready(struct engine *e, struct qp *qp)
{
	u32 at = e->ready_head;

	if (!qp->ready)
		return;
	while (*engine_ready_at(e, at) != qp)
		at++;
	/* the first takes its slot */
	*engine_ready_at(e, at) = *engine_ready_at(e, e->ready_head);
	e->ready_head++;
	e->burst = 0;
	qp->ready = 0;
}

/* Ends the first QP's turn: it moves to the end if it has more to send, else leaves the list. */
static void engine_next_turn(struct engine *e, struct qp *qp)
{
	if (qp->ready & READY_REQUESTS)
		stat_psns(qp);
	e->ready_head++;
	e->burst = 0;
	if (qp->ready)
		*engine_ready_at(e, e->ready_tail++) = qp;
}

bool engine_has_doorbells(const struct engine *e)
{
	/* pairs with owner_push_doorbell() and owner_report_overrun(): seen here, or by a trylock
	 */
	return atomic_load_explicit(&((struct engine *)e)->doorbells, memory_order_seq_cst) ||
	       atomic_load_explicit(&((struct engine *)e)->overrun, memory_order_seq_cst);
}

void engine_posted(struct engine *e, struct qp *qp)
{
	if (unlikely(qp->tag_matching))
		shared_sends_move(qp);
	if (unlikely(qp_state(qp) == QPS_ERR || qp_state(qp) == QPS_SQE))
		qp_flush(e, qp);
	else
		engine_ready(e, qp, READY_REQUESTS);
	/* the posted WQEs are in the cache, the requester's fields may not be */
	__builtin_prefetch(&qp->req.rtt, 1);
	__builtin_prefetch(&qp->req.header);
}

void engine_detach_qp(struct engine *e, struct qp *qp)
{
	struct qp **p;

	engine_unready(e, qp);
	timer_cancel(e, qp);
	credit_end(e, qp);
	reorder_purge(e, &qp->req.early);
	reorder_purge(e, &qp->resp.early);
	for (p = &e->qp_events; *p; p = &(*p)->event_next)
		if (*p == qp) {
			*p = qp->event_next;
			break;
		}
	qp->event_queued = false;
	qp->events = 0;
}

void engine_forget_qp(struct engine *e, struct qp *qp)
{
	owner_silence_doorbell(e, qp);
	engine_detach_qp(e, qp);
}

static u32 engine_count_output(struct engine *e, u32 len)
{
	e->stats->tx_packets++;
	e->stats->tx_bytes += len;
	return len;
}

static u32 engine_count_output_of(struct engine *e, struct qp *qp, u32 len)
{
	struct xroce_qp_stat *stat = qp->stat;

	/* in this order, or GCC vectorises neighbours: five instructions more per pair */
	if (STAT_SHOWN)
		stat->tx_packets++;
	e->stats->tx_packets++;
	if (STAT_SHOWN)
		stat->tx_bytes += len;
	e->stats->tx_bytes += len;
	if (unlikely(e->notes))
		note_output(e, qp);
	return len;
}

static u32 engine_output_single(struct engine *e, struct qp *qp, u8 *frame, u64 now_ns)
{
	u32 len;

	if (likely(qp->transport == XROCE_UD))
		return datagram_output(e, qp, frame, now_ns);
	len = raw_output(e, qp, frame, now_ns);
	if (!len)
		return 0;
	/* the caller counts the flag as bytes: undone here, so that others need not test for it */
	e->stats->tx_bytes -= ENGINE_RAW;
	if (STAT_SHOWN)
		qp->stat->tx_bytes -= ENGINE_RAW;
	return len | ENGINE_RAW;
}

static u32 engine_output_frame(struct engine *e, u8 *frame, u64 now_ns)
{
	if (unlikely(e->answers.count))
		return engine_count_output(e, credit_answer_output(e, frame));
	while (e->ready_head != e->ready_tail) {
		struct qp *qp = *engine_ready_at(e, e->ready_head);
		u32 len = 0;

		/* nothing for now: an input, a timer or a doorbell makes the QP ready again */
		if (qp->ready & READY_REPLIES) {
			len = reply_output(e, qp, frame, now_ns);
			if (!len)
				qp->ready &= (u8)~READY_REPLIES;
		}
		if (!len && qp->ready & READY_REQUESTS) {
			len = qp->sends_single ? engine_output_single(e, qp, frame, now_ns) :
						 requester_output(e, qp, frame, now_ns);
			if (!len) {
				qp->ready &= (u8)~READY_REQUESTS;
				stat_psns(qp);
			}
		}
		if (len)
			e->burst++;
		if (!qp->ready || e->burst >= BURST_PACKETS)
			engine_next_turn(e, qp);
		if (!len)
			continue;
		return engine_count_output_of(e, qp, len);
	}
	return 0;
}

u32 engine_output(struct engine *e, u8 *frame, u32 room, u64 now_ns)
{
	u32 len;

	if (room < PACKET_FRAME_MAX)
		return 0;
	e->now_ns = now_ns;
	owner_look_at_doorbells(e);
	len = engine_output_frame(e, frame, now_ns);
	engine_take_arms(e);
	return len;
}

/* ---- deadlines of QPs ---- */

/*
 * In separate arrays, so that a QP that is not due is not touched.
 *
 * Most deadlines are a constant time from now, so later than all before: they are appended to a
 * line, which stays sorted by itself. The others go to a binary heap. An entry is moved only when
 * its deadline becomes earlier. A postponed one stays where it is, and is moved when its time
 * comes; so the usual case (each ACK postpones the time-out) is one store.
 */

static u32 slot_of(const struct qp *qp)
{
	return qp->qpn % XROCE_MAX_QP;
}

/* The line. */
#define IN_LINE	  (1u << 31)
#define LINE_SIZE (2 * XROCE_MAX_QP) /* some entries become empty before their time */
#define NOBODY	  UINT32_MAX

static struct timer *line_at(const struct timers *t, u32 index)
{
	return &t->line[index % LINE_SIZE];
}

/*
 * Skips empty entries, whose timers were moved to the heap or cancelled. At the tail, an empty
 * entry would send later timers to the heap.
 */
static void line_skip_empty(struct timers *t)
{
	while (t->line_head != t->line_tail && line_at(t, t->line_head)->slot == NOBODY)
		t->line_head++;
	while (t->line_head != t->line_tail && line_at(t, t->line_tail - 1)->slot == NOBODY)
		t->line_tail--;
}

static void timer_leave(struct timers *t, u32 place)
{
	if (place & IN_LINE) {
		u32 at = place & ~IN_LINE;

		t->heap.place[t->line[at].slot] = 0;
		t->line[at].slot = NOBODY;
		line_skip_empty(t);
	} else {
		timer_heap_remove(&t->heap, place - 1);
	}
}

static void timer_enter(struct timers *t, struct timer timer)
{
	u32 waiting = t->line_tail - t->line_head;

	if (waiting == LINE_SIZE ||
	    (waiting && line_at(t, t->line_tail - 1)->at_ns > timer.at_ns)) {
		timer_heap_add(&t->heap, timer);
		return;
	}
	t->heap.place[timer.slot] = IN_LINE | t->line_tail % LINE_SIZE;
	*line_at(t, t->line_tail++) = timer;
}

/* Returns the earliest timer, or NULL. */
static const struct timer *timer_first(const struct timers *t)
{
	const struct timer *line = t->line_head != t->line_tail ? line_at(t, t->line_head) : NULL;

	if (line && (!t->heap.len || line->at_ns <= t->heap.at[0].at_ns))
		return line;
	return t->heap.len ? &t->heap.at[0] : NULL;
}

int timers_init(struct timers *t)
{
	t->heap.at = calloc(XROCE_MAX_QP, sizeof(*t->heap.at));
	t->line = calloc(LINE_SIZE, sizeof(*t->line));
	t->heap.place = calloc(XROCE_MAX_QP, sizeof(*t->heap.place));
	t->due_ns = malloc(XROCE_MAX_QP * sizeof(*t->due_ns));
	if (!t->heap.at || !t->line || !t->heap.place || !t->due_ns)
		return -ENOMEM;
	for (u32 i = 0; i < XROCE_MAX_QP; i++)
		t->due_ns[i] = NSEC_NEVER;
	return 0;
}

void timers_free(struct timers *t)
{
	free(t->heap.at);
	free(t->line);
	free(t->heap.place);
	free(t->due_ns);
}

void timer_publish(struct engine *e)
{
	const struct timer *timer = timer_first(&e->timers);
	const u64 due_ns = min_u64(e->cq_due_ns, e->late_due_ns);
	u64 earliest = timer ? timer->at_ns : NSEC_NEVER;

	/* other threads read it as a hint only */
	atomic_store_explicit(&e->earliest_ns, min_u64(earliest, due_ns), memory_order_relaxed);
}

static u64 place_ns(const struct timers *t, u32 place)
{
	return place & IN_LINE ? t->line[place & ~IN_LINE].at_ns : t->heap.at[place - 1].at_ns;
}

void timer_put_off(struct engine *e, struct qp *qp, u64 deadline_ns)
{
	struct timers *t = &e->timers;
	u32 slot = slot_of(qp), place = t->heap.place[slot];

	t->due_ns[slot] = deadline_ns;
	if (place ? deadline_ns >= place_ns(t, place) : deadline_ns == NSEC_NEVER)
		return;
	if (place)
		timer_leave(t, place);
	timer_enter(t, (struct timer){ .at_ns = deadline_ns, .slot = slot });
	/* the removed entry was later than this */
	if (deadline_ns < atomic_load_explicit(&e->earliest_ns, memory_order_relaxed))
		atomic_store_explicit(&e->earliest_ns, deadline_ns, memory_order_relaxed);
}

void timer_cancel(struct engine *e, struct qp *qp)
{
	struct timers *t = &e->timers;
	u32 slot = slot_of(qp);

	t->due_ns[slot] = NSEC_NEVER;
	if (!t->heap.place[slot])
		return;
	timer_leave(t, t->heap.place[slot]);
	timer_publish(e);
}

/* Removes stopped timers that are due from the line's head, where most are stopped. */
static void line_skip_stopped(struct timers *t, u64 now_ns)
{
	for (; t->line_head != t->line_tail; t->line_head++) {
		const struct timer *timer = line_at(t, t->line_head);

		if (timer->slot == NOBODY)
			continue;
		if (timer->at_ns > now_ns || t->due_ns[timer->slot] != NSEC_NEVER)
			return;
		t->heap.place[timer->slot] = 0;
	}
}

struct qp *timer_pop(struct engine *e, u64 now_ns)
{
	struct timers *t = &e->timers;
	const struct timer *timer;
	struct qp *due = NULL;

	line_skip_stopped(t, now_ns);
	while (!due && (timer = timer_first(t)) && timer->at_ns <= now_ns) {
		u32 slot = timer->slot;
		u64 due_ns = t->due_ns[slot];

		if (t->heap.place[slot] & IN_LINE) {
			t->heap.place[slot] = 0;
			t->line_head++;
			line_skip_empty(t);
		} else {
			timer_heap_remove(&t->heap, 0);
		}
		if (due_ns <= now_ns) {
			due = e->qp[slot];
			t->due_ns[slot] = NSEC_NEVER;
		} else if (due_ns != NSEC_NEVER) { /* it was postponed */
			timer_enter(t, (struct timer){ .at_ns = due_ns, .slot = slot });
		}
	}
	if (!due)
		timer_publish(e);
	return due;
}

/* ---- time ---- */

u64 engine_deadline_ns(const struct engine *e)
{
	return atomic_load_explicit(&((struct engine *)e)->earliest_ns, memory_order_relaxed);
}

void engine_expire(struct engine *e, u64 now_ns)
{
	struct qp *qp;

	e->now_ns = now_ns;
	while ((qp = timer_pop(e, now_ns)))
		timeout_expire(e, qp, now_ns);
	if (unlikely(now_ns >= e->late_due_ns))
		faults_expire(e, now_ns);
	engine_take_arms(e);
	moderation_expire(e, now_ns);
}

/* ---- receive WQEs ---- */

int engine_srq_add(struct engine *e, struct srq *srq)
{
	struct engine_tables *t = e->tables;

	if (t->num_srqs == ENGINE_MAX_SRQ)
		return -ENOMEM;
	t->num_srqs++;
	srq->number =
		owner_draw_number(e, (void *const *)t->srq, t->srq_generation, ENGINE_MAX_SRQ,
				  ENGINE_MAX_SRQ /* none */);
	t->srq[srq->number % ENGINE_MAX_SRQ] = srq;
	owner_take_cq(e, srq->cq);
	return 0;
}

void engine_srq_remove(struct engine *e, struct srq *srq)
{
	e->srq[srq->number % ENGINE_MAX_SRQ] = NULL;
	e->tables->num_srqs--;
	owner_release_cq(e, srq->cq);
	/* XRC targets may hold one of its WQEs for a current message: drop it with the queue */
	for (u32 i = 0; srq->xrcd && i < XROCE_MAX_QP; i++)
		if (e->qp[i] && e->qp[i]->resp.recv_srq == srq) {
			e->qp[i]->resp.recv_srq = NULL;
			e->qp[i]->resp.seq.have_recv = false;
		}
}

struct srq *engine_find_srq(const struct engine *e, u32 number)
{
	struct srq *srq = e->srq[number % ENGINE_MAX_SRQ];

	return srq && srq->number == number && srq->xrcd ? srq : NULL;
}

/* Reports SRQ_LIMIT_REACHED, if armed and fewer than limit WQEs are left. */
static void engine_check_limit(struct engine *e, struct srq *srq)
{
	if (!srq->limit || rq_posted(&srq->rq) >= srq->limit)
		return;
	srq->limit = 0;
	if (srq->stat)
		srq->stat->limit_events++;
	engine_srq_event(e, srq, EVENT_SRQ_LIMIT);
}

bool engine_take_receive(struct engine *e, struct qp *qp)
{
	struct srq *srq = qp->xrc_target ? qp->resp.recv_srq : qp->srq;
	bool taken;

	if (qp->resp.seq.have_recv)
		return true;
	if (srq)
		spin_lock_if(srq->shared, &srq->lock);
	taken = qp->resp.seq.have_recv = rq_take(srq ? &srq->rq : &qp->rq, &qp->resp.recv);
	qp->resp.recv.pd = srq ? srq->pd : qp->pd;
	if (srq) {
		if (taken) {
			stat_srq(srq);
			engine_check_limit(e, srq);
		}
		spin_unlock_if(srq->shared, &srq->lock);
	}
	return taken;
}

void engine_srq_set_limit(struct engine *e, struct srq *srq, u32 limit)
{
	srq->limit = limit;
	engine_check_limit(e, srq);
}
