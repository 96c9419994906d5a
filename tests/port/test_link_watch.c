/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * user/os/link_watch.c: a watch that ends with the process at the other end of a socket. In a
 * network namespace of the test's own; needs root and `ip`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../user/os/link_watch.h"

#define WAIT_MS 10000 /* far more than any of it takes */
#define NO_FD	100000

static _Atomic u32 calls; /* of all that is seen, one after the other */

/* The events of one watch. */
struct seen {
	struct link_watch *watch;
	int fd; /* an eventfd, raised with each call */
	_Atomic u32 changes, losses;
	_Atomic u32 lost_as; /* the number of the call that said so */
};

static void on_change(void *arg, const struct netdev *before, const struct netdev *now)
{
	struct seen *s = arg;
	const u32 call = atomic_fetch_add(&calls, 1);

	if (now) {
		atomic_fetch_add(&s->changes, 1);
	} else {
		atomic_store(&s->lost_as, call);
		atomic_fetch_add(&s->losses, 1);
	}
	eventfd_write(s->fd, 1);
}

static void start(struct seen *s, bool urgent)
{
	struct netdev dev = { 0 };

	*s = (struct seen){ .fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE) };
	dev.ifindex = 1;
	assert_int_equal(netdev_refresh(&dev), 0);
	assert_int_equal(link_watch_start(&dev, urgent, on_change, s, &s->watch), 0);
	assert_int_equal(atomic_load(&s->changes), 1);
	assert_int_equal(eventfd_read(s->fd, &(eventfd_t){ 0 }), 0);
}

static void stop(struct seen *s)
{
	link_watch_stop(s->watch);
	close(s->fd);
}

static void next_call(struct seen *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(eventfd_read(s->fd, &(eventfd_t){ 0 }), 0);
}

static void pair_of_sockets(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void watch_until_hangup__is_the_last_call_in_order(void **state)
{
	struct seen later, first, other;
	int pair[2];

	pair_of_sockets(pair);
	start(&later, false);
	start(&first, true);
	start(&other, false);
	assert_int_equal(link_watch_until_hangup(later.watch, pair[0]), 0);
	assert_int_equal(link_watch_until_hangup(first.watch, pair[0]), 0);
	/* written data is for other readers, and is no end */
	assert_int_equal(write(pair[1], "x", 1), 1);
	assert_int_equal(system("ip link set lo mtu 1501"), 0);
	next_call(&first);
	next_call(&later);
	next_call(&other);
	assert_int_equal(atomic_load(&first.losses), 0);
	close(pair[1]);
	next_call(&first);
	next_call(&later);
	assert_int_equal(atomic_load(&first.losses), 1);
	assert_int_equal(atomic_load(&later.losses), 1);
	assert_int_equal(atomic_load(&later.lost_as), atomic_load(&first.lost_as) + 1);
	/* nor are they told of anything more; the third goes on */
	assert_int_equal(system("ip link set lo mtu 1502"), 0);
	next_call(&other);
	stop(&first);
	assert_int_equal(system("ip link set lo mtu 1503"), 0);
	next_call(&other);
	assert_int_equal(atomic_load(&other.losses), 0);
	assert_int_equal(atomic_load(&later.changes), 2);
	assert_int_equal(atomic_load(&first.changes), 2);
	stop(&later);
	stop(&other);
	close(pair[0]);
}

static void watch_until_hangup__sees_one_that_has_come(void **state)
{
	struct seen s;
	int pair[2];

	pair_of_sockets(pair);
	start(&s, false);
	assert_int_equal(shutdown(pair[0], SHUT_RDWR), 0);
	assert_int_equal(link_watch_until_hangup(s.watch, pair[0]), 0);
	next_call(&s);
	assert_int_equal(atomic_load(&s.losses), 1);
	stop(&s);
	close(pair[0]);
	close(pair[1]);
}

/* The socket of a watch that was stopped is another's number by now. */
static void watch_until_hangup__forgets_the_socket_with_the_watch(void **state)
{
	struct seen stopped, s;
	int pair[2];

	pair_of_sockets(pair);
	start(&stopped, false);
	start(&s, false);
	assert_int_equal(link_watch_until_hangup(stopped.watch, pair[0]), 0);
	stop(&stopped);
	close(pair[1]);
	assert_int_equal(system("ip link set lo mtu 1504"), 0);
	next_call(&s);
	assert_int_equal(atomic_load(&s.losses), 0);
	stop(&s);
	close(pair[0]);
}

static void watch_until_hangup__stays_with_the_other_watches(void **state)
{
	struct seen stopped, s;
	int pair[2];

	pair_of_sockets(pair);
	start(&stopped, false);
	start(&s, false);
	assert_int_equal(link_watch_until_hangup(stopped.watch, pair[0]), 0);
	assert_int_equal(link_watch_until_hangup(s.watch, pair[0]), 0);
	stop(&stopped);
	/* the other end writes nothing more, which is an end as well */
	assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
	next_call(&s);
	assert_int_equal(atomic_load(&s.losses), 1);
	stop(&s);
	close(pair[0]);
	close(pair[1]);
}

static void watch_until_hangup__refuses_what_is_no_socket(void **state)
{
	struct seen s;

	start(&s, false);
	assert_int_equal(link_watch_until_hangup(s.watch, NO_FD), -EBADF);
	stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watch_until_hangup__is_the_last_call_in_order),
		cmocka_unit_test(watch_until_hangup__sees_one_that_has_come),
		cmocka_unit_test(watch_until_hangup__forgets_the_socket_with_the_watch),
		cmocka_unit_test(watch_until_hangup__stays_with_the_other_watches),
		cmocka_unit_test(watch_until_hangup__refuses_what_is_no_socket),
	};

	if (unshare(CLONE_NEWNET))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
