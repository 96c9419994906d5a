/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "unread.h"

#include "../os/clock.h"
#include "client.h"
#include "message.h"

/* How long an answer with descriptors may be unread; others wait at most ASK_MAX_NS for theirs. */
#define UNREAD_NS (5 * NSEC_PER_SEC)

void unread_start(struct client *c)
{
	c->unread_ns = clock_now_ns() + UNREAD_NS;
	c->user->unread++;
	loop_listen(c->broker->loop, &c->source, LOOP_READ);
}

static void unread_stop(struct client *c)
{
	c->unread_ns = NSEC_NEVER;
	c->user->unread--;
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
