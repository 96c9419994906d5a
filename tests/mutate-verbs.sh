#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Are the tests of the CQ, SRQ and channel code, and of what librdmacm asks the kernel and the verbs
# (its pure modules are in mutations.txt), able to fail? mutate-verbs.sh [NAME...] copies the
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

# NAME | FILE | sed expression | tests: pages of man.sh, or contract, tsan, unit-NAME, netns-NAME,
# rdmacm-SUBJECT (of rdmacm/man.sh)
mutations() {
	cat <<'TABLE'
cntr_sent         | user/engine/qp.c         | /^static rare void count_sent/,/^}/s/COUNTED_READ\]/COUNTED_WRITE]/ | ibv_create_comp_cntr
cntr_flushed      | user/engine/qp.c         | s/comp_cntr_add(qp->counter\[COUNTED_RECV\], CQE_WR_FLUSH_ERR, 0);/;/ | ibv_create_comp_cntr
cntr_received     | user/engine/responder.c  | s/^		count_received(qp, cqe);/		;/ | ibv_create_comp_cntr
cntr_executed     | user/engine/responder.c  | s/p->flags \& OP_WRITE \&\& p->flags \& OP_END)/p->flags \& OP_WRITE)/ | ibv_create_comp_cntr
cntr_failed       | user/engine/comp_cntr.h  | s/if (status != CQE_SUCCESS)/if (0)/ | ibv_create_comp_cntr
cntr_bytes        | user/engine/comp_cntr.h  | s/c->counts_bytes ? bytes : 1/1/ | ibv_create_comp_cntr
cntr_state        | user/verbs/comp_cntr.c   | s/if (state != QPS_RESET \&\& state != QPS_INIT)/if (0)/ | ibv_create_comp_cntr
cntr_overlap      | user/verbs/comp_cntr.c   | s/return EBUSY;/continue;/ | ibv_create_comp_cntr
cntr_busy         | user/verbs/comp_cntr.c   | s/if (users_left(\&c->users))/if (0)/ | ibv_create_comp_cntr
cntr_kept         | user/verbs/qp.c          | s/comp_cntrs_leave(vqp);/;/ | ibv_create_comp_cntr
buf_bounds        | user/verbs/newer.c       | s/offset > buf->length || attr->length > buf->length - offset/offset > buf->length/ | ibv_reg_mr_ex
buf_pd            | user/verbs/newer.c       | s/ || buf->pd != pd//;s/^	pd_use(to_vpd(pd));/	;/ | ibv_reg_mr_ex
dmah_busy         | user/verbs/newer.c       | s/if (users_left(\&dmah->users))/if (0)/ | ibv_reg_mr_ex
dmah_foreign      | user/verbs/newer.c       | s/ || attr->dmah->context != pd->context//  | ibv_reg_mr_ex
ops_size          | user/verbs/newer.c       | s/ctx->v.sz = .*/ctx->v.sz = sizeof(ctx->v);/ | ibv_reg_mr_ex
speed_unit        | user/verbs/query.c       | s|netdev_port_speed(\&nd).mbps) / 100;|netdev_port_speed(\&nd).mbps);| | ibv_reg_mr_ex
info_busy         | user/rdmacm/resolve_info.c | s/if (id->info || id->info_question)/if (0)/ | rdmacm-addrinfo
info_destroyed    | user/rdmacm/resolve_info.c | s/id->info_question->id = NULL;/;/ | rdmacm-addrinfo
user_event_arg    | user/rdmacm/resolve_info.c | s/memcpy(\&ev->pub.param, \&arg, sizeof(arg));/;/ | rdmacm-addrinfo
repoll_turns      | user/rsocket/repoll.c    | s/set->first = at + 1;/;/ | rdmacm-repoll
repoll_wakes      | user/rsocket/repoll.c    | /^static int set_change/,/^}/s/set_changed(set);/;/ | rdmacm-repoll
repoll_one_shot   | user/rsocket/repoll.c    | s/e->disarmed = .*/;/ | rdmacm-repoll
repoll_closed     | user/rsocket/rsocket.c   | s/repoll_forget(socket);/;/ | rdmacm-repoll
inv_too_early     | user/engine/responder.c | s/mw_can_invalidate(e->mrs, qp->resp.pd, p->inv_rkey, qp->qpn) ?/!mw_invalidate(e->mrs, qp->resp.pd, p->inv_rkey, qp->qpn) ?/ | windows_under_way
dealloc_leaves    | user/verbs/mr.c          | /^int dealloc_mw_op/,/^}/s/mr_remove(.*);/;/ | windows_under_way
write_opens_once  | user/engine/responder.c | /return mr_allows(e->mrs, qp->resp.pd, qp->qpn, seq->rkey/s/mr_allows/true || mr_allows/;s/dst = mr_open(e->mrs, qp->resp.pd, qp->qpn, rkey, va, len, MR_REMOTE_WRITE);/static u8 *first; & if (p->flags \& OP_START) first = dst.at; else dst.at = first += p->payload_len;/ | windows_under_way
left_flows        | user/verbs/flow.c        | s/forks, NULL, flow_at_close/forks, NULL, NULL/ | left_objects
left_wq           | user/verbs/wq.c          | s/wq_in_child, wq_at_close/wq_in_child, NULL/ | left_objects
left_groups       | user/verbs/qp.c          | s/port_detach_all(vqp->port, vqp->qp);/;/ | left_objects
left_target       | user/verbs/qp.c          | s/else if (handles_are_over(vqp->qp->owner))/else if (0)/ | left_objects
left_target_open  | user/verbs/qp.c          | s/^	    !handles_are_over(qp->owner)) {/	    true) {/ | left_objects
left_srq          | user/verbs/srq.c         | s/srq_in_child, srq_at_close/srq_in_child, NULL/ | left_objects
left_name         | user/verbs/domain.c      | s/xrcd_in_child, xrcd_at_close/xrcd_in_child, NULL/ | left_objects
left_dm           | user/verbs/dm.c          | s/dm_in_child, dm_give/dm_in_child, NULL/ | left_objects
left_limits       | user/verbs/context.c     | s/if (atomic_load_explicit(\&ctx->forks.is_over, memory_order_relaxed))/if (0)/ | left_objects
overrun_ex        | user/verbs/cq.c       | s/return err ? err : ENOENT;/return ENOENT;/ | loose_ends
wr_setter_alone   | user/verbs/wr.c          | /^static struct send_wqe \*wr_to_set_data/,/^}/s/wr_fail(vqp, EINVAL);/;/ | wr_batches
wr_address_alone  | user/verbs/wr.c          | /^static struct send_wqe \*wr_to_set(/,/^}/s/wr_fail(vqp, EINVAL);/;/ | wr_batches
wr_data_unfit     | user/verbs/wr.c          | s/ \&\& !(WITHOUT_DATA >> wqe->opcode \& 1)// | wr_matrix
wr_no_window      | user/verbs/wr.c          | s/mw \&\& mw->type == IBV_MW_TYPE_2 ?/mw ?/ | wr_batches
wr_key_early      | user/verbs/wr.c          | s/wqe->bind.window = mw;/wqe->bind.window = mw, mw->rkey = wqe->bind.new_key;/ | wr_batches
wr_key_never      | user/verbs/wr.c          | s/vqp->wr_binds = true;/;/ | wr_batches
wr_uc_has_all     | user/verbs/wr.c          | s/return OPS_SEND | OPS_WRITE | OPS_LOCAL;/return OPS_RC;/ | wr_create
inline_torn       | user/verbs/post.c        | s/guard_read_units(to, /memcpy(to, / | netns-words
wr_flush_type     | user/verbs/wr.c          | s/!type || type & ~FLUSH_TYPES/type \& ~FLUSH_TYPES/ | wr_flush
wr_flush_level    | user/verbs/wr.c          | s/ || level > FLUSH_LEVEL_MAX// | wr_flush
wr_flush_length   | user/verbs/wr.c          | s/ || len > UINT32_MAX// | wr_flush
wr_flush_place    | user/verbs/wr.c          | s/ + sizeof(void (\*)(void)))$/ + 16)/ | wr_create
persistent        | user/verbs/mr.c          | s/return access & ACCESS_FLUSH_PERSISTENT ? EOPNOTSUPP : 0;/return 0;/ | wr_flush
cap_flush         | user/verbs/query.c       | s/ | CAP_FLUSH_GLOBAL | CAP_ATOMIC_WRITE// | wr_flush
qp_flush_right    | user/verbs/qp_modify.c   | s/((1 << 10) - 1)/((1 << 8) - 1)/ | wr_flush
attached_goes     | user/verbs/qp.c          | s/attached = vqp->qp->groups;/attached = false;/ | ibv_attach_mcast
max_mcast_grp     | user/verbs/query.c       | s/max_mcast_grp = GROUP_MAX/max_mcast_grp = 2 * GROUP_MAX/ | ibv_attach_mcast
max_mcast_qp      | user/verbs/query.c       | s/attach = GROUP_MEMBERS_MAX;/attach = GROUP_MEMBERS_MAX + 1;/ | ibv_attach_mcast
group_loop        | user/run/pump.c        | s/return takes ? ROUTE_BOTH : ROUTE_WIRE/return ROUTE_WIRE/ | ibv_attach_mcast
rate_errno        | user/verbs/qp_modify.c   | s/attr->comp_mask ? EINVAL : modify/false ? EINVAL : modify/ | ibv_modify_qp_rate_limit
rate_queried      | user/verbs/qp.c          | s/attr->rate_limit = a.rate_limit.kbps;/attr->rate_limit = 0;/ | ibv_modify_qp_rate_limit
rate_burst_passed | user/verbs/qp_modify.c   | s/.burst_bytes = attr->max_burst_sz,/.burst_bytes = 0,/ | ibv_modify_qp_rate_limit
rt_values_mask    | user/verbs/query.c       | s/if (values->comp_mask & ~(u32)IBV/if (0 \& ~(u32)IBV/ | answers
data_in_order     | user/verbs/qp.c          | /^EXPORT int ibv_query_qp_data_in_order/,/^}/s/return 0;/return 1;/ | answers
data_in_order_caps | user/verbs/qp.c         | s/return flags & IN_ORDER_RETURN_CAPS ? IN_ORDER_WHOLE_MSG | IN_ORDER_ALIGNED_128 : 1;/return 1;/ | answers
data_in_order_ud  | user/verbs/qp.c          | s/return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_XRC_RECV;/return true;/ | answers
ece_zeros         | user/verbs/qp_modify.c   | s/memset(ece, 0, sizeof(.ece));/;/ | answers
alternate_path    | user/verbs/qp_modify.c   | s/(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP)/(IBV_QP_CAP)/ | answers
import_other_file | user/verbs/domain.c          | s/to_vcontext(p->ibv.context)->file_id == to_vcontext(context)->file_id/true/ | answers
import_other_pd   | user/verbs/mr.c          | s/ && to_vpd(m->ibv.pd)->number == to_vpd(pd)->number)/)/ | answers
dmabuf_magic      | user/verbs/dm.c      | s/fs.f_type != DMA_BUF_MAGIC/fs.f_type == 0/ | dmabuf
dmabuf_end        | user/verbs/dm.c      | s/ || end > (u64)size)/)/ | dmabuf
dmabuf_page       | user/verbs/dm.c      | s/ || ((offset ^ iova) & (page - 1)))/)/ | dmabuf
dmabuf_access     | user/verbs/dm.c      | s/if (access & ~DMABUF_ACCESS || /if (/ | dmabuf
dmabuf_offset     | user/verbs/dm.c      | s/(u8 .)mapping.at + (offset & (page - 1))/(u8 *)mapping.at/ | dmabuf
dmabuf_unmapped   | user/verbs/mr.c          | s/^	mr_unmap(&vmr->mapping);/	;/ | dmabuf
dmabuf_imported   | user/verbs/mr.c          | s/vmr->mapping = m->mapping;/;/ | dmabuf
dmabuf_rereg      | user/verbs/mr.c          | s/ || vmr->mapping.at)/)/ | dmabuf
rereg_length      | user/verbs/mr.c          | s/(!addr || !length)/(!addr)/ | ibv_rereg_mr
rereg_access      | user/verbs/mr.c          | s/(access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))/false/ | ibv_rereg_mr
rereg_foreign     | user/verbs/mr.c          | s/if (!new_pd || new_pd->context != vmr->ibv.context)/if (!new_pd)/ | ibv_rereg_mr
rereg_pd          | user/verbs/mr.c          | s/to_vpd(new_pd)->number,$/to_vpd(mr->pd)->number,/ | ibv_rereg_mr
rereg_keys        | user/engine/mr.c      | /^void mr_replace/,/^}/s/atomic_store_explicit(&mr->key, key, memory_order_relaxed);/;/ | ibv_rereg_mr
rereg_rights      | user/verbs/mr.c          | s/new_addr, new_length, iova, new_access);/new_addr, new_length, iova, vmr->access);/ | ibv_rereg_mr
yield_later       | user/verbs/cq.c          | s/if (vain_polls < yield_polls)/if (vain_polls <= yield_polls)/ | yield
yield_after_found | user/verbs/cq.c          | s/vain_polls = e ? 0 : vain_polls + 1;/vain_polls++;/ | yield
byte_len          | user/verbs/cq.c          | s/wc->byte_len = e->byte_len;/wc->byte_len = e->byte_len + 1;/ | ibv_poll_cq
byte_len_ex       | user/verbs/cq.c       | s/current->byte_len;/current->byte_len + 1;/ | ibv_create_cq_ex
opcode            | user/verbs/cq.c          | s/(enum ibv_wc_opcode)e->opcode/(enum ibv_wc_opcode)(e->opcode \& ~1u)/ | ibv_poll_cq
opcode_ex         | user/verbs/cq.c       | s/(enum ibv_wc_opcode)to_vcq_ex(cq)->current->opcode/IBV_WC_SEND/ | ibv_create_cq_ex
src_qp            | user/verbs/cq.c          | s/wc->src_qp = e->src_qpn;/wc->src_qp = e->qpn;/ | ibv_poll_cq
src_qp_ex         | user/verbs/cq.c       | s/current->src_qpn;/current->qpn;/ | ibv_create_cq_ex
wr_id             | user/verbs/cq.c          | s/wc->wr_id = e->wr_id;/wc->wr_id = (u32)e->wr_id;/ | ibv_poll_cq
wr_id_ex          | user/verbs/cq.c       | s/vcq->ex.wr_id = e->wr_id;/vcq->ex.wr_id = (u32)e->wr_id;/ | ibv_create_cq_ex
imm_data          | user/verbs/cq.c          | s/wc->imm_data = e->imm;/wc->imm_data = __builtin_bswap32(e->imm);/ | ibv_poll_cq
imm_data_ex       | user/verbs/cq.c       | s/current->imm;/current->imm + 1;/ | ibv_create_cq_ex
wc_flags_missing  | user/verbs/cq.c          | s/wc->wc_flags = e->flags;/wc->wc_flags = e->flags \& ~CQE_GRH;/ | ibv_poll_cq
wc_flags_extra    | user/verbs/cq.c          | s/wc->wc_flags = e->flags;/wc->wc_flags = e->flags \| CQE_GRH;/ | ibv_poll_cq
wc_flags_ex       | user/verbs/cq.c       | s/current->flags;/current->flags \& ~CQE_WITH_IMM;/ | ibv_create_cq_ex
qp_num            | user/verbs/cq.c          | s/wc->qp_num = e->qpn;/wc->qp_num = e->src_qpn;/ | ibv_poll_cq
status            | user/verbs/cq.c          | s/wc->status = (enum ibv_wc_status)e->status;/wc->status = 0;/ | ibv_poll_cq
vendor_err        | user/verbs/cq.c          | s/wc->vendor_err = e->vendor_err;/wc->vendor_err = e->status;/ | ibv_poll_cq
unasked_field     | user/verbs/cq.c       | s/wc_flags & IBV_WC_EX_WITH_CVLAN ? read_cvlan : NULL/read_cvlan/ | ibv_create_cq_ex
timestamp         | user/verbs/cq.c       | s/return clock_own_ns(to_vcq_ex(cq)->current->time_ns);/return clock_own_ns(to_vcq_ex(cq)->current->time_ns) \/ 1000;/ | ibv_create_cq_ex
wall_clock        | user/verbs/cq.c       | s/return vcq->wall_ahead_ns;/return vcq->wall_ahead_ns - 2000000;/ | ibv_create_cq_ex
wall_clock_back   | user/verbs/cq.c       | s/if (vcq->wall_ahead_ns < least .*/if (true)/;s/if (ns > vcq->wall_ns .*/if (true)/ | cq_corners
next_poll_blind   | user/verbs/cq.c       | /^static int cq_ex_next/,/^}/s/cq_peek_or_run_held(vcq)/cq_peek(\&vcq->cq)/ | cq_corners
one_edge          | user/verbs/events.c     | s/^	port_channel_raise(ch->pc);/	if (!ch->raised) port_channel_raise(ch->pc);/ | cq_corners
srq_limit_said    | user/verbs/srq.c         | s/attr->srq_limit = 0;.*/;/ | cq_corners
overrun_new_qp    | user/verbs/cq.c          | s/if (cq_has_overrun(&vcq->cq))/if (0)/ | cq_corners
receive_time      | user/engine/responder.c | s/hint \&\& hint->rx_time_ns ? hint->rx_time_ns : now_ns/now_ns/ | netns-fields
cvlan             | user/engine/responder.c | s/cqe->vlan_tci = p->vlan_tci;/cqe->vlan_tci = p->vlan_tci \& 0xfff;/ | netns-fields
sl                | user/engine/responder.c | s/p->has_vlan ? p->vlan_tci >> 13 : p->tos >> 5/p->tos >> 5/ | netns-fields
flow_tag          | user/engine/responder.c | s/cqe->flow_tag = .*;/cqe->flow_tag = 1;/ | netns-fields
single_threaded   | user/verbs/cq.c       | s/vcq->lock.off = .*/vcq->lock.off = false;/ | ibv_create_cq_ex
foreign_domain    | user/verbs/cq.c       | s/ || domain->ibv.context != context)/)/ | ibv_alloc_parent_domain
foreign_pd        | user/verbs/domain.c          | s/if (attr->pd->context != context || /if (/ | ibv_alloc_parent_domain
foreign_td        | user/verbs/domain.c          | s/ || (attr->td && attr->td->context != context))/)/ | ibv_alloc_parent_domain
td_sq             | user/verbs/qp.c          | s/vqp->sq_lock.off = vqp->rq_lock.off =/vqp->rq_lock.off =/ | thread_domain
td_rq             | user/verbs/qp.c          | s/vqp->sq_lock.off = vqp->rq_lock.off =/vqp->sq_lock.off =/ | thread_domain
td_srq            | user/verbs/srq.c         | s/vsrq->lock.off = pd->td != NULL;/;/ | thread_domain
td_cq             | user/verbs/cq.c       | s/ || (domain && domain->td);/;/ | thread_domain
td_not_held       | user/verbs/domain.c          | s/users_count(&pd->td->users, 1);/;/;s/users_count(&pd->td->users, -1);/;/ | thread_domain
td_no_one_else    | user/verbs/objects.h     | /^static inline bool vlock_try/,/^}/s/l->off/1/ | thread_domain
unknown_pd        | user/verbs/domain.c          | /^struct ibv_pd \*alloc_parent_domain_op/,/^}/s/if (!object_is_known(to_vpd(attr->pd)))/if (0)/ | thread_domain
domain_handle     | user/verbs/domain.c          | s/pd_new(context, attr->pd->handle, /pd_new(context, new_handle(), / | ibv_alloc_parent_domain
memory_unasked    | user/verbs/domain.c      | s/if (!(attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS))/if (!attr->alloc)/ | domain_memory
memory_half       | user/verbs/domain.c      | s/if (!attr->alloc || !attr->free)/if (!attr->alloc)/ | domain_memory
memory_context    | user/verbs/domain.c      | s/if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)/if (1)/ | domain_memory
memory_tags       | user/engine/tag.c | s/^		    init->sq_lent))/		    NULL))/ | domain_memory
memory_tags_kept  | user/engine/tag.c | s/^		sq_free(&qp->shared->posted);/		free(qp->shared->posted.ring);/ | domain_memory
memory_null       | user/verbs/domain.c      | s/^		return ENOMEM;/		return 0;/ | domain_memory
memory_default    | user/verbs/domain.c      | s/if (p == IBV_ALLOCATOR_USE_DEFAULT)/if (0)/ | domain_memory
memory_aligned    | user/verbs/domain.c      | s/if ((uintptr_t)p % CACHE_LINE) {/if (0) {/ | domain_memory
memory_kept       | user/verbs/domain.c      | /^int memory_take(/,/^}/s/memory_give_back(pd, kind, p);/;/ | domain_memory
memory_nothing    | user/verbs/domain.c      | s/recvs ? rq_bytes(recvs, init->max_recv_sge) : 0/rq_bytes(recvs, init->max_recv_sge)/ | domain_memory
memory_types      | user/verbs/domain.c      | s/memory_give_back(domain_of(vqp), MEMORY_RECV_QUEUE, vqp->rq_memory);/memory_give_back(domain_of(vqp), MEMORY_SEND_QUEUE, vqp->rq_memory);/ | domain_memory
memory_half_qp    | user/verbs/domain.c      | /^int memory_take_queues/,/^}/s/memory_give_back_queues(vqp);/;/ | domain_memory
memory_failed_qp  | user/verbs/qp.c          | /^static int qp_enter/,/^}/s/memory_give_back_queues(vqp);/;/ | domain_memory
memory_of_qp      | user/verbs/qp.c          | /^EXPORT int ibv_destroy_qp/,/^}/s/memory_give_back_queues(vqp);/;/ | domain_memory
memory_under_lock | user/verbs/cq.c          | /^EXPORT int ibv_resize_cq/,/^}/{s/^	memory_give_back(.*//;s/^	if (port)$/	memory_give_back(vcq->domain, MEMORY_CQ, ring);\n	if (port)/} | domain_memory
memory_of_cq      | user/verbs/cq.c          | s/memory_give_back(vcq->domain, MEMORY_CQ, vcq->cq.lent ? vcq->cq.ring : NULL);/;/ | domain_memory
memory_resized_cq | user/verbs/cq.c          | /^EXPORT int ibv_resize_cq/,/^}/s/memory_give_back(vcq->domain, MEMORY_CQ, ring);/;/ | domain_memory
memory_of_srq     | user/verbs/srq.c         | s/memory_give_back(to_vpd(vsrq->ibv.pd), MEMORY_SRQ, rq->lent ? rq->ring : NULL);/;/ | domain_memory
memory_resized_srq | user/verbs/srq.c        | s/memory_give_back(to_vpd(srq->pd), MEMORY_SRQ, ring);/;/ | domain_memory
ignore_overrun    | user/verbs/cq.c       | s/vcq->cq.ignore_overrun = .*/vcq->cq.ignore_overrun = false;/ | ibv_create_cq_ex
comp_vector       | user/verbs/cq.c          | s/vector >= (u32)context->num_comp_vectors/vector > (u32)context->num_comp_vectors/ | ibv_create_cq_ex
end_poll_keeps    | user/verbs/cq.c       | /^static void cq_ex_end/,/^}/s/cq_pop(&vcq->cq);/;/ | ibv_create_cq_ex
overrun_silent    | user/engine/cq.c      | s/engine_cq_event(e, cq, EVENT_CQ_ERR | /engine_cq_event(e, cq, 0 | / | ibv_poll_cq
overrun_usable    | user/verbs/cq.c          | s/if (cq_has_overrun(&vcq->cq))/if (0)/ | ibv_poll_cq
overrun_keeps_qps | user/engine/cq.c      | s/engine_qp_error(e, qp, EVENT_QP_FATAL);/;/ | ibv_poll_cq
overrun_early     | user/engine/cq.c      | s/prod - cons >= cq->capacity/prod - cons + 1 >= cq->capacity/ | ibv_poll_cq
event_for_nothing | user/verbs/cq.c          | /^int req_notify_cq_op/,/^}/s/port_cq_arm(ctx->port, &vcq->cq, solicited_only);/port_cq_arm(ctx->port, \&vcq->cq, solicited_only); channel_event(vcq);/ | ibv_req_notify_cq
not_one_shot      | user/engine/cq.c      | s/&cq->armed, &armed, CQ_DISARMED,/\&cq->armed, \&armed, armed,/ | ibv_req_notify_cq
solicited_ignored | user/verbs/cq.c          | s/port_cq_arm(ctx->port, &vcq->cq, solicited_only);/port_cq_arm(ctx->port, \&vcq->cq, 0);/ | ibv_req_notify_cq
solicited_always  | user/engine/cq.c      | s/part->pushed_solicited |= solicited || failed;/part->pushed_solicited |= solicited;/ | ibv_req_notify_cq
arm_narrowed      | user/run/cq_notify.c         | s/if (want == XROCE_CQ_ARMED_ANY)/if (true)/ | ibv_req_notify_cq
lost_no_fence     | user/engine/cq.h      | s/^	atomic_thread_fence(memory_order_seq_cst);/	;/ | unit-cq
lost_descriptor   | user/verbs/events.c     | /^static struct vcq \*channel_pop/,/^}/s/if (!ch->head)$/if (1)/ | ibv_get_cq_event
lost_requeue      | user/verbs/events.c     | s/if (--vcq->events_pending) {/vcq->events_pending = 0; if (0) {/ | ibv_get_cq_event
no_wait_for_acks  | user/verbs/events.c     | s/^\tevents_await_acks(/\tif (0) events_await_acks(/ | ibv_get_cq_event
ack_counts_one    | user/verbs/events.c     | s/cq->comp_events_completed += nevents;/cq->comp_events_completed += 1;/ | ibv_get_cq_event
event_before_push | user/engine/cq.c      | /^static per_packet void complete_push/,/^}/s/if (likely(cq_push_end(cq, cqe)))/bool take = !atomic_load_explicit(\&cq->moderate_count, memory_order_relaxed) \&\& cq_take_event(cq, solicited || failed);\n	&/;/^static per_packet void complete_push/,/^}/s/if (!wakes)/if (take)\n		engine_cq_event(e, cq, EVENT_COMPLETION);\n	if (true)/ | unit-engine
resize_iteration  | user/verbs/cq.c          | s/vcq->current = cq_hold(&vcq->cq);/;/ | ibv_resize_cq
readable_nothing  | user/verbs/events.c     | s/port_channel_extra(ch->pc);/;/ | netns-arming
unseen_wakes      | bpf/wake.h               | s/ends &= ~ENDS_SEND;/;/ | netns-arming
moderate_count    | user/engine/cq.c | s/cq->withheld >= count/cq->withheld > count/ | ibv_modify_cq
moderate_early    | user/engine/cq.c | s/e->now_ns + cq->moderate_ns/e->now_ns + cq->moderate_ns \/ 2/ | ibv_modify_cq
moderate_lost     | user/engine/cq.c | s/^	if (cq->withheld && cq_take_event(cq, true))/	if (0)/ | ibv_modify_cq
limit_twice       | user/engine/engine.c  | /^static void engine_check_limit/,/^}/s/srq->limit = 0;/;/ | ibv_modify_srq
limit_late        | user/engine/engine.c  | s/rq_posted(&srq->rq) >= srq->limit/rq_posted(\&srq->rq) + 1 >= srq->limit/ | ibv_modify_srq
limit_early       | user/engine/engine.c  | s/rq_posted(&srq->rq) >= srq->limit/rq_posted(\&srq->rq) > srq->limit/ | ibv_modify_srq
resize_drops      | user/engine/rq.c      | /^int rq_resize/,/^}/s/i = cons; i != prod/i = cons + 1; i < prod/ | ibv_modify_srq
resize_unlocked   | user/verbs/srq.c         | /^EXPORT int ibv_modify_srq/,/^}/s/vlock_take(&vsrq->lock);//;/^EXPORT int ibv_modify_srq/,/^}/s/vlock_drop(&vsrq->lock);// | ibv_modify_srq
resize_cq_drops   | user/engine/cq.c      | /^int cq_resize/,/^}/s/i = cons; i != prod/i = cons + 1; i < prod/ | ibv_resize_cq
tm_caps           | user/verbs/query.c       | s/full.tm_caps.max_sge = TAG_MAX_SGE;/full.tm_caps.max_sge = TAG_MAX_SGE + 1;/ | ibv_post_srq_ops
tm_caps_flags     | user/verbs/query.c       | s/full.tm_caps.flags = IBV_TM_CAP_RC;/;/ | ibv_create_srq_ex
tm_max_tags       | user/verbs/srq.c         | s/tag_list_create(attr->tm_cap.max_num_tags,/tag_list_create(TAG_MAX_TAGS,/ | ibv_post_srq_ops
tm_other_types    | user/engine/qp.c      | s/(tags \&\& init->transport != XROCE_RC)/(tags \&\& init->transport == XROCE_UD)/ | ibv_create_srq_ex
tm_cq_busy        | user/verbs/srq.c         | /^static struct ibv_srq \*srq_ready/,/^}/s/if (vsrq->cq)/if (vsrq->xrcd)/;/^EXPORT int ibv_destroy_srq/,/^}/s/if (vsrq->cq)/if (vsrq->xrcd)/ | ibv_create_srq_ex
tm_info_tag       | user/verbs/cq.c       | s/info->tag = e->tm_tag;/info->tag = (u32)e->tm_tag;/ | ibv_post_srq_ops
tm_info_priv      | user/verbs/cq.c       | s/info->priv = e->tm_priv;/info->priv = __builtin_bswap32(e->tm_priv);/ | ibv_post_srq_ops
tm_info_unasked   | user/verbs/cq.c       | s/wc_flags & IBV_WC_EX_WITH_TM_INFO ? read_tm_info : NULL/read_tm_info/ | ibv_create_cq_ex
tm_handle         | user/verbs/srq.c     | s/wr->tm.handle = op.handle;/wr->tm.handle = 0;/ | ibv_post_srq_ops
tm_recv_wr_id     | user/verbs/srq.c     | s/.recv_wr_id = is_add ? wr->tm.add.recv_wr_id : 0,/.recv_wr_id = wr->wr_id,/ | ibv_post_srq_ops
tm_bad_wr         | user/verbs/srq.c     | s/^			\*bad_wr = wr;/			*bad_wr = wr->next;/ | ibv_post_srq_ops
tm_num_sge        | user/verbs/srq.c     | s/(u32)wr->tm.add.num_sge/(u32)wr->tm.add.num_sge \& 7/ | ibv_post_srq_ops
tm_unlocked       | user/verbs/srq.c     | s/port_lock(vsrq->port);//;s/port_unlock(vsrq->port);// | tsan
tm_sync_ignored   | user/engine/tag.c     | s/if (op->opcode == TAG_SYNC || op->flags & TAG_OP_SYNC) {/if (0) {/ | ibv_post_srq_ops
tm_always_in_step | user/engine/tag.c     | s/return list->unexpected == list->handled;/return true;/ | ibv_post_srq_ops
tm_header_kept    | user/engine/tag.c     | s/kind == TAG_MATCHED ? sizeof(h.tmh) : /kind == TAG_MATCHED ? 0 : / | ibv_post_srq_ops
tm_no_fin         | user/engine/tag.c | s/^			rendezvous_send_fin(e, qp, wqe);/			;/;s/^		if (status == CQE_SUCCESS)$/		if (0)/ | tag_matching
cq_busy           | user/verbs/cq.c          | /^static int cq_destroy.*)$/,/^}/s/return verb_report(EBUSY);/;/ | ibv_create_cq
cq_size           | user/verbs/cq.c          | s/vcq->ibv.cqe = (int)cqe;/vcq->ibv.cqe = (int)cqe - 1;/ | ibv_create_cq
cq_channel_kept   | user/verbs/cq.c          | /^static int cq_destroy.*)$/,/^}/s/cq->channel->refcnt--;/;/ | ibv_create_cq
inv_rkey          | user/verbs/cq.c          | s/wc->imm_data = e->imm;/wc->imm_data = e->flags \& CQE_WITH_INV ? 0 : e->imm;/ | ibv_poll_cq
query_limit       | user/verbs/srq.c         | /^EXPORT int ibv_query_srq/,/^}/s/.srq_limit = vsrq->srq.limit/.srq_limit = 0/ | ibv_query_srq
query_max_wr      | user/verbs/srq.c         | /^EXPORT int ibv_query_srq/,/^}/s/vsrq->srq.rq.max_wr/rq_posted(\&vsrq->srq.rq)/ | ibv_query_srq
srq_num           | user/verbs/srq.c         | s/\*srq_num = vsrq->srq.number;/*srq_num = vsrq->srq.number + 1;/ | ibv_get_srq_num
srq_num_for_all   | user/verbs/srq.c         | /^int get_srq_num_op/,/^}/s/if (!vsrq->xrcd)/if (false)/ | ibv_get_srq_num
srq_cq_free       | user/verbs/srq.c         | s/users_count(&vsrq->cq->users, 1);/;/;s/users_count(&vsrq->cq->users, -1);/;/ | ibv_create_srq_ex
srq_busy          | user/verbs/srq.c         | /^EXPORT int ibv_destroy_srq/,/^}/s/return verb_report(EBUSY);/;/ | ibv_create_srq
bad_wr            | user/verbs/post.c        | /^static int rq_post/,/^}/s/\*bad_wr = wr;/*bad_wr = wr->next;/ | ibv_post_srq_recv
srq_unlocked      | user/verbs/post.c        | /^static int rq_post/,/^}/s/vlock_take(lock);//;/^static int rq_post/,/^}/s/vlock_drop(lock);// | ibv_post_srq_recv
flow_port         | user/verbs/flow.c        | s/attr->port != VERBS_PORT/false/ | ibv_create_flow
flow_flags        | user/verbs/flow.c        | s/attr->flags & ~known/false/ | ibv_create_flow
flow_size         | user/verbs/flow.c        | s/if (spec.hdr.size != size)/if (false)/ | ibv_create_flow
flow_layers       | user/verbs/flow.c        | s/if (w->mask->kinds & (kind | excluded))/if (false)/ | ibv_create_flow
flow_two_tunnels  | user/verbs/flow.c        | s/XROCE_FLOW_GRE, tunnels) ? 0 : EINVAL/XROCE_FLOW_GRE, 0) ? 0 : EINVAL/ | ibv_create_flow
flow_vni          | user/verbs/flow.c        | s/return !(be32toh(mask->id) >> 24) \&\&/return true \&\&/ | ibv_create_flow
flow_inner_eth    | user/verbs/flow.c        | s/		if (\*has_eth)/		if (0)/ | ibv_create_flow
flow_tunnels      | user/run/steer.c       | s/.tunnel_mask = f->rule.tunnel_mask,// | netns-flows
flow_tags         | user/verbs/flow.c        | s/if (rule->has_tag)/if (false)/ | ibv_create_flow
flow_drops        | user/verbs/flow.c        | s/if (rule->raw.drops)/if (false)/ | ibv_create_flow
flow_copies_drop  | user/verbs/flow.c        | s/if (rule->raw.copies \&\& rule->raw.drops)/if (false)/ | ibv_create_flow
flow_sniffs_sent  | user/run/pump.c        | s/if (unlikely(copies))/if (false)/ | netns-sniffer
flow_copying      | user/run/steer.c       | s/copying = raw_has_copies(all->shard\[0\].engine);/copying = 0;/ | netns-sniffer
flow_default      | user/verbs/flow.c        | s/return rule->has_match ? EINVAL : 0;/return 0;/ | ibv_create_flow
flow_counters     | user/verbs/flow.c        | s/if (rule->has_counters)$/if (0)/ | ibv_create_counters
flow_unbound      | user/verbs/flow.c        | s/counters_unbind(vflow->counters);/;/ | ibv_create_counters
flow_counts_more  | user/run/steer.c       | s/(shards_more_count(f) ? XROCE_FLOW_MORE_COUNT : 0)/0/ | netns-flows
flow_dropped      | user/run/steer.c       | s/(f->rule.drops ? XROCE_FLOW_DROP : 0)/0/ | netns-flows
flow_equal        | user/verbs/flow.c        | s/rule->raw.order = ORDER_DEFAULT;/rule->raw.order |= ORDER_DEFAULT;/ | netns-raw_model
flow_first_tag    | include/xroce/flow.h     | s/^		if (!i) {/		if (1) {/ | netns-raw_model
flow_fragment     | include/xroce/flow.h     | s/return ip.fragment & FLOW_BE16(0x1fff) ? 0 : at + header;/return at + header;/ | netns-raw_model
counter_key_taken | user/port/port_flow.c | s/port->counters.c->raw.key. = true;/;/ | ibv_create_counters
counter_before    | user/port/port_flow.c | s/ - c->before.packets//;s/ - c->before.bytes// | netns-flows
counter_own       | user/port/port_flow.c | s/ + counter->own.packets//;s/ + counter->own.bytes// | ibv_create_counters
counter_cpus      | user/os/kernel.c       | s/sums.i % words. += values.i./sums[i % words] = values[i]/ | netns-flows
counters_busy     | user/verbs/flow.c    | s/	if (flows)/	if (0)/ | ibv_create_counters
counters_bound    | user/verbs/flow.c    | s/err = c->flows ? EBUSY :/err =/ | ibv_create_counters
counters_others   | user/verbs/flow.c    | s/ || counters->context != vqp->ibv.context// | ibv_create_counters
counters_empty    | user/verbs/flow.c    | s/if (!c->num_points)/if (0)/ | ibv_create_counters
counters_flags    | user/verbs/flow.c    | s/if (flags & ~(u32)IBV/if (0 \& ~(u32)IBV/ | ibv_create_counters
counters_since    | user/verbs/flow.c    | s/ - p->before;/;/ | ibv_create_counters
counters_far      | user/verbs/flow.c    | s/if (p->index < num)/if (p->index < num + 1)/ | ibv_create_counters
counters_summed   | user/verbs/flow.c    | s/values.p->index. += count_of/values[p->index] = count_of/ | ibv_create_counters
flow_busy         | user/verbs/qp.c          | s/attached |= vqp->qp->num_flows != 0;/;/ | ibv_create_flow
flow_qp_type      | user/verbs/flow.c        | s/qp->qp_type == IBV_QPT_RAW_PACKET ? rule_read(&rule, &attr, specs) : EINVAL/rule_read(\&rule, \&attr, specs)/ | ibv_create_flow
wq_type           | user/verbs/wq.c          | s/ || attr->wq_type != IBV_WQT_RQ ||/ ||/ | ibv_create_wq
wq_comp_mask      | user/verbs/wq.c          | s/attr->comp_mask >= IBV_WQ_INIT_ATTR_RESERVED/false/ | ibv_create_wq
wq_no_receives    | user/verbs/wq.c          | s/!attr->max_wr || //  | ibv_create_wq
wq_flags          | user/verbs/wq.c          | s/EINVAL : EOPNOTSUPP;/EINVAL : 0;/ | ibv_create_wq
wq_masks          | user/verbs/wq.c          | s/!attr->attr_mask || //  | ibv_create_wq
wq_current        | user/verbs/wq.c          | s/(u32)attr->curr_wq_state != (u32)wq_state(vwq->qp)/false/ | ibv_create_wq
wq_state_said     | user/verbs/wq.c          | s/^	vwq->ibv.state = (enum ibv_wq_state).*/	;/ | ibv_create_wq
wq_of_cq          | user/verbs/wq.c          | s/users_count(&to_vcq(attr->cq)->users, 1);/;/;s/users_count(&vcq->users, -1);/;/ | ibv_create_wq
wq_post_reset     | user/verbs/post.c        | s/if (qp_state(qp) == QPS_RESET || (qp_state(qp) == QPS_ERR/if ((qp_state(qp) == QPS_ERR/ | ibv_create_wq
wq_post_err       | user/verbs/post.c        | /^int post_wq_recv_op/,/^}/s/if (posted &&.*/if (0) {/ | ibv_create_wq
wq_event          | user/verbs/events.c       | s/event->type == EVENT_QP_FATAL \&\& vwq/0/ | ibv_create_rwq_ind_table
wq_event_waits    | user/verbs/events.c       | /case IBV_EVENT_WQ_FATAL:$/,/;/s/return &to_vwq.*/return NULL;/ | ibv_create_rwq_ind_table
wq_busy           | user/verbs/wq.c          | s/if (users_left(&vwq->users))/if (0)/ | ibv_create_rwq_ind_table
table_busy        | user/verbs/wq.c          | s/if (users_left(&table->users))/if (0)/ | ibv_create_rwq_ind_table
table_size        | user/verbs/wq.c          | s/attr->log_ind_tbl_size >= 32 ||/0 ||/ | ibv_create_rwq_ind_table
table_limit       | user/verbs/wq.c          | s/err = device_take(context, LIMIT_TABLE);/err = 0;/ | ibv_create_rwq_ind_table
hash_qp_type      | user/verbs/wq.c          | s/if (attr->qp_type != IBV_QPT_RAW_PACKET)/if (0)/ | ibv_create_rwq_ind_table
hash_both         | user/verbs/wq.c          | s/(attr->comp_mask & both) != both || //  | ibv_create_rwq_ind_table
hash_sends        | user/verbs/wq.c          | s/ || attr->cap.max_send_wr)/)/ | ibv_create_rwq_ind_table
hash_function     | user/verbs/wq.c          | s/conf->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ/0/ | ibv_create_rwq_ind_table
hash_key          | user/verbs/wq.c          | s/conf->rx_hash_key_len != RSS_KEY_BYTES || //  | ibv_create_rwq_ind_table
hash_no_fields    | user/verbs/wq.c          | s/return conf->rx_hash_fields_mask || .*/return 0;/ | ibv_create_rwq_ind_table
hash_posts        | user/verbs/post.c        | s/ || qp->transport == XROCE_XRC || vqp->table)/ || qp->transport == XROCE_XRC)/ | ibv_create_rwq_ind_table
hash_sends_err    | user/verbs/post.c        | s/ || vqp->qp->xrc_target || vqp->table ? EINVAL/ || vqp->qp->xrc_target ? EINVAL/ | ibv_create_rwq_ind_table
hash_ops          | user/verbs/qp.c          | s/target || attr->comp_mask & table ? 0/target ? 0/ | ibv_create_rwq_ind_table
rss_state         | user/run/steer.c       | s/value->receiving = qp_state(qp) != QPS_ERR;/;/ | netns-raw_rss
rss_wake          | user/run/steer.c       | s/^	if (cq)$/	if (0)/ | netns-raw_rss
grh_offset        | user/engine/datagram.c | s/!responder_scatter(e, qp, p, 0, before)/!responder_scatter(e, qp, p, 0, 0)/ | ibv_post_srq_recv
last_wqe_missing  | user/verbs/events.c       | /{ EVENT_QP_LAST_WQE,/d | ibv_post_srq_recv
qp_fatal_missing  | user/verbs/events.c       | /{ EVENT_QP_FATAL,/d | ibv_poll_cq
access_missing    | user/verbs/events.c       | /{ EVENT_QP_ACCESS_ERR,/d | ibv_get_async_event
comm_est_missing  | user/verbs/events.c       | /{ EVENT_COMM_EST,/d | ibv_get_async_event
drained_missing   | user/verbs/events.c       | /{ EVENT_SQ_DRAINED,/d | ibv_get_async_event
cq_err_missing    | user/verbs/events.c       | s/async_queue(to_vcontext(vcq->ibv.context), IBV_EVENT_CQ_ERR, &vcq->ibv);/;/ | ibv_poll_cq
limit_missing     | user/verbs/events.c       | /IBV_EVENT_SRQ_LIMIT_REACHED,$/{N;s/async_queue(.*);/;/} | ibv_query_srq
gid_change_often  | user/verbs/events.c       | s/(type != IBV_EVENT_GID_CHANGE || !async_has(ctx, type)) \&\& // | netns-port_events
fatal_silent      | user/verbs/events.c       | /^void async_device_fatal/,/^}/s/async_append(ctx, &event);/;/ | netns-port_events
fatal_sleepers    | user/verbs/events.c       | /^void async_device_fatal/,/^}/s/channel_wake(ch);/;/ | netns-port_events
sigio_of_channel  | user/verbs/events.c     | s/if (!sigio_is_asked(ch->ibv.fd))/if (1)/ | event_signals
sigio_uncleared   | user/verbs/events.c     | s/sigio_clear(ch->sigio);/;/ | event_signals
sigio_set_goes    | user/run/port_channel.c      | s/^	const int fd = kernel_duplicate(port_channel_fd(ch));/	const int fd = kernel_event_make(true);/ | event_signals
sigio_fork        | user/verbs/events.c     | s/if (ch->left_fd)$/if (0)/ | event_signals
sigio_of_async    | user/verbs/events.c       | s/if (async_signals(ctx))/if (0 \&\& async_signals(ctx))/ | event_signals
sigio_hang_up     | user/os/signals.c        | s/^	fcntl(s->in, F_SETFL, 0);// | event_signals
sigio_nonblock    | user/os/signals.c        | s/^		ioctl(fd, FIONBIO, &nonblock);/		;/ | event_signals
sigio_full        | user/os/signals.c        | s/^	sigio_drain(s);$/	if (s->ending) sigio_drain(s);/ | event_signals
sigio_signal      | user/os/signals.c        | s/^		fcntl(fd, F_SETSIG, a->signal);/		;/ | event_signals
sigio_late        | user/os/signals.c        | s/if ((a->flags ^ before->flags) & O_NONBLOCK)/if (1)/ | event_signals
sigio_cloexec     | user/os/signals.c        | s/dup3(s->in, fd, stays)/dup3(s->in, fd, O_CLOEXEC)/ | event_signals
req_err_missing   | user/verbs/events.c       | /{ EVENT_QP_REQ_ERR,/d | ibv_get_async_event
srq_err_missing   | user/verbs/events.c       | s/async_queue(to_vcontext(vsrq->ibv.context), IBV_EVENT_SRQ_ERR, &vsrq->ibv);/;/ | ibv_get_async_event
async_no_wait     | user/verbs/events.c       | s/while (\*completed != delivered \&\& !ctx->inherited)/while (0)/ | ibv_get_async_event
async_left_behind | user/verbs/events.c       | /^void async_forget/,/^}/s/if (n->event.element.qp == object)/if (0)/ | ibv_get_async_event
error_unsolicited | user/engine/cq.c      | s/part->pushed_solicited |= solicited || failed;/part->pushed_solicited |= solicited;/ | netns-event_ways
event_each_time   | user/engine/cq.c      | s/&cq->armed, &armed, CQ_DISARMED,/\&cq->armed, \&armed, armed,/ | netns-event_ways
lost_of_several   | user/verbs/events.c     | /^static struct vcq \*channel_pop/,/^}/s/if (!ch->head)$/if (1)/ | netns-event_ways
modify_cur_state  | user/engine/qp_state.c | s/if (mask & CUR \&\& attr->cur_state != from)/if (0)/ | ibv_modify_qp
modify_optional   | user/engine/qp_state.c | s/\[UC\] = { 0, AV | ACCESS | PKEY },/[UC] = { 0, ACCESS | PKEY },/ | ibv_modify_qp
modify_early      | user/verbs/qp_modify.c   | s/if (mask & IBV_QP_AV) {$/if (mask \& IBV_QP_AV) { set_ah_attr(vqp, \&attr->ah_attr);/ | ibv_modify_qp
mw_old_key        | user/engine/mr.c      | s/return mr_key(mr) == key \&\& mr->pd/return mr->pd/ | ibv_bind_mw
mw_below          | user/engine/mr.c      | s/if (va < mr->iova || va - mr->iova > mr->length || /if (/ | ibv_bind_mw
mw_local_write    | user/engine/mr.c      | s/!(region->access & MR_LOCAL_WRITE))/0)/ | ibv_bind_mw
mw_twice          | user/engine/mr.c      | s/refused = mw->kind == MR_WINDOW_2 && mw->region;/refused = false;/ | ibv_bind_mw
srq_pd            | user/engine/responder.c | s/sge_scatter(e->mrs, recv->pd, recv->sge/sge_scatter(e->mrs, qp->pd, recv->sge/ | srq_of_several
limit_of_several  | user/engine/engine.c  | s/rq_posted(&srq->rq) >= srq->limit/rq_posted(\&srq->rq) + 1 >= srq->limit/ | srq_of_several
purge_of_others   | user/engine/cq.c      | s/if (e->valid && e->qpn != qpn && --to/if (e->valid \&\& (e->qpn > qpn || qpn == NO_QPN) \&\& --to/ | cq_churn
ack_of_unsent     | user/engine/completer.c | s/    psn_diff(psn, req->sent_psn) >= 0)/    0)/ | netns-rogue
read_excess       | user/engine/responder.c | s/if (!resp->max_resources || (resource_pending(resp, next) \&\& !next->replay))/if (0)/ | netns-rogue
reset_hand        | user/run/fault.c       | s/if (next->sa_flags & (int)SA_RESETHAND)/if (0)/ | netns-own_faults
dereg_keeps_key   | user/verbs/mr.c          | /^static int mr_leave/,/^}/s/	if (!busy)$/	if (0)/ | memory_under_way
limit_of_qps      | user/engine/qp.c      | s/t->num_qps == ENGINE_MAX_QP)/t->num_qps == ENGINE_MAX_QP - 1)/ | contract
fork_waits        | user/verbs/context.c     | s/ctx->inherited = true;/;/ | ibv_fork_init
fork_gone         | user/verbs/context.c     | s/atomic_store_explicit(&ctx->gone, true, memory_order_relaxed);/;/ | ibv_fork_init
fork_async_fd     | user/verbs/events.c       | s/kernel_event_replace(ctx->v.context.async_fd);/;/ | ibv_fork_init
fork_channel      | user/verbs/events.c     | s/port_channel_abandon(ch->pc, entry->is_inherited);/;/ | ibv_fork_init
fork_queue        | user/verbs/events.c     | s/ch->head = NULL;/;/ | ibv_fork_init
fork_cq           | user/verbs/cq.c          | s/cq_abandon(&vcq->cq);/;/ | ibv_fork_init
fork_qp           | user/verbs/qp.c          | s/qp_abandon(vqp->qp);/;/ | ibv_fork_init
fork_import       | user/verbs/domain.c          | s/ && !context_gone(p->ibv.context) &&/ \&\&/ | ibv_fork_init
fork_rereg        | user/verbs/mr.c          | /^static int rereg_check/,/^}/s/return EIO;/return EINVAL;/ | ibv_fork_init
dm_max            | user/verbs/query.c       | s/max_dm_size = VERBS_MAX_DM/max_dm_size = VERBS_MAX_DM + 1/ | dm
dm_comp_mask      | user/verbs/dm.c          | s/if (attr->comp_mask || !attr/if (!attr/ | dm
dm_no_bytes       | user/verbs/dm.c          | s/if (attr->comp_mask || !attr->length ||/if (attr->comp_mask ||/ | dm
dm_align          | user/verbs/dm.c          | s/attr->log_align_req > (u32)/attr->log_align_req > 1 + (u32)/ | dm
dm_gone           | user/verbs/dm.c          | s/return context_interface_gone(context) ? EIO : 0;/return 0;/ | netns-port_events
dm_child          | user/verbs/objects.h     | s/ && !to_vcontext(context)->inherited;/;/ | dm
dm_all            | user/verbs/dm.c          | s/if (pages <= VERBS_MAX_DM/if (pages <= 1 + VERBS_MAX_DM/ | dm
dm_not_counted    | user/verbs/dm.c          | s/dev->dm_pages += pages;/;/;s/dev->dm_pages -= pages;/;/ | dm
dm_counted_child  | user/verbs/dm.c          | s/dm->dev->dm_pages -= dm->counted;/;/ | dm
dm_given_child    | user/verbs/dm.c          | /^static void dm_in_child/,/^}/s/dm->counted = 0;/;/ | dm
dm_kept           | user/verbs/dm.c          | /^static void dm_destroy/,/^}/s/munmap(dm->bytes, dm->pages . dm_page());/;/ | dm
dm_shared         | user/verbs/dm.c          | s/MAP_PRIVATE | MAP_ANONYMOUS/MAP_SHARED | MAP_ANONYMOUS/ | dm
dm_copy_offset    | user/verbs/dm.c          | /^static int dm_check_range/,/^}/s/offset > dm->length || // | dm
dm_copy_length    | user/verbs/dm.c          | /^static int dm_check_range/,/^}/s/length > dm->length - offset/offset + length > dm->length/ | dm
dm_copy_unit      | user/verbs/dm.c          | s/return (offset | length) % DM_UNIT ? EINVAL : 0;/return 0;/ | dm
dm_word           | user/verbs/dm.c          | s/length < sizeof(u64) ? sizeof(u32) : sizeof(u64);/length ? sizeof(u32) : sizeof(u64);/ | dm_traffic
dm_busy           | user/verbs/dm.c          | s/else if (vdm->dm->regions)/else if (0)/ | dm
dm_free_known     | user/verbs/dm.c          | s/if (!object_is_known(vdm) || vdm->dm->freed)/if (vdm->dm->freed)/ | dm
dm_free_twice     | user/verbs/dm.c          | s/if (!object_is_known(vdm) || vdm->dm->freed)/if (!object_is_known(vdm))/ | dm
dm_import_own     | user/verbs/dm.c          | /^EXPORT struct ibv_dm .ibv_import_dm/,/^}/s/if (context_gone(context))/if (0)/ | dm
dm_import_freed   | user/verbs/dm.c          | s/ && !d->dm->freed && / \&\& / | dm
dm_import_gone    | user/verbs/dm.c          | s/ && !context_gone(d->id.context) &&$/ \&\&/ | dm
dm_import_file    | user/verbs/dm.c          | s/d->dm->file_id == to_vcontext(context)->file_id)/1)/ | dm
dm_zero_based     | user/verbs/dm.c          | s/if (!(access & IBV_ACCESS_ZERO_BASED) || /if (/ | dm
dm_access         | user/verbs/dm.c          | s/access & ~(unsigned int)DM_ACCESS_KNOWN ||$/0 ||/ | dm
dm_mr_offset      | user/verbs/dm.c          | /^static int dm_check_region/,/^}/s/offset > dm->length || // | dm
dm_mr_length      | user/verbs/dm.c          | /^static int dm_check_region/,/^}/s/length > dm->length - offset/0/ | dm
dm_mr_known       | user/verbs/dm.c          | s/if (!object_is_known(vdm) || dm->freed ||$/if (dm->freed ||/ | dm
dm_mr_freed       | user/verbs/dm.c          | s/if (!object_is_known(vdm) || dm->freed ||$/if (!object_is_known(vdm) ||/ | dm
dm_mr_file        | user/verbs/dm.c          | s/    dm->file_id != to_vcontext(pd->context)->file_id)/    0)/ | dm
dm_mr_refused     | user/verbs/dm.c          | /^struct ibv_mr .reg_dm_mr_op/,/^}/s/dm_unuse(vdm->dm);/;/ | dm
dm_mr_based       | user/verbs/dm.c          | s/vdm->dm->bytes + offset, length/vdm->dm->bytes, length/ | dm_traffic
dm_rereg          | user/verbs/mr.c          | s/ || vmr->dm || vmr->mapping.at)/ || vmr->mapping.at)/ | dm
dm_mr_address     | user/verbs/mr.c          | s/.addr = dm ? NULL : addr,/.addr = addr,/ | dm
dm_mr_import      | user/verbs/mr.c          | s/vmr->dm = m->dm;/;/ | dm
null_rkey         | user/verbs/mr.c          | s/.rkey = kind == MR_NULL ? 0 : mr_key(vmr->mr) };/.rkey = mr_key(vmr->mr) };/ | ibv_alloc_null_mr
null_remote       | user/engine/mr.c      | s/return mr->kind == MR_NULL ? open_null(mr, pd, key, access) :/return/ | ibv_alloc_null_mr
null_remote_pd    | user/engine/mr.c      | s/mr_key(mr) == key \&\& mr->pd == pd \&\&/mr_key(mr) == key \&\&/ | ibv_alloc_null_mr
null_read_dirt    | user/engine/reply.c   | s/^		memset(u.payload, 0, p.payload_len);/		memset(u.payload, 1, p.payload_len);/ | ibv_alloc_null_mr
null_rereg        | user/verbs/mr.c          | s/vmr->mr->kind != MR_REGION || vmr->dm/vmr->dm/ | ibv_alloc_null_mr
odp_implicit_addr | user/verbs/mr.c         | s/return start || iova || access/return iova || access/ | on_demand
odp_implicit_iova | user/verbs/mr.c         | s/return start || iova || access/return start || access/ | on_demand
odp_implicit_huge | user/verbs/mr.c         | s/ || access & IBV_ACCESS_HUGETLB ? EINVAL/ ? EINVAL/ | on_demand
odp_overflow      | user/verbs/mr.c         | s/__builtin_add_overflow(start, length, &end) ||/(end = start + length, 0) ||/ | on_demand
odp_no_bytes      | user/verbs/mr.c         | s/ || (!length \&\& start % page == 0))/)/ | on_demand
odp_space         | user/verbs/mr.c         | s/return end > ODP_SPACE ? EFAULT : 0;/return 0;/ | on_demand
odp_bytes         | user/verbs/mr.c         | s/return min_u64(length, ODP_SPACE);/return length;/ | on_demand
odp_caps_uc       | user/verbs/mr.c         | s/uc_odp_caps = datagram | IBV_ODP_SUPPORT_WRITE;/uc_odp_caps = datagram | rdma;/ | on_demand
odp_caps_xrc      | user/verbs/mr.c         | s/xrc_odp_caps = (datagram \& ~(u32)IBV_ODP_SUPPORT_RECV)/xrc_odp_caps = datagram/ | on_demand
odp_caps_general  | user/verbs/mr.c         | s/IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;/IBV_ODP_SUPPORT;/ | on_demand
odp_pinned        | user/verbs/mr.c          | s/return access & IBV_ACCESS_ON_DEMAND ? odp_check(/return 0 ? odp_check(/ | on_demand
odp_unpinned      | user/verbs/mr.c          | s/return access & IBV_ACCESS_ON_DEMAND ? odp_check(/return 1 ? odp_check(/ | contract
advise_key        | user/verbs/mr.c         | /^static int advise_translate/,/^}/s/		return EFAULT;/		return EINVAL;/ | ibv_advise_mr
advise_window     | user/verbs/mr.c         | s/if (mr_is_window(mr))/if (0)/ | ibv_advise_mr
advise_key_byte   | user/verbs/mr.c         | s/if (mr_key(mr) != sge->lkey)/if (0)/ | ibv_advise_mr
advise_pd         | user/verbs/mr.c         | s/if (mr->pd != pd)/if (0)/ | ibv_advise_mr
advise_pinned     | user/verbs/mr.c         | s/if (!(mr->access & MR_ON_DEMAND))/if (0)/ | ibv_advise_mr
advise_rights     | user/verbs/mr.c         | s/if (for_writing \&\& !(mr->access & MR_LOCAL_WRITE))/if (0)/ | ibv_advise_mr
advise_flags      | user/verbs/mr.c         | s/ || flags & ~(u32)IBV_ADVISE_MR_FLAG_FLUSH || / || / | ibv_advise_mr
advise_no_list    | user/verbs/mr.c         | s/ || !sg_list || !num_sge)/ || !sg_list)/ | ibv_advise_mr
advise_known_pd   | user/verbs/mr.c         | s/if (!object_is_known(pd) || flags/if (flags/ | ibv_advise_mr
advise_unknown    | user/verbs/mr.c         | s/return ENOTSUP;/return 0;/ | ibv_advise_mr
advise_all_good   | user/verbs/mr.c         | s/err = advise_find(port, pd->number, sg_list, num_sge, /err = advise_find(port, pd->number, sg_list, 1, / | ibv_advise_mr
advise_unmapped   | user/verbs/mr.c         | s/errno == ENOMEM ? EFAULT :/errno == ENOMEM ? 0 :/ | ibv_advise_mr
advise_no_bytes   | user/verbs/mr.c         | /^static int advise_fetch/,/^}/s/if (!length)/if (0)/ | ibv_advise_mr
advise_faults     | user/verbs/mr.c         | s/if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)/if (0)/ | ibv_advise_mr
advise_read_only  | user/verbs/mr.c         | s/advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ? IBV_ACCESS_LOCAL_WRITE :/0 ? 0 :/ | ibv_advise_mr
draw_none         | user/port/port_qp.c      | s/ : port_limited(port, attach_draw(&port->made, qpn))/ : 0/ | netns-shared
draw_kept         | user/port/port_qp.c      | s/if (err \&\& init->qpn)/if (0)/ | netns-shared
release_none      | user/verbs/qp.c          | s/port_release(vqp->port, qpn);/;/ | netns-shared
lost_untold       | user/verbs/context.c     | s/err = port_watch_end(\*out, ctx->watch);/err = 0;/ | netns-shared
draw_once         | user/port/port_qp.c      | s/draws < DRAWS_MAX/draws < 1/ | netns-shared
sysfs_newline     | user/verbs/compat.c      | s/buf\[--len\] = 0;/len = len;/ | netns-sysfs
sysfs_is_there    | user/verbs/context.c      | s/!atomic_exchange_explicit(&is_told, true, memory_order_relaxed)/1/ | netns-sysfs
sysfs_guid        | user/os/netdev_link.c | s/mac\[0\] ^ 2/mac[0]/ | netns-sysfs
look_writable     | user/broker/readonly_maps.c      | s/BPF_F_RDONLY/0/ | netns-observe
look_any_map      | user/broker/readonly_maps.c      | s/ \&\& readonly_map_is(map.name)// | netns-observe
look_others       | user/broker/client_observer.c | s/if (c \&\& client_observer_may_see(asking, c))/if (c)/ | netns-observe
look_bare_root    | user/broker/client_observer.c | s/c->uid == asking->uid \&\& !client_observer_may_be_admin(c) \&\&/c->uid == asking->uid \&\&/ | netns-who
look_skips_none   | user/broker/client_observer.c | s/first = min_u32(ASK_MAPS_FIRST(number), other->readonly_maps.num);/first = 0;/ | netns-observe
look_freezable    | user/broker/readonly_maps.c      | s/PROT_READ | PROT_WRITE/PROT_READ/ | netns-broker
look_by_number    | user/broker/readonly_maps.c      | s/return fd == -EPERM ? readonly_maps_reopen_by_name(map_fd, id) : fd;/return fd;/ | netns-broker
unread_others     | user/broker/unread.c     | s/c->user->unread++;/;/;s/c->user->unread--;/;/ | netns-broker_clients
look_pid          | user/tools/observe/observe_options.c          | s/if (l->has_pid \&\& p->pid != l->pid)/if (0)/ | netns-observe
stat_rate         | user/tools/list/processes.c          | s/return a > b ? a - b : 0;/return a;/ | netns-observe
stat_engines      | user/tools/observe/observe_maps.c  | s/sum\[k\] = counter_plus(sum\[k\], \(value.*\));/sum[k] = \1;/ | netns-observe
stat_zeros        | user/tools/list/processes.c          | s/else if (s->has_before .*since : value)/else/ | netns-observe
qp_state          | user/tools/observe/observe_options.c| s/v->has_stat \&\& v->stat.state == l->state/true/ | netns-observe
qp_peer           | user/tools/observe/observe_options.c| s/(!l->has_peer ||/(true ||/ | netns-observe
qp_joined         | user/tools/observe/snapshot.c      | s/last->steer = all->v\[i\].steer;/;/ | netns-observe
look_hidden       | user/tools/observe/observe_options.c          | s/	if (l->is_hidden) {/	if (0) {/ | netns-observe
json_escapes      | user/tools/json.c          | s/< 0x7f)/< 0xff)/ | unit-table
table_sorts       | user/tools/table.c         | s/return x->added < y->added .*;/return x->added < y->added ? 1 : -1;/ | unit-table
table_cuts        | user/tools/table.c         | s/column) <= room)/column) <= width)/ | unit-table
sysfs_state       | user/tools/run/sysfs.c         | s/dev->is_up ? "4: ACTIVE/1 ? "4: ACTIVE/ | netns-sysfs
sysfs_empty_gids  | user/tools/run/sysfs.c         | s/i < e->max; i++/i + 1 < e->max; i++/ | netns-sysfs
sysfs_caps        | user/tools/run/sysfs.c         | s/1u << 16 | 1u << 26/1u << 16/ | netns-sysfs
view_propagates   | user/tools/run/sysfs_private.c          | s/if (!mount(NULL, at, NULL, MS_SLAVE, NULL))/if (1)/ | netns-sysfs
view_hides        | user/tools/run/sysfs_private.c          | s/(is_rdma \&\& mount_is_ours(e->d_name, old_fd))/is_rdma/ | netns-sysfs
view_not_replaced | user/tools/run/sysfs_private.c          | s/(is_rdma \&\& mount_is_ours(e->d_name, old_fd))/0/ | netns-sysfs
view_umask        | user/tools/run/sysfs_private.c          | s/mask = umask(0);/mask = umask(077);/ | netns-sysfs
view_umask_stays  | user/tools/run/sysfs_private.c          | s/^	umask(mask);/	(void)mask;/ | netns-sysfs
view_capability   | user/tools/run/sysfs_private.c          | s/!sysfs_private_has_a_capability() && sysfs/sysfs/ | netns-sysfs
view_not_tried    | user/tools/run/sysfs_private.c          | s/sysfs_private_try(devs, n, clock_now_ns()) :/0 :/ | netns-sysfs
view_set_uid      | user/tools/run/run.c           | s/without_files = true; \/\* it/without_files = false; \/* it/ | netns-sysfs
parting_modified  | user/verbs/qp_modify.c   | s/shards_catch_up(port_shards(vqp->port));/;/ | netns-parting
parting_destroyed | user/port/port_qp.c      | s/shards_catch_up(&port->shards);/;/ | netns-parting
user_ns_each      | user/tools/run/user_namespace.c | s/if (namespace_join()) {/if (0) {/ | netns-sysfs
user_ns_group     | user/tools/run/user_namespace.c | s/!map_is_identity(pid, "gid_map", getegid())/0/ | netns-sysfs
everyone_bind     | user/tools/serve/sysfs_global_dir.c  | s/err = device_bind(d, name);/;/ | netns-sysfs_global
counters_told     | user/tools/run/sysfs_counters.c | s/if (!server_is_bound())/if (1)/ | netns-sysfs_global
everyone_news     | user/tools/serve/sysfs_global.c      | s/h->what |= HEARD_LINK;/;/ | netns-sysfs_global
everyone_renamed  | user/tools/serve/sysfs_global.c      | s/ || (!err \&\& strcmp(now.name, e->dev.name) != 0)// | netns-sysfs_global
everyone_classes  | user/tools/serve/sysfs_global_mount.c | s/mount(path, at, NULL, MS_BIND, NULL);/;/ | netns-sysfs_global
everyone_tmpfs    | user/tools/serve/sysfs_global_dir.c  | s/err = dir_mount_class(d);/;/ | netns-sysfs_global_attack
everyone_on_top   | user/tools/serve/sysfs_global_mount.c | s/ \&\& st.st_dev == makedev(major, minor);/;/ | netns-sysfs_global_attack
holder_door       | user/tools/observe/observe.c        | s/pid = err ? 0 : ask_server(&asker);/pid = 0;/ | netns-observe
dead_socket_lives | user/client/broker_socket.c  | s/ \&\& !netns_lives(netns) \&\&/ \&\&/ | netns-broker
export_room       | user/tools/export/http.c       | s/h->has_room |= h->counts.connections-- == HTTP_CONNECTIONS;/h->counts.connections--;/ | netns-export
root_unknown      | user/os/netdev_holder.c | s/ \&\& holder_serves_for_root(ifindex));/);/ | netns-sockets
no_capability     | user/client/attach_error.c   | s/ \&\& privilege_caps() \&\&/ \&\&/ | netns-sysfs
limits_qp_wr      | user/verbs/query.c       | s/max_qp_wr = QP_MAX_WR/max_qp_wr = QP_MAX_WR - 1/ | limits
limits_sge        | user/verbs/query.c       | s/max_sge = QP_MAX_SEND_SGE/max_sge = QP_MAX_SEND_SGE - 1/ | limits
limits_srq_wr     | user/verbs/query.c       | s/max_srq_wr = VERBS_MAX_SRQ_WR/max_srq_wr = VERBS_MAX_SRQ_WR - 1/ | limits_queues
limits_srq_sge    | user/verbs/query.c       | s/max_srq_sge = RQ_MAX_SGE/max_srq_sge = RQ_MAX_SGE - 1/ | limits_queues
limits_inline     | user/verbs/qp.c          | s/return cap->max_inline_data > room ? cap->max_inline_data : room;/return room;/ | limits
limits_tags       | user/verbs/query.c       | s/max_num_tags = TAG_MAX_TAGS;/max_num_tags = TAG_MAX_TAGS - 1;/ | limits_queues
limits_tag_ops    | user/verbs/query.c       | s/max_ops = TAG_MAX_OPS;/max_ops = TAG_MAX_OPS - 1;/ | limits_queues
limits_rd_atom    | user/engine/qp_state.c | s/a->max_rd_atomic > QP_MAX_RD_ATOMIC)/a->max_rd_atomic > 1 + QP_MAX_RD_ATOMIC)/ | limits
limits_dest_rd    | user/engine/qp_state.c | s/a->max_dest_rd_atomic > QP_MAX_RD_ATOMIC)/a->max_dest_rd_atomic > 1 + QP_MAX_RD_ATOMIC)/ | limits
limits_res_rd     | user/verbs/query.c       | s/max_res_rd_atom = QP_MAX_RD_ATOMIC/max_res_rd_atom = 2 * QP_MAX_RD_ATOMIC/ | limits
limits_cqe        | user/verbs/query.c       | s/max_cqe = VERBS_MAX_CQE/max_cqe = VERBS_MAX_CQE - 1/ | limits_queues
limits_link_mtu   | user/verbs/qp_modify.c   | s/if (\*bytes <= largest)/if (1)/ | limits_port
limits_ud_mtu     | user/verbs/qp.c          | /init.ud_mtu = /,/;/s/device_path_mtu(ctx, &nd)/ROCE_PMTU_MAX/ | limits_port
limits_gids       | user/verbs/query.c       | s/gid_tbl_len = XROCE_MAX_GID/gid_tbl_len = XROCE_MAX_GID - 1/ | limits_port
limits_message    | user/verbs/query.c       | s/max_msg_sz = VERBS_MAX_MESSAGE/max_msg_sz = VERBS_MAX_MESSAGE - 1/ | limits_port
limits_of_pds     | user/verbs/context.c      | s/\[LIMIT_PD\] = VERBS_MAX_PD,/[LIMIT_PD] = VERBS_MAX_PD + 1,/ | limits_objects
limits_of_srqs    | user/verbs/context.c      | s/\[LIMIT_SRQ\] = VERBS_MAX_SRQ,/[LIMIT_SRQ] = VERBS_MAX_SRQ - 1,/ | limits_objects
limits_of_mcast   | user/verbs/query.c       | s/max_total_mcast_qp_attach = GROUP_MAX/max_total_mcast_qp_attach = 2 * GROUP_MAX/ | limits_objects
leak_pd           | user/verbs/domain.c          | s/^	free(pd);/	;/ | ten_thousand
leak_td           | user/verbs/domain.c          | s/^	free(td);/	;/ | ten_thousand
leak_mr           | user/verbs/mr.c          | /^static void mr_free/,/^}/s/^	free(vmr);/	;/ | ten_thousand
leak_mw           | user/verbs/mr.c          | s/^	free(vmw);/	;/ | ten_thousand
leak_ah           | user/verbs/ah.c          | s/^	free(to_vah(ibah));/	;/ | ten_thousand
leak_cq           | user/verbs/cq.c          | s/^	cq_free(&vcq->cq);/	;/ | ten_thousand
leak_tags         | user/verbs/srq.c         | s/^	tag_list_free(vsrq->srq.tags);/	;/ | ten_thousand
leak_srq          | user/verbs/srq.c         | s/^	rq_free(rq);/	;/ | ten_thousand
leak_xrcd         | user/verbs/domain.c        | s/^	free(vxrcd);/	;/ | ten_thousand
leak_qp           | user/verbs/qp.c          | s/^	free(vqp);/	;/ | ten_thousand
leak_qp_entry     | user/port/port_qp.c      | s/^	shards_unsteer(&port->shards, qp->qpn);/	;/ | ten_thousand
leak_descriptor   | user/verbs/events.c       | s/^	kernel_close(ctx->v.context.async_fd);/	;/ | ten_thousand
walk_qp_rights    | user/engine/responder.c | s/if (!is_granted(qp, qp_granted(access)))/if (false)/ | random_walk
walk_mr_pd        | user/engine/mr.c      | s/return mr_key(mr) == key \&\& mr->pd == pd/return mr_key(mr) == key/ | random_walk
walk_mr_busy      | user/verbs/mr.c          | /^static int mr_leave/,/^}/s/	if (!busy)$/	if (1)/ | random_walk
rights_uc_qp      | user/engine/responder.c | s/return is_granted(qp, MR_REMOTE_WRITE) ?/return qp->transport == XROCE_UC || is_granted(qp, MR_REMOTE_WRITE) ?/ | rights
rights_key        | user/engine/mr.c      | s/return mr_key(mr) == key \&\& mr->pd == pd \&\& (mr->access \& access) == access;/return mr_key(mr) == key \&\& mr->pd == pd;/ | rights
rights_mw_qp      | user/engine/mr.c      | s/(!mw->qpn || mw->qpn == qpn)/true/ | rights_mw
rights_xrc_pd     | user/engine/responder.c | s/resp->pd = srq->pd;/;/ | rights_xrc
rights_xrc_domain | user/engine/responder.c | s/srq->xrcd != qp->xrcd/false/ | rights_xrc
other_end_ready   | user/engine/input.c   | s/return state >= QPS_RTR \&\& state != QPS_ERR;/return state >= QPS_RTR;/ | other_ends
late_ring         | user/verbs/cq.c          | s/err = channel ? cq_join_early(vcq) : 0;/;/ | netns-limits
post_in_rtr       | user/verbs/post.c        | s/qp_state(vqp->qp) < QPS_RTS/qp_state(vqp->qp) <= QPS_INIT/ | contract
perfmon_unnamed   | user/io/tx_redirect.c    | s/"run with CAP_PERFMON/"run with it/ | netns-badinput
everyone_again    | user/tools/serve/sysfs_global_dir.c  | s/process_sees_mount(namespace, word)/process_in_namespace("mnt", namespace)/ | netns-sysfs_global
limit_errno       | user/verbs/objects.h     | s/return err == -ENOSPC ? ENOMEM : -err;/return -err;/ | netns-limits
cm_destroy_waits  | user/rdmacm/id.c         | /^EXPORT int rdma_destroy_id/,/^}/s/while (id->acked != id->delivered)/while (0)/ | rdmacm-teardown
cm_destroy_silent | user/rdmacm/id.c         | /^static void id_silence/,/^}/s/	conn_close(id);/	;/ | rdmacm-teardown
cm_migrate_waits  | user/rdmacm/id.c         | /^EXPORT int rdma_migrate_id/,/^}/s/while (id->acked != id->delivered)/while (0)/ | rdmacm-events
cm_migrate_events | user/rdmacm/id.c         | s/		channel_append(to_channel(channel), ev);/		channel_append(to_channel(before), ev);/;s/^	id->pub.channel = channel;/	struct rdma_event_channel *before = id->pub.channel;\n&/ | rdmacm-events
cm_migrate_child  | user/rdmacm/id.c         | s/if (ev->pub.listen_id)/if (0)/ | rdmacm-events
cm_sync_refused   | user/rdmacm/id.c         | /^int id_complete/,/^}/s/if (ev->event == RDMA_CM_EVENT_REJECTED)/if (0)/ | rdmacm-sync
cm_fd_readable    | user/rdmacm/channel.c    | s/^		channel_took(ch, 1);/		;/ | rdmacm-events
cm_fd_blocks      | user/rdmacm/channel.c    | s/poll(&p, 1, blocks ? -1 : 0)/poll(\&p, 1, -1)/ | rdmacm-events
cm_gone_awake     | user/rdmacm/channel.c    | s/if (blocks \&\& n > 0 \&\& (p.revents/if (0 \&\& (p.revents/ | rdmacm-events
cm_remove_tail    | user/rdmacm/channel.c    | s/^	ch->tail = at;/	;/ | rdmacm-teardown
cm_depth_unbound  | user/rdmacm/connect.c    | s/param->initiator_depth > id->device->max_initiator_depth)/0)/ | rdmacm-connect
cm_data_too_long  | user/rdmacm/connect.c    | s/if (header + own + id->connect_len > sizeof(out->bytes))/if (0)/ | rdmacm-sync
cm_notify_twice   | user/rdmacm/connect.c    | s/else if (cm_conn_state(id->conn) == CM_ESTABLISHED)/else if (0)/ | rdmacm-external
cm_accept_depths  | user/rdmacm/connect.c     | s/(u8)min_u32(peer, max) : \*asked/peer : peer/ | rdmacm-connect
cm_event_depths   | user/rdmacm/conn_event.c | s/conn.responder_resources = req->initiator_depth;/conn.responder_resources = req->responder_resources;/ | rdmacm-connect
cm_unaccepted     | user/rdmacm/conn_event.c | s/if (id->state != wanted || id->unaccepted)/if (id->state != wanted)/ | rdmacm-teardown
cm_two_qps        | user/rdmacm/qp.c         | s/if (pub->qp || !id->device/if (!id->device/ | rdmacm-qp
cm_option_bytes   | user/rdmacm/route.c     | s/if (len != (is_byte/if (0 \&\& len != (is_byte/ | rdmacm-bind
cm_accept_over    | user/cm/connect.c        | /^int cm_accept/,/^}/s/c->state != CM_REQ_RCVD || // | rdmacm-external
cm_rejected_qp    | user/rdmacm/conn_event.c | s/if (ev->pub.event == RDMA_CM_EVENT_REJECTED)/if (0)/ | rdmacm-teardown
cm_error_purges   | user/engine/qp_state.c | s/engine_qp_error(e, qp, 0);/qp_purge_completions(e, qp); &/ | rdmacm-teardown
cm_backlog        | user/rdmacm/listen.c     | s/backlog > 0 \&\& backlog < CONN_BACKLOG_MAX/0/ | rdmacm-listen
cm_afonly         | user/rdmacm/listen.c     | s/if (cm_is_any(&service.address) \&\& !id->afonly)/if (cm_is_any(\&service.address))/ | rdmacm-listen
cm_afonly_late    | user/rdmacm/route.c     | s/id->binding->use.family_only = on;/;/ | rdmacm-bind
cm_foreign_pd     | user/rdmacm/qp.c         | s/attr->pd \&\& attr->pd->context != pub->verbs)/0)/ | rdmacm-xrc
cm_qp_with_less   | user/rdmacm/qp.c         | s/^		attr->send_cq = NULL;/		;/ | rdmacm-qp
cm_exit_silent    | user/rdmacm/id.c       | s/^		conn_close(id);/		;/ | netns-cm_slow
rs_close_waits    | user/rsocket/rsocket_close.c | /^static s64 close_deadline/,/^}/s/return 0;/return FOREVER;/ | rdmacm-rsocket_threads
rs_close_leaves   | user/rsocket/rsocket_close.c | s/if (!close_aborts(s) \&\& .*/if (0)/ | netns-cm_rspreload
rs_shut_unsaid    | user/rsocket/rsocket_close.c | s/^	if (s->announces)$/	if (0)/ | rdmacm-rsocket_threads
rs_shut_shown     | user/rsocket/rsocket_stream.c | s/ || (!s->reads \&\& !s->writes);/;/ | rdmacm-rsocket_threads
rs_exit_leaves    | user/rsocket/rsocket_close.c | /^__attribute__((destructor))/,/^}/s/exit_wait_ending(until);/;/ | netns-cm_rspreload
rs_flood_answered | user/rsocket/rsocket_listen.c | s/used + listen_part(all, RESERVED) < all/used < all/ | rdmacm-rsocket_threads
rs_flood_waiting  | user/rsocket/rsocket_listen.c | s/dropped = listen_make_room(l, share);/;/ | rdmacm-rsocket_threads
rs_flood_silent   | user/rsocket/rsocket_listen.c | s/s->answered_at + CONFIRM_NS > now/1/ | rdmacm-rsocket_threads
rs_dgram_strangers | user/rsocket/rsocket_dgram.c | s/used < all \/ (is_known ? 2 : 4);/true;/ | rdmacm-rsocket_threads
rs_timeout_domain | user/rsocket/rsocket_option.c | s/if (t.tv_usec < 0 || t.tv_usec >= 1000000)/if (0)/ | rdmacm-rsocket_refused
rs_timeout_past   | user/rsocket/rsocket_option.c | s/^	\*timeout = t;/	*timeout = t.tv_sec < 0 ? (struct timeval){ 0 } : t;/ | rdmacm-rsocket_refused
rs_timeout_told   | user/rsocket/rsocket_option.c | s/timeout->tv_sec < 0 ? &none : timeout/timeout/ | rdmacm-rsocket_refused
rs_iov_max        | user/rsocket/rsocket.c    | s/if (msg->msg_iovlen > IOV_MAX)/if (0)/ | rdmacm-rsocket_refused
rs_iov_count      | user/rsocket/rsocket.c    | s/return file ? -EINVAL : -EMSGSIZE;/return -EMSGSIZE;/ | rdmacm-rsocket_refused
rs_bind_twice     | user/rdmacm/bind.c       | /^int addr_bind/,/^}/s/if (id->state != ID_IDLE)/if (0)/ | rdmacm-rsocket_refused
rs_name_connected | user/rsocket/rsocket.c    | /^RSOCKET_EXPORT int rgetpeername/,/^}/s/err = s->state != .* ? -ENOTCONN :/err =/ | rdmacm-rsocket_refused
rs_send_elsewhere | user/rsocket/rsocket.c    | /^static ssize_t rsocket_send/,/^}/s/if (msg->msg_name)/if (0)/ | rdmacm-rsocket_refused
rs_no_vector      | user/rsocket/rsocket.c    | s/return msg->msg_iovlen && !msg->msg_iov ? -EFAULT : 0;/return 0;/ | rdmacm-rsocket_arguments
rs_read_nothing   | user/rsocket/rsocket.c    | /^static ssize_t rsocket_receive/,/^}/s/(file && msghdr_is_empty(msg))/0/ | rdmacm-rsocket_arguments
rs_map_offset     | user/rsocket/rsocket.c    | s/rsocket_return(rs, err) ? -1 : offset;/rsocket_return(rs, err ? err : offset);/ | rdmacm-rsocket_arguments
rs_shut_alone     | user/rsocket/rsocket.c    | s/d->shut_read |= how != SHUT_WR;/;/ | rdmacm-rsocket_arguments
rs_null_bytes     | user/rsocket/rsocket_transfer.c | s/!iov\[i\].iov_base && iov\[i\].iov_len/0/ | rdmacm-rsocket_arguments
rs_no_bytes       | user/rsocket/rsocket_transfer.c | s/^	while (!err) {/	while (!err \&\& got < total) {/ | rdmacm-rsocket_arguments
rs_trunc_copies   | user/rsocket/rsocket_transfer.c | s/if (!(flags & MSG_TRUNC)) {/if (1) {/ | rdmacm-rsocket_arguments
rs_backlog_below  | user/rsocket/rsocket_listen.c | s/backlog < 0 || backlog/backlog < 0 ? 1 : backlog/ | rdmacm-rsocket_arguments
rs_listen_again   | user/rsocket/rsocket_listen.c | s/s->listen_shut = false;/;/ | rdmacm-rsocket_arguments
rs_option_least   | user/rsocket/rsocket_option.c | s/if (bytes < settable\[i\].least)/if (0)/ | rdmacm-rsocket_arguments
rs_option_short   | user/rsocket/rsocket_option.c | s/number = \*(const u8 \*)value;/;/ | rdmacm-rsocket_arguments
rs_option_dgram   | user/rsocket/rsocket_option.c | s/(level != SOL_SOCKET || (name != SO_RCVBUF && name != SO_SNDBUF))/0/ | rdmacm-rsocket_arguments
rs_dup_refused    | user/rspreload/calls.c   | s/ || real.fcntl(fd, F_GETFD) < 0)/)/ | netns-cm_epoll
rs_edge_arrival   | user/rsocket/rsocket_table.c | s/(!shown || in->arrived)/!shown/ | netns-cm_epoll
rs_shown_hup      | user/rsocket/rsocket_table.c | s/more & (POLLRDHUP | POLLHUP)/more \& POLLRDHUP/ | netns-cm_epoll
rs_shown_error    | user/rsocket/rsocket_table.c | s/^	if (rs->error) {/	if (0) {/ | netns-cm_epoll
rs_shown_full     | user/rsocket/rsocket_table.c | s/FILLER_BYTES = 2048/FILLER_BYTES = 1/ | netns-cm_epoll
rs_accept_edge    | user/rsocket/rsocket_listen.c | s/l->rs.standin.arrived = true;/;/ | netns-cm_epoll
rs_closed_set     | user/rspreload/poll.c   | s/real.epoll_ctl(watch->set, EPOLL_CTL_DEL, watch->fd, NULL);/;/ | netns-cm_epoll
rs_vfork          | user/rspreload/entries.c | s/entry \&\& getpid() == process/entry/ | netns-cm_epoll
rs_forked_sets    | user/rspreload/entries.c | s/^		entry->watches = NULL;/		;/ | netns-cm_epoll
spawn_descriptors | user/client/spawn.c      | s/syscall(SYS_dup3, fd, to, 0)/dup3(fd, to, 0)/ | netns-cm_rspreload
broker_inherits   | user/tools/serve/serve.c | s/^\t\tinherited_reset();/\t\t;/ | netns-inherited
orphans_left      | user/tools/run/run.c     | s/^\treaper_fork();// | netns-reaped
pkey_past         | user/verbs/query.c       | s/index < 0 || (u32)index >= kind.pkeys.num/(u32)index > XROCE_MAX_PKEY/ | ibv_query_pkey
pkey_find         | user/verbs/query.c       | s/pkey_table_find(&kind.pkeys, be16toh(pkey))/pkey_table_find(\&kind.pkeys, pkey)/ | netns-partitions
pkey_asked        | user/port/port.c         | s/if (options_share() == SHARE_NEVER ||/if (1 ||/ | netns-partitions
pkey_said         | user/broker/mux.c        | s/err = mux_say_pkeys(m, pkeys)/(void)mux_say_pkeys/ | netns-partitions
pkey_viol_xdp     | user/port/port_stat.c | s/&device->bad_pkeys/\&(__u64){ 0 }/ | netns-partitions
qkey_viol_engine  | user/port/port_stat.c | s/v->qkey += d->qkey;// | ibv_query_pkey
viol_16_bits      | user/verbs/query.c       | s/v.qkey < UINT16_MAX ? (u32)v.qkey : UINT16_MAX/(u16)v.qkey/ | ibv_query_pkey
viol_no_more      | user/verbs/query.c       | s/v.qkey < UINT16_MAX ? (u32)v.qkey : UINT16_MAX/(u32)v.qkey/ | ibv_query_pkey
ah_waits_again    | user/verbs/ah.c | s/ah_wait_ms(ctx, \&key, timeout_ms)/timeout_ms/ | netns-cm_silent
ah_by_datagram    | user/verbs/ah.c | s/ \&\& timeout_ms > NEIGH_SHORT_WAIT_MS//  | netns-cm_silent
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
	tsan) (cd "$tree/src" && scripts/check.sh --build "$tree/build" '*-tsan') ;;
	netns-*) bash "$tree/src/tests/netns/${1#netns-}.sh" "$tree/build" ;;
	rdmacm-*)
		build "$tree/build/tests/rdmacm/man_${1#rdmacm-}" || return
		XROCE_MAN_TIMEOUT=30 bash "$tree/src/tests/rdmacm/man.sh" "$tree/build" "${1#rdmacm-}"
		;;
	*)
		build "$tree/build/tests/verbs/man_$1" || return
		XROCE_MAN_TIMEOUT=40 bash "$tree/src/tests/verbs/man.sh" "$tree/build" "$1"
		;;
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
