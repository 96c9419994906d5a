/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* accept4() */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../os/close_fd.h"
#include "../client/broker_socket.h"
#include "visitors.h"

static void visitors_stop(struct visitors *v)
{
	if (v->loop)
		loop_remove(v->loop, &v->source);
	v->loop = NULL;
}

/* Discards what the process has sent before; it can send no more. */
static void visitor_silence(int fd)
{
	char scrap[16384];

	shutdown(fd, SHUT_RD);
	while (recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT) > 0)
		;
}

static void visitors_keep(struct visitors *v, int fd, uid_t uid)
{
	const bool is_trusted = uid == 0 || uid == geteuid();
	int *at = is_trusted ? &v->trusted[v->next_trusted++ % VISITORS_TRUSTED] :
			       &v->other[v->next_other++ % VISITORS_OTHERS];

	close_fd(at);
	*at = fd;
}

/* Closes the connections of other users. Returns whether there were any. */
static bool visitors_drop_others(struct visitors *v)
{
	bool any = false;

	for (u32 i = 0; i < VISITORS_OTHERS; i++) {
		any |= v->other[i] >= 0;
		close_fd(&v->other[i]);
	}
	return any;
}

/* One a turn, as clients have one message a turn. */
static void visitors_come(struct source *s, u32 events)
{
	struct visitors *v = container_of(s, struct visitors, source);
	const int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct visitor who;

	/* without a descriptor it would be called again at once: no more are accepted */
	if (fd < 0 && (errno == EMFILE || errno == ENFILE) && !visitors_drop_others(v))
		visitors_stop(v);
	if (fd < 0)
		return;
	visitor_silence(fd);
	if (broker_socket_visitor(fd, &who))
		close(fd);
	else
		visitors_keep(v, fd, who.uid);
}

void visitors_init(struct visitors *v)
{
	*v = (struct visitors){ .source.fd = -1 };
	for (u32 i = 0; i < VISITORS_TRUSTED; i++)
		v->trusted[i] = -1;
	for (u32 i = 0; i < VISITORS_OTHERS; i++)
		v->other[i] = -1;
}

int visitors_begin(struct visitors *v, struct loop *loop, int listen_fd)
{
	v->loop = loop;
	v->source = (struct source){ .ready = visitors_come, .fd = listen_fd };
	return loop_add(loop, &v->source);
}

void visitors_end(struct visitors *v)
{
	visitors_stop(v);
	visitors_drop_others(v);
	for (u32 i = 0; i < VISITORS_TRUSTED; i++)
		close_fd(&v->trusted[i]);
}
