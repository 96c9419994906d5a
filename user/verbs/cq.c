/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: creation, polling, arming, resizing. The application is the consumer of the
 * transport's ring. A poll of an empty ring runs the engine once and checks again. A CQ joins its
 * port's arm-word map with its first QP.
 */
#include <time.h>

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

static int cq_destroy(struct ibv_cq *cq);

/* domain: the parent domain of the CQ, or NULL. */
static struct vcq *cq_new(struct ibv_context *context, u32 cqe, void *cq_context,
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
	cq_destroy(&vcq->ibv);
	return verb_fail(err);
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector)
{
	struct vcq *vcq;

	if (verb_fails(context, CALL_ibv_create_cq))
		return verb_fail(errno);
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
	if (verb_fails(cq->context, CALL_ibv_destroy_cq))
		return verb_report(errno);
	return cq_destroy(cq);
}

static int cq_destroy(struct ibv_cq *cq)
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

/*
 * Takes both locks. Between start_poll and end_poll the program has the CQ's lock, and may call any
 * verb: it is not waited for with another lock held.
 */
static void cq_resize_lock(struct vcontext *ctx, struct vcq *vcq)
{
	pthread_mutex_lock(&ctx->lock);
	while (!vlock_try(&vcq->lock)) {
		pthread_mutex_unlock(&ctx->lock);
		sched_yield();
		pthread_mutex_lock(&ctx->lock);
	}
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

	if (verb_fails(cq->context, CALL_ibv_resize_cq))
		return verb_report(errno);
	if (!object_is_known(vcq))
		return verb_report(ENOENT);
	if (cqe < 1 || cqe > VERBS_MAX_CQE)
		return verb_report(EINVAL);
	if (context_gone(cq->context))
		return verb_report(EIO);
	err = memory_take(vcq->domain, MEMORY_CQ, cq_bytes(cqe_given((u32)cqe)), &ring);
	if (err)
		return verb_report(err);
	cq_resize_lock(ctx, vcq);
	port = vcq->joined ? ctx->port : NULL;
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

	if (verb_fails(cq->context, CALL_ibv_modify_cq))
		return verb_report(errno);
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
		shards_poll_cq(port_shards(port), &vcq->cq);
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

/*
 * Returns the oldest completion; runs the engine once if there is none. The caller holds the
 * consumer's lock, which is released while the engine runs.
 */
static const struct cqe *cq_peek_or_run(struct vcq *vcq)
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

/*
 * The same without releasing the lock, during an iteration. A thread in an engine never waits for a
 * CQ's consumer.
 */
static const struct cqe *cq_peek_or_run_held(struct vcq *vcq)
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
 * For a CQ that was found empty: returns why polling fails, a positive errno, or 0. A CQ's
 * completions can be polled even after an overrun (which makes the CQ unusable, ibv_poll_cq(3)) or
 * after the device is gone; then polling fails.
 */
static int cq_exhausted(struct vcq *vcq)
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
		return verb_report(cq_exhausted(vcq));
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

/* ---- extended CQs ---- */

/*
 * ibv_create_cq_ex(3): iteration with start_poll, next_poll and end_poll, and one
 * reader per field. The consumer's lock is held from a successful start_poll to end_poll; the
 * current entry stays in the ring until then.
 */

#define WC_FLAGS_SUPPORTED                                                                         \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_CVLAN |      \
	 IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_TM_INFO |                                        \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

_Static_assert((int)IBV_WC_TM_RNDV_INCOMPLETE == CQE_TM_RNDV_INCOMPLETE &&
		       (int)IBV_WC_TM_ERR == CQE_TM_ERR && (int)IBV_WC_TM_NO_TAG == CQE_TM_NO_TAG &&
		       (int)IBV_WC_TM_ADD == CQE_TM_ADD &&
		       (int)IBV_WC_TM_DATA_VALID == CQE_TM_DATA_VALID &&
		       (int)IBV_WC_TM_SYNC_REQ == CQE_TM_SYNC_REQ,
	       "cq.h takes its values from verbs.h");

static void cq_ex_show(struct vcq *vcq, const struct cqe *e)
{
	vcq->current = e;
	vcq->ex.wr_id = e->wr_id;
	vcq->ex.status = (enum ibv_wc_status)e->status;
}

static int cq_ex_start(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct vcq *vcq = to_vcq_ex(cq);
	const struct cqe *e;
	int err;

	if (attr->comp_mask)
		return EINVAL;
	vlock_take(&vcq->lock);
	e = cq_peek_or_run(vcq);
	if (!e) {
		vlock_drop(&vcq->lock);
		err = cq_exhausted(vcq);
		return err ? err : ENOENT;
	}
	cq_ex_show(vcq, e);
	return 0;
}

static int cq_ex_next(struct ibv_cq_ex *cq)
{
	struct vcq *vcq = to_vcq_ex(cq);
	const struct cqe *e;

	if (vcq->current)
		cq_pop(&vcq->cq);
	vcq->current = NULL;
	/*
	 * A completion after the arming raises an event. Taking it here as well would make that
	 * event an extra one, which `ibv_rc_pingpong -e -t` does not expect.
	 */
	e = cq_is_armed(&vcq->cq) ? cq_peek(&vcq->cq) : cq_peek_or_run_held(vcq);
	if (!e)
		return ENOENT;
	cq_ex_show(vcq, e);
	return 0;
}

static void cq_ex_end(struct ibv_cq_ex *cq)
{
	struct vcq *vcq = to_vcq_ex(cq);

	if (vcq->current)
		cq_pop(&vcq->cq);
	vcq->current = NULL;
	vlock_drop(&vcq->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return (enum ibv_wc_opcode)to_vcq_ex(cq)->current->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->current->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->current->byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->current->imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->current->qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->current->src_qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->current->flags;
}

/* RoCE has no LIDs. */
static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->current->sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	return clock_own_ns(to_vcq_ex(cq)->current->time_ns);
}

static u64 wall_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (u64)now.tv_sec * NSEC_PER_SEC + (u64)now.tv_nsec;
}

/*
 * Returns the offset from the monotonic time of completions to the wall clock, which is constant
 * until the wall clock is set. The two clocks cannot be read at the same instant: the offset is
 * kept while it is within the bounds of the readings.
 */
static s64 wall_ahead_ns(struct vcq *vcq)
{
	const u64 before_ns = clock_now_ns(), wall_ns = wall_now_ns(), after_ns = clock_now_ns();
	const s64 least = (s64)(wall_ns - after_ns), most = (s64)(wall_ns - before_ns);

	if (vcq->wall_ahead_ns < least || vcq->wall_ahead_ns > most)
		vcq->wall_ahead_ns = least + (most - least) / 2;
	return vcq->wall_ahead_ns;
}

/*
 * A wall clock set back further than this is followed. A smaller step back is a reading error: the
 * time then stays the same from one completion to the next.
 */
#define WALL_STEP_NS (100 * NSEC_PER_MSEC)

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	struct vcq *vcq = to_vcq_ex(cq);
	const u64 ns = vcq->current->time_ns + (u64)wall_ahead_ns(vcq);

	if (ns > vcq->wall_ns || vcq->wall_ns - ns > WALL_STEP_NS)
		vcq->wall_ns = ns;
	return vcq->wall_ns;
}

static uint16_t read_cvlan(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->current->vlan_tci;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->current->flow_tag;
}

static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info)
{
	const struct cqe *e = to_vcq_ex(cq)->current;

	info->tag = e->tm_tag;
	info->priv = e->tm_priv;
}

static void cq_ex_set_ops(struct ibv_cq_ex *ex, u64 wc_flags)
{
	ex->start_poll = cq_ex_start;
	ex->next_poll = cq_ex_next;
	ex->end_poll = cq_ex_end;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	ex->read_byte_len = wc_flags & IBV_WC_EX_WITH_BYTE_LEN ? read_byte_len : NULL;
	ex->read_imm_data = wc_flags & IBV_WC_EX_WITH_IMM ? read_imm_data : NULL;
	ex->read_qp_num = wc_flags & IBV_WC_EX_WITH_QP_NUM ? read_qp_num : NULL;
	ex->read_src_qp = wc_flags & IBV_WC_EX_WITH_SRC_QP ? read_src_qp : NULL;
	ex->read_slid = wc_flags & IBV_WC_EX_WITH_SLID ? read_slid : NULL;
	ex->read_sl = wc_flags & IBV_WC_EX_WITH_SL ? read_sl : NULL;
	ex->read_dlid_path_bits =
		wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS ? read_dlid_path_bits : NULL;
	ex->read_completion_ts =
		wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP ? read_completion_ts : NULL;
	ex->read_cvlan = wc_flags & IBV_WC_EX_WITH_CVLAN ? read_cvlan : NULL;
	ex->read_flow_tag = wc_flags & IBV_WC_EX_WITH_FLOW_TAG ? read_flow_tag : NULL;
	ex->read_tm_info = wc_flags & IBV_WC_EX_WITH_TM_INFO ? read_tm_info : NULL;
	ex->read_completion_wallclock_ns =
		wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK ?
			read_completion_wallclock_ns :
			NULL;
}

struct ibv_cq_ex *create_cq_ex_op(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	u32 flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct vpd *domain =
		attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? to_vpd(attr->parent_domain) : NULL;
	struct vcq *vcq;

	if (verb_fails(context, CALL_ibv_create_cq_ex))
		return verb_fail(errno);
	if (attr->comp_mask & ~(u32)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    flags & ~(u32)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))
		return verb_fail(EINVAL);
	/* A PD that is not a parent domain has no thread domain. */
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && !domain)
		return verb_fail(EINVAL);
	if (domain && (!domain->parent || domain->ibv.context != context))
		return verb_fail(EINVAL);
	if (attr->wc_flags & ~(u64)WC_FLAGS_SUPPORTED)
		return verb_fail(EOPNOTSUPP);
	vcq = cq_new(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector,
		     domain);
	if (!vcq)
		return NULL;
	vcq->lock.off = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED || (domain && domain->td);
	vcq->cq.with_time = attr->wc_flags & (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	vcq->cq.with_flow_tag = attr->wc_flags & IBV_WC_EX_WITH_FLOW_TAG;
	vcq->cq.ignore_overrun = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	cq_ex_set_ops(&vcq->ex, attr->wc_flags);
	return &vcq->ex;
}
