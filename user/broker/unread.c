/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "unread.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../os/clock.h"
#include "client.h"
#include "message.h"

/* How long an answer with descriptors may be unread; others wait at most ASK_MAX_NS for theirs. */
#define UNREAD_NS (5 * NSEC_PER_SEC)

/* ---- bounds ---- */

int unread_check(const struct client *c)
{
	if (c->user->admin)
		return 0;
	if (c->user->parked)
		return -EDQUOT;
	return c->broker->num_parked >= UNREAD_PARKED_MAX ? -ENOSPC : 0;
}

bool unread_has_room(const struct client *c)
{
	return !c->user->unread && (c->user->admin || c->broker->unread < UNREAD_MAX);
}

/* ---- live connections ---- */

void unread_start(struct client *c)
{
	c->unread_ns = clock_now_ns() + UNREAD_NS;
	c->user->unread++;
	c->broker->unread += !c->user->admin;
	loop_listen(c->broker->loop, &c->source, LOOP_READ);
}

static void unread_stop(struct client *c)
{
	c->unread_ns = NSEC_NEVER;
	c->user->unread--;
	c->broker->unread -= !c->user->admin;
}

bool unread_look(struct client *c)
{
	if (c->unread_ns == NSEC_NEVER)
		return false;
	if (!message_is_unread(c->source.fd)) {
		unread_stop(c);
		loop_listen(c->broker->loop, &c->source, LOOP_INPUT);
	}
	return true;
}

void unread_dismiss(struct client *c)
{
	if (c->unread_ns != NSEC_NEVER)
		unread_stop(c);
}

u64 unread_next_ns(const struct broker *b)
{
	u64 next_ns = NSEC_NEVER;

	for (const struct client *c = b->clients; c; c = c->next)
		next_ns = min_u64(next_ns, c->unread_ns);
	return next_ns;
}

void unread_end_silent(struct broker *b, u64 now_ns)
{
	for (struct client *c = b->clients, *next; c; c = next) {
		next = c->next;
		if (now_ns >= c->unread_ns)
			client_end(c);
	}
}

/* ---- parked connections ---- */

static void unread_release(struct unread_parked *p)
{
	struct broker *b = p->broker;
	struct unread_parked **at = &b->parked;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->user->parked -= p->has_fds;
	b->num_parked -= p->has_fds && !p->user->admin;
	quota_give(&b->quota, p->user, QUOTA_CONNECTIONS, 1);
	loop_remove(b->loop, &p->source);
	close(p->source.fd);
	free(p);
}

/*
 * Called once at first, after each message that the client reads, and when its end is closed. The
 * kernel empties that end's queue after it reports the hang-up, and reports each message of it.
 */
static void unread_parked_ready(struct source *s, u32 events)
{
	struct unread_parked *p = container_of(s, struct unread_parked, source);

	if (!message_is_unread(s->fd))
		unread_release(p);
}

bool unread_park(struct client *c)
{
	struct broker *b = c->broker;
	struct unread_parked *p;

	if (!message_is_unread(c->source.fd))
		return false;
	p = malloc(sizeof(*p));
	if (!p)
		return false;
	*p = (struct unread_parked){ .source = { .ready = unread_parked_ready,
						 .fd = c->source.fd },
				     .next = b->parked, .broker = b, .user = c->user,
				     .has_fds = c->unread_ns != NSEC_NEVER };
	loop_remove(b->loop, &c->source);
	if (loop_add(b->loop, &p->source)) {
		/* out of memory; the connection is closed with c */
		free(p);
		return false;
	}
	loop_listen(b->loop, &p->source, LOOP_READ);
	b->parked = p;
	p->user->parked += p->has_fds;
	b->num_parked += p->has_fds && !p->user->admin;
	c->source.fd = -1;
	return true;
}

void unread_hang_up(struct broker *b)
{
	struct unread_parked *p = b->parked;

	/* of a broker that ends, the hang-up shows that everything is removed (stopper_fd) */
	if (!p || b->ended)
		return;
	shutdown(p->source.fd, SHUT_RDWR);
}

void unread_end(struct broker *b)
{
	while (b->parked)
		unread_release(b->parked);
}
