/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CQs as XDP sees them: their arm words, by which XDP or our own threads wake a thread that sleeps
 * on a CQ. port_channel.c has the channels, channel_sleep.c sleeping.
 *
 * A CQ is armed twice. cq->armed is authoritative: the engine takes it when it pushes a completion,
 * and reports the event. The word in xroce_cq is for XDP, which takes it when a packet will
 * complete work, and writes a record that wakes the channel. The record is only a hint to run the
 * engine.
 *
 *   application              XDP                       engine, under a shard's lock
 *   store cq->armed          take the word, non-zero:  take cq->armed, non-zero: report the event;
 *   store the word           write the record, wake    cq_notify_taken(): clear the word, then read
 *   (both full barriers)                               cq->armed again: armed again, set the word
 *
 * XDP may take the word for a packet that the engine then refuses, or that is not visible yet. So a
 * thread that consumes a record reads cq->armed after running the engine; if it is still armed, the
 * thread sets the word again and runs the engine once more. A thread that sleeps on a channel also
 * sleeps on the sockets, so that nothing depends on a record alone. Only a completion uses up an
 * arming.
 */
#include <pthread.h>

#include "../os/kernel.h"
#include "cq_notify.h"

/* ---- rings ---- */

/*
 * The ring buffers of a port's completion channels, in xroce_channel for XDP. Inserting a ring
 * takes the kernel some 15 ms, as it waits until no program can see the previous entry. So an
 * inserted ring stays, and serves the next channel after its own is destroyed.
 */

void channel_rings_init(struct channel_rings *r)
{
	*r = (struct channel_rings){ 0 };
	pthread_mutex_init(&r->lock, NULL);
}

void channel_rings_close(struct channel_rings *r)
{
	while (r->num_spare)
		kernel_close(r->spare[--r->num_spare].fd);
	pthread_mutex_destroy(&r->lock);
}

/* Makes a ring. Locked; no ring is spare. */
static int channel_rings_grow(struct channel_rings *r, struct ring_slot *out)
{
	const int err = r->num == XROCE_MAX_RING ? -ENOSPC :
			!r->make		 ? -EBADF :
						   r->make(r->make_arg, out);

	if (!err)
		r->num++;
	return err;
}

int channel_rings_take(struct channel_rings *r, struct ring_slot *out)
{
	int err = 0;

	pthread_mutex_lock(&r->lock);
	if (r->num_spare)
		*out = r->spare[--r->num_spare];
	else
		err = channel_rings_grow(r, out);
	pthread_mutex_unlock(&r->lock);
	return err;
}

void channel_rings_give(struct channel_rings *r, const struct ring_slot *ring)
{
	pthread_mutex_lock(&r->lock);
	r->spare[r->num_spare++] = *ring;
	pthread_mutex_unlock(&r->lock);
}

/* ---- CQs and their arm words ---- */

_Static_assert((u32)XROCE_CQ_ARMED_ANY == (u32)CQ_ARMED_ANY &&
		       (u32)XROCE_CQ_ARMED_SOLICITED == (u32)CQ_ARMED_SOLICITED,
	       "the two words have the same values");

void cq_notify_init(struct cq_notify *w)
{
	pthread_mutex_init(&w->lock, NULL);
	channel_rings_init(&w->rings);
}

void cq_notify_destroy(struct cq_notify *w)
{
	pthread_mutex_destroy(&w->lock);
	channel_rings_close(&w->rings);
}

/* ---- arming ---- */

static u32 *cq_notify_word_of(const struct cq_notify *w, const struct cq *cq)
{
	return &w->maps->cq[cq->index].armed;
}

static bool cq_notify_has_channel(const struct cq_notify *w, const struct cq *cq)
{
	return w->maps->cq[cq->index].channel != 0;
}

/*
 * Arms a word. An arming for any completion is not narrowed to solicited ones: ibv_req_notify_cq(3)
 * adds, it does not replace.
 */
static void cq_notify_set_word(_Atomic u32 *word, u32 want)
{
	/* full barriers: the callers name the partners */
	u32 disarmed = XROCE_CQ_DISARMED;

	if (want == XROCE_CQ_ARMED_ANY)
		atomic_store_explicit(word, want, memory_order_seq_cst);
	else
		atomic_compare_exchange_strong_explicit(
			word, &disarmed, want, memory_order_seq_cst, memory_order_seq_cst);
}

/*
 * Sets the word that XDP takes. A moderated CQ has none, as XDP would wake the channel for each
 * completion. Its events come from the thread that runs the engine: a sleeper in
 * port_channel_wait(), which watches the sockets, or the worker. The load pairs with the
 * store in cq_moderate().
 */
static void cq_notify_arm_shared(const struct cq_notify *w, const struct cq *cq, u32 want)
{
	if (cq_notify_has_channel(w, cq) &&
	    !atomic_load_explicit(&((struct cq *)cq)->moderate_count, memory_order_seq_cst))
		/* pairs with the exchange in wake_once() (bpf/wake.h) */
		cq_notify_set_word(shared_word(cq_notify_word_of(w, cq)), want);
}

void cq_notify_arm(struct cq_notify *w, struct cq *cq, bool solicited_only)
{
	const u32 want = solicited_only ? XROCE_CQ_ARMED_SOLICITED : XROCE_CQ_ARMED_ANY;

	/* cq->armed first: pairs with the reads in cq_notify_taken() and cq_take_event() */
	cq_forget_idle_polls(cq);
	cq_notify_set_word(&cq->armed, want);
	cq_notify_arm_shared(w, cq, want);
	/* pairs with cq_pushed_all(): the caller polls once more, with weaker loads */
	atomic_thread_fence(memory_order_seq_cst);
}

void cq_notify_taken(struct cq_notify *w, struct cq *cq)
{
	u32 armed;

	atomic_store_explicit(shared_word(cq_notify_word_of(w, cq)), XROCE_CQ_DISARMED,
			      memory_order_seq_cst);
	/* pairs with cq_notify_arm(), which stores cq->armed first: one of the two sets the word */
	armed = atomic_load_explicit(&cq->armed, memory_order_seq_cst);
	if (armed != CQ_DISARMED)
		cq_notify_arm_shared(w, cq, armed);
}

bool cq_notify_rearm(struct cq_notify *w, const u32 *record, u32 n)
{
	bool any = false;

	pthread_mutex_lock(&w->lock);
	for (u32 i = 0; i < n; i++) {
		struct cq *cq = w->cq[record[i]];
		u32 armed =
			cq ? atomic_load_explicit(&cq->armed, memory_order_seq_cst) : CQ_DISARMED;

		if (armed) {
			cq_notify_arm_shared(w, cq, armed);
			any = true;
		}
	}
	pthread_mutex_unlock(&w->lock);
	return any;
}

/* ---- the table ---- */

static int cq_notify_take_index(struct cq_notify *w, struct cq *cq, struct port_channel *ch)
{
	int err = -ENOSPC;

	pthread_mutex_lock(&w->lock);
	for (u32 i = 0; i < XROCE_MAX_CQ && err; i++) {
		u32 index = (w->next + i) % XROCE_MAX_CQ;

		if (w->cq[index])
			continue;
		w->cq[index] = cq;
		w->channel_of[index] = ch;
		w->next = index + 1;
		cq->index = index;
		err = 0;
	}
	pthread_mutex_unlock(&w->lock);
	return err;
}

int cq_notify_add(struct cq_notify *w, struct cq *cq, struct port_channel *ch, u32 vector)
{
	struct xroce_cq *shared;
	int err;

	/* The interface may have lost queues since it was listed. */
	vector %= w->num_vectors;
	err = cq_notify_take_index(w, cq, ch);
	if (err)
		return err;
	shared = &w->maps->cq[cq->index];
	atomic_store_explicit(shared_word(&shared->armed), XROCE_CQ_DISARMED, memory_order_relaxed);
	atomic_store_explicit(shared_word(&shared->wakeups), 0, memory_order_relaxed);
	atomic_store_explicit(shared_word(&shared->vector), vector, memory_order_relaxed);
	/* locked, as cq_notify_leave_slot() may change the channel's slot */
	pthread_mutex_lock(&w->lock);
	/* release: pairs with the load in wake_cq() (bpf/wake.h), which then sees the rest */
	atomic_store_explicit(shared_word(&shared->channel), ch ? channel_slot(ch) : 0,
			      memory_order_release);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

void cq_notify_leave_slot(struct cq_notify *w, struct port_channel *ch)
{
	pthread_mutex_lock(&w->lock);
	for (u32 i = 0; i < XROCE_MAX_CQ; i++) {
		u32 slot = ch->slot;

		/* skips hidden CQs. Relaxed: XDP may use either slot */
		if (w->channel_of[i] == ch)
			atomic_compare_exchange_strong_explicit(
				shared_word(&w->maps->cq[i].channel), &slot, XROCE_CHANNEL_WORKER,
				memory_order_relaxed, memory_order_relaxed);
	}
	ch->slot = XROCE_CHANNEL_WORKER;
	pthread_mutex_unlock(&w->lock);
}

void cq_notify_hide(struct cq_notify *w, const struct cq *cq)
{
	struct xroce_cq *shared = &w->maps->cq[cq->index];

	atomic_store_explicit(shared_word(&shared->armed), XROCE_CQ_DISARMED, memory_order_relaxed);
	/* relaxed: XDP may wake the channel once more; cq_drop_records() takes that record */
	atomic_store_explicit(shared_word(&shared->channel), 0, memory_order_relaxed);
}

struct port_channel *cq_notify_remove(struct cq_notify *w, const struct cq *cq)
{
	struct port_channel *ch;

	pthread_mutex_lock(&w->lock);
	ch = w->channel_of[cq->index];
	w->channel_of[cq->index] = NULL;
	w->cq[cq->index] = NULL;
	pthread_mutex_unlock(&w->lock);
	return ch;
}

struct cq *cq_notify_on_channel(struct cq_notify *w, const struct port_channel *ch, u32 index)
{
	struct cq *cq;

	pthread_mutex_lock(&w->lock);
	cq = w->channel_of[index] == ch ? w->cq[index] : NULL;
	pthread_mutex_unlock(&w->lock);
	return cq;
}
