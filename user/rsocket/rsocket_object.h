/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An rsocket, what streams and datagrams have in common, and the rooms' functions for each other.
 *
 * Made of the public calls of rdma_cm(7) and verbs alone. Errors are negative errnos inside; the
 * functions that programs call return -1 and set errno.
 *
 * Locks, in the order in which they are taken:
 *   sending, receiving  one thread that sends, one that receives; held while it waits
 *   lock		 all else that is in the object; never held while a thread sleeps
 *   accept_lock	 (rsocket_listen.c) which connection waits in which listener
 *
 * An object lives as long as it has references: the table of descriptors has one until rclose(),
 * each call has one while it runs. The last one that goes ends the connection.
 */
#ifndef RSOCKET_OBJECT_H
#define RSOCKET_OBJECT_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "../engine/types.h"
#include "../rdmacm/cancel.h"

#define RSOCKET_EXPORT __attribute__((visibility("default")))

struct waiter;
struct wait_link {
	struct wait_link *next, **place; /* place NULL: not in a list */
	struct waiter *waiter;
};

/* A descriptor whose readiness the kernel knows (rsocket_standin.c); under the rsocket's lock. */
struct standin {
	int fd;	     /* a copy of the program's; -1: none was asked for */
	int peer;    /* the other end; -1: closed, as there was an error */
	int channel; /* that the thread waits for; -1: none yet */
	bool watched;
	bool arrived; /* since the last look: there is to be an edge */
	bool refused; /* a call found too little room: there is to be an edge when there is */
	short shown;  /* poll events */
};

struct rsocket {
	int fd; /* -1: nobody was told of it yet */
	int domain, type;
	atomic_int references;
	pthread_mutex_t sending, receiving, lock;

	/* under lock */
	struct wait_link *waiters;
	bool closed;	 /* rclose() was called */
	int error;	 /* what SO_ERROR tells, positive */
	int file_flags;	 /* F_SETFL */
	int fd_flags;	 /* F_SETFD */
	struct standin standin;

	/* options, under lock; sizes are final once the connection or the QP is made */
	u32 send_bytes, receive_bytes;
	u32 requests, receives, inlined;
	u32 iomap_size;
	bool reuse_address, keepalive, oob_inline, no_delay, v6_only;
	u32 keepalive_s;
	int tos;
	struct linger linger;
	struct timeval receive_timeout, send_timeout;
};

/* Memory that is registered has pages of its own, as a fork may take them from the child. NULL:
 * none left. Zeros. */
void *pages_get(size_t bytes);
void pages_put(void *pages, size_t bytes);

/* ---- rsocket_config.c: files in /etc/rdma/rsocket ---- */

struct rsocket_config {
	u32 send_bytes, receive_bytes, requests, receives, inlined, iomap_size;
	u32 polling_us;	/* how long a call polls before it sleeps */
	int wake_up_ms;	/* how long rpoll() sleeps at a time */
};
const struct rsocket_config *rsocket_config(void);

#define RSOCKET_LEAST_BYTES    4096u /* of a buffer */
#define RSOCKET_MOST_BYTES     (1u << 30)
#define RSOCKET_LEAST_REQUESTS 16u
#define RSOCKET_MOST_REQUESTS  0xfffeu
#define RSOCKET_MOST_ROUTE_BYTES 65536u /* of RDMA_ROUTE */

/* ---- rsocket_table.c: descriptors ---- */

/* With a reference; NULL: it is no rsocket. */
struct rsocket *rsocket_get(int fd);
void rsocket_put(struct rsocket *rs);
/* Begins a call of a program, with a reference and a hold (cancel.h). NULL with errno EBADF. */
struct rsocket *rsocket_find(int fd);
/* A descriptor of its own becomes its number. 0 or -errno. */
int rsocket_number(struct rsocket *rs);
/* Its number is a descriptor that there is: the table has a reference from now on. 0 or -errno. */
int rsocket_enter(struct rsocket *rs, int fd);
/* The table's reference, which becomes the caller's; NULL: somebody else closed it;
 * &rsocket_inherited: it was the parent's. */
struct rsocket *rsocket_remove(int fd);
extern struct rsocket rsocket_inherited;
void rsocket_init(struct rsocket *rs, int domain, int type);

/* ---- rsocket_standin.c: descriptors whose readiness the kernel knows ---- */

void standin_init(struct rsocket *rs);
/* In rclose(), before the descriptor of rs is closed; under the lock, or in a forked child. */
void standin_end(struct rsocket *rs);
/* Releases the lock. First the state of an rsocket that is watched is written to its stand-in. */
void rsocket_unlock(struct rsocket *rs);

/* ---- rsocket_wait.c: sleeping, and being woken ---- */

#define FOREVER INT64_MAX
s64 rsocket_now(void); /* ns */
/* The end of a wait of so long; no time at all: none. 0, nothing is waited for: less than that. */
s64 rsocket_deadline(const struct timeval *timeout);

/* This thread's; NULL: there are no descriptors left (errno). */
struct waiter *waiter_self(void);
int waiter_fd(const struct waiter *waiter);
/* Under the rsocket's lock. */
void waiter_join(struct rsocket *rs, struct wait_link *link, struct waiter *waiter);
void waiter_leave(struct wait_link *link);
/* Something changed: every thread that sleeps for it looks again. */
void waiters_wake(struct rsocket *rs);
/* After the last waiter_leave(). */
void waiter_reset(struct waiter *waiter);
/*
 * Sleeps until one of the descriptors is readable, as poll() does. restart: -EINTR only if a
 * handler is installed without SA_RESTART. Returns how many have events, 0: none until the
 * deadline. In a single hold the thread may be cancelled meanwhile: then cancelled(arg) runs, with
 * no lock held but those of rsocket_take_turn().
 */
int waiter_sleep(struct pollfd *fds, nfds_t n, s64 deadline, bool restart,
		 void (*cancelled)(void *arg), void *arg);

/* Takes `sending` or `receiving` for the rest of the call. A thread that is cancelled ends it. */
void rsocket_take_turn(pthread_mutex_t *turn);
void rsocket_end_turn(pthread_mutex_t *turn);

/*
 * Waits, under the lock, until ready() or closed. 0, -EAGAIN: not until the deadline (0: now),
 * -EINTR, -EBADF: closed. A thread that is cancelled meanwhile gives back the turn and the
 * reference of its call.
 */
int rsocket_wait(struct rsocket *rs, bool (*ready)(struct rsocket *rs), s64 deadline);
bool rsocket_nonblocking(const struct rsocket *rs, int flags);

/* ---- buffers of a message: rsocket_transfer.c ---- */

/* Returns whether a buffer that has bytes is NULL. */
bool iov_has_null(const struct iovec *iov, size_t n);
/* Copies the n buffers to `to`, which has room for all of their bytes. */
void iov_gather(u8 *to, const struct iovec *iov, size_t n);

/* ---- what both kinds have ---- */

/* All under the lock. Takes what has completed; true: something changed. */
bool rsocket_progress(struct rsocket *rs);
/* Readies the descriptor that is readable when more completes; -1: there is none. */
int rsocket_arm(struct rsocket *rs);
/* It was readable: what made it so is taken away. */
void rsocket_disarm(struct rsocket *rs);
/* What poll() tells of it. */
short rsocket_events(struct rsocket *rs, short wanted);
/* Ends it; the last reference is gone. */
void rsocket_end(struct rsocket *rs);

/* ---- addresses: rsocket_address.c ---- */

socklen_t sockaddr_bytes(const struct sockaddr *address); /* 0: of no family that we have */
/* Returns 0, -EINVAL (too short), -EFAULT (NULL) or -EAFNOSUPPORT. */
int sockaddr_check(const struct sockaddr *address, socklen_t bytes);
/* As getsockname() does: as much as fits, and how much there is. */
int sockaddr_tell(const struct sockaddr *from, struct sockaddr *to, socklen_t *bytes);

#endif
