/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: creation, polling, arming, resizing. The application is the consumer of the
 * transport's ring. A poll of an empty ring runs the engine once and checks again. A CQ joins its
 * port's arm-word map with its first QP.
 */
#include "../os/kernel.h"
#include "../os/options.h"
#include "objects.h"

/*
 * At least two entries. A send queue slot is free when its WQE completes, so even with one WQE a
 * second completion may arrive before the application polls. (perftest's ib_send_lat -e does this
 * when an ACK is late.) No adapter has a CQ of one entry.
 */
#define CQE_MIN 2

static u32 cqe_given(u32 asked)
{
	return asked < CQE_MIN ? CQE_MIN : asked;
}

static void cq_init_public(struct ibv_cq *cq)
{
	pthread_mutex_init(&cq->mutex, NULL);
	pthread_cond_init(&cq->cond, NULL);
}

static void cq_in_child(struct fork_entry *entry)
{
	struct vcq *vcq = container_of(entry, struct vcq, forks);

	cq_init_public(&vcq->ibv);
	spin_unlock(&vcq->lock.spin);
	cq_abandon(&vcq->cq);
	vcq->current = NULL;
	vcq->events_pending = 0;
}

/*
 * Joins a CQ with a channel early, if there is a port: the first CQ of a channel may wait for the
 * kernel to publish the channel's ring, which should not delay the first QP.
 */
static int cq_join_early(struct vcq *vcq)
{
	struct vcontext *ctx = to_vcontext(vcq->ibv.context);
	/* acquire: pairs with the release in context_port() */
	struct port *port =
		atomic_load_explicit(shared_word(&ctx->port), memory_order_acquire);

	return port ? cq_join(vcq, port) : 0;
}

struct vcq *cq_new(struct ibv_context *context, u32 cqe, void *cq_context,
		   struct ibv_comp_channel *channel, u32 vector, struct vpd *domain)
{
	void *ring = NULL;
	struct vcq *vcq;
	int err;

	if (cqe < 1 || cqe > VERBS_MAX_CQE || vector >= (u32)context->num_comp_vectors ||
	    (channel && channel->context != context))
		return verb_fail(EINVAL);
	if (context_gone(context))
		return verb_fail(EIO);
	err = device_take(context, LIMIT_CQ);
	if (err)
		return verb_fail(err);
	vcq = new_object(sizeof(*vcq));
	cqe = cqe_given(cqe);
	err = vcq ? memory_take(domain, MEMORY_CQ, cq_bytes(cqe), &ring) : ENOMEM;
	if (!err)
		err = -cq_init_in(&vcq->cq, cqe, ring);
	if (err) {
		device_give(context, LIMIT_CQ);
		if (vcq)
			cq_free(&vcq->cq);
		memory_give_back(domain, MEMORY_CQ, ring);
		free(vcq);
		return verb_fail(err);
	}
	vcq->domain = domain;
	if (domain)
		pd_use(domain);
	vcq->cq.owner = vcq;
	vcq->cq.with_channel = channel != NULL;
	vcq->yield_polls = options_number(OPTION_YIELD);
	vcq->vector = vector;
	vcq->ibv.context = context;
	vcq->ibv.channel = channel;
	vcq->ibv.cq_context = cq_context;
	vcq->ibv.handle = new_handle();
	object_know(vcq);
	vcq->ibv.cqe = (int)cqe;
	cq_init_public(&vcq->ibv);
	if (channel) {
		vcq->channel = to_vchannel(channel);
		pthread_mutex_lock(&context->mutex);
		channel->refcnt++;
		pthread_mutex_unlock(&context->mutex);
	}
	context_get(to_vcontext(context));
	fork_add(&vcq->forks, cq_in_child);
	err = channel ? cq_join_early(vcq) : 0;
	if (!err)
		return vcq;
	ibv_destroy_cq(&vcq->ibv);
	return verb_fail(err);
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector)
{
	struct vcq *vcq;

	if (cqe < 1 || comp_vector < 0)
		return verb_fail(EINVAL);
	vcq = cq_new(context, (u32)cqe, cq_context, channel, (u32)comp_vector, NULL);
	return vcq ? &vcq->ibv : NULL;
}

int cq_join(struct vcq *vcq, struct port *port)
{
	struct vcontext *ctx = to_vcontext(vcq->ibv.context);
	u32 armed;
	int err = 0;

	/* Its completions are lost. */
	if (cq_has_overrun(&vcq->cq))
		return EINVAL;
	pthread_mutex_lock(&ctx->lock);
	if (!vcq->joined) {
		err = limit_errno(port_cq_add(port, &vcq->cq,
					      vcq->channel ? vcq->channel->pc : NULL, vcq->vector));
		/* The CQ may have been armed before it had an arm word. */
		armed = atomic_load_explicit(&vcq->cq.armed, memory_order_relaxed); /* the lock's */
		if (!err && armed != CQ_DISARMED)
			port_cq_arm(port, &vcq->cq, armed == CQ_ARMED_SOLICITED);
		/* release: pairs with the acquire in req_notify_cq_op() */
		atomic_store_explicit(shared_word(&vcq->joined), !err, memory_order_release);
	}
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct vcq *vcq = to_vcq(cq);
	struct vcontext *ctx = to_vcontext(cq->context);

	if (!object_is_known(vcq))
		return verb_report(ENOENT);
	if (users_left(&vcq->users))
		return verb_report(EBUSY);
	device_give(cq->context, LIMIT_CQ);
	fork_remove(&vcq->forks);
	if (vcq->joined)
		port_cq_remove(ctx->port, &vcq->cq);
	channel_forget(vcq);
	async_forget(ctx, cq, &vcq->async_delivered, &cq->mutex, &cq->cond,
		     &cq->async_events_completed);
	if (cq->channel) {
		pthread_mutex_lock(&cq->context->mutex);
		cq->channel->refcnt--;
		pthread_mutex_unlock(&cq->context->mutex);
	}
	memory_give_back(vcq->domain, MEMORY_CQ, vcq->cq.lent ? vcq->cq.ring : NULL);
	if (vcq->domain)
		pd_unuse(vcq->domain);
	pthread_cond_destroy(&cq->cond);
	pthread_mutex_destroy(&cq->mutex);
	cq_free(&vcq->cq);
	free(vcq);
	context_put(ctx);
	return 0;
}

/*
 * Takes the consumer's lock, for a caller that changes the ring. Between start_poll and end_poll
 * this is possible only for the same thread, with the lock off. The current entry then moves out of
 * the ring.
 */
static void cq_lock(struct vcq *vcq)
{
	vlock_take(&vcq->lock);
	if (vcq->current)
		vcq->current = cq_hold(&vcq->cq);
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct vcq *vcq = to_vcq(cq);
	struct vcontext *ctx = to_vcontext(cq->context);
	struct port *port;
	void *ring;
	int err;

	if (!object_is_known(vcq))
		return verb_report(ENOENT);
	if (cqe < 1 || cqe > VERBS_MAX_CQE)
		return verb_report(EINVAL);
	if (context_gone(cq->context))
		return verb_report(EIO);
	err = memory_take(vcq->domain, MEMORY_CQ, cq_bytes(cqe_given((u32)cqe)), &ring);
	if (err)
		return verb_report(err);
	pthread_mutex_lock(&ctx->lock);
	port = vcq->joined ? ctx->port : NULL;
	cq_lock(vcq);
	if (port)
		port_lock(port);
	err = -cq_resize(&vcq->cq, cqe_given((u32)cqe), &ring);
	if (port)
		port_unlock(port);
	vlock_drop(&vcq->lock);
	pthread_mutex_unlock(&ctx->lock);
	memory_give_back(vcq->domain, MEMORY_CQ, ring);
	if (!err)
		cq->cqe = (int)cqe_given((u32)cqe);
	return verb_report(err);
}

int modify_cq_op(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct vcq *vcq = to_vcq(cq);
	struct vcontext *ctx = to_vcontext(cq->context);
	u64 period_ns = attr->moderate.cq_period * NSEC_PER_USEC;

	if (!attr->attr_mask)
		return verb_report(EINVAL);
	if (attr->attr_mask & ~(u32)IBV_CQ_ATTR_MODERATE)
		return verb_report(EOPNOTSUPP);
	if (context_gone(cq->context))
		return verb_report(EIO);
	pthread_mutex_lock(&ctx->lock);
	if (vcq->joined)
		port_cq_moderate(ctx->port, &vcq->cq, attr->moderate.cq_count, period_ns);
	else
		cq_moderate(&vcq->cq, attr->moderate.cq_count, period_ns);
	pthread_mutex_unlock(&ctx->lock);
	return 0;
}

void cq_lock_two(struct vcq *a, struct vcq *b)
{
	struct vcq *first = a < b ? a : b, *second = a < b ? b : a;

	if (first)
		cq_lock(first);
	if (second && second != first)
		cq_lock(second);
}

void cq_unlock_two(struct vcq *a, struct vcq *b)
{
	if (a)
		vlock_drop(&a->lock);
	if (b && a != b)
		vlock_drop(&b->lock);
}

/*
 * Reads the port without a lock: it is set once, before the CQ's first QP, so a thread that does
 * not see it yet has no completions to wait for. The acquire pairs with the release in
 * context_port().
 */
static void cq_run(struct vcq *vcq)
{
	struct port *port = atomic_load_explicit(shared_word(&to_vcontext(vcq->ibv.context)->port),
						 memory_order_acquire);

	if (port)
		port_poll_cq(port, &vcq->cq);
}

/*
 * Consecutive empty polls of this thread. If more threads spin than there are CPUs, the work that a
 * thread waits for may need its CPU. With XROCE_YIELD, the thread therefore yields the CPU before
 * it runs the engine, which then finds work that arrived since.
 */
static __thread u32 vain_polls __attribute__((tls_model("initial-exec")));

static rare void cq_yield(u32 yield_polls)
{
	if (vain_polls < yield_polls)
		return;
	vain_polls = 0;
	kernel_yield();
}

static const struct cqe *cq_found(const struct vcq *vcq, const struct cqe *e)
{
	if (unlikely(vcq->yield_polls))
		vain_polls = e ? 0 : vain_polls + 1;
	return e;
}

const struct cqe *cq_peek_or_run(struct vcq *vcq)
{
	const struct cqe *e = cq_peek(&vcq->cq);

	if (e)
		return cq_found(vcq, e);
	vlock_drop(&vcq->lock);
	if (unlikely(vcq->yield_polls))
		cq_yield(vcq->yield_polls);
	cq_run(vcq);
	vlock_take(&vcq->lock);
	return cq_found(vcq, cq_peek(&vcq->cq));
}

/* Keeps the lock during an iteration. A thread in an engine never waits for a CQ's consumer. */
const struct cqe *cq_peek_or_run_held(struct vcq *vcq)
{
	const struct cqe *e = cq_peek(&vcq->cq);

	if (e)
		return e;
	cq_run(vcq);
	return cq_peek(&vcq->cq);
}

static void wc_fill(struct ibv_wc *wc, const struct cqe *e)
{
	wc->wr_id = e->wr_id;
	wc->status = (enum ibv_wc_status)e->status;
	wc->opcode = (enum ibv_wc_opcode)e->opcode;
	wc->vendor_err = e->vendor_err;
	wc->byte_len = e->byte_len;
	wc->imm_data = e->imm;
	wc->qp_num = e->qpn;
	wc->src_qp = e->src_qpn;
	wc->wc_flags = e->flags;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = e->sl;
	wc->dlid_path_bits = 0;
}

/*
 * A CQ's completions can be polled even after an overrun (which makes the CQ unusable,
 * ibv_poll_cq(3)) or after the device is gone; then polling fails.
 */
int cq_exhausted(struct vcq *vcq)
{
	if (cq_has_overrun(&vcq->cq))
		return EIO;
	/* in this order: completions flushed at the device's end were pushed before */
	return context_gone(vcq->ibv.context) && cq_empty(&vcq->cq) ? EIO : 0;
}

int poll_cq_op(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct vcq *vcq = to_vcq(cq);
	const struct cqe *e;
	int n = 0;

	if (num_entries <= 0)
		return num_entries < 0 ? -EINVAL : 0;
	vlock_take(&vcq->lock);
	for (e = cq_peek_or_run(vcq); e; e = n < num_entries ? cq_peek(&vcq->cq) : NULL) {
		wc_fill(&wc[n++], e);
		cq_pop(&vcq->cq);
	}
	vlock_drop(&vcq->lock);
	return n ? n : -cq_exhausted(vcq);
}

int req_notify_cq_op(struct ibv_cq *cq, int solicited_only)
{
	struct vcq *vcq = to_vcq(cq);
	struct vcontext *ctx = to_vcontext(cq->context);

	/*
	 * A program that arms and then polls must find the completions that the device's end
	 * flushed since its last poll.
	 */
	if (context_gone(cq->context))
		return cq_exhausted(vcq);
	/*
	 * vcontext.lock: either this call sees that the CQ has joined, or cq_join() sees that the
	 * CQ is armed. acquire: pairs with the release in cq_join().
	 */
	if (!atomic_load_explicit(shared_word(&vcq->joined), memory_order_acquire)) {
		pthread_mutex_lock(&ctx->lock);
		if (!vcq->joined) {
			atomic_store_explicit(&vcq->cq.armed,
					      solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY,
					      memory_order_relaxed);
			pthread_mutex_unlock(&ctx->lock);
			return 0;
		}
		pthread_mutex_unlock(&ctx->lock);
	}
	port_cq_arm(ctx->port, &vcq->cq, solicited_only);
	return 0;
}
