/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion channels: a queue of CQs with events, and a descriptor that is readable while the
 * queue is not empty. The engine's events arrive under a shard's lock. ibv_get_cq_event() takes
 * events out. If there is none, it sleeps in the port, whose wake-ups are only hints.
 */
#include <fcntl.h>

#include "../os/kernel.h"
#include "../os/signals.h"
#include "objects.h"

static void channel_abandon(struct fork_entry *entry)
{
	struct vchannel *ch = container_of(entry, struct vchannel, forks);

	pthread_mutex_init(&ch->lock, NULL);
	ch->head = NULL;
	ch->tail = &ch->head;
	port_channel_abandon(ch->pc);
	if (ch->left_fd)
		kernel_event_replace(ch->ibv.fd);
	if (ch->sigio)
		sigio_abandon(ch->sigio);
	ch->sigio = NULL;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct vcontext *ctx = to_vcontext(context);
	struct vchannel *ch;
	int err;

	if (context_gone(context))
		return verb_fail(EIO);
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return verb_fail(ENOMEM);
	err = -port_channel_create(&ch->pc);
	if (err) {
		free(ch);
		return verb_fail(err);
	}
	pthread_mutex_init(&ch->lock, NULL);
	ch->tail = &ch->head;
	ch->ibv.context = context;
	ch->ibv.fd = port_channel_fd(ch->pc);
	fork_add(&ch->forks, channel_abandon);
	context_get(ctx);
	pthread_mutex_lock(&ctx->async_lock);
	ch->next = ctx->channels;
	ctx->channels = ch;
	if (context_gone(context))
		channel_wake(ch);
	pthread_mutex_unlock(&ctx->async_lock);
	return &ch->ibv;
}

static void channel_delist(struct vcontext *ctx, struct vchannel *ch)
{
	struct vchannel **at = &ctx->channels;

	pthread_mutex_lock(&ctx->async_lock);
	while (*at != ch)
		at = &(*at)->next;
	*at = ch->next;
	pthread_mutex_unlock(&ctx->async_lock);
}

/* True if the program wants signals; it may ask by fcntl(2) at any time. Caller holds ch->lock. */
static bool channel_signals(struct vchannel *ch)
{
	if (ch->sigio)
		return true;
	if (!sigio_is_asked(ch->ibv.fd))
		return false;
	if (!ch->left_fd) {
		ch->kept = port_channel_leave_fd(ch->pc);
		ch->left_fd = ch->kept >= 0;
	}
	if (ch->left_fd)
		ch->sigio = sigio_start(ch->ibv.fd, ch->kept);
	return ch->sigio;
}

/*
 * Caller holds ch->lock. Each event produces an edge (EPOLLET), as from an adapter and from XDP's
 * records, and a signal.
 */
static void channel_raise(struct vchannel *ch)
{
	port_channel_raise(ch->pc);
	ch->raised = true;
	if (channel_signals(ch))
		sigio_raise(ch->sigio);
}

void channel_wake(struct vchannel *ch)
{
	pthread_mutex_lock(&ch->lock);
	channel_raise(ch);
	pthread_mutex_unlock(&ch->lock);
}

/*
 * Caller holds ch->lock; the queue is empty. Makes the descriptor unreadable, unless the device is
 * gone: no thread may then sleep for an event.
 */
static void channel_clear(struct vchannel *ch)
{
	if (!ch->raised || context_gone(ch->ibv.context))
		return;
	port_channel_clear(ch->pc);
	if (ch->sigio)
		sigio_clear(ch->sigio);
	ch->raised = false;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct vchannel *ch = to_vchannel(channel);
	struct vcontext *ctx = to_vcontext(channel->context);
	bool busy;

	/* context->mutex guards refcnt, as in rdma-core: the field is public. */
	pthread_mutex_lock(&channel->context->mutex);
	busy = channel->refcnt != 0;
	pthread_mutex_unlock(&channel->context->mutex);
	if (busy)
		return verb_report(EBUSY);
	channel_delist(ctx, ch);
	fork_remove(&ch->forks);
	if (ch->sigio)
		sigio_stop(ch->sigio);
	if (ch->left_fd)
		kernel_close(ch->ibv.fd);
	port_channel_destroy(ch->pc);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
	context_put(ctx);
	return 0;
}

void channel_event(struct vcq *vcq)
{
	struct vchannel *ch = vcq->channel;

	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	if (!vcq->events_pending++) {
		vcq->event_next = NULL;
		*ch->tail = vcq;
		ch->tail = &vcq->event_next;
	}
	channel_raise(ch);
	pthread_mutex_unlock(&ch->lock);
}

/* Removes the oldest CQ from the queue. Caller holds ch->lock. */
static struct vcq *channel_pop(struct vchannel *ch)
{
	struct vcq *vcq = ch->head;

	if (!vcq)
		return NULL;
	ch->head = vcq->event_next;
	if (!ch->head)
		ch->tail = &ch->head;
	/* A CQ with more events moves to the end of the queue, so that no CQ starves. */
	if (--vcq->events_pending) {
		vcq->event_next = NULL;
		*ch->tail = vcq;
		ch->tail = &vcq->event_next;
	}
	if (!ch->head)
		channel_clear(ch);
	return vcq;
}

static struct vcq *channel_next(struct vchannel *ch)
{
	struct sigio *sigio;
	struct vcq *vcq;

	pthread_mutex_lock(&ch->lock);
	vcq = channel_pop(ch);
	if (vcq)
		vcq->comp_delivered++;
	sigio = ch->sigio;
	pthread_mutex_unlock(&ch->lock);
	sigio_settle(sigio);
	return vcq;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct vchannel *ch = to_vchannel(channel);
	struct vcq *vcq;

	pthread_testcancel();
	for (;;) {
		/* no event comes after this check */
		const bool gone = context_gone(channel->context);
		int flags, err;
		bool block;

		vcq = channel_next(ch);
		if (vcq)
			break;
		if (gone)
			return verb_fail_int(EIO);
		flags = fcntl(channel->fd, F_GETFL);
		if (flags < 0)
			return -1;
		block = !(flags & O_NONBLOCK);
		err = port_channel_wait(ch->pc, block);
		if (err < 0 && !(err == -EINTR && block && signals_restart()))
			return verb_fail_int(-err);
		vcq = channel_next(ch);
		if (vcq)
			break;
		if (err > 0) {
			port_channel_await_reports(ch->pc);
			vcq = channel_next(ch);
			if (vcq)
				break;
			port_channel_extra(ch->pc);
		} else if (!block) {
			return verb_fail_int(EAGAIN);
		}
	}
	port_channel_settle(ch->pc);
	*cq = &vcq->ibv;
	*cq_context = vcq->ibv.cq_context;
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

void channel_forget(struct vcq *vcq)
{
	struct vchannel *ch = vcq->channel;
	struct sigio *sigio;
	u32 delivered;

	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	if (vcq->events_pending) {
		struct vcq **at = &ch->head;

		while (*at != vcq)
			at = &(*at)->event_next;
		*at = vcq->event_next;
		if (!*at)
			ch->tail = at;
		vcq->events_pending = 0;
		if (!ch->head)
			channel_clear(ch);
	}
	delivered = vcq->comp_delivered;
	sigio = ch->sigio;
	pthread_mutex_unlock(&ch->lock);
	sigio_settle(sigio);

	events_await_acks(to_vcontext(vcq->ibv.context), &vcq->ibv.mutex, &vcq->ibv.cond,
			  &vcq->ibv.comp_events_completed, delivered);
}
