/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A broker that is started by need: `xroce serve` as a process of its own. */
#ifndef ATTACH_SPAWN_H
#define ATTACH_SPAWN_H

#include "../netdev/netdev.h"

/*
 * Starts a broker for the interface that ends a moment after its last client has gone, and returns
 * when it listens. It is no child of this process and has none of its descriptors but standard
 * error. Returns 0; -EPERM: it would take privileges that this process has not; -ENOENT: the xroce
 * command is not where it is installed; -EIO: it did not start, and has said why.
 */
int spawn_broker(const struct netdev *dev);

#endif
