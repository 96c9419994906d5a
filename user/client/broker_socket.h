/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The socket at which processes ask a broker for an interface: its path, permissions and
 * connections.
 */
#ifndef CLIENT_BROKER_SOCKET_H
#define CLIENT_BROKER_SOCKET_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#include "../os/ask.h"

struct broker_socket {
	int fd;
	struct sockaddr_un at; /* abstract: it has no file */
	dev_t dev; /* with ino: the socket's file, which another may replace */
	ino_t ino;
};

/* A process that has connected. */
struct visitor {
	int fd; /* the connection: close-on-exec and non-blocking */
	u32 pid, uid;
};

/* Sets *at to the path for an interface of the calling thread's network namespace. */
void broker_socket_path(u32 ifindex, struct sockaddr_un *at);

/*
 * Returns 0 and the PID of the process that serves the interface (0 if its queue is full); -ENOENT:
 * no process listens; or -errno.
 */
int broker_socket_holder(u32 ifindex, pid_t *pid);
/*
 * Returns whether the interface's socket exists without a listener: the owner of the interface was
 * killed. False if this user may not connect to it.
 */
bool broker_socket_is_left(u32 ifindex);

/*
 * Listens at the path, and replaces an old socket: the caller holds the interface. Makes the
 * directory. group -1: the caller's. Returns 0, -EADDRINUSE (the path is a file of another type),
 * -EPERM (other users may write to the directory) or -errno.
 */
int broker_socket_open(struct broker_socket *d, u32 ifindex, mode_t mode, gid_t group);
/*
 * Listens at the abstract address of this process's user instead, which needs no privilege. Returns
 * 0, -EADDRINUSE or -errno.
 */
int broker_socket_open_abstract(struct broker_socket *d, u32 ifindex);
/* Sets *at to the abstract address of a user's broker. Returns its length. */
socklen_t broker_socket_abstract(u32 ifindex, u32 uid, struct sockaddr_un *at);
/* Removes the path if it still belongs to this socket. The descriptor stays open. */
void broker_socket_hide(const struct broker_socket *d);
/* Closes the socket and removes its path. */
void broker_socket_close(struct broker_socket *d);
/*
 * Removes sockets that killed processes left in network namespaces that no longer exist. In other
 * namespaces the interface's next holder replaces the socket.
 */
void broker_socket_bury_dead(void);
/* Identifies the process at the other end of fd. Returns 0, with fd in *v, or -errno. */
int broker_socket_visitor(int fd, struct visitor *v);
/* Accepts the next connection. Returns 0, -EAGAIN (none now) or -errno. */
int broker_socket_take(const struct broker_socket *d, struct visitor *v);

#endif
