/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which process holds an interface. The holder listens on an abstract Unix socket named after the
 * interface: the name belongs to the network namespace, as the interface does, is taken by one
 * process at a time, and is gone with it, however it ends.
 *
 * Any user can bind that name first, or fill the queue of the socket behind it. So only a holder
 * that is root or the asking user counts as one; who else holds the interface is the XDP hook's to
 * say, which takes privileges.
 */
#define _GNU_SOURCE /* struct ucred */
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../base/process.h"
#include "netdev.h"

static socklen_t holder_address(u32 ifindex, struct sockaddr_un *sun)
{
	int n;

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	n = snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1, "xroce/%u", ifindex);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int netdev_hold(u32 ifindex)
{
	struct sockaddr_un sun;
	socklen_t len = holder_address(ifindex, &sun);
	char comm[32];
	int fd, ret;
	pid_t pid;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/*
	 * Nobody accepts: the credentials are all that is asked for. What is left in the queue is
	 * bounded by its length.
	 */
	if (bind(fd, (struct sockaddr *)&sun, len) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	ret = -errno;
	close(fd);
	if (ret == -EADDRINUSE)
		ret = netdev_holder(ifindex, &pid, comm, sizeof(comm)) == 0 ? -EBUSY : -EPERM;
	return ret;
}

int netdev_holder(u32 ifindex, pid_t *pid, char *comm, size_t n)
{
	struct sockaddr_un sun;
	socklen_t len = holder_address(ifindex, &sun);
	struct ucred cred = { .pid = 0, .uid = (uid_t)-1 };
	socklen_t cred_len = sizeof(cred);
	int fd, ret = 0;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun, len) == 0) {
		/* Credentials of the one that called listen(). */
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) < 0)
			ret = -errno;
	} else if (errno != EAGAIN) { /* EAGAIN: its queue is full, so there is one, but it cannot
					 be asked */
		ret = errno == ECONNREFUSED ? -ENOENT : -errno;
	}
	close(fd);
	if (ret)
		return ret;
	*pid = cred.pid;
	process_name(cred.pid, comm, n);
	return cred.uid == 0 || cred.uid == geteuid() ? 0 : -EPERM;
}
