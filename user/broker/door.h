/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The broker's socket: its place in the file system, its permissions, and its connections. */
#ifndef BROKER_DOOR_H
#define BROKER_DOOR_H

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#include "../base/ask.h"

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
 * Listens; makes the directory, and replaces the socket of a broker that is dead. group: -1 leaves
 * it root's. Returns 0, -EADDRINUSE (a broker has it), -EPERM (the directory is not the caller's
 * alone) or -errno.
 */
int door_open(struct door *d, u32 ifindex, mode_t mode, gid_t group);
void door_close(struct door *d);

/* Takes the next connection. Returns 0, -EAGAIN (none now) or -errno. */
int door_take(const struct door *d, struct visitor *v);

#endif
