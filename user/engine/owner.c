/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several engines of one device: their shared tables, the owner of a QP, how its doorbell reaches
 * the owner, and moving the QP to another engine.
 *
 *   A QP's owner changes only with all engines held; it is stable under any engine's lock, else a
 *   hint.
 *
 *   ringer (any thread)                      holder of an engine
 *   engine_doorbell()                        owner_take_doorbells()
 *   doorbell: 0 -> 1; if it was 1 already,   take the stack
 *   it is on a stack                         this engine owns the QP: doorbell = 0, check its
 *   push it onto the stack of the owner,     queue
 *   which is a hint                          another does: push it onto that one's stack, leave the
 *                                            doorbell 1, report by engine_passed_doorbells()
 *
 * So a ringing doorbell is on one stack, and the thread that took it from a stack has pushed it to
 * another or checked the queue. owner_silence_doorbell(), with all engines held, removes one QP's
 * doorbell and puts the others back: their ringers found the locks taken and rely on the holder,
 * which checks after unlocking.
 *
 * The spin lock for data that the engines share is here too.
 */
#include <stdlib.h>

#include "types.h"
#include "internal.h"
#include "owner.h"

/* ---- the spin lock ---- */

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void spin_lock(struct spin *s)
{
	while (!spin_try(s))
		while (atomic_load_explicit(&s->taken, memory_order_relaxed))
			pause_briefly();
}

/* ---- the tables ---- */

#define DRAWS 64 /* for a free slot */
_Static_assert((ROCE_QPN_MASK + 1) / XROCE_MAX_QP <= UINT16_MAX &&
		       (ROCE_QPN_MASK + 1) / ENGINE_MAX_SRQ <= UINT16_MAX,
	       "generations, from 1 on");

static int owner_create_tables(const struct engine_config *config, struct engine_tables **out)
{
	struct engine_tables *t = aligned_zero(sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (mr_table_init(&t->mrs, config->random, config->random_arg)) {
		free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

/*
 * 0 and 1 are the management QPs, the last one is multicast. A slot's last number is not reused at
 * once: packets for it may still arrive.
 */
bool owner_take_number(void *const *table, u16 *generation, u32 slots, u32 kept, u32 number)
{
	const u32 slot = number % slots, given = number / slots + 1;

	if (number <= XROCE_CM_QPN || number >= ROCE_MULTICAST_QPN)
		return false;
	if (slot == kept || table[slot] || generation[slot] == given)
		return false;
	generation[slot] = (u16)given;
	return true;
}

/*
 * Draws a random slot. The table is seldom full; when it nearly is, takes the next free slot from
 * the drawn one on.
 */
u32 owner_draw_number(const struct engine *e, void *const *table, u16 *generation, u32 slots,
		      u32 kept)
{
	for (u32 tries = 0;; tries++) {
		u32 number = (u32)e->config.random(e->config.random_arg) & ROCE_QPN_MASK;
		u32 slot = number % slots;

		if ((table[slot] || slot == kept) && tries < DRAWS)
			continue;
		while (table[slot] || slot == kept)
			slot = (slot + 1) % slots;
		number = number_of_slot(generation[slot], slots, slot, number);
		if (owner_take_number(table, generation, slots, kept, number))
			return number;
	}
}

int owner_join(struct engine *e)
{
	const struct engine *sibling = e->config.sibling;
	struct engine_tables *t;

	/* number 0 owns the QPs of XRC and tag matching, so it must exist first */
	if (e->number >= ENGINE_MAX || !sibling != !e->number)
		return -EINVAL;
	if (sibling) {
		t = sibling->tables;
		if (t->engine[e->number])
			return -EINVAL;
	} else if (owner_create_tables(&e->config, &t)) {
		return -ENOMEM;
	}
	t->engine[e->number] = e;
	t->mrs.shared = sibling != NULL;
	e->tables = t;
	e->qp = t->qp;
	e->srq = t->srq;
	e->mrs = &t->mrs;
	return 0;
}

void owner_leave(struct engine *e)
{
	struct engine_tables *t = e->tables;

	u32 left = 0;

	t->engine[e->number] = NULL;
	for (u32 i = 0; i < ENGINE_MAX; i++)
		left += t->engine[i] != NULL;
	t->mrs.shared = left > 1;
	if (left)
		return;
	mr_table_destroy(&t->mrs);
	free(t);
}

u32 engine_number(const struct engine *e)
{
	return e->number;
}

struct qp *engine_frame_qp(const struct engine *e, const struct rx_frame *frame)
{
	struct packet p;
	u32 qpn;
	u8 opcode;

	if (header_in_peek(frame, &qpn, &opcode))
		return engine_find_qp(e, qpn);
	/* unusual headers */
	return packet_parse(&p, frame) == XROCE_DROP_none ? engine_find_qp(e, p.dest_qpn) : NULL;
}

/* ---- the engines with QPs on a CQ or an SRQ ---- */

static void owner_join_cq(struct cq *cq, const struct engine *e)
{
	if (!cq)
		return;
	cq->shared = users_add(&cq->users, e->number);
	moderation_settle(e->tables, cq);
}

static void owner_leave_cq(struct cq *cq, const struct engine *e)
{
	if (!cq)
		return;
	cq->shared = users_remove(&cq->users, e->number);
	moderation_settle(e->tables, cq);
}

void owner_take_cq(struct engine *e, struct cq *cq)
{
	owner_join_cq(cq, e->tables->engine[0]);
}

void owner_release_cq(struct engine *e, struct cq *cq)
{
	owner_leave_cq(cq, e->tables->engine[0]);
}

void owner_take_qp(struct engine *e, struct qp *qp)
{
	atomic_store_explicit(&qp->engine, e, memory_order_relaxed);
	owner_join_cq(qp->send_cq, e);
	owner_join_cq(qp->recv_cq, e);
	if (qp->srq)
		qp->srq->shared = users_add(&qp->srq->users, e->number);
	qp->stat->engine = e->number;
}

void owner_release_qp(struct engine *e, struct qp *qp)
{
	/* completions of the QP, while e may still fill the CQ */
	engine_take_arms(e);
	owner_leave_cq(qp->send_cq, e);
	owner_leave_cq(qp->recv_cq, e);
	if (qp->srq)
		qp->srq->shared = users_remove(&qp->srq->users, e->number);
}

/* ---- doorbells ---- */

static void owner_push_doorbell(struct engine *e, struct qp *qp)
{
	struct qp *head = atomic_load_explicit(&e->doorbells, memory_order_relaxed);

	do {
		qp->doorbell_next = head;
		/* release: pairs with the acquire in owner_take_doorbells() */
	} while (!atomic_compare_exchange_weak_explicit(
		&e->doorbells, &head, qp, memory_order_seq_cst, memory_order_seq_cst));
}

struct engine *engine_doorbell(struct qp *qp)
{
	struct engine *e = qp_engine(qp);

	/*
	 * pairs with the exchange in owner_take_doorbells(), which clears it before reading the
	 * queue: a value of 1 will be cleared, and the WQEs published before this will be seen
	 */
	if (!atomic_exchange_explicit(&qp->doorbell, 1, memory_order_seq_cst))
		owner_push_doorbell(e, qp);
	return e;
}

void owner_take_doorbells(struct engine *e)
{
	struct qp *qp, *next;

	/* pairs with the exchange in owner_push_doorbell(): doorbell_next is visible */
	for (qp = atomic_exchange_explicit(&e->doorbells, NULL, memory_order_seq_cst); qp;
	     qp = next) {
		struct engine *owner = qp_engine(qp);

		next = qp->doorbell_next;
		if (unlikely(owner != e)) {
			owner_push_doorbell(owner, qp);
			e->passed |= 1u << owner->number;
			continue;
		}
		/*
		 * pairs with the exchange in engine_doorbell() and acquires the ringer's WQEs;
		 * after a plain store, the queue could be read earlier
		 */
		atomic_exchange_explicit(&qp->doorbell, 0, memory_order_seq_cst);
		engine_posted(e, qp);
	}
}

bool owner_silence_doorbell(struct engine *e, struct qp *qp)
{
	struct qp *rung, *next;
	bool rang = false;

	for (u32 i = 0; i < ENGINE_MAX; i++) {
		struct engine *at = e->tables->engine[i];

		if (!at)
			continue;
		/* as in owner_take_doorbells() */
		for (rung = atomic_exchange_explicit(&at->doorbells, NULL, memory_order_seq_cst);
		     rung; rung = next) {
			next = rung->doorbell_next;
			if (rung == qp) {
				/* pairs with engine_doorbell(): the next ring pushes again */
				atomic_store_explicit(&qp->doorbell, 0, memory_order_seq_cst);
				rang = true;
			} else {
				owner_push_doorbell(qp_engine(rung), rung);
			}
		}
	}
	return rang;
}

u32 engine_passed_doorbells(struct engine *e)
{
	u32 passed = e->passed;

	e->passed = 0;
	return passed;
}

void owner_report_overrun(struct engine *e, const struct cq *cq)
{
	u32 others = cq_engines(cq) & ~(1u << e->number);

	atomic_store_explicit(&e->overrun, true, memory_order_relaxed);
	e->passed |= others;
	for (; others; others &= others - 1) {
		struct engine *other = e->tables->engine[__builtin_ctz(others)];

		/*
		 * as with a doorbell: the caller runs that engine, or observes it running, only
		 * after this. Pairs with the exchange in engine_fail_overrun_qps()
		 */
		atomic_store_explicit(&other->overrun, true, memory_order_seq_cst);
	}
}

/* ---- moving ---- */

bool engine_may_move(const struct qp *qp)
{
	/* rules count the QPs' completions and packets in one order */
	if (qp_engine(qp)->config.faults)
		return false;
	if (qp->transport == XROCE_RAW)
		return false;
	return qp->transport != XROCE_XRC && !qp->tag_matching && !qp->groups;
}

u64 engine_untaken(const struct qp *qp)
{
	const struct credit_peer *c = qp->credit;

	if (qp->transport != XROCE_UC || (c->sent == c->mark && !c->probing))
		return 0;
	return 1ull << 32 | c->sent;
}

void engine_move_qp(struct engine *to, struct qp *qp, u64 now_ns)
{
	struct engine *from = qp_engine(qp);
	u32 slot = qp->qpn % XROCE_MAX_QP, events;
	u64 due_ns;
	bool rang;
	u8 ready;

	if (from == to)
		return;
	from->now_ns = to->now_ns = now_ns;
	rang = owner_silence_doorbell(from, qp);
	ready = qp->ready;
	events = qp->events;
	due_ns = from->timers.due_ns[slot];
	/* early packets are in the old owner's memory: they count as lost */
	engine_detach_qp(from, qp);
	owner_release_qp(from, qp);
	owner_take_qp(to, qp);
	if (ready)
		engine_ready(to, qp, ready);
	/* the thread that should run it checks the old owner */
	if (rang || ready)
		engine_doorbell(qp);
	if (due_ns != NSEC_NEVER)
		timer_set(to, qp, due_ns);
	if (events)
		engine_qp_event(to, qp, events);
	/* its CQ may be the overrun one */
	if (atomic_load_explicit(&from->overrun, memory_order_relaxed))
		/* pairs with the exchange in engine_fail_overrun_qps() */
		atomic_store_explicit(&to->overrun, true, memory_order_seq_cst);
}
