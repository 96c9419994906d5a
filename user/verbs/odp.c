/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * On-demand paging (ibv_reg_mr(3), IBV_ACCESS_ON_DEMAND): regions whose pages need not be present
 * at registration, up to the whole address space, and the advice to fault them in
 * (ibv_advise_mr(3)). The engine accesses the process's own mappings: an access faults a missing
 * page in, and fails on an unmapped one (docs/memory.md). This file has the checks that a paging
 * adapter makes.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "objects.h"

/*
 * The end of user addresses on any architecture: of 57 bits of virtual address the kernel has one.
 * Peers may access an implicit region at any address. The CPU may ignore an address's top byte
 * (ARM64's tags), and a fault then does not show which address was used: such addresses are outside
 * the region.
 */
#define ODP_SPACE (1ull << 56)

static bool odp_is_implicit(size_t length)
{
	return length == SIZE_MAX;
}

u64 odp_bytes(size_t length)
{
	return min_u64(length, ODP_SPACE);
}

int odp_check(const void *addr, size_t length, u64 iova, unsigned int access)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE);
	u64 start = (uintptr_t)addr, end;

	/* "applicable with IBV_ACCESS_ON_DEMAND in explicit mode only" */
	if (odp_is_implicit(length))
		return start || iova || access & IBV_ACCESS_HUGETLB ? EINVAL : 0;
	if (__builtin_add_overflow(start, length, &end) || (!length && start % page == 0))
		return EINVAL;
	return end > ODP_SPACE ? EFAULT : 0;
}

/* UC has no READ and no atomics, UD only SENDs; XRC receives only from SRQs. */
void odp_query_caps(struct ibv_device_attr_ex *attr)
{
	const u32 datagram = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const u32 rdma = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = datagram | rdma;
	attr->odp_caps.per_transport_caps.uc_odp_caps = datagram | IBV_ODP_SUPPORT_WRITE;
	attr->odp_caps.per_transport_caps.ud_odp_caps = datagram;
	attr->xrc_odp_caps = (datagram & ~(u32)IBV_ODP_SUPPORT_RECV) | rdma;
}

/* ---- advice ---- */

/*
 * Translates an element to its bytes. The errno values are from ibv_advise_mr(3), which has two for
 * keys: EFAULT if no region has it, ENOENT if only its upper 24 bits match a region.
 */
static int advise_translate(const struct mr_table *t, u32 pd, const struct ibv_sge *sge,
			    bool for_writing, u8 **at)
{
	const struct mr *mr = mr_find_object(t, sge->lkey);

	if (!mr)
		return EFAULT;
	if (mr_is_window(mr))
		return EINVAL;
	if (mr_key(mr) != sge->lkey)
		return ENOENT;
	if (mr->pd != pd)
		return EPERM;
	if (!(mr->access & MR_ON_DEMAND))
		return EINVAL;
	if (for_writing && !(mr->access & MR_LOCAL_WRITE))
		return EPERM;
	*at = mr_translate(t, pd, sge->lkey, sge->addr, sge->length, 0);
	return *at ? 0 : EFAULT;
}

/* Finds the bytes of the last element. Returns 0, or a positive errno of any element. */
static int advise_find(struct port *port, u32 pd, const struct ibv_sge *sge, u32 num_sge,
		       bool for_writing, u8 **at)
{
	int err = 0;

	port_lock(port);
	for (u32 i = 0; i < num_sge && !err; i++)
		err = advise_translate(engine_mr_table(port_engine(port)), pd, &sge[i], for_writing,
				       at);
	port_unlock(port);
	return err;
}

/* Checks that all pages are mapped, without touching them. Returns 0 or EFAULT. */
static int pages_exist(const u8 *at, size_t length)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t before = (uintptr_t)at % page;

	return msync((void *)(at - before), before + length, MS_ASYNC) && errno == ENOMEM ? EFAULT :
											    0;
}

static int advise_fetch(enum ibv_advise_mr_advice advice, u8 *at, size_t length)
{
	if (!length)
		return 0;
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return pages_exist(at, length);
	return mr_fault_in(at, length,
			   advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ? IBV_ACCESS_LOCAL_WRITE :
									   0);
}

static int advise_check(struct vpd *pd, enum ibv_advise_mr_advice advice, u32 flags,
			const struct ibv_sge *sg_list, u32 num_sge)
{
	if (context_gone(pd->ibv.context))
		return EIO;
	if (!object_is_known(pd) || flags & ~(u32)IBV_ADVISE_MR_FLAG_FLUSH || !sg_list || !num_sge)
		return EINVAL;
	switch (advice) {
	case IBV_ADVISE_MR_ADVICE_PREFETCH:
	case IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE:
	case IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		return 0;
	}
	return ENOTSUP;
}

/*
 * Fetches nothing unless all elements are valid. On return the pages are present, whatever the
 * flag.
 */
int advise_mr_op(struct ibv_pd *ibpd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg_list, uint32_t num_sge)
{
	const bool for_writing = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct vpd *pd = to_vpd(ibpd);
	struct port *port;
	u8 *at;
	int err = advise_check(pd, advice, flags, sg_list, num_sge);

	if (!err)
		err = context_port(to_vcontext(ibpd->context), &port);
	if (!err)
		err = advise_find(port, pd->number, sg_list, num_sge, for_writing, &at);
	for (u32 i = 0; i < num_sge && !err; i++) {
		err = advise_find(port, pd->number, &sg_list[i], 1, for_writing, &at);
		if (!err)
			err = advise_fetch(advice, at, sg_list[i].length);
	}
	return verb_report(err);
}
