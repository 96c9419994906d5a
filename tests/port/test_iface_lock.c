/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * user/broker/iface_lock.c and broker_socket.c, user/os/netdev_holder.c: the owner of an interface,
 * whether it admits others, and the fate of its names and socket when it exits. In the test's own
 * network namespace; needs root.
 */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/client/broker_socket.h"
#include "../../user/broker/iface_lock.h"
#include "../../user/broker/visitors.h"
#include "../../user/os/netdev.h"
#include "../common/open_fds.h"

#define IFINDEX 4711u

/* Until the holder that was met is seen to have ended, or for this one it is given up. */
static int take(struct iface_lock *h)
{
	int fd;

	while ((fd = iface_lock_take(h)) == -EAGAIN)
		iface_lock_await(h);
	return fd;
}

static void hold_take__of_nobody(void **state)
{
	struct iface_lock h;
	int fd;

	iface_lock_begin(&h, IFINDEX, false);
	fd = iface_lock_take(&h);
	assert_true(fd >= 0);
	close(fd);
	iface_lock_end(&h);
}

/* At once, also for an owner that was waited for. */
static void hold_take__of_one_that_lets_nobody_in(void **state)
{
	const u32 before = open_fds();
	const int holder = netdev_hold(IFINDEX);
	struct iface_lock h;
	int alone;

	iface_lock_begin(&h, IFINDEX, false);
	assert_int_equal(iface_lock_take(&h), -EAGAIN);
	assert_false(netdev_is_alone(IFINDEX, -1));
	alone = netdev_say_alone(IFINDEX);
	assert_true(alone >= 0 && netdev_is_alone(IFINDEX, -1));
	assert_int_equal(iface_lock_take(&h), -EBUSY);
	close(alone);
	assert_int_equal(iface_lock_take(&h), -EAGAIN);
	close(holder);
	iface_lock_end(&h);
	assert_int_equal(open_fds(), before);
}

static void *close_later(void *arg)
{
	sem_t *looked = ((void **)arg)[0];
	const int fd = *(int *)((void **)arg)[1];

	sem_wait(looked);
	close(fd);
	return NULL;
}

static void hold_take__waits_for_the_end(void **state)
{
	int holder = netdev_hold(IFINDEX), fd;
	pthread_t thread;
	struct iface_lock h;
	sem_t looked;

	sem_init(&looked, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, close_later,
					(void *[]){ &looked, &holder }), 0);
	iface_lock_begin(&h, IFINDEX, false);
	assert_int_equal(iface_lock_take(&h), -EAGAIN);
	sem_post(&looked);
	fd = take(&h);
	assert_true(fd >= 0);
	pthread_join(thread, NULL);
	close(fd);
	iface_lock_end(&h);
}

/* Before connections are accepted, many lookups leave room in the name's queue for others. */
static void hold_take__does_not_fill_the_queue(void **state)
{
	const int holder = netdev_hold(IFINDEX);
	char comm[32];
	struct iface_lock h;
	pid_t pid;

	iface_lock_begin(&h, IFINDEX, false);
	for (u32 i = 0; i < 3 * SOMAXCONN; i++)
		assert_int_equal(iface_lock_take(&h), -EAGAIN);
	assert_int_equal(netdev_holder(IFINDEX, &pid, comm, sizeof(comm)), 0);
	assert_int_equal(pid, getpid());
	iface_lock_end(&h);
	close(holder);
}

static bool hung_up(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

/* A child with another user connects `other` times; returns whether its first connection ended. */
static int connect_as_other(struct loop *loop, u32 other)
{
	const pid_t child = fork();
	int status = 0, first = -1, last = -1;

	if (child == 0) {
		if (setresuid(4321, 4321, 4321))
			_exit(9);
		for (u32 i = 0; i < other; i++) {
			last = netdev_meet_holder(IFINDEX);
			first = first < 0 ? last : first;
		}
		for (u32 i = 0; i < 100 && !hung_up(first); i++)
			poll(NULL, 0, 10);
		_exit(last < 0 || hung_up(last) ? 9 : hung_up(first));
	}
	while (!waitpid(child, &status, WNOHANG))
		loop_turn(loop, 1);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/*
 * Each connection is accepted, can send no more, and hangs up at the end, or after many newer
 * connections of its kind: connections of other users do not end root's.
 */
static void visitors__accepts_all(void **state)
{
	const u32 before = open_fds();
	const int holder = netdev_hold(IFINDEX);
	struct visitors v;
	struct loop loop;
	char word[64] = { 0 };
	int met, newest = -1;

	assert_int_equal(loop_make(&loop), 0);
	visitors_init(&v);
	met = netdev_meet_holder(IFINDEX);
	while (send(met, word, sizeof(word), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(visitors_begin(&v, &loop, holder), 0);
	assert_true(loop_turn(&loop, 1000));
	assert_int_equal(send(met, word, sizeof(word), MSG_DONTWAIT | MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(connect_as_other(&loop, VISITORS_OTHERS), 0);
	assert_int_equal(connect_as_other(&loop, 2 * VISITORS_OTHERS), 1);
	assert_false(hung_up(met));
	for (u32 i = 0; i < VISITORS_TRUSTED; i++) {
		close(newest);
		newest = netdev_meet_holder(IFINDEX);
		assert_true(newest >= 0);
		while (loop_turn(&loop, 0))
			;
	}
	assert_true(hung_up(met));
	assert_false(hung_up(newest));
	visitors_end(&v);
	assert_true(hung_up(newest));
	close(met);
	close(newest);
	close(holder);
	loop_unmake(&loop);
	assert_int_equal(open_fds(), before);
}

/* It has the name and does not listen: that is not another user's name. */
static void *listen_later(void *arg)
{
	poll(NULL, 0, 1);
	assert_int_equal(listen(*(int *)arg, 1), 0);
	return NULL;
}

static void netdev_hold__before_another_listens(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "xroce/%u", IFINDEX);
	pthread_t thread;

	assert_int_equal(bind(fd, (struct sockaddr *)&at,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
			 0);
	assert_int_equal(pthread_create(&thread, NULL, listen_later, &fd), 0);
	assert_int_equal(netdev_hold(IFINDEX), -EBUSY);
	pthread_join(thread, NULL);
	close(fd);
	fd = netdev_hold(IFINDEX);
	assert_true(fd >= 0);
	close(fd);
}

static int without_privileges(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { 0 };
	const int before = open_fds();
	struct iface_lock h;
	int ret;

	if (syscall(SYS_capset, &header, none))
		return -errno;
	iface_lock_begin(&h, IFINDEX, false);
	ret = iface_lock_take(&h);
	iface_lock_end(&h);
	return open_fds() == before ? ret : -EBADF;
}

/* In its own process. */
static int taken_without_privileges(void)
{
	const pid_t child = fork();
	int status;

	if (!child)
		_exit(-without_privileges());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* It waits for a holder as all do, and is no holder itself. */
static void hold_take__without_privileges(void **state)
{
	int holder;

	assert_int_equal(taken_without_privileges(), -EPERM);
	holder = netdev_hold(IFINDEX);
	assert_true(holder >= 0);
	assert_int_equal(taken_without_privileges(), -EAGAIN);
	close(holder);
}

/* ---- broker_socket.c ---- */

static bool path_is(const char *kind)
{
	struct sockaddr_un at;
	struct stat st;

	broker_socket_path(IFINDEX, &at);
	if (lstat(at.sun_path, &st))
		return !strcmp(kind, "nothing");
	return S_ISSOCK(st.st_mode) ? !strcmp(kind, "socket") : !strcmp(kind, "file");
}

static struct broker_socket opened(void)
{
	struct broker_socket d;

	assert_int_equal(broker_socket_open(&d, IFINDEX, 0600, (gid_t)-1), 0);
	return d;
}

static bool is_asked(const struct broker_socket *d)
{
	struct visitor v;
	pid_t pid;

	assert_int_equal(broker_socket_holder(IFINDEX, &pid), 0);
	if (broker_socket_take(d, &v))
		return false;
	close(v.fd);
	return true;
}

/* The one before is being closed by the kernel, and listens still. */
static void door_open__in_place_of_another(void **state)
{
	struct broker_socket old = opened(), new = opened();
	struct sockaddr_un at;

	assert_true(is_asked(&new) && !is_asked(&old));
	broker_socket_close(&old);
	assert_true(path_is("socket") && is_asked(&new));
	broker_socket_close(&new);
	assert_true(path_is("nothing"));
	/* or of an exited one */
	old = opened();
	close(old.fd);
	assert_true(path_is("socket"));
	new = opened();
	assert_true(is_asked(&new));
	broker_socket_close(&new);
	broker_socket_path(IFINDEX, &at);
	strcat(at.sun_path, ".new");
	assert_int_not_equal(access(at.sun_path, F_OK), 0);
}

static void door_open__not_in_place_of_a_file(void **state)
{
	struct sockaddr_un at;
	struct broker_socket d;

	broker_socket_path(IFINDEX, &at);
	close(open(at.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(broker_socket_open(&d, IFINDEX, 0600, (gid_t)-1), -EADDRINUSE);
	assert_int_equal(d.fd, -1);
	assert_true(path_is("file"));
	unlink(at.sun_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hold_take__of_nobody),
		cmocka_unit_test(hold_take__of_one_that_lets_nobody_in),
		cmocka_unit_test(hold_take__waits_for_the_end),
		cmocka_unit_test(hold_take__does_not_fill_the_queue),
		cmocka_unit_test(visitors__accepts_all),
		cmocka_unit_test(hold_take__without_privileges),
		cmocka_unit_test(netdev_hold__before_another_listens),
		cmocka_unit_test(door_open__in_place_of_another),
		cmocka_unit_test(door_open__not_in_place_of_a_file),
	};

	if (unshare(CLONE_NEWNET))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
