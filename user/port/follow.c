/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The port follows its interface: the link's MTU sets the path MTU. When the interface or the
 * broker is gone, so is the port: every QP is in ERR, posted work is flushed, no packet is received
 * or sent, no thread sleeps on the sockets, and the interface's queues are free.
 */
#include "port_object.h"

/* Makes dev the port's state. The broker keeps the GIDs in xroce_gid. */
static void follow_set(struct port *port, const struct netdev *dev)
{
	static const struct gid no_gid;

	/* XDP may read a mix of the old and the new GID: then it searches xroce_gid */
	memcpy(port->made.maps.engine->gid, dev->num_gids ? dev->gid[0].gid.raw : no_gid.raw,
	       sizeof(port->made.maps.engine->gid));
	port->dev = *dev;
	memcpy(port->shards.mac, dev->mac, sizeof(port->shards.mac));
	port->shards.mtu = dev->mtu;
}

static void follow_lose(struct port *port)
{
	/* relaxed, as are its reads: the shards' locks, held here, order the effects */
	atomic_store_explicit(&port->shards.gone, true, memory_order_relaxed);
	for (u32 i = 0; i < port->shards.num; i++) {
		engine_fail(port->shards.shard[i].engine);
		shard_turn(&port->shards.shard[i]);
		xsk_lose(&port->shards.shard[i].io->xsks);
		/* the kernel keeps a socket while a thread sleeps on it */
		worker_kick(&port->shards.shard[i]);
	}
}

static void follow_change(void *arg, const struct netdev *before, const struct netdev *now)
{
	struct port *port = arg;

	/* the broker's hang-up at exit: owed ACKs are still to be sent */
	if (!now && port_has_left(port))
		return;
	port_lock(port);
	if (now)
		follow_set(port, now);
	else
		follow_lose(port);
	port_unlock(port);
}

int port_watch_end(const struct port *port, struct link_watch *watch)
{
	const int fd = attach_lifeline(&port->made);

	return fd < 0 ? 0 : link_watch_until_hangup(watch, fd);
}

int follow_start(struct port *port, const struct netdev *dev)
{
	int err;

	/*
	 * urgent: before the program hears of a new address, the port can use it; before it hears
	 * of the interface's end, its QPs are in ERR
	 */
	err = link_watch_start(dev, true, follow_change, port, &port->watch);
	return err ? err : port_watch_end(port, port->watch);
}

void follow_stop(struct port *port)
{
	link_watch_stop(port->watch);
	port->watch = NULL;
}
