/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Starts a broker on demand: `xroce serve` as a separate process. */
#ifndef ATTACH_SPAWN_H
#define ATTACH_SPAWN_H

#include "../os/netdev.h"
#include "../engine/pkey.h"
#include "inherit.h"

/* Returns whether this process has a broker's privileges; it may have dropped them. */
bool spawn_may(void);

/*
 * Starts a broker for the interface that ends shortly after its last client, and returns when it
 * listens. pkeys is its clients' table. The broker is then no child of this process, and has none
 * of its descriptors, not even standard error. Returns 0; -EPERM: this process lacks privileges;
 * -ENOENT: the xroce command is not where it is installed; -EIO: the broker did not start, and
 * printed why; -ETIMEDOUT: it did not start within 20 s, and was killed.
 */
int spawn_broker(const struct netdev *dev, const struct pkey_table *pkeys);
/*
 * The same for a broker that inherits copies of fd, the first n descriptors of enum inherit, and
 * listens on the door among them. Also returns -errno if no more descriptors can be opened.
 */
int spawn_heir(const struct netdev *dev, const struct pkey_table *pkeys, const int *fd, u32 n);

#endif
