/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The words that rules of an endpoint use, one list each. A line makes the word and its number. */
#ifndef LAB_WORDS_H
#define LAB_WORDS_H

#include "../engine/types.h"

/* Verbs that a rule can fail. */
#define LAB_CALLS(X)                                                                               \
	X(ibv_advise_mr)                                                                           \
	X(ibv_alloc_buf)                                                                           \
	X(ibv_alloc_dm)                                                                            \
	X(ibv_alloc_dmah)                                                                          \
	X(ibv_alloc_mw)                                                                            \
	X(ibv_alloc_null_mr)                                                                       \
	X(ibv_alloc_parent_domain)                                                                 \
	X(ibv_alloc_pd)                                                                            \
	X(ibv_alloc_td)                                                                            \
	X(ibv_attach_counters_point_flow)                                                          \
	X(ibv_attach_mcast)                                                                        \
	X(ibv_bind_mw)                                                                             \
	X(ibv_close_device)                                                                        \
	X(ibv_close_xrcd)                                                                          \
	X(ibv_create_ah)                                                                           \
	X(ibv_create_comp_channel)                                                                 \
	X(ibv_create_comp_cntr)                                                                    \
	X(ibv_create_counters)                                                                     \
	X(ibv_create_cq)                                                                           \
	X(ibv_create_cq_ex)                                                                        \
	X(ibv_create_flow)                                                                         \
	X(ibv_create_qp)                                                                           \
	X(ibv_create_qp_ex)                                                                        \
	X(ibv_create_rwq_ind_table)                                                                \
	X(ibv_create_srq)                                                                          \
	X(ibv_create_srq_ex)                                                                       \
	X(ibv_create_wq)                                                                           \
	X(ibv_dealloc_dmah)                                                                        \
	X(ibv_dealloc_mw)                                                                          \
	X(ibv_dealloc_pd)                                                                          \
	X(ibv_dealloc_td)                                                                          \
	X(ibv_dereg_mr)                                                                            \
	X(ibv_destroy_ah)                                                                          \
	X(ibv_destroy_comp_channel)                                                                \
	X(ibv_destroy_comp_cntr)                                                                   \
	X(ibv_destroy_counters)                                                                    \
	X(ibv_destroy_cq)                                                                          \
	X(ibv_destroy_flow)                                                                        \
	X(ibv_destroy_qp)                                                                          \
	X(ibv_destroy_rwq_ind_table)                                                               \
	X(ibv_destroy_srq)                                                                         \
	X(ibv_destroy_wq)                                                                          \
	X(ibv_detach_mcast)                                                                        \
	X(ibv_dm_export_dmabuf_fd)                                                                 \
	X(ibv_free_dm)                                                                             \
	X(ibv_get_async_event)                                                                     \
	X(ibv_get_cq_event)                                                                        \
	X(ibv_get_pkey_index)                                                                      \
	X(ibv_get_srq_num)                                                                         \
	X(ibv_import_device)                                                                       \
	X(ibv_import_dm)                                                                           \
	X(ibv_import_mr)                                                                           \
	X(ibv_import_pd)                                                                           \
	X(ibv_init_ah_from_wc)                                                                     \
	X(ibv_modify_cq)                                                                           \
	X(ibv_modify_qp)                                                                           \
	X(ibv_modify_qp_rate_limit)                                                                \
	X(ibv_modify_srq)                                                                          \
	X(ibv_modify_wq)                                                                           \
	X(ibv_open_device)                                                                         \
	X(ibv_open_qp)                                                                             \
	X(ibv_open_xrcd)                                                                           \
	X(ibv_poll_cq)                                                                             \
	X(ibv_post_recv)                                                                           \
	X(ibv_post_send)                                                                           \
	X(ibv_post_srq_ops)                                                                        \
	X(ibv_post_srq_recv)                                                                       \
	X(ibv_post_wq_recv)                                                                        \
	X(ibv_qp_attach_comp_cntr)                                                                 \
	X(ibv_query_device)                                                                        \
	X(ibv_query_device_ex)                                                                     \
	X(ibv_query_gid)                                                                           \
	X(ibv_query_gid_ex)                                                                        \
	X(ibv_query_gid_table)                                                                     \
	X(ibv_query_pkey)                                                                          \
	X(ibv_query_port)                                                                          \
	X(ibv_query_qp)                                                                            \
	X(ibv_query_rt_values_ex)                                                                  \
	X(ibv_query_srq)                                                                           \
	X(ibv_read_counters)                                                                       \
	X(ibv_reg_dm_mr)                                                                           \
	X(ibv_reg_dmabuf_mr)                                                                       \
	X(ibv_reg_mr)                                                                              \
	X(ibv_reg_mr_ex)                                                                           \
	X(ibv_req_notify_cq)                                                                       \
	X(ibv_rereg_mr)                                                                            \
	X(ibv_resize_cq)                                                                           \
	X(ibv_resolve_eth_l2_from_gid)                                                             \
	X(ibv_wr_complete)

enum lab_call {
#define X(name) CALL_##name,
	LAB_CALLS(X)
#undef X
		LAB_NUM_CALLS
};

/* errno values that a rule can give a call. */
#define LAB_ERRNOS(X)                                                                              \
	X(EPERM) X(ENOENT) X(EINTR) X(EIO) X(ENXIO) X(EAGAIN) X(ENOMEM) X(EACCES) X(EFAULT)        \
	X(EBUSY) X(EEXIST) X(ENODEV) X(EINVAL) X(ENFILE) X(EMFILE) X(ENOSPC) X(ENOSYS)             \
	X(EPROTO) X(EOVERFLOW) X(EOPNOTSUPP) X(ENETDOWN) X(ENETUNREACH) X(ECONNRESET)              \
	X(ENOBUFS) X(ENOTCONN) X(ETIMEDOUT) X(ECONNREFUSED) X(EHOSTUNREACH)

/* Statuses of failed completions, with the values of enum ibv_wc_status. */
#define LAB_STATUSES(X)                                                                            \
	X(LOC_LEN_ERR, 1)                                                                          \
	X(LOC_QP_OP_ERR, 2)                                                                        \
	X(LOC_PROT_ERR, 4)                                                                         \
	X(WR_FLUSH_ERR, 5)                                                                         \
	X(MW_BIND_ERR, 6)                                                                          \
	X(BAD_RESP_ERR, 7)                                                                         \
	X(LOC_ACCESS_ERR, 8)                                                                       \
	X(REM_INV_REQ_ERR, 9)                                                                      \
	X(REM_ACCESS_ERR, 10)                                                                      \
	X(REM_OP_ERR, 11)                                                                          \
	X(RETRY_EXC_ERR, 12)                                                                       \
	X(RNR_RETRY_EXC_ERR, 13)                                                                   \
	X(REM_ABORT_ERR, 16)                                                                       \
	X(FATAL_ERR, 19)                                                                           \
	X(RESP_TIMEOUT_ERR, 20)                                                                    \
	X(GENERAL_ERR, 21)

/* Asynchronous events of a device or port, as IBV_EVENT_... */
#define LAB_EVENTS(X)                                                                              \
	X(CLIENT_REREGISTER) X(DEVICE_FATAL) X(GID_CHANGE) X(LID_CHANGE) X(PKEY_CHANGE)            \
	X(PORT_ACTIVE) X(PORT_ERR) X(SM_CHANGE)

enum lab_event {
#define X(name) LAB_EVENT_##name,
	LAB_EVENTS(X)
#undef X
		LAB_NUM_EVENTS
};

/* Kinds of completions. */
#define LAB_WORKS(X) X(send) X(write) X(read) X(atomic) X(bind) X(invalidate) X(flush) X(recv)

enum lab_work {
#define X(name) LAB_WORK_##name,
	LAB_WORKS(X)
#undef X
		LAB_NUM_WORKS
};

#endif
