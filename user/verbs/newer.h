/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Verbs that <infiniband/verbs.h> lacks in rdma-core 33: structs, values and functions, for builds
 * against any header. The types have names of our own and each function its exported name by an
 * assembler label, so this header is also valid beside a newer <infiniband/verbs.h>. newer.c
 * compares the layouts where that header has the structs.
 */
#ifndef VERBS_NEWER_H
#define VERBS_NEWER_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#define NEWER(symbol) __asm__(symbol) __attribute__((visibility("default")))

/* ---- rdma-core 34 to 44 ---- */

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access);
struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle);
void ibv_unimport_dm(struct ibv_dm *dm);
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

#define FORK_UNNEEDED 2 /* enum ibv_fork_status */
int is_fork_initialized(void) NEWER("ibv_is_fork_initialized");

/* struct ibv_dm, whose last member was padding. */
struct newer_dm {
	struct ibv_context *context;
	int (*memcpy_to_dm)(struct ibv_dm *dm, uint64_t dm_offset, const void *host_addr,
			    size_t length);
	int (*memcpy_from_dm)(void *host_addr, struct ibv_dm *dm, uint64_t dm_offset,
			      size_t length);
	uint32_t comp_mask;
	uint32_t handle;
};
_Static_assert(sizeof(struct newer_dm) == sizeof(struct ibv_dm), "struct ibv_dm");
#define DM_MASK_HANDLE (1 << 0) /* of comp_mask */

/* ---- DMA handles: hints for the PCIe transactions of a region ---- */

struct newer_dmah {
	struct ibv_context *context;
};

enum { DMAH_CPU_ID = 1 << 0, DMAH_PH = 1 << 1, DMAH_MEM_TYPE = 1 << 2 };
enum { DMAH_VOLATILE, DMAH_PERSISTENT }; /* tph_mem_type */
#define DMAH_PH_MAX 3 /* two bits in a PCIe header */

struct newer_dmah_attr {
	uint32_t comp_mask; /* DMAH_* */
	uint32_t cpu_id;
	uint8_t ph;
	uint8_t tph_mem_type;
};

struct newer_dmah *alloc_dmah(struct ibv_context *context, struct newer_dmah_attr *attr)
	NEWER("ibv_alloc_dmah");
int dealloc_dmah(struct newer_dmah *dmah) NEWER("ibv_dealloc_dmah");

/* ---- buffers and regions ---- */

struct ibv_buf; /* opaque for programs */

enum {
	REG_MR_IOVA = 1 << 0,
	REG_MR_ADDR = 1 << 1,
	REG_MR_FD = 1 << 2,
	REG_MR_FD_OFFSET = 1 << 3,
	REG_MR_DMAH = 1 << 4,
	REG_MR_BUF = 1 << 5,
};

struct newer_mr_attr {
	size_t length;
	int access;
	uint64_t comp_mask; /* REG_MR_*: the valid fields below */
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	struct newer_dmah *dmah;
	struct ibv_buf *buf; /* programs of 59 to 63 lack this field and its bit */
};

struct ibv_mr *reg_mr_ex(struct ibv_pd *pd, struct newer_mr_attr *attr) NEWER("ibv_reg_mr_ex");
void *alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf) NEWER("ibv_alloc_buf");
void free_buf(struct ibv_buf *buf) NEWER("ibv_free_buf");
struct ibv_mr *reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			  int access) NEWER("ibv_reg_buf_mr");
int export_buf_dmabuf_fd(struct ibv_buf *buf) NEWER("ibv_export_buf_dmabuf_fd");
int dm_export_dmabuf_fd(struct ibv_dm *dm) NEWER("ibv_dm_export_dmabuf_fd");

/* ---- ports ---- */

/* Units of *port_speed: 100 Mbit/s. */
int query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed)
	NEWER("ibv_query_port_speed");

/* ---- completion counters ---- */

struct newer_comp_cntr {
	struct ibv_context *context;
	uint32_t handle;
};

struct newer_comp_cntr_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t supported_qp_attach_ops; /* bits 1 << enum completion_op */
};

enum { COMP_CNTR_WRS, COMP_CNTR_BYTES }; /* type */

struct newer_comp_cntr_attr {
	uint32_t comp_mask; /* 0 */
	uint32_t type;
	uint32_t flags; /* 0 */
};

struct newer_comp_cntr_attach {
	uint32_t comp_mask; /* 0 */
	uint32_t op_mask;   /* bits 1 << enum completion_op */
};

int query_comp_cntr_caps(struct ibv_context *context, struct newer_comp_cntr_caps *caps,
			 size_t caps_size) NEWER("_ibv_query_comp_cntr_caps");
struct newer_comp_cntr *create_comp_cntr(struct ibv_context *context,
					 struct newer_comp_cntr_attr *attr)
	NEWER("ibv_create_comp_cntr");
int destroy_comp_cntr(struct newer_comp_cntr *cntr) NEWER("ibv_destroy_comp_cntr");
int set_comp_cntr(struct newer_comp_cntr *cntr, uint64_t value) NEWER("ibv_set_comp_cntr");
int set_err_comp_cntr(struct newer_comp_cntr *cntr, uint64_t value)
	NEWER("ibv_set_err_comp_cntr");
int inc_comp_cntr(struct newer_comp_cntr *cntr, uint64_t amount) NEWER("ibv_inc_comp_cntr");
int inc_err_comp_cntr(struct newer_comp_cntr *cntr, uint64_t amount)
	NEWER("ibv_inc_err_comp_cntr");
int read_comp_cntr(struct newer_comp_cntr *cntr, uint64_t *value) NEWER("ibv_read_comp_cntr");
int read_err_comp_cntr(struct newer_comp_cntr *cntr, uint64_t *value)
	NEWER("ibv_read_err_comp_cntr");
int qp_attach_comp_cntr(struct ibv_qp *qp, struct newer_comp_cntr *cntr,
			struct newer_comp_cntr_attach *attach) NEWER("ibv_qp_attach_comp_cntr");

/* ---- the context's table ---- */

/*
 * The members of struct verbs_context that newer headers have directly before `query_port`, the
 * first member of rdma-core 44. A header's inline functions find a member by its distance from the
 * end of the struct.
 */
struct newer_ops {
	void (*free_buf)(struct ibv_buf *buf);
	void *(*alloc_buf)(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
	int (*dm_export_dmabuf_fd)(struct ibv_dm *dm);
	struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *pd, struct newer_mr_attr *attr);
	int (*dealloc_dmah)(struct newer_dmah *dmah);
	struct newer_dmah *(*alloc_dmah)(struct ibv_context *context,
					 struct newer_dmah_attr *attr);
};

#endif
