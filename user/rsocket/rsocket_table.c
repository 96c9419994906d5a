/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors: defaults, stand-ins, and the table that finds rsockets. A stream's number is a
 * descriptor of /dev/null, which reserves the number from other files of the program; a datagram's
 * number is its UDP socket.
 *
 * In a forked child the parent's rsockets are closed, as their connections belong to the parent.
 * The child can create its own.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../os/close_fd.h"
#include "../os/process.h"
#include "../os/thread.h"
#include "rsocket_dgram.h"
#include "rsocket_object.h"
#include "rsocket_protocol.h"
#include "rsocket_stream.h"
#include "xroce_rsocket.h"

/* ---- defaults ---- */

/*
 * Chosen by the administrator: files in /etc/rdma/rsocket with one number each. An
 * unreadable file or a text that is not a number leaves the default; a number out of range is
 * clamped.
 */

#define CONFIG_DIR "/etc/rdma/rsocket/"

static struct rsocket_config config = {
	.send_bytes = 1 << 17,
	.receive_bytes = 1 << 17,
	.requests = 384,
	.receives = 384,
	.inlined = 64,
	.polling_us = 10,
	.wake_up_ms = 500,
};

static void config_read(const char *path, u32 least, u32 most, u32 *value)
{
	FILE *f = fopen(path, "re");
	long long n;

	if (!f)
		return;
	if (fscanf(f, "%lld", &n) == 1)
		*value = n < least ? least : n > most ? most : (u32)n;
	fclose(f);
}

static void config_load(void)
{
	u32 wake_up = (u32)config.wake_up_ms;

	config_read(CONFIG_DIR "wmem_default", RSOCKET_LEAST_BYTES, RSOCKET_MOST_BYTES,
		    &config.send_bytes);
	config_read(CONFIG_DIR "mem_default", RSOCKET_LEAST_BYTES, RSOCKET_MOST_BYTES,
		    &config.receive_bytes);
	config_read(CONFIG_DIR "sqsize_default", RSOCKET_LEAST_REQUESTS, RSOCKET_MOST_REQUESTS,
		    &config.requests);
	config_read(CONFIG_DIR "rqsize_default", RSOCKET_LEAST_REQUESTS, RSOCKET_MOST_REQUESTS,
		    &config.receives);
	config_read(CONFIG_DIR "inline_default", 0, RSOCKET_MOST_REQUESTS, &config.inlined);
	config_read(CONFIG_DIR "iomap_size", 0, 0xffff, &config.iomap_size);
	config_read(CONFIG_DIR "polling_time", 0, 1000000, &config.polling_us);
	config_read(CONFIG_DIR "wake_up_interval", 1, 1000000, &wake_up);
	config.wake_up_ms = (int)wake_up;
	config.iomap_size = wire_iomap_size(config.iomap_size);
}

const struct rsocket_config *rsocket_config(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, config_load);
	return &config;
}

/* ---- stand-ins ---- */

/*
 * Descriptors whose readiness the kernel knows, for epoll(7) and SIGIO.
 *
 * A stand-in is one end of a pair of Unix stream sockets. Both ends stay here (the program has a
 * copy of one), and show the rsocket's state to the kernel:
 *
 *	POLLIN		one byte lies in the stand-in
 *	not POLLOUT	bytes of the stand-in lie in its peer, more than a quarter of SO_SNDBUF
 *	POLLRDHUP	the peer does not send any more (shutdown())
 *	POLLHUP		neither end does
 *	POLLERR		the peer was closed with bytes unread
 *
 * The kernel does the rest: level and edge triggered sets, EPOLLONESHOT, EPOLLEXCLUSIVE, nested
 * sets, dup(), F_SETOWN. Each arrival causes an edge, as does room after a call that found none:
 * then the state is written once more.
 *
 * Only watched rsockets cost these calls. One thread of the process waits for their completions. A
 * thread that changes a watched rsocket writes its state before it releases the lock.
 */

enum { EVENTS = 64, FILLER_BYTES = 2048 };

/* Per process; a forked child creates its own. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
/* Epoll set of the completion channels; written under start_lock before an rsocket is watched. */
static int channels = -1;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* ---- the stand-ins' thread ---- */

/*
 * Without a struct loop: its set has pointers, and an rsocket may be freed between an event and its
 * handler. This set has numbers, for which rsocket_get() takes a reference.
 */
static void *standin_run(void *of)
{
	int set = (int)(intptr_t)of, n, i;
	struct epoll_event events[EVENTS];

	for (;;) {
		n = epoll_wait(set, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			return NULL;
		for (i = 0; i < n; i++) {
			/* NULL: closed since. An event for a reused number is harmless. */
			struct rsocket *rs = rsocket_get(events[i].data.fd);

			if (!rs)
				continue;
			pthread_mutex_lock(&rs->lock);
			rsocket_disarm(rs);
			rsocket_progress(rs);
			rsocket_unlock(rs);
			rsocket_put(rs);
		}
	}
}

static void standin_fork(void)
{
	pthread_mutex_init(&start_lock, NULL);
	close_fd(&channels);
}

static void standin_once(void)
{
	pthread_atfork(NULL, NULL, standin_fork);
}

/* Starts the thread unless it runs. Returns 0 or -errno. */
static int standin_start(void)
{
	pthread_t thread;
	int err = 0, set;

	pthread_once(&fork_once, standin_once);
	pthread_mutex_lock(&start_lock);
	if (channels < 0) {
		set = epoll_create1(EPOLL_CLOEXEC);
		err = set < 0 ? -errno :
				thread_start(&thread, standin_run, (void *)(intptr_t)set);
		if (!err) {
			pthread_setname_np(thread, "rsocket-epoll");
			pthread_detach(thread);
			channels = set;
		} else if (set >= 0) {
			close(set);
		}
	}
	pthread_mutex_unlock(&start_lock);
	return err;
}

/* ---- writing the state, under the rsocket's lock ---- */

/*
 * Arms the completion queue and makes the thread wait for the channel. Handles completions that
 * came before the queue was armed, which cause no event.
 */
static void standin_attach(struct rsocket *rs)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = rs->fd };
	int channel = rsocket_arm(rs);

	if (channel < 0)
		return;
	if (channel != rs->standin.channel &&
	    !epoll_ctl(channels, EPOLL_CTL_ADD, channel, &event))
		rs->standin.channel = channel;
	rsocket_progress(rs);
}

static void standin_take(int fd, size_t n)
{
	u8 bytes[FILLER_BYTES];

	recv(fd, bytes, n, MSG_DONTWAIT);
}

static void standin_put(int fd, size_t n)
{
	static const u8 bytes[FILLER_BYTES];

	/* Fails only if full or shut down: then the state is already correct. */
	send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* POLLHUP alone belongs to a stream that was never connected, and may be withdrawn. */
static void standin_show_end(struct rsocket *rs, short now)
{
	struct standin *in = &rs->standin;
	short more = now & ~in->shown;

	if (rs->error) {
		standin_put(in->fd, 1);
		close_fd(&in->peer);
	} else if ((now & POLLRDHUP) && (more & (POLLRDHUP | POLLHUP))) {
		shutdown(in->peer, now & POLLHUP ? SHUT_RDWR : SHUT_WR);
	}
}

static void standin_show_in(struct standin *in, short now)
{
	bool shown = in->shown & POLLIN;

	/* After its end a stream stays readable. */
	if (now & POLLRDHUP)
		return;
	if ((now & POLLIN) && (!shown || in->arrived))
		standin_put(in->peer, 1);
	if (shown && (!(now & POLLIN) || in->arrived))
		standin_take(in->fd, 1);
}

static void standin_show_out(struct standin *in, short now)
{
	bool shown = in->shown & POLLOUT;

	if (shown && (!(now & POLLOUT) || in->refused)) {
		standin_put(in->fd, FILLER_BYTES);
		shown = false;
	}
	if (!shown && (now & POLLOUT)) {
		standin_take(in->peer, FILLER_BYTES);
		in->refused = false;
	}
}

static void standin_show(struct rsocket *rs)
{
	struct standin *in = &rs->standin;
	socklen_t bytes = sizeof(int);
	int error;
	short now;

	standin_attach(rs);
	now = rsocket_events(rs, POLLIN | POLLOUT | POLLRDHUP);
	if (in->peer < 0) {
		/* The program has read the rsocket's error. */
		if (!rs->error)
			getsockopt(in->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
		return;
	}
	/* First, so that a woken program sees the end together with the rest. */
	standin_show_end(rs, now);
	standin_show_in(in, now);
	standin_show_out(in, now);
	in->arrived = false;
	in->shown = now;
}

void rsocket_unlock(struct rsocket *rs)
{
	int saved = errno;

	if (rs->standin.watched && !rs->closed) {
		standin_show(rs);
		errno = saved;
	}
	pthread_mutex_unlock(&rs->lock);
}

static void standin_init(struct rsocket *rs)
{
	rs->standin = (struct standin){ .fd = -1, .peer = -1, .channel = -1 };
}

void standin_end(struct rsocket *rs)
{
	struct standin *in = &rs->standin;

	if (in->fd >= 0 && in->fd != rs->fd)
		close(in->fd);
	if (in->peer >= 0)
		close(in->peer);
	standin_init(rs);
}

/* ---- for librspreload.so ---- */

/* Ends a call that began with rsocket_find(). value: a result or -errno. */
static int standin_return(struct rsocket *rs, int value)
{
	rsocket_unlock(rs);
	rsocket_put(rs);
	cancel_release();
	if (value >= 0)
		return value;
	errno = -value;
	return -1;
}

/*
 * Returns a copy of the program's descriptor, or -errno. For a stream it replaces rs->fd; a
 * datagram socket keeps its UDP socket there.
 */
static int standin_copy(struct rsocket *rs, int of)
{
	int fd = rs->type == SOCK_STREAM ? dup3(of, rs->fd, O_CLOEXEC) :
					   fcntl(of, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

RSOCKET_EXPORT int xroce_rsocket_stand_in(int socket)
{
	struct rsocket *rs = rsocket_find(socket);
	int ends[2], least = 1, copy;

	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return standin_return(rs, -errno);
	copy = standin_copy(rs, ends[0]);
	if (copy < 0) {
		close(ends[0]);
		close(ends[1]);
		return standin_return(rs, copy);
	}
	/* The kernel's minimum, so that the filler is more than a quarter of it. */
	setsockopt(copy, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	fcntl(ends[0], F_SETFD, 0);
	rs->standin = (struct standin){
		.fd = copy,
		.peer = ends[1],
		.channel = -1,
		.shown = POLLOUT,
	};
	return standin_return(rs, ends[0]);
}

RSOCKET_EXPORT int xroce_rsocket_watch(int socket)
{
	struct rsocket *rs = rsocket_find(socket);
	int err = 0;

	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	if (rs->standin.fd < 0)
		err = -EINVAL;
	else if (!rs->standin.watched)
		err = standin_start();
	if (!err)
		rs->standin.watched = true;
	return standin_return(rs, err);
}

RSOCKET_EXPORT int xroce_rsocket_unread(int socket)
{
	struct rsocket *rs = rsocket_find(socket);
	int bytes = 0;

	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	rsocket_progress(rs);
	if (rs->type == SOCK_STREAM)
		bytes = (int)stream_of(rs)->credit.unread;
	else if (dgram_of(rs)->count)
		bytes = (int)dgram_of(rs)->messages[dgram_of(rs)->first].bytes;
	return standin_return(rs, bytes);
}

/* ---- the table ---- */

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
		rsocket_keep(rs);
	pthread_mutex_unlock(&locks[fd % LOCKS]);
	return rs;
}

void rsocket_each(void (*fn)(struct rsocket *rs, s64 arg), s64 arg)
{
	int i, j;

	for (i = 0; i < CHUNKS; i++) {
		/* acquire: as in table_place() */
		if (!atomic_load_explicit(&chunks[i], memory_order_acquire))
			continue;
		for (j = 0; j < CHUNK; j++) {
			struct rsocket *rs = rsocket_get(i * CHUNK + j);

			if (!rs)
				continue;
			fn(rs, arg);
			rsocket_put(rs);
		}
	}
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

int rsocket_lock(struct rsocket *rs)
{
	pthread_mutex_lock(&rs->lock);
	return rs->closed ? -EBADF : 0;
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
	const struct rsocket_config *defaults = rsocket_config();

	process_own();
	rs->fd = -1;
	rs->domain = domain;
	rs->type = type;
	atomic_init(&rs->references, 1);
	pthread_mutex_init(&rs->sending, NULL);
	pthread_mutex_init(&rs->receiving, NULL);
	pthread_mutex_init(&rs->lock, NULL);
	rs->send_bytes = defaults->send_bytes;
	rs->receive_bytes = defaults->receive_bytes;
	rs->requests = defaults->requests;
	rs->receives = defaults->receives;
	rs->inlined = defaults->inlined;
	rs->iomap_size = defaults->iomap_size;
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
