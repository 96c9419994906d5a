/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asynchronous events: a queue per context and an eventfd that is readable while the queue is not
 * empty. The engine's events arrive here, with a shard's lock held, and are distributed to channels
 * and contexts. The interface's events arrive from context.c.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "../os/kernel.h"
#include "../os/signals.h"
#include "../os/thread.h"
#include "objects.h"

struct async_node {
	struct ibv_async_event event;
	struct async_node *next;
};

void async_init(struct vcontext *ctx)
{
	pthread_mutex_init(&ctx->async_lock, NULL);
	ctx->async_tail = &ctx->async_head;
	ctx->async_event_fd = ctx->v.context.async_fd;
	ctx->async_sigio = NULL;
}

static void async_drop_all(struct vcontext *ctx)
{
	while (ctx->async_head) {
		struct async_node *n = ctx->async_head;

		ctx->async_head = n->next;
		free(n);
	}
	ctx->async_tail = &ctx->async_head;
}

void async_end(struct vcontext *ctx)
{
	struct sigio *sigio;
	int event_fd;

	pthread_mutex_lock(&ctx->async_lock);
	sigio = ctx->async_sigio;
	event_fd = ctx->async_event_fd;
	ctx->async_sigio = NULL;
	ctx->async_event_fd = -1;
	async_drop_all(ctx);
	pthread_mutex_unlock(&ctx->async_lock);
	if (event_fd < 0)
		return;
	if (sigio)
		sigio_stop(sigio);
	if (event_fd != ctx->v.context.async_fd)
		kernel_close(event_fd);
	kernel_close(ctx->v.context.async_fd);
}

void async_free(struct vcontext *ctx)
{
	async_end(ctx);
	pthread_mutex_destroy(&ctx->async_lock);
}

void async_abandon(struct vcontext *ctx, bool again)
{
	const int event_fd = ctx->async_event_fd;

	if (ctx->async_sigio)
		sigio_abandon(ctx->async_sigio);
	async_drop_all(ctx);
	if (event_fd >= 0 && event_fd != ctx->v.context.async_fd)
		kernel_close(event_fd);
	async_init(ctx);
	if (event_fd < 0)
		ctx->async_event_fd = event_fd;
	/* wakes a waiting ibv_get_async_event(), which fails: no event follows */
	else if (!again)
		kernel_event_replace(ctx->v.context.async_fd);
}

/*
 * True if the program wants signals; it may ask by fcntl(2) at any time. Caller holds async_lock.
 */
static bool async_signals(struct vcontext *ctx)
{
	const int fd = ctx->v.context.async_fd;
	int kept;

	if (ctx->async_sigio)
		return true;
	if (!sigio_is_asked(fd))
		return false;
	if (ctx->async_event_fd == fd) {
		kept = kernel_duplicate(fd);
		if (kept < 0)
			return false;
		ctx->async_event_fd = kept;
	}
	ctx->async_sigio = sigio_start(fd, ctx->async_event_fd);
	return ctx->async_sigio;
}

/*
 * Caller holds async_lock. The descriptor is readable while the queue is not empty, and permanently
 * once the device is gone. Each event produces an edge for edge-triggered pollers, and a signal.
 * Not cancellation points.
 */
static void async_raise(struct vcontext *ctx)
{
	if (ctx->async_event_fd < 0)
		return;
	kernel_event_raise(ctx->async_event_fd);
	if (async_signals(ctx))
		sigio_raise(ctx->async_sigio);
}

static void async_lower(struct vcontext *ctx)
{
	if (ctx->async_event_fd < 0)
		return;
	/* the program may have read the eventfd */
	kernel_event_clear(ctx->async_event_fd);
	if (ctx->async_sigio)
		sigio_clear(ctx->async_sigio);
}

/* Caller holds async_lock and calls async_raise() if this returns true. */
static bool async_append(struct vcontext *ctx, const struct ibv_async_event *event)
{
	struct async_node *n = ctx->async_event_fd >= 0 ? calloc(1, sizeof(*n)) : NULL;

	if (!n)
		return false;
	n->event = *event;
	*ctx->async_tail = n;
	ctx->async_tail = &n->next;
	return true;
}

void async_queue(struct vcontext *ctx, enum ibv_event_type type, void *object)
{
	/* a union of pointers */
	const struct ibv_async_event event = { .event_type = type, .element.qp = object };

	pthread_mutex_lock(&ctx->async_lock);
	if (async_append(ctx, &event))
		async_raise(ctx);
	pthread_mutex_unlock(&ctx->async_lock);
}

/* Caller holds async_lock. */
static bool async_has(const struct vcontext *ctx, enum ibv_event_type type)
{
	for (const struct async_node *n = ctx->async_head; n; n = n->next)
		if (n->event.event_type == type)
			return true;
	return false;
}

void async_queue_port(struct vcontext *ctx, enum ibv_event_type type)
{
	const struct ibv_async_event event = { .event_type = type, .element.port_num = VERBS_PORT };

	pthread_mutex_lock(&ctx->async_lock);
	/*
	 * "The table has changed" is queued at most once, so that events do not pile up in programs
	 * that never read them.
	 */
	if ((type != IBV_EVENT_GID_CHANGE || !async_has(ctx, type)) && async_append(ctx, &event))
		async_raise(ctx);
	pthread_mutex_unlock(&ctx->async_lock);
}

void async_device_fatal(struct vcontext *ctx)
{
	const struct ibv_async_event event = { .event_type = IBV_EVENT_DEVICE_FATAL };

	pthread_mutex_lock(&ctx->async_lock);
	async_append(ctx, &event);
	/* release: pairs with the acquire in context_gone(): a reader then finds the event */
	atomic_store_explicit(&ctx->gone, true, memory_order_release);
	async_raise(ctx);
	for (struct vchannel *ch = ctx->channels; ch; ch = ch->next)
		channel_wake(ch);
	pthread_mutex_unlock(&ctx->async_lock);
}

/* Queues the event for every handle of an XRC_RECV QP. */
static void queue_qp_event(struct vqp *vqp, enum ibv_event_type type)
{
	struct vqp *handle = vqp;

	do {
		async_queue(to_vcontext(handle->ibv.context), type, &handle->ibv);
		handle = handle->sibling;
	} while (handle != vqp);
}

void async_engine_event(const struct engine_event *event)
{
	static const struct {
		enum engine_event_type engine;
		enum ibv_event_type ibv;
	} qp_events[] = {
		{ EVENT_QP_FATAL, IBV_EVENT_QP_FATAL },
		{ EVENT_QP_REQ_ERR, IBV_EVENT_QP_REQ_ERR },
		{ EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
		{ EVENT_COMM_EST, IBV_EVENT_COMM_EST },
		{ EVENT_SQ_DRAINED, IBV_EVENT_SQ_DRAINED },
		{ EVENT_QP_LAST_WQE, IBV_EVENT_QP_LAST_WQE_REACHED },
	};
	struct vcq *vcq = event->cq ? event->cq->owner : NULL;
	struct vwq *vwq = event->qp && event->qp->is_wq ? event->qp->owner : NULL;
	struct vqp *vqp = event->qp && !vwq ? event->qp->owner : NULL;
	struct vsrq *vsrq = event->srq ? event->srq->owner : NULL;

	if (event->type == EVENT_COMPLETION && vcq)
		channel_event(vcq);
	else if (event->type == EVENT_CQ_ERR && vcq)
		async_queue(to_vcontext(vcq->ibv.context), IBV_EVENT_CQ_ERR, &vcq->ibv);
	else if (event->type == EVENT_SRQ_ERR && vsrq)
		async_queue(to_vcontext(vsrq->ibv.context), IBV_EVENT_SRQ_ERR, &vsrq->ibv);
	else if (event->type == EVENT_SRQ_LIMIT && vsrq)
		async_queue(to_vcontext(vsrq->ibv.context), IBV_EVENT_SRQ_LIMIT_REACHED,
			    &vsrq->ibv);
	else if (event->type == EVENT_QP_FATAL && vwq)
		async_queue(to_vcontext(vwq->ibv.context), IBV_EVENT_WQ_FATAL, &vwq->ibv);
	for (u32 i = 0; vqp && i < ARRAY_SIZE(qp_events); i++)
		if (event->type == qp_events[i].engine)
			queue_qp_event(vqp, qp_events[i].ibv);
}

/*
 * Returns the count of delivered events of the event's object, or NULL for port and device events.
 * Caller holds async_lock.
 */
static u32 *async_delivered(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return &to_vcq(event->element.cq)->async_delivered;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return &to_vsrq(event->element.srq)->async_delivered;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return &to_vqp(event->element.qp)->async_delivered;
	case IBV_EVENT_WQ_FATAL:
		return &to_vwq(event->element.wq)->async_delivered;
	default:
		return NULL;
	}
}

static bool async_next(struct vcontext *ctx, struct ibv_async_event *event)
{
	struct async_node *n;
	struct sigio *sigio;
	u32 *delivered;

	pthread_mutex_lock(&ctx->async_lock);
	n = ctx->async_head;
	if (n) {
		*event = n->event;
		ctx->async_head = n->next;
		if (!n->next)
			ctx->async_tail = &ctx->async_head;
		delivered = async_delivered(event);
		if (delivered)
			++*delivered;
	}
	if (!ctx->async_head && !context_gone(&ctx->v.context))
		async_lower(ctx);
	sigio = ctx->async_sigio;
	pthread_mutex_unlock(&ctx->async_lock);
	sigio_settle(sigio);
	free(n);
	return n != NULL;
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct vcontext *ctx = to_vcontext(context);

	if (verb_fails(context, CALL_ibv_get_async_event))
		return -1;
	pthread_testcancel();
	for (;;) {
		struct pollfd p = { .fd = context->async_fd, .events = POLLIN };
		const bool gone = context_gone(context); /* no event comes after this check */
		int flags = fcntl(context->async_fd, F_GETFL);

		if (async_next(ctx, event))
			return 0;
		if (gone)
			return verb_fail_int(EIO);
		if (flags < 0)
			return -1;
		if (flags & O_NONBLOCK)
			return verb_fail_int(EAGAIN);
		/* a thread may be cancelled here, without an event taken or a lock held */
		if (poll(&p, 1, -1) < 0 && !(errno == EINTR && signals_restart()))
			return -1;
	}
}

static void async_ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR: {
		struct ibv_cq *cq = event->element.cq;

		async_ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	}
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: {
		struct ibv_srq *srq = event->element.srq;

		async_ack(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	}
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED: {
		struct ibv_qp *qp = event->element.qp;

		async_ack(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	}
	case IBV_EVENT_WQ_FATAL: {
		struct ibv_wq *wq = event->element.wq;

		async_ack(&wq->mutex, &wq->cond, &wq->events_completed);
		break;
	}
	default: /* port and device events: no object waits for their acknowledgement */
		break;
	}
}

/*
 * Waits until the public count of acknowledgements, under its public mutex, equals delivered. Not a
 * cancellation point.
 */
static void events_await_acks(const struct vcontext *ctx, pthread_mutex_t *mutex,
			      pthread_cond_t *cond, const uint32_t *completed, u32 delivered)
{
	/* the object is half destroyed: a cancelled thread would leak the rest */
	const int cancel = thread_disable_cancel();

	pthread_mutex_lock(mutex);
	/* a forked child has no events to acknowledge */
	while (*completed != delivered && !ctx->inherited)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
	thread_restore_cancel(cancel);
}

void async_forget(struct vcontext *ctx, const void *object, const u32 *delivered,
		  pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed)
{
	struct async_node **at = &ctx->async_head;
	struct sigio *sigio;
	u32 wait_for;

	pthread_mutex_lock(&ctx->async_lock);
	while (*at) {
		struct async_node *n = *at;

		if (n->event.element.qp == object) {
			*at = n->next;
			free(n);
		} else {
			at = &n->next;
		}
	}
	ctx->async_tail = at;
	if (!ctx->async_head && !context_gone(&ctx->v.context))
		async_lower(ctx);
	wait_for = *delivered;
	sigio = ctx->async_sigio;
	pthread_mutex_unlock(&ctx->async_lock);
	sigio_settle(sigio);
	events_await_acks(ctx, mutex, cond, completed, wait_for);
}

/* ---- completion channels ---- */

/*
 * A queue of CQs with events, and a descriptor that is readable while the
 * queue is not empty. The engine's events arrive under a shard's lock. ibv_get_cq_event() takes
 * events out. If there is none, it sleeps in the port, whose wake-ups are only hints.
 */

static void channel_abandon(struct fork_entry *entry)
{
	struct vchannel *ch = container_of(entry, struct vchannel, forks);

	pthread_mutex_init(&ch->lock, NULL);
	ch->head = NULL;
	ch->tail = &ch->head;
	port_channel_abandon(ch->pc, entry->is_inherited);
	if (ch->left_fd && !entry->is_inherited)
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

	if (verb_fails(context, CALL_ibv_create_comp_channel))
		return verb_fail(errno);
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
		ch->pc_fd = port_channel_leave_fd(ch->pc);
		ch->left_fd = ch->pc_fd >= 0;
	}
	if (ch->left_fd)
		ch->sigio = sigio_start(ch->ibv.fd, ch->pc_fd);
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

	if (verb_fails(channel->context, CALL_ibv_destroy_comp_channel))
		return verb_report(errno);
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

	if (verb_fails(channel->context, CALL_ibv_get_cq_event))
		return -1;
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
