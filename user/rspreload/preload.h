/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * librspreload.so: the socket calls of a program become those of rsocket(7), without its knowledge.
 *
 * A descriptor that the program gets stands for an entry: an rsocket, or a socket of the kernel
 * (where rsockets cannot, or not yet). It is an rsocket's stand-in, whose readiness the kernel
 * knows (user/rsocket/rsocket_standin.c), or a copy of the socket. Copies that dup() makes share
 * the entry. Descriptors without an entry are the kernel's.
 */
#ifndef RSPRELOAD_PRELOAD_H
#define RSPRELOAD_PRELOAD_H

#include <poll.h>
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
/* Found at the first call, which may come before any constructor. */
const struct real_calls *real_calls(void);
#define real (*real_calls())

/* ---- entries ---- */

enum entry_kind {
	ENTRY_RSOCKET,
	ENTRY_KERNEL, /* of the kernel, for good */
	/* Of the kernel until a process uses it that will not fork (fork.c). */
	ENTRY_FORK,
	ENTRY_FORK_LISTEN,
	ENTRY_FORK_ACTIVE,
	ENTRY_FORK_PASSIVE,
};

struct watch;
struct entry {
	_Atomic int kind;  /* enum entry_kind */
	_Atomic int fd;	   /* the rsocket or the socket */
	int left;	   /* an rsocket that is not used any more; -1 */
	int references;	   /* under the lock of entries.c */
	bool inherited;	   /* an rsocket of the process that forked this one */
	struct watch *watches; /* under the lock of epoll.c */
	struct entry *free;
};

/* NULL: the kernel's. */
struct entry *entry_of(int fd);
/*
 * The same for a call that changes the table. NULL in a child of vfork(), which has the parent's
 * memory and descriptors of its own.
 */
struct entry *entry_owned(int fd);
/* A new descriptor for it: its number, or -1 and errno; then fd is closed. */
int entry_open(int fd, enum entry_kind kind);
/* The descriptor, which is a copy of another, shares its entry. */
void entry_share(int fd, struct entry *entry);
/* The descriptor has no entry any more; with the last one that goes the entry ends. */
int entry_close(int fd);
/* Closes what it stands for. */
int entry_end(struct entry *entry);
/* The entry stands for another one from now on, and so do its descriptors. */
void entry_become(struct entry *entry, int fd, enum entry_kind kind);
/* The kernel knows the readiness of fd from now on. 0, or -1 and errno. */
int entry_watch(int fd, struct entry *entry);
/* The entries' descriptors from first to last are closed. */
void entry_close_range(unsigned int first, unsigned int last);
/* Says that an rsocket of the parent is of no use. */
void entry_say_inherited(int fd);

/* ---- poll.c ---- */

/* Returns whether the kernel takes it for a time to wait; NULL: for ever. */
bool is_time(const struct timespec *t);

/* ---- epoll.c ---- */

/* The entry is taken out of all sets. */
void watches_end(struct entry *entry);
/* Before and after the entry's descriptors become those of another file. */
void watches_check(struct entry *entry);
void watches_restore(struct entry *entry);
/* In a forked child. */
void watches_forked(void);

/* ---- say.c ---- */

/* Each is said once in a process. */
enum said {
	SAY_FORK,
	SAY_PASSED,
	SAY_STDIO,
	SAY_SPLICE,
	SAY_FCNTL,
	SAY_IOCTL,
	SAY_CONTROL,
	SAY_OPTION,
};
/* Writes a line to standard error; errno stays. */
void say_once(enum said what, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- config.c ---- */

/* Is a socket of this kind to be an rsocket? */
bool config_wants(int domain, int type, int protocol);
/* XROCE_TCP_PORTS: does it name the port of the address? */
bool config_is_tcp(const struct sockaddr *address, socklen_t n);
/* RDMAV_FORK_SAFE: connections are made after the fork. */
bool config_forks(void);
/* RS_SQ_SIZE, RS_RQ_SIZE, RS_INLINE. */
void config_apply(int rsocket);

/* ---- fork.c ---- */

/* The entry is about to be used by this process: if it waited for that, it becomes an rsocket. */
void fork_settle(struct entry *entry);
/* What a socket was told that the other should know: flags and options. */
void fork_copy_options(int from_kernel, int to_rsocket);

#endif
