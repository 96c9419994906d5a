/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <unistd.h>

#include "cancelled.h"

static void *cancelled_main(void *arg)
{
	struct cancelled *c = arg;

	if (!c->sleeps)
		pthread_cancel(pthread_self());
	c->rc = c->call(c->arg);
	c->returned = true;
	pthread_testcancel();
	return NULL;
}

static bool cancelled_joins(struct cancelled *c)
{
	void *end;

	MUST_EQ(pthread_join(c->thread, &end), 0);
	MUST(end == PTHREAD_CANCELED);
	return true;
}

bool cancelled_calls(struct cancelled *c, int (*call)(void *arg), void *arg)
{
	*c = (struct cancelled){ .call = call, .arg = arg };
	MUST_EQ(pthread_create(&c->thread, NULL, cancelled_main, c), 0);
	return cancelled_joins(c);
}

bool cancelled_sleeps(int (*call)(void *arg), void *arg)
{
	struct cancelled c = { .call = call, .arg = arg, .sleeps = true };

	MUST_EQ(pthread_create(&c.thread, NULL, cancelled_main, &c), 0);
	usleep(50000);
	MUST_EQ(pthread_cancel(c.thread), 0);
	MUST(cancelled_joins(&c));
	MUST(!c.returned);
	return true;
}
