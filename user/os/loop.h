/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event loop: one epoll set, one event a turn. The broker runs it in its one thread; the CM
 * thread of librdmacm runs it under rdmacm_lock.
 */
#ifndef OS_LOOP_H
#define OS_LOOP_H

#include "../engine/types.h"

/* A descriptor and its handler, embedded in the owner's struct. */
struct source {
	void (*ready)(struct source *s, u32 events); /* EPOLL*; may remove any source */
	int fd;
};

struct loop {
	int epoll_fd;
};

/* Each returns 0 or -errno. loop_make() fails if a seccomp filter refuses the calls that wait. */
int loop_make(struct loop *loop);
void loop_unmake(struct loop *loop);
int loop_add(struct loop *loop, struct source *s);
void loop_remove(struct loop *loop, struct source *s);
/*
 * The events of a socket; the hang-up is always included. LOOP_READ is called once at first, and
 * each time the peer has read a message.
 */
enum loop_event { LOOP_INPUT, LOOP_HANGUP, LOOP_READ };
void loop_listen(struct loop *loop, struct source *s, enum loop_event what);

/*
 * Waits up to timeout_ms (-1: no limit) for a ready source and calls the least recently called one,
 * so that no client delays others by sending much. Returns 1 after a call, 0 on a time-out, or
 * -errno: -EINTR for a signal.
 */
int loop_turn(struct loop *loop, int timeout_ms);

/*
 * Waits up to timeout_ms (-1: no limit) until a source may be ready, and calls none. For an owner
 * whose lock guards the sources: call this without the lock, and loop_turn(loop, 0) with it.
 * Returns 0 or -errno.
 */
int loop_wait(const struct loop *loop, int timeout_ms);

#endif
