/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../client/shared_maps.h"
#include "../os/close_fd.h"
#include "../os/kernel.h"
#include "client.h"

/* ---- memory ---- */

/* Makes a file of zeroes whose size is fixed. Returns its descriptor or -errno. */
static int host_file(const char *name, size_t bytes)
{
	const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	/* 0400: a read-only descriptor cannot be opened again for writing (/proc/PID/fd) */
	if (!fchmod(fd, 0400) && !ftruncate(fd, (off_t)bytes) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int host_file_read_only(int fd)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* ---- rings ---- */

static size_t host_ring_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t host_ring_mapped(const struct host_ring *r)
{
	return 2 * host_ring_page() + 2 * (size_t)r->bytes;
}

/* Maps both pages and the data, and the data a second time after that. */
static u8 *host_ring_map(const struct host_ring *r)
{
	const size_t once = host_ring_mapped(r) - r->bytes;
	u8 *p = mmap(NULL, host_ring_mapped(r), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (mmap(p, once, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, r->fd, 0) != MAP_FAILED &&
	    mmap(p + once, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, r->fd,
		 (off_t)(2 * host_ring_page())) != MAP_FAILED)
		return p;
	munmap(p, host_ring_mapped(r));
	return NULL;
}

static int host_ring_make_sockets(struct host_ring *r)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	r->wake_fd = pair[0];
	r->event_fd = pair[1];
	/* the client only reads: it sends nothing, also no descriptor, whose close may block */
	return shutdown(pair[0], SHUT_RD) ? -errno : 0;
}

int host_ring_make(struct host_ring *r, const char *name, u32 bytes, bool wakes)
{
	int err;

	*r = (struct host_ring){ .event_fd = -1, .wake_fd = -1, .bytes = bytes };
	r->fd = host_file(name, host_ring_mapped(r) - bytes);
	err = r->fd < 0 ? r->fd : wakes ? host_ring_make_sockets(r) : 0;
	if (err) {
		host_ring_free(r);
		return err;
	}
	r->memory = host_ring_map(r);
	if (r->memory)
		return 0;
	err = -errno;
	host_ring_free(r);
	return err;
}

void host_ring_free(struct host_ring *r)
{
	if (r->memory)
		munmap(r->memory, host_ring_mapped(r));
	close_fd(&r->fd);
	close_fd(&r->event_fd);
	close_fd(&r->wake_fd);
	r->memory = NULL;
}

static unsigned long *host_ring_consumer(const struct host_ring *r)
{
	return (unsigned long *)r->memory;
}

static unsigned long *host_ring_producer(const struct host_ring *r)
{
	return (unsigned long *)(r->memory + host_ring_page());
}

static u8 *host_ring_record(const struct host_ring *r)
{
	return r->memory + 2 * host_ring_page() + (r->at & (r->bytes - 1));
}

static unsigned long host_ring_bytes(u32 bytes)
{
	return (BPF_RINGBUF_HDR_SZ + bytes + 7) & ~7ul;
}

void *host_ring_reserve(struct host_ring *r, u32 bytes)
{
	/* acquire: pairs with the release in rx_ring_release(). The reader may store anything */
	const unsigned long used = r->at - atomic_load_explicit(shared_word(host_ring_consumer(r)),
								memory_order_acquire);
	const u32 header[2] = { bytes | BPF_RINGBUF_BUSY_BIT, 0 };
	u8 *record;

	if (used > r->bytes || host_ring_bytes(bytes) > r->bytes - used)
		return NULL;
	record = host_ring_record(r);
	memcpy(record, header, sizeof(header));
	r->at += host_ring_bytes(bytes);
	/* release: pairs with the acquire in rx_ring_there() */
	atomic_store_explicit(shared_word(host_ring_producer(r)), r->at, memory_order_release);
	/* pairs with the barriers of threads that go to sleep (bpf/deliver.h, bpf/wake.h) */
	atomic_thread_fence(memory_order_seq_cst);
	return record + BPF_RINGBUF_HDR_SZ;
}

static void host_ring_commit(void *record, u32 len)
{
	u32 *header = (u32 *)((u8 *)record - BPF_RINGBUF_HDR_SZ);

	/* pairs with the acquire in rx_ring_header() */
	atomic_exchange_explicit(shared_word(header), len, memory_order_seq_cst);
}

void host_ring_submit(void *record, u32 bytes)
{
	host_ring_commit(record, bytes);
}

void host_ring_discard(void *record, u32 bytes)
{
	host_ring_commit(record, bytes | BPF_RINGBUF_DISCARD_BIT);
}

void host_ring_wake(struct host_ring *r)
{
	if (!r->wakes)
		return;
	r->wakes = false;
	/* without room there are messages that the reader has not taken */
	kernel_send(r->wake_fd, "", 1);
}

/* ---- clients ---- */

/* Makes a map, with its descriptor in *fd. Returns its memory, or NULL; then *fd may be -errno. */
static void *host_client_map(struct host_client *c, int *fd, const char *name, size_t bytes)
{
	int shown_fd;

	*fd = host_file(name, bytes);
	if (*fd < 0)
		return NULL;
	shown_fd = readonly_map_is(name) ? host_file_read_only(*fd) : -1;
	if (shown_fd >= 0)
		c->shown_fd[c->num_shown++] = shown_fd;
	return shared_map(*fd, bytes);
}

/* The same for counters, whose descriptor is not kept. */
static void *host_client_counters(struct host_client *c, const char *name, size_t bytes)
{
	int fd;
	void *p = host_client_map(c, &fd, name, bytes);

	close_fd(&fd);
	return p;
}

static int host_client_make_maps(struct host_client *c)
{
#define X(name, map, which, n)                                                                     \
	c->maps.name = host_client_map(c, &c->map_fd[which], #map, (n) * sizeof(*c->maps.name));   \
	if (!c->maps.name)                                                                         \
		return c->map_fd[which] < -1 ? c->map_fd[which] : -ENOMEM;
	SHARED_MAPS(X)
#undef X
	c->drops = host_client_counters(c, XROCE_MAP_DROP, sizeof(*c->drops));
	c->stats = c->drops ? host_client_counters(c, XROCE_MAP_RX, sizeof(*c->stats)) : NULL;
	c->trace = c->stats ? host_client_map(c, &c->trace_fd, XROCE_MAP_TRACE, sizeof(*c->trace)) :
			      NULL;
	return c->trace ? 0 : c->trace_fd < -1 ? c->trace_fd : -ENOMEM;
}

int host_client_make(u32 ring_bytes, struct host_client **out)
{
	struct host_client *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	for (u32 i = 0; i < ASK_FDS; i++)
		c->map_fd[i] = -1;
	c->trace_fd = -1;
	c->rx.fd = c->rx.event_fd = c->rx.wake_fd = -1;
	c->wake = c->rx;
	err = host_client_make_maps(c);
	if (!err)
		err = host_ring_make(&c->rx, "xroce_ring", ring_bytes, true);
	if (!err)
		err = host_ring_make(&c->wake, "xroce_wake", XROCE_RING_BYTES, true);
	if (err)
		host_client_free(c);
	else
		*out = c;
	return err;
}

static void host_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

void host_client_free(struct host_client *c)
{
	if (!c)
		return;
#define X(name, map, which, n) host_unmap(c->maps.name, (n) * sizeof(*c->maps.name));
	SHARED_MAPS(X)
#undef X
	host_unmap(c->drops, sizeof(*c->drops));
	host_unmap(c->stats, sizeof(*c->stats));
	host_unmap(c->trace, sizeof(*c->trace));
	close_fd(&c->trace_fd);
	for (u32 i = 0; i < ASK_FDS; i++)
		close_fd(&c->map_fd[i]);
	while (c->num_shown)
		close_fd(&c->shown_fd[--c->num_shown]);
	host_ring_free(&c->rx);
	host_ring_free(&c->wake);
	free(c);
}

void host_client_given(struct host_client *c)
{
	for (u32 i = 0; i < ASK_FDS; i++)
		close_fd(&c->map_fd[i]);
	close_fd(&c->rx.fd);
	close_fd(&c->rx.event_fd);
	close_fd(&c->wake.fd);
	close_fd(&c->wake.event_fd);
}

void host_client_fds(const struct host_client *c, int fd[ASK_FDS])
{
	for (u32 i = 0; i < ASK_FDS; i++)
		fd[i] = c->map_fd[i];
	fd[ASK_FD_RX] = c->rx.fd;
	fd[ASK_FD_RX_EVENT] = c->rx.event_fd;
	fd[ASK_FD_WAKE] = c->wake.fd;
	fd[ASK_FD_WAKE_EVENT] = c->wake.event_fd;
}
