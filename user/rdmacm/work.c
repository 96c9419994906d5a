/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work that may sleep: threads that come when there is some and go when there has been none for a
 * second.
 */
#include <time.h>

#include "../base/thread.h"
#include "loop.h"

#define THREADS_MAX 16

static struct {
	struct loop_work *head, **tail;
	u32 waiting, threads, idle;
	pthread_cond_t more;
} pool = { .tail = &pool.head, .more = PTHREAD_COND_INITIALIZER };

/* Under the lock: the next one, or NULL after a second without any. */
static struct loop_work *pool_take(void)
{
	struct loop_work *work;
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pool.idle++;
	while (!pool.head && !err)
		err = pthread_cond_timedwait(&pool.more, &rdmacm_lock, &until);
	pool.idle--;
	work = pool.head;
	if (!work)
		return NULL;
	pool.head = work->next;
	if (!pool.head)
		pool.tail = &pool.head;
	pool.waiting--;
	return work;
}

static void *pool_main(void *arg)
{
	struct loop_work *work;

	rdmacm_enter();
	while ((work = pool_take())) {
		rdmacm_leave();
		work->do_work(work);
		rdmacm_enter();
		work->done(work);
	}
	pool.threads--;
	rdmacm_leave();
	return NULL;
}

int loop_work(struct loop_work *work)
{
	pthread_t thread;
	int err = 0;

	if (pool.waiting >= pool.idle && pool.threads < THREADS_MAX) {
		err = thread_start(&thread, pool_main, NULL);
		if (!err) {
			pthread_detach(thread);
			pool.threads++;
		} else if (pool.threads) {
			err = 0; /* one of the others comes to it */
		}
	}
	if (err)
		return err;
	work->next = NULL;
	*pool.tail = work;
	pool.tail = &work->next;
	pool.waiting++;
	pthread_cond_signal(&pool.more);
	return 0;
}

void work_after_fork(void)
{
	pool.head = NULL;
	pool.tail = &pool.head;
	pool.waiting = pool.threads = pool.idle = 0;
	pthread_cond_init(&pool.more, NULL);
}
