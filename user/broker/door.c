/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* accept4(), struct ucred */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../netdev/netdev.h"
#include "door.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* from 6.16 on; younger than the headers that we build with */
#endif

#define DOOR_QUEUE 128

void door_path(u32 ifindex, struct sockaddr_un *at)
{
	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(at->sun_path, sizeof(at->sun_path), ASK_PATH,
		 (unsigned long long)netdev_netns(), ifindex);
}

static int door_socket(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int door_holder(u32 ifindex, pid_t *pid)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	struct sockaddr_un at;
	int fd = door_socket(), err = 0;

	if (fd < 0)
		return fd;
	door_path(ifindex, &at);
	/* EAGAIN: its queue is full, so there is one, but it cannot be asked */
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)))
		err = errno == EAGAIN ? 0 : errno == ECONNREFUSED ? -ENOENT : -errno;
	else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		err = -errno;
	close(fd);
	*pid = cred.pid;
	return err;
}

/* Only we may put sockets into it: a client trusts a path in it, and so do we at the end. */
static int door_make_directory(void)
{
	const mode_t mask = umask(022);
	const int ret = mkdir(ASK_DIR, 0755) && errno != EEXIST ? -errno : 0;
	struct stat st;

	umask(mask);
	if (ret)
		return ret;
	if (lstat(ASK_DIR, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && (!st.st_uid || st.st_uid == geteuid()) &&
			       !(st.st_mode & (S_IWGRP | S_IWOTH)) ?
		       0 :
		       -EPERM;
}

/* A socket that nobody listens on was left by a broker that was killed; a file is not ours. */
static bool door_is_stale(const struct door *d, u32 ifindex)
{
	struct stat st;
	pid_t pid;

	return !lstat(d->at.sun_path, &st) && S_ISSOCK(st.st_mode) &&
	       door_holder(ifindex, &pid) == -ENOENT;
}

static int door_bind(const struct door *d, u32 ifindex)
{
	const struct sockaddr *at = (const struct sockaddr *)&d->at;

	if (!bind(d->fd, at, sizeof(d->at)))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	if (!door_is_stale(d, ifindex))
		return -EADDRINUSE;
	unlink(d->at.sun_path);
	return bind(d->fd, at, sizeof(d->at)) ? -errno : 0;
}

/* Closed to all until its mode is set: what is made by bind() has the umask's. */
static int door_set_mode(struct door *d, mode_t mode, gid_t group)
{
	struct stat st;

	if (lstat(d->at.sun_path, &st))
		return -errno;
	d->dev = st.st_dev;
	d->ino = st.st_ino;
	if (group != (gid_t)-1 && lchown(d->at.sun_path, (uid_t)-1, group))
		return -errno;
	return chmod(d->at.sun_path, mode) ? -errno : 0;
}

int door_open(struct door *d, u32 ifindex, mode_t mode, gid_t group)
{
	const int off = 0;
	int err = door_make_directory();
	mode_t mask;

	*d = (struct door){ .fd = -1 };
	if (err)
		return err;
	d->fd = door_socket();
	if (d->fd < 0)
		return d->fd;
	door_path(ifindex, &d->at);
	/*
	 * Descriptors that come with a message would be closed by us, and what is behind one may
	 * take its time (a TCP socket that lingers). Connections have the option from here; before
	 * 6.16 there is none.
	 */
	setsockopt(d->fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
	mask = umask(0177);
	err = door_bind(d, ifindex);
	umask(mask);
	if (!err)
		err = door_set_mode(d, mode, group);
	if (!err && listen(d->fd, DOOR_QUEUE))
		err = -errno;
	if (err)
		door_close(d);
	return err;
}

void door_close(struct door *d)
{
	struct stat st;

	if (d->fd < 0)
		return;
	if (d->ino && !lstat(d->at.sun_path, &st) && st.st_dev == d->dev && st.st_ino == d->ino)
		unlink(d->at.sun_path);
	close(d->fd);
	d->fd = -1;
}

int door_take(const struct door *d, struct visitor *v)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	v->fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (v->fd < 0)
		return errno == ECONNABORTED || errno == EINTR ? -EAGAIN : -errno;
	if (getsockopt(v->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		const int err = -errno;

		close(v->fd);
		return err;
	}
	v->pid = (u32)cred.pid;
	v->uid = cred.uid;
	return 0;
}
