/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A port's CQs: operations on both their arm words (cq_notify.h) and the engines (shard.h). */
#include "port_object.h"

/* Waits for the current turn of each shard that may have pushed to the CQ, one after the other. */
static void cq_let_turns_end(struct shards *all, const struct cq *cq)
{
	for (u32 shards = shards_of_cq(all, cq); shards; shards &= shards - 1) {
		struct shard *s = &all->shard[__builtin_ctz(shards)];

		shard_lock(s);
		shard_unlock(s);
	}
}

void port_cq_arm(struct port *port, struct cq *cq, bool solicited_only)
{
	const u32 next = cq_next_index(cq);

	/*
	 * The event of completions since the last arming may not be reported yet: the thread that
	 * runs the engine takes the word once per call, and reports one event per CQ and turn. That
	 * event is due also after this arming, so wait for the end of that turn.
	 */
	if (next != atomic_load_explicit(&cq->armed_at, memory_order_relaxed))
		cq_let_turns_end(&port->shards, cq);
	atomic_store_explicit(&cq->armed_at, cq_next_index(cq), memory_order_relaxed);
	cq_notify_arm(&port->shards.cq_notify, cq, solicited_only);
}

void port_cq_moderate(struct port *port, struct cq *cq, u32 count, u64 period_ns)
{
	port_lock(port);
	engine_cq_moderate(port_engine(port), cq, count, period_ns);
	cq_notify_taken(&port->shards.cq_notify, cq);
	port_unlock(port);
}

int port_cq_add(struct port *port, struct cq *cq, struct port_channel *ch, u32 vector)
{
	struct cq_notify *notify = &port->shards.cq_notify;
	int err = ch ? channel_join(ch, notify, cq) : 0;

	if (err)
		return err;
	err = cq_notify_add(notify, cq, ch, vector);
	if (err && ch)
		channel_leave(ch, cq);
	if (err)
		return err;
	port_lock(port);
	port_show_cq(port, cq, vector % notify->num_vectors, ch != NULL);
	port_unlock(port);
	return 0;
}

/*
 * Consumes a channel's records, as records of a removed CQ would keep the descriptor readable for
 * ever. Other CQs get their arm words set again; their packets are processed without records.
 */
static void cq_drop_records(struct shards *all, struct port_channel *ch)
{
	u32 record[RECORDS_MAX];

	cq_notify_rearm(&all->cq_notify, record, channel_consume(ch, record));
}

void port_cq_remove(struct port *port, struct cq *cq)
{
	struct cq_notify *notify = &port->shards.cq_notify;
	struct port_channel *ch;

	cq_notify_hide(notify, cq);
	port_lock(port);
	engine_cq_forget(port_engine(port), cq);
	ch = cq_notify_remove(notify, cq);
	port_hide_cq(port, cq);
	port_unlock(port);
	/* a forked child's channels have no CQs */
	if (!ch || port->shards.dead)
		return;
	channel_leave(ch, cq);
	cq_drop_records(&port->shards, ch);
}
