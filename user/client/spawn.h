/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Starts a broker on demand: `xroce serve` as a separate process. */
#ifndef CLIENT_SPAWN_H
#define CLIENT_SPAWN_H

#include "../os/netdev.h"
#include "../os/options.h"
#include "../engine/pkey.h"

/* Returns whether this process has a broker's privileges; it may have dropped them. */
bool spawn_may(void);

/* The connection that `xroce serve --first` inherits. */
#define SPAWN_CLIENT_FD 3

/*
 * Starts a broker for the interface that ends shortly after its last client, and returns when it
 * listens. pkeys is its clients' table. with_sockets: this process wants a port with AF_XDP
 * sockets, unless the broker receives by UDP sockets. The broker is then no child of this process,
 * and has none of its descriptors, not even standard error. Returns the connection to it, which
 * hangs up at once if the interface has another broker; -ENOENT: the xroce command is not where it
 * is installed; -ETIMEDOUT: the broker did not start within SPAWN_MAX_S, and was killed; or -errno
 * for which the broker has printed the reason.
 */
int spawn_broker(const struct netdev *dev, const struct pkey_table *pkeys, enum port_choice port,
		 bool with_sockets);

#endif
