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
	pthread_mutex_destroy(&ctx->async_lock);
	if (ctx->async_event_fd != ctx->v.context.async_fd)
		kernel_close(ctx->async_event_fd);
}

void async_free(struct vcontext *ctx)
{
	if (ctx->async_sigio)
		sigio_stop(ctx->async_sigio);
	async_drop_all(ctx);
	close(ctx->v.context.async_fd);
}

void async_abandon(struct vcontext *ctx)
{
	if (ctx->async_sigio)
		sigio_abandon(ctx->async_sigio);
	async_drop_all(ctx);
	async_init(ctx);
	/* wakes a waiting ibv_get_async_event(), which fails: no event follows */
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
	kernel_event_raise(ctx->async_event_fd);
	if (async_signals(ctx))
		sigio_raise(ctx->async_sigio);
}

static void async_lower(struct vcontext *ctx)
{
	struct pollfd p = { .fd = ctx->async_event_fd, .events = POLLIN };

	/* the program may have read the eventfd, and a read would block then */
	if (kernel_await(&p, 1, 0) == 1)
		kernel_event_clear(p.fd);
	if (ctx->async_sigio)
		sigio_clear(ctx->async_sigio);
}

/* Caller holds async_lock and calls async_raise() if this returns true. */
static bool async_append(struct vcontext *ctx, const struct ibv_async_event *event)
{
	struct async_node *n = calloc(1, sizeof(*n));

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

void events_await_acks(const struct vcontext *ctx, pthread_mutex_t *mutex, pthread_cond_t *cond,
		       const uint32_t *completed, u32 delivered)
{
	int cancel;

	/* the object is half destroyed: a cancelled thread would leak the rest */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(mutex);
	/* a forked child has no events to acknowledge */
	while (*completed != delivered && !ctx->inherited)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
	pthread_setcancelstate(cancel, NULL);
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
