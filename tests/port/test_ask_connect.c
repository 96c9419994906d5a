/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* user/client/ask.c: ask_connect() finds a broker's socket, and which brokers it trusts. */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/client/ask.h"

/* No network namespace has this number, so no broker's path is taken. */
#define NO_NETNS 4u
#define QUEUE	 16 /* connections that are not accepted */

/* A socket at the place of the broker's. */
static int serve(u32 ifindex, bool listens)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(sun.sun_path, sizeof(sun.sun_path), ASK_PATH, (unsigned long long)NO_NETNS,
		 ifindex);
	assert_true(mkdir(ASK_DIR, 0755) == 0 || errno == EEXIST);
	unlink(sun.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(chmod(sun.sun_path, 0666), 0);
	if (listens)
		assert_int_equal(listen(fd, QUEUE), 0);
	return fd;
}

static void serve_end(int fd, u32 ifindex)
{
	char path[108];

	close(fd);
	snprintf(path, sizeof(path), ASK_PATH, (unsigned long long)NO_NETNS, ifindex);
	unlink(path);
}

static int try_connect(u32 ifindex)
{
	struct asker a;
	int err;

	ask_init(&a);
	err = ask_connect(&a, NO_NETNS, ifindex);
	assert_true(err || a.fd >= 0);
	assert_true(!err || a.fd == -1);
	ask_close(&a);
	return err;
}

static bool become(uid_t uid)
{
	return !setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid);
}

/* Another user's view: its status is the error. */
static int try_connect_as(uid_t uid, u32 ifindex)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		_exit(become(uid) ? -try_connect(ifindex) : 255);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* Listens as that user, until it is killed. */
static pid_t serve_as(uid_t uid, int fd, int *until)
{
	int ready[2], end[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC) | pipe2(end, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(end[1]);
		if (!become(uid) || listen(fd, QUEUE) || write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(end[0], &byte, 1) != 0);
	}
	close(end[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*until = end[1];
	return child;
}

/* The kernel refuses a limit with a million microseconds, and takes 0 for no limit. */
static void ask_connect__has_a_limit_that_the_kernel_takes(void **state)
{
	static const struct {
		u64 ns;
		struct timeval is;
	} rows[] = {
		{ 0, { 0, 0 } },
		{ 1, { 0, 1 } },
		{ NSEC_PER_USEC, { 0, 1 } },
		{ NSEC_PER_USEC + 1, { 0, 2 } },
		{ NSEC_PER_SEC - NSEC_PER_USEC, { 0, 999999 } },
		{ NSEC_PER_SEC - NSEC_PER_USEC + 1, { 1, 0 } },
		{ NSEC_PER_SEC - 1, { 1, 0 } },
		{ NSEC_PER_SEC, { 1, 0 } },
		{ 5 * NSEC_PER_SEC - 1, { 5, 0 } },
		{ 5 * NSEC_PER_SEC + 1, { 5, 1 } },
	};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct timeval t = clock_timeval(rows[i].ns);

		assert_int_equal(t.tv_sec, rows[i].is.tv_sec);
		assert_int_equal(t.tv_usec, rows[i].is.tv_usec);
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)), 0);
	}
	close(fd);
}

static void ask_connect__finds_no_broker(void **state)
{
	int fd;

	assert_int_equal(try_connect(1), -ENOENT);
	/* left by a killed one */
	fd = serve(2, false);
	assert_int_equal(try_connect(2), -ENOENT);
	serve_end(fd, 2);
}

static void ask_connect__finds_roots_or_ones_own(void **state)
{
	int fd = serve(3, true), until, status;
	pid_t server;

	assert_int_equal(try_connect(3), 0);
	assert_int_equal(try_connect_as(65534, 3), 0);
	serve_end(fd, 3);
	fd = serve(4, false);
	server = serve_as(65533, fd, &until);
	assert_int_equal(try_connect_as(65533, 4), 0);
	assert_int_equal(try_connect(4), -EPERM);
	assert_int_equal(try_connect_as(65532, 4), -EPERM);
	close(until);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	serve_end(fd, 4);
}

/* In a user namespace each user without a number there appears as 65534, as a process may be. */
static int try_connect_without_numbers(u32 ifindex)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		_exit(become(65532) && !unshare(CLONE_NEWUSER) && geteuid() == 65534 ?
			      -try_connect(ifindex) :
			      255);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* Root has no number there either: its socket is in a directory that only root can have made. */
static void ask_connect__believes_roots_directory(void **state)
{
	static const struct {
		mode_t dir, parent;
		int want;
	} row[] = {
		{ 0755, 0755, 0 },	{ 0777, 0755, -EPERM }, { 0775, 0755, -EPERM },
		{ 0755, 0777, -EPERM }, { 0755, 0775, -EPERM },
	};
	int fd;

	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", "/run", "tmpfs", 0, "mode=755"), 0);
	fd = serve(6, true);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		assert_int_equal(chmod(ASK_DIR, row[i].dir) | chmod("/run", row[i].parent), 0);
		assert_int_equal(try_connect_without_numbers(6), row[i].want);
	}
	assert_int_equal(chmod("/run", 0755), 0);
	serve_end(fd, 6);
}

/* Where all users have numbers, the overflow uid is one of theirs. */
static void ask_connect__is_not_with_a_user_called_overflow(void **state)
{
	int fd = serve(7, false), until, status;
	pid_t server = serve_as(65534, fd, &until);

	assert_int_equal(try_connect_as(65532, 7), -EPERM);
	close(until);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	serve_end(fd, 7);
}

static void ask_connect__is_not_for_everybody(void **state)
{
	char path[108];
	int fd = serve(5, true);

	snprintf(path, sizeof(path), ASK_PATH, (unsigned long long)NO_NETNS, 5u);
	assert_int_equal(chmod(path, 0660), 0);
	assert_int_equal(try_connect_as(65534, 5), -EACCES);
	serve_end(fd, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ask_connect__has_a_limit_that_the_kernel_takes),
		cmocka_unit_test(ask_connect__finds_no_broker),
		cmocka_unit_test(ask_connect__finds_roots_or_ones_own),
		cmocka_unit_test(ask_connect__believes_roots_directory),
		cmocka_unit_test(ask_connect__is_not_with_a_user_called_overflow),
		cmocka_unit_test(ask_connect__is_not_for_everybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
