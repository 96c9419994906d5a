/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "common_fd.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>

#include "../os/kernel.h"
#include "../os/signals.h"
#include "channel.h"

/* A thread that sleeps, on its stack. */
struct waiter {
	struct waiter *next;
	const struct rdmacm_channel *ch; /* NULL: it has been destroyed */
	sem_t raised;
};

static struct {
	int fd;	     /* an eventfd; -1: no channel has it */
	u32 channels;
	u64 events;  /* in the channels' queues */
	struct waiter *waiters;
} common = { .fd = -1 };

int common_fd_get(void)
{
	/* it blocks, as the program has not asked for anything else */
	if (common.fd < 0)
		common.fd = eventfd(0, EFD_CLOEXEC);
	if (common.fd < 0)
		return -errno;
	common.channels++;
	return common.fd;
}

void common_fd_put(struct rdmacm_channel *ch)
{
	for (struct waiter *w = common.waiters; w; w = w->next)
		if (w->ch == ch)
			w->ch = NULL;
	if (--common.channels)
		return;
	kernel_close(common.fd);
	common.fd = -1;
}

void common_fd_raise(const struct rdmacm_channel *ch)
{
	common.events++;
	kernel_event_raise(common.fd);
	for (struct waiter *w = common.waiters; w; w = w->next)
		if (w->ch == ch)
			sem_post(&w->raised);
}

void common_fd_lower(u32 n)
{
	struct pollfd p = { .fd = common.fd, .events = POLLIN };

	common.events -= n;
	/* the program may have read it */
	if (n && !common.events && kernel_await(&p, 1, 0) > 0)
		kernel_event_clear(common.fd);
}

static void waiter_leave(void *arg)
{
	struct waiter **at = &common.waiters, *w = arg;

	rdmacm_enter();
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	rdmacm_leave();
	sem_destroy(&w->raised);
}

int common_fd_wait(struct rdmacm_channel *ch)
{
	struct waiter w = { .ch = ch };
	int err;

	sem_init(&w.raised, 0, 0);
	rdmacm_enter();
	w.next = common.waiters;
	common.waiters = &w;
	if (ch->head)
		sem_post(&w.raised);
	rdmacm_leave();
	pthread_cleanup_push(waiter_leave, &w);
	cancel_open();
	do
		err = sem_wait(&w.raised) ? -errno : 0;
	while (err == -EINTR && signals_restart());
	cancel_shut();
	pthread_cleanup_pop(1);
	return err;
}

/* The parent's channels are of no use here, and its descriptor is theirs. */
void common_fd_after_fork(void)
{
	common.fd = -1;
	common.channels = 0;
	common.events = 0;
	common.waiters = NULL;
}
