/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * librspreload.so redirects the socket calls of an unmodified program to rsocket(7).
 *
 * A descriptor of the program stands for an entry: an rsocket, or a kernel socket (if rsockets
 * cannot be used, or not yet). The descriptor is the rsocket's stand-in, whose readiness the kernel
 * knows (user/rsocket/rsocket_table.c), or a copy of the socket. Copies made by dup() share the
 * entry. Descriptors without an entry belong to the kernel.
 */
#ifndef RSPRELOAD_PRELOAD_H
#define RSPRELOAD_PRELOAD_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#define EXPORT __attribute__((visibility("default")))

/* The C library's functions. X(returns, name, arguments) */
#define REAL_CALLS(X)                                                                             \
	X(int, socket, (int, int, int))                                                           \
	X(int, bind, (int, const struct sockaddr *, socklen_t))                                   \
	X(int, listen, (int, int))                                                                \
	X(int, accept4, (int, struct sockaddr *, socklen_t *, int))                               \
	X(int, connect, (int, const struct sockaddr *, socklen_t))                                \
	X(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *))          \
	X(ssize_t, recvmsg, (int, struct msghdr *, int))                                          \
	X(ssize_t, read, (int, void *, size_t))                                                   \
	X(ssize_t, readv, (int, const struct iovec *, int))                                       \
	X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))  \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int))                                    \
	X(ssize_t, write, (int, const void *, size_t))                                            \
	X(ssize_t, writev, (int, const struct iovec *, int))                                      \
	X(ssize_t, sendfile, (int, int, off_t *, size_t))                                         \
	X(int, poll, (struct pollfd *, nfds_t, int))                                              \
	X(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))       \
	X(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *))                     \
	X(int, pselect, (int, fd_set *, fd_set *, fd_set *, const struct timespec *,              \
			 const sigset_t *))                                                       \
	X(int, shutdown, (int, int))                                                              \
	X(int, close, (int))                                                                      \
	X(int, getpeername, (int, struct sockaddr *, socklen_t *))                                \
	X(int, getsockname, (int, struct sockaddr *, socklen_t *))                                \
	X(int, setsockopt, (int, int, int, const void *, socklen_t))                              \
	X(int, getsockopt, (int, int, int, void *, socklen_t *))                                  \
	X(int, fcntl, (int, int, ...))                                                            \
	X(int, ioctl, (int, unsigned long, ...))                                                  \
	X(int, dup, (int))                                                                        \
	X(int, dup2, (int, int))                                                                  \
	X(int, dup3, (int, int, int))                                                             \
	X(int, epoll_ctl, (int, int, int, struct epoll_event *))                                  \
	X(int, close_range, (unsigned int, unsigned int, int))                                    \
	X(FILE *, fdopen, (int, const char *))                                                    \
	X(ssize_t, splice, (int, off64_t *, int, off64_t *, size_t, unsigned int))                \
	X(int, sendmmsg, (int, struct mmsghdr *, unsigned int, int))                              \
	X(int, recvmmsg, (int, struct mmsghdr *, unsigned int, int, struct timespec *))

struct real_calls {
#define REAL_MEMBER(type, name, arguments) type(*name) arguments;
	REAL_CALLS(REAL_MEMBER)
#undef REAL_MEMBER
};
/* Looked up at the first call, which may come before any constructor. */
const struct real_calls *real_calls(void);
#define real (*real_calls())

/* ---- entries ---- */

enum entry_kind {
	ENTRY_RSOCKET,
	ENTRY_KERNEL, /* a kernel socket, permanently */
	/* A kernel socket until a process uses it that will not fork (entries.c). */
	ENTRY_FORK,
	ENTRY_FORK_LISTEN,
	ENTRY_FORK_ACTIVE,
	ENTRY_FORK_PASSIVE,
};

struct watch;
struct entry {
	_Atomic int kind;  /* enum entry_kind */
	_Atomic int fd;	   /* the rsocket or the socket */
	int left;	   /* an rsocket no longer in use; -1: none */
	int references;	   /* under the lock of entries.c */
	pthread_mutex_t settling; /* held while fork_settle() works */
	bool inherited;	   /* an rsocket of the parent process */
	bool bound;	   /* by the program, as an rsocket */
	struct watch *watches; /* under the lock of poll.c */
	struct entry *free;
};

/* Returns the entry, or NULL for a descriptor of the kernel. */
struct entry *entry_of(int fd);
/*
 * The same for a call that changes the table. Returns NULL in a child of vfork(), which shares the
 * parent's memory but not its descriptors.
 */
struct entry *entry_owned(int fd);
/* Opens a descriptor for fd: returns its number, or -1 and errno with fd closed. */
int entry_open(int fd, enum entry_kind kind);
/* Shares the entry with fd, a copy of another descriptor. */
void entry_share(int fd, struct entry *entry);
/* Removes the descriptor's entry; ends the entry with its last descriptor. */
int entry_close(int fd);
/* Makes the entry, and so its descriptors, stand for fd instead. */
void entry_become(struct entry *entry, int fd, enum entry_kind kind);
/* Copies the options that both kinds of sockets have; unset ones stay at their default. */
void options_copy(int from, int (*get)(int, int, int, void *, socklen_t *), int to,
		  int (*set)(int, int, int, const void *, socklen_t));
/* Makes the kernel follow the readiness of fd. Returns 0, or -1 and errno. */
int entry_watch(int fd, struct entry *entry);
/* Closes the descriptors with entries from first to last. */
void entry_close_range(unsigned int first, unsigned int last);
/* Prints that an rsocket of the parent is unusable. */
void entry_say_inherited(int fd);

/* ---- poll.c ---- */

/* Returns whether the kernel accepts t as a timeout; NULL: no limit. */
bool is_time(const struct timespec *t);

/* ---- poll.c: epoll ---- */

/* Removes the entry from all epoll sets. */
void watches_end(struct entry *entry);
/* Called before and after the entry's descriptors change to another file. */
void watches_check(struct entry *entry);
void watches_restore(struct entry *entry);
/* For a forked child. */
void watches_forked(void);

/* ---- config.c: messages ---- */

/* Messages, each printed once per process. */
enum said {
	SAY_FORK,
	SAY_PASSED,
	SAY_STDIO,
	SAY_SPLICE,
	SAY_FCNTL,
	SAY_IOCTL,
	SAY_CONTROL,
	SAY_OPTION,
	SAY_PORTS,
};
/* Writes a line to standard error; preserves errno. */
void say_once(enum said what, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- config.c ---- */

/* Returns whether a socket of this kind should be an rsocket. */
bool config_wants(int domain, int type, int protocol);
/* Returns whether XROCE_TCP_PORTS contains the port of the address. */
bool config_is_tcp(const struct sockaddr *address, socklen_t n);
/* RDMAV_FORK_SAFE: connections are made after the fork. */
bool config_forks(void);
/* Applies RS_SQ_SIZE, RS_RQ_SIZE and RS_INLINE. */
void config_apply(int rsocket);

/* ---- entries.c: fork ---- */

/* Makes an rsocket of an entry that waited for the first use by this process. */
void fork_settle(struct entry *entry);

#endif
