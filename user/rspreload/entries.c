/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which descriptor of the program stands for what. Entries are used again and never freed: a thread
 * may look at one while another closes it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload.h"

enum { ENTRIES = 1 << 16 };

static struct entry *_Atomic table[ENTRIES];
static struct entry *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct real_calls calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void real_find(void)
{
#define REAL_FIND(type, name, arguments) calls.name = (type(*) arguments)dlsym(RTLD_NEXT, #name);
	REAL_CALLS(REAL_FIND)
#undef REAL_FIND
}

const struct real_calls *real_calls(void)
{
	pthread_once(&once, real_find);
	return &calls;
}

struct entry *entry_of(int fd)
{
	/* acquire: pairs with the release of an entry that was filled in */
	return fd >= 0 && fd < ENTRIES ?
		       atomic_load_explicit(&table[fd], memory_order_acquire) : NULL;
}

/* Under the lock. */
static struct entry *entry_get(void)
{
	struct entry *entry = unused;

	if (entry)
		unused = entry->free;
	else
		entry = calloc(1, sizeof(*entry));
	return entry;
}

static int close_either(int fd, enum entry_kind kind)
{
	return kind == ENTRY_RSOCKET ? rclose(fd) : real.close(fd);
}

int entry_open(int fd, enum entry_kind kind)
{
	int number = open("/dev/null", O_RDWR), saved;
	struct entry *entry = NULL;

	if (number >= ENTRIES) {
		real.close(number);
		number = -1;
		errno = EMFILE;
	}
	if (number >= 0) {
		pthread_mutex_lock(&lock);
		entry = entry_get();
		if (entry) {
			entry->kind = kind;
			entry->fd = fd;
			entry->left = -1;
			entry->references = 1;
			atomic_store_explicit(&table[number], entry, memory_order_release);
		}
		pthread_mutex_unlock(&lock);
	}
	if (entry)
		return number;
	saved = errno;
	if (number >= 0)
		real.close(number);
	close_either(fd, kind);
	errno = saved;
	return -1;
}

void entry_share(int fd, struct entry *entry)
{
	if (fd >= ENTRIES)
		return;
	pthread_mutex_lock(&lock);
	entry->references++;
	atomic_store_explicit(&table[fd], entry, memory_order_release);
	pthread_mutex_unlock(&lock);
}

int entry_end(struct entry *entry)
{
	int ret = close_either(entry->fd, entry->kind), saved = errno;

	if (entry->left >= 0)
		rclose(entry->left);
	pthread_mutex_lock(&lock);
	entry->free = unused;
	unused = entry;
	pthread_mutex_unlock(&lock);
	errno = saved;
	return ret;
}

int entry_close(int fd)
{
	struct entry *entry;
	bool last = false;

	pthread_mutex_lock(&lock);
	entry = table[fd];
	table[fd] = NULL;
	if (entry)
		last = --entry->references == 0;
	pthread_mutex_unlock(&lock);
	return last ? entry_end(entry) : 0;
}

void entry_become(struct entry *entry, int fd, enum entry_kind kind)
{
	/* Others that use it meanwhile are told EBADF or ENOTSOCK: it is one thread's to settle. */
	atomic_store(&entry->fd, fd);
	atomic_store(&entry->kind, kind);
}
