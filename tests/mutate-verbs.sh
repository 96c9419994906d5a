#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Are the tests of the CQ, SRQ and channel code able to fail? mutate-verbs.sh [NAME...] copies the
# tree, breaks one thing at a time, builds, runs the tests that ought to notice, and reports `killed
# NAME` or `survived NAME`. Exit status 1 if any survived, 2 if a mutation does not apply any more.
# As root, a few minutes; no part of `make check`, but for -c: only whether each still changes its
# file.
if [ "${1:-}" = -c ]; then
	check=yes
	shift
fi
here=$(cd "$(dirname "$0")/.." && pwd) || exit 1
tree=$(mktemp -d "${TMPDIR:-/tmp}/xroce-mutate.XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
trap 'exit 130' INT TERM
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

# NAME | FILE | sed expression | tests: pages of man.sh, or contract, tsan, unit-NAME, netns-NAME
mutations() {
	cat <<'TABLE'
byte_len          | user/verbs/cq.c          | s/wc->byte_len = e->byte_len;/wc->byte_len = e->byte_len + 1;/ | ibv_poll_cq
byte_len_ex       | user/verbs/cq_ex.c       | s/current->byte_len;/current->byte_len + 1;/ | ibv_create_cq_ex
opcode            | user/verbs/cq.c          | s/(enum ibv_wc_opcode)e->opcode/(enum ibv_wc_opcode)(e->opcode \& ~1u)/ | ibv_poll_cq
opcode_ex         | user/verbs/cq_ex.c       | s/(enum ibv_wc_opcode)to_vcq_ex(cq)->current->opcode/IBV_WC_SEND/ | ibv_create_cq_ex
src_qp            | user/verbs/cq.c          | s/wc->src_qp = e->src_qpn;/wc->src_qp = e->qpn;/ | ibv_poll_cq
src_qp_ex         | user/verbs/cq_ex.c       | s/current->src_qpn;/current->qpn;/ | ibv_create_cq_ex
wr_id             | user/verbs/cq.c          | s/wc->wr_id = e->wr_id;/wc->wr_id = (u32)e->wr_id;/ | ibv_poll_cq
wr_id_ex          | user/verbs/cq_ex.c       | s/vcq->ex.wr_id = e->wr_id;/vcq->ex.wr_id = (u32)e->wr_id;/ | ibv_create_cq_ex
imm_data          | user/verbs/cq.c          | s/wc->imm_data = e->imm;/wc->imm_data = __builtin_bswap32(e->imm);/ | ibv_poll_cq
imm_data_ex       | user/verbs/cq_ex.c       | s/current->imm;/current->imm + 1;/ | ibv_create_cq_ex
wc_flags_missing  | user/verbs/cq.c          | s/wc->wc_flags = e->flags;/wc->wc_flags = e->flags \& ~CQE_GRH;/ | ibv_poll_cq
wc_flags_extra    | user/verbs/cq.c          | s/wc->wc_flags = e->flags;/wc->wc_flags = e->flags \| CQE_GRH;/ | ibv_poll_cq
wc_flags_ex       | user/verbs/cq_ex.c       | s/current->flags;/current->flags \& ~CQE_WITH_IMM;/ | ibv_create_cq_ex
qp_num            | user/verbs/cq.c          | s/wc->qp_num = e->qpn;/wc->qp_num = e->src_qpn;/ | ibv_poll_cq
status            | user/verbs/cq.c          | s/wc->status = (enum ibv_wc_status)e->status;/wc->status = 0;/ | ibv_poll_cq
vendor_err        | user/verbs/cq.c          | s/wc->vendor_err = e->vendor_err;/wc->vendor_err = e->status;/ | ibv_poll_cq
unasked_field     | user/verbs/cq_ex.c       | s/wc_flags & IBV_WC_EX_WITH_CVLAN ? read_cvlan : NULL/read_cvlan/ | ibv_create_cq_ex
timestamp         | user/verbs/cq_ex.c       | s/return to_vcq_ex(cq)->current->time_ns;/return to_vcq_ex(cq)->current->time_ns \/ 1000;/ | ibv_create_cq_ex
wall_clock        | user/verbs/cq_ex.c       | s/return vcq->wall_ahead_ns;/return vcq->wall_ahead_ns - 2000000;/ | ibv_create_cq_ex
wall_clock_back   | user/verbs/cq_ex.c       | s/if (vcq->wall_ahead_ns < least .*/if (true)/;s/if (ns > vcq->wall_ns .*/if (true)/ | cq_corners
next_poll_blind   | user/verbs/cq_ex.c       | /^static int cq_ex_next/,/^}/s/cq_peek_or_run_held(vcq)/cq_peek(\&vcq->cq)/ | cq_corners
one_edge          | user/verbs/channel.c     | s/^	port_channel_raise(ch->pc);/	if (!ch->raised) port_channel_raise(ch->pc);/ | cq_corners
srq_limit_said    | user/verbs/srq.c         | s/attr->srq_limit = 0;.*/;/ | cq_corners
overrun_new_qp    | user/verbs/cq.c          | s/if (cq_has_overrun(&vcq->cq))/if (0)/ | cq_corners
receive_time      | user/transport/responder.c | s/hint \&\& hint->rx_time_ns ? hint->rx_time_ns : now_ns/now_ns/ | netns-fields
cvlan             | user/transport/responder.c | s/cqe->vlan_tci = p->vlan_tci;/cqe->vlan_tci = p->vlan_tci \& 0xfff;/ | netns-fields
sl                | user/transport/responder.c | s/p->has_vlan ? p->vlan_tci >> 13 : p->tos >> 5/p->tos >> 5/ | netns-fields
flow_tag          | user/transport/responder.c | s/cqe->flow_tag = .*;/cqe->flow_tag = 1;/ | netns-fields
single_threaded   | user/verbs/cq_ex.c       | s/vcq->lock.off = .*/vcq->lock.off = false;/ | ibv_create_cq_ex
foreign_domain    | user/verbs/cq_ex.c       | s/ || domain->ibv.context != context)/)/ | ibv_alloc_parent_domain
foreign_pd        | user/verbs/pd.c          | s/if (attr->pd->context != context || /if (/ | ibv_alloc_parent_domain
foreign_td        | user/verbs/pd.c          | s/ || (attr->td && attr->td->context != context))/)/ | ibv_alloc_parent_domain
ignore_overrun    | user/verbs/cq_ex.c       | s/vcq->cq.ignore_overrun = .*/vcq->cq.ignore_overrun = false;/ | ibv_create_cq_ex
comp_vector       | user/verbs/cq.c          | s/vector >= (u32)context->num_comp_vectors/vector > (u32)context->num_comp_vectors/ | ibv_create_cq_ex
end_poll_keeps    | user/verbs/cq_ex.c       | /^static void cq_ex_end/,/^}/s/cq_pop(&vcq->cq);/;/ | ibv_create_cq_ex
overrun_silent    | user/transport/engine.c  | s/engine_cq_event(e, cq, EVENT_CQ_ERR | /engine_cq_event(e, cq, 0 | / | ibv_poll_cq
overrun_usable    | user/verbs/cq.c          | s/if (cq_has_overrun(&vcq->cq))/if (0)/ | ibv_poll_cq
overrun_keeps_qps | user/transport/engine.c  | s/engine_qp_error(e, qp, EVENT_QP_FATAL);/;/ | ibv_poll_cq
overrun_early     | user/transport/cq.c      | s/prod - cons >= cq->capacity/prod - cons + 1 >= cq->capacity/ | ibv_poll_cq
event_for_nothing | user/verbs/cq.c          | /^int req_notify_cq_op/,/^}/s/port_cq_arm(ctx->port, &vcq->cq, solicited_only);/port_cq_arm(ctx->port, \&vcq->cq, solicited_only); channel_event(vcq);/ | ibv_req_notify_cq
not_one_shot      | user/transport/cq.c      | s/&cq->armed, &armed, CQ_DISARMED,/\&cq->armed, \&armed, armed,/ | ibv_req_notify_cq
solicited_ignored | user/verbs/cq.c          | s/port_cq_arm(ctx->port, &vcq->cq, solicited_only);/port_cq_arm(ctx->port, \&vcq->cq, 0);/ | ibv_req_notify_cq
solicited_always  | user/transport/engine.c  | s/part->pushed_solicited |= solicited || failed;/part->pushed_solicited |= solicited;/ | ibv_req_notify_cq
arm_narrowed      | user/wake/wake.c         | s/if (want == XROCE_CQ_ARMED_ANY)/if (true)/ | ibv_req_notify_cq
lost_no_fence     | user/transport/cq.h      | s/^	atomic_thread_fence(memory_order_seq_cst);/	;/ | unit-cq
lost_descriptor   | user/verbs/channel.c     | /^static struct vcq \*channel_pop/,/^}/s/if (!ch->head)$/if (1)/ | ibv_get_cq_event
lost_requeue      | user/verbs/channel.c     | s/if (--vcq->events_pending) {/vcq->events_pending = 0; if (0) {/ | ibv_get_cq_event
no_wait_for_acks  | user/verbs/channel.c     | s/while (vcq->ibv.comp_events_completed != delivered \&\&/while (0 \&\&/ | ibv_get_cq_event
ack_counts_one    | user/verbs/channel.c     | s/cq->comp_events_completed += nevents;/cq->comp_events_completed += 1;/ | ibv_get_cq_event
event_before_push | user/transport/engine.c  | /^void engine_complete_end/,/^}/s/if (likely(cq_push_end(cq, cqe)))/bool take = !atomic_load_explicit(\&cq->moderate_count, memory_order_relaxed) \&\& cq_take_event(cq, solicited || failed);\n	&/;/^void engine_complete_end/,/^}/s/if (!wakes)/if (take)\n		engine_cq_event(e, cq, EVENT_COMPLETION);\n	if (true)/ | unit-engine
resize_iteration  | user/verbs/cq.c          | s/vcq->current = cq_hold(&vcq->cq);/;/ | ibv_resize_cq
readable_nothing  | user/verbs/channel.c     | s/port_channel_extra(ch->pc);/;/ | netns-arming
unseen_wakes      | bpf/wake.h               | s/ends &= ~ENDS_SEND;/;/ | netns-arming
moderate_count    | user/transport/moderation.c | s/cq->withheld >= count/cq->withheld > count/ | ibv_modify_cq
moderate_early    | user/transport/moderation.c | s/e->now_ns + cq->moderate_ns/e->now_ns + cq->moderate_ns \/ 2/ | ibv_modify_cq
moderate_lost     | user/transport/moderation.c | s/^	if (cq->withheld && cq_take_event(cq, true))/	if (0)/ | ibv_modify_cq
limit_twice       | user/transport/engine.c  | /^static void engine_check_limit/,/^}/s/srq->limit = 0;/;/ | ibv_modify_srq
limit_late        | user/transport/engine.c  | s/rq_posted(&srq->rq) >= srq->limit/rq_posted(\&srq->rq) + 1 >= srq->limit/ | ibv_modify_srq
limit_early       | user/transport/engine.c  | s/rq_posted(&srq->rq) >= srq->limit/rq_posted(\&srq->rq) > srq->limit/ | ibv_modify_srq
resize_drops      | user/transport/rq.c      | /^int rq_resize/,/^}/s/i = cons; i != prod/i = cons + 1; i < prod/ | ibv_modify_srq
resize_unlocked   | user/verbs/srq.c         | /^EXPORT int ibv_modify_srq/,/^}/s/vlock_take(&vsrq->lock);//;/^EXPORT int ibv_modify_srq/,/^}/s/vlock_drop(&vsrq->lock);// | ibv_modify_srq
resize_cq_drops   | user/transport/cq.c      | /^int cq_resize/,/^}/s/i = cons; i != prod/i = cons + 1; i < prod/ | ibv_resize_cq
tm_caps           | user/verbs/query.c       | s/full.tm_caps.max_sge = TAG_MAX_SGE;/full.tm_caps.max_sge = TAG_MAX_SGE + 1;/ | ibv_post_srq_ops
tm_caps_flags     | user/verbs/query.c       | s/full.tm_caps.flags = IBV_TM_CAP_RC;/;/ | ibv_create_srq_ex
tm_max_tags       | user/verbs/srq.c         | s/tag_list_create(attr->tm_cap.max_num_tags,/tag_list_create(TAG_MAX_TAGS,/ | ibv_post_srq_ops
tm_other_types    | user/transport/qp.c      | s/(tags \&\& init->transport != XROCE_RC)/(tags \&\& init->transport == XROCE_UD)/ | ibv_create_srq_ex
tm_cq_busy        | user/verbs/srq.c         | /^static struct ibv_srq \*srq_ready/,/^}/s/if (vsrq->cq)/if (vsrq->xrcd)/;/^EXPORT int ibv_destroy_srq/,/^}/s/if (vsrq->cq)/if (vsrq->xrcd)/ | ibv_create_srq_ex
tm_info_tag       | user/verbs/cq_ex.c       | s/info->tag = e->tm_tag;/info->tag = (u32)e->tm_tag;/ | ibv_post_srq_ops
tm_info_priv      | user/verbs/cq_ex.c       | s/info->priv = e->tm_priv;/info->priv = __builtin_bswap32(e->tm_priv);/ | ibv_post_srq_ops
tm_info_unasked   | user/verbs/cq_ex.c       | s/wc_flags & IBV_WC_EX_WITH_TM_INFO ? read_tm_info : NULL/read_tm_info/ | ibv_create_cq_ex
tm_handle         | user/verbs/srq_ops.c     | s/wr->tm.handle = op.handle;/wr->tm.handle = 0;/ | ibv_post_srq_ops
tm_recv_wr_id     | user/verbs/srq_ops.c     | s/.recv_wr_id = is_add ? wr->tm.add.recv_wr_id : 0,/.recv_wr_id = wr->wr_id,/ | ibv_post_srq_ops
tm_bad_wr         | user/verbs/srq_ops.c     | s/^			\*bad_wr = wr;/			*bad_wr = wr->next;/ | ibv_post_srq_ops
tm_num_sge        | user/verbs/srq_ops.c     | s/(u32)wr->tm.add.num_sge/(u32)wr->tm.add.num_sge \& 7/ | ibv_post_srq_ops
tm_unlocked       | user/verbs/srq_ops.c     | s/port_lock(vsrq->port);//;s/port_unlock(vsrq->port);// | tsan
tm_sync_ignored   | user/transport/tag.c     | s/if (op->opcode == TAG_SYNC || op->flags & TAG_OP_SYNC) {/if (0) {/ | ibv_post_srq_ops
tm_always_in_step | user/transport/tag.c     | s/return list->unexpected == list->handled;/return true;/ | ibv_post_srq_ops
tm_header_kept    | user/transport/tag.c     | s/kind == TAG_MATCHED ? sizeof(h.tmh) : /kind == TAG_MATCHED ? 0 : / | ibv_post_srq_ops
tm_no_fin         | user/transport/rendezvous.c | s/^			rendezvous_send_fin(e, qp, wqe);/			;/;s/^		if (status == CQE_SUCCESS)$/		if (0)/ | tag_matching
cq_busy           | user/verbs/cq.c          | /^EXPORT int ibv_destroy_cq/,/^}/s/return verb_report(EBUSY);/;/ | ibv_create_cq
cq_size           | user/verbs/cq.c          | s/vcq->ibv.cqe = (int)cqe;/vcq->ibv.cqe = (int)cqe - 1;/ | ibv_create_cq
cq_channel_kept   | user/verbs/cq.c          | /^EXPORT int ibv_destroy_cq/,/^}/s/cq->channel->refcnt--;/;/ | ibv_create_cq
inv_rkey          | user/verbs/cq.c          | s/wc->imm_data = e->imm;/wc->imm_data = e->flags \& CQE_WITH_INV ? 0 : e->imm;/ | ibv_poll_cq
query_limit       | user/verbs/srq.c         | /^EXPORT int ibv_query_srq/,/^}/s/.srq_limit = vsrq->srq.limit/.srq_limit = 0/ | ibv_query_srq
query_max_wr      | user/verbs/srq.c         | /^EXPORT int ibv_query_srq/,/^}/s/vsrq->srq.rq.max_wr/rq_posted(\&vsrq->srq.rq)/ | ibv_query_srq
srq_num           | user/verbs/srq.c         | s/\*srq_num = vsrq->srq.number;/*srq_num = vsrq->srq.number + 1;/ | ibv_get_srq_num
srq_num_for_all   | user/verbs/srq.c         | /^int get_srq_num_op/,/^}/s/if (!vsrq->xrcd)/if (false)/ | ibv_get_srq_num
srq_cq_free       | user/verbs/srq.c         | s/users_count(&vsrq->cq->users, 1);/;/;s/users_count(&vsrq->cq->users, -1);/;/ | ibv_create_srq_ex
srq_busy          | user/verbs/srq.c         | /^EXPORT int ibv_destroy_srq/,/^}/s/return verb_report(EBUSY);/;/ | ibv_create_srq
bad_wr            | user/verbs/post.c        | /^static int rq_post/,/^}/s/\*bad_wr = wr;/*bad_wr = wr->next;/ | ibv_post_srq_recv
srq_unlocked      | user/verbs/post.c        | /^static int rq_post/,/^}/s/vlock_take(lock);//;/^static int rq_post/,/^}/s/vlock_drop(lock);// | ibv_post_srq_recv
grh_offset        | user/transport/datagram.c | s/!responder_scatter(e, qp, p, 0, ROCE_GRH_BYTES)/!responder_scatter(e, qp, p, 0, 0)/ | ibv_post_srq_recv
last_wqe_missing  | user/verbs/async.c       | /{ EVENT_QP_LAST_WQE,/d | ibv_post_srq_recv
qp_fatal_missing  | user/verbs/async.c       | /{ EVENT_QP_FATAL,/d | ibv_poll_cq
access_missing    | user/verbs/async.c       | /{ EVENT_QP_ACCESS_ERR,/d | ibv_get_async_event
comm_est_missing  | user/verbs/async.c       | /{ EVENT_COMM_EST,/d | ibv_get_async_event
drained_missing   | user/verbs/async.c       | /{ EVENT_SQ_DRAINED,/d | ibv_get_async_event
cq_err_missing    | user/verbs/async.c       | s/async_queue(to_vcontext(vcq->ibv.context), IBV_EVENT_CQ_ERR, &vcq->ibv);/;/ | ibv_poll_cq
limit_missing     | user/verbs/async.c       | /IBV_EVENT_SRQ_LIMIT_REACHED,$/{N;s/async_queue(.*);/;/} | ibv_query_srq
gid_change_often  | user/verbs/async.c       | s/if (type != IBV_EVENT_GID_CHANGE || !async_has(ctx, type))// | netns-port_events
fatal_silent      | user/verbs/async.c       | /^void async_device_fatal/,/^}/s/async_append(ctx, &event);/;/ | netns-port_events
fatal_sleepers    | user/verbs/async.c       | /^void async_device_fatal/,/^}/s/channel_wake(ch);/;/ | netns-port_events
req_err_missing   | user/verbs/async.c       | /{ EVENT_QP_REQ_ERR,/d | ibv_get_async_event
srq_err_missing   | user/verbs/async.c       | s/async_queue(to_vcontext(vsrq->ibv.context), IBV_EVENT_SRQ_ERR, &vsrq->ibv);/;/ | ibv_get_async_event
async_no_wait     | user/verbs/async.c       | s/while (\*completed != wait_for \&\& !ctx->inherited)/while (0)/ | ibv_get_async_event
async_left_behind | user/verbs/async.c       | /^void async_forget/,/^}/s/if (n->event.element.qp == object)/if (0)/ | ibv_get_async_event
error_unsolicited | user/transport/engine.c  | s/part->pushed_solicited |= solicited || failed;/part->pushed_solicited |= solicited;/ | netns-event_ways
event_each_time   | user/transport/cq.c      | s/&cq->armed, &armed, CQ_DISARMED,/\&cq->armed, \&armed, armed,/ | netns-event_ways
lost_of_several   | user/verbs/channel.c     | /^static struct vcq \*channel_pop/,/^}/s/if (!ch->head)$/if (1)/ | netns-event_ways
modify_cur_state  | user/transport/qp_state.c | s/if (mask & CUR \&\& attr->cur_state != from)/if (0)/ | ibv_modify_qp
modify_optional   | user/transport/qp_state.c | s/\[UC\] = { 0, AV | ACCESS | PKEY },/[UC] = { 0, ACCESS | PKEY },/ | ibv_modify_qp
modify_early      | user/verbs/qp_modify.c   | s/if (mask & IBV_QP_AV) {$/if (mask \& IBV_QP_AV) { set_ah_attr(vqp, \&attr->ah_attr);/ | ibv_modify_qp
mw_old_key        | user/transport/mr.c      | s/return mr_key(mr) == key \&\& mr->pd/return mr->pd/ | ibv_bind_mw
mw_below          | user/transport/mr.c      | s/if (va < mr->iova || va - mr->iova > mr->length || /if (/ | ibv_bind_mw
mw_local_write    | user/transport/mr.c      | s/!(region->access & MR_LOCAL_WRITE))/0)/ | ibv_bind_mw
mw_twice          | user/transport/mr.c      | s/refused = mw->kind == MR_WINDOW_2 && mw->region;/refused = false;/ | ibv_bind_mw
srq_pd            | user/transport/responder.c | s/sge_scatter(e->mrs, recv->pd, recv->sge/sge_scatter(e->mrs, qp->pd, recv->sge/ | srq_of_several
limit_of_several  | user/transport/engine.c  | s/rq_posted(&srq->rq) >= srq->limit/rq_posted(\&srq->rq) + 1 >= srq->limit/ | srq_of_several
purge_of_others   | user/transport/cq.c      | s/if (e->valid && e->qpn != qpn && --to/if (e->valid \&\& (e->qpn > qpn || qpn == NO_QPN) \&\& --to/ | cq_churn
ack_of_unsent     | user/transport/completer.c | s/    psn_diff(psn, req->sent_psn) >= 0)/    0)/ | netns-rogue
read_excess       | user/transport/responder.c | s/if (!resp->max_resources || (resource_pending(resp, next) \&\& !next->replay))/if (0)/ | netns-rogue
reset_hand        | user/shard/fault.c       | s/if (next->sa_flags & (int)SA_RESETHAND)/if (0)/ | netns-own_faults
dereg_keeps_key   | user/verbs/mr.c          | /^static int mr_leave/,/^}/s/	if (!busy)$/	if (0)/ | memory_under_way
limit_of_qps      | user/transport/qp.c      | s/t->num_qps == XROCE_MAX_QP)/t->num_qps == XROCE_MAX_QP - 1)/ | contract
fork_waits        | user/verbs/context.c     | s/ctx->inherited = true;/;/ | ibv_fork_init
fork_gone         | user/verbs/context.c     | s/atomic_store_explicit(&ctx->gone, true, memory_order_relaxed);/;/ | ibv_fork_init
fork_async_fd     | user/verbs/async.c       | s/kernel_event_replace(ctx->v.context.async_fd);/;/ | ibv_fork_init
fork_channel      | user/verbs/channel.c     | s/port_channel_abandon(ch->pc);/;/ | ibv_fork_init
fork_queue        | user/verbs/channel.c     | s/ch->head = NULL;/;/ | ibv_fork_init
fork_cq           | user/verbs/cq.c          | s/cq_abandon(&vcq->cq);/;/ | ibv_fork_init
fork_qp           | user/verbs/qp.c          | s/qp_abandon(vqp->qp);/;/ | ibv_fork_init
fork_import       | user/verbs/pd.c          | s/ && !context_gone(p->ibv.context) &&/ \&\&/ | ibv_fork_init
fork_rereg        | user/verbs/mr.c          | s/context_gone(mr->context) ? EIO : EINVAL/EINVAL/ | ibv_fork_init
claim_none        | user/verbs/qp.c          | s/err = -port_claim(vqp->port, vqp->qp->qpn);/err = 0;/ | netns-shared
release_none      | user/verbs/qp.c          | s/port_release(vqp->port, qpn);/;/ | netns-shared
lost_untold       | user/verbs/context.c     | s/err = watch_until_hangup(ctx->watch, port_lifeline(\*out));/err = 0;/ | netns-shared
claim_once        | user/verbs/qp.c          | s/tries < QPN_TRIES/tries < 1/ | netns-shared
claim_errno       | user/verbs/qp.c          | s/return err == ENOSPC || err == EEXIST ? ENOMEM : err;/return err;/ | netns-shared
TABLE
}

build() { make --no-print-directory -C "$tree/src" BUILD="$tree/build" -j"$(nproc)" "$@" >"$tree/make.out" 2>&1; }

run_test() {
	case $1 in
	contract) bash "$tree/src/tests/verbs/contract.sh" "$tree/build" ;;
	unit-*) # a missing fence shows by chance
		build WARNINGS= "$tree/build/tests/unit/test_${1#unit-}" || return
		for _ in 1 2 3 4 5 6 7 8; do
			timeout 120 "$tree/build/tests/unit/test_${1#unit-}" 2>&1 || return
		done
		;;
	tsan) bash "$tree/src/tests/verbs/tsan.sh" "$tree/build" ;;
	netns-*) bash "$tree/src/tests/netns/${1#netns-}.sh" "$tree/build" ;;
	*) XROCE_MAN_TIMEOUT=40 bash "$tree/src/tests/verbs/man.sh" "$tree/build" "$1" ;;
	esac
}

mkdir "$tree/src"
(cd "$here" && git ls-files -z | xargs -0 cp --parents -t "$tree/src") || exit 2
[ -n "${check:-}" ] || build all "$tree/build/tests/unit/test_cq" netns-tools || { cat "$tree/make.out"; exit 2; }

trim() { local s=$1; s=${s#"${s%%[![:space:]]*}"}; printf '%s' "${s%"${s##*[![:space:]]}"}"; }
killed=0 survived=0 stale=0
while IFS= read -r line; do
	name=$(trim "${line%%|*}")
	line=${line#*|}
	file=$(trim "${line%%|*}")
	line=${line#*|}
	tests=$(trim "${line##*|}")
	expression=$(trim "${line%|*}")
	if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
		continue
	fi
	cp "$tree/src/$file" "$tree/whole"
	sed -i "$expression" "$tree/src/$file"
	if cmp -s "$tree/whole" "$tree/src/$file"; then
		echo "stale $name: it changes nothing in $file"
		stale=$((stale + 1))
		continue
	fi
	if [ -n "${check:-}" ]; then
		cp "$tree/whole" "$tree/src/$file"
		continue
	fi
	# A mutation may leave something unused.
	if ! build WARNINGS= all; then
		echo "stale $name: it does not build"
		grep -m 3 error "$tree/make.out"
		stale=$((stale + 1))
	elif run_test "$tests" >"$tree/test.out" 2>&1; then
		echo "survived $name ($tests)"
		survived=$((survived + 1))
	else
		echo "killed $name by $(grep -m 1 -oE '^not ok [a-z0-9_]+|^\[  FAILED  \] [a-z0-9_]+' "$tree/test.out" | sed 's/.* //') ($tests)"
		killed=$((killed + 1))
	fi
	cp "$tree/whole" "$tree/src/$file"
done < <(mutations)
echo "$killed killed, $survived survived, $stale stale"
[ $stale -eq 0 ] || exit 2
[ $survived -eq 0 ]
