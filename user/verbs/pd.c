/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains, parent domains and thread domains, and the list of this process's PDs for
 * imports of PDs and MRs. A PD is a number that the engine compares; it is busy while any object
 * uses it.
 */
#include "objects.h"

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
	u32 handle = new_handle();
	struct ibv_pd *pd =
		context_gone(context) ? verb_fail(EIO) : pd_new(context, handle, handle);

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

/* ---- thread and parent domains ---- */

struct ibv_td *alloc_td_op(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct vtd *td;

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

	if (attr->comp_mask & ~(u32)(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) ||
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
