/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Takes an interface that another process may hold. A holder admits others at its socket
 * (broker_socket.h), or declares that it admits none. A holder that does neither is about to listen
 * or to end: the caller waits for it.
 */
#ifndef BROKER_IFACE_LOCK_H
#define BROKER_IFACE_LOCK_H

#include "../os/netdev.h"

struct iface_lock {
	u32 ifindex;
	bool is_free;  /* taken without privileges */
	int met_fd;    /* hangs up when the present holder ends; -1: none */
	pid_t met_pid; /* that holder; 0: none yet, or not in this PID namespace */
	u64 waited_ns; /* for this holder */
};

/* without_privileges: for a broker with UDP sockets. */
void iface_lock_begin(struct iface_lock *h, u32 ifindex, bool without_privileges);
void iface_lock_end(struct iface_lock *h);
/*
 * Returns a descriptor or -errno, as netdev_hold() does. -EBUSY: the holder admits no others, or
 * the wait took too long. -EAGAIN: ask at its socket again, after iface_lock_await(). -EPERM also
 * if this process may not attach an XDP program: then it is not given the name.
 */
int iface_lock_take(struct iface_lock *h);
/* Waits for the end of the holder, for at most a few milliseconds. */
void iface_lock_await(struct iface_lock *h);

#endif
