/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The counters of sysfs_private.h: a process that serves them (counters_fs.h) is begun before this
 * one enters the mount namespace, so that it holds none of it: it ends when the namespace is gone,
 * as then its file system is mounted nowhere. That is mounted once, and each directory of it is
 * bound to where it belongs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../os/netdev.h"
#include "../cli.h"
#include "counters_fs.h"
#include "daemonize.h"
#include "sysfs_private.h"

#define FUSE_DEVICE "/dev/fuse"

/* To open maps of other processes by their numbers; to have a broker list all of its clients. */
#define SERVER_CAPS (1ull << CAP_SYS_ADMIN | 1ull << CAP_NET_ADMIN)

/* ---- the process ---- */

struct sysfs_private_server {
	int fuse_fd, begin_fd;
	bool is_bound;
	const struct netdev *devs;
	u32 n;
};

static int server_bound_fd;

static bool server_is_bound(void)
{
	struct pollfd p = { .fd = server_bound_fd };
	int n;

	/* the late signal may come while this looks */
	do
		n = poll(&p, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 0;
}

/* Perhaps for the byte that this process began with: a sender that is slow tells of it late. */
static void server_end_unbound(int sig)
{
	const int err = errno;

	if (!server_is_bound())
		_exit(0);
	errno = err;
}

/* When the other end of the socket hangs up, the kernel sends SIGIO, and this process ends. */
static bool server_bind(int fd)
{
	const struct sigaction end = { .sa_handler = server_end_unbound, .sa_flags = SA_RESTART };

	server_bound_fd = fd;
	return !sigaction(SIGIO, &end, NULL) && !fcntl(fd, F_SETOWN, getpid()) &&
	       !fcntl(fd, F_SETFL, O_ASYNC) && server_is_bound();
}

/* By a read before the mount, the kernel would say that there is none. */
static void server_work(void *arg)
{
	const struct sysfs_private_server *s = arg;
	char byte;

	if (recv(s->begin_fd, &byte, 1, 0) != 1)
		return;
	if (!s->is_bound)
		close(s->begin_fd);
	else if (!server_bind(s->begin_fd))
		return;
	counters_fs_serve(s->fuse_fd, s->devs, s->n);
}

int sysfs_private_counters_begin(struct sysfs_private_counters *c, const struct netdev *devs, u32 n,
				 bool is_bound)
{
	struct sysfs_private_server s = { .is_bound = is_bound, .devs = devs, .n = n };
	int pair[2], err;

	*c = (struct sysfs_private_counters){ .fuse_fd = -1, .begin_fd = -1 };
	s.fuse_fd = open(FUSE_DEVICE, O_RDWR | O_CLOEXEC);
	if (s.fuse_fd < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		err = -errno;
		close(s.fuse_fd);
		return err;
	}
	s.begin_fd = pair[1];
	err = daemonize("xroce-counters", SERVER_CAPS, server_work, &s,
			(const int[]){ s.fuse_fd, pair[1] }, 2);
	close(pair[1]);
	*c = (struct sysfs_private_counters){ .is_bound = is_bound,
					      .fuse_fd = s.fuse_fd,
					      .begin_fd = pair[0] };
	if (err)
		sysfs_private_counters_end(c);
	return err;
}

static void counters_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void sysfs_private_counters_end(struct sysfs_private_counters *c)
{
	counters_close(&c->fuse_fd);
	counters_close(&c->begin_fd);
}

/* ---- the mounts ---- */

/*
 * From here on the other process alone has the descriptor of the file system: if that one has gone,
 * a look-up fails at once.
 */
static int counters_mount(struct sysfs_private_counters *c, const char *path)
{
	char options[160];
	int err = 0;

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40755,user_id=%u,group_id=%u,allow_other,default_permissions",
		 c->fuse_fd, geteuid(), getegid());
	if (mount(SYSFS_PRIVATE_SOURCE, path, "fuse.xroce",
		  MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, options))
		err = -errno;
	else if (send(c->begin_fd, "", 1, MSG_NOSIGNAL) != 1)
		err = -errno;
	if (c->is_bound && !err)
		counters_close(&c->fuse_fd);
	else
		sysfs_private_counters_end(c);
	return err;
}

int sysfs_private_counters_mount(struct sysfs_private_counters *c, const char *hidden)
{
	int err = counters_mount(c, hidden);

	c->is_mounted = true;
	if (err)
		sysfs_private_counters_unmount(c, hidden);
	return err;
}

void sysfs_private_counters_unmount(struct sysfs_private_counters *c, const char *hidden)
{
	umount2(hidden, MNT_DETACH);
	c->is_mounted = false;
}

/* One of a device's directories in dir. */
static void counters_path(char path[PATH_MAX + 64], const char *dir, const struct netdev *dev,
			  u32 i)
{
	snprintf(path, PATH_MAX + 64, "%s/" NETDEV_DEVICE_PREFIX "%s/ports/1/%s", dir, dev->name,
		 counters_dirs[i]);
}

int sysfs_private_counters_mkdir(const char *dir, const struct netdev *dev)
{
	char path[PATH_MAX + 64];

	for (u32 i = 0; i < COUNTERS_DIRS; i++) {
		counters_path(path, dir, dev, i);
		if (mkdir(path, 0755) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

void sysfs_private_counters_rmdir(const char *dir, const struct netdev *dev)
{
	char path[PATH_MAX + 64];

	for (u32 i = 0; i < COUNTERS_DIRS; i++) {
		counters_path(path, dir, dev, i);
		rmdir(path);
	}
}

int sysfs_private_counters_show(const char *hidden, const char *dir, const struct netdev *dev)
{
	char from[PATH_MAX + 64], to[PATH_MAX + 64];
	int err = 0;

	for (u32 i = 0; !err && i < COUNTERS_DIRS; i++) {
		snprintf(from, sizeof(from), "%s/%s/%s", hidden, dev->name, counters_dirs[i]);
		counters_path(to, dir, dev, i);
		if (mount(from, to, NULL, MS_BIND, NULL))
			err = -errno;
	}
	return err;
}
