/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Extended CQs (ibv_create_cq_ex(3)): iteration with start_poll, next_poll and end_poll, and one
 * reader per field. The consumer's lock is held from a successful start_poll to end_poll; the
 * current entry stays in the ring until then.
 */
#include <time.h>

#include "objects.h"

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

	if (attr->comp_mask & ~(u32)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    flags & ~(u32)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))
		return verb_fail(EINVAL);
	/* A PD that is not a parent domain has no thread domain. */
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
