/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The port follows its interface: addresses go to XDP, the path MTU goes by the link's. When the interface has gone, the port is gone: every QP is
 * in error, what is posted is flushed, nothing is received or sent any more, and nobody sleeps on the sockets.
 */
#include "port_state.h"

static void lose(struct port *port)
{
	atomic_store(&port->gone, true);
	for (u32 i = 0; i < port->num_shards; i++) {
		engine_fail(port->shard[i].engine);
		pump_run(&port->shard[i]);
	}
}

static void follow(void *arg, const struct netdev *before, const struct netdev *now)
{
	struct port *port = arg;

	port_lock(port);
	if (now) {
		port->follow_err = steer_publish_gids(port, now);
		port->made.info.path_mtu = netdev_path_mtu(now->mtu, port->made.info.multibuffer);
	} else {
		lose(port);
	}
	port_unlock(port);
}

int follow_start(struct port *port, const struct netdev *dev)
{
	int err;

	/* urgent: who hears of an address can use it, who hears that the device is gone finds its QPs in error */
	err = watch_start(dev, true, follow, port, &port->watch);
	return err ? err : port->follow_err;
}

void follow_stop(struct port *port)
{
	watch_stop(port->watch);
	port->watch = NULL;
}
