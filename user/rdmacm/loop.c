/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CM thread: descriptors by an event loop, timers in a list sorted by time. Most timers are
 * later than all others, so insertion starts at the end.
 */
#include <limits.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../os/clock.h"
#include "../os/thread.h"

#include "loop.h"

#define EVENTS_AT_ONCE 32

struct loop cm_loop = { .epoll_fd = -1 };

static struct {
	bool running;
	struct source kick; /* readable: a timer is due before the thread wakes */
	u64 sleeps_until_ns; /* 0: the thread is awake */
	struct loop_timer timers; /* the ring's head */
} loop;

/* ---- timers ---- */

static void loop_kick(void)
{
	const u64 one = 1;

	if (write(loop.kick.fd, &one, sizeof(one)) < 0)
		return;
}

void loop_clear_timer(struct loop_timer *t)
{
	if (!t->set)
		return;
	t->prev->next = t->next;
	t->next->prev = t->prev;
	t->set = false;
}

void loop_set_timer(struct loop_timer *t, u64 at_ns)
{
	struct loop_timer *after;

	if (t->set && t->at_ns == at_ns)
		return;
	loop_clear_timer(t);
	if (at_ns == NSEC_NEVER)
		return;
	t->at_ns = at_ns;
	after = loop.timers.prev;
	while (after != &loop.timers && after->at_ns > at_ns)
		after = after->prev;
	t->prev = after;
	t->next = after->next;
	after->next->prev = t;
	after->next = t;
	t->set = true;
	if (at_ns < loop.sleeps_until_ns) {
		loop.sleeps_until_ns = at_ns;
		loop_kick();
	}
}

static void loop_run_timers(void)
{
	struct loop_timer *t = loop.timers.next;

	while (t != &loop.timers && t->at_ns <= clock_now_ns()) {
		loop_clear_timer(t);
		t->fn(t);
		t = loop.timers.next;
	}
}

/* ---- the thread ---- */

/* Returns milliseconds, rounded up; -1: no limit. */
static int loop_timeout(u64 until_ns)
{
	const u64 now_ns = clock_now_ns();

	if (until_ns == NSEC_NEVER)
		return -1;
	if (until_ns <= now_ns)
		return 0;
	return (int)min_u64((until_ns - now_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, INT_MAX);
}

static void *loop_main(void *arg)
{
	rdmacm_enter();
	for (;;) {
		const struct loop_timer *first = loop.timers.next;
		int timeout;

		loop.sleeps_until_ns = first == &loop.timers ? NSEC_NEVER : first->at_ns;
		timeout = loop_timeout(loop.sleeps_until_ns);
		rdmacm_leave();
		loop_wait(&cm_loop, timeout);
		rdmacm_enter();
		loop.sleeps_until_ns = 0;
		for (u32 i = 0; i < EVENTS_AT_ONCE && loop_turn(&cm_loop, 0); i++)
			;
		loop_run_timers();
	}
	return NULL; /* never */
}

static void loop_kicked(struct source *s, u32 events)
{
	u64 count;

	if (read(s->fd, &count, sizeof(count)) < 0)
		return;
}

static int loop_start_locked(void)
{
	pthread_t thread;
	int err;

	if (loop.running)
		return 0;
	loop.timers.next = loop.timers.prev = &loop.timers;
	loop.kick = (struct source){ .ready = loop_kicked,
				     .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	if (loop.kick.fd < 0)
		return -errno;
	err = loop_make(&cm_loop);
	if (!err)
		err = loop_add(&cm_loop, &loop.kick);
	if (!err)
		err = thread_start(&thread, loop_main, NULL);
	if (err) {
		loop_unmake(&cm_loop);
		close(loop.kick.fd);
		return err;
	}
	pthread_detach(thread);
	loop.running = true;
	return 0;
}

int loop_start(void)
{
	int err;

	rdmacm_enter();
	err = loop_start_locked();
	rdmacm_leave();
	return err;
}

void loop_after_fork(void)
{
	if (loop.running) {
		loop_unmake(&cm_loop);
		close(loop.kick.fd);
	}
	loop.running = false;
	loop.sleeps_until_ns = 0;
}

/*
 * Work that may sleep: pool threads start on demand and exit after a second without work. If no
 * thread can be created (RLIMIT_NPROC, RLIMIT_AS), the CM thread does the work.
 */

#define THREADS_MAX 16

static struct {
	struct loop_work *head, **tail;
	u32 waiting, threads, idle;
	pthread_cond_t more;
	struct loop_timer unaided; /* set while there is work and no thread */
} pool = { .tail = &pool.head, .more = PTHREAD_COND_INITIALIZER };

/* Waits for work, for one second. Caller holds the lock. */
static void pool_wait(void)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pool.idle++;
	while (!pool.head && !err)
		err = pthread_cond_timedwait(&pool.more, &rdmacm_lock, &until);
	pool.idle--;
}

bool loop_work_here(void)
{
	struct loop_work *work = pool.head;

	if (!work)
		return false;
	pool.head = work->next;
	if (!pool.head)
		pool.tail = &pool.head;
	pool.waiting--;
	rdmacm_leave();
	work->do_work(work);
	rdmacm_enter();
	work->done(work);
	return true;
}

static void *pool_main(void *arg)
{
	rdmacm_enter();
	do {
		pool_wait();
	} while (loop_work_here());
	pool.threads--;
	rdmacm_leave();
	return NULL;
}

/* Does one piece of work, then lets the CM thread read its descriptors before the next. */
static void pool_unaided(struct loop_timer *timer)
{
	if (loop_work_here() && pool.head)
		loop_set_timer(timer, clock_now_ns() + NSEC_PER_MSEC);
}

void loop_work(struct loop_work *work)
{
	pthread_t thread;

	if (pool.waiting >= pool.idle && pool.threads < THREADS_MAX &&
	    !thread_start(&thread, pool_main, NULL)) {
		pthread_detach(thread);
		pool.threads++;
	}
	work->next = NULL;
	*pool.tail = work;
	pool.tail = &work->next;
	pool.waiting++;
	pthread_cond_signal(&pool.more);
	if (!pool.threads && !pool.unaided.set) {
		pool.unaided.fn = pool_unaided;
		loop_set_timer(&pool.unaided, clock_now_ns());
	}
}

void work_after_fork(void)
{
	pool.head = NULL;
	pool.tail = &pool.head;
	pool.waiting = pool.threads = pool.idle = 0;
	pool.unaided.set = false;
	pthread_cond_init(&pool.more, NULL);
}
