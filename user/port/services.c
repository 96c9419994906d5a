/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What of the connection manager the processes of an interface share: the services that each has
 * bound, and communication ids. Ids are apart by the client's number, so nobody is asked for one.
 * Services are this process's own affair while it has the interface alone; where there is a broker
 * that one says who has which, and sends requests there. A process that becomes one of several
 * tells the broker those that it has (share.c).
 */
#include <stdlib.h>

#include "port_object.h"

#define SERVICES_ROOM 16u /* at first */

void port_cm_place(const struct port *port, u32 *first_id, u32 *num_ids)
{
	const u32 place = port->made.info.shared ? XROCE_CM_PLACE_OF(port->made.info.client) :
						   XROCE_CM_PLACE_FIRST;

	*first_id = place << XROCE_CM_ID_BITS;
	*num_ids = 1u << XROCE_CM_ID_BITS;
}

static struct bound *services_find(const struct services *all, const struct ask_service *want)
{
	for (u32 i = 0; i < all->num; i++)
		if (!memcmp(&all->at[i].service, want, sizeof(*want)))
			return &all->at[i];
	return NULL;
}

static int services_make_room(struct services *all)
{
	const u32 room = all->room ? 2 * all->room : SERVICES_ROOM;
	struct bound *at;

	if (all->num < all->room)
		return 0;
	at = realloc(all->at, room * sizeof(*at));
	if (!at)
		return -ENOMEM;
	all->at = at;
	all->room = room;
	return 0;
}

static int services_add(struct port *port, const struct ask_service *service)
{
	struct services *all = &port->services;
	int err = services_make_room(all);

	if (!err)
		err = attach_bind(&port->made, service);
	if (!err)
		all->at[all->num++] = (struct bound){ .service = *service, .users = 1 };
	return err;
}

int port_bind(struct port *port, const struct ask_service *service)
{
	struct bound *found;
	int err = 0;

	pthread_mutex_lock(&port->numbers);
	found = services_find(&port->services, service);
	if (found)
		found->users++;
	else
		err = services_add(port, service);
	pthread_mutex_unlock(&port->numbers);
	return err;
}

int port_unbind(struct port *port, const struct ask_service *service)
{
	struct services *all = &port->services;
	struct bound *found;

	pthread_mutex_lock(&port->numbers);
	found = services_find(all, service);
	if (found && !--found->users) {
		attach_unbind(&port->made, service);
		*found = all->at[--all->num];
	}
	pthread_mutex_unlock(&port->numbers);
	return found ? 0 : -ENOENT;
}

int services_tell(struct port *port)
{
	int err = 0;

	for (u32 i = 0; !err && i < port->services.num; i++)
		err = attach_bind(&port->made, &port->services.at[i].service);
	return err;
}

/* ---- what `xroce list` shows of the process that has the port ---- */

/* The first that is free, or the one of that service; NULL: there is none. */
static struct xroce_listener *services_listener(struct xroce_engine *engine,
						const struct ask_service *service)
{
	for (u32 i = 0; i < XROCE_LISTENERS; i++) {
		struct xroce_listener *l = &engine->listener[i];

		if (service ? l->families == service->families && l->service == service->id &&
				      !memcmp(l->address, service->address, sizeof(l->address)) :
			      !l->families)
			return l;
	}
	return NULL;
}

int port_show_listener(struct port *port, const struct ask_service *service)
{
	struct xroce_engine *engine = port->made.maps.engine;
	struct xroce_listener *l;

	pthread_mutex_lock(&port->listeners);
	l = services_listener(engine, NULL);
	if (l) {
		l->service = service->id;
		memcpy(l->address, service->address, sizeof(l->address));
		/* release: who sees that it is in use sees whose it is (list_listeners()) */
		atomic_store_explicit(shared_word(&l->families), service->families,
				      memory_order_release);
	}
	engine->listeners++;
	pthread_mutex_unlock(&port->listeners);
	return 0;
}

int port_hide_listener(struct port *port, const struct ask_service *service)
{
	struct xroce_engine *engine = port->made.maps.engine;
	struct xroce_listener *l;

	pthread_mutex_lock(&port->listeners);
	l = services_listener(engine, service);
	if (l)
		atomic_store_explicit(shared_word(&l->families), 0, memory_order_relaxed);
	engine->listeners--;
	pthread_mutex_unlock(&port->listeners);
	return 0;
}
