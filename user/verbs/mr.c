/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions. The engine's table holds them by key, so the first region creates the port. L_Key
 * and R_Key are equal, random, and final when ibv_reg_mr() returns.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "../os/thread.h"
#include "objects.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22 /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

/* in <infiniband/verbs.h> since rdma-core 45 */
#define ACCESS_FLUSH_GLOBAL	(1 << 8)
#define ACCESS_FLUSH_PERSISTENT (1 << 9)

#define MR_ACCESS_ENGINE                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND |                   \
	 IBV_ACCESS_ON_DEMAND | ACCESS_FLUSH_GLOBAL)
_Static_assert((int)IBV_ACCESS_REMOTE_ATOMIC == MR_REMOTE_ATOMIC &&
		       (int)IBV_ACCESS_MW_BIND == MR_MW_BIND &&
		       (int)IBV_ACCESS_ZERO_BASED == MR_ZERO_BASED &&
		       (int)IBV_ACCESS_ON_DEMAND == MR_ON_DEMAND &&
		       ACCESS_FLUSH_GLOBAL == MR_FLUSH_GLOBAL,
	       "mr.h");

static struct vlist mrs;

/*
 * The flags of the optional range may be ignored (ibv_reg_mr(3)), and the hint of huge pages too.
 * Any other unknown flag is an error. The device cannot guarantee persistence after power loss:
 * EOPNOTSUPP, as in the kernel.
 */
static int access_check(unsigned int access)
{
	access &= ~(unsigned int)(IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB);
	if (access & ~(unsigned int)(MR_ACCESS_ENGINE | ACCESS_FLUSH_PERSISTENT))
		return EINVAL;
	return access & ACCESS_FLUSH_PERSISTENT ? EOPNOTSUPP : 0;
}

/* ---- on-demand paging ---- */

/*
 * On-demand paging (ibv_reg_mr(3), IBV_ACCESS_ON_DEMAND): regions whose pages need not be present
 * at registration, up to the whole address space, and the advice to fault them in
 * (ibv_advise_mr(3)). The engine accesses the process's own mappings: an access faults a missing
 * page in, and fails on an unmapped one (docs/memory.md). Here are the checks that a paging adapter
 * makes.
 */

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

/* Bytes of a region of this length; for SIZE_MAX, a process's whole address space. */
static u64 odp_bytes(size_t length)
{
	return min_u64(length, ODP_SPACE);
}

/* Checks if this region may page on demand. Returns 0 or a positive errno; touches no page. */
static int odp_check(const void *addr, size_t length, u64 iova, unsigned int access)
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

/* Bits of rdma-core 65: IBV_ODP_SUPPORT_FLUSH, IBV_ODP_SUPPORT_ATOMIC_WRITE. */
enum { ODP_SUPPORT_FLUSH = 1 << 6, ODP_SUPPORT_ATOMIC_WRITE = 1 << 7 };

/* UC has no READ and no atomics, UD only SENDs; XRC receives only from SRQs. */
void odp_query_caps(struct ibv_device_attr_ex *attr)
{
	const u32 datagram = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const u32 rdma = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
			 ODP_SUPPORT_FLUSH | ODP_SUPPORT_ATOMIC_WRITE;

	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = datagram | rdma;
	attr->odp_caps.per_transport_caps.uc_odp_caps = datagram | IBV_ODP_SUPPORT_WRITE;
	attr->odp_caps.per_transport_caps.ud_odp_caps = datagram;
	attr->xrc_odp_caps = (datagram & ~(u32)IBV_ODP_SUPPORT_RECV) | rdma;
}

/* ---- regions ---- */

/* Faults pages in. Returns 0 or a positive errno; EINVAL is ambiguous, see mr_fault_in(). */
static int mr_populate(u64 start, u64 end, int advice)
{
	while (madvise((void *)(uintptr_t)start, end - start, advice))
		if (errno != EINTR && errno != EAGAIN)
			return errno;
	return 0;
}

/*
 * Returns true if all of [start, end) is mapped for reading, and for writing if requested; also if
 * this cannot be determined.
 */
static bool range_is_mapped(u64 start, u64 end, bool for_writing)
{
	unsigned long long from, to;
	const int cancel = thread_disable_cancel();
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512], may[5];
	u64 at = f ? start : end;

	while (at < end && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx %4s", &from, &to, may) != 3 || to <= at)
			continue;
		if (from > at || may[0] != 'r' || (for_writing && may[1] != 'w'))
			break;
		at = to;
	}
	if (f)
		fclose(f);
	thread_restore_cancel(cancel);
	return at >= end;
}

/*
 * Faults the pages in for reading or, with IBV_ACCESS_LOCAL_WRITE, writing, as an adapter that pins
 * them would. Returns 0, EFAULT if a page is not mapped with that access, or EINVAL if the range
 * has no pages. The kernel returns EINVAL for pages without that access, and for mappings that it
 * cannot populate (device memory, any mapping before 5.14): /proc/self/maps decides then.
 */
static int mr_fault_in(void *addr, size_t length, unsigned int access)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE);
	u64 start = (uintptr_t)addr & ~(page - 1);
	u64 end;
	const bool for_writing = access & IBV_ACCESS_LOCAL_WRITE;
	int err;

	if (__builtin_add_overflow((uintptr_t)addr, length, &end) || end > UINT64_MAX - page)
		return EINVAL;
	end = (end + page - 1) & ~(page - 1);
	/* An empty region lies in a page or has no page; the kernel rejects the latter. */
	if (start == end)
		return EINVAL;
	err = mr_populate(start, end, for_writing ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	if (err == EINVAL)
		return range_is_mapped(start, end, for_writing) ? 0 : EFAULT;
	return err == ENOMEM || err == EFAULT ? EFAULT : 0;
}

/* Checks a region before it is entered into the engine's table. */
static int mr_check(void *addr, size_t length, u64 iova, unsigned int access)
{
	int err = access_check(access);

	if (err)
		return err;
	return access & IBV_ACCESS_ON_DEMAND ? odp_check(addr, length, iova, access) :
					       mr_fault_in(addr, length, access);
}

/* Adds a region to the engine's table, which handles zero-based ones. 0 or a positive errno. */
static int mr_enter(struct vpd *pd, enum mr_kind kind, void *addr, size_t length, u64 iova,
		    unsigned int access, struct mr **out)
{
	struct mr_table *table;
	struct port *port;
	int err = context_port(to_vcontext(pd->ibv.context), &port);

	if (err)
		return err;
	port_lock(port);
	table = engine_mr_table(port_engine(port));
	err = kind == MR_NULL ? -mr_add_null(table, pd->number, out) :
				-mr_add(table, pd->number, addr, odp_bytes(length), iova,
					access & MR_ACCESS_ENGINE, out);
	port_unlock(port);
	return err;
}

/* Returns 0, or EBUSY if a window is bound to the region (ibv_alloc_mw(3)). */
static int mr_leave(struct vcontext *ctx, struct mr *mr)
{
	bool busy;

	port_lock(ctx->port);
	busy = mr_has_windows(mr);
	if (!busy)
		mr_remove(engine_mr_table(port_engine(ctx->port)), mr);
	port_unlock(ctx->port);
	return busy ? EBUSY : 0;
}

/* Creates a region of the program's memory, which is checked, of device memory, or MR_NULL. */
static struct ibv_mr *mr_new(struct ibv_pd *ibpd, enum mr_kind kind, void *addr, size_t length,
			     u64 iova, unsigned int access, struct dm *dm)
{
	struct vpd *pd = to_vpd(ibpd);
	struct vmr *vmr;
	int err = object_is_known(pd) ? device_take(ibpd->context, LIMIT_MR) : ENOENT;

	if (err)
		return verb_fail(err);
	vmr = calloc(1, sizeof(*vmr));
	err = !vmr ? ENOMEM : dm || kind == MR_NULL ? 0 : mr_check(addr, length, iova, access);
	if (!err)
		err = mr_enter(pd, kind, addr, length, iova, access, &vmr->mr);
	if (err) {
		device_give(ibpd->context, LIMIT_MR);
		free(vmr);
		return verb_fail(err);
	}
	vmr->access = access;
	vmr->dm = dm;
	vmr->ibv = (struct ibv_mr){ .context = ibpd->context,
				    .pd = ibpd,
				    .addr = dm ? NULL : addr, /* not accessible to the program */
				    .length = length,
				    .handle = new_handle(),
				    .lkey = mr_key(vmr->mr),
				    .rkey = kind == MR_NULL ? 0 : mr_key(vmr->mr) };
	object_know(vmr);
	pd_use(pd);
	context_get(to_vcontext(ibpd->context));
	vlist_add(&mrs, &vmr->listed);
	return &vmr->ibv;
}

static struct ibv_mr *mr_reg(struct ibv_pd *pd, void *addr, size_t length, u64 iova,
			     unsigned int access)
{
	if (verb_fails(pd->context, CALL_ibv_reg_mr))
		return verb_fail(errno);
	return mr_new(pd, MR_REGION, addr, length, iova, access, NULL);
}

struct ibv_mr *mr_reg_dm(struct ibv_pd *pd, struct dm *dm, void *bytes, size_t length,
			 unsigned int access)
{
	return mr_new(pd, MR_REGION, bytes, length, 0, access, dm);
}

struct ibv_mr *mr_reg_mapping(struct ibv_pd *pd, const struct mr_mapping *mapping, void *addr,
			      size_t length, u64 iova, unsigned int access)
{
	struct ibv_mr *mr = mr_reg(pd, addr, length, iova, access);

	if (mr)
		to_vmr(mr)->mapping = *mapping;
	return mr;
}

/* "It has the maximum length and only the lkey is valid, the MR is not exposed as an rkey." */
struct ibv_mr *alloc_null_mr_op(struct ibv_pd *pd)
{
	if (verb_fails(pd->context, CALL_ibv_alloc_null_mr))
		return verb_fail(errno);
	return mr_new(pd, MR_NULL, NULL, SIZE_MAX, 0, 0, NULL);
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return mr_reg(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				      int access)
{
	return mr_reg(pd, addr, length, iova, (unsigned int)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access)
{
	return mr_reg(pd, addr, length, iova, access);
}

static void mr_free(struct vmr *vmr)
{
	struct vcontext *ctx = to_vcontext(vmr->ibv.context);

	vlist_remove(&mrs, &vmr->listed);
	pd_unuse(to_vpd(vmr->ibv.pd));
	if (vmr->dm)
		dm_unuse(vmr->dm);
	if (vmr->dmah)
		users_count(&vmr->dmah->users, -1);
	free(vmr);
	context_put(ctx);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct vmr *vmr = to_vmr(mr);
	int err;

	if (verb_fails(mr->context, CALL_ibv_dereg_mr))
		return verb_report(errno);
	err = object_is_known(vmr) ? mr_leave(to_vcontext(mr->context), vmr->mr) : ENOENT;
	if (err)
		return verb_report(err);
	mr_unmap(&vmr->mapping);
	device_give(mr->context, LIMIT_MR);
	mr_free(vmr);
	return 0;
}

/*
 * Changes a region in place, atomically for the engine; not under a window. The new region is added
 * for a moment under another key, so that the table checks it.
 */
static int mr_change(struct vcontext *ctx, struct mr *mr, u32 pd, void *addr, size_t length,
		      u64 iova, unsigned int access)
{
	struct mr_table *table = engine_mr_table(port_engine(ctx->port));
	struct mr *fresh;
	int err;

	port_lock(ctx->port);
	if (mr_has_windows(mr))
		err = EBUSY;
	else
		err = -mr_add(table, pd, addr, odp_bytes(length), iova, access & MR_ACCESS_ENGINE,
			      &fresh);
	if (!err)
		mr_replace(table, mr, fresh);
	port_unlock(ctx->port);
	return err;
}

/*
 * Only a region of the program's memory can be changed: device memory, dma-bufs and null regions
 * cannot. Arguments without their flag must be absent (rdma-core's rules).
 */
static int rereg_check(const struct vmr *vmr, int flags, struct ibv_pd *new_pd,
		       const void *addr, size_t length, int access)
{
	if (context_gone(vmr->ibv.context))
		return EIO;
	if (!object_is_known(vmr))
		return ENOENT;
	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED ||
	    (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS)) ||
	    (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length)))
		return EINVAL;
	if (vmr->mr->kind != MR_REGION || vmr->dm || vmr->mapping.at)
		return EINVAL;
	if (!new_pd || new_pd->context != vmr->ibv.context)
		return EINVAL;
	return object_is_known(to_vpd(new_pd)) ? 0 : ENOENT;
}

/* Tells all handles of a region its access flags. */
static void mr_say_access(const struct mr *mr, unsigned int access)
{
	pthread_mutex_lock(&lists_lock);
	for (struct vlink *n = mrs.first; n; n = n->next) {
		struct vmr *m = container_of(n, struct vmr, listed);

		if (m->mr == mr)
			m->access = access;
	}
	pthread_mutex_unlock(&lists_lock);
}

/*
 * The region keeps its keys: peers with the R_Key now access the new memory. A failure leaves the
 * old region unchanged: the meaning of IBV_REREG_MR_ERR_INPUT.
 */
EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			int access)
{
	struct vmr *vmr = to_vmr(mr);
	struct ibv_pd *new_pd = flags & IBV_REREG_MR_CHANGE_PD ? pd : mr->pd;
	bool move = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	unsigned int new_access =
		flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned int)access : vmr->access;
	/* of the region: another handle may have changed it, and an imported one has no address */
	void *new_addr = move ? addr : vmr->mr->addr;
	size_t new_length = move ? length : vmr->mr->length;
	/* A region that is no longer zero-based starts at its memory's address. */
	u64 iova =
		move || vmr->access & IBV_ACCESS_ZERO_BASED ? (uintptr_t)new_addr : vmr->mr->iova;
	int err = rereg_check(vmr, flags, new_pd, addr, length, access);

	if (verb_fails(mr->context, CALL_ibv_rereg_mr))
		return IBV_REREG_MR_ERR_INPUT;
	if (!err)
		err = mr_check(new_addr, new_length, iova, new_access);
	if (!err)
		err = mr_change(to_vcontext(mr->context), vmr->mr, to_vpd(new_pd)->number,
				 new_addr, new_length, iova, new_access);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (new_pd != mr->pd) {
		pd_use(to_vpd(new_pd));
		pd_unuse(to_vpd(mr->pd));
	}
	mr_say_access(vmr->mr, new_access);
	mr->pd = new_pd;
	if (move) {
		mr->addr = addr;
		mr->length = length;
	}
	return 0;
}

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct port *port;
	bool found = false;
	struct vmr *vmr;
	int err;

	if (verb_fails(pd->context, CALL_ibv_import_mr))
		return verb_fail(errno);
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return verb_fail(ENOMEM);
	/*
	 * The imported region may outlive the context that registered it, and must keep its port.
	 */
	err = context_port(to_vcontext(pd->context), &port);
	if (err) {
		free(vmr);
		return verb_fail(err);
	}
	pthread_mutex_lock(&lists_lock);
	for (struct vlink *n = mrs.first; n && !found; n = n->next) {
		struct vmr *m = container_of(n, struct vmr, listed);

		if (m->ibv.handle == mr_handle && to_vpd(m->ibv.pd)->number == to_vpd(pd)->number) {
			found = true;
			vmr->mr = m->mr;
			vmr->access = m->access;
			vmr->dm = m->dm;
			vmr->mapping = m->mapping;
			if (vmr->dm)
				dm_use(vmr->dm);
			vmr->ibv = (struct ibv_mr){ .context = pd->context,
						    .pd = pd,
						    .length = m->ibv.length,
						    .handle = mr_handle,
						    .lkey = m->ibv.lkey,
						    .rkey = m->ibv.rkey };
			object_know(vmr);
		}
	}
	pthread_mutex_unlock(&lists_lock);
	if (!found) {
		free(vmr);
		return verb_fail(ENOENT);
	}
	pd_use(to_vpd(pd));
	context_get(to_vcontext(pd->context));
	vlist_add(&mrs, &vmr->listed);
	return &vmr->ibv;
}

/* The region itself remains until it is deregistered. */
EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	mr_free(to_vmr(mr));
}

/* ---- memory windows ---- */

/*
 * Memory windows: creation, and the request that binds one. The engine binds and invalidates in the
 * order of the send queue; this file checks in advance.
 *
 * In the R_Key of a bound type 2 window, the application chooses the low 8 bits; the window fixes
 * the others, whatever the request contains. The resulting key is written to the window, as in
 * irdma, for applications that passed other upper bits.
 */

/* ibv_bind_mw(3) */
#define MW_ACCESS_KNOWN                                                                            \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |             \
	 IBV_ACCESS_ZERO_BASED)

struct ibv_mw *alloc_mw_op(struct ibv_pd *ibpd, enum ibv_mw_type type)
{
	struct vpd *pd = to_vpd(ibpd);
	struct vmw *vmw;
	struct port *port;
	int err;

	if (verb_fails(ibpd->context, CALL_ibv_alloc_mw))
		return verb_fail(errno);
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return verb_fail(EINVAL);
	err = object_is_known(pd) ? device_take(ibpd->context, LIMIT_MW) : ENOENT;
	if (err)
		return verb_fail(err);
	vmw = calloc(1, sizeof(*vmw));
	err = vmw ? context_port(to_vcontext(ibpd->context), &port) : ENOMEM;
	if (!err) {
		port_lock(port);
		err = -mw_add(engine_mr_table(port_engine(port)), pd->number,
			      type == IBV_MW_TYPE_1 ? MR_WINDOW_1 : MR_WINDOW_2, &vmw->mw);
		port_unlock(port);
	}
	if (err) {
		device_give(ibpd->context, LIMIT_MW);
		free(vmw);
		return verb_fail(err);
	}
	vmw->ibv = (struct ibv_mw){ .context = ibpd->context,
				    .pd = ibpd,
				    .rkey = mr_key(vmw->mw),
				    .handle = new_handle(),
				    .type = type };
	object_know(vmw);
	pd_use(pd);
	context_get(to_vcontext(ibpd->context));
	return &vmw->ibv;
}

int dealloc_mw_op(struct ibv_mw *mw)
{
	struct vmw *vmw = container_of(mw, struct vmw, ibv);
	struct vcontext *ctx = to_vcontext(mw->context);

	if (verb_fails(mw->context, CALL_ibv_dealloc_mw))
		return verb_report(errno);
	if (!object_is_known(vmw))
		return verb_report(ENOENT);
	device_give(mw->context, LIMIT_MW);
	port_lock(ctx->port);
	mr_remove(engine_mr_table(port_engine(ctx->port)), vmw->mw);
	port_unlock(ctx->port);
	pd_unuse(to_vpd(mw->pd));
	free(vmw);
	context_put(ctx);
	return 0;
}

/* The window's own bits do not change, so the engine may use it concurrently. */
static u32 mw_next_key(const struct vmw *vmw, u32 rkey)
{
	u32 key = mr_key(vmw->mw);

	return (key & ~MW_KEY_OWN) | (rkey & MW_KEY_OWN);
}

int wqe_set_bind(struct send_wqe *wqe, const struct ibv_mw *mw, u32 rkey,
		 const struct ibv_mw_bind_info *info)
{
	u32 key = mw_next_key(container_of(mw, const struct vmw, ibv), rkey);
	/* A window has remote rights only. Programs pass the region's, including local write. */
	u32 access = info->mw_access_flags & ~(u32)IBV_ACCESS_LOCAL_WRITE;

	if (access & ~(u32)MW_ACCESS_KNOWN || (!info->mr && (info->addr || info->length)))
		return EINVAL;
	wqe->bind.mw_key = wqe->bind.new_key = key;
	wqe->bind.lkey = info->mr ? info->mr->lkey : 0;
	wqe->bind.access = access;
	wqe->bind.addr = info->addr;
	wqe->bind.length = info->length;
	return 0;
}

/* Type 1 only: the header's inline function has checked the type and the region's PD. */
int bind_mw_op(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = { .mw = mw,
			     .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = bind->bind_info },
	};
	struct ibv_send_wr *bad_wr;

	if (verb_fails(qp->context, CALL_ibv_bind_mw))
		return verb_report(errno);
	return post_send_list(to_vqp(qp), &wr, &bad_wr, IBV_MW_TYPE_1);
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

	if (verb_fails(ibpd->context, CALL_ibv_advise_mr))
		return verb_report(errno);
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
