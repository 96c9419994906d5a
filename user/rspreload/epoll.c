/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * epoll(7): the kernel's epoll sets contain an rsocket's stand-in. Each entry records its sets.
 * Closing the entry removes it from them, though a child may have copies of its descriptors. When
 * the entry changes to another file, it is added again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "../rsocket/xroce_rsocket.h"
#include "preload.h"

struct watch {
	struct watch *next;
	int set, fd;
	struct epoll_event event;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the place of the record, or the end of the list. Caller holds the lock. */
static struct watch **watch_place(struct entry *entry, int set, int fd)
{
	struct watch **place = &entry->watches;

	while (*place && ((*place)->set != set || (*place)->fd != fd))
		place = &(*place)->next;
	return place;
}

static void watch_note(struct entry *entry, int set, int op, int fd,
		       const struct epoll_event *event)
{
	struct watch **place, *watch;

	pthread_mutex_lock(&lock);
	place = watch_place(entry, set, fd);
	watch = *place;
	if (op == EPOLL_CTL_DEL && watch) {
		*place = watch->next;
		free(watch);
	} else if (op != EPOLL_CTL_DEL) {
		if (!watch)
			*place = watch = calloc(1, sizeof(*watch));
		/* Without memory, it is just not added again later. */
		if (watch)
			*watch = (struct watch){ watch->next, set, fd, *event };
	}
	pthread_mutex_unlock(&lock);
}

EXPORT int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	struct entry *entry = entry_of(fd);
	int ret;

	if (!entry)
		return real.epoll_ctl(set, op, fd, event);
	if (op != EPOLL_CTL_DEL) {
		/* A server that waits for the first byte must be connected to get it. */
		if (entry->kind == ENTRY_FORK_PASSIVE)
			fork_settle(entry);
		if (entry_watch(fd, entry))
			return -1;
	}
	ret = real.epoll_ctl(set, op, fd, event);
	if (!ret)
		watch_note(entry, set, op, fd, event);
	return ret;
}

void watches_end(struct entry *entry)
{
	struct watch *watch;

	pthread_mutex_lock(&lock);
	while ((watch = entry->watches)) {
		entry->watches = watch->next;
		/* ENOENT: another set or file has the number by now. */
		real.epoll_ctl(watch->set, EPOLL_CTL_DEL, watch->fd, NULL);
		free(watch);
	}
	pthread_mutex_unlock(&lock);
}

/* Removes records whose set number now belongs to another set, which lacks the descriptor. */
void watches_check(struct entry *entry)
{
	struct watch **place = &entry->watches, *watch;

	pthread_mutex_lock(&lock);
	while ((watch = *place)) {
		if (!real.epoll_ctl(watch->set, EPOLL_CTL_MOD, watch->fd, &watch->event)) {
			place = &watch->next;
			continue;
		}
		*place = watch->next;
		free(watch);
	}
	pthread_mutex_unlock(&lock);
}

void watches_restore(struct entry *entry)
{
	struct watch *watch;

	pthread_mutex_lock(&lock);
	if (entry->watches && entry->kind == ENTRY_RSOCKET)
		xroce_rsocket_watch(entry->fd);
	for (watch = entry->watches; watch; watch = watch->next)
		real.epoll_ctl(watch->set, EPOLL_CTL_ADD, watch->fd, &watch->event);
	pthread_mutex_unlock(&lock);
}

void watches_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}
