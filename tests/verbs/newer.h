/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verbs of rdma-core 59 to 65 as a program compiled with the header of 65 has them: layouts,
 * values and version nodes. The library of the build machine may lack them, so each is a pointer
 * that dlvsym(3) sets.
 */
#ifndef TESTS_VERBS_NEWER_H
#define TESTS_VERBS_NEWER_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

struct dmah {
	struct ibv_context *context;
};

struct dmah_attr {
	uint32_t comp_mask; /* 1: cpu_id, 2: ph, 4: tph_mem_type */
	uint32_t cpu_id;
	uint8_t ph;
	uint8_t tph_mem_type;
};

enum { WITH_IOVA = 1, WITH_ADDR = 2, WITH_FD = 4, WITH_OFFSET = 8, WITH_DMAH = 16, WITH_BUF = 32 };

struct mr_attr {
	size_t length;
	int access;
	uint64_t comp_mask; /* WITH_* */
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	struct dmah *dmah;
	struct ibv_buf *buf;
};

struct cntr {
	struct ibv_context *context;
	uint32_t handle;
};

struct cntr_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t ops;
};

struct cntr_attr {
	uint32_t comp_mask;
	uint32_t type; /* 0: work requests, 1: bytes */
	uint32_t flags;
};

enum {
	OP_SEND = 1, OP_RECV = 2, OP_READ = 4, OP_REMOTE_READ = 8, OP_WRITE = 16,
	OP_REMOTE_WRITE = 32, ALL_OPS = 63
};

struct cntr_attach {
	uint32_t comp_mask;
	uint32_t op_mask; /* OP_* */
};

/* The members of struct verbs_context before query_port. */
struct first_ops {
	void (*free_buf)(struct ibv_buf *buf);
	void *(*alloc_buf)(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
	int (*dm_export_dmabuf_fd)(struct ibv_dm *dm);
	struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *pd, struct mr_attr *attr);
	int (*dealloc_dmah)(struct dmah *dmah);
	struct dmah *(*alloc_dmah)(struct ibv_context *context, struct dmah_attr *attr);
};

/* X(node, symbol, result, name, arguments): `name` points to `symbol` of IBVERBS_`node`. */
#define NEWER_VERBS(X)                                                                             \
	X(1.15, ibv_alloc_dmah, struct dmah *, v_alloc_dmah,                                       \
	  (struct ibv_context *, struct dmah_attr *))                                              \
	X(1.15, ibv_dealloc_dmah, int, v_dealloc_dmah, (struct dmah *))                            \
	X(1.15, ibv_reg_mr_ex, struct ibv_mr *, v_reg_mr_ex, (struct ibv_pd *, struct mr_attr *))  \
	X(1.16, ibv_dm_export_dmabuf_fd, int, v_dm_export_dmabuf_fd, (struct ibv_dm *))            \
	X(1.16, ibv_query_port_speed, int, v_query_port_speed,                                     \
	  (struct ibv_context *, uint32_t, uint64_t *))                                            \
	X(1.17, ibv_alloc_buf, void *, v_alloc_buf, (struct ibv_pd *, size_t, struct ibv_buf **))  \
	X(1.17, ibv_free_buf, void, v_free_buf, (struct ibv_buf *))                                \
	X(1.17, ibv_reg_buf_mr, struct ibv_mr *, v_reg_buf_mr,                                     \
	  (struct ibv_pd *, struct ibv_buf *, void *, size_t, int))                                \
	X(1.18, ibv_export_buf_dmabuf_fd, int, v_export_buf_dmabuf_fd, (struct ibv_buf *))         \
	X(1.18, _ibv_query_comp_cntr_caps, int, v_query_comp_cntr_caps,                            \
	  (struct ibv_context *, struct cntr_caps *, size_t))                                      \
	X(1.18, ibv_create_comp_cntr, struct cntr *, v_create_comp_cntr,                           \
	  (struct ibv_context *, struct cntr_attr *))                                              \
	X(1.18, ibv_destroy_comp_cntr, int, v_destroy_comp_cntr, (struct cntr *))                  \
	X(1.18, ibv_set_comp_cntr, int, v_set_comp_cntr, (struct cntr *, uint64_t))                \
	X(1.18, ibv_set_err_comp_cntr, int, v_set_err_comp_cntr, (struct cntr *, uint64_t))        \
	X(1.18, ibv_inc_comp_cntr, int, v_inc_comp_cntr, (struct cntr *, uint64_t))                \
	X(1.18, ibv_inc_err_comp_cntr, int, v_inc_err_comp_cntr, (struct cntr *, uint64_t))        \
	X(1.18, ibv_read_comp_cntr, int, v_read_comp_cntr, (struct cntr *, uint64_t *))            \
	X(1.18, ibv_read_err_comp_cntr, int, v_read_err_comp_cntr, (struct cntr *, uint64_t *))    \
	X(1.18, ibv_qp_attach_comp_cntr, int, v_qp_attach_comp_cntr,                               \
	  (struct ibv_qp *, struct cntr *, struct cntr_attach *))

#define X(node, symbol, result, name, arguments) extern result(*name) arguments;
NEWER_VERBS(X)
#undef X

/* The first symbol that the library lacks in its node, or NULL. */
const char *newer_missing(void);

#endif
