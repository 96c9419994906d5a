/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Taking an interface that another process may have. One that is there lets others in by its
 * socket (broker_socket.h), or says that it lets nobody in; one that does neither is about to
 * listen, or about to end, and is waited for.
 */
#ifndef ATTACH_IFACE_LOCK_H
#define ATTACH_IFACE_LOCK_H

#include "../os/netdev.h"

struct iface_lock {
	u32 ifindex;
	int met_fd;    /* hangs up when the holder that was met ends; -1: none */
	u64 waited_ns; /* for that one */
};

void iface_lock_begin(struct iface_lock *h, u32 ifindex);
void iface_lock_end(struct iface_lock *h);
/*
 * Returns a descriptor as netdev_hold(), or its -errno, of which -EBUSY: the holder lets nobody in,
 * or has taken far longer than it may; -EAGAIN: ask at its socket again, after iface_lock_await().
 * A process that may attach no XDP program is not given the name: -EPERM, as if it were another's.
 */
int iface_lock_take(struct iface_lock *h);
/* For the holder's end, or a moment. */
void iface_lock_await(struct iface_lock *h);

#endif
