/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads, locks, the clock, eventfds, epoll and ppoll of the simulated machine: the linker gives
 * them (--wrap) to all that is linked into the simulator in place of the C library's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

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

/* Of an actor: what it waits for. */
struct waits {
	struct pollfd fds[POLLED_MAX];
	u32 num; /* 0: not in ppoll() */
	bool takes_signals;
	const void *mutex; /* it waits for */
};

static struct fd fds[FDS_MAX];
static u32 fd_next;
static struct posix_options options;

/* What the wrapped names stand for. */
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_join(pthread_t t, void **out);
int __wrap_pthread_setname_np(pthread_t t, const char *name);
int __wrap_pthread_setaffinity_np(pthread_t t, size_t n, const cpu_set_t *set);
void __wrap___pthread_register_cancel(void *buf);
void __wrap___pthread_unregister_cancel(void *buf);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_sched_yield(void);
int __wrap_eventfd(unsigned int count, int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_ppoll(struct pollfd *p, nfds_t n, const struct timespec *timeout, const void *mask);
ssize_t __wrap_read(int fd, void *to, size_t n);
int __wrap_close(int fd);
int __wrap_fcntl(int fd, int op, ...);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
long __wrap_syscall(long number, ...);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags);
int __wrap_memfd_create(const char *name, unsigned int flags);
int __wrap_ftruncate(int fd, off_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);

static struct waits *waits_of(struct actor *a)
{
	static struct waits all[64];
	void **data = sched_data(a);

	if (!*data) {
		sim_check(sched_number(a) < 64);
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

void posix_begin(const struct posix_options *o)
{
	options = *o;
	fd_end(fd_count());
	fd_next = 0;
}

void posix_takes_signals(void)
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
	const struct pollfd *p = posix_waits_for(a, &n);

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

const struct pollfd *posix_waits_for(struct actor *a, u32 *n)
{
	struct waits *w = *sched_data(a);

	*n = w ? w->num : 0;
	return *n ? w->fds : NULL;
}

/* ---- locks: the owner's number + 1 lies in the mutex ---- */

static u32 *owner_of(pthread_mutex_t *m)
{
	return (u32 *)m;
}

int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	memset(m, 0, sizeof(*m));
	return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *m)
{
	if (*owner_of(m))
		sched_fail("a lock is destroyed that is held");
	memset(m, 0xa5, sizeof(*m));
	return 0;
}

static u32 my_number(void)
{
	return sched_self() ? sched_number(sched_self()) + 1 : UINT32_MAX;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
	sched_point("trylock");
	sched_drain();
	if (*owner_of(m))
		return EBUSY;
	*owner_of(m) = my_number();
	return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	sched_point("lock");
	sched_drain();
	while (*owner_of(m)) {
		if (*owner_of(m) == my_number())
			sched_fail("a lock is taken that the caller holds");
		mine()->mutex = m;
		sched_block("lock", NSEC_NEVER);
	}
	if (sched_self())
		mine()->mutex = NULL;
	*owner_of(m) = my_number();
	return 0;
}

static void wake_for_mutex(struct actor *a, void *m)
{
	const struct waits *w = *sched_data(a);

	if (w && w->mutex == m)
		sched_wake(a, 0);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	sched_drain();
	if (*owner_of(m) != my_number())
		sched_fail("a lock is let go of that the caller does not hold");
	*owner_of(m) = 0;
	sched_each(wake_for_mutex, m);
	sched_point("unlock");
	return 0;
}

/* ---- threads ---- */

struct thread {
	void *(*fn)(void *arg);
	void *arg;
	struct actor *actor;
};

static void thread_main(void *arg)
{
	struct thread *t = arg;

	t->fn(t->arg);
}

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	static const char *const names[] = { "service 0", "service 1", "service 2", "service 3",
					     "service 4", "service 5", "service 6", "service 7" };
	static u32 next;
	struct thread *t = malloc(sizeof(*t));

	sim_check(t);
	if (sched_points() < 100)
		next = 0;
	*t = (struct thread){ fn, arg, NULL };
	t->actor = sched_spawn(names[next++ % 8], thread_main, t);
	*out = (pthread_t)t;
	sched_point("pthread_create");
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **out)
{
	struct thread *t = (struct thread *)thread;

	sched_join(t->actor);
	free(t);
	return 0;
}

int __wrap_pthread_setname_np(pthread_t t, const char *name)
{
	return 0;
}

int __wrap_pthread_setaffinity_np(pthread_t t, size_t n, const cpu_set_t *set)
{
	return 0;
}

/* Nobody is cancelled here: pthread_cleanup_push() is made of these. */
void __wrap___pthread_register_cancel(void *buf)
{
}

void __wrap___pthread_unregister_cancel(void *buf)
{
}

/* ---- time ---- */

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	sched_point("clock");
	*t = (struct timespec){ .tv_sec = (time_t)(sched_now_ns() / NSEC_PER_SEC),
				.tv_nsec = (long)(sched_now_ns() % NSEC_PER_SEC) };
	return 0;
}

static u64 ns_of(const struct timespec *t)
{
	return (u64)t->tv_sec * NSEC_PER_SEC + (u64)t->tv_nsec;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	sched_sleep("nanosleep", ns_of(t));
	return 0;
}

int __wrap_sched_yield(void)
{
	sched_point("yield");
	sched_give_way("yield");
	return 0;
}

ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags)
{
	for (size_t i = 0; i < n; i++)
		((u8 *)to)[i] = (u8)(rng_next(sched_rng()) >> 32);
	return (ssize_t)n;
}

/* ---- eventfds, epoll, ppoll ---- */

int __wrap_eventfd(unsigned int count, int flags)
{
	struct fd_event *e = calloc(1, sizeof(*e));

	sim_check(e);
	e->count = count;
	return fd_open(FD_EVENT, e);
}

int __wrap_epoll_create1(int flags)
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

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct fd_epoll *e = fd_object(epfd, FD_EPOLL);

	sched_point("epoll_ctl");
	fd_get(fd);
	if (op == EPOLL_CTL_ADD) {
		sim_check(e->num < MEMBERS_MAX);
		e->member[e->num++] = fd;
		if (is_readable(fd))
			fd_notify(epfd);
	} else {
		epoll_forget(e, fd);
	}
	return 0;
}

static void write_event(int fd)
{
	struct fd_event *e = fd_object(fd, FD_EVENT);

	sched_point("write");
	sched_drain();
	e->count++;
	sched_trace("raises %d", fd);
	fd_notify(fd);
	sched_point("written");
}

static ssize_t read_event(int fd, void *to)
{
	struct fd_event *e = fd_object(fd, FD_EVENT);

	sched_point("read");
	sched_drain();
	if (!e->count) {
		errno = EAGAIN;
		return -1;
	}
	*(u64 *)to = e->count;
	e->count = 0;
	sched_point("was read");
	return sizeof(u64);
}

static int poll_now(struct pollfd *p, nfds_t n)
{
	int ready = 0;

	for (nfds_t i = 0; i < n; i++) {
		p[i].revents = is_readable(p[i].fd) ? POLLIN : 0;
		ready += p[i].revents != 0;
	}
	return ready;
}

static int poll_until(struct pollfd *p, nfds_t n, u64 until_ns)
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
			errno = EINTR;
			return -1;
		}
		memcpy(w->fds, p, n * sizeof(*p));
		w->num = (u32)n;
		sched_block("ppoll", until_ns);
		w->num = 0;
	}
	sched_point("polled");
	return ready;
}

int __wrap_ppoll(struct pollfd *p, nfds_t n, const struct timespec *timeout, const void *mask)
{
	return poll_until(p, n, timeout ? sched_now_ns() + ns_of(timeout) : NSEC_NEVER);
}

/* ---- the rest of descriptors ---- */

ssize_t __wrap_read(int fd, void *to, size_t n)
{
	return read_event(fd, to);
}

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
	const struct pollfd *p = posix_waits_for(a, &n);

	for (u32 i = 0; p && i < n; i++)
		if (p[i].fd == fd)
			sched_fail("descriptor %d is closed while %s waits for it", fd,
				   sched_name(a));
}

int __wrap_close(int fd)
{
	sched_point("close");
	sched_each(check_unpolled, &fd);
	close_in(fd, fd_get(fd));
	return 0;
}

int __wrap_fcntl(int fd, int op, ...)
{
	fd_get(fd);
	return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	return xsk_statistics(fd_object(fd, FD_XSK), value, len);
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	fd_object(fd, FD_XSK);
	return 0;
}

long __wrap_syscall(long number, ...)
{
	const struct timespec *timeout;
	struct pollfd *p;
	va_list args;
	void *to;
	nfds_t n;
	int fd;

	va_start(args, number);
	switch (number) {
	case SYS_gettid:
		va_end(args);
		return sched_number(sched_self()) + 1;
	case SYS_ppoll:
		p = va_arg(args, struct pollfd *);
		n = va_arg(args, nfds_t);
		timeout = va_arg(args, const struct timespec *);
		va_end(args);
		return __wrap_ppoll(p, n, timeout, NULL);
	case SYS_write:
		write_event(va_arg(args, int));
		va_end(args);
		return sizeof(u64);
	case SYS_read:
		fd = va_arg(args, int);
		to = va_arg(args, void *);
		va_end(args);
		return read_event(fd, to);
	case SYS_sendto:
		xsk_send(fd_object(va_arg(args, int), FD_XSK));
		va_end(args);
		return 0;
	case SYS_recvfrom:
		fd_object(va_arg(args, int), FD_XSK);
		va_end(args);
		return 0;
	default:
		sched_fail("system call %ld is none of this machine's", number);
	}
}

/* ---- memory of a UMEM: kept for the next run, as fresh pages cost more than the run ---- */

struct memory {
	u8 *at;
	size_t bytes;
	bool used;
};
static struct memory memories[8];

int __wrap_memfd_create(const char *name, unsigned int flags)
{
	return fd_open(FD_MEMORY, NULL);
}

int __wrap_ftruncate(int fd, off_t bytes)
{
	return 0;
}

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	if (fd < 0)
		return __real_mmap(at, bytes, prot, flags, fd, offset);
	fd_object(fd, FD_MEMORY);
	for (u32 i = 0; i < 8; i++) {
		struct memory *m = &memories[i];

		if (m->used || (m->at && m->bytes != bytes))
			continue;
		if (!m->at)
			m->at = __real_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		sim_check(m->at != MAP_FAILED);
		m->bytes = bytes;
		m->used = true;
		return m->at;
	}
	sched_fail("no memory for a UMEM is left");
}

int __wrap_munmap(void *at, size_t bytes)
{
	for (u32 i = 0; i < 8; i++)
		if (memories[i].at == at) {
			memories[i].used = false;
			return 0;
		}
	return __real_munmap(at, bytes);
}
