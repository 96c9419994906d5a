/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains, parent domains and thread domains, and the list of this process's PDs for
 * imports of PDs and MRs. A PD is a number that the engine compares; it is busy while any object
 * uses it.
 */
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../os/kernel.h"
#include "objects.h"

/*
 * IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC, in <infiniband/verbs.h> since rdma-core
 * 64: a permission, which only a device that bounces DMA in a confidential guest uses.
 */
#define UNPROTECTED_ALLOC (1 << 2)

static struct vlist pds;

static struct ibv_pd *pd_new(struct ibv_context *context, u32 handle, u32 number)
{
	int err = device_take(context, LIMIT_PD);
	struct vpd *pd = err ? NULL : calloc(1, sizeof(*pd));

	if (!pd) {
		if (!err)
			device_give(context, LIMIT_PD);
		return verb_fail(ENOMEM);
	}
	pd->ibv.context = context;
	pd->ibv.handle = handle;
	object_know(pd);
	pd->number = number;
	context_get(to_vcontext(context));
	return &pd->ibv;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd;
	u32 handle;

	if (verb_fails(context, CALL_ibv_alloc_pd))
		return verb_fail(errno);
	if (context_gone(context))
		return verb_fail(EIO);
	handle = new_handle();
	pd = pd_new(context, handle, handle);
	if (pd)
		vlist_add(&pds, &to_vpd(pd)->listed);
	return pd;
}

static void pd_free(struct vpd *pd)
{
	struct vcontext *ctx = to_vcontext(pd->ibv.context);

	if (pd->parent) {
		pd_unuse(pd->parent);
		if (pd->td)
			users_count(&pd->td->users, -1);
	} else {
		vlist_remove(&pds, &pd->listed);
	}
	device_give(pd->ibv.context, LIMIT_PD);
	free(pd);
	context_put(ctx);
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct vpd *pd = to_vpd(ibpd);

	if (verb_fails(ibpd->context, CALL_ibv_dealloc_pd))
		return verb_report(errno);
	if (!object_is_known(pd))
		return verb_report(ENOENT);
	if (users_left(&pd->users))
		return verb_report(EBUSY);
	pd_free(pd);
	return 0;
}

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	u32 number = 0;
	struct ibv_pd *pd;

	if (verb_fails(context, CALL_ibv_import_pd))
		return verb_fail(errno);
	if (context_gone(context))
		return verb_fail(EIO);
	pthread_mutex_lock(&lists_lock);
	for (struct vlink *n = pds.first; n && !number; n = n->next) {
		struct vpd *p = container_of(n, struct vpd, listed);

		if (p->ibv.handle == pd_handle && !context_gone(p->ibv.context) &&
		    to_vcontext(p->ibv.context)->file_id == to_vcontext(context)->file_id)
			number = p->number;
	}
	pthread_mutex_unlock(&lists_lock);
	if (!number)
		return verb_fail(ENOENT);
	pd = pd_new(context, pd_handle, number);
	if (pd)
		vlist_add(&pds, &to_vpd(pd)->listed);
	return pd;
}

/* The PD itself remains until it is deallocated. */
EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	pd_free(to_vpd(pd));
}

/* ---- the allocators of parent domains ---- */

/*
 * The only caller of the application's allocators. Each memory_take() that returned memory has one
 * memory_give_back(). The transport only borrows the memory (cq_init_in(), rq_init_in(), qp_init);
 * a resize returns the old memory to its caller.
 */

/* The kernel has no driver number for this device. */
static u64 resource_type(enum memory_kind kind)
{
	return (u64)RDMA_DRIVER_UNKNOWN << 32 | kind;
}

/* Takes the allocators of attr, if any. Returns 0, or EINVAL if one of the two is missing. */
static int memory_set_callbacks(struct memory_callbacks *m,
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

/* ---- thread and parent domains ---- */

struct ibv_td *alloc_td_op(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct vtd *td;

	if (verb_fails(context, CALL_ibv_alloc_td))
		return verb_fail(errno);
	if (attr->comp_mask)
		return verb_fail(EINVAL);
	if (context_gone(context))
		return verb_fail(EIO);
	td = calloc(1, sizeof(*td));
	if (!td)
		return verb_fail(ENOMEM);
	td->ibv.context = context;
	context_get(to_vcontext(context));
	return &td->ibv;
}

int dealloc_td_op(struct ibv_td *ibtd)
{
	struct vtd *td = container_of(ibtd, struct vtd, ibv);
	struct vcontext *ctx = to_vcontext(ibtd->context);

	if (verb_fails(ibtd->context, CALL_ibv_dealloc_td))
		return verb_report(errno);
	if (users_left(&td->users))
		return verb_report(EBUSY);
	free(td);
	context_put(ctx);
	return 0;
}

/*
 * Objects on a parent domain with a thread domain are used by one thread at a time and take no
 * locks. Their queues use memory of the domain's allocators. A parent domain created on another one
 * inherits only its PD.
 */
struct ibv_pd *alloc_parent_domain_op(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr)
{
	struct memory_callbacks memory;
	struct ibv_pd *ibpd;
	struct vpd *pd;

	if (verb_fails(context, CALL_ibv_alloc_parent_domain))
		return verb_fail(errno);
	if (attr->comp_mask & ~(u32)(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
				     UNPROTECTED_ALLOC) ||
	    !attr->pd)
		return verb_fail(EINVAL);
	if (attr->pd->context != context || (attr->td && attr->td->context != context))
		return verb_fail(EINVAL);
	if (!object_is_known(to_vpd(attr->pd)))
		return verb_fail(ENOENT);
	if (memory_set_callbacks(&memory, attr))
		return verb_fail(EINVAL);
	if (context_gone(context))
		return verb_fail(EIO);
	/* "completely interchangeable": ibv_import_pd() with its handle finds the underlying PD */
	ibpd = pd_new(context, attr->pd->handle, to_vpd(attr->pd)->number);
	if (!ibpd)
		return NULL;
	pd = to_vpd(ibpd);
	pd->memory = memory;
	pd->parent = to_vpd(attr->pd);
	pd_use(pd->parent);
	if (attr->td) {
		pd->td = container_of(attr->td, struct vtd, ibv);
		users_count(&pd->td->users, 1);
	}
	return ibpd;
}

/* ---- XRC domains ---- */

/*
 * ibv_open_xrcd(3): numbers that the engine compares. All users in this process that
 * open the same inode on the same device share one domain. It exists while any of them has it open,
 * and keeps the inode open.
 */

struct xrc_domain {
	u32 number;
	/* both under lists_lock: handles, and those of them whose file has an open context */
	u32 refs, names;
	/* our descriptor, so that the inode number is not reused; -1 for a private domain */
	int fd;
	dev_t dev;
	ino_t ino;
	const struct vdevice *device; /* NULL in a forked child: the parent's domain */
	struct xrc_domain *next;
};

static struct xrc_domain *domains; /* domains with a file */

u32 xrcd_number(const struct vxrcd *vxrcd)
{
	return vxrcd->domain->number;
}

/* Caller holds lists_lock. */
static struct xrc_domain *domain_find(const struct vdevice *device, const struct stat *st)
{
	for (struct xrc_domain *d = domains; d; d = d->next)
		if (d->device == device && d->dev == st->st_dev && d->ino == st->st_ino)
			return d;
	return NULL;
}

/* fd is -1, or the descriptor to duplicate. Returns 0 or a positive errno. */
static int domain_new(const struct vdevice *device, int fd, const struct stat *st,
		      struct xrc_domain **out)
{
	struct xrc_domain *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return ENOMEM;
	d->number = new_handle();
	d->refs = d->names = 1;
	d->device = device;
	d->fd = -1;
	if (fd >= 0) {
		d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (d->fd < 0) {
			err = errno;
			free(d);
			return err;
		}
		d->dev = st->st_dev;
		d->ino = st->st_ino;
		d->next = domains;
		domains = d;
	}
	*out = d;
	return 0;
}

/*
 * Finds the file's domain and takes a reference. Returns 0 or a positive errno, like the kernel if
 * the domain is missing, or exists despite O_EXCL.
 */
static int domain_of_file(const struct vdevice *device, int fd, int oflags, struct xrc_domain **out)
{
	struct stat st;
	int err = 0;

	if (fstat(fd, &st))
		return errno;
	pthread_mutex_lock(&lists_lock);
	*out = domain_find(device, &st);
	if (!*out) {
		err = oflags & O_CREAT ? domain_new(device, fd, &st, out) : EAGAIN;
	} else if ((oflags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) {
		err = EINVAL;
	} else {
		(*out)->refs++;
		(*out)->names++;
	}
	pthread_mutex_unlock(&lists_lock);
	return err;
}

/* One handle less by which the file leads to the domain: after the last one, it leads to none. */
static void domain_drop_name(struct xrc_domain *d)
{
	struct xrc_domain **at = &domains;
	int fd = -1;

	pthread_mutex_lock(&lists_lock);
	if (!--d->names) {
		while (*at && *at != d)
			at = &(*at)->next;
		if (*at)
			*at = d->next;
		fd = d->fd;
	}
	pthread_mutex_unlock(&lists_lock);
	if (fd >= 0)
		kernel_close(fd);
}

static void domain_put(struct xrc_domain *d)
{
	bool last;

	pthread_mutex_lock(&lists_lock);
	last = !--d->refs;
	pthread_mutex_unlock(&lists_lock);
	if (last)
		free(d);
}

/* A child that opens the file gets a new domain. */
static void xrcd_in_child(struct fork_entry *entry)
{
	container_of(entry, struct vxrcd, forks)->domain->device = NULL;
}

static void xrcd_at_close(struct fork_entry *entry)
{
	domain_drop_name(container_of(entry, struct vxrcd, forks)->domain);
}

struct ibv_xrcd *open_xrcd_op(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const u32 required = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct vcontext *ctx = to_vcontext(context);
	struct vxrcd *vxrcd;
	int err;

	if (verb_fails(context, CALL_ibv_open_xrcd))
		return verb_fail(errno);
	if (attr->comp_mask != required || attr->fd < -1 || attr->oflags & ~(O_CREAT | O_EXCL))
		return verb_fail(EINVAL);
	if (context_gone(context))
		return verb_fail(EIO);
	vxrcd = calloc(1, sizeof(*vxrcd));
	if (!vxrcd)
		return verb_fail(ENOMEM);
	err = attr->fd >= 0 ? domain_of_file(ctx->dev, attr->fd, attr->oflags, &vxrcd->domain) :
			      domain_new(ctx->dev, -1, NULL, &vxrcd->domain);
	if (err) {
		free(vxrcd);
		return verb_fail(err);
	}
	vxrcd->ibv.context = context;
	fork_add_to(ctx, &vxrcd->forks, xrcd_in_child, xrcd_at_close);
	context_get(ctx);
	return &vxrcd->ibv;
}

/* Only handles used by SRQs and QPs are busy, not the domain: other handles may remain in use. */
int close_xrcd_op(struct ibv_xrcd *xrcd)
{
	struct vxrcd *vxrcd = to_vxrcd(xrcd);
	struct vcontext *ctx = to_vcontext(xrcd->context);

	if (verb_fails(xrcd->context, CALL_ibv_close_xrcd))
		return verb_report(errno);
	if (users_left(&vxrcd->users))
		return verb_report(EBUSY);
	fork_remove(&vxrcd->forks);
	if (!atomic_load_explicit(&vxrcd->forks.is_over, memory_order_relaxed))
		domain_drop_name(vxrcd->domain);
	domain_put(vxrcd->domain);
	free(vxrcd);
	context_put(ctx);
	return 0;
}
