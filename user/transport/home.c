/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several engines of one device: what they share, which of them is a QP's home, how its bell is
 * heard there, and moving it to another.
 *
 *   a QP's home changes only with all engines held; under any one engine's lock it stands still,
 *   without a lock it is a hint.
 *
 *   ringer (any thread)                          who runs an engine
 *   bell: 0 -> 1, or it rings already            take the stack
 *   home: a hint                                 the QP's home is this engine: bell = 0, look at
 *                                                its queue
 *   push onto that engine's stack                it is another's: push onto that one's stack, the
 *                                                bell is not touched, and
 *                                                say so: engine_passed_bells()
 *
 * So a bell that rings lies on one stack, and whoever took it from one has put it on another or has
 * looked at the queue. Who takes one QP's bell away, with all engines held, puts the others' back:
 * their ringers found the locks taken and count on whoever unlocks to see them.
 */
#include <stdlib.h>

#include "aligned.h"
#include "internal.h"

/* ---- the tables ---- */

#define DRAWS 64 /* for a free slot */
_Static_assert((ROCE_QPN_MASK + 1) / XROCE_MAX_QP <= UINT16_MAX &&
		       (ROCE_QPN_MASK + 1) / ENGINE_MAX_SRQ <= UINT16_MAX,
	       "generations, from 1 on");

static int tables_create(const struct engine_config *config, struct engine_tables **out)
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
 * All bits are drawn, so that a number tells nothing of its neighbours'. The slots are those of a
 * table that is seldom full; when it nearly is, the next free slot from the drawn one on is taken.
 * A slot's last number is not given again at once: packets for it may still come.
 */
u32 home_draw_number(const struct engine *e, void *const *table, u16 *generation, u32 slots)
{
	for (u32 tries = 0;; tries++) {
		u32 number = (u32)e->config.random(e->config.random_arg) & ROCE_QPN_MASK;
		u32 slot = number % slots, given = number / slots + 1;

		if (table[slot] && tries < DRAWS)
			continue;
		while (table[slot])
			slot = (slot + 1) % slots;
		number = number / slots * slots + slot;
		/* 0 and 1 are the management QPs, the last one is multicast */
		if (number <= 1 || number == ROCE_MULTICAST_QPN || generation[slot] == given)
			continue;
		generation[slot] = (u16)given;
		return number;
	}
}

int home_join(struct engine *e)
{
	const struct engine *sibling = e->config.sibling;
	struct engine_tables *t;

	/* XRC and tag matching are at home in number 0, so that one is there first */
	if (e->number >= ENGINE_MAX || !sibling != !e->number)
		return -EINVAL;
	if (sibling) {
		t = sibling->tables;
		if (t->engine[e->number])
			return -EINVAL;
	} else if (tables_create(&e->config, &t)) {
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

void home_leave(struct engine *e)
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

struct qp *engine_whose(const struct engine *e, const struct rx_frame *frame)
{
	struct packet p;
	u32 qpn;
	u8 opcode;

	if (header_in_peek(frame, &qpn, &opcode))
		return engine_find_qp(e, qpn);
	/* of unusual headers */
	return packet_parse(&p, frame) < 0 ? NULL : engine_find_qp(e, p.dest_qpn);
}

/* ---- whose QPs a CQ or an SRQ has ---- */

static void cq_join(struct cq *cq, const struct engine *e)
{
	if (!cq)
		return;
	cq->shared = users_add(&cq->users, e->number);
	moderation_settle(e->tables, cq);
}

static void cq_leave(struct cq *cq, const struct engine *e)
{
	if (!cq)
		return;
	cq->shared = users_remove(&cq->users, e->number);
	moderation_settle(e->tables, cq);
}

void home_take_cq(struct engine *e, struct cq *cq)
{
	cq_join(cq, e->tables->engine[0]);
}

void home_release_cq(struct engine *e, struct cq *cq)
{
	cq_leave(cq, e->tables->engine[0]);
}

void home_settle(struct engine *e, struct qp *qp)
{
	atomic_store_explicit(&qp->engine, e, memory_order_relaxed);
	cq_join(qp->send_cq, e);
	cq_join(qp->recv_cq, e);
	if (qp->srq)
		qp->srq->shared = users_add(&qp->srq->users, e->number);
}

void home_quit(struct engine *e, struct qp *qp)
{
	/* what it has completed, while e is still one of those who fill the CQ */
	engine_take_arms(e);
	cq_leave(qp->send_cq, e);
	cq_leave(qp->recv_cq, e);
	if (qp->srq)
		qp->srq->shared = users_remove(&qp->srq->users, e->number);
}

/* ---- bells ---- */

static void push_bell(struct engine *e, struct qp *qp)
{
	struct qp *head = atomic_load_explicit(&e->doorbells, memory_order_relaxed);

	do {
		qp->doorbell_next = head;
		/* release: pairs with the acquire in home_take_doorbells() */
	} while (!atomic_compare_exchange_weak(&e->doorbells, &head, qp));
}

struct engine *engine_doorbell(struct qp *qp)
{
	struct engine *e = qp_engine(qp);

	/*
	 * the exchange orders the WQEs published before it; whoever takes the bell clears it before
	 * looking at the queue
	 */
	if (!atomic_exchange(&qp->doorbell, 1))
		push_bell(e, qp);
	return e;
}

void home_take_doorbells(struct engine *e)
{
	struct qp *qp, *next;

	for (qp = atomic_exchange(&e->doorbells, NULL); qp; qp = next) {
		struct engine *home = qp_engine(qp);

		next = qp->doorbell_next;
		if (unlikely(home != e)) {
			push_bell(home, qp);
			e->passed |= 1u << home->number;
			continue;
		}
		/*
		 * an exchange: it takes over from the ringer's, and with it what that one has
		 * posted; behind a store the look at the queue might be the older one
		 */
		atomic_exchange(&qp->doorbell, 0);
		engine_posted(e, qp);
	}
}

bool home_silence(struct engine *e, struct qp *qp)
{
	struct qp *bell, *next;
	bool rang = false;

	for (u32 i = 0; i < ENGINE_MAX; i++) {
		struct engine *at = e->tables->engine[i];

		if (!at)
			continue;
		for (bell = atomic_exchange(&at->doorbells, NULL); bell; bell = next) {
			next = bell->doorbell_next;
			if (bell == qp) {
				atomic_store(&qp->doorbell, 0);
				rang = true;
			} else {
				push_bell(qp_engine(bell), bell);
			}
		}
	}
	return rang;
}

u32 engine_passed_bells(struct engine *e)
{
	u32 passed = e->passed;

	e->passed = 0;
	return passed;
}

void home_overrun(struct engine *e, const struct cq *cq)
{
	u32 others = cq_engines(cq) & ~(1u << e->number);

	atomic_store_explicit(&e->overrun, true, memory_order_relaxed);
	e->passed |= others;
	for (; others; others &= others - 1)
		/* as a bell: whoever passes it looks whether that engine runs only after that */
		atomic_store(&e->tables->engine[__builtin_ctz(others)]->overrun, true);
}

/* ---- moving ---- */

bool engine_may_move(const struct qp *qp)
{
	return qp->transport != XROCE_XRC && !qp->tag_matching;
}

u64 engine_untaken(const struct qp *qp)
{
	const struct flow_control *f = &qp->flow;

	if (qp->transport != XROCE_UC || (f->sent == f->mark && !f->probing))
		return 0;
	return 1ull << 32 | f->sent;
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
	rang = home_silence(from, qp);
	ready = qp->ready;
	events = qp->events;
	due_ns = from->timers.due_ns[slot];
	/* early packets lie in the old home's memory: they were lost, then */
	engine_detach_qp(from, qp);
	home_quit(from, qp);
	home_settle(to, qp);
	if (ready)
		engine_ready(to, qp, ready);
	/* whoever was to see to it looks at the old home */
	if (rang || ready)
		engine_doorbell(qp);
	if (due_ns != NSEC_NEVER)
		timer_set(to, qp, due_ns);
	if (events)
		engine_qp_event(to, qp, events);
	/* its CQ may be the one that overran */
	if (atomic_load_explicit(&from->overrun, memory_order_relaxed))
		atomic_store(&to->overrun, true);
}
