/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* accept4(), struct ucred */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../os/close_fd.h"
#include "../os/netdev.h"
#include "../os/process.h"
#include "broker_socket.h"

#define BROKER_SOCKET_QUEUE 128

/* The last wait for the end of a killed process; all together take at most twice this. */
#define SWEEP_MAX_MS 8192

/* A younger socket may belong to a process that has just started. */
#define DEAD_AGE_S 60

#define NETNS_NAMES "/run/netns"

void broker_socket_path(u32 ifindex, struct sockaddr_un *at)
{
	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(at->sun_path, sizeof(at->sun_path), ASK_PATH,
		 (unsigned long long)netdev_netns(), ifindex);
}

static int broker_socket_socket(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

int broker_socket_holder(u32 ifindex, pid_t *pid)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	struct sockaddr_un at;
	int fd = broker_socket_socket(), err = 0;

	if (fd < 0)
		return fd;
	broker_socket_path(ifindex, &at);
	/* EAGAIN: its queue is full, so a process listens, but its PID is unknown */
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)))
		err = errno == EAGAIN ? 0 : errno == ECONNREFUSED ? -ENOENT : -errno;
	else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		err = -errno;
	close(fd);
	*pid = cred.pid;
	return err;
}

bool broker_socket_is_left(u32 ifindex)
{
	struct sockaddr_un at;
	const int fd = broker_socket_socket();
	bool is_left;

	if (fd < 0)
		return false;
	broker_socket_path(ifindex, &at);
	is_left = connect(fd, (const struct sockaddr *)&at, sizeof(at)) && errno == ECONNREFUSED;
	close(fd);
	return is_left;
}

/* No other user may write to it: clients trust its paths, and so do we when we unlink one. */
static int broker_socket_make_directory(void)
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

/*
 * Binds the socket to a temporary name. broker_socket_place() renames it once it listens and has
 * its mode, so that a client finds either this socket, complete, or the old one. The old one's
 * process was killed, or the kernel is closing it, as the caller holds the interface now. A file
 * of another type is not replaced.
 */
static int broker_socket_bind(const struct broker_socket *d, struct sockaddr_un *at)
{
	*at = d->at;
	strcat(at->sun_path, ".new");
	unlink(at->sun_path);
	return bind(d->fd, (const struct sockaddr *)at, sizeof(*at)) ? -errno : 0;
}

static int broker_socket_place(const struct broker_socket *d, const struct sockaddr_un *at)
{
	struct stat st;
	int err = !lstat(d->at.sun_path, &st) && !S_ISSOCK(st.st_mode) ? -EADDRINUSE : 0;

	if (!err && rename(at->sun_path, d->at.sun_path))
		err = -errno;
	if (err)
		unlink(at->sun_path);
	return err;
}

/* Sets mode and group. Until then the umask of bind() keeps the socket closed to others. */
static int broker_socket_set_mode(struct broker_socket *d, const char *path, mode_t mode,
				  gid_t group)
{
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	d->dev = st.st_dev;
	d->ino = st.st_ino;
	if (group != (gid_t)-1 && lchown(path, (uid_t)-1, group))
		return -errno;
	return chmod(path, mode) ? -errno : 0;
}

static void broker_socket_leave(struct broker_socket *d)
{
	close_fd(&d->fd);
}

int broker_socket_open(struct broker_socket *d, u32 ifindex, mode_t mode, gid_t group)
{
	int err = netdev_netns() ? broker_socket_make_directory() : -ENOENT;
	struct sockaddr_un at;
	mode_t mask;

	*d = (struct broker_socket){ .fd = -1 };
	broker_socket_path(ifindex, &d->at);
	if (err)
		return err;
	d->fd = broker_socket_socket();
	if (d->fd < 0)
		return d->fd;
	ask_refuse_descriptors(d->fd);
	mask = umask(0177);
	err = broker_socket_bind(d, &at);
	umask(mask);
	if (!err)
		err = broker_socket_set_mode(d, at.sun_path, mode, group);
	if (!err)
		err = listen(d->fd, BROKER_SOCKET_QUEUE) ? -errno : 0;
	if (!err)
		err = broker_socket_place(d, &at);
	if (err)
		broker_socket_leave(d);
	return err;
}

socklen_t broker_socket_abstract(u32 ifindex, u32 uid, struct sockaddr_un *at)
{
	int n;

	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1, ASK_ABSTRACT, ifindex, uid);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int broker_socket_open_abstract(struct broker_socket *d, u32 ifindex)
{
	socklen_t len;
	int err = 0;

	*d = (struct broker_socket){ .fd = broker_socket_socket() };
	if (d->fd < 0)
		return d->fd;
	ask_refuse_descriptors(d->fd);
	len = broker_socket_abstract(ifindex, geteuid(), &d->at);
	if (bind(d->fd, (const struct sockaddr *)&d->at, len) ||
	    listen(d->fd, BROKER_SOCKET_QUEUE)) {
		err = -errno;
		broker_socket_leave(d);
	}
	return err;
}

static bool broker_socket_is_at_path(const struct broker_socket *d)
{
	struct stat st;

	return d->ino && !lstat(d->at.sun_path, &st) && st.st_dev == d->dev && st.st_ino == d->ino;
}

void broker_socket_hide(const struct broker_socket *d)
{
	if (d->fd >= 0 && broker_socket_is_at_path(d))
		unlink(d->at.sun_path);
}

void broker_socket_close(struct broker_socket *d)
{
	broker_socket_hide(d);
	broker_socket_leave(d);
}

int broker_socket_visitor(int fd, struct visitor *v)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	*v = (struct visitor){ .fd = fd, .pid = (u32)cred.pid, .uid = cred.uid };
	return 0;
}

int broker_socket_take(const struct broker_socket *d, struct visitor *v)
{
	const int fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int err;

	if (fd < 0)
		return errno == ECONNABORTED || errno == EINTR ? -EAGAIN : -errno;
	err = broker_socket_visitor(fd, v);
	if (err)
		close(fd);
	return err;
}

/* ---- sockets of killed processes in ASK_DIR ---- */

static bool netns_has_name(u64 netns)
{
	DIR *names = opendir(NETNS_NAMES);
	struct dirent *e;
	struct stat st;
	bool has = false;

	while (!has && names && (e = readdir(names)))
		has = !fstatat(dirfd(names), e->d_name, &st, 0) && st.st_ino == netns;
	if (names)
		closedir(names);
	return has;
}

static bool netns_lives(u64 netns)
{
	return process_in_namespace("net", netns) || netns_has_name(netns);
}

static bool dead_listens(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool listens;

	snprintf(at.sun_path, sizeof(at.sun_path), ASK_DIR "/%.64s", name);
	listens = fd < 0 || !connect(fd, (const struct sockaddr *)&at, sizeof(at)) ||
		  errno != ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return listens;
}

static bool dead_is_old(int dir, const char *name)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(st.st_mode) &&
	       time(NULL) - st.st_mtime >= DEAD_AGE_S;
}

void broker_socket_bury_dead(void)
{
	DIR *dir = opendir(ASK_DIR);
	unsigned long long netns;
	struct dirent *e;
	u32 ifindex;
	int end;

	while (dir && (e = readdir(dir))) {
		end = 0;
		if (sscanf(e->d_name, "%llu-%u.sock%n", &netns, &ifindex, &end) != 2 || !end ||
		    e->d_name[end])
			continue;
		if (dead_is_old(dirfd(dir), e->d_name) && !netns_lives(netns) &&
		    !dead_listens(e->d_name))
			unlinkat(dirfd(dir), e->d_name, 0);
	}
	if (dir)
		closedir(dir);
}
