/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A broker that is started by need: `xroce serve` as a process of its own. */
#ifndef ATTACH_SPAWN_H
#define ATTACH_SPAWN_H

#include "../os/netdev.h"
#include "../engine/pkey.h"
#include "inherit.h"

/* Has this process the privileges that a broker takes? It may have given them up. */
bool spawn_may(void);

/*
 * Starts a broker for the interface that ends a moment after its last client has gone, and returns
 * when it listens. pkeys is the table of its clients. It is no child of this process then and has
 * none of its descriptors, standard error neither. Returns 0; -EPERM: it would take privileges that
 * this process has not; -ENOENT: the xroce command is not where it is installed; -EIO: it did not
 * start, and has said why; -ETIMEDOUT: nor within 20 s, and was ended.
 */
int spawn_broker(const struct netdev *dev, const struct pkey_table *pkeys);
/*
 * The same for a broker that begins with the first n descriptors of enum inherit, which stay this
 * process's too: it listens by them. Also -errno for want of descriptors.
 */
int spawn_heir(const struct netdev *dev, const struct pkey_table *pkeys, const int *fd, u32 n);

#endif
