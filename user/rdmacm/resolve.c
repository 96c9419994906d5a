/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdma_resolve_addr(): finds the device, the source address and the neighbour for a destination.
 *
 * The program's thread asks for the kernel's route; an error there is the call's error. If a
 * neighbour has not answered yet, the resolution waits: whenever the kernel reports a changed
 * neighbour, a pool thread asks again for missing ones, until the deadline.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../os/clock.h"
#include "../os/netdev_cache.h"

#include "addr.h"
#include "cm_device.h"
#include "cm_thread.h"
#include "qp1.h"
#include "rdmacm.h"

struct addr_resolve {
	struct rdmacm_id *id;
	struct address to;
	struct netdev_route route;
	struct rdmacm_device *device; /* a separate reference */
	u8 mac[6];
	u8 peer_mac[6]; /* of the next hop; 0: a loopback address */
	struct cm_timer deadline;
	bool pending; /* the id is in ID_ADDR_QUERY for this */
	bool asked;   /* a thread is asking for the neighbour */
	bool changed; /* some neighbour changed since it asked */
	u32 round;
};

/* The kernel's messages about neighbours, and the work of asking again. */
static struct {
	struct source input;
	struct cm_work work;
	bool is_open, running, again;
	u32 round;
	struct neigh_cache cache; /* under the lock */
} neighbours;

/* ---- the end of a resolution ---- */

static int resolve_show(struct rdmacm_event *ev)
{
	route_show(ev->id);
	ev->pub.status = id_show_device(ev->id);
	if (ev->pub.status)
		ev->pub.event = RDMA_CM_EVENT_ADDR_ERROR;
	return 0;
}

/* Sets the id's addresses and device. Caller holds the lock. */
static void resolve_use(struct rdmacm_id *id, struct addr_resolve *r)
{
	struct address local = { .ip = r->route.local, .port = addr_local(id)->port };
	struct address to = r->to;

	if (address_is_link_local(&local))
		local.scope = r->route.ifindex;
	id->path.local = id->path.remote = r->route.local;
	id->path.hop_limit = r->route.hop_limit;
	/* both ends of a loopback connection keep the loopback name; packets use an interface's */
	if (!cm_is_loopback(&to.ip))
		id->path.remote = to.ip;
	else if (id->device)
		to.ip = local.ip;
	else
		local.ip = to.ip;
	address_put(&local, (struct sockaddr *)&id->src);
	address_put(&to, (struct sockaddr *)&id->dst);
	id->binding->use.local = local;
	id->binding->use.remote = to;
	if (!id->device) {
		id->device = r->device;
		r->device = NULL;
	}
	memcpy(id->mac, r->mac, sizeof(id->mac));
	memcpy(id->peer_mac, r->peer_mac, sizeof(id->peer_mac));
}

/* Ends the resolution and queues the event. status: 0 or -errno. Caller holds the lock. */
static void resolve_finish(struct addr_resolve *r, int status)
{
	struct rdmacm_id *id = r->id;
	struct rdmacm_event *ev;

	if (!r->pending)
		return;
	r->pending = false;
	cm_timer_clear(&r->deadline);
	if (!id_move(id, ID_ADDR_QUERY, status ? ID_ADDR_BOUND : ID_ADDR_RESOLVED))
		return;
	ev = event_new(id, status ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, status);
	if (!ev)
		return;
	if (!status) {
		resolve_use(id, r);
		ev->deliver = resolve_show;
	}
	event_post(ev);
}

static void resolve_expired(struct cm_timer *timer)
{
	resolve_finish(container_of(timer, struct addr_resolve, deadline), -ETIMEDOUT);
}

/* Caller holds the lock; no thread is asking. */
static void resolve_free(struct addr_resolve *r)
{
	cm_timer_clear(&r->deadline);
	if (r->device)
		cm_device_put(r->device);
	free(r);
}

void resolve_forget(struct rdmacm_id *id)
{
	struct addr_resolve *r = id->resolve;

	if (!r)
		return;
	r->pending = false;
	id->resolve = NULL;
	resolve_free(r);
}

/* ---- neighbours ---- */

/* Asks once. Returns 0; -EHOSTUNREACH: not yet; or the kernel's error. Without the lock. */
static int resolve_try(const struct addr_resolve *r, struct path *path)
{
	struct netdev_session *session;
	struct netdev nd;
	int err = interfaces_get(r->route.ifindex, &nd);

	if (!err)
		err = interfaces_session(&session);
	if (!err)
		err = netdev_resolve(session, &nd, &r->route.local, &r->to.ip, 0, NULL, path);
	return err;
}

static struct neigh_key resolve_key(const struct addr_resolve *r)
{
	return (struct neigh_key){ .ifindex = r->route.ifindex,
				   .local = r->route.local,
				   .peer = r->to.ip };
}

/* Looks for an answer in the cache. Under the lock. */
static bool resolve_is_known(struct addr_resolve *r)
{
	const struct neigh_key key = resolve_key(r);
	const struct path *path = neigh_cache_find(&neighbours.cache, &key);

	if (path)
		memcpy(r->peer_mac, path->dmac, sizeof(r->peer_mac));
	return path;
}

/*
 * Asks again while neighbours change, with the id pinned. Caller holds the lock, which is released
 * while asking. Returns 0 or the kernel's error; -EHOSTUNREACH: not yet.
 */
static int resolve_ask(struct addr_resolve *r)
{
	const struct neigh_key key = resolve_key(r);
	struct path path;
	int err;

	r->asked = true;
	do {
		r->changed = false;
		rdmacm_leave();
		err = resolve_try(r, &path);
		rdmacm_enter();
	} while (err == -EHOSTUNREACH && r->changed && r->pending);
	r->asked = false;
	if (err)
		return err;
	memcpy(r->peer_mac, path.dmac, sizeof(r->peer_mac));
	if (!r->changed)
		neigh_cache_add(&neighbours.cache, &key, neighbours.cache.changes, &path);
	return 0;
}

/* Returns a resolution not asked for in this round. Caller holds the lock. */
static struct addr_resolve *neighbours_next(u32 round)
{
	for (struct rdmacm_id *id = id_all; id; id = id->all_next) {
		struct addr_resolve *r = id->resolve;

		if (!r || !r->pending || r->asked || r->round == round)
			continue;
		r->round = round;
		return r;
	}
	return NULL;
}

static void neighbours_work(struct cm_work *work)
{
	struct addr_resolve *r;

	(void)work;
	rdmacm_enter();
	neighbours.round++;
	while ((r = neighbours_next(neighbours.round))) {
		struct rdmacm_id *id = r->id;
		int err;

		addr_pin(id);
		err = resolve_ask(r);
		if (err != -EHOSTUNREACH)
			resolve_finish(r, err);
		addr_unpin(id);
	}
	rdmacm_leave();
}

static void neighbours_ask(void);

static void neighbours_done(struct cm_work *work)
{
	(void)work;
	neighbours.running = false;
	if (neighbours.again)
		neighbours_ask();
}

/* Caller holds the lock. */
static void neighbours_ask(void)
{
	neighbours.again = neighbours.running;
	if (neighbours.running)
		return;
	neighbours.work.do_work = neighbours_work;
	neighbours.work.done = neighbours_done;
	neighbours.running = true;
	cm_work_add(&neighbours.work);
}

/* Caller holds the lock. */
static void neighbours_hear(void)
{
	const enum netdev_news news = netdev_neighbour_news_take(neighbours.input.fd);
	bool is_waited_for = false;

	if (news == NETDEV_NO_NEWS)
		return;
	neigh_cache_forget(&neighbours.cache);
	for (struct rdmacm_id *id = id_all; id; id = id->all_next) {
		if (!id->resolve || !id->resolve->pending)
			continue;
		id->resolve->changed = true;
		is_waited_for |= !id->resolve->asked;
	}
	/* a failure helps no waiter, and a flood from silent addresses causes many */
	if (news != NETDEV_ANSWERED)
		return;
	if (is_waited_for)
		neighbours_ask();
	for (struct rdmacm_device *dev = devices_first(); dev; dev = dev->next)
		if (dev->qp1 && !dev->gone)
			qp1_hear(dev->qp1);
}

static void neighbours_readable(struct source *s, u32 events)
{
	neighbours_hear();
}

void neighbours_after_fork(void)
{
	if (neighbours.is_open)
		close(neighbours.input.fd);
	neighbours.is_open = neighbours.running = false;
	neigh_cache_forget(&neighbours.cache);
}

int neighbours_open(void)
{
	int fd, err;

	if (neighbours.is_open)
		return 0;
	fd = netdev_neighbour_news();
	if (fd < 0)
		return fd;
	neighbours.input.fd = fd;
	neighbours.input.ready = neighbours_readable;
	err = loop_add(&cm_loop, &neighbours.input);
	if (err)
		close(fd);
	neighbours.is_open = !err;
	return err;
}

/* ---- the call ---- */

/*
 * Finds the first interface that is up with an address of the family. Returns 0, -ENODEV or -errno.
 */
static int resolve_loopback(const struct address *to, struct netdev_route *route)
{
	struct netdev *list;
	int n = netdev_list(&list), err = -ENODEV;

	for (int i = 0; i < n && err; i++)
		for (u32 j = 0; j < list[i].num_gids && err && list[i].is_up; j++) {
			const struct gid *gid = &list[i].gid[j].gid;

			if (gid_is_ipv4(gid) != address_is_ipv4(to))
				continue;
			*route = (struct netdev_route){ .ifindex = list[i].ifindex,
							.is_local = true,
							.hop_limit = 64,
							.local = *gid };
			err = 0;
		}
	if (n >= 0)
		free(list);
	return n < 0 ? n : err;
}

/* Replaces the any address by 127.0.0.1 or ::1. */
static void resolve_name_loopback(struct address *to)
{
	if (!cm_is_any(&to->ip))
		return;
	if (address_is_ipv4(to))
		to->ip.raw[12] = 127;
	to->ip.raw[15] = 1;
}

/* Sets r->route for a bound id. Returns 0 or the call's -errno; *told: an error for an event. */
static int resolve_route_to(struct rdmacm_id *id, struct addr_resolve *r, int *told)
{
	const struct address *local = addr_local(id);
	const bool is_bound = id->device != NULL;
	struct netdev_session *session;
	int err;

	if (address_is_any(&r->to)) {
		resolve_name_loopback(&r->to);
		if (!is_bound)
			return resolve_loopback(&r->to, &r->route);
		r->route = (struct netdev_route){ .ifindex = id->device->ifindex,
						  .is_local = true,
						  .hop_limit = 64,
						  .local = local->ip };
		return 0;
	}
	err = interfaces_session(&session);
	if (!err)
		err = netdev_route(session, &r->to.ip, is_bound ? &local->ip : NULL,
				   is_bound ? id->device->ifindex : r->to.scope, &r->route);
	if (err == -ENODEV) {
		*told = err;
		return 0;
	}
	return err;
}

/* Gets the device of the route. Errors are reported by an event. */
static int resolve_device(struct addr_resolve *r)
{
	struct netdev nd;
	int err = interfaces_get(r->route.ifindex, &nd);

	if (err)
		return err;
	memcpy(r->mac, nd.mac, sizeof(r->mac));
	err = cm_device_get(r->route.ifindex, &r->device);
	if (!err)
		err = cm_device_start(r->device);
	return err ? err : interfaces_follow();
}

/* Starts from ID_ADDR_QUERY. Returns 0 or the call's -errno. */
static int resolve_begin(struct rdmacm_id *id, struct addr_resolve *r, u32 timeout_ms)
{
	int told = 0, err = resolve_route_to(id, r, &told);

	if (!err && !told)
		told = resolve_device(r);
	if (err)
		return err;
	rdmacm_enter();
	r->pending = true;
	r->deadline.fn = resolve_expired;
	if (!told)
		err = neighbours_open();
	/* loopback packets need no neighbour */
	if (!err && !told && !address_is_any(&r->to)) {
		neighbours_hear();
		addr_pin(id);
		err = resolve_is_known(r) ? 0 : resolve_ask(r);
		addr_unpin(id);
	}
	if (err == -EHOSTUNREACH) {
		cm_timer_set(&r->deadline,
			       clock_now_ns() + (u64)timeout_ms * NSEC_PER_MSEC);
		/* a neighbour may have changed before the deadline was set */
		if (r->changed)
			neighbours_ask();
		err = 0;
	} else if (!err) {
		resolve_finish(r, told);
	} else {
		r->pending = false;
	}
	rdmacm_leave();
	return err;
}

/* Moves an id to ID_ADDR_QUERY, and binds it if it was not. Returns 0 or -errno. */
static int resolve_prepare(struct rdmacm_id *id, const struct sockaddr *src,
			   const struct sockaddr *dst, const struct address *to)
{
	struct sockaddr_storage any = { .ss_family = dst->sa_family };
	int err = 0;

	if (id->state != ID_ADDR_BOUND) {
		if (dst->sa_family == AF_INET6)
			((struct sockaddr_in6 *)&any)->sin6_flowinfo =
				((const struct sockaddr_in6 *)dst)->sin6_flowinfo;
		err = addr_bind(id, src ? src : (const struct sockaddr *)&any, to, false);
	}
	if (err)
		return err;
	if (id->src.ss_family != dst->sa_family)
		return -EINVAL;
	rdmacm_enter();
	if (!id_move(id, ID_ADDR_BOUND, ID_ADDR_QUERY))
		err = -EINVAL;
	rdmacm_leave();
	return err;
}

static int resolve_start(struct rdmacm_id *id, const struct sockaddr *src,
			 const struct sockaddr *dst, int timeout_ms)
{
	struct sockaddr_storage *shown = &id->pub.route.addr.dst_storage, before;
	struct addr_resolve *r;
	struct address to;
	int err;

	if (!dst || !address_bytes(dst) || (src && !address_bytes(src)))
		return -EINVAL;
	if (!address_get(&to, dst))
		return dst->sa_family == AF_INET6 ? -ENETUNREACH : -ENODEV;
	err = resolve_prepare(id, src, dst, &to);
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	before = *shown;
	rdmacm_enter();
	addr_wait_unpinned(id);
	resolve_forget(id);
	if (r) {
		r->id = id;
		r->to = to;
		id->resolve = r;
		addr_copy(&id->dst, dst);
		/* before it begins: later another thread may have the event and write more */
		*shown = id->dst;
	}
	rdmacm_leave();
	err = r ? resolve_begin(id, r, (u32)timeout_ms) : -ENOMEM;
	if (err) {
		*shown = before;
		rdmacm_enter();
		id_move(id, ID_ADDR_QUERY, ID_ADDR_BOUND);
		rdmacm_leave();
		return err;
	}
	return id_complete(id);
}

EXPORT int rdma_resolve_addr(struct rdma_cm_id *cm_id, struct sockaddr *src, struct sockaddr *dst,
			     int timeout_ms)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	return rdmacm_report(err ? err : resolve_start(id, src, dst, timeout_ms));
}
