/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of descriptors and rsockets. A stream's number is a descriptor of /dev/null, which
 * reserves the number from other files of the program; a datagram's number is its UDP socket.
 *
 * In a forked child the parent's rsockets are closed, as their connections belong to the parent.
 * The child can create its own.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rsocket_object.h"

enum { CHUNK = 1024, CHUNKS = 1024, LOCKS = 64 };

static struct rsocket **_Atomic chunks[CHUNKS];
static pthread_mutex_t locks[LOCKS] = { [0 ... LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER };

/* Replaces the parent's rsockets in a forked child. */
struct rsocket rsocket_inherited;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void table_fork(void)
{
	u32 i, j;

	for (i = 0; i < LOCKS; i++)
		pthread_mutex_init(&locks[i], NULL);
	for (i = 0; i < CHUNKS; i++) {
		/* the child has one thread */
		struct rsocket **chunk =
			atomic_load_explicit(&chunks[i], memory_order_relaxed);

		for (j = 0; chunk && j < CHUNK; j++) {
			if (!chunk[j] || chunk[j] == &rsocket_inherited)
				continue;
			/* The parent's stand-in ends once all copies of it are closed. */
			standin_end(chunk[j]);
			chunk[j] = &rsocket_inherited;
		}
	}
}

static void table_once(void)
{
	pthread_atfork(NULL, NULL, table_fork);
}

/* Returns the slot of a descriptor; NULL: beyond the table, or (make false) never used. */
static struct rsocket **table_place(int fd, bool make)
{
	struct rsocket **chunk, **none = NULL;

	if (fd < 0 || fd >= CHUNK * CHUNKS)
		return NULL;
	/* acquire: pairs with the release below, of a chunk of zeros */
	chunk = atomic_load_explicit(&chunks[fd / CHUNK], memory_order_acquire);
	if (!chunk && make) {
		chunk = calloc(CHUNK, sizeof(struct rsocket *));
		if (chunk && !atomic_compare_exchange_strong_explicit(
				     &chunks[fd / CHUNK], &none, chunk, memory_order_acq_rel,
				     memory_order_acquire)) {
			free(chunk);
			chunk = none;
		}
	}
	return chunk ? &chunk[fd % CHUNK] : NULL;
}

struct rsocket *rsocket_get(int fd)
{
	struct rsocket **place = table_place(fd, false), *rs;

	if (!place)
		return NULL;
	pthread_mutex_lock(&locks[fd % LOCKS]);
	rs = *place == &rsocket_inherited ? NULL : *place;
	if (rs)
		atomic_fetch_add_explicit(&rs->references, 1, memory_order_relaxed);
	pthread_mutex_unlock(&locks[fd % LOCKS]);
	return rs;
}

struct rsocket *rsocket_find(int fd)
{
	struct rsocket *rs = rsocket_get(fd);

	if (rs)
		cancel_hold();
	else
		errno = EBADF;
	return rs;
}

void rsocket_put(struct rsocket *rs)
{
	/* acq_rel: all users' accesses come before the destruction */
	if (atomic_fetch_sub_explicit(&rs->references, 1, memory_order_acq_rel) == 1)
		rsocket_end(rs);
}

int rsocket_enter(struct rsocket *rs, int fd)
{
	struct rsocket **place = table_place(fd, true);

	pthread_once(&once, table_once);
	if (fd < 0)
		return -EBADF;
	if (!place)
		return fd < CHUNK * CHUNKS ? -ENOMEM : -EMFILE;
	pthread_mutex_lock(&locks[fd % LOCKS]);
	rs->fd = fd;
	*place = rs;
	pthread_mutex_unlock(&locks[fd % LOCKS]);
	return 0;
}

int rsocket_number(struct rsocket *rs)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = rsocket_enter(rs, fd);
	if (err)
		close(fd);
	return err;
}

struct rsocket *rsocket_remove(int fd)
{
	struct rsocket **place = table_place(fd, false), *rs;

	if (!place)
		return NULL;
	pthread_mutex_lock(&locks[fd % LOCKS]);
	rs = *place;
	*place = NULL;
	pthread_mutex_unlock(&locks[fd % LOCKS]);
	return rs;
}

void rsocket_init(struct rsocket *rs, int domain, int type)
{
	const struct rsocket_config *config = rsocket_config();

	rs->fd = -1;
	rs->domain = domain;
	rs->type = type;
	atomic_init(&rs->references, 1);
	pthread_mutex_init(&rs->sending, NULL);
	pthread_mutex_init(&rs->receiving, NULL);
	pthread_mutex_init(&rs->lock, NULL);
	rs->send_bytes = config->send_bytes;
	rs->receive_bytes = config->receive_bytes;
	rs->requests = config->requests;
	rs->receives = config->receives;
	rs->inlined = config->inlined;
	rs->iomap_size = config->iomap_size;
	standin_init(rs);
}

static size_t pages_bytes(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

void *pages_get(size_t bytes)
{
	void *pages = mmap(NULL, pages_bytes(bytes), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

void pages_put(void *pages, size_t bytes)
{
	if (pages)
		munmap(pages, pages_bytes(bytes));
}
