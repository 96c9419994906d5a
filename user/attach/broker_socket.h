/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The socket by which other processes ask for an interface: its place in the file system, its
 * permissions, and its connections. A broker has it, or a process that has the interface alone and
 * starts a broker for the first that comes (first.h).
 */
#ifndef ATTACH_BROKER_SOCKET_H
#define ATTACH_BROKER_SOCKET_H

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#include "../os/ask.h"

struct broker_socket {
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
void broker_socket_path(u32 ifindex, struct sockaddr_un *at);

/*
 * Who serves the interface: 0 and its pid, -ENOENT (nobody: there is no socket, or it is a dead
 * broker's), or -errno.
 */
int broker_socket_holder(u32 ifindex, pid_t *pid);
/*
 * Tells whether the socket of the interface is there and no process listens at it: the process that
 * had the interface was killed. False if this user may not connect to it.
 */
bool broker_socket_is_left(u32 ifindex);

/*
 * Listens, in place of whatever socket there is: for who has the interface. Makes the directory.
 * group: -1 leaves it root's. Returns 0, -EADDRINUSE (a file of another kind is there), -EPERM (the
 * directory is not the caller's alone) or -errno.
 */
int broker_socket_open(struct broker_socket *d, u32 ifindex, mode_t mode, gid_t group);
/* Removes the path if it still belongs to this socket. The descriptor stays open. */
void broker_socket_hide(const struct broker_socket *d);
/* The path goes with it: nobody has a copy of the descriptor. */
void broker_socket_close(struct broker_socket *d);
/* The path stays: another process may listen by a copy; */
void broker_socket_leave(struct broker_socket *d);
/* and after that, before this one lets go of the interface: the path goes with the last copy. */
void broker_socket_sweep(const struct broker_socket *d, u32 ifindex);
/*
 * broker_socket_dead.c: the sockets of processes that were killed go, of network namespaces that
 * are gone: of others the next holder of the interface puts its own in place of it.
 */
void broker_socket_bury_dead(void);
/*
 * Listens on the socket that another process has opened: fd, of that interface. Whoever connects
 * from here on finds this process's credentials. Returns 0 or -errno, and fd stays the caller's
 * then.
 */
int broker_socket_adopt(struct broker_socket *d, int fd, u32 ifindex);
/* The credentials are this process's, again. Returns 0 or -errno. */
int broker_socket_listen(const struct broker_socket *d);

/* The process at the other end: 0, and fd is in *v, or -errno. */
int broker_socket_visitor(int fd, struct visitor *v);
/* Takes the next connection. Returns 0, -EAGAIN (none now) or -errno. */
int broker_socket_take(const struct broker_socket *d, struct visitor *v);

#endif
