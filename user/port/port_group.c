/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups of a port. An interface is a member of a group while any QP is attached to it.
 * Under port->numbers, as the broker may be asked.
 */
#include <errno.h>
#include <stdlib.h>

#include "../os/clock.h"
#include "../os/kernel.h"
#include "port_object.h"

struct port_group {
	struct port_group *next;
	struct gid address;
	int fd; /* of the membership in the kernel */
};

static struct port_group **port_group_place(struct port *port, const struct gid *address)
{
	struct port_group **p = &port->groups;

	while (*p && !gid_equal(&(*p)->address, address))
		p = &(*p)->next;
	return p;
}

/* Makes the interface a member, and reports the group to the broker. Returns 0 or -errno. */
static int port_group_enter(struct port *port, const struct gid *address)
{
	struct port_group **place = port_group_place(port, address), *g;
	int fd, err;

	if (*place)
		return 0;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	fd = netdev_join(port->ifindex, address);
	err = fd < 0 ? fd : attach_group(&port->made, address);
	if (err) {
		if (fd >= 0)
			kernel_close(fd);
		free(g);
		return err;
	}
	*g = (struct port_group){ .address = *address, .fd = fd };
	*place = g;
	return 0;
}

static void port_group_remove(struct port_group **place)
{
	struct port_group *g = *place;

	*place = g->next;
	kernel_close(g->fd);
	free(g);
}

/* Ends the interface's membership, unless a QP is attached. */
static void port_group_leave(struct port *port, const struct gid *address)
{
	struct port_group **place = port_group_place(port, address);
	u32 members;

	port_lock(port);
	members = group_members(port_engine(port), address);
	port_unlock(port);
	if (!*place || members)
		return;
	if (!port->shards.dead)
		attach_leave_group(&port->made, address);
	port_group_remove(place);
}

static int port_group_attach(struct port *port, struct qp *qp, const struct gid *address)
{
	int err;

	port_lock(port);
	err = migration_attach(&port->shards, qp, address, clock_now_ns());
	if (!err) {
		err = shards_steer_group(&port->shards, address);
		if (err)
			group_detach(port_engine(port), qp, address);
	}
	port_unlock(port);
	return err;
}

int port_attach(struct port *port, struct qp *qp, const struct gid *address)
{
	int err;

	pthread_mutex_lock(&port->numbers);
	err = port->shards.dead ? -EIO : port_group_enter(port, address);
	if (!err) {
		err = port_group_attach(port, qp, address);
		if (err)
			port_group_leave(port, address);
	}
	pthread_mutex_unlock(&port->numbers);
	return err;
}

/* Caller holds port->numbers. */
static int port_group_detach(struct port *port, struct qp *qp, const struct gid *address)
{
	int err;

	port_lock(port);
	err = group_detach(port_engine(port), qp, address);
	if (!err)
		shards_steer_group(&port->shards, address);
	port_unlock(port);
	if (!err)
		port_group_leave(port, address);
	return err;
}

int port_detach(struct port *port, struct qp *qp, const struct gid *address)
{
	int err;

	pthread_mutex_lock(&port->numbers);
	err = port_group_detach(port, qp, address);
	pthread_mutex_unlock(&port->numbers);
	return err;
}

void port_detach_all(struct port *port, struct qp *qp)
{
	struct port_group *g, *next;

	pthread_mutex_lock(&port->numbers);
	for (g = port->groups; g; g = next) {
		const struct gid address = g->address;

		next = g->next;
		/* -EINVAL: it is not attached there */
		port_group_detach(port, qp, &address);
	}
	pthread_mutex_unlock(&port->numbers);
}

void port_close_groups(struct port *port)
{
	while (port->groups)
		port_group_remove(&port->groups);
}
