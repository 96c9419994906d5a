/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work queues and indirection tables: ibv_create_wq(3), ibv_modify_wq(3),
 * ibv_create_rwq_ind_table(3), and for ibv_create_qp_ex(3) how a raw packet QP spreads its frames
 * over them. Posting is in post.c. The first work queue creates the port.
 */
#include "objects.h"

_Static_assert((int)IBV_WQS_RESET == WQS_RESET && (int)IBV_WQS_RDY == WQS_RDY &&
		       (int)IBV_WQS_ERR == WQS_ERR &&
		       (int)IBV_RX_HASH_SRC_IPV4 == RSS_SRC_IPV4 &&
		       (int)IBV_RX_HASH_DST_PORT_UDP == RSS_DST_UDP,
	       "raw.h takes its values from verbs.h");

/* The header's flags of work queues, none of which is supported, and its hash fields. */
#define WQ_FLAGS_KNOWN	(IBV_WQ_FLAGS_RESERVED - 1u)
#define HASH_KNOWN	((u64)(RSS_FIELDS | IBV_RX_HASH_IPSEC_SPI) | IBV_RX_HASH_INNER)

/* ---- work queues ---- */

/* Returns 0 or a positive errno. */
static int flags_check(u32 flags)
{
	return !flags ? 0 : flags & ~WQ_FLAGS_KNOWN ? EINVAL : EOPNOTSUPP;
}

static int wq_init_check(const struct ibv_context *context, const struct ibv_wq_init_attr *attr)
{
	if (attr->comp_mask >= IBV_WQ_INIT_ATTR_RESERVED || attr->wq_type != IBV_WQT_RQ ||
	    !attr->max_wr || attr->max_wr > QP_MAX_WR || attr->max_sge > RQ_MAX_SGE)
		return EINVAL;
	if (!attr->pd || attr->pd->context != context || !attr->cq || attr->cq->context != context)
		return EINVAL;
	if (!object_is_known(to_vpd(attr->pd)) || !object_is_known(to_vcq(attr->cq)))
		return ENOENT;
	return attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? flags_check(attr->create_flags) : 0;
}

/* Creates the engine's part. Returns 0 or a positive errno. */
static int wq_enter(struct vwq *vwq, const struct ibv_wq_init_attr *attr)
{
	struct qp_init init = {
		.transport = XROCE_RAW,
		.is_wq = true,
		.max_recv_wr = attr->max_wr,
		.max_recv_sge = attr->max_sge,
		.recv_cq = &to_vcq(attr->cq)->cq,
		.pd = to_vpd(attr->pd)->number,
		.owner = vwq,
	};
	int err = context_port(to_vcontext(vwq->ibv.context), &vwq->port), may;

	if (!err)
		err = cq_join(to_vcq(attr->cq), vwq->port);
	if (!err)
		err = memory_take(to_vpd(attr->pd), MEMORY_RECV_QUEUE,
				  rq_bytes(attr->max_wr, attr->max_sge), &vwq->memory);
	if (err)
		return err;
	init.rq_lent = vwq->memory;
	err = limit_errno(port_create_qp(vwq->port, port_engine(vwq->port), &init, &vwq->qp));
	/* a process without the privilege has a shared port. Slow: not asked for each queue */
	may = err == EOPNOTSUPP ? -netdev_may_send_raw() : 0;
	err = may ? may : err;
	if (err)
		memory_give_back(to_vpd(attr->pd), MEMORY_RECV_QUEUE, vwq->memory);
	return err;
}

static void wq_in_child(struct fork_entry *entry)
{
	struct vwq *vwq = container_of(entry, struct vwq, forks);

	pthread_mutex_init(&vwq->ibv.mutex, NULL);
	pthread_cond_init(&vwq->ibv.cond, NULL);
	spin_unlock(&vwq->lock.spin);
	qp_abandon(vwq->qp);
}

/* Takes the consumer's side of the CQ and the producer's side: RESET empties both. */
static int wq_move(struct vwq *vwq, enum wq_state to)
{
	struct vcq *vcq = to_vcq(vwq->ibv.cq);
	int err;

	cq_lock_two(vcq, NULL);
	vlock_take(&vwq->lock);
	port_lock(vwq->port);
	err = -wq_modify(port_engine(vwq->port), vwq->qp, to, clock_now_ns());
	if (!err)
		shards_steer(port_shards(vwq->port), vwq->qp);
	port_unlock(vwq->port);
	vlock_drop(&vwq->lock);
	cq_unlock_two(vcq, NULL);
	return err;
}

static void wq_at_close(struct fork_entry *entry)
{
	struct vwq *vwq = container_of(entry, struct vwq, forks);

	if (!context_gone(vwq->id.context))
		wq_move(vwq, WQS_RESET);
}

/* The header's inline function initializes the mutex and the rest of the public part. */
struct ibv_wq *create_wq_op(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct vwq *vwq;
	int err = wq_init_check(context, attr);

	if (verb_fails(context, CALL_ibv_create_wq))
		return verb_fail(errno);
	if (err)
		return verb_fail(err);
	vwq = new_object(sizeof(*vwq));
	if (!vwq)
		return verb_fail(ENOMEM);
	vwq->ibv.context = context;
	vwq->ibv.pd = attr->pd;
	vwq->ibv.cq = attr->cq;
	vwq->ibv.wq_type = attr->wq_type;
	vwq->ibv.state = IBV_WQS_RESET;
	vwq->ibv.post_recv = post_wq_recv_op;
	vwq->ibv.handle = new_handle();
	object_know(vwq);
	err = wq_enter(vwq, attr);
	if (err) {
		free(vwq);
		return verb_fail(err);
	}
	vwq->ibv.wq_num = vwq->qp->qpn;
	vwq->lock.off = to_vpd(attr->pd)->td;
	attr->max_wr = vwq->qp->rq.max_wr;
	attr->max_sge = vwq->qp->rq.max_sge;
	fork_add_to(to_vcontext(context), &vwq->forks, wq_in_child, wq_at_close);
	pd_use(to_vpd(attr->pd));
	users_count(&to_vcq(attr->cq)->users, 1);
	context_get(to_vcontext(context));
	return &vwq->ibv;
}

static int modify_wq(struct vwq *vwq, const struct ibv_wq_attr *attr)
{
	int err;

	if (!object_is_known(vwq))
		return ENOENT;
	if (context_gone(vwq->ibv.context))
		return EIO;
	if (!attr->attr_mask || attr->attr_mask >= IBV_WQ_ATTR_RESERVED)
		return EINVAL;
	err = attr->attr_mask & IBV_WQ_ATTR_FLAGS ? flags_check(attr->flags_mask) : 0;
	if (err)
		return err;
	if (attr->attr_mask & IBV_WQ_ATTR_CURR_STATE &&
	    (u32)attr->curr_wq_state != (u32)wq_state(vwq->qp))
		return EINVAL;
	if (attr->attr_mask & IBV_WQ_ATTR_STATE)
		err = wq_move(vwq, (enum wq_state)attr->wq_state);
	/* the engine may have moved it to ERR */
	vwq->ibv.state = (enum ibv_wq_state)wq_state(vwq->qp);
	return err;
}

int modify_wq_op(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	if (verb_fails(wq->context, CALL_ibv_modify_wq))
		return verb_report(errno);
	return verb_report(modify_wq(to_vwq(wq), attr));
}

int destroy_wq_op(struct ibv_wq *wq)
{
	struct vwq *vwq = to_vwq(wq);
	struct vcontext *ctx = to_vcontext(wq->context);
	struct vcq *vcq = to_vcq(wq->cq);
	struct vpd *vpd = to_vpd(wq->pd);
	u32 number;

	if (verb_fails(wq->context, CALL_ibv_destroy_wq))
		return verb_report(errno);
	if (!object_is_known(vwq))
		return verb_report(ENOENT);
	if (users_left(&vwq->users))
		return verb_report(EBUSY);
	fork_remove(&vwq->forks);
	number = vwq->qp->qpn;
	cq_lock_two(vcq, NULL);
	port_lock(vwq->port);
	port_destroy_qp(vwq->port, vwq->qp);
	port_unlock(vwq->port);
	cq_unlock_two(vcq, NULL);
	port_release(vwq->port, number);
	async_forget(ctx, wq, &vwq->async_delivered, &wq->mutex, &wq->cond, &wq->events_completed);
	memory_give_back(vpd, MEMORY_RECV_QUEUE, vwq->memory);
	users_count(&vcq->users, -1);
	pd_unuse(vpd);
	pthread_cond_destroy(&wq->cond);
	pthread_mutex_destroy(&wq->mutex);
	free(vwq);
	context_put(ctx);
	return 0;
}

/* ---- indirection tables ---- */

static bool table_is_known(const struct vtable *table)
{
	return table->id.context == table->ibv.context &&
	       table->id.handle == (u32)table->ibv.ind_tbl_handle;
}

static void table_count_users(const struct vtable *table, int by)
{
	for (u32 i = 0; i < table->num; i++)
		users_count(&table->wq[i]->users, by);
}

struct ibv_rwq_ind_table *create_rwq_ind_table_op(struct ibv_context *context,
						  struct ibv_rwq_ind_table_init_attr *attr)
{
	struct vtable *table;
	u32 num;
	int err;

	if (verb_fails(context, CALL_ibv_create_rwq_ind_table))
		return verb_fail(errno);
	if (attr->comp_mask >= IBV_CREATE_IND_TABLE_RESERVED || attr->log_ind_tbl_size >= 32 ||
	    1u << attr->log_ind_tbl_size > RSS_TABLE_MAX)
		return verb_fail(EINVAL);
	num = 1u << attr->log_ind_tbl_size;
	for (u32 i = 0; i < num; i++) {
		const struct ibv_wq *wq = attr->ind_tbl[i];

		if (!wq || wq->context != context || wq->wq_type != IBV_WQT_RQ)
			return verb_fail(EINVAL);
		if (!object_is_known(to_vwq((struct ibv_wq *)wq)))
			return verb_fail(ENOENT);
	}
	if (context_gone(context))
		return verb_fail(EIO);
	err = device_take(context, LIMIT_TABLE);
	if (err)
		return verb_fail(err);
	table = calloc(1, sizeof(*table) + num * sizeof(table->wq[0]));
	if (!table) {
		device_give(context, LIMIT_TABLE);
		return verb_fail(ENOMEM);
	}
	table->num = num;
	for (u32 i = 0; i < num; i++)
		table->wq[i] = to_vwq(attr->ind_tbl[i]);
	table->ibv.context = context;
	table->ibv.ind_tbl_handle = (int)new_handle();
	table->ibv.ind_tbl_num = table->ibv.ind_tbl_handle;
	table->id = (struct vid){ context, (u32)table->ibv.ind_tbl_handle };
	table_count_users(table, 1);
	context_get(to_vcontext(context));
	return &table->ibv;
}

int destroy_rwq_ind_table_op(struct ibv_rwq_ind_table *ibv)
{
	struct vtable *table = to_vtable(ibv);
	struct vcontext *ctx = to_vcontext(ibv->context);

	if (verb_fails(ibv->context, CALL_ibv_destroy_rwq_ind_table))
		return verb_report(errno);
	if (!table_is_known(table))
		return verb_report(ENOENT);
	if (users_left(&table->users))
		return verb_report(EBUSY);
	table_count_users(table, -1);
	device_give(ibv->context, LIMIT_TABLE);
	free(table);
	context_put(ctx);
	return 0;
}

/* ---- QPs ---- */

/*
 * As in the kernel, the QP has no receive queue; QPs that also send are not supported. Returns 0 or
 * a positive errno.
 */
static int hash_check(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	const u32 both = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	const struct ibv_rx_hash_conf *conf = &attr->rx_hash_conf;

	if (attr->qp_type != IBV_QPT_RAW_PACKET)
		return EOPNOTSUPP;
	if ((attr->comp_mask & both) != both || !attr->rwq_ind_tbl ||
	    attr->rwq_ind_tbl->context != context || attr->srq || attr->cap.max_recv_wr ||
	    attr->cap.max_recv_sge || attr->cap.max_send_wr)
		return EINVAL;
	if (!table_is_known(to_vtable(attr->rwq_ind_tbl)))
		return ENOENT;
	if (conf->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ)
		return EOPNOTSUPP;
	if (conf->rx_hash_key_len != RSS_KEY_BYTES || !conf->rx_hash_key ||
	    conf->rx_hash_fields_mask & ~HASH_KNOWN)
		return EINVAL;
	if (conf->rx_hash_fields_mask & ~(u64)RSS_FIELDS)
		return EOPNOTSUPP;
	/*
	 * without hash fields, a table of one selects its work queue; a larger table is a mistake
	 */
	return conf->rx_hash_fields_mask || to_vtable(attr->rwq_ind_tbl)->num == 1 ? 0 : EINVAL;
}

int table_make_rss(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr,
		   struct rss **rss)
{
	const struct vtable *table;
	struct qp **wq;
	int err = hash_check(context, attr);

	if (err)
		return err;
	table = to_vtable(attr->rwq_ind_tbl);
	wq = calloc(table->num, sizeof(*wq));
	if (!wq)
		return ENOMEM;
	for (u32 i = 0; i < table->num; i++)
		wq[i] = table->wq[i]->qp;
	err = -rss_create(attr->rx_hash_conf.rx_hash_key,
			  (u32)attr->rx_hash_conf.rx_hash_fields_mask, wq, table->num, rss);
	free(wq);
	return err;
}
