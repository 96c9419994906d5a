/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The only caller of the application's allocators. Each memory_take() that returned memory has one
 * memory_give_back(). The transport only borrows the memory (cq_init_in(), rq_init_in(), qp_init);
 * a resize returns the old memory to its caller.
 */
#include <rdma/ib_user_ioctl_verbs.h>

#include "objects.h"

/* The kernel has no driver number for this device. */
static u64 resource_type(enum memory_kind kind)
{
	return (u64)RDMA_DRIVER_UNKNOWN << 32 | kind;
}

int memory_set_callbacks(struct memory_callbacks *m,
			 const struct ibv_parent_domain_init_attr *attr)
{
	*m = (struct memory_callbacks){ 0 };
	if (!(attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS))
		return 0;
	if (!attr->alloc || !attr->free)
		return EINVAL;
	m->alloc = attr->alloc;
	m->free = attr->free;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		m->pd_context = attr->pd_context;
	return 0;
}

int memory_take(struct vpd *pd, enum memory_kind kind, size_t bytes, void **memory)
{
	void *p;

	*memory = NULL;
	if (!pd || !pd->memory.alloc || !bytes)
		return 0;
	p = pd->memory.alloc(&pd->ibv, pd->memory.pd_context, bytes, CACHE_LINE,
			     resource_type(kind));
	if (!p)
		return ENOMEM;
	if (p == IBV_ALLOCATOR_USE_DEFAULT)
		return 0;
	if ((uintptr_t)p % CACHE_LINE) {
		memory_give_back(pd, kind, p);
		return EINVAL;
	}
	*memory = p;
	return 0;
}

void memory_give_back(struct vpd *pd, enum memory_kind kind, void *memory)
{
	if (memory)
		pd->memory.free(&pd->ibv, pd->memory.pd_context, memory, resource_type(kind));
}

/* XRC_RECV QPs have no PD and no queues. */
static struct vpd *domain_of(const struct vqp *vqp)
{
	return vqp->ibv.pd ? to_vpd(vqp->ibv.pd) : NULL;
}

int memory_take_queues(struct vqp *vqp, struct qp_init *init)
{
	const u32 sends = init->max_send_wr, recvs = init->max_recv_wr;
	int err = memory_take(domain_of(vqp), MEMORY_SEND_QUEUE,
			      sends ? sq_bytes(sends, init->max_send_sge, init->max_inline) : 0,
			      &vqp->sq_memory);

	if (!err)
		err = memory_take(domain_of(vqp), MEMORY_RECV_QUEUE,
				  recvs ? rq_bytes(recvs, init->max_recv_sge) : 0,
				  &vqp->rq_memory);
	if (err)
		memory_give_back_queues(vqp);
	init->sq_lent = vqp->sq_memory;
	init->rq_lent = vqp->rq_memory;
	return err;
}

void memory_give_back_queues(struct vqp *vqp)
{
	memory_give_back(domain_of(vqp), MEMORY_SEND_QUEUE, vqp->sq_memory);
	memory_give_back(domain_of(vqp), MEMORY_RECV_QUEUE, vqp->rq_memory);
	vqp->sq_memory = vqp->rq_memory = NULL;
}
