/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "close_fd.h"
#include "loop.h"

int loop_make(struct loop *loop)
{
	int err;

	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return -errno;
	/* whether a seccomp filter refuses one of the two calls is found here, not in the loop */
	err = loop_wait(loop, 0);
	if (!err)
		err = loop_turn(loop, 0);
	if (err == -EINTR)
		err = 0;
	if (err)
		loop_unmake(loop);
	return err;
}

void loop_unmake(struct loop *loop)
{
	close_fd(&loop->epoll_fd);
}

int loop_add(struct loop *loop, struct source *s)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, s->fd, &event) ? -errno : 0;
}

void loop_remove(struct loop *loop, struct source *s)
{
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
}

void loop_listen(struct loop *loop, struct source *s, enum loop_event what)
{
	static const u32 events[] = { [LOOP_INPUT] = EPOLLIN, [LOOP_HANGUP] = 0,
				      [LOOP_READ] = EPOLLOUT | EPOLLET };
	struct epoll_event event = { .events = events[what], .data.ptr = s };

	epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, s->fd, &event);
}

int loop_turn(struct loop *loop, int timeout_ms)
{
	struct epoll_event event;
	struct source *s;
	int n;

	/*
	 * One at a time, so that no handler can remove a source whose event was already fetched.
	 * The kernel moves a reported source to the end of its list of ready ones.
	 */
	n = epoll_wait(loop->epoll_fd, &event, 1, timeout_ms);
	if (n != 1)
		return n < 0 ? -errno : 0;
	s = event.data.ptr;
	s->ready(s, event.events);
	return 1;
}

int loop_wait(const struct loop *loop, int timeout_ms)
{
	struct pollfd p = { .fd = loop->epoll_fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) < 0 ? -errno : 0;
}
