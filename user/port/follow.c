/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The port follows its interface: its GIDs are published to XDP, and the link's MTU sets the path
 * MTU. When the interface, or a shared port's broker, is gone, so is the port: every QP is in ERR,
 * posted work is flushed, no packet is received or sent, and no thread sleeps on the sockets.
 */
#include "port_object.h"

/*
 * Makes dev the port's state, and its GIDs the only ones in xroce_gid: of a shared port, the broker
 * does that. Returns 0, or -errno of the first GID that failed.
 */
static int follow_publish_gids(struct port *port, const struct netdev *dev)
{
	static const struct gid no_gid;
	int err = 0;

	if (port->made.maps.gid_fd >= 0)
		err = netdev_publish_gids(port->made.maps.gid_fd, &port->dev, dev);
	/* XDP may read a mix of the old and the new GID: then it searches xroce_gid */
	memcpy(port->made.maps.engine->gid, dev->num_gids ? dev->gid[0].gid.raw : no_gid.raw,
	       sizeof(port->made.maps.engine->gid));
	port->dev = *dev;
	memcpy(port->shards.mac, dev->mac, sizeof(port->shards.mac));
	port->shards.mtu = dev->mtu;
	return err;
}

static void follow_lose(struct port *port)
{
	/* relaxed, as are its reads: the shards' locks, held here, order the effects */
	atomic_store_explicit(&port->shards.gone, true, memory_order_relaxed);
	for (u32 i = 0; i < port->shards.num; i++) {
		engine_fail(port->shards.shard[i].engine);
		shard_turn(&port->shards.shard[i]);
	}
}

static void follow_change(void *arg, const struct netdev *before, const struct netdev *now)
{
	struct port *port = arg;

	if (before && now && before->xdp_program != now->xdp_program)
		attach_follow(&port->made);
	port_lock(port);
	if (now) {
		port->follow_err = follow_publish_gids(port, now);
		port->made.info.path_mtu = netdev_path_mtu(now->mtu, port->made.info.multibuffer);
	} else {
		follow_lose(port);
	}
	port_unlock(port);
	if (!now)
		attach_lose(&port->made);
}

int follow_start(struct port *port, const struct netdev *dev)
{
	int err;

	/*
	 * urgent: before the program hears of a new address, the port can use it; before it hears
	 * of the interface's end, its QPs are in ERR
	 */
	err = link_watch_start(dev, true, follow_change, port, &port->watch);
	if (!err)
		err = port->follow_err;
	if (!err && port_lifeline(port) >= 0)
		err = link_watch_until_hangup(port->watch, port_lifeline(port));
	return err;
}

void follow_stop(struct port *port)
{
	link_watch_stop(port->watch);
	port->watch = NULL;
}
