/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contexts: opening and closing a device, and the tables through which the header's inline
 * functions call this library. A context attaches nothing to the interface until the first call of
 * context_port(), for the first memory region or queue pair.
 *
 * Objects hold a reference on their context. ibv_close_device(3) before the last object is
 * destroyed is allowed as a leak: the context's memory remains.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "objects.h"

u32 new_handle(void)
{
	static _Atomic u32 last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void context_get(struct vcontext *ctx)
{
	atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
}

void context_put(struct vcontext *ctx)
{
	/* acq_rel, with itself: all users' accesses come before the destruction */
	if (atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) != 1)
		return;
	fork_remove(&ctx->forks);
	link_watch_stop(ctx->watch);
	link_cache_free(ctx->kept);
	if (ctx->port)
		port_put(ctx->port);
	async_free(ctx);
	pthread_mutex_destroy(&ctx->lock);
	pthread_mutex_destroy(&ctx->ah_lock);
	pthread_mutex_destroy(&ctx->v.context.mutex);
	if (ctx->v.context.cmd_fd >= 0)
		close(ctx->v.context.cmd_fd);
	device_put(ctx->dev);
	free(ctx);
}

/*
 * Gets a port. The end of the port is the end of the device for this context. Returns 0 or a
 * positive errno.
 */
static int context_get_port(struct vcontext *ctx, struct port **out)
{
	int err = port_get(&ctx->dev->nd, out);

	if (err)
		return -err;
	if (port_lifeline(*out) >= 0)
		err = link_watch_until_hangup(ctx->watch, port_lifeline(*out));
	if (err)
		port_put(*out);
	return -err;
}

int context_port(struct vcontext *ctx, struct port **out)
{
	struct port *port;
	int err = 0;

	if (context_gone(&ctx->v.context))
		return EIO;
	pthread_mutex_lock(&ctx->lock);
	if (!ctx->port) {
		port_set_event_handler(async_engine_event);
		err = context_get_port(ctx, &port);
		/* release: pairs with the acquire in cq_run() */
		if (!err)
			atomic_store_explicit(shared_word(&ctx->port), port, memory_order_release);
	}
	*out = ctx->port;
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

/* Converts -ENODEV to EIO: the event for the interface's removal is on its way. */
static int context_errno(int err)
{
	return err == -ENODEV ? EIO : -err;
}

int context_netdev(struct ibv_context *context, struct netdev *nd)
{
	struct vcontext *ctx = to_vcontext(context);

	if (context_gone(context))
		return EIO;
	return context_errno(link_cache_get(ctx->kept, ctx->dev->nd.ifindex, nd, NULL));
}

int context_netdev_link(struct ibv_context *context, struct netdev *nd)
{
	if (context_gone(context))
		return EIO;
	*nd = to_vcontext(context)->dev->nd;
	return context_errno(netdev_refresh(nd));
}

static bool gids_equal(const struct netdev *a, const struct netdev *b)
{
	bool equal = a->num_gids == b->num_gids;

	for (u32 i = 0; equal && i < a->num_gids; i++)
		equal = gid_equal(&a->gid[i].gid, &b->gid[i].gid);
	return equal;
}

/*
 * Reports changes of the interface as events of ibv_get_async_event(3). For this context, the exit
 * of the broker that made its port also counts as removal of the interface.
 */
static void context_follow(void *arg, const struct netdev *before, const struct netdev *now)
{
	struct vcontext *ctx = arg;

	ah_cache_forget(ctx);
	if (!before)
		return;
	if (!now) {
		async_device_fatal(ctx);
		return;
	}
	if (before->is_up != now->is_up)
		async_queue_port(ctx, now->is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
	if (!gids_equal(before, now))
		async_queue_port(ctx, IBV_EVENT_GID_CHANGE);
}

static void context_init_locks(struct vcontext *ctx)
{
	pthread_mutex_init(&ctx->v.context.mutex, NULL);
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_mutex_init(&ctx->ah_lock, NULL);
}

static void context_abandon(struct fork_entry *entry)
{
	struct vcontext *ctx = container_of(entry, struct vcontext, forks);

	context_init_locks(ctx);
	async_abandon(ctx);
	ctx->inherited = true;
	atomic_store_explicit(&ctx->gone, true, memory_order_relaxed);
}

static void context_set_ops(struct verbs_context *v)
{
	struct ibv_context_ops *ops = &v->context.ops;

	ops->poll_cq = poll_cq_op;
	ops->req_notify_cq = req_notify_cq_op;
	ops->post_send = post_send_op;
	ops->post_recv = post_recv_op;
	ops->post_srq_recv = post_srq_recv_op;
	ops->alloc_mw = alloc_mw_op;
	ops->dealloc_mw = dealloc_mw_op;
	ops->bind_mw = bind_mw_op;

	v->sz = sizeof(*v);
	v->query_port = query_port_op;
	v->query_device_ex = query_device_ex_op;
	v->query_rt_values = query_rt_values_op;
	v->advise_mr = advise_mr_op;
	v->alloc_null_mr = alloc_null_mr_op;
	v->create_cq_ex = create_cq_ex_op;
	v->modify_cq = modify_cq_op;
	v->create_qp_ex = create_qp_ex_op;
	v->open_qp = open_qp_op;
	v->modify_qp_rate_limit = modify_qp_rate_limit_op;
	v->ibv_create_flow = create_flow_op;
	v->ibv_destroy_flow = destroy_flow_op;
	v->create_wq = create_wq_op;
	v->modify_wq = modify_wq_op;
	v->destroy_wq = destroy_wq_op;
	v->create_rwq_ind_table = create_rwq_ind_table_op;
	v->destroy_rwq_ind_table = destroy_rwq_ind_table_op;
	v->create_counters = create_counters_op;
	v->destroy_counters = destroy_counters_op;
	v->attach_counters_point_flow = attach_counters_point_flow_op;
	v->read_counters = read_counters_op;
	v->create_srq_ex = create_srq_ex_op;
	v->get_srq_num = get_srq_num_op;
	v->post_srq_ops = post_srq_ops_op;
	v->open_xrcd = open_xrcd_op;
	v->close_xrcd = close_xrcd_op;
	v->alloc_td = alloc_td_op;
	v->dealloc_td = dealloc_td_op;
	v->alloc_parent_domain = alloc_parent_domain_op;
	v->alloc_dm = alloc_dm_op;
	v->free_dm = free_dm_op;
	v->reg_dm_mr = reg_dm_mr_op;
}

/* Returns NULL with errno set on failure. The context owns cmd_fd, except on failure. */
static struct ibv_context *context_new(struct vdevice *dev, int cmd_fd)
{
	struct vcontext *ctx = calloc(1, sizeof(*ctx));
	struct ibv_context *c;
	struct stat st;
	int err;

	if (!ctx || fstat(cmd_fd, &st))
		goto fail;
	c = &ctx->v.context;
	c->async_fd = eventfd(0, EFD_CLOEXEC);
	if (c->async_fd < 0)
		goto fail;
	c->device = &dev->ibv;
	c->cmd_fd = cmd_fd;
	/* a vector is a receive queue; only XROCE_MAX_QUEUE of these have sockets */
	c->num_comp_vectors =
		(int)(dev->nd.rx_queues < XROCE_MAX_QUEUE ? dev->nd.rx_queues : XROCE_MAX_QUEUE);
	c->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context_set_ops(&ctx->v);
	context_init_locks(ctx);
	async_init(ctx);
	fork_add(&ctx->forks, context_abandon);
	ctx->file_id = st.st_ino;
	atomic_init(&ctx->refs, 1);
	ctx->dev = dev;
	device_get(dev);
	err = link_cache_new(1, &ctx->kept);
	if (!err)
		err = link_watch_start(&dev->nd, false, context_follow, ctx, &ctx->watch);
	if (!err)
		return c;
	c->cmd_fd = -1;
	context_put(ctx);
	return verb_fail(-err);
fail:
	free(ctx);
	return NULL;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct vdevice *dev = to_vdevice(device);
	struct ibv_context *context;
	int fd = memfd_create(device->name, MFD_CLOEXEC), err;

	/*
	 * The file holds the device's ifindex: ibv_import_device() gets nothing but a descriptor.
	 */
	if (fd < 0)
		return NULL;
	errno = EIO;
	context = write(fd, &dev->nd.ifindex, sizeof(dev->nd.ifindex)) == sizeof(dev->nd.ifindex) ?
			  context_new(dev, fd) :
			  NULL;
	if (!context) {
		err = errno;
		close(fd);
		errno = err;
	}
	return context;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	context_put(to_vcontext(context));
	return 0;
}

/*
 * Fails with EINVAL for a descriptor that no context has, also a closed one. The context owns the
 * descriptor, except on failure.
 */
EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	u32 ifindex;

	if (pread(cmd_fd, &ifindex, sizeof(ifindex), 0) != sizeof(ifindex))
		return verb_fail(EINVAL);
	list = ibv_get_device_list(NULL);
	if (!list)
		return NULL;
	errno = ENODEV;
	for (struct ibv_device **d = list; *d && !context; d++)
		if (to_vdevice(*d)->nd.ifindex == ifindex)
			context = context_new(to_vdevice(*d), cmd_fd);
	ibv_free_device_list(list);
	return context;
}
