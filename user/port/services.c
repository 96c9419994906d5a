/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connection manager's resources that processes share on an interface: bound services and
 * communication ids. The client's number selects a range of ids, without a question to the broker,
 * which assigns services to clients and directs requests to them.
 */
#include <stdlib.h>

#include "port_object.h"

#define SERVICES_ROOM 16u /* initial capacity */

void port_cm_place(const struct port *port, u32 *first_id, u32 *num_ids)
{
	const u32 place = XROCE_CM_PLACE_OF(port->made.info.client);

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

/* ---- listeners that `xroce list` shows ---- */

/* Returns the entry of the service, or with NULL the first free one; NULL if there is none. */
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
		/* release: pairs with list_listeners(), which sees the service of a used entry */
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
