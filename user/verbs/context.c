/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contexts: opening and closing a device, and the tables through which the header's inline
 * functions call this library. A context attaches nothing to the interface until the first call of
 * context_port(), for the first memory region or queue pair.
 *
 * Objects hold a reference on their context. ibv_close_device(3) before the last object is
 * destroyed is allowed as a leak: the memory and the port remain, and the objects end.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../os/complain.h"
#include "../os/kernel.h"
#include "../os/last_thread.h"
#include "../os/netdev.h"
#include "../os/options.h"
#include "objects.h"

/* The objects of this process that fork() or the end of their file concerns, newest first. */
static struct vlist entries;

u32 new_handle(void)
{
	static _Atomic u32 last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void context_get(struct vcontext *ctx)
{
	atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
}

/* Returns whether the program has closed the context's descriptors (os/fd_id.h). */
static bool context_is_robbed(const struct vcontext *ctx)
{
	struct stat st;

	if (ctx->v.context.cmd_fd < 0)
		return false;
	/* a seccomp filter may refuse the call */
	return fstat(ctx->v.context.cmd_fd, &st) ? errno == EBADF : st.st_ino != ctx->file_id;
}

/*
 * The end of the context's file: the device is gone for objects that are left, and the context's
 * descriptors are closed. Its objects do not count for the device any more, except for QPs, which
 * the engine counts.
 */
static void context_at_close(struct fork_entry *entry)
{
	struct vcontext *ctx = container_of(entry, struct vcontext, forks);

	atomic_store_explicit(&ctx->gone, true, memory_order_release);
	link_watch_stop(ctx->watch);
	ctx->watch = NULL;
	/* else the numbers may be the program's files */
	if (!context_is_robbed(ctx)) {
		link_cache_free(ctx->links);
		ctx->links = NULL;
		async_end(ctx);
		kernel_close(ctx->v.context.cmd_fd);
		ctx->v.context.cmd_fd = -1;
	}
	for (u32 kind = 0; kind < LIMITS; kind++)
		atomic_fetch_sub_explicit(&ctx->dev->made[kind],
					  atomic_exchange_explicit(&ctx->made[kind], 0,
								   memory_order_relaxed),
					  memory_order_relaxed);
}

void context_put(struct vcontext *ctx)
{
	bool is_robbed;

	/* acq_rel, with itself: all users' accesses come before the destruction */
	if (atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) != 1)
		return;
	is_robbed = context_is_robbed(ctx);
	fork_remove(&ctx->forks);
	link_watch_stop(ctx->watch);
	if (ctx->port)
		port_put(ctx->port);
	/* the numbers may be the program's files */
	if (is_robbed)
		return;
	link_cache_free(ctx->links);
	async_free(ctx);
	pthread_mutex_destroy(&ctx->lock);
	pthread_mutex_destroy(&ctx->ah_lock);
	pthread_mutex_destroy(&ctx->v.context.mutex);
	if (ctx->v.context.cmd_fd >= 0)
		kernel_close(ctx->v.context.cmd_fd);
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
	err = port_watch_end(*out, ctx->watch);
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
		shards_set_event_handler(async_engine_event);
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
	return context_errno(link_cache_get(ctx->links, ctx->dev->nd.ifindex, nd, NULL));
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
 * Returns whether the process is exiting and has given its port back: then the broker hangs up, and
 * threads that still wait must not take that for the end of the device. Acquire: pairs with the
 * release in context_port().
 */
static bool context_has_left(struct vcontext *ctx)
{
	const struct port *port =
		atomic_load_explicit(shared_word(&ctx->port), memory_order_acquire);

	return port && port_has_left(port);
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
		if (!context_has_left(ctx))
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
	async_abandon(ctx, entry->is_inherited);
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
	if (faults_are_on)
		fault_set_ops(ops);

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
	context_set_newer_ops(ctx);
	context_init_locks(ctx);
	async_init(ctx);
	ctx->file_id = st.st_ino;
	fork_add_to(ctx, &ctx->forks, context_abandon, context_at_close);
	atomic_init(&ctx->refs, 1);
	ctx->dev = dev;
	device_get(dev);
	err = link_cache_new(1, &ctx->links);
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

/*
 * ibv_import_device() gets nothing but a descriptor, so its position in an empty file tells the
 * device's ifindex, from here on. RLIMIT_FSIZE may forbid content.
 */
#define CONTEXT_FILE_AT ((off_t)ROCE_UDP_PORT << 32)

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct vdevice *dev = to_vdevice(device);
	struct ibv_context *context;
	int fd, err = faults_load();

	if (err)
		return verb_fail(err);
	if (verb_fails(NULL, CALL_ibv_open_device))
		return verb_fail(errno);
	fd = memfd_create(device->name, MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	context = lseek(fd, CONTEXT_FILE_AT + dev->nd.ifindex, SEEK_SET) < 0 ?
			  NULL :
			  context_new(dev, fd);
	if (!context) {
		err = errno;
		kernel_close(fd);
		errno = err;
	}
	return context;
}

static bool context_is_open(struct fork_entry *entry, u64 file_id)
{
	const struct vcontext *ctx = container_of(entry, struct vcontext, forks);

	return ctx->file_id == file_id && !ctx->is_closed;
}

/* Takes an object of the file that has not ended yet; the newest one, which no other one uses. */
static struct fork_entry *object_take_left(u64 file_id)
{
	struct fork_entry *found = NULL;

	pthread_mutex_lock(&lists_lock);
	for (struct vlink *n = entries.first; n && !found; n = n->next) {
		struct fork_entry *entry = container_of(n, struct fork_entry, listed);

		if (entry->at_close && entry->file_id == file_id &&
		    !atomic_load_explicit(&entry->is_over, memory_order_relaxed))
			found = entry;
	}
	if (found)
		atomic_store_explicit(&found->is_over, true, memory_order_relaxed);
	pthread_mutex_unlock(&lists_lock);
	return found;
}

/*
 * With the last descriptor of a context the kernel destroys its objects. Here the objects stay
 * valid memory, for destroys that follow, but neither peers nor the interface reach them: regions
 * only serve QPs of their PD, which are all of the same file.
 */
static void objects_end(u64 file_id)
{
	struct fork_entry *entry;

	while ((entry = object_take_left(file_id)))
		entry->at_close(entry);
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct vcontext *ctx = to_vcontext(context);

	if (verb_fails(context, CALL_ibv_close_device))
		return -1;
	pthread_mutex_lock(&lists_lock);
	ctx->is_closed = true;
	pthread_mutex_unlock(&lists_lock);
	if (!fork_find(context_abandon, context_is_open, ctx->file_id))
		objects_end(ctx->file_id);
	context_put(ctx);
	return 0;
}

/*
 * Fails with EINVAL for a descriptor that no context has, also a closed one. The context owns the
 * descriptor, except on failure.
 */
EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *context = NULL;
	const off_t ifindex = lseek(cmd_fd, 0, SEEK_CUR) - CONTEXT_FILE_AT;
	struct ibv_device **list;
	struct stat st;
	int err = faults_load();

	if (err)
		return verb_fail(err);
	if (verb_fails(NULL, CALL_ibv_import_device))
		return verb_fail(errno);
	if (ifindex <= 0 || ifindex > UINT32_MAX || fstat(cmd_fd, &st) || st.st_size)
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

/* ---- devices ---- */

/*
 * One device per network interface, named xroce_<interface>. Listing and opening
 * read the kernel's tables and change nothing on the interface. A device keeps its address while it
 * is referenced, so a second list has the same pointers.
 */

static struct vdevice *devices;

/*
 * Some programs need the files of a device, which `xroce run` provides. Prints once per process
 * that they are missing.
 */
static void device_note_missing_files(const struct ibv_device *device)
{
	static atomic_bool is_told;
	char node[sizeof(device->dev_name) + 32];

	if (!options_is_set(OPTION_DEBUG))
		return;
	snprintf(node, sizeof(node), "/dev/infiniband/%s", device->dev_name);
	if ((access(device->ibdev_path, F_OK) || access(node, F_OK)) &&
	    !atomic_exchange_explicit(&is_told, true, memory_order_relaxed))
		complain("no %s or no %s: programs that look for these files (UCX, NCCL, "
			 "ibstat) find no device; start them by `xroce run`",
			 device->ibdev_path, node);
}

/* Caller holds lists_lock. */
static struct vdevice *device_find(const struct netdev *nd)
{
	for (struct vdevice *d = devices; d; d = d->next)
		if (d->nd.ifindex == nd->ifindex && !strcmp(d->nd.name, nd->name) &&
		    !memcmp(d->nd.mac, nd->mac, sizeof(nd->mac)))
			return d;
	return NULL;
}

/* Caller holds lists_lock. */
static struct vdevice *device_new(const struct netdev *nd)
{
	struct vdevice *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->nd = *nd;
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->ibv.name, sizeof(d->ibv.name), NETDEV_DEVICE_PREFIX "%s", nd->name);
	snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "%s", d->ibv.name);
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/%s",
		 d->ibv.name);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/%s",
		 d->ibv.name);
	d->next = devices;
	devices = d;
	return d;
}

/* Caller holds lists_lock. */
static void device_put_locked(struct vdevice *dev)
{
	struct vdevice **at = &devices;

	if (--dev->refs)
		return;
	while (*at != dev)
		at = &(*at)->next;
	*at = dev->next;
	free(dev);
}

void device_get(struct vdevice *dev)
{
	pthread_mutex_lock(&lists_lock);
	dev->refs++;
	pthread_mutex_unlock(&lists_lock);
}

void device_put(struct vdevice *dev)
{
	pthread_mutex_lock(&lists_lock);
	device_put_locked(dev);
	pthread_mutex_unlock(&lists_lock);
}

bool device_is_known(const struct ibv_device *device)
{
	const struct vdevice *d;

	pthread_mutex_lock(&lists_lock);
	for (d = devices; d && &d->ibv != device; d = d->next)
		;
	pthread_mutex_unlock(&lists_lock);
	return d != NULL;
}

int device_take(struct ibv_context *context, enum vlimit kind)
{
	static const u32 limits[LIMITS] = {
		[LIMIT_PD] = VERBS_MAX_PD, [LIMIT_MR] = VERBS_MAX_MR, [LIMIT_MW] = VERBS_MAX_MW,
		[LIMIT_AH] = VERBS_MAX_AH, [LIMIT_CQ] = VERBS_MAX_CQ, [LIMIT_SRQ] = VERBS_MAX_SRQ,
		[LIMIT_TABLE] = VERBS_MAX_TABLE, [LIMIT_COMP_CNTR] = VERBS_MAX_COMP_CNTR,
	};

	atomic_fetch_add_explicit(&to_vcontext(context)->made[kind], 1, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&to_vcontext(context)->dev->made[kind], 1,
				      memory_order_relaxed) < limits[kind])
		return 0;
	device_give(context, kind);
	return ENOMEM;
}

void device_give(struct ibv_context *context, enum vlimit kind)
{
	struct vcontext *ctx = to_vcontext(context);

	if (atomic_load_explicit(&ctx->forks.is_over, memory_order_relaxed))
		return;
	atomic_fetch_sub_explicit(&ctx->made[kind], 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&ctx->dev->made[kind], 1, memory_order_relaxed);
}

EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	struct netdev *nd;
	int count = netdev_list(&nd);
	int n = 0;

	if (num_devices)
		*num_devices = 0;
	if (count < 0)
		return verb_fail(-count);
	list = calloc(count + 1, sizeof(*list));
	if (!list) {
		free(nd);
		return verb_fail(ENOMEM);
	}
	pthread_mutex_lock(&lists_lock);
	for (int i = 0; i < count; i++) {
		struct vdevice *d = device_find(&nd[i]);

		if (!d)
			d = device_new(&nd[i]);
		if (!d)
			break;
		d->refs++;
		list[n++] = &d->ibv;
	}
	pthread_mutex_unlock(&lists_lock);
	free(nd);
	if (n < count) {
		ibv_free_device_list(list);
		return verb_fail(ENOMEM);
	}
	if (n)
		device_note_missing_files(list[0]);
	if (num_devices)
		*num_devices = n;
	return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	for (struct ibv_device **d = list; *d; d++)
		device_put(to_vdevice(*d));
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	__be64 guid;

	netdev_guid(&to_vdevice(device)->nd, (u8 *)&guid);
	return guid;
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return (int)to_vdevice(device)->nd.ifindex;
}

/* ---- fork ---- */

/*
 * A process keeps the objects that it made. In the child, every context and object is an
 * inert copy: the device is gone for it (EIO), at once, whatever the parent's threads were doing.
 * The child cannot affect the parent: descriptors that both would share are replaced. port/port.c
 * releases the port.
 *
 * Only the forking thread continues in the child, so locks are initialized again. Their data is
 * consistent because the locks are held across the fork (lists_lock here, the engines' in port/),
 * or it is discarded.
 */

pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;

void fork_add(struct fork_entry *entry, fork_fn *in_child)
{
	entry->in_child = in_child;
	entry->is_inherited = false;
	vlist_add(&entries, &entry->listed);
}

void fork_add_to(struct vcontext *ctx, struct fork_entry *entry, fork_fn *in_child,
		 fork_fn *at_close)
{
	entry->at_close = at_close;
	entry->file_id = ctx->file_id;
	fork_add(entry, in_child);
}

void fork_remove(struct fork_entry *entry)
{
	vlist_remove(&entries, &entry->listed);
}

struct fork_entry *fork_find(fork_fn *in_child, bool (*is)(struct fork_entry *entry, u64 arg),
			     u64 arg)
{
	struct fork_entry *found = NULL;

	pthread_mutex_lock(&lists_lock);
	for (struct vlink *n = entries.first; n && !found; n = n->next) {
		struct fork_entry *entry = container_of(n, struct fork_entry, listed);

		if (entry->in_child == in_child && is(entry, arg))
			found = entry;
	}
	pthread_mutex_unlock(&lists_lock);
	return found;
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&lists_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lists_lock);
}

static void fork_child(void)
{
	for (struct vlink *n = entries.first; n; n = n->next) {
		struct fork_entry *entry = container_of(n, struct fork_entry, listed);

		if (entry->in_child)
			entry->in_child(entry);
		entry->is_inherited = true;
	}
	pthread_mutex_init(&lists_lock, NULL);
}

__attribute__((constructor)) static void fork_register(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	last_thread_register();
}
