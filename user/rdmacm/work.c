/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work that may sleep: threads that come when there is some and go when there has been none for a
 * second. Where no thread can be made (RLIMIT_NPROC, RLIMIT_AS), the CM thread does the work.
 */
#include <time.h>

#include "../os/clock.h"
#include "../os/thread.h"
#include "loop.h"

#define THREADS_MAX 16

static struct {
	struct loop_work *head, **tail;
	u32 waiting, threads, idle;
	pthread_cond_t more;
	struct loop_timer unaided; /* set while there is work and no thread */
} pool = { .tail = &pool.head, .more = PTHREAD_COND_INITIALIZER };

/* Waits for work, for one second. The lock is held. */
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
