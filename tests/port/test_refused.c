/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * System calls that a seccomp filter refuses: the error comes back, and no loop spins. Each case
 * runs in a child, as a filter cannot be removed.
 */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/host/receive.h"
#include "../../user/os/clock.h"
#include "../../user/os/kernel.h"
#include "../../user/os/loop.h"

#define LONGEST_S 10 /* after which a child that spins is killed */

static void refuse(int call, u32 err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (u32)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { ARRAY_SIZE(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(77);
}

/* Returns what fn returns in a child, whose 0 is success, as 128 + signal if it was killed. */
static int in_child(int (*fn)(void))
{
	const pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(LONGEST_S);
		_exit(fn());
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int random_by_file(void)
{
	u64 word[2] = { 0 };

	refuse(SYS_getrandom, ENOSYS);
	if (kernel_random(word, sizeof(word)))
		return 1;
	return word[0] && word[1] && word[0] != word[1] ? 0 : 2;
}

static void kernel_random__from_the_file(void **state)
{
	assert_int_equal(in_child(random_by_file), 0);
}

static int random_by_neither(void)
{
	u64 word[2] = { 1, 2 }, before;

	refuse(SYS_getrandom, EPERM);
	refuse(SYS_openat, EPERM);
	if (kernel_random(word, sizeof(word)) != -EPERM)
		return 1;
	for (u32 i = 0; i < 100; i++) {
		before = word[0];
		kernel_random_renew(word, 2);
		if (word[0] == before || word[0] == word[1])
			return 2;
	}
	return 0;
}

static void kernel_random__refused(void **state)
{
	assert_int_equal(in_child(random_by_neither), 0);
}

/* A loop around it has at most one turn in a millisecond. */
static int await_without_ppoll(void)
{
	const u64 begin_ns = clock_now_ns();

	refuse(SYS_ppoll, EPERM);
	for (u32 i = 0; i < 50; i++)
		if (kernel_await(NULL, 0, NSEC_NEVER) != -EPERM)
			return 1;
	return clock_now_ns() - begin_ns >= 50 * NSEC_PER_MSEC ? 0 : 2;
}

static void kernel_await__refused(void **state)
{
	assert_int_equal(in_child(await_without_ppoll), 0);
}

static int clear_without_read(void)
{
	const int fd = kernel_event_make(false);
	u64 begin_ns;

	kernel_event_raise(fd);
	refuse(SYS_read, EPERM);
	begin_ns = clock_now_ns();
	for (u32 i = 0; i < 50; i++)
		kernel_event_clear(fd);
	return clock_now_ns() - begin_ns >= 50 * NSEC_PER_MSEC ? 0 : 1;
}

static void kernel_event_clear__refused(void **state)
{
	assert_int_equal(in_child(clear_without_read), 0);
}

static int loop_refused(void)
{
	struct loop loop = { .epoll_fd = -1 };

	return loop_make(&loop) == -EPERM && loop.epoll_fd == -1 ? 0 : 1;
}

/* The C library uses one of two calls, by the architecture. */
static int loop_without_epoll_wait(void)
{
#ifdef SYS_epoll_wait
	refuse(SYS_epoll_wait, EPERM);
#endif
	refuse(SYS_epoll_pwait, EPERM);
	return loop_refused();
}

static int loop_without_poll(void)
{
#ifdef SYS_poll
	refuse(SYS_poll, EPERM);
#endif
	refuse(SYS_ppoll, EPERM);
	return loop_refused();
}

static void loop_make__refused(void **state)
{
	assert_int_equal(in_child(loop_without_epoll_wait), 0);
	assert_int_equal(in_child(loop_without_poll), 0);
}

static int check_without_recvmmsg(void)
{
	if (host_receive_check())
		return 1;
	refuse(SYS_recvmmsg, EPERM);
	return host_receive_check() == -EPERM ? 0 : 2;
}

static void host_receive_check__refused(void **state)
{
	assert_int_equal(in_child(check_without_recvmmsg), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_random__from_the_file),
		cmocka_unit_test(kernel_random__refused),
		cmocka_unit_test(kernel_await__refused),
		cmocka_unit_test(kernel_event_clear__refused),
		cmocka_unit_test(loop_make__refused),
		cmocka_unit_test(host_receive_check__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
