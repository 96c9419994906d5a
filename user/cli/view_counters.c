/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The counters of view.h: a process that serves them (counters_fs.h) is begun before this one
 * enters the mount namespace, so that it holds none of it: it ends when the namespace is gone, as
 * then its file system is mounted nowhere. That is mounted once, and each directory of it is bound
 * to where it belongs.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../netdev/identity.h"
#include "cli.h"
#include "counters_fs.h"
#include "outlive.h"
#include "view.h"

#define FUSE_DEVICE "/dev/fuse"
/* In the tmpfs, while the directories are bound; the kernel's devices have no such name. */
#define HIDDEN	    ".xroce-counters"

/* ---- the process ---- */

struct view_server {
	int fuse_fd, begin_fd;
	const struct netdev *devs;
	u32 n;
};

/* By a read before the mount, the kernel would say that there is none. */
static void server_work(void *arg)
{
	const struct view_server *s = arg;
	char byte;

	if (recv(s->begin_fd, &byte, 1, 0) != 1)
		return;
	close(s->begin_fd);
	counters_fs_serve(s->fuse_fd, s->devs, s->n);
}

int view_counters_begin(struct view_counters *c, const struct netdev *devs, u32 n)
{
	struct view_server s = { .devs = devs, .n = n };
	int pair[2], err;

	*c = (struct view_counters){ .fuse_fd = -1, .begin_fd = -1 };
	s.fuse_fd = open(FUSE_DEVICE, O_RDWR | O_CLOEXEC);
	if (s.fuse_fd < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		err = -errno;
		close(s.fuse_fd);
		return err;
	}
	s.begin_fd = pair[1];
	err = outlive("xroce-counters", server_work, &s, (const int[]){ s.fuse_fd, pair[1] }, 2);
	close(pair[1]);
	*c = (struct view_counters){ .fuse_fd = s.fuse_fd, .begin_fd = pair[0] };
	if (err)
		view_counters_end(c);
	return err;
}

static void counters_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void view_counters_end(struct view_counters *c)
{
	counters_close(&c->fuse_fd);
	counters_close(&c->begin_fd);
}

/* ---- the mounts ---- */

static void counters_hidden(const char *rdma, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/" HIDDEN, rdma);
}

/*
 * From here on the other process alone has the descriptor: if that one has gone, a look-up fails
 * at once.
 */
static int counters_mount(struct view_counters *c, const char *path)
{
	char options[160];
	int err = 0;

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40755,user_id=%u,group_id=%u,allow_other,default_permissions",
		 c->fuse_fd, geteuid(), getegid());
	if (mount(VIEW_SOURCE, path, "fuse.xroce", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
		  options))
		err = -errno;
	else if (send(c->begin_fd, "", 1, MSG_NOSIGNAL) != 1)
		err = -errno;
	view_counters_end(c);
	return err;
}

int view_counters_mount(struct view_counters *c, const char *rdma)
{
	char path[PATH_MAX];
	int err;

	counters_hidden(rdma, path);
	if (mkdir(path, 0700))
		return -errno;
	err = counters_mount(c, path);
	c->is_mounted = !err;
	if (err)
		view_counters_unmount(c, rdma);
	return err;
}

/* What is bound stays. */
void view_counters_unmount(struct view_counters *c, const char *rdma)
{
	char path[PATH_MAX];

	counters_hidden(rdma, path);
	umount2(path, MNT_DETACH);
	rmdir(path);
}

int view_counters_show(const struct view_counters *c, const char *rdma, const struct netdev *dev)
{
	char hidden[PATH_MAX], from[PATH_MAX + 64], to[PATH_MAX + 64];
	int err = 0;

	counters_hidden(rdma, hidden);
	for (u32 i = 0; !err && i < COUNTERS_DIRS; i++) {
		snprintf(from, sizeof(from), "%s/%s/%s", hidden, dev->name, counters_dirs[i]);
		snprintf(to, sizeof(to), "%s/" NETDEV_DEVICE_PREFIX "%s/ports/1/%s", rdma,
			 dev->name, counters_dirs[i]);
		if (mkdir(to, 0755)) {
			err = -errno;
		} else if (mount(from, to, NULL, MS_BIND, NULL)) {
			err = -errno;
			rmdir(to);
		}
	}
	return err;
}
