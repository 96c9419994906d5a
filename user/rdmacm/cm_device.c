/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The devices of this process. Opening one and giving it QP 1 and a struct cm may take long, and
 * happens under devices_lock. The list changes under both locks, so it may be read under either.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "../os/clock.h"
#include "../os/netdev_cache.h"
#include "../os/netdev_nl.h"
#include "../verbs/xroce_cm.h"
#include "cm_device.h"
#include "id.h"
#include "qp1.h"

/* Maximum connections, half of the smallest range of ids; maximum services. */
#define CONNECTIONS_MAX 65536
#define LISTENERS_MAX	1024
/*
 * Half-open connections per address. Each may have a QP with two completion channels: this leaves
 * room below the usual limit of 1,024 descriptors.
 */
#define HALF_OPEN_MAX	384
#define RECENT_NS	(20 * NSEC_PER_MSEC)

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rdmacm_device *devices;

static void devices_enter(void)
{
	cancel_hold();
	pthread_mutex_lock(&devices_lock);
}

static void devices_leave(void)
{
	pthread_mutex_unlock(&devices_lock);
	cancel_release();
}

/* ---- opening ---- */

static void cm_device_removed(struct rdmacm_device *dev)
{
	if (dev->gone)
		return;
	dev->gone = true;
	for (struct rdmacm_id *id = id_all; id; id = id->all_next)
		if (id->device == dev && id->state != ID_DESTROYING) {
			id->state = ID_DEVICE_REMOVAL;
			if (!id->unaccepted)
				event_tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
		}
	for (struct rdmacm_id *id = id_all; id; id = id->all_next)
		listen_leave(id, dev);
	loop_remove(&cm_loop, &dev->async);
	if (dev->qp1)
		qp1_stop(dev->qp1);
	cm_timer_clear(&dev->timer);
}

static void cm_device_async(struct source *s, u32 events)
{
	struct rdmacm_device *dev = container_of(s, struct rdmacm_device, async);
	struct ibv_async_event event;

	while (!dev->gone && !ibv_get_async_event(dev->own, &event)) {
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			cm_device_removed(dev);
		ibv_ack_async_event(&event);
	}
	if (!dev->gone && errno == EIO)
		cm_device_removed(dev);
}

static u8 cm_device_depth(int depth)
{
	return (u8)(depth < 0 ? 0 : min_u32((u32)depth, UINT8_MAX));
}

/* Opens a device, with a reference. Caller holds devices_lock. */
static int cm_device_open(struct ibv_device *ibv, u32 ifindex, struct rdmacm_device **out)
{
	struct rdmacm_device *dev = calloc(1, sizeof(*dev));
	struct ibv_device_attr attr;
	int err = dev ? 0 : -ENOMEM;

	if (!err) {
		dev->ifindex = ifindex;
		dev->verbs = ibv_open_device(ibv);
		err = dev->verbs ? 0 : -errno;
	}
	if (!err)
		err = -ibv_query_device(dev->verbs, &attr);
	if (!err) {
		dev->pd = ibv_alloc_pd(dev->verbs);
		err = dev->pd ? 0 : -errno;
	}
	if (err) {
		if (dev && dev->verbs)
			ibv_close_device(dev->verbs);
		free(dev);
		return err;
	}
	dev->ibv = dev->verbs->device;
	dev->max_initiator_depth = cm_device_depth(attr.max_qp_init_rd_atom);
	dev->max_responder_resources = cm_device_depth(attr.max_qp_rd_atom);
	dev->ack_delay = attr.local_ca_ack_delay & 31;
	dev->guid = be64toh(ibv_get_device_guid(ibv));
	dev->refs = 1;
	rdmacm_enter();
	dev->next = devices;
	devices = dev;
	rdmacm_leave();
	*out = dev;
	return 0;
}

/* Returns the interface's open device with a reference, or NULL. Caller holds devices_lock. */
static struct rdmacm_device *cm_device_find(u32 ifindex)
{
	struct rdmacm_device *dev;

	rdmacm_enter();
	dev = devices;
	while (dev && (dev->ifindex != ifindex || dev->gone))
		dev = dev->next;
	if (dev)
		dev->refs++;
	rdmacm_leave();
	return dev;
}

/* Frees removed devices without references. Caller holds devices_lock. */
static void devices_reap(void)
{
	struct rdmacm_device **at = &devices, *dead = NULL, *dev;

	rdmacm_enter();
	while ((dev = *at)) {
		if (!dev->gone || dev->refs) {
			at = &dev->next;
			continue;
		}
		*at = dev->next;
		dev->next = dead;
		dead = dev;
	}
	rdmacm_leave();
	while ((dev = dead)) {
		dead = dev->next;
		if (dev->qp1)
			qp1_free(dev->qp1);
		if (dev->cm)
			cm_destroy(dev->cm);
		if (dev->own)
			ibv_close_device(dev->own);
		if (dev->xrcd)
			ibv_close_xrcd(dev->xrcd);
		ibv_dealloc_pd(dev->pd);
		ibv_close_device(dev->verbs);
		free(dev);
	}
}

/* Returns the device with a reference. Caller holds devices_lock. */
static int cm_device_get_locked(struct ibv_device *ibv, u32 ifindex, struct rdmacm_device **out)
{
	*out = cm_device_find(ifindex);
	return *out ? 0 : cm_device_open(ibv, ifindex, out);
}

int cm_device_get(u32 ifindex, struct rdmacm_device **out)
{
	struct ibv_device **list;
	int err = -ENODEV;

	devices_enter();
	devices_reap();
	*out = cm_device_find(ifindex);
	if (*out) {
		devices_leave();
		return 0;
	}
	list = ibv_get_device_list(NULL);
	if (!list)
		err = -errno;
	for (struct ibv_device **d = list; d && *d; d++)
		if ((u32)xroce_device_ifindex(*d) == ifindex)
			err = cm_device_get_locked(*d, ifindex, out);
	if (list)
		ibv_free_device_list(list);
	devices_leave();
	return err;
}

int cm_device_get_all(struct rdmacm_device ***out)
{
	struct ibv_device **list;
	int count = 0, n = 0, err = -ENODEV, failed;

	devices_enter();
	devices_reap();
	list = ibv_get_device_list(&count);
	if (!list)
		err = -errno;
	*out = list ? calloc((size_t)count + 1, sizeof(**out)) : NULL;
	for (int i = 0; *out && i < count; i++) {
		failed = cm_device_get_locked(list[i], (u32)xroce_device_ifindex(list[i]),
					      &(*out)[n]);
		if (!failed)
			n++;
		else if (err == -ENODEV)
			err = failed;
	}
	if (list)
		ibv_free_device_list(list);
	devices_leave();
	if (n)
		return n;
	free(*out);
	*out = NULL;
	return err;
}

void cm_device_hold(struct rdmacm_device *dev)
{
	dev->refs++;
}

void cm_device_put(struct rdmacm_device *dev)
{
	dev->refs--;
}

int cm_device_xrcd(struct rdmacm_device *dev, struct ibv_xrcd **out)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	int err = 0;

	devices_enter();
	if (!dev->xrcd) {
		dev->xrcd = ibv_open_xrcd(dev->verbs, &attr);
		err = dev->xrcd ? 0 : -errno;
	}
	devices_leave();
	*out = dev->xrcd;
	return err;
}

/* ---- connecting ---- */

static u64 cm_device_random(void *arg)
{
	return conn_random();
}

static void cm_device_timer(struct cm_timer *timer)
{
	struct rdmacm_device *dev = container_of(timer, struct rdmacm_device, timer);

	cm_expire(dev->cm, clock_now_ns());
	cm_device_turn(dev);
}

static u16 cm_device_reject(void *arg)
{
	return xroce_cm_reject();
}

static int cm_device_make_cm(struct rdmacm_device *dev, struct cm **out)
{
	struct cm_options options = { .random = cm_device_random,
				      .reject = cm_device_reject,
				      .listeners = LISTENERS_MAX,
				      .half_open = HALF_OPEN_MAX };
	int err = -xroce_cm_place(dev->own, &options.id_first, &options.id_count);

	if (!err)
		err = conn_random_start();
	if (err)
		return err;
	if (!options.id_first) { /* 0 is not a valid id */
		options.id_first++;
		options.id_count--;
	}
	options.ca_guid = dev->guid;
	options.capacity = min_u32(CONNECTIONS_MAX, options.id_count / 2);
	return cm_create(&options, out);
}

/* Caller holds both locks. */
static int cm_device_join_loop(struct rdmacm_device *dev)
{
	int err;

	dev->timer.fn = cm_device_timer;
	dev->async.ready = cm_device_async;
	dev->async.fd = dev->own->async_fd;
	err = loop_add(&cm_loop, &dev->async);
	if (err)
		return err;
	err = qp1_start(dev->qp1);
	if (err)
		loop_remove(&cm_loop, &dev->async);
	return err;
}

/* Caller holds devices_lock. */
static int cm_device_start_locked(struct rdmacm_device *dev)
{
	struct cm *cm = NULL;
	int err = 0;

	if (dev->cm)
		return 0;
	dev->own = ibv_open_device(dev->ibv);
	if (!dev->own || fcntl(dev->own->async_fd, F_SETFL, O_NONBLOCK))
		err = -errno;
	if (!err)
		err = cm_device_make_cm(dev, &cm);
	if (!err)
		err = qp1_make(dev, &dev->qp1);
	if (!err) {
		rdmacm_enter();
		dev->cm = cm;
		err = cm_device_join_loop(dev);
		if (err)
			dev->cm = NULL;
		rdmacm_leave();
	}
	if (!err)
		return 0;
	if (dev->qp1)
		qp1_free(dev->qp1);
	dev->qp1 = NULL;
	if (cm)
		cm_destroy(cm);
	if (dev->own)
		ibv_close_device(dev->own);
	dev->own = NULL;
	return err;
}

int cm_device_start(struct rdmacm_device *dev)
{
	int err = cm_thread_start();

	devices_enter();
	if (!err)
		err = cm_device_start_locked(dev);
	devices_leave();
	return err;
}

void cm_device_turn(struct rdmacm_device *dev)
{
	struct cm_event event;

	if (dev->gone)
		return;
	while (cm_next_event(dev->cm, &event))
		conn_event(dev, &event);
	qp1_send(dev->qp1);
	cm_timer_set(&dev->timer, cm_deadline_ns(dev->cm));
}

int cm_device_gid_index(const struct rdmacm_device *dev, const struct gid *gid)
{
	struct netdev nd;
	int err = interfaces_get(dev->ifindex, &nd);

	return err ? err : interfaces_gid_index(&nd, gid);
}

struct rdmacm_device *devices_first(void)
{
	return devices;
}

/* The uncached lookup asks the kernel; connections ask for few different GIDs. */
int cm_device_recent_gid_index(struct rdmacm_device *dev, const struct gid *gid)
{
	const u64 now_ns = clock_now_ns();

	if (now_ns < dev->recent.until_ns && gid_equal(&dev->recent.gid, gid))
		return dev->recent.index;
	dev->recent.gid = *gid;
	dev->recent.index = cm_device_gid_index(dev, gid);
	dev->recent.until_ns = dev->recent.index < 0 ? 0 : now_ns + RECENT_NS;
	return dev->recent.index;
}

void devices_after_fork(void)
{
	devices = NULL;
	pthread_mutex_init(&devices_lock, NULL);
}

/* ---- for programs ---- */

EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	CANCEL_HELD;
	struct rdmacm_device **all;
	struct ibv_context **list = NULL;
	int n = cm_device_get_all(&all);

	if (n > 0)
		list = calloc((size_t)n + 1, sizeof(*list));
	else
		rdmacm_report(n);
	for (int i = 0; i < n; i++) {
		if (list)
			list[i] = all[i]->verbs;
		else
			cm_device_put(all[i]);
	}
	if (n > 0)
		free(all);
	if (num_devices)
		*num_devices = list ? n : 0;
	return list;
}

EXPORT void rdma_free_devices(struct ibv_context **list)
{
	CANCEL_HELD;
	/* Ceph frees a list that it did not get, which rdma-core accepts. */
	if (!list)
		return;
	rdmacm_enter();
	for (u32 i = 0; list[i]; i++)
		for (struct rdmacm_device *dev = devices; dev; dev = dev->next)
			if (dev->verbs == list[i])
				cm_device_put(dev);
	rdmacm_leave();
	free(list);
}

/* ---- interfaces ---- */

/*
 * The kernel's interfaces (os/netdev_cache.c). The CM thread has its own netlink socket for
 * changes, so that it misses none while it sleeps.
 */

#define INTERFACES_CACHED 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under the lock of this file. A forked child creates its own. */
static struct {
	struct link_cache *links;
	struct {
		u32 ifindex; /* 0: none */
		enum ibv_mtu mtu;
		u64 changes;
	} mtu[INTERFACES_CACHED];
	u32 next;
} cache;

/* Under rdmacm_lock. */
static struct {
	struct link_events events;
	struct source input;
} followed = { .events = { .fd = -1 } };

/* ---- cache ---- */

/* Returns 0 or -errno. */
static int interfaces_cache(struct link_cache **out)
{
	int err = 0;

	cancel_hold();
	pthread_mutex_lock(&lock);
	if (!cache.links)
		err = link_cache_new(INTERFACES_CACHED, &cache.links);
	if (err)
		cache.links = NULL;
	*out = cache.links;
	pthread_mutex_unlock(&lock);
	cancel_release();
	return err;
}

int interfaces_session(struct netdev_session **out)
{
	struct link_cache *links;
	int err = interfaces_cache(&links);

	if (!err)
		*out = link_cache_session(links);
	return err;
}

int interfaces_get(u32 ifindex, struct netdev *out)
{
	struct link_cache *links;
	int err = interfaces_cache(&links);

	return err ? err : link_cache_get(links, ifindex, out, NULL);
}

/* Returns 0 if not known. */
static enum ibv_mtu interfaces_find_mtu(u32 ifindex, u64 changes)
{
	enum ibv_mtu mtu = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < INTERFACES_CACHED; i++)
		if (cache.mtu[i].ifindex == ifindex && cache.mtu[i].changes == changes)
			mtu = cache.mtu[i].mtu;
	pthread_mutex_unlock(&lock);
	return mtu;
}

static void interfaces_keep_mtu(u32 ifindex, u64 changes, enum ibv_mtu mtu)
{
	pthread_mutex_lock(&lock);
	cache.next = (cache.next + 1) % INTERFACES_CACHED;
	cache.mtu[cache.next].ifindex = ifindex;
	cache.mtu[cache.next].changes = changes;
	cache.mtu[cache.next].mtu = mtu;
	pthread_mutex_unlock(&lock);
}

int interfaces_mtu(u32 ifindex, struct ibv_context *verbs, enum ibv_mtu *mtu)
{
	struct ibv_port_attr port;
	struct netdev nd;
	struct link_cache *links;
	u64 changes;
	int err = interfaces_cache(&links);

	if (!err)
		err = link_cache_get(links, ifindex, &nd, &changes);
	if (err)
		return err;
	*mtu = interfaces_find_mtu(ifindex, changes);
	if (*mtu)
		return 0;
	err = -ibv_query_port(verbs, RDMACM_PORT, &port);
	if (err)
		return err;
	*mtu = port.active_mtu;
	interfaces_keep_mtu(ifindex, changes, *mtu);
	return 0;
}

int interfaces_gid_index(const struct netdev *dev, const struct gid *gid)
{
	for (u32 i = 0; i < dev->num_gids; i++)
		if (gid_equal(&dev->gid[i].gid, gid))
			return (int)i;
	return -EADDRNOTAVAIL;
}

void interfaces_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void interfaces_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* Closes the parent's descriptors: later the program may have others of these numbers. */
void interfaces_after_fork_child(void)
{
	if (cache.links)
		link_cache_free(cache.links);
	memset(&cache, 0, sizeof(cache));
	link_events_close(&followed.events);
	pthread_mutex_init(&lock, NULL);
}

/* ---- changes ---- */

static void interfaces_hear(void *arg, enum link_events_kind kind, u32 ifindex,
			    const struct nlmsghdr *nlh)
{
	(void)kind, (void)ifindex, (void)nlh;
	*(bool *)arg = true;
}

static void interfaces_readable(struct source *s, u32 events)
{
	bool any = false;

	link_events_take(&followed.events, interfaces_hear, &any);
	if (any)
		interfaces_changed();
}

int interfaces_follow(void)
{
	int err = cm_thread_start();

	if (err)
		return err;
	rdmacm_enter();
	if (followed.events.fd < 0) {
		err = link_events_open(&followed.events);
		followed.input.ready = interfaces_readable;
		followed.input.fd = followed.events.fd;
		if (!err)
			err = loop_add(&cm_loop, &followed.input);
		if (err)
			link_events_close(&followed.events);
	}
	rdmacm_leave();
	return err;
}
