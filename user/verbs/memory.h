/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of queues that the application's allocators give: those of a parent domain
 * (ibv_alloc_parent_domain(3)), for the objects that are made on it.
 */
#ifndef VERBS_MEMORY_H
#define VERBS_MEMORY_H

#include <infiniband/verbs.h>

#include "../engine/types.h"

/* The lower half of an allocator's resource_type; docs/verbs.md names them to users. */
enum memory_kind {
	MEMORY_SEND_QUEUE = 1,
	MEMORY_RECV_QUEUE = 2,
	MEMORY_SRQ = 3,
	MEMORY_CQ = 4,
};

struct qp_init;
struct vpd;
struct vqp;

/* A parent domain's. */
struct memory_callbacks {
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

/*
 * Take the allocators of attr, if it has any, or none. Returns 0 or EINVAL: one of the two is
 * missing.
 */
int memory_set_callbacks(struct memory_callbacks *m,
			 const struct ibv_parent_domain_init_attr *attr);

/*
 * Ask the domain's allocator for bytes, on a line of cache. *memory is NULL where the transport's
 * own is to be used: pd is NULL or without allocators, bytes is 0, or the allocator said so.
 * Returns 0; ENOMEM: the allocator has none; EINVAL: it is not aligned, and was given back.
 * No lock of this library's may be held: the application's code runs.
 */
int memory_take(struct vpd *pd, enum memory_kind kind, size_t bytes, void **memory);
/* Give back what memory_take() gave, by the same rule. NULL: nothing. */
void memory_give_back(struct vpd *pd, enum memory_kind kind, void *memory);

/*
 * The same for both queues of a QP; for one that nothing can be posted to, nothing. What is given
 * is kept in vqp and lent by init until no engine has the QP any more.
 */
int memory_take_queues(struct vqp *vqp, struct qp_init *init);
void memory_give_back_queues(struct vqp *vqp);

#endif
