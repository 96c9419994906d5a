/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event loop: one epoll set, one event a turn. The broker runs it in its one thread; the CM
 * thread of librdmacm runs it under rdmacm_lock.
 */
#ifndef OS_LOOP_H
#define OS_LOOP_H

#include "../engine/types.h"

/* A descriptor that is waited for; part of what it belongs to. */
struct source {
	void (*ready)(struct source *s, u32 events); /* EPOLL*; may end any source */
	int fd;
};

struct loop {
	int epoll_fd;
};

/* Each returns 0 or -errno. */
int loop_make(struct loop *loop);
void loop_unmake(struct loop *loop);
int loop_add(struct loop *loop, struct source *s);
void loop_remove(struct loop *loop, struct source *s);
/*
 * What of a socket is waited for. Each has the hang-up; LOOP_READ is called once at first, and each
 * time that the peer has read a message.
 */
enum loop_event { LOOP_INPUT, LOOP_HANGUP, LOOP_READ };
void loop_listen(struct loop *loop, struct source *s, enum loop_event what);

/*
 * Waits until one source is ready and calls it: the one that was called least recently, so that no
 * client can keep others waiting by sending much. Returns false if the time was up before (-1:
 * waits for ever) or a signal came.
 */
bool loop_turn(struct loop *loop, int timeout_ms);

/*
 * Waits until a source may be ready, timeout_ms at most, and calls none. For an owner whose lock
 * guards the sources: the lock is not held here, and is held around loop_turn(loop, 0).
 */
void loop_wait(const struct loop *loop, int timeout_ms);

#endif
