/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "close_fd.h"
#include "loop.h"

int loop_make(struct loop *loop)
{
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? -errno : 0;
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

bool loop_turn(struct loop *loop, int timeout_ms)
{
	struct epoll_event event;
	struct source *s;

	/*
	 * One at a time, so that no handler can remove a source whose event was already fetched.
	 * The kernel moves a reported source to the end of its list of ready ones.
	 */
	if (epoll_wait(loop->epoll_fd, &event, 1, timeout_ms) != 1)
		return false;
	s = event.data.ptr;
	s->ready(s, event.events);
	return true;
}

void loop_wait(const struct loop *loop, int timeout_ms)
{
	struct pollfd p = { .fd = loop->epoll_fd, .events = POLLIN };

	poll(&p, 1, timeout_ms);
}
