/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that concern the kernel's RDMA subsystem: sysfs, conversions of its structs for the
 * connection manager's library, and fork(), which needs no preparation as nothing is pinned.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/sa.h>
#include <limits.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "../os/kernel.h"
#include "objects.h"
#include "xroce_cm.h"

/* Declared in headers of rdma-core that no distribution installs. */
EXPORT const char *ibv_get_sysfs_path(void);
EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
EXPORT void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
EXPORT void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
EXPORT void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
EXPORT void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

static char sysfs_path[PATH_MAX] = "/sys";

static void sysfs_path_find(void)
{
	const char *path = secure_getenv("SYSFS_PATH");
	size_t len = path ? strlen(path) : 0;

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len && len < sizeof(sysfs_path))
		snprintf(sysfs_path, sizeof(sysfs_path), "%.*s", (int)len, path);
}

/* Returns the path of sysfs, or of SYSFS_PATH, which set-user-ID programs ignore. */
EXPORT const char *ibv_get_sysfs_path(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, sysfs_path_find);
	return sysfs_path;
}

/*
 * Programs started by `xroce run` find files of our devices (user/tools/run/sysfs_private.h).
 * Returns the length of the text, without its final newline and followed by a zero byte. Returns -1
 * if `buf` has no room for the zero, or with errno if the file cannot be read.
 */
EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char *path;
	ssize_t len;
	int fd, err;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return verb_fail_int(ENOMEM);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return -1;
	len = read(fd, buf, size);
	err = errno;
	kernel_close(fd);
	if (len < 0)
		return verb_fail_int(err);
	if (len > 0 && buf[len - 1] == '\n')
		buf[--len] = 0;
	else if ((size_t)len < size)
		buf[len] = 0;
	else if (len > 0)
		return -1;
	return (int)len;
}

/* Memory regions are ordinary pages: a child gets its copy and the parent keeps its own. */
EXPORT int ibv_fork_init(void)
{
	return 0;
}

int is_fork_initialized(void)
{
	return FORK_UNNEEDED;
}

/* Exported without a declaration in any header; older programs call them. */
EXPORT int ibv_dontfork_range(void *base, size_t size);
EXPORT int ibv_dofork_range(void *base, size_t size);

EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

EXPORT void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src)
{
	memcpy(dst->grh.dgid.raw, src->grh.dgid, sizeof(dst->grh.dgid.raw));
	dst->grh.flow_label = src->grh.flow_label;
	dst->grh.sgid_index = src->grh.sgid_index;
	dst->grh.hop_limit = src->grh.hop_limit;
	dst->grh.traffic_class = src->grh.traffic_class;
	dst->dlid = src->dlid;
	dst->sl = src->sl;
	dst->src_path_bits = src->src_path_bits;
	dst->static_rate = src->static_rate;
	dst->is_global = src->is_global;
	dst->port_num = src->port_num;
}

EXPORT void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src)
{
	dst->qp_state = (enum ibv_qp_state)src->qp_state;
	dst->cur_qp_state = (enum ibv_qp_state)src->cur_qp_state;
	dst->path_mtu = (enum ibv_mtu)src->path_mtu;
	dst->path_mig_state = (enum ibv_mig_state)src->path_mig_state;
	dst->qkey = src->qkey;
	dst->rq_psn = src->rq_psn;
	dst->sq_psn = src->sq_psn;
	dst->dest_qp_num = src->dest_qp_num;
	dst->qp_access_flags = src->qp_access_flags;
	dst->cap.max_send_wr = src->max_send_wr;
	dst->cap.max_recv_wr = src->max_recv_wr;
	dst->cap.max_send_sge = src->max_send_sge;
	dst->cap.max_recv_sge = src->max_recv_sge;
	dst->cap.max_inline_data = src->max_inline_data;
	ibv_copy_ah_attr_from_kern(&dst->ah_attr, &src->ah_attr);
	ibv_copy_ah_attr_from_kern(&dst->alt_ah_attr, &src->alt_ah_attr);
	dst->pkey_index = src->pkey_index;
	dst->alt_pkey_index = src->alt_pkey_index;
	dst->en_sqd_async_notify = src->en_sqd_async_notify;
	dst->sq_draining = src->sq_draining;
	dst->max_rd_atomic = src->max_rd_atomic;
	dst->max_dest_rd_atomic = src->max_dest_rd_atomic;
	dst->min_rnr_timer = src->min_rnr_timer;
	dst->port_num = src->port_num;
	dst->timeout = src->timeout;
	dst->retry_cnt = src->retry_cnt;
	dst->rnr_retry = src->rnr_retry;
	dst->alt_port_num = src->alt_port_num;
	dst->alt_timeout = src->alt_timeout;
}

/* Fields of the same name in both structs. */
#define PATH_REC_SCALARS(X)                                                                        \
	X(dlid)                                                                                    \
	X(slid) X(raw_traffic) X(flow_label) X(reversible) X(mtu) X(pkey) X(hop_limit)             \
		X(traffic_class) X(numb_path) X(sl) X(mtu_selector) X(rate_selector) X(rate)       \
			X(packet_life_time_selector) X(packet_life_time) X(preference)

EXPORT void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src)
{
	memcpy(dst->dgid.raw, src->dgid, sizeof(dst->dgid.raw));
	memcpy(dst->sgid.raw, src->sgid, sizeof(dst->sgid.raw));
#define X(field) dst->field = src->field;
	PATH_REC_SCALARS(X)
#undef X
}

EXPORT void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src)
{
	memcpy(dst->dgid, src->dgid.raw, sizeof(dst->dgid));
	memcpy(dst->sgid, src->sgid.raw, sizeof(dst->sgid));
#define X(field) dst->field = src->field;
	PATH_REC_SCALARS(X)
#undef X
}

/* ---- private calls for our librdmacm: xroce_cm.h ---- */

_Static_assert((int)XROCE_CM_IPV4 == ASK_IPV4 && (int)XROCE_CM_IPV6 == ASK_IPV6, "ask.h");

EXPORT struct ibv_qp *xroce_create_qp1(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return create_qp1(pd, attr);
}

EXPORT int xroce_cm_place(struct ibv_context *context, uint32_t *first_id, uint32_t *num_ids)
{
	struct port *port;
	int err = context_port(to_vcontext(context), &port);

	if (!err)
		port_cm_place(port, first_id, num_ids);
	return err;
}

/* Returns 0 or EINVAL. A specific address implies its family. */
static int cm_service_convert(const struct xroce_cm_service *in, struct ask_service *out)
{
	static const u8 any[16], mapped[12] = { [10] = 0xff, 0xff };
	const bool is_any = !memcmp(in->address.raw, any, sizeof(any));
	const u32 own = memcmp(in->address.raw, mapped, sizeof(mapped)) ? ASK_IPV6 : ASK_IPV4;

	*out = (struct ask_service){ .id = in->id, .families = is_any ? in->families : own };
	memcpy(out->address, in->address.raw, sizeof(out->address));
	if (is_any)
		return in->families && !(in->families & ~(ASK_IPV4 | ASK_IPV6)) ? 0 : EINVAL;
	return !in->families || in->families == own ? 0 : EINVAL;
}

/* Common part of the four service calls. Returns 0 or a positive errno. */
static int cm_call(struct ibv_context *context, const struct xroce_cm_service *service,
		   int call(struct port *port, const struct ask_service *service))
{
	struct ask_service s;
	struct port *port;
	int err = cm_service_convert(service, &s);

	if (!err)
		err = context_port(to_vcontext(context), &port);
	return err ? err : -call(port, &s);
}

EXPORT int xroce_cm_bind(struct ibv_context *context, const struct xroce_cm_service *service)
{
	return cm_call(context, service, port_bind);
}

EXPORT int xroce_cm_unbind(struct ibv_context *context, const struct xroce_cm_service *service)
{
	return cm_call(context, service, port_unbind);
}

EXPORT int xroce_cm_show(struct ibv_context *context, const struct xroce_cm_service *service)
{
	return cm_call(context, service, port_show_listener);
}

EXPORT int xroce_cm_hide(struct ibv_context *context, const struct xroce_cm_service *service)
{
	return cm_call(context, service, port_hide_listener);
}

EXPORT void xroce_cm_count(struct ibv_context *context, enum xroce_cm_count what)
{
	struct port *port;

	if (context_port(to_vcontext(context), &port))
		return;
	port_count_drop(port, what == XROCE_CM_SILENT ? XROCE_DROP_mad_silent :
							XROCE_DROP_mad_half_open);
}

EXPORT int xroce_device_ifindex(struct ibv_device *device)
{
	return device_is_known(device) ? (int)to_vdevice(device)->nd.ifindex : 0;
}
