/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * user/io/tx_pacer.c and the watch thread's jobs: the kernel is queried about an interface without
 * a waiting thread. In the test's own network namespace; needs root, `ip` and `ethtool`.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../user/os/netdev.h"
#include "../../user/io/tx_pacer.h"

#define MSEC	  (1000 * 1000ull)
#define BEGIN_NS  (1000 * 1000 * MSEC)
#define WAIT_MS	  10000 /* far more than an answer takes */

static u32 ifindex;
static struct xroce_engine_stats stats;

/* Keeps the watch thread busy until it is released. */
struct blocker {
	struct link_watch_job job;
	int entered_fd, leave_fd;
};

static void block(void *arg)
{
	struct blocker *b = arg;
	eventfd_t n;

	eventfd_write(b->entered_fd, 1);
	eventfd_read(b->leave_fd, &n);
}

static void blocker_start(struct blocker *b)
{
	eventfd_t n;

	b->entered_fd = eventfd(0, EFD_CLOEXEC);
	b->leave_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(link_watch_job_start(&b->job, block, b), 0);
	link_watch_job_ask(&b->job);
	assert_int_equal(eventfd_read(b->entered_fd, &n), 0);
}

static void blocker_stop(struct blocker *b)
{
	eventfd_write(b->leave_fd, 1);
	link_watch_job_stop(&b->job);
	close(b->entered_fd);
	close(b->leave_fd);
}

static bool is_answered(struct tx_pacer *p)
{
	for (int ms = 0; ms < WAIT_MS && !atomic_load(&p->watch.answered); ms++)
		poll(NULL, 0, 1);
	return atomic_load(&p->watch.answered);
}

static void tx_pacer_look__asks_and_takes_the_answer(void **state)
{
	struct tx_pacer p;

	assert_int_equal(tx_pacer_open(&p, ifindex, &stats), 0);
	tx_pacer_look(&p, BEGIN_NS);
	assert_false(p.takes_redirected);
	assert_true(is_answered(&p));
	tx_pacer_look(&p, BEGIN_NS + 1);
	assert_true(p.takes_redirected);
	assert_int_equal(p.frame_max, 1500 + 14);
	/* fresh for 100 ms, then asked for again, and still good until the next answer */
	tx_pacer_look(&p, BEGIN_NS + 100 * MSEC);
	assert_false(p.is_asked);
	tx_pacer_look(&p, BEGIN_NS + 100 * MSEC + 1);
	assert_true(p.is_asked);
	assert_true(p.takes_redirected);
	tx_pacer_close(&p);
}

static void tx_pacer_look__never_waits_for_the_kernel(void **state)
{
	struct blocker b;
	struct tx_pacer p;

	assert_int_equal(tx_pacer_open(&p, ifindex, &stats), 0);
	tx_pacer_look(&p, BEGIN_NS);
	assert_true(is_answered(&p));
	tx_pacer_look(&p, BEGIN_NS + 1);
	assert_true(p.takes_redirected);
	blocker_start(&b);
	tx_pacer_look(&p, BEGIN_NS + 150 * MSEC);
	assert_true(p.is_asked);
	assert_true(p.takes_redirected);
	/* an answer that is too old may be wrong */
	tx_pacer_look(&p, BEGIN_NS + 201 * MSEC);
	assert_false(p.takes_redirected);
	assert_false(atomic_load(&p.watch.answered));
	blocker_stop(&b);
	assert_true(is_answered(&p));
	tx_pacer_look(&p, BEGIN_NS + 202 * MSEC);
	assert_true(p.takes_redirected);
	tx_pacer_close(&p);
}

static void tx_pacer_look__asks_again_after_silence(void **state)
{
	struct tx_pacer p;

	assert_int_equal(tx_pacer_open(&p, ifindex, &stats), 0);
	tx_pacer_look(&p, BEGIN_NS);
	assert_true(is_answered(&p));
	/* the program sent nothing meanwhile: the answer may be as old as its question */
	tx_pacer_look(&p, BEGIN_NS + 1000 * MSEC);
	assert_false(p.takes_redirected);
	assert_true(p.is_asked);
	assert_true(is_answered(&p));
	tx_pacer_look(&p, BEGIN_NS + 1001 * MSEC);
	assert_true(p.takes_redirected);
	tx_pacer_close(&p);
}

static void tx_pacer_look__says_nothing_of_an_interface_that_has_gone(void **state)
{
	struct tx_pacer p;

	assert_int_equal(tx_pacer_open(&p, 999999, &stats), 0);
	tx_pacer_look(&p, BEGIN_NS);
	assert_true(is_answered(&p));
	tx_pacer_look(&p, BEGIN_NS + 1);
	assert_false(p.takes_redirected);
	tx_pacer_close(&p);
}

static void count(void *arg)
{
	atomic_fetch_add((_Atomic u32 *)arg, 1);
}

static void watch_job_ask__runs_once_for_each_time_it_was_free(void **state)
{
	_Atomic u32 ran = 0;
	struct link_watch_job job;
	struct blocker b;

	assert_int_equal(link_watch_job_start(&job, count, &ran), 0);
	blocker_start(&b);
	for (int i = 0; i < 5; i++)
		link_watch_job_ask(&job);
	assert_int_equal(atomic_load(&ran), 0);
	blocker_stop(&b);
	for (int ms = 0; ms < WAIT_MS && !atomic_load(&ran); ms++)
		poll(NULL, 0, 1);
	link_watch_job_stop(&job);
	assert_int_equal(atomic_load(&ran), 1);
	/* a job that was not started */
	link_watch_job_stop(&job);
}

static int make_namespace(void **state)
{
	struct netdev dev;

	if (unshare(CLONE_NEWNET) || system("ip link add va type veth peer name vb && ip link set "
					    "va up && ip link set vb up && "
					    "ethtool -K vb gro on") != 0)
		return -1;
	if (netdev_find("va", &dev))
		return -1;
	ifindex = dev.ifindex;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tx_pacer_look__asks_and_takes_the_answer),
		cmocka_unit_test(tx_pacer_look__never_waits_for_the_kernel),
		cmocka_unit_test(tx_pacer_look__asks_again_after_silence),
		cmocka_unit_test(tx_pacer_look__says_nothing_of_an_interface_that_has_gone),
		cmocka_unit_test(watch_job_ask__runs_once_for_each_time_it_was_free),
	};

	return cmocka_run_group_tests(tests, make_namespace, NULL);
}
