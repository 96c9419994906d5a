/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion vectors: vector N is receive queue N. The thread of the shard that has this queue raises the events of the vector's CQs. Threads of the application that
 * run an engine raise what they find, of all vectors; a service thread that finds an event of another's vector hands it over, and the next who reports events, if it
 * may, finds it: that thread, which is kicked, or one of the application's.
 */
#include "../port/port_state.h"

/* The shard whose thread raises a CQ's events. */
static u32 raiser_of(const struct port *port, u32 index)
{
	return port->cqs.vector_of[index] % port->num_shards;
}

static void count(struct port *port, u32 index)
{
	port->made.vector[port->cqs.vector_of[index]].events++;
}

void vector_hand(struct cq_table *t, u32 index)
{
	t->handed[index]++;
	t->handed_last = index;
	atomic_fetch_add(&t->handed_total, 1);
}

bool vector_may_report(struct port *port, const struct cq *cq, u32 reporter)
{
	struct cq_table *t = &port->cqs;
	const u32 raiser = raiser_of(port, cq->index);

	if (reporter == REPORT_ANY || !t->channel_of[cq->index])
		return true;
	if (raiser == reporter) {
		count(port, cq->index);
		return true;
	}
	pthread_mutex_lock(&t->lock);
	vector_hand(t, cq->index);
	pthread_mutex_unlock(&t->lock);
	service_kick(&port->shard[raiser]);
	return false;
}

/* One of those that this reporter may raise. The table is locked. */
static struct cq *take(struct port *port, u32 reporter)
{
	struct cq_table *t = &port->cqs;

	for (u32 n = 0; n < XROCE_MAX_CQ; n++) {
		const u32 i = (t->handed_last + n) % XROCE_MAX_CQ;

		if (!t->handed[i] || (reporter != REPORT_ANY && raiser_of(port, i) != reporter))
			continue;
		t->handed[i]--;
		atomic_fetch_sub(&t->handed_total, 1);
		if (reporter != REPORT_ANY)
			count(port, i);
		return t->cq[i];
	}
	return NULL;
}

bool vector_waits(const struct port *port)
{
	return atomic_load(&((struct port *)port)->cqs.handed_total) != 0;
}

struct cq *vector_take_handed(struct port *port, u32 reporter)
{
	struct cq *cq;

	if (likely(!vector_waits(port)))
		return NULL;
	pthread_mutex_lock(&port->cqs.lock);
	cq = take(port, reporter);
	pthread_mutex_unlock(&port->cqs.lock);
	return cq;
}
