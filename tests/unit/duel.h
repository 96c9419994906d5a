/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arming against pushing, on two threads in random order: either the application finds the
 * completion when it polls once more after arming, or the other side sees that it is armed. Neither
 * is a lost wake-up.
 */
#ifndef UNIT_DUEL_H
#define UNIT_DUEL_H

#include <pthread.h>
#include <sched.h>

#include "unit.h"

#include "../../user/engine/cq.h"

#define DUELS	   200000
#define LAGS	   40
/*
 * On a busy machine the two seldom run at once, and rounds would find little: they end after a
 * thread has yielded its CPU this many times.
 */
#define DUEL_YIELDS 4000

/* The side that pushes: completes wr_id into the CQ; true if it saw that an event is due. */
typedef bool complete_fn(u64 wr_id);

struct duel {
	complete_fn *complete;
	_Atomic u32 start_line, finish_line;
	_Atomic bool told, over;
};

/*
 * Both at once, in each round: on one processor too, though nothing is found there. Returns how
 * often this thread gave its processor away.
 */
static inline u32 duel_meet(_Atomic u32 *line, u32 round)
{
	u32 yields = 0;

	atomic_fetch_add(line, 1);
	for (u32 spins = 0; atomic_load(line) < 2 * round; spins++)
		if (spins > 2000) {
			sched_yield();
			yields++;
		}
	return yields;
}

/* Who starts how much later than the other: every combination in turn. */
static inline void duel_lag(u32 steps)
{
	for (volatile u32 i = 0; i < steps; i++)
		;
}

static inline void *duel_pusher(void *arg)
{
	struct duel *d = arg;

	for (u32 round = 1;; round++) {
		duel_meet(&d->start_line, round);
		if (atomic_load(&d->over))
			return NULL;
		duel_lag(round % LAGS);
		atomic_store(&d->told, d->complete(round));
		duel_meet(&d->finish_line, round);
	}
}

/*
 * An application arms the CQ while a producer completes into it: no wake-up is lost, and each
 * round's completion is there.
 */
static inline void duel(struct cq *cq, u32 arm_for, complete_fn *complete)
{
	struct duel d = { .complete = complete };
	u32 lost = 0, wrong = 0, yields = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, duel_pusher, &d), 0);
	for (u32 round = 1;; round++) {
		const struct cqe *e;
		bool sees;

		atomic_store(&d.over, round > DUELS || yields > DUEL_YIELDS);
		yields += duel_meet(&d.start_line, round);
		if (atomic_load(&d.over))
			break;
		duel_lag(round / LAGS % LAGS);
		atomic_store(&cq->armed, arm_for);
		atomic_thread_fence(memory_order_seq_cst); /* as cq_notify_arm() */
		sees = cq_peek(cq) != NULL;
		yields += duel_meet(&d.finish_line, round);
		/*
		 * between the lines no other thread runs: it waits for the next start
		 */
		lost += !sees && !atomic_load(&d.told);
		atomic_store(&cq->armed, CQ_DISARMED);
		e = cq_peek(cq);
		wrong += !e || e->wr_id != round;
		if (e)
			cq_pop(cq);
	}
	pthread_join(thread, NULL);
	assert_int_equal(lost, 0);
	assert_int_equal(wrong, 0);
}

#endif
