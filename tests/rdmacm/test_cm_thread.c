/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* The CM thread: its start, timers in their order, inputs that are removed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../user/os/clock.h"
#include "../../user/rdmacm/cm_thread.h"

static bool no_thread;
static sem_t done;

/* In front of the C library's. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	__typeof__(&pthread_create) real =
		(__typeof__(&pthread_create))dlsym(RTLD_NEXT, "pthread_create");

	return no_thread ? EAGAIN : real(thread, attr, fn, arg);
}

/* A case that hangs ends the program. */
static void wait_done(void)
{
	alarm(30);
	while (sem_wait(&done))
		;
	alarm(0);
}

static void timer_posts(struct cm_timer *t)
{
	sem_post(&done);
}

/* The first one of the process, so no case may come before this one. */
static void loop_start__after_one_that_failed(void **state)
{
	struct cm_timer t = { .fn = timer_posts };
	struct source never = { .fd = -1 };

	no_thread = true;
	assert_int_equal(cm_thread_start(), -EAGAIN);
	no_thread = false;
	assert_int_equal(cm_thread_start(), 0);
	assert_int_equal(cm_thread_start(), 0);
	alarm(30);
	rdmacm_enter();
	loop_remove(&cm_loop, &never);
	cm_timer_set(&t, clock_now_ns());
	rdmacm_leave();
	wait_done();
}

static struct cm_timer timer[4];
static u32 order[4], num_run;

static void timer_notes(struct cm_timer *t)
{
	order[num_run++] = (u32)(t - timer);
	if (num_run == 3)
		sem_post(&done);
}

static void loop_set_timer__in_the_order_of_their_times(void **state)
{
	const u64 now_ns = clock_now_ns();
	static const u64 before[4] = { 1, 3, 2, 4 };

	rdmacm_enter();
	num_run = 0;
	for (u32 i = 0; i < 4; i++) {
		timer[i] = (struct cm_timer){ .fn = timer_notes };
		cm_timer_set(&timer[i], now_ns - before[i]);
	}
	cm_timer_set(&timer[3], NSEC_NEVER);
	rdmacm_leave();
	wait_done();
	/* all that is due runs before the thread lets the lock go */
	rdmacm_enter();
	rdmacm_leave();
	assert_int_equal(num_run, 3);
	assert_int_equal(order[0], 1);
	assert_int_equal(order[1], 2);
	assert_int_equal(order[2], 0);
	assert_false(timer[0].set || timer[3].set);
}

static struct source input[2];
static struct cm_timer after;
static u32 num_called;

static void input_posts(struct source *in, u32 events)
{
	loop_remove(&cm_loop, in);
	sem_post(&done);
}

/* After a call by the thread with the lock held, the thread sleeps before it releases the lock. */
static void loop_set_timer__a_sooner_time(void **state)
{
	struct cm_timer t = { .fn = timer_posts };

	rdmacm_enter();
	cm_timer_set(&t, clock_now_ns() + 3600 * NSEC_PER_SEC);
	input[0] = (struct source){ .ready = input_posts, .fd = eventfd(1, 0) };
	assert_int_equal(loop_add(&cm_loop, &input[0]), 0);
	rdmacm_leave();
	wait_done();
	rdmacm_enter();
	cm_timer_set(&t, clock_now_ns());
	rdmacm_leave();
	wait_done();
	close(input[0].fd);
}

static void input_removes_both(struct source *in, u32 events)
{
	num_called++;
	loop_remove(&cm_loop, &input[0]);
	loop_remove(&cm_loop, &input[1]);
	cm_timer_set(&after, clock_now_ns()); /* timers come after readable descriptors */
}

static void loop_remove__of_what_is_readable(void **state)
{
	after.fn = timer_posts;
	rdmacm_enter();
	for (u32 i = 0; i < 2; i++) {
		input[i] = (struct source){ .ready = input_removes_both, .fd = eventfd(1, 0) };
		assert_int_equal(loop_add(&cm_loop, &input[i]), 0);
	}
	rdmacm_leave();
	wait_done();
	assert_int_equal(num_called, 1);
	for (u32 i = 0; i < 2; i++)
		close(input[i].fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loop_start__after_one_that_failed),
		cmocka_unit_test(loop_set_timer__in_the_order_of_their_times),
		cmocka_unit_test(loop_set_timer__a_sooner_time),
		cmocka_unit_test(loop_remove__of_what_is_readable),
	};

	sem_init(&done, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
