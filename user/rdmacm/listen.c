/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listening: one listener of the core at each device that has the address. */
#include <stdlib.h>

#include "../os/clock.h"
#include "conn.h"
#include "route.h"

/* What of the core's services an id listens to; the address is that of its own socket address. */
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
	/* once requests are taken: who sees it may connect */
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

/* Under the lock: at its own device, or at all of them. */
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
