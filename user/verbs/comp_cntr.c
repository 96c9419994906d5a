/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion counters (ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3)). The engines add to
 * them: engine/comp_cntr.h. A counter is busy until the QPs that count there are destroyed.
 */
#include "objects.h"

static struct vcomp_cntr *to_vcomp_cntr(struct newer_comp_cntr *cntr)
{
	return container_of(cntr, struct vcomp_cntr, ibv);
}

int query_comp_cntr_caps(struct ibv_context *context, struct newer_comp_cntr_caps *caps,
			 size_t caps_size)
{
	const struct newer_comp_cntr_caps full = { .max_value = UINT64_MAX,
						   .max_counters = VERBS_MAX_COMP_CNTR,
						   .supported_qp_attach_ops =
							   (1u << COUNTED_OPS) - 1 };

	memset(caps, 0, caps_size);
	memcpy(caps, &full, min_u64(caps_size, sizeof(full)));
	return 0;
}

/* Returns 0 or a positive errno. */
static int attr_check(const struct newer_comp_cntr_attr *attr)
{
	if (attr->comp_mask || attr->flags)
		return EINVAL;
	return attr->type <= COMP_CNTR_BYTES ? 0 : ENOTSUP;
}

struct newer_comp_cntr *create_comp_cntr(struct ibv_context *context,
					 struct newer_comp_cntr_attr *attr)
{
	int err = context_gone(context) ? EIO : attr_check(attr);
	struct vcomp_cntr *c;

	if (verb_fails(context, CALL_ibv_create_comp_cntr))
		return verb_fail(errno);
	if (!err)
		err = device_take(context, LIMIT_COMP_CNTR);
	if (err)
		return verb_fail(err);
	c = calloc(1, sizeof(*c));
	if (!c) {
		device_give(context, LIMIT_COMP_CNTR);
		return verb_fail(ENOMEM);
	}
	c->ibv.context = context;
	c->ibv.handle = new_handle();
	c->cntr.counts_bytes = attr->type == COMP_CNTR_BYTES;
	object_know(c);
	context_get(to_vcontext(context));
	return &c->ibv;
}

int destroy_comp_cntr(struct newer_comp_cntr *cntr)
{
	struct vcomp_cntr *c = to_vcomp_cntr(cntr);
	struct vcontext *ctx = to_vcontext(cntr->context);

	if (verb_fails(cntr->context, CALL_ibv_destroy_comp_cntr))
		return verb_report(errno);
	if (!object_is_known(c))
		return verb_report(ENOENT);
	if (users_left(&c->users))
		return verb_report(EBUSY);
	device_give(cntr->context, LIMIT_COMP_CNTR);
	free(c);
	context_put(ctx);
	return 0;
}

/* ---- values ---- */

/* Returns the counter of this public one, or NULL. */
static struct comp_cntr *known_cntr(struct newer_comp_cntr *cntr)
{
	struct vcomp_cntr *c = to_vcomp_cntr(cntr);

	return object_is_known(c) ? &c->cntr : NULL;
}

static int value_set(_Atomic u64 *at, u64 value)
{
	atomic_store_explicit(at, value, memory_order_release);
	return 0;
}

static int value_add(_Atomic u64 *at, u64 amount)
{
	atomic_fetch_add_explicit(at, amount, memory_order_release);
	return 0;
}

static int value_get(_Atomic u64 *at, u64 *value)
{
	/* acquire: pairs with the release in comp_cntr_add() */
	*value = atomic_load_explicit(at, memory_order_acquire);
	return 0;
}

int set_comp_cntr(struct newer_comp_cntr *cntr, uint64_t value)
{
	struct comp_cntr *c = known_cntr(cntr);

	return c ? value_set(&c->done, value) : verb_report(ENOENT);
}

int set_err_comp_cntr(struct newer_comp_cntr *cntr, uint64_t value)
{
	struct comp_cntr *c = known_cntr(cntr);

	return c ? value_set(&c->failed, value) : verb_report(ENOENT);
}

int inc_comp_cntr(struct newer_comp_cntr *cntr, uint64_t amount)
{
	struct comp_cntr *c = known_cntr(cntr);

	return c ? value_add(&c->done, amount) : verb_report(ENOENT);
}

int inc_err_comp_cntr(struct newer_comp_cntr *cntr, uint64_t amount)
{
	struct comp_cntr *c = known_cntr(cntr);

	return c ? value_add(&c->failed, amount) : verb_report(ENOENT);
}

int read_comp_cntr(struct newer_comp_cntr *cntr, uint64_t *value)
{
	struct comp_cntr *c = known_cntr(cntr);

	return c ? value_get(&c->done, value) : verb_report(ENOENT);
}

int read_err_comp_cntr(struct newer_comp_cntr *cntr, uint64_t *value)
{
	struct comp_cntr *c = known_cntr(cntr);

	return c ? value_get(&c->failed, value) : verb_report(ENOENT);
}

/* ---- queue pairs ---- */

/* Returns 0 or a positive errno. The QP of several XRC_RECV handles has no counters. */
static int attach_check(struct vqp *vqp, const struct vcomp_cntr *c,
			const struct newer_comp_cntr_attach *attach)
{
	if (context_gone(vqp->ibv.context))
		return EIO;
	if (!object_is_known(vqp) || !object_is_known(c))
		return ENOENT;
	if (attach->comp_mask || !attach->op_mask || c->ibv.context != vqp->ibv.context)
		return EINVAL;
	return attach->op_mask >> COUNTED_OPS || vqp->ibv.qp_type == IBV_QPT_XRC_RECV ? ENOTSUP : 0;
}

/* Caller holds the port's lock. Returns 0 or a positive errno; then nothing is attached. */
static int attach_locked(struct vqp *vqp, struct vcomp_cntr *c, u32 op_mask)
{
	const enum qp_state state = qp_state(vqp->qp);

	if (state != QPS_RESET && state != QPS_INIT)
		return EINVAL;
	for (u32 op = 0; op < COUNTED_OPS; op++)
		if (op_mask >> op & 1 && vqp->counters[op])
			return EBUSY;
	for (u32 op = 0; op < COUNTED_OPS; op++)
		if (op_mask >> op & 1) {
			vqp->counters[op] = c;
			vqp->qp->counter[op] = &c->cntr;
			users_count(&c->users, 1);
		}
	vqp->qp->is_counted = true;
	return 0;
}

int qp_attach_comp_cntr(struct ibv_qp *qp, struct newer_comp_cntr *cntr,
			struct newer_comp_cntr_attach *attach)
{
	struct vcomp_cntr *c = to_vcomp_cntr(cntr);
	struct vqp *vqp = to_vqp(qp);
	int err = attach_check(vqp, c, attach);

	if (verb_fails(qp->context, CALL_ibv_qp_attach_comp_cntr))
		return verb_report(errno);
	if (err)
		return verb_report(err);
	port_lock(vqp->port);
	err = attach_locked(vqp, c, attach->op_mask);
	port_unlock(vqp->port);
	return verb_report(err);
}

void comp_cntrs_leave(struct vqp *vqp)
{
	for (u32 op = 0; op < COUNTED_OPS; op++)
		if (vqp->counters[op])
			users_count(&vqp->counters[op]->users, -1);
}
