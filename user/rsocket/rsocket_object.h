/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rsocket object, common to streams and datagrams, and the functions shared between the files
 * of this directory.
 *
 * rsockets use only the public calls of rdma_cm(7) and verbs. Errors are negative errnos inside;
 * functions for programs return -1 and set errno.
 *
 * Locks, in the order in which they are taken:
 *   sending, receiving  the thread that sends or receives; held while it waits
 *   lock		 the rest of the object; never held while a thread sleeps. A connection's
 *			 before its listener's, which guards the queue of connections
 * The locks of lists come last: of rsocket_close.c (streams that end), and of rsocket_listen.c
 * (listeners with waiting requests).
 *
 * An object exists while it is referenced: by the table of descriptors until rclose(), and by each
 * running call. Releasing the last reference ends the connection.
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
#include "../rdmacm/rdmacm.h"

#define RSOCKET_EXPORT __attribute__((visibility("default")))

struct waiter;
struct wait_link {
	struct wait_link *next, **place; /* place NULL: not in a list */
	struct waiter *waiter;
};

/* A descriptor whose readiness the kernel knows (rsocket_table.c); under the rsocket's lock. */
struct standin {
	int fd;	     /* a copy of the program's descriptor; -1: none was requested */
	int peer;    /* the other end; -1: closed after an error */
	int channel; /* completion channel that the thread waits for; -1: none yet */
	bool watched;
	bool arrived; /* since the last update: an edge is due */
	bool refused; /* a call found too little room: an edge is due when there is room */
	short shown;  /* poll events as shown to the kernel */
};

struct rsocket {
	int fd; /* -1: not yet returned to the program */
	int domain, type;
	atomic_int references;
	pthread_mutex_t sending, receiving, lock;

	/* under lock */
	struct wait_link *waiters;
	bool closed;	 /* rclose() was called */
	int error;	 /* the value of SO_ERROR, positive */
	int file_flags;	 /* F_SETFL */
	int fd_flags;	 /* F_SETFD */
	struct standin standin;

	/* options, under lock; sizes are final once the connection or the QP exists */
	u32 send_bytes, receive_bytes;
	u32 requests, receives, inlined;
	u32 iomap_size;
	bool reuse_address, keepalive, oob_inline, no_delay, v6_only;
	u32 keepalive_s;
	int tos;
	struct linger linger;
	struct timeval receive_timeout, send_timeout;
};

/*
 * Whole pages of zeros for registered memory, as a fork may take pages from the child. May be NULL.
 */
void *pages_get(size_t bytes);
void pages_put(void *pages, size_t bytes);

/* ---- rsocket_table.c: files in /etc/rdma/rsocket ---- */

struct rsocket_config {
	u32 send_bytes, receive_bytes, requests, receives, inlined, iomap_size;
	u32 polling_us;	/* polling time of a call before it sleeps */
	int wake_up_ms;	/* longest single sleep of rpoll() */
};
const struct rsocket_config *rsocket_config(void);

#define RSOCKET_LEAST_BYTES    4096u /* bytes of a buffer */
#define RSOCKET_MOST_BYTES     (1u << 30)
#define RSOCKET_LEAST_REQUESTS 16u
#define RSOCKET_MOST_REQUESTS  0xfffeu
#define RSOCKET_MOST_ROUTE_BYTES 65536u /* length of RDMA_ROUTE */

/* ---- rsocket_table.c: descriptors ---- */

/* Returns the rsocket with a reference; NULL: not an rsocket. */
struct rsocket *rsocket_get(int fd);
void rsocket_put(struct rsocket *rs);
/* Takes one more reference; something else has one meanwhile. */
static inline void rsocket_keep(struct rsocket *rs)
{
	atomic_fetch_add_explicit(&rs->references, 1, memory_order_relaxed);
}
/*
 * Takes the lock, for a call that changes the object or uses rs->fd. Returns 0, or -EBADF: rclose()
 * was called, and the number may be another file's. The lock is held in both cases.
 */
int rsocket_lock(struct rsocket *rs);
/* Begins a program's call, with a reference and a hold (cancel_hold()). NULL with errno EBADF. */
struct rsocket *rsocket_find(int fd);
/* Reserves a descriptor as the number of rs. Returns 0 or -errno. */
int rsocket_number(struct rsocket *rs);
/* Makes fd the number of rs, whose first reference becomes the table's. Returns 0 or -errno. */
int rsocket_enter(struct rsocket *rs, int fd);
/*
 * Removes fd and passes on the table's reference. NULL: closed; &rsocket_inherited: the parent's.
 */
struct rsocket *rsocket_remove(int fd);
extern struct rsocket rsocket_inherited;
/* Calls fn, without locks, for each rsocket of the table. */
void rsocket_each(void (*fn)(struct rsocket *rs, s64 arg), s64 arg);
void rsocket_init(struct rsocket *rs, int domain, int type);

/* ---- rsocket_table.c: descriptors whose readiness the kernel knows ---- */

/* Ends the stand-in in rclose() before rs->fd is closed. Under the lock, or in a forked child. */
void standin_end(struct rsocket *rs);
/* Releases the lock, after writing the state of a watched rsocket to its stand-in. */
void rsocket_unlock(struct rsocket *rs);

/* ---- rsocket_wait.c: sleeping and waking ---- */

#define FOREVER INT64_MAX
s64 rsocket_now(void); /* ns */
/* Returns the end of a wait: no limit for a timeout of 0, no wait (0) for a negative one. */
s64 rsocket_deadline(const struct timeval *timeout);

/* Wakes all threads that sleep for rs, after a change: each checks again. */
void waiters_wake(struct rsocket *rs);

/*
 * Takes `sending` or `receiving` for the rest of the call. Cancelling the thread releases it.
 * Returns 0, or -EAGAIN: another thread's call had it until the deadline (0: no wait).
 */
int rsocket_take_turn(pthread_mutex_t *turn, s64 deadline);
void rsocket_end_turn(pthread_mutex_t *turn);

/*
 * Waits until ready() or closed. Returns 0, -EAGAIN: deadline (0: no wait), -EINTR, or -EBADF:
 * closed. Caller holds the lock. A thread that is cancelled here releases the turn and the
 * reference of its call.
 */
int rsocket_wait(struct rsocket *rs, bool (*ready)(struct rsocket *rs), s64 deadline);
/*
 * The same, but neither signals nor a lack of descriptors or memory end the wait: for steps that
 * must not be lost.
 */
int rsocket_wait_on(struct rsocket *rs, bool (*ready)(struct rsocket *rs), s64 deadline);
bool rsocket_nonblocking(const struct rsocket *rs, int flags);

/* ---- sets of descriptors: repoll.c ---- */

/* rclose() of a set. Returns 0, or -1 with errno EBADF if the descriptor is none. */
int repoll_close(int fd);
/* Removes a descriptor that is being closed from all sets. */
void repoll_forget(int fd);

/* ---- buffers of a message: rsocket_transfer.c ---- */

/* Returns whether a non-empty buffer is NULL. */
bool iov_has_null(const struct iovec *iov, size_t n);
/* Copies the n buffers to `to`, which has room for all of their bytes. */
void iov_gather(u8 *to, const struct iovec *iov, size_t n);

/* ---- functions of both kinds ---- */

/* Processes completions; true: something changed. This and the next three: under the lock. */
bool rsocket_progress(struct rsocket *rs);
/* Arms the descriptor that becomes readable with the next completion; -1: there is none. */
int rsocket_arm(struct rsocket *rs);
/* Clears that descriptor after it was readable. */
void rsocket_disarm(struct rsocket *rs);
/* Returns the events for poll(). */
short rsocket_events(struct rsocket *rs, short wanted);
/* Destroys rs, which has no references left. */
void rsocket_end(struct rsocket *rs);

/* ---- addresses: rsocket.c ---- */

socklen_t sockaddr_bytes(const struct sockaddr *address); /* 0: unsupported family */
/* Returns 0, -EINVAL (too short), -EFAULT (NULL) or -EAFNOSUPPORT. */
int sockaddr_check(const struct sockaddr *address, socklen_t bytes);
/* As getsockname(): copies as much as fits, and returns the full size. */
int sockaddr_tell(const struct sockaddr *from, struct sockaddr *to, socklen_t *bytes);
/* Whether two addresses are of the same family and host; the ports do not matter. */
bool sockaddr_is_same_host(const struct sockaddr *a, const struct sockaddr *b);
/* Returns the bytes of the host's address, and their number in *bytes; 0: unsupported family. */
const void *sockaddr_host(const struct sockaddr *address, size_t *bytes);

#endif
