/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* struct ucred */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../os/clock.h"
#include "../os/close_fd.h"
#include "../os/kernel.h"
#include "../os/privilege.h"
#include "iface_lock.h"

/* The longest wait for one holder. On a loaded machine a broker takes seconds to start or end. */
#define IFACE_LOCK_MAX_NS (20 * NSEC_PER_SEC)
/* The interval between two looks at its socket. */
#define IFACE_LOCK_LOOK_NS (5 * NSEC_PER_MSEC)

void iface_lock_begin(struct iface_lock *h, u32 ifindex, bool without_privileges)
{
	*h = (struct iface_lock){
		.ifindex = ifindex, .is_free = without_privileges, .met_fd = -1
	};
}

void iface_lock_end(struct iface_lock *h)
{
	close_fd(&h->met_fd);
}

/*
 * Takes the name, but only with privileges. Without them the next step fails, and a privileged
 * process that arrives at that moment would find the name taken, and run without it.
 */
static int iface_lock_take_name(const struct iface_lock *h)
{
	int fd;

	if (h->is_free || privilege_may_attach())
		return netdev_hold(h->ifindex);
	fd = netdev_meet_holder(h->ifindex);
	if (fd < 0)
		return -EPERM;
	close(fd);
	return -EBUSY;
}

/* Connects once to each holder. The time starts again with another holder. */
static void iface_lock_meet(struct iface_lock *h)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	h->met_fd = netdev_meet_holder(h->ifindex);
	if (h->met_fd < 0 || getsockopt(h->met_fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
	    cred.pid == h->met_pid)
		return;
	h->met_pid = cred.pid;
	h->waited_ns = 0;
}

int iface_lock_take(struct iface_lock *h)
{
	int fd;

	if (h->met_fd < 0) {
		fd = iface_lock_take_name(h);
		if (fd != -EBUSY)
			return fd;
		iface_lock_meet(h);
	}
	if (netdev_is_alone(h->ifindex, h->met_fd))
		return -EBUSY;
	return h->waited_ns >= IFACE_LOCK_MAX_NS ? -EBUSY : -EAGAIN;
}

void iface_lock_await(struct iface_lock *h)
{
	const u64 begin_ns = clock_now_ns();
	struct pollfd p = { .fd = h->met_fd };

	/* the holder has ended, or has dropped the connection for newer ones (visitors.h) */
	if (kernel_await(&p, 1, begin_ns + IFACE_LOCK_LOOK_NS) > 0)
		iface_lock_end(h);
	h->waited_ns += clock_now_ns() - begin_ns;
}
