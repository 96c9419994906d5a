/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The socket by which other processes ask for an interface: its place in the file system, its
 * permissions, and its connections. A broker has it, or a process that has the interface alone and
 * starts a broker for the first that comes (first.h).
 */
#ifndef ATTACH_DOOR_H
#define ATTACH_DOOR_H

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#include "../os/ask.h"

struct door {
	int fd;
	struct sockaddr_un at;
	dev_t dev; /* of the file: another may stand in its place at the end */
	ino_t ino;
};

struct visitor {
	int fd; /* close-on-exec and non-blocking */
	u32 pid, uid;
};

/* The path for an interface of the calling thread's network namespace. */
void door_path(u32 ifindex, struct sockaddr_un *at);

/*
 * Who serves the interface: 0 and its pid, -ENOENT (nobody: there is no socket, or it is a dead
 * broker's), or -errno.
 */
int door_holder(u32 ifindex, pid_t *pid);
/*
 * Tells whether the socket of the interface is there and no process listens at it: the process that
 * had the interface was killed. False if this user may not connect to it.
 */
bool door_is_left(u32 ifindex);

/*
 * Listens, in place of whatever socket there is: for who has the interface. Makes the directory.
 * group: -1 leaves it root's. Returns 0, -EADDRINUSE (a file of another kind is there), -EPERM (the
 * directory is not the caller's alone) or -errno.
 */
int door_open(struct door *d, u32 ifindex, mode_t mode, gid_t group);
/* The path goes with it: nobody has a copy of the descriptor. */
void door_close(struct door *d);
/* The path stays: another process may listen by a copy; */
void door_leave(struct door *d);
/* and after that, before this one lets go of the interface: the path goes with the last copy. */
void door_sweep(const struct door *d, u32 ifindex);
/*
 * door_dead.c: the sockets of processes that were killed go, of network namespaces that are gone:
 * of others the next holder of the interface puts its own in place of it.
 */
void door_bury_dead(void);
/*
 * Listens on the socket that another process has opened: fd, of that interface. Whoever connects
 * from here on finds this process's credentials. Returns 0 or -errno, and fd stays the caller's
 * then.
 */
int door_adopt(struct door *d, int fd, u32 ifindex);
/* The credentials are this process's, again. Returns 0 or -errno. */
int door_listen(const struct door *d);

/* The process at the other end: 0, and fd is in *v, or -errno. */
int door_visitor(int fd, struct visitor *v);
/* Takes the next connection. Returns 0, -EAGAIN (none now) or -errno. */
int door_take(const struct door *d, struct visitor *v);

#endif
