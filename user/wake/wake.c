/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CQs as XDP sees them: their arm words, by which a thread that sleeps on a CQ is woken, by XDP or by our own threads. The channels are in channel.c, who sleeps in sleep.c.
 *
 * A CQ is armed twice. cq->armed is the truth: the engine takes it when it pushes a completion, and reports the event. The word in
 * xroce_cq is for XDP, which takes it when a packet will complete work, and writes a record that wakes the channel: a hint that makes
 * somebody run the engine, no more.
 *
 *   application                 XDP                          engine, under a shard's lock
 *   store cq->armed             take the word, non-zero:     take cq->armed, non-zero: report the event;
 *   store the word (full        write the record, wake       wake_taken(): clear the word, then look at cq->armed again:
 *   barriers both)                                           armed anew meanwhile: set the word again
 *
 * XDP may take the word for a packet that the engine then refuses, or before the packet can be seen. So who consumes a record looks at
 * cq->armed after running the engine: still armed, the word is set again and the engine is run once more. And who sleeps on a channel sleeps on
 * the sockets too, so that nothing depends on a record alone. An arming is used up by a completion
 * and by nothing else.
 */
#include <bpf/bpf.h>
#include <pthread.h>

#include "channel.h"
#include "../port/port_state.h"

_Static_assert((u32)XROCE_CQ_ARMED_ANY == (u32)CQ_ARMED_ANY && (u32)XROCE_CQ_ARMED_SOLICITED == (u32)CQ_ARMED_SOLICITED,
	       "the two words have the same values");

void wake_init(struct port *port)
{
	pthread_mutex_init(&port->cqs.lock, NULL);
	rings_init(port);
}

void wake_destroy(struct port *port)
{
	pthread_mutex_destroy(&port->cqs.lock);
	rings_close(port);
}

int wake_make_ring(void)
{
	/* libbpf makes map descriptors close-on-exec; bpf_map_create() gives -errno. */
	return bpf_map_create(BPF_MAP_TYPE_RINGBUF, "xroce_ring", 0, 0, XROCE_RING_BYTES, NULL);
}

/* ---- arming ---- */

static u32 *word_of(const struct port *port, const struct cq *cq)
{
	return &port->made.cq[cq->index].armed;
}

/* An arm for any completion is not narrowed to solicited ones: ibv_req_notify_cq(3) adds, it does not replace. */
static void arm_word(u32 *word, u32 want)
{
	u32 disarmed = XROCE_CQ_DISARMED;

	if (want == XROCE_CQ_ARMED_ANY)
		__atomic_store_n(word, want, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(word, &disarmed, want, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/*
 * Set the word that XDP takes. A moderated CQ has none: XDP would wake the channel for each completion. Its events come from whoever runs the
 * engine: a sleeper in port_channel_wait(), which watches the sockets, or the service thread.
 */
static void arm_shared(const struct port *port, const struct cq *cq, u32 want)
{
	if (!atomic_load(&((struct cq *)cq)->moderate_count))
		arm_word(word_of(port, cq), want);
}

/* One by one: of each shard whose engine may have pushed to the CQ. */
static void let_turns_end(struct port *port, const struct cq *cq)
{
	for (u32 shards = shards_of_cq(port, cq); shards; shards &= shards - 1) {
		struct shard *s = &port->shard[__builtin_ctz(shards)];

		shard_lock(s);
		shard_unlock(s, REPORT_ANY);
	}
}

void port_cq_arm(struct port *port, struct cq *cq, bool solicited_only)
{
	u32 disarmed = CQ_DISARMED;

	/*
	 * Completions have come since the last arming, and their event may be on its way still: whoever runs the engine takes the word once for all that
	 * a call pushes, and reports a CQ's event once for all calls of its turn. It is due whatever is armed now: let that turn end.
	 */
	if (cq_next_index(cq) != atomic_load_explicit(&cq->armed_at, memory_order_relaxed))
		let_turns_end(port, cq);
	atomic_store_explicit(&cq->armed_at, cq_next_index(cq), memory_order_relaxed);
	if (solicited_only)
		atomic_compare_exchange_strong(&cq->armed, &disarmed, CQ_ARMED_SOLICITED);
	else
		atomic_store(&cq->armed, CQ_ARMED_ANY);
	if (port->made.cq[cq->index].channel)
		arm_shared(port, cq, solicited_only ? XROCE_CQ_ARMED_SOLICITED : XROCE_CQ_ARMED_ANY);
}

void wake_taken(struct port *port, struct cq *cq)
{
	u32 armed;

	__atomic_store_n(word_of(port, cq), XROCE_CQ_DISARMED, __ATOMIC_SEQ_CST);
	/* pairs with port_cq_arm(): it stores cq->armed first, so one of us sets the word */
	armed = atomic_load(&cq->armed);
	if (armed)
		arm_shared(port, cq, armed);
}

void port_cq_moderate(struct port *port, struct cq *cq, u32 count, u64 period_ns)
{
	port_lock(port);
	engine_cq_moderate(port_engine(port), cq, count, period_ns);
	if (port->made.cq[cq->index].channel)
		wake_taken(port, cq);
	port_unlock(port);
}

/* ---- CQs ---- */

static int take_index(struct port *port, struct cq *cq, struct port_channel *ch, u32 vector)
{
	struct cq_table *t = &port->cqs;
	int err = -ENOSPC;

	pthread_mutex_lock(&t->lock);
	for (u32 i = 0; i < XROCE_MAX_CQ && err; i++) {
		u32 index = (t->next + i) % XROCE_MAX_CQ;

		if (t->cq[index])
			continue;
		t->cq[index] = cq;
		t->channel_of[index] = ch;
		t->vector_of[index] = (u8)vector;
		t->next = index + 1;
		cq->index = index;
		err = 0;
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

int port_cq_add(struct port *port, struct cq *cq, struct port_channel *ch, u32 vector)
{
	struct xroce_cq *shared;
	int err;

	/* The interface may have fewer queues now than when it was listed. */
	vector %= port->made.info.queues;
	if (ch) {
		err = channel_join(ch, port, cq);
		if (err)
			return err;
	}
	err = take_index(port, cq, ch, vector);
	if (err) {
		if (ch)
			channel_leave(ch, cq);
		return err;
	}
	shared = &port->made.cq[cq->index];
	__atomic_store_n(&shared->armed, XROCE_CQ_DISARMED, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->wakeups, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->vector, vector, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->channel, ch ? channel_slot(ch) : 0, __ATOMIC_RELEASE);
	return 0;
}

/* Off the table: no event of it is reported from here on. All engines held. */
static struct port_channel *give_index(struct port *port, const struct cq *cq)
{
	struct cq_table *t = &port->cqs;
	struct port_channel *ch;

	pthread_mutex_lock(&t->lock);
	ch = t->channel_of[cq->index];
	t->channel_of[cq->index] = NULL;
	t->cq[cq->index] = NULL;
	atomic_fetch_sub(&t->handed_total, t->handed[cq->index]);
	t->handed[cq->index] = 0;
	pthread_mutex_unlock(&t->lock);
	return ch;
}

/*
 * Those of a CQ that has gone would make the descriptor readable for ever; what others announce is
 * seen to.
 */
static void drop_records(struct port *port, struct port_channel *ch)
{
	u32 record[RECORDS_MAX];
	u32 n = channel_consume(ch, record);

	if (n && wake_rearm(port, record, n))
		port_poll(port);
}

void port_cq_remove(struct port *port, struct cq *cq)
{
	struct xroce_cq *shared = &port->made.cq[cq->index];
	struct port_channel *ch;

	__atomic_store_n(&shared->armed, XROCE_CQ_DISARMED, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->channel, 0, __ATOMIC_RELEASE);
	port_lock(port);
	engine_cq_forget(port_engine(port), cq);
	ch = give_index(port, cq);
	port_unlock(port);
	if (!ch)
		return;
	channel_leave(ch, cq);
	drop_records(port, ch);
}

/* XDP took these words; of CQs that are armed still, set them again. True if any was. */
bool wake_rearm(struct port *port, const u32 *record, u32 n)
{
	bool any = false;

	pthread_mutex_lock(&port->cqs.lock);
	for (u32 i = 0; i < n; i++) {
		struct cq *cq = port->cqs.cq[record[i]];
		u32 armed = cq ? atomic_load(&cq->armed) : CQ_DISARMED;

		if (armed) {
			arm_shared(port, cq, armed);
			any = true;
		}
	}
	pthread_mutex_unlock(&port->cqs.lock);
	return any;
}

void wake_extra(struct port *port, struct port_channel *ch)
{
	struct cq_table *t = &port->cqs;
	const u32 index = channel_last(ch);

	pthread_mutex_lock(&t->lock);
	/* Its events are many enough where one is on its way. */
	if (t->channel_of[index] == ch && !t->handed[index])
		vector_hand(t, index);
	pthread_mutex_unlock(&t->lock);
	/* who unlocks reports them */
	shard_lock(&port->shard[0]);
	shard_unlock(&port->shard[0], REPORT_ANY);
}
