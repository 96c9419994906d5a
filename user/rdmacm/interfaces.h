/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's state of interfaces, cached until the kernel reports a change; and notification of
 * changes, for ids that listen on all interfaces (listen.c).
 */
#ifndef RDMACM_INTERFACES_H
#define RDMACM_INTERFACES_H

#include "../os/netdev.h"
#include "loop.h"

/* With or without locks. Returns 0, -ENODEV or -errno. */
int interfaces_get(u32 ifindex, struct netdev *out);
/* The same, for the path MTU that the interface's device currently reports. */
int interfaces_mtu(u32 ifindex, struct ibv_context *verbs, enum ibv_mtu *mtu);
/* The session for routes and neighbours, valid for the process's life. Returns 0 or -errno. */
int interfaces_session(struct netdev_session **out);
/* Returns the index of a GID, same as in verbs, or -EADDRNOTAVAIL. */
int interfaces_gid_index(const struct netdev *dev, const struct gid *gid);

/*
 * Starts reporting changes: the CM thread calls interfaces_changed() with rdmacm_lock. Returns 0 or
 * -errno. Without rdmacm_lock.
 */
int interfaces_follow(void);
void interfaces_changed(void); /* listen.c */

/* Called around fork(), inside of rdmacm_lock. */
void interfaces_before_fork(void);
void interfaces_after_fork(void);

#endif
