/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel and the clock of the simulated machine: what user/os/kernel.h and clock.h declare,
 * but for maps and rings of records (xdp.c) and sockets (nic.c).
 */
#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../user/os/kernel.h"

#define FDS_MAX	    256
#define POLLED_MAX  80
#define MEMBERS_MAX 4

struct fd_epoll {
	int member[MEMBERS_MAX];
	u32 num;
};

struct fd {
	enum fd_kind kind;
	void *object;
};

/* An actor's wait. */
struct waits {
	struct pollfd fds[POLLED_MAX];
	u32 num; /* 0: not in ppoll() */
	bool takes_signals;
};

static struct fd fds[FDS_MAX];
static u32 fd_next;
static struct machine_options options;

static struct waits *waits_of(struct actor *a)
{
	static struct waits all[ACTORS_MAX];
	void **data = sched_data(a);

	if (!*data) {
		sim_check(sched_number(a) < ACTORS_MAX);
		*data = &all[sched_number(a)];
		memset(*data, 0, sizeof(struct waits));
	}
	return *data;
}

static struct waits *mine(void)
{
	sim_check(sched_self());
	return waits_of(sched_self());
}

void machine_begin(const struct machine_options *o)
{
	options = *o;
	fd_end(fd_count());
	fd_next = 0;
}

void machine_takes_signals(void)
{
	mine()->takes_signals = true;
}

/* ---- descriptors ---- */

int fd_open(enum fd_kind kind, void *object)
{
	for (u32 i = 0; i < FDS_MAX; i++) {
		struct fd *f = &fds[(fd_next + i) % FDS_MAX];

		if (f->kind != FD_FREE)
			continue;
		*f = (struct fd){ kind, object };
		fd_next = (u32)(f - fds) + 1;
		return SIM_FD + (int)(f - fds);
	}
	sched_fail("no descriptor is left: they leak");
}

static struct fd *fd_get(int fd)
{
	if (fd < SIM_FD || fd >= SIM_FD + FDS_MAX || fds[fd - SIM_FD].kind == FD_FREE)
		sched_fail("descriptor %d is not open", fd);
	return &fds[fd - SIM_FD];
}

bool fd_is_open(int fd)
{
	return fd >= SIM_FD && fd < SIM_FD + FDS_MAX && fds[fd - SIM_FD].kind != FD_FREE;
}

void *fd_object(int fd, enum fd_kind kind)
{
	struct fd *f = fd_get(fd);

	if (f->kind != kind)
		sched_fail("descriptor %d is of another kind", fd);
	return f->object;
}

u32 fd_count(void)
{
	u32 n = 0;

	for (u32 i = 0; i < FDS_MAX; i++)
		n += fds[i].kind != FD_FREE;
	return n;
}

void fd_end(u32 left)
{
	if (fd_count() != left)
		sched_fail("%u descriptors are open, not %u", fd_count(), left);
	for (u32 i = 0; i < FDS_MAX; i++)
		fds[i].kind = FD_FREE;
}

static bool is_readable(int fd)
{
	const struct fd *f = fd_get(fd);
	const struct fd_epoll *e;

	switch (f->kind) {
	case FD_EVENT:
		return ((struct fd_event *)f->object)->count;
	case FD_RING:
		return ring_has_records(f->object);
	case FD_PACKETS:
		return packets_are_readable(f->object);
	case FD_XSK:
		return xsk_is_readable(f->object);
	case FD_EPOLL:
		e = f->object;
		for (u32 i = 0; i < e->num; i++)
			if (is_readable(e->member[i]))
				return true;
		return false;
	default:
		sched_fail("descriptor %d cannot be polled", fd);
	}
}

static bool includes(int polled, int fd)
{
	const struct fd *f = &fds[polled - SIM_FD];
	const struct fd_epoll *e = f->object;

	if (polled == fd)
		return true;
	for (u32 i = 0; f->kind == FD_EPOLL && i < e->num; i++)
		if (e->member[i] == fd)
			return true;
	return false;
}

static void notify(struct actor *a, void *arg)
{
	const int fd = *(const int *)arg;
	u32 n;
	const struct pollfd *p = machine_waits_for(a, &n);

	for (u32 i = 0; p && i < n; i++)
		if (includes(p[i].fd, fd)) {
			sched_wake(a, rng_next(sched_rng()) % (options.wake_max_ns + 1));
			return;
		}
}

void fd_notify(int fd)
{
	sched_each(notify, &fd);
}

const struct pollfd *machine_waits_for(struct actor *a, u32 *n)
{
	struct waits *w = *sched_data(a);

	*n = w ? w->num : 0;
	return *n ? w->fds : NULL;
}

/* ---- time ---- */

u64 clock_now_ns(void)
{
	sched_point("clock");
	return sched_now_ns();
}

void kernel_yield(void)
{
	sched_point("yield");
	sched_give_way("yield");
}

/* ---- kicking, sets of descriptors, sleeping ---- */

/* No broker has UDP sockets here. */
void kernel_drain(int fd)
{
	sched_fail("a socket is emptied");
}

int kernel_event_make(bool for_program)
{
	struct fd_event *e = calloc(1, sizeof(*e));

	sim_check(e);
	return fd_open(FD_EVENT, e);
}

int kernel_set_make(void)
{
	struct fd_epoll *e = calloc(1, sizeof(*e));

	sim_check(e);
	return fd_open(FD_EPOLL, e);
}

static void epoll_forget(struct fd_epoll *e, int fd)
{
	for (u32 i = 0; i < e->num; i++)
		if (e->member[i] == fd)
			e->member[i--] = e->member[--e->num];
}

int kernel_set_add(int set, int fd)
{
	struct fd_epoll *e = fd_object(set, FD_EPOLL);

	sched_point("epoll_ctl");
	fd_get(fd);
	sim_check(e->num < MEMBERS_MAX);
	e->member[e->num++] = fd;
	if (is_readable(fd))
		fd_notify(set);
	return 0;
}

void kernel_set_remove(int set, int fd)
{
	struct fd_epoll *e = fd_object(set, FD_EPOLL);

	sched_point("epoll_ctl");
	fd_get(fd);
	epoll_forget(e, fd);
}

void kernel_event_raise(int fd)
{
	struct fd_event *e = fd_object(fd, FD_EVENT);

	sched_point("write");
	sched_drain();
	e->count++;
	sched_trace("raises %d", fd);
	fd_notify(fd);
	sched_point("written");
}

void kernel_event_clear(int fd)
{
	struct fd_event *e = fd_object(fd, FD_EVENT);

	sched_point("read");
	sched_drain();
	e->count = 0;
	sched_point("was read");
}

void kernel_event_replace(int fd)
{
	sched_fail("nobody forks here");
}

int kernel_duplicate(int fd)
{
	sched_fail("nobody asks for signals here");
}

static int poll_now(struct pollfd *p, u32 n)
{
	int ready = 0;

	for (u32 i = 0; i < n; i++) {
		p[i].revents = is_readable(p[i].fd) ? POLLIN : 0;
		ready += p[i].revents != 0;
	}
	return ready;
}

int kernel_await(struct pollfd *p, u32 n, u64 until_ns)
{
	struct waits *w = mine();
	int ready;

	sim_check(n <= POLLED_MAX);
	sched_point("ppoll");
	sched_drain();
	for (;;) {
		ready = poll_now(p, n);
		if (ready || sched_now_ns() >= until_ns)
			break;
		if (w->takes_signals && rng_chance(sched_rng(), options.eintr_rate)) {
			return -EINTR;
		}
		memcpy(w->fds, p, n * sizeof(*p));
		w->num = n;
		sched_block("ppoll", until_ns);
		w->num = 0;
	}
	sched_point("polled");
	return ready;
}

int kernel_sleep(struct pollfd *p, u32 n, u64 until_ns)
{
	return kernel_await(p, n, until_ns);
}

/* ---- descriptors end ---- */

static void close_in(int fd, struct fd *f)
{
	for (u32 i = 0; i < FDS_MAX; i++)
		if (fds[i].kind == FD_EPOLL)
			epoll_forget(fds[i].object, fd);
	if (f->kind == FD_EVENT || f->kind == FD_EPOLL || f->kind == FD_RING)
		free(f->object);
	f->kind = FD_FREE;
}

static void check_unpolled(struct actor *a, void *arg)
{
	const int fd = *(const int *)arg;
	u32 n;
	const struct pollfd *p = machine_waits_for(a, &n);

	for (u32 i = 0; p && i < n; i++)
		if (p[i].fd == fd)
			sched_fail("descriptor %d is closed while %s waits for it", fd,
				   sched_name(a));
}

u32 kernel_descriptors_max(void)
{
	return 1024;
}

void kernel_close(int fd)
{
	sched_point("close");
	sched_each(check_unpolled, &fd);
	close_in(fd, fd_get(fd));
}

/* No port loses its broker here. */
void kernel_replace(int fd, int to)
{
	sched_fail("a descriptor is replaced");
}

int kernel_memory_make_private(void *area, u64 bytes)
{
	sched_fail("a mapping is replaced");
}

/* ---- memory of a UMEM: kept for the next run, as fresh pages cost more than the run ---- */

struct memory {
	u8 *at;
	size_t bytes;
	bool used;
};
static struct memory memories[8];

void *kernel_memory_make(u64 bytes)
{
	for (u32 i = 0; i < ARRAY_SIZE(memories); i++) {
		struct memory *m = &memories[i];

		if (m->used || (m->at && m->bytes != bytes))
			continue;
		if (!m->at)
			m->at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		sim_check(m->at != MAP_FAILED);
		m->bytes = bytes;
		m->used = true;
		return m->at;
	}
	sched_fail("no memory for a UMEM is left");
}

void kernel_memory_free(void *area, u64 bytes)
{
	for (u32 i = 0; i < ARRAY_SIZE(memories); i++)
		if (memories[i].at == area)
			memories[i].used = false;
}

/* ---- the rest ---- */

int kernel_random(void *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((u8 *)to)[i] = (u8)(rng_next(sched_rng()) >> 32);
	return 0;
}

u32 kernel_thread_id(void)
{
	return sched_number(sched_self()) + 1;
}
