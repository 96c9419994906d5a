/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san */
/*
 * Every export with arguments that no correct program gives: no pointer, no entries, -1, absurd
 * counts and flags. Where rdma-core returns an error or does nothing, so does this library; where
 * a bad pointer ends a program on rdma-core, there is no row. tests/verbs/exports.sh checks that
 * each export is named here. A bad pointer is the only bad argument of
 *
 *     ibv_copy_ah_attr_from_kern, ibv_copy_path_rec_from_kern, ibv_copy_path_rec_to_kern,
 *     ibv_copy_qp_attr_from_kern, ibv_free_device_list, ibv_get_device_guid, ibv_get_device_index,
 *     ibv_get_device_name, ibv_open_device, ibv_close_device, ibv_alloc_pd, ibv_query_device,
 *     ibv_create_comp_channel, ibv_unimport_dm, ibv_unimport_mr, ibv_unimport_pd
 *
 * and of the destroying verbs, of which contract_errno.c has more:
 *
 *     ibv_dealloc_pd, ibv_dereg_mr, ibv_destroy_ah, ibv_destroy_comp_channel, ibv_destroy_cq,
 *     ibv_destroy_qp, ibv_destroy_srq, ibv_free_buf, ibv_dealloc_dmah, ibv_destroy_comp_cntr
 *
 * and of the calls on a completion counter, ibv_inc_comp_cntr, ibv_inc_err_comp_cntr,
 * ibv_read_comp_cntr, ibv_read_err_comp_cntr, ibv_set_comp_cntr and ibv_set_err_comp_cntr, of
 * ibv_export_buf_dmabuf_fd and of ibv_dm_export_dmabuf_fd. The verbs of rdma-core 59 and later,
 * v_NAME here, are
 *
 *     _ibv_query_comp_cntr_caps, ibv_alloc_buf, ibv_alloc_dmah, ibv_create_comp_cntr,
 *     ibv_qp_attach_comp_cntr, ibv_query_port_speed, ibv_reg_buf_mr, ibv_reg_mr_ex
 *
 * Our librdmacm alone calls xroce_cm_bind, xroce_cm_count, xroce_cm_create_ah, xroce_cm_heard,
 * xroce_cm_hide, xroce_cm_place, xroce_cm_reject, xroce_cm_show, xroce_cm_unbind, xroce_create_qp1
 * and xroce_device_ifindex. verbs_allow_disassociate_destroy is a variable.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/mman.h>

#include "arguments.h"
#include "man.h"
#include "newer.h"

/* Not in <infiniband/verbs.h>. */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

/* ---- calls without an object ---- */

static bool strings(void)
{
	const char *const unknown = "unknown";
	bool good = true;

	for (int value = -1; value < 100; value += 100)
		good &= !strcmp(ibv_node_type_str(value), unknown) &
			!strcmp(ibv_port_state_str(value), unknown) &
			!strcmp(ibv_event_type_str(value), unknown) &
			!strcmp(ibv_wc_status_str(value), unknown);
	good &= !strcmp(ibv_node_type_str(INT_MAX), unknown);
	good &= !strcmp(ibv_port_state_str(INT_MIN), unknown);
	return good;
}

static bool rates(void)
{
	static const int absurd[] = { -1, 1000, INT_MAX, INT_MIN };
	bool good = true;

	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		good &= ROW(ibv_rate_to_mult(absurd[i]), -1, 0);
		good &= ROW(ibv_rate_to_mbps(absurd[i]), -1, 0);
		good &= ROW(mbps_to_ibv_rate(absurd[i]), IBV_RATE_MAX, 0);
		good &= ROW(mult_to_ibv_rate(absurd[i]), IBV_RATE_MAX, 0);
	}
	good &= ROW(mult_to_ibv_rate(0), IBV_RATE_MAX, 0);
	return good;
}

static bool forks(void)
{
	bool good = true;

	good &= ROW(ibv_fork_init(), 0, 0);
	good &= ROW(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED, 0);
	good &= ROW(ibv_dontfork_range(NULL, 0), 0, 0);
	good &= ROW(ibv_dofork_range(NULL, 0), 0, 0);
	return good;
}

/* Text that does not fit is an error, not a part of it without its end. */
static bool sysfs_files(void)
{
	char dir[] = "/tmp/xroce-arguments-XXXXXX", path[64], buf[16];
	bool good = true;
	FILE *f;

	MUST(ibv_get_sysfs_path() && mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/line", dir);
	MUST((f = fopen(path, "w")) && fputs("12345678\n", f) > 0 && !fclose(f));
	good &= ROW(ibv_read_sysfs_file(dir, "line", buf, 0), 0, 0);
	good &= ROW(ibv_read_sysfs_file(dir, "line", buf, 1), -1, 0);
	good &= ROW(ibv_read_sysfs_file(dir, "line", buf, 8), -1, 0);
	good &= ROW(ibv_read_sysfs_file(dir, "line", buf, 9), 8, 0);
	good &= ROW(ibv_read_sysfs_file(dir, "line", NULL, 9), -1, 0);
	good &= ROW(ibv_read_sysfs_file(dir, "none", buf, 9), -1, ENOENT);
	good &= ROW(ibv_read_sysfs_file(dir, "", buf, 9), -1, 0);
	unlink(path);
	rmdir(dir);
	return good;
}

static bool devices(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int fd = memfd_create("none", 0);
	bool good = true;

	MUST(list && fd >= 0);
	ibv_free_device_list(list);
	good &= ROW(ibv_import_device(-1), NULL, EINVAL);
	good &= ROW(ibv_import_device(INT_MAX), NULL, EINVAL);
	good &= ROW(ibv_import_device(fd), NULL, EINVAL);
	close(fd);
	return good;
}

/* ---- a context ---- */

static bool queries(void)
{
	const struct ibv_query_device_ex_input input = { .comp_mask = UINT32_MAX };
	struct verbs_context *vctx = verbs_get_ctx(ctx);
	struct ibv_values_ex values = { .comp_mask = UINT32_MAX };
	struct ibv_device_attr_ex device;
	struct ibv_gid_entry entry[2];
	struct ibv_port_attr port;
	union ibv_gid gid;
	bool good = true;
	__be16 pkey;

	good &= ROW(ibv_query_port(ctx, 0, &port), EINVAL, EINVAL);
	good &= ROW(ibv_query_port(ctx, 255, &port), EINVAL, EINVAL);
	good &= ROW(ibv_query_gid(ctx, 1, -1, &gid), -1, EINVAL);
	good &= ROW(ibv_query_gid(ctx, 1, INT_MAX, &gid), -1, EINVAL);
	good &= ROW(ibv_query_gid(ctx, 0, 0, &gid), -1, EINVAL);
	good &= ROW(ibv_query_pkey(ctx, 1, -1, &pkey), -1, 0);
	good &= ROW(ibv_query_pkey(ctx, 1, INT_MAX, &pkey), -1, 0);
	good &= ROW(ibv_query_pkey(ctx, 0, 0, &pkey), -1, 0);
	good &= ROW(ibv_get_pkey_index(ctx, 1, 0), -1, 0);
	good &= ROW(ibv_get_pkey_index(ctx, 255, 0xffff), -1, 0);
	good &= ROW(_ibv_query_gid_ex(ctx, UINT32_MAX, 0, entry, 0, sizeof(*entry)),
		    EINVAL, EINVAL);
	good &= ROW(_ibv_query_gid_ex(ctx, 1, UINT32_MAX, entry, 0, sizeof(*entry)),
		    EINVAL, EINVAL);
	good &= ROW(_ibv_query_gid_ex(ctx, 1, 0, entry, UINT32_MAX, sizeof(*entry)), EOPNOTSUPP, 0);
	good &= ROW(_ibv_query_gid_ex(ctx, 1, 0, entry, 0, 0), EINVAL, EINVAL);
	good &= ROW(_ibv_query_gid_ex(ctx, 1, 0, entry, 0, SIZE_MAX), EINVAL, EINVAL);
	good &= ROW(_ibv_query_gid_table(ctx, NULL, 0, 0, sizeof(*entry)), -EINVAL, 0);
	good &= ROW(_ibv_query_gid_table(ctx, entry, 2, UINT32_MAX, sizeof(*entry)),
		    -EOPNOTSUPP, 0);
	good &= ROW(_ibv_query_gid_table(ctx, entry, 2000, 0, 0), -EINVAL, 0);
	good &= ROW(_ibv_query_gid_table(ctx, entry, 2000, 0, SIZE_MAX), -EINVAL, 0);
	good &= ROW(ibv_query_device_ex(ctx, &input, &device), EINVAL, 0);
	good &= ROW(vctx->query_device_ex(ctx, NULL, &device, 0), EINVAL, EINVAL);
	good &= ROW(ibv_query_rt_values_ex(ctx, &values), EINVAL, EINVAL);
	return good;
}

static bool async_events(void)
{
	struct ibv_async_event event = { .event_type = 99 };
	bool good = true;

	MUST(set_nonblocking(ctx->async_fd, true));
	good &= ROW(ibv_get_async_event(ctx, &event), -1, EAGAIN);
	good &= ROW(ibv_get_async_event(ctx, NULL), -1, EAGAIN);
	good &= RETURNS(ibv_ack_async_event(&event));
	MUST(set_nonblocking(ctx->async_fd, false));
	return good;
}

static bool imports_body(struct pair *p)
{
	bool good = true;

	good &= ROW(ibv_import_pd(ctx, 0), NULL, ENOENT);
	good &= ROW(ibv_import_pd(ctx, UINT32_MAX), NULL, ENOENT);
	good &= ROW(ibv_import_mr(p->pd, 0), NULL, ENOENT);
	good &= ROW(ibv_import_mr(p->pd, UINT32_MAX), NULL, ENOENT);
	good &= ROW(ibv_import_dm(ctx, 0), NULL, ENOENT);
	good &= ROW(ibv_import_dm(ctx, UINT32_MAX), NULL, ENOENT);
	return good;
}
ON_PAIR(imports, imports_body)

/* ---- memory ---- */

#define ALL_REREG IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS

static bool memory_body(struct pair *p)
{
	struct ibv_alloc_dm_attr dm = { .length = 0 };
	struct ibv_parent_domain_init_attr parent = { .pd = NULL };
	char *const buf = p->buf[0];
	bool good = true;

	good &= ROW(ibv_reg_mr(p->pd, NULL, 0, 0), NULL, EINVAL);
	good &= ROW(ibv_reg_mr(p->pd, NULL, 4096, 0), NULL, EFAULT);
	good &= ROW(ibv_reg_mr(p->pd, buf, SIZE_MAX, 0), NULL, EINVAL);
	good &= ROW(ibv_reg_mr(p->pd, buf, 1ull << 62, 0), NULL, EFAULT);
	good &= ROW(ibv_reg_mr(p->pd, (void *)UINTPTR_MAX, 1, 0), NULL, EINVAL);
	good &= ROW(ibv_reg_mr(p->pd, buf, 8, 1 << 16), NULL, EINVAL);
	good &= ROW(ibv_reg_mr(p->pd, buf, 8, IBV_ACCESS_REMOTE_WRITE), NULL, EINVAL);
	good &= ROW(ibv_reg_mr_iova(p->pd, NULL, 4096, UINT64_MAX, 0), NULL, EFAULT);
	good &= ROW(ibv_reg_mr_iova(p->pd, buf, 4096, UINT64_MAX, 0), NULL, EINVAL);
	good &= ROW(ibv_reg_mr_iova2(p->pd, NULL, 0, 0, 0), NULL, EINVAL);
	good &= ROW(ibv_reg_mr_iova2(p->pd, buf, SIZE_MAX, 0, 0), NULL, EINVAL);
	good &= ROW(ibv_reg_dmabuf_mr(p->pd, 0, 4096, 0, -1, 0), NULL, EBADF);
	good &= ROW(ibv_reg_dmabuf_mr(p->pd, 0, 0, 0, INT_MAX, 0), NULL, EBADF);
	good &= ROW(ibv_rereg_mr(p->mr[0], 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT, EINVAL);
	good &= ROW(ibv_rereg_mr(p->mr[0], -1, p->pd, buf, 8, 0), IBV_REREG_MR_ERR_INPUT, EINVAL);
	good &= ROW(ibv_rereg_mr(p->mr[0], ALL_REREG, NULL, NULL, 8, 0), IBV_REREG_MR_ERR_INPUT,
		    EINVAL);
	good &= ROW(ibv_rereg_mr(p->mr[0], ALL_REREG, NULL, buf, 0, 0), IBV_REREG_MR_ERR_INPUT,
		    EINVAL);
	good &= ROW(ibv_rereg_mr(p->mr[0], IBV_REREG_MR_CHANGE_PD, p->pd, NULL, 0, 1),
		    IBV_REREG_MR_ERR_INPUT, EINVAL);
	good &= ROW(ibv_alloc_mw(p->pd, 0), NULL, EINVAL);
	good &= ROW(ibv_alloc_mw(p->pd, -1), NULL, EINVAL);
	good &= ROW(ibv_advise_mr(p->pd, 0, 0, NULL, 0), EINVAL, EINVAL);
	good &= ROW(ibv_advise_mr(p->pd, 0, 0, NULL, UINT32_MAX), EINVAL, EINVAL);
	good &= ROW(ibv_alloc_dm(ctx, &dm), NULL, EINVAL);
	dm.length = SIZE_MAX;
	good &= ROW(ibv_alloc_dm(ctx, &dm), NULL, 0);
	good &= ROW(ibv_alloc_parent_domain(ctx, &parent), NULL, EINVAL);
	return good;
}
ON_PAIR(memory, memory_body)

/* ---- completion queues ---- */

static bool completion_queues_body(struct pair *p)
{
	struct ibv_modify_cq_attr modify = { .attr_mask = 0 };
	struct ibv_cq_init_attr_ex ex = { .cqe = 0 };
	struct ibv_cq *cq = p->cq[1];
	void *context;
	bool good = true;

	good &= ROW(ibv_create_cq(ctx, 0, NULL, NULL, 0), NULL, EINVAL);
	good &= ROW(ibv_create_cq(ctx, -1, NULL, NULL, 0), NULL, EINVAL);
	good &= ROW(ibv_create_cq(ctx, INT_MAX, NULL, NULL, 0), NULL, EINVAL);
	good &= ROW(ibv_create_cq(ctx, 8, NULL, NULL, -1), NULL, EINVAL);
	good &= ROW(ibv_create_cq(ctx, 8, NULL, NULL, INT_MAX), NULL, EINVAL);
	good &= ROW(ibv_create_cq_ex(ctx, &ex), NULL, EINVAL);
	ex.cqe = UINT32_MAX;
	good &= ROW(ibv_create_cq_ex(ctx, &ex), NULL, EINVAL);
	ex = (struct ibv_cq_init_attr_ex){ .cqe = 8, .wc_flags = UINT64_MAX };
	good &= ROW(ibv_create_cq_ex(ctx, &ex), NULL, EOPNOTSUPP);
	good &= ROW(ibv_resize_cq(cq, 0), EINVAL, EINVAL);
	good &= ROW(ibv_resize_cq(cq, -1), EINVAL, EINVAL);
	good &= ROW(ibv_resize_cq(cq, INT_MAX), EINVAL, EINVAL);
	good &= ROW(ibv_modify_cq(cq, &modify), EINVAL, EINVAL);
	modify.attr_mask = UINT32_MAX;
	good &= ROW(ibv_modify_cq(cq, &modify), EOPNOTSUPP, EOPNOTSUPP);
	good &= ROW(ibv_poll_cq(cq, 0, NULL), 0, 0);
	good &= ROW(ibv_poll_cq(cq, INT_MAX, NULL), 0, 0); /* it is empty */
	good &= ROW(ibv_req_notify_cq(cq, INT_MIN), 0, 0);
	good &= RETURNS(ibv_ack_cq_events(cq, 0));
	MUST(set_nonblocking(p->channel->fd, true));
	good &= ROW(ibv_get_cq_event(p->channel, &cq, &context), -1, EAGAIN);
	good &= ROW(ibv_get_cq_event(p->channel, NULL, NULL), -1, EAGAIN);
	return good;
}
ON_PAIR(completion_queues, completion_queues_body, .channel = true)

/* ---- shared receive queues ---- */

static bool shared_receive_queues_body(struct pair *p)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 0, .max_sge = 1 } };
	struct ibv_srq_init_attr_ex ex = { .comp_mask = 0 };
	struct ibv_srq_attr attr = { .max_wr = UINT32_MAX, .srq_limit = UINT32_MAX };
	struct ibv_recv_wr wr = { .num_sge = INT_MIN }, *bad;
	bool good = true;

	good &= ROW(ibv_create_srq(p->pd, &init), NULL, EINVAL);
	init.attr = (struct ibv_srq_attr){ .max_wr = UINT32_MAX, .max_sge = 1 };
	good &= ROW(ibv_create_srq(p->pd, &init), NULL, EINVAL);
	init.attr = (struct ibv_srq_attr){ .max_wr = 1, .max_sge = UINT32_MAX };
	good &= ROW(ibv_create_srq(p->pd, &init), NULL, EINVAL);
	good &= ROW(ibv_create_srq_ex(ctx, &ex), NULL, EINVAL);
	ex.comp_mask = UINT32_MAX;
	good &= ROW(ibv_create_srq_ex(ctx, &ex), NULL, EINVAL);
	good &= ROW(ibv_modify_srq(p->srq, &attr, 0), 0, 0);
	good &= ROW(ibv_modify_srq(p->srq, &attr, -1), EINVAL, EINVAL);
	good &= ROW(ibv_modify_srq(p->srq, &attr, IBV_SRQ_MAX_WR), EINVAL, EINVAL);
	good &= ROW(ibv_modify_srq(p->srq, &attr, IBV_SRQ_LIMIT), EINVAL, EINVAL);
	good &= ROW(ibv_query_srq(p->srq, &attr), 0, 0);
	good &= attr.max_wr == QUEUE && !attr.srq_limit;
	good &= ROW(ibv_post_srq_recv(p->srq, NULL, &bad), 0, 0);
	good &= ROW(ibv_post_srq_recv(p->srq, &wr, &bad), EINVAL, EINVAL);
	wr.num_sge = INT_MAX;
	good &= ROW(ibv_post_srq_recv(p->srq, &wr, &bad), EINVAL, EINVAL);
	return good && bad == &wr;
}
ON_PAIR(shared_receive_queues, shared_receive_queues_body, .srq = true)

/* ---- queue pairs ---- */

static bool creating_body(struct pair *p)
{
	const struct ibv_qp_init_attr whole = { .send_cq = p->cq[0],
						.recv_cq = p->cq[0],
						.qp_type = IBV_QPT_RC,
						.cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_RC };
	bool good = true;

	good &= ROW(ibv_create_qp(p->pd, &init), NULL, EINVAL);
	init = whole;
	init.send_cq = NULL;
	good &= ROW(ibv_create_qp(p->pd, &init), NULL, EINVAL);
	init = whole;
	init.recv_cq = NULL;
	good &= ROW(ibv_create_qp(p->pd, &init), NULL, EINVAL);
	init = whole;
	init.qp_type = -1;
	good &= ROW(ibv_create_qp(p->pd, &init), NULL, 0);
	init.qp_type = 0;
	good &= ROW(ibv_create_qp(p->pd, &init), NULL, 0);
	init = whole;
	init.cap.max_send_wr = UINT32_MAX;
	good &= ROW(ibv_create_qp(p->pd, &init), NULL, EINVAL);
	init = whole;
	init.cap.max_recv_wr = UINT32_MAX;
	good &= ROW(ibv_create_qp(p->pd, &init), NULL, EINVAL);
	init = whole;
	init.cap.max_send_sge = init.cap.max_recv_sge = UINT32_MAX;
	good &= ROW(ibv_create_qp(p->pd, &init), NULL, EINVAL);
	init = whole;
	init.cap.max_inline_data = UINT32_MAX;
	good &= ROW(ibv_create_qp(p->pd, &init), NULL, EINVAL);
	good &= ROW(ibv_create_qp_ex(ctx, &ex), NULL, EINVAL);
	ex.comp_mask = UINT32_MAX;
	good &= ROW(ibv_create_qp_ex(ctx, &ex), NULL, EOPNOTSUPP);
	return good;
}
ON_PAIR(creating, creating_body)

/* No attribute of an empty mask is looked at. */
static bool modifying_body(struct pair *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { .qp_state = -1 };
	struct ibv_ece ece = { 0 };
	bool good = true;

	good &= ROW(ibv_modify_qp(p->qp[0], NULL, 0), 0, 0);
	good &= ROW(ibv_modify_qp(p->qp[0], &attr, 0), 0, 0);
	good &= ROW(ibv_modify_qp(p->qp[0], &attr, -1), EINVAL, EINVAL);
	good &= ROW(ibv_modify_qp(p->qp[0], &attr, IBV_QP_STATE), EINVAL, EINVAL);
	attr.qp_state = INT_MAX;
	good &= ROW(ibv_modify_qp(p->qp[0], &attr, IBV_QP_STATE), EINVAL, EINVAL);
	good &= ROW(ibv_modify_qp(p->qp[0], &attr, IBV_QP_CUR_STATE | IBV_QP_STATE),
		    EINVAL, EINVAL);
	good &= ROW(ibv_query_qp(p->qp[0], &attr, 0, &init), 0, 0);
	good &= ROW(ibv_query_qp(p->qp[0], &attr, -1, &init), 0, 0);
	good &= attr.qp_state == IBV_QPS_RTS;
	good &= ROW(ibv_query_qp_data_in_order(p->qp[0], -1, UINT32_MAX), 0, 0);
	good &= ROW(ibv_query_ece(p->qp[0], &ece), EOPNOTSUPP, EOPNOTSUPP);
	good &= ROW(ibv_query_ece(p->qp[0], NULL), EOPNOTSUPP, EOPNOTSUPP);
	good &= ROW(ibv_set_ece(p->qp[0], &ece), EOPNOTSUPP, EOPNOTSUPP);
	good &= ROW(ibv_qp_to_qp_ex(p->qp[0]), NULL, 0);
	return good;
}
ON_PAIR(modifying, modifying_body)

static bool posting_body(struct pair *p)
{
	struct ibv_sge sge = { 0 };
	struct ibv_send_wr wr = { .num_sge = INT_MIN, .sg_list = &sge, .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;
	struct ibv_recv_wr rr = { .num_sge = INT_MIN, .sg_list = &sge }, *bad_rr;
	union ibv_gid zero = { 0 };
	bool good = true;

	good &= ROW(ibv_post_send(p->qp[0], NULL, &bad), 0, 0);
	good &= ROW(ibv_post_recv(p->qp[1], NULL, &bad_rr), 0, 0);
	good &= ROW(ibv_post_send(p->qp[0], &wr, &bad), EINVAL, EINVAL) && bad == &wr;
	good &= ROW(ibv_post_recv(p->qp[1], &rr, &bad_rr), EINVAL, EINVAL) && bad_rr == &rr;
	wr.num_sge = rr.num_sge = INT_MAX;
	good &= ROW(ibv_post_send(p->qp[0], &wr, &bad), EINVAL, EINVAL);
	good &= ROW(ibv_post_recv(p->qp[1], &rr, &bad_rr), EINVAL, EINVAL);
	wr.num_sge = 0;
	wr.opcode = -1;
	good &= ROW(ibv_post_send(p->qp[0], &wr, &bad), EINVAL, EINVAL);
	wr.opcode = INT_MAX;
	good &= ROW(ibv_post_send(p->qp[0], &wr, &bad), EINVAL, EINVAL);
	good &= ROW(ibv_attach_mcast(p->qp[0], &zero, 0), EINVAL, EINVAL);
	good &= ROW(ibv_detach_mcast(p->qp[0], &zero, UINT16_MAX), EINVAL, EINVAL);
	return good;
}
ON_PAIR(posting, posting_body)

/* ---- addresses ---- */

static bool addresses_body(struct pair *p)
{
	struct ibv_wc plain = { 0 }, with_grh = { .wc_flags = IBV_WC_GRH };
	struct ibv_ah_attr zero = { 0 }, own = own_address(), attr;
	struct ibv_grh grh = { 0 };
	uint8_t mac[6];
	bool good = true;

	good &= ROW(ibv_create_ah(p->pd, &zero), NULL, EINVAL);
	attr = own;
	attr.port_num = 255;
	good &= ROW(ibv_create_ah(p->pd, &attr), NULL, EINVAL);
	attr = own;
	attr.grh.sgid_index = 255;
	good &= ROW(ibv_create_ah(p->pd, &attr), NULL, EINVAL);
	good &= ROW(ibv_init_ah_from_wc(ctx, 1, &plain, &grh, &attr), 0, 0);
	good &= ROW(ibv_init_ah_from_wc(ctx, 1, &with_grh, &grh, &attr), -1, 0);
	good &= ROW(ibv_create_ah_from_wc(p->pd, &with_grh, &grh, 1), NULL, 0);
	good &= ROW(ibv_create_ah_from_wc(p->pd, &plain, &grh, 255), NULL, 0);
	good &= ROW(ibv_resolve_eth_l2_from_gid(ctx, &own, mac, NULL), 0, 0);
	good &= ROW(ibv_resolve_eth_l2_from_gid(ctx, &zero, mac, NULL), -1, 0);
	return good;
}
ON_PAIR(addresses, addresses_body)

/* ---- verbs without a symbol, which the header calls by the context ---- */

static bool inline_verbs_body(struct pair *p)
{
	struct ibv_qp_rate_limit_attr rate = { .comp_mask = UINT32_MAX };
	struct ibv_rwq_ind_table_init_attr table = { .log_ind_tbl_size = UINT32_MAX };
	struct ibv_counters_init_attr counters = { .comp_mask = UINT32_MAX };
	struct ibv_td_init_attr td = { .comp_mask = UINT32_MAX };
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = 0 };
	struct ibv_qp_open_attr open_qp = { .comp_mask = 0 };
	struct ibv_flow_attr flow = { .num_of_specs = UINT8_MAX, .size = UINT16_MAX };
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ };
	bool good = true;

	good &= ROW(ibv_open_xrcd(ctx, &xrcd), NULL, EINVAL);
	xrcd.comp_mask = UINT32_MAX;
	good &= ROW(ibv_open_xrcd(ctx, &xrcd), NULL, 0);
	good &= ROW(ibv_open_qp(ctx, &open_qp), NULL, EINVAL);
	open_qp.comp_mask = UINT32_MAX;
	good &= ROW(ibv_open_qp(ctx, &open_qp), NULL, EINVAL);
	good &= ROW(ibv_alloc_td(ctx, &td), NULL, 0);
	good &= ROW(ibv_create_counters(ctx, &counters), NULL, 0);
	good &= ROW(ibv_create_wq(ctx, &wq), NULL, EINVAL);
	good &= ROW(ibv_create_rwq_ind_table(ctx, &table), NULL, EINVAL);
	good &= ROW(ibv_create_flow(p->qp[0], &flow), NULL, 0);
	flow = (struct ibv_flow_attr){ .size = sizeof(flow), .port = UINT8_MAX };
	good &= ROW(ibv_create_flow(p->qp[0], &flow), NULL, 0);
	good &= ROW(ibv_modify_qp_rate_limit(p->qp[0], &rate), EINVAL, EINVAL);
	return good;
}
ON_PAIR(inline_verbs, inline_verbs_body)

/* ---- verbs of rdma-core 59 and later ---- */

static bool newer_verbs_body(struct pair *p)
{
	struct dmah_attr dmah = { .comp_mask = UINT32_MAX };
	struct mr_attr mr = { .comp_mask = UINT64_MAX };
	struct cntr_attr attr = { .comp_mask = UINT32_MAX };
	struct cntr_attach attach = { .op_mask = UINT32_MAX };
	struct cntr_caps caps;
	struct cntr *cntr;
	struct ibv_buf *buf;
	uint64_t speed;
	bool good = true;

	good &= ROW(v_alloc_dmah(ctx, &dmah), NULL, EOPNOTSUPP);
	good &= ROW(v_reg_mr_ex(p->pd, &mr), NULL, EOPNOTSUPP);
	mr.comp_mask = WITH_ADDR;
	good &= ROW(v_reg_mr_ex(p->pd, &mr), NULL, EINVAL);
	mr.length = SIZE_MAX;
	good &= ROW(v_reg_mr_ex(p->pd, &mr), NULL, EINVAL);
	mr.comp_mask = WITH_ADDR | WITH_DMAH;
	good &= ROW(v_reg_mr_ex(p->pd, &mr), NULL, EINVAL);
	mr.comp_mask = WITH_ADDR | WITH_BUF;
	good &= ROW(v_reg_mr_ex(p->pd, &mr), NULL, EINVAL);
	good &= ROW(v_reg_buf_mr(p->pd, NULL, NULL, SIZE_MAX, -1), NULL, EINVAL);
	good &= ROW(v_alloc_buf(p->pd, SIZE_MAX, &buf), NULL, ENOMEM);
	good &= ROW(v_query_port_speed(ctx, UINT32_MAX, &speed), EINVAL, EINVAL);
	good &= ROW(v_query_comp_cntr_caps(ctx, &caps, 0), 0, 0);
	good &= ROW(v_create_comp_cntr(ctx, &attr), NULL, EINVAL);
	attr = (struct cntr_attr){ .type = UINT32_MAX };
	good &= ROW(v_create_comp_cntr(ctx, &attr), NULL, ENOTSUP);
	attr.type = 0;
	MUST(cntr = v_create_comp_cntr(ctx, &attr));
	good &= ROW(v_qp_attach_comp_cntr(p->qp[0], cntr, &attach), ENOTSUP, ENOTSUP);
	attach.op_mask = 0;
	good &= ROW(v_qp_attach_comp_cntr(p->qp[0], cntr, &attach), EINVAL, EINVAL);
	good &= ROW(v_destroy_comp_cntr(cntr), 0, 0);
	return good;
}
ON_PAIR(newer_verbs, newer_verbs_body)

/* ---- for providers ---- */

/* These look at no argument: a provider has nothing to ask of this library. */
#define RETURN_ENOSYS(X)                                                                           \
	X(execute_ioctl)                                                                           \
	X(ibv_cmd_advise_mr)                                                                       \
	X(ibv_cmd_alloc_dm)                                                                        \
	X(ibv_cmd_alloc_dmah)                                                                      \
	X(ibv_cmd_alloc_mw)                                                                        \
	X(ibv_cmd_alloc_pd)                                                                        \
	X(ibv_cmd_attach_mcast)                                                                    \
	X(ibv_cmd_close_xrcd)                                                                      \
	X(ibv_cmd_create_ah)                                                                       \
	X(ibv_cmd_create_comp_cntr)                                                                \
	X(ibv_cmd_create_counters)                                                                 \
	X(ibv_cmd_create_cq)                                                                       \
	X(ibv_cmd_create_cq_ex)                                                                    \
	X(ibv_cmd_create_cq_ex2)                                                                   \
	X(ibv_cmd_create_flow)                                                                     \
	X(ibv_cmd_create_flow_action_esp)                                                          \
	X(ibv_cmd_create_qp)                                                                       \
	X(ibv_cmd_create_qp_ex)                                                                    \
	X(ibv_cmd_create_qp_ex2)                                                                   \
	X(ibv_cmd_create_rwq_ind_table)                                                            \
	X(ibv_cmd_create_srq)                                                                      \
	X(ibv_cmd_create_srq_ex)                                                                   \
	X(ibv_cmd_create_wq)                                                                       \
	X(ibv_cmd_dealloc_mw)                                                                      \
	X(ibv_cmd_dealloc_pd)                                                                      \
	X(ibv_cmd_dereg_mr)                                                                        \
	X(ibv_cmd_destroy_ah)                                                                      \
	X(ibv_cmd_destroy_comp_cntr)                                                               \
	X(ibv_cmd_destroy_counters)                                                                \
	X(ibv_cmd_destroy_cq)                                                                      \
	X(ibv_cmd_destroy_flow)                                                                    \
	X(ibv_cmd_destroy_flow_action)                                                             \
	X(ibv_cmd_destroy_qp)                                                                      \
	X(ibv_cmd_destroy_rwq_ind_table)                                                           \
	X(ibv_cmd_destroy_srq)                                                                     \
	X(ibv_cmd_destroy_wq)                                                                      \
	X(ibv_cmd_detach_mcast)                                                                    \
	X(ibv_cmd_export_dmabuf_fd)                                                                \
	X(ibv_cmd_free_dm)                                                                         \
	X(ibv_cmd_free_dmah)                                                                       \
	X(ibv_cmd_get_context)                                                                     \
	X(ibv_cmd_inc_comp_cntr)                                                                   \
	X(ibv_cmd_inc_err_comp_cntr)                                                               \
	X(ibv_cmd_modify_cq)                                                                       \
	X(ibv_cmd_modify_flow_action_esp)                                                          \
	X(ibv_cmd_modify_qp)                                                                       \
	X(ibv_cmd_modify_qp_ex)                                                                    \
	X(ibv_cmd_modify_srq)                                                                      \
	X(ibv_cmd_modify_wq)                                                                       \
	X(ibv_cmd_open_qp)                                                                         \
	X(ibv_cmd_open_xrcd)                                                                       \
	X(ibv_cmd_poll_cq)                                                                         \
	X(ibv_cmd_post_recv)                                                                       \
	X(ibv_cmd_post_send)                                                                       \
	X(ibv_cmd_post_srq_recv)                                                                   \
	X(ibv_cmd_qp_attach_comp_cntr)                                                             \
	X(ibv_cmd_query_comp_cntr_caps)                                                            \
	X(ibv_cmd_query_context)                                                                   \
	X(ibv_cmd_query_device)                                                                    \
	X(ibv_cmd_query_device_any)                                                                \
	X(ibv_cmd_query_mr)                                                                        \
	X(ibv_cmd_query_port)                                                                      \
	X(ibv_cmd_query_port_speed)                                                                \
	X(ibv_cmd_query_qp)                                                                        \
	X(ibv_cmd_query_srq)                                                                       \
	X(ibv_cmd_read_comp_cntr)                                                                  \
	X(ibv_cmd_read_counters)                                                                   \
	X(ibv_cmd_read_err_comp_cntr)                                                              \
	X(ibv_cmd_reg_dm_mr)                                                                       \
	X(ibv_cmd_reg_dmabuf_mr)                                                                   \
	X(ibv_cmd_reg_mr)                                                                          \
	X(ibv_cmd_reg_mr_ex)                                                                       \
	X(ibv_cmd_req_notify_cq)                                                                   \
	X(ibv_cmd_rereg_mr)                                                                        \
	X(ibv_cmd_resize_cq)                                                                       \
	X(ibv_cmd_set_comp_cntr)                                                                   \
	X(ibv_cmd_set_err_comp_cntr)

static void *private_symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}
#define PRIVATE(name)                                                          \
	((int (*)(void *, void *, void *, void *))private_symbol(#name))(NULL, \
									 NULL, NULL, NULL)
#define PRIVATE_MAKER(name) \
	((void *(*)(void *, int, size_t, void *))private_symbol(#name))(NULL, -1, SIZE_MAX, NULL)

static bool private_symbols(void)
{
	typedef int (*gid_typer)(struct ibv_context *, uint8_t, unsigned int, int *);
	typedef const char *(*namer)(int);
	const gid_typer gid_type = (gid_typer)dlsym(RTLD_DEFAULT, "ibv_query_gid_type");
	const namer opcode = (namer)dlsym(RTLD_DEFAULT, "ibv_wr_opcode_str");
	bool good = true;
	int type;

#define X(name) good &= ROW(PRIVATE(name), ENOSYS, 0);
	RETURN_ENOSYS(X)
#undef X
	good &= ROW(PRIVATE(ibv_read_ibdev_sysfs_file), -1, ENOSYS);
	good &= ROW(PRIVATE(__ioctl_final_num_attrs), 0, 0);
	good &= ROW(PRIVATE_MAKER(verbs_open_device), NULL, ENOSYS);
	good &= ROW(PRIVATE_MAKER(_verbs_init_and_alloc_context), NULL, ENOSYS);
	good &= RETURNS(PRIVATE(__verbs_log));
	good &= RETURNS(PRIVATE(verbs_init_cq));
	good &= ROW(PRIVATE_MAKER(ibv_dmabuf_heap_alloc), NULL, ENOSYS);
	good &= ROW(PRIVATE_MAKER(ibv_dmabuf_heap_cc_shared_init), NULL, ENOSYS);
	good &= RETURNS(PRIVATE(ibv_dmabuf_heap_destroy));
	good &= RETURNS(PRIVATE(ibv_dmabuf_heap_free));
	good &= RETURNS(PRIVATE(verbs_register_driver_33));
	good &= RETURNS(PRIVATE(verbs_register_driver_34));
	good &= RETURNS(PRIVATE(verbs_register_driver_57));
	good &= RETURNS(PRIVATE(verbs_register_driver_59));
	good &= RETURNS(PRIVATE(verbs_register_driver_64));
	good &= RETURNS(PRIVATE(verbs_register_driver_65));
	good &= RETURNS(PRIVATE(verbs_set_ops));
	good &= RETURNS(PRIVATE(verbs_uninit_context));
	good &= ROW(gid_type(ctx, 0, 0, &type), -1, EINVAL);
	good &= ROW(gid_type(ctx, 1, UINT_MAX, &type), -1, EINVAL);
	good &= !strcmp(opcode(-1), "unknown") && !strcmp(opcode(INT_MAX), "unknown");
	return good;
}

const struct test_case man_cases[] = {
	CASE(strings),
	CASE(rates),
	CASE(forks),
	CASE(sysfs_files),
	CASE(devices),
	CASE(queries),
	CASE(async_events),
	CASE(imports),
	CASE(memory),
	CASE(completion_queues),
	CASE(shared_receive_queues),
	CASE(creating),
	CASE(modifying),
	CASE(posting),
	CASE(addresses),
	CASE(inline_verbs),
	CASE(newer_verbs),
	CASE(private_symbols),
	{ 0 },
};
