/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library's lock, and the CM thread: descriptors by an event loop, timers in a list sorted by
 * time. Most timers are later than all others, so insertion starts at the end. The list, unlike a
 * timer_heap, needs no memory when a timer is set, and no limit on their number.
 */
#define _GNU_SOURCE /* pthread_setname_np() */
#include <limits.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../os/clock.h"
#include "../os/kernel.h"
#include "../os/thread.h"

#include "cm_thread.h"

/* ---- the lock, and cancellation ---- */

pthread_mutex_t rdmacm_lock = PTHREAD_MUTEX_INITIALIZER;

/* Per thread: the number of holds, and the program's cancellation state outside of them. */
static __thread int holds, state;

void cancel_hold(void)
{
	if (!holds++)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
}

void cancel_release(void)
{
	if (!--holds)
		pthread_setcancelstate(state, NULL);
}

void cancel_point(void)
{
	cancel_open();
	pthread_testcancel();
	cancel_shut();
}

void cancel_open(void)
{
	if (holds == 1)
		pthread_setcancelstate(state, NULL);
}

void cancel_shut(void)
{
	if (holds == 1)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

/* ---- the state of the thread ---- */

#define EVENTS_AT_ONCE 32

struct loop cm_loop = { .epoll_fd = -1 };

static struct {
	bool running;
	bool refused; /* the kernel refuses a call of the loop: one turn a millisecond */
	struct source kick; /* readable: a timer is due before the thread wakes */
	u64 sleeps_until_ns; /* 0: the thread is awake */
	struct cm_timer timers; /* the ring's head */
} cm_thread;

/* ---- timers ---- */

static void cm_thread_kick(void)
{
	const u64 one = 1;

	if (write(cm_thread.kick.fd, &one, sizeof(one)) < 0)
		return;
}

void cm_timer_clear(struct cm_timer *t)
{
	if (!t->set)
		return;
	t->prev->next = t->next;
	t->next->prev = t->prev;
	t->set = false;
}

void cm_timer_set(struct cm_timer *t, u64 at_ns)
{
	struct cm_timer *after;

	if (t->set && t->at_ns == at_ns)
		return;
	cm_timer_clear(t);
	if (at_ns == NSEC_NEVER)
		return;
	t->at_ns = at_ns;
	after = cm_thread.timers.prev;
	while (after != &cm_thread.timers && after->at_ns > at_ns)
		after = after->prev;
	t->prev = after;
	t->next = after->next;
	after->next->prev = t;
	after->next = t;
	t->set = true;
	if (at_ns < cm_thread.sleeps_until_ns) {
		cm_thread.sleeps_until_ns = at_ns;
		cm_thread_kick();
	}
}

static void cm_timers_run(void)
{
	struct cm_timer *t = cm_thread.timers.next;

	while (t != &cm_thread.timers && t->at_ns <= clock_now_ns()) {
		cm_timer_clear(t);
		t->fn(t);
		t = cm_thread.timers.next;
	}
}

/* ---- the thread ---- */

/* Returns milliseconds, rounded up; -1: no limit. */
static int cm_thread_timeout(u64 until_ns)
{
	const u64 now_ns = clock_now_ns();

	if (until_ns == NSEC_NEVER)
		return -1;
	if (until_ns <= now_ns)
		return 0;
	return (int)min_u64((until_ns - now_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, INT_MAX);
}

/* Whether err says that the kernel refuses a call, as a seccomp filter does. */
static bool cm_thread_is_refused(int err)
{
	return err < 0 && err != -EINTR && err != -EAGAIN;
}

static void *cm_thread_main(void *arg)
{
	pthread_setname_np(pthread_self(), "xroce/cm");
	rdmacm_enter();
	for (;;) {
		const struct cm_timer *first = cm_thread.timers.next;
		int timeout, turn;

		cm_thread.sleeps_until_ns = first == &cm_thread.timers ? NSEC_NEVER : first->at_ns;
		timeout = cm_thread_timeout(cm_thread.sleeps_until_ns);
		rdmacm_leave();
		if (cm_thread.refused || cm_thread_is_refused(loop_wait(&cm_loop, timeout)))
			kernel_await(NULL, 0, clock_now_ns() + NSEC_PER_MSEC);
		rdmacm_enter();
		cm_thread.sleeps_until_ns = 0;
		cm_thread.refused = false;
		turn = 1;
		for (u32 i = 0; i < EVENTS_AT_ONCE && turn == 1; i++)
			turn = loop_turn(&cm_loop, 0);
		cm_thread.refused |= cm_thread_is_refused(turn);
		cm_timers_run();
	}
	return NULL; /* never */
}

static void cm_thread_kicked(struct source *s, u32 events)
{
	u64 count;

	if (read(s->fd, &count, sizeof(count)) < 0)
		cm_thread.refused |= cm_thread_is_refused(-errno);
}

static int cm_thread_start_locked(void)
{
	pthread_t thread;
	u64 count;
	int err;

	if (cm_thread.running)
		return 0;
	cm_thread.timers.next = cm_thread.timers.prev = &cm_thread.timers;
	cm_thread.kick = (struct source){ .ready = cm_thread_kicked,
				     .fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK) };
	if (cm_thread.kick.fd < 0)
		return -errno;
	/* whether a seccomp filter refuses the call is found here, not in the loop */
	err = read(cm_thread.kick.fd, &count, sizeof(count)) < 0 ? -errno : 0;
	if (err) {
		close(cm_thread.kick.fd);
		return err;
	}
	err = loop_make(&cm_loop);
	if (!err)
		err = loop_add(&cm_loop, &cm_thread.kick);
	if (!err)
		err = thread_start(&thread, cm_thread_main, NULL);
	if (err) {
		loop_unmake(&cm_loop);
		close(cm_thread.kick.fd);
		return err;
	}
	pthread_detach(thread);
	cm_thread.running = true;
	return 0;
}

int cm_thread_start(void)
{
	int err;

	rdmacm_enter();
	err = cm_thread_start_locked();
	rdmacm_leave();
	return err;
}

void cm_thread_after_fork(void)
{
	if (cm_thread.running) {
		loop_unmake(&cm_loop);
		close(cm_thread.kick.fd);
	}
	cm_thread.running = false;
	cm_thread.sleeps_until_ns = 0;
}

/* ---- work ---- */

/*
 * Work that may sleep: pool threads start on demand and exit after a second without work. If no
 * thread can be created (RLIMIT_NPROC, RLIMIT_AS), the CM thread does the work.
 */

#define THREADS_MAX 16

static struct {
	struct cm_work *head, **tail;
	u32 waiting, threads, idle;
	pthread_cond_t more;
	struct cm_timer unaided; /* set while there is work and no thread */
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

bool cm_work_here(void)
{
	struct cm_work *work = pool.head;

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
	pthread_setname_np(pthread_self(), "xroce/cm-work");
	rdmacm_enter();
	do {
		pool_wait();
	} while (cm_work_here());
	pool.threads--;
	rdmacm_leave();
	return NULL;
}

/* Does one piece of work, then lets the CM thread read its descriptors before the next. */
static void pool_unaided(struct cm_timer *timer)
{
	if (cm_work_here() && pool.head)
		cm_timer_set(timer, clock_now_ns() + NSEC_PER_MSEC);
}

void cm_work_add(struct cm_work *work)
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
		cm_timer_set(&pool.unaided, clock_now_ns());
	}
}

void cm_work_after_fork(void)
{
	pool.head = NULL;
	pool.tail = &pool.head;
	pool.waiting = pool.threads = pool.idle = 0;
	pool.unaided.set = false;
	pthread_cond_init(&pool.more, NULL);
}
