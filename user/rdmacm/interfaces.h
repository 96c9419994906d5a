/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel says of interfaces, asked again only after it has told of a change; and the news
 * of a change, for those that listen on all interfaces (listen.c).
 */
#ifndef RDMACM_INTERFACES_H
#define RDMACM_INTERFACES_H

#include "../os/netdev.h"
#include "loop.h"

/* Any lock, or none. Returns 0, -ENODEV or -errno. */
int interfaces_get(u32 ifindex, struct netdev *out);
/* The path MTU that the device of an interface says it has now; the same. */
int interfaces_mtu(u32 ifindex, struct ibv_context *verbs, enum ibv_mtu *mtu);
/* On which the kernel is asked for routes and neighbours; the process's for good. 0 or -errno. */
int interfaces_session(struct netdev_session **out);
/* The index of a GID in verbs as well, or -EADDRNOTAVAIL. */
int interfaces_gid_index(const struct netdev *dev, const struct gid *gid);

/*
 * From the first call on, the CM thread hears of changes and calls interfaces_changed(), with
 * rdmacm_lock. 0 or -errno. Without it.
 */
int interfaces_follow(void);
void interfaces_changed(void); /* listen.c */

/* Around fork(), inside of rdmacm_lock. */
void interfaces_before_fork(void);
void interfaces_after_fork(void);

#endif
