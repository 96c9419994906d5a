/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion vectors: vector N is receive queue N. The thread of the shard that has this queue
 * raises the events of the vector's CQs. Threads of the application that run an engine raise what
 * they find, of all vectors; a service thread that finds an event of another's vector hands it
 * over, and the next who reports events, if it may, finds it: that thread, which is kicked, or one
 * of the application's.
 */
#include "wake.h"

/* The shard whose thread raises a CQ's events. */
static u32 vector_raiser_of(const struct wake *w, u32 index)
{
	return w->vector_of[index] % w->num_shards;
}

static void vector_count(struct wake *w, u32 index)
{
	w->maps->vector[w->vector_of[index]].events++;
}

u32 vector_raiser(const struct wake *w, const struct cq *cq)
{
	return vector_raiser_of(w, cq->index);
}

/* The table is locked. */
static void vector_hand(struct wake *w, u32 index)
{
	w->handed[index]++;
	w->handed_last = index;
	/* pairs with the load in vector_waits(): the caller kicks the raiser, which looks then */
	atomic_fetch_add_explicit(&w->handed_total, 1, memory_order_seq_cst);
}

bool vector_may_report(struct wake *w, const struct cq *cq, u32 reporter)
{
	if (reporter == REPORT_ANY || !w->channel_of[cq->index])
		return true;
	if (vector_raiser(w, cq) == reporter) {
		vector_count(w, cq->index);
		return true;
	}
	pthread_mutex_lock(&w->lock);
	vector_hand(w, cq->index);
	pthread_mutex_unlock(&w->lock);
	return false;
}

/* One of those that this reporter may raise. The table is locked. */
static struct cq *vector_find_handed(struct wake *w, u32 reporter)
{
	for (u32 n = 0; n < XROCE_MAX_CQ; n++) {
		const u32 i = (w->handed_last + n) % XROCE_MAX_CQ;

		if (!w->handed[i] || (reporter != REPORT_ANY && vector_raiser_of(w, i) != reporter))
			continue;
		w->handed[i]--;
		atomic_fetch_sub_explicit(&w->handed_total, 1, memory_order_seq_cst);
		if (reporter != REPORT_ANY)
			vector_count(w, i);
		return w->cq[i];
	}
	return NULL;
}

bool vector_waits(const struct wake *w)
{
	return atomic_load_explicit(&((struct wake *)w)->handed_total, memory_order_seq_cst) != 0;
}

struct cq *vector_take_handed(struct wake *w, u32 reporter)
{
	struct cq *cq;

	if (likely(!vector_waits(w)))
		return NULL;
	pthread_mutex_lock(&w->lock);
	cq = vector_find_handed(w, reporter);
	pthread_mutex_unlock(&w->lock);
	return cq;
}

void vector_hand_extra(struct wake *w, struct port_channel *ch)
{
	const u32 index = channel_last(ch);

	pthread_mutex_lock(&w->lock);
	/* Its events are many enough where one is on its way. */
	if (w->channel_of[index] == ch && !w->handed[index])
		vector_hand(w, index);
	pthread_mutex_unlock(&w->lock);
}
