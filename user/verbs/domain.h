/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue memory from the application's allocators: the allocators of a parent domain
 * (ibv_alloc_parent_domain(3)), for the objects created on the domain.
 */
#ifndef VERBS_DOMAIN_H
#define VERBS_DOMAIN_H

#include <infiniband/verbs.h>

#include "../engine/types.h"

/* The lower half of an allocator's resource_type; docs/verbs.md lists the values for users. */
enum memory_kind {
	MEMORY_SEND_QUEUE = 1,
	MEMORY_RECV_QUEUE = 2,
	MEMORY_SRQ = 3,
	MEMORY_CQ = 4,
};

struct qp_init;
struct vpd;
struct vqp;

/* The allocators of a parent domain. */
struct memory_callbacks {
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

/*
 * Asks the domain's allocator for `bytes` aligned to a cache line. *memory is NULL if the
 * transport's own memory is to be used: pd is NULL or has no allocators, bytes is 0, or the
 * allocator chose so. Returns 0; ENOMEM: the allocator failed; EINVAL: its memory is not aligned,
 * and was freed. The caller holds no lock of this library: application code runs.
 */
int memory_take(struct vpd *pd, enum memory_kind kind, size_t bytes, void **memory);
/* Frees memory from memory_take(), by the same rule. NULL: does nothing. */
void memory_give_back(struct vpd *pd, enum memory_kind kind, void *memory);

/*
 * The same for both queues of a QP; does nothing for queues without posting. The memory is kept in
 * vqp and passed through init; the transport uses it until no engine has the QP.
 */
int memory_take_queues(struct vqp *vqp, struct qp_init *init);
void memory_give_back_queues(struct vqp *vqp);

#endif
