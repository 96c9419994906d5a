/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listening: one listener of the core on each device with the address. */
#include <stdlib.h>

#include "../os/clock.h"

#include "addr.h"
#include "cm_device.h"
#include "cm_thread.h"
#include "id.h"

/* Returns the core's service for an id; its address is the id's socket address. */
static struct cm_service listen_service(struct rdmacm_id *id)
{
	struct cm_service service = {
		.id = conn_service_id(id, &id->src),
		.backlog = id->backlog,
		.context = id,
		.families = CM_IPV4,
	};

	if (id->src.ss_family == AF_INET) {
		const struct sockaddr_in *sin = (const struct sockaddr_in *)&id->src;

		if (sin->sin_addr.s_addr == htobe32(INADDR_ANY))
			return service;
		service.address.raw[10] = service.address.raw[11] = 0xff;
		memcpy(service.address.raw + 12, &sin->sin_addr, sizeof(sin->sin_addr));
	} else {
		const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)&id->src;

		memcpy(service.address.raw, &sin6->sin6_addr, sizeof(sin6->sin6_addr));
		service.families = CM_IPV6;
		if (cm_is_any(&service.address) && !id->afonly)
			service.families |= CM_IPV4;
	}
	return service;
}

static int listen_add(struct rdmacm_id *id, struct rdmacm_device *dev)
{
	const struct cm_service service = listen_service(id);
	struct id_listener *l = calloc(1, sizeof(*l));
	int err = l ? cm_listen(dev->cm, &service, &l->cm) : -ENOMEM;

	if (err) {
		free(l);
		return err;
	}
	cm_device_hold(dev);
	l->device = dev;
	l->next = id->listeners;
	id->listeners = l;
	l->shown = (struct xroce_cm_service){ .id = service.id, .families = service.families };
	memcpy(l->shown.address.raw, service.address.raw, sizeof(l->shown.address.raw));
	/* only now that the core takes requests: a reader of the list may connect at once */
	xroce_cm_show(dev->verbs, &l->shown);
	return 0;
}

void listen_at(struct rdmacm_id *id, struct rdmacm_device *dev)
{
	const struct id_listener *l = id->listeners;

	while (l && l->device != dev)
		l = l->next;
	if (!l && id->state == ID_LISTEN)
		listen_add(id, dev);
}

/* At dev; NULL: everywhere. */
void listen_leave(struct rdmacm_id *id, const struct rdmacm_device *dev)
{
	struct id_listener **at = &id->listeners, *l;

	while ((l = *at)) {
		if (dev && l->device != dev) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		if (!l->device->gone) {
			xroce_cm_hide(l->device->verbs, &l->shown);
			cm_unlisten(l->device->cm, l->cm, clock_now_ns());
			cm_device_turn(l->device);
		}
		cm_device_put(l->device);
		free(l);
	}
}

/* Listens on the id's device, or on all devices. Caller holds the lock. */
static int listen_start(struct rdmacm_id *id)
{
	int err = 0;

	for (struct rdmacm_device *dev = devices_first(); dev && !err; dev = dev->next)
		if (dev->cm && !dev->gone && addr_is_of_device(id, dev))
			err = listen_add(id, dev);
	if (err)
		listen_leave(id, NULL);
	return err;
}

EXPORT int rdma_listen(struct rdma_cm_id *cm_id, int backlog)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (!err)
		err = addr_listen(id);
	if (err)
		return rdmacm_report(err);
	rdmacm_enter();
	id->backlog = backlog > 0 && backlog < CONN_BACKLOG_MAX ? (u32)backlog : CONN_BACKLOG_MAX;
	if (id_move(id, ID_ADDR_BOUND, ID_LISTEN)) {
		err = listen_start(id);
		if (err)
			id->state = ID_ADDR_BOUND;
	} else {
		err = -EINVAL;
	}
	rdmacm_leave();
	if (!err)
		route_show(id);
	return rdmacm_report(err);
}

/*
 * Updates ids when interfaces appear, disappear or change. An id that listens on all interfaces
 * also listens on a new one. An id whose interface got another MAC address gets ADDR_CHANGE. A pool
 * thread asks the kernel.
 */

static struct {
	struct cm_work work;
	bool running, again;
	u32 generation; /* generation in which it was started */
	u32 round;
} news;

/* ---- pins ---- */

static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;

void addr_pin(struct rdmacm_id *id)
{
	id->pins++;
}

void addr_unpin(struct rdmacm_id *id)
{
	if (!--id->pins)
		pthread_cond_broadcast(&unpinned);
}

void addr_wait_unpinned(struct rdmacm_id *id)
{
	while (id->pins)
		pthread_cond_wait(&unpinned, &rdmacm_lock);
}

/* ---- new interfaces ---- */

static bool listening_is_on_all(const struct rdmacm_id *id)
{
	return id->state == ID_LISTEN && !id->device && id->binding;
}

/* Returns an id not visited in this round, pinned; NULL: none left. Caller holds the lock. */
static struct rdmacm_id *listening_next(u32 round)
{
	for (struct rdmacm_id *id = id_all; id; id = id->all_next) {
		if (!listening_is_on_all(id) || id->binding->round == round)
			continue;
		id->binding->round = round;
		addr_pin(id);
		return id;
	}
	return NULL;
}

/* Removes and returns the claims on removed devices. Caller holds the lock. */
static struct addr_claim *listening_take_gone(struct addr_binding *b)
{
	struct addr_claim **at = &b->claims, *gone = NULL, *c;

	while ((c = *at)) {
		if (c->device->gone) {
			*at = c->next;
			c->next = gone;
			gone = c;
		} else {
			at = &c->next;
		}
	}
	return gone;
}

static void listening_look(struct rdmacm_id *id)
{
	struct rdmacm_device **devs;
	struct addr_claim *gone;
	int n;

	rdmacm_enter();
	gone = listening_take_gone(id->binding);
	rdmacm_leave();
	claim_drop(gone);
	n = cm_device_get_all(&devs);
	if (n < 0)
		return;
	for (int i = 0; i < n; i++) {
		struct netdev nd;
		int err = interfaces_get(devs[i]->ifindex, &nd);

		if (!err)
			err = nd.is_up && nd.num_gids ? claim_at(id->binding, devs[i]) : -ENODEV;
		rdmacm_enter();
		/* another process's claim there remains */
		if (!err && listening_is_on_all(id))
			listen_at(id, devs[i]);
		cm_device_put(devs[i]);
		rdmacm_leave();
	}
	free(devs);
}

/* ---- changed addresses ---- */

/* Caller holds the lock. */
static void listening_tell_changed(u32 ifindex, const u8 mac[6])
{
	static const u8 unknown[6]; /* of an id created by a request */

	for (struct rdmacm_id *id = id_all; id; id = id->all_next) {
		if (!id->device || id->device->ifindex != ifindex || id->device->gone)
			continue;
		if (memcmp(id->mac, mac, sizeof(id->mac)) &&
		    memcmp(id->mac, unknown, sizeof(id->mac)))
			event_tell(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		memcpy(id->mac, mac, sizeof(id->mac));
	}
}

/* Checks the interfaces of this process's devices for changed MAC addresses. */
static void listening_look_at_macs(void)
{
	u32 seen = 0;

	for (;;) {
		struct rdmacm_device *dev;
		struct netdev nd;
		u32 ifindex = 0;

		rdmacm_enter();
		/* in ifindex order, which changes of the list do not disturb */
		for (dev = devices_first(); dev; dev = dev->next)
			if (dev->ifindex > seen && (!ifindex || dev->ifindex < ifindex))
				ifindex = dev->ifindex;
		rdmacm_leave();
		if (!ifindex)
			return;
		seen = ifindex;
		if (interfaces_get(ifindex, &nd))
			continue;
		rdmacm_enter();
		listening_tell_changed(ifindex, nd.mac);
		rdmacm_leave();
	}
}

/* ---- both ---- */

static void listening_work(struct cm_work *work)
{
	struct rdmacm_id *id;

	(void)work;
	listening_look_at_macs();
	rdmacm_enter();
	news.round++;
	while ((id = listening_next(news.round))) {
		rdmacm_leave();
		listening_look(id);
		rdmacm_enter();
		addr_unpin(id);
	}
	rdmacm_leave();
}

static void listening_done(struct cm_work *work)
{
	news.running = false;
	if (news.again)
		interfaces_changed();
}

void interfaces_changed(void)
{
	if (news.generation != rdmacm_generation) {
		news.generation = rdmacm_generation;
		news.running = false;
	}
	news.again = news.running;
	if (news.running)
		return;
	news.work.do_work = listening_work;
	news.work.done = listening_done;
	news.running = true;
	cm_work_add(&news.work);
}
