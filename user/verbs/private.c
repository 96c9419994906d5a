/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The private version nodes of rdma-core, IBVERBS_PRIVATE_*: imports of its providers and tools.
 * A release of rdma-core has one such node, and a program of that release names the node. This
 * library has the nodes of all releases from 33 on, side by side. The linker's script has their
 * names, and PRIVATE_SYMBOLS below has their symbols.
 *
 * Programs are linked so that a missing symbol ends them at their start. The calls themselves go to
 * the kernel's RDMA drivers, which this library does not have. So each fails with ENOSYS, in the
 * convention of its return type, and no provider finds a device. Programs do use
 * ibv_query_gid_type() and ibv_wr_opcode_str(), which work.
 *
 * Built without -flto (Makefile), which would separate the assembler's lines from the functions.
 */
#include "objects.h"

/* ---- the answers; all but the last three ignore their arguments ---- */

static int answer_ENOSYS_NUMBER(void)
{
	return ENOSYS;
}

static void *answer_NULL_ENOSYS(void)
{
	return verb_fail(ENOSYS);
}

static int answer_MINUS_ONE(void)
{
	return verb_fail_int(ENOSYS);
}

/* A provider registers itself when it is loaded, without an effect here. */
static void answer_NOTHING(void)
{
}

/* A count of attributes. */
static unsigned int answer_ZERO(void)
{
	return 0;
}

static bool answer_FLAG;

static int answer_GID_TYPE(struct ibv_context *context, uint8_t port_num, unsigned int index,
			   enum gid_type_sysfs *type)
{
	return query_gid_type(context, port_num, index, type);
}

static const char *answer_OPCODE_STR(enum ibv_wr_opcode opcode)
{
	return wr_opcode_str(opcode);
}

/* ---- the symbols ---- */

/*
 * Exports answer_KIND as NAME in the node of a release. "@@" makes the node the symbol's default,
 * which a caller gets that names no node: dlsym(3), or a program linked with this library.
 */
#define SYMBOL(name, kind, node, at)                                                               \
	extern __typeof__(answer_##kind) name##_in_##node                                          \
		__attribute__((alias("answer_" #kind), visibility("default")));                    \
	__asm__(".symver " #name "_in_" #node ", " #name at "IBVERBS_PRIVATE_" #node);

/* The nodes that have a symbol. 57 is the node of 57 and 58, 59 of 59 to 63. */
#define SINCE_65(name, kind) SYMBOL(name, kind, 65, "@@")
#define SINCE_64(name, kind) SYMBOL(name, kind, 64, "@") SINCE_65(name, kind)
#define SINCE_59(name, kind) SYMBOL(name, kind, 59, "@") SINCE_64(name, kind)
#define SINCE_57(name, kind) SYMBOL(name, kind, 57, "@") SINCE_59(name, kind)
#define SINCE_34(name, kind) SYMBOL(name, kind, 34, "@") SINCE_57(name, kind)
#define SINCE_33(name, kind) SYMBOL(name, kind, 33, "@") SINCE_34(name, kind)
#define UNTIL_34(name, kind) SYMBOL(name, kind, 33, "@") SYMBOL(name, kind, 34, "@@")
#define ONLY_33(name, kind)  SYMBOL(name, kind, 33, "@@")
#define ONLY_34(name, kind)  SYMBOL(name, kind, 34, "@@")
#define ONLY_57(name, kind)  SYMBOL(name, kind, 57, "@@")
#define ONLY_59(name, kind)  SYMBOL(name, kind, 59, "@@")
#define ONLY_64(name, kind)  SYMBOL(name, kind, 64, "@@")
#define ONLY_65(name, kind)  SYMBOL(name, kind, 65, "@@")

/* X(symbol, answer, nodes). tests/verbs/exports.tsv has each symbol in each of its nodes. */
#define PRIVATE_SYMBOLS(X) \
	X(__ioctl_final_num_attrs, ZERO, SINCE_33) \
	X(__verbs_log, NOTHING, SINCE_34) \
	X(_verbs_init_and_alloc_context, NULL_ENOSYS, SINCE_33) \
	X(execute_ioctl, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_advise_mr, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_alloc_dm, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_alloc_dmah, ENOSYS_NUMBER, SINCE_59) \
	X(ibv_cmd_alloc_mw, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_alloc_pd, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_attach_mcast, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_close_xrcd, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_ah, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_comp_cntr, ENOSYS_NUMBER, SINCE_65) \
	X(ibv_cmd_create_counters, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_cq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_cq_ex, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_cq_ex2, ENOSYS_NUMBER, SINCE_34) \
	X(ibv_cmd_create_flow, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_flow_action_esp, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_qp, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_qp_ex, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_qp_ex2, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_rwq_ind_table, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_srq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_srq_ex, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_create_wq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_dealloc_mw, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_dealloc_pd, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_dereg_mr, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_destroy_ah, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_destroy_comp_cntr, ENOSYS_NUMBER, SINCE_65) \
	X(ibv_cmd_destroy_counters, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_destroy_cq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_destroy_flow, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_destroy_flow_action, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_destroy_qp, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_destroy_rwq_ind_table, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_destroy_srq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_destroy_wq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_detach_mcast, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_export_dmabuf_fd, ENOSYS_NUMBER, SINCE_59) \
	X(ibv_cmd_free_dm, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_free_dmah, ENOSYS_NUMBER, SINCE_59) \
	X(ibv_cmd_get_context, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_inc_comp_cntr, ENOSYS_NUMBER, SINCE_65) \
	X(ibv_cmd_inc_err_comp_cntr, ENOSYS_NUMBER, SINCE_65) \
	X(ibv_cmd_modify_cq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_modify_flow_action_esp, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_modify_qp, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_modify_qp_ex, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_modify_srq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_modify_wq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_open_qp, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_open_xrcd, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_poll_cq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_post_recv, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_post_send, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_post_srq_recv, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_qp_attach_comp_cntr, ENOSYS_NUMBER, SINCE_65) \
	X(ibv_cmd_query_comp_cntr_caps, ENOSYS_NUMBER, SINCE_65) \
	X(ibv_cmd_query_context, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_query_device, ENOSYS_NUMBER, UNTIL_34) \
	X(ibv_cmd_query_device_any, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_query_mr, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_query_port, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_query_port_speed, ENOSYS_NUMBER, SINCE_59) \
	X(ibv_cmd_query_qp, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_query_srq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_read_comp_cntr, ENOSYS_NUMBER, SINCE_65) \
	X(ibv_cmd_read_counters, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_read_err_comp_cntr, ENOSYS_NUMBER, SINCE_65) \
	X(ibv_cmd_reg_dm_mr, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_reg_dmabuf_mr, ENOSYS_NUMBER, SINCE_34) \
	X(ibv_cmd_reg_mr, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_reg_mr_ex, ENOSYS_NUMBER, SINCE_59) \
	X(ibv_cmd_req_notify_cq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_rereg_mr, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_resize_cq, ENOSYS_NUMBER, SINCE_33) \
	X(ibv_cmd_set_comp_cntr, ENOSYS_NUMBER, SINCE_65) \
	X(ibv_cmd_set_err_comp_cntr, ENOSYS_NUMBER, SINCE_65) \
	X(ibv_dmabuf_heap_alloc, NULL_ENOSYS, SINCE_64) \
	X(ibv_dmabuf_heap_cc_shared_init, NULL_ENOSYS, SINCE_64) \
	X(ibv_dmabuf_heap_destroy, NOTHING, SINCE_64) \
	X(ibv_dmabuf_heap_free, NOTHING, SINCE_64) \
	X(ibv_query_gid_type, GID_TYPE, SINCE_33) \
	X(ibv_read_ibdev_sysfs_file, MINUS_ONE, SINCE_33) \
	X(ibv_wr_opcode_str, OPCODE_STR, SINCE_34) \
	X(verbs_allow_disassociate_destroy, FLAG, SINCE_33) \
	X(verbs_init_cq, NOTHING, SINCE_33) \
	X(verbs_open_device, NULL_ENOSYS, SINCE_33) \
	X(verbs_register_driver_33, NOTHING, ONLY_33) \
	X(verbs_register_driver_34, NOTHING, ONLY_34) \
	X(verbs_register_driver_57, NOTHING, ONLY_57) \
	X(verbs_register_driver_59, NOTHING, ONLY_59) \
	X(verbs_register_driver_64, NOTHING, ONLY_64) \
	X(verbs_register_driver_65, NOTHING, ONLY_65) \
	X(verbs_set_ops, NOTHING, SINCE_33) \
	X(verbs_uninit_context, NOTHING, SINCE_33)

#define X(name, kind, nodes) nodes(name, kind)
PRIVATE_SYMBOLS(X)
#undef X
