/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/privilege.h"
#include "adopter.h"
#include "daemonize.h"

static bool daemonize_would_be_adopted(void)
{
	int adopts = 0;

	return getpid() == 1 || (!prctl(PR_GET_CHILD_SUBREAPER, &adopts, 0, 0, 0) && adopts);
}

/* Closes all descriptors except keep[]. Returns false if some may still be open. */
static bool daemonize_close_others(const int *keep, u32 n)
{
	unsigned int from = 0, next;
	bool closed = true;

	for (;;) {
		next = UINT_MAX;
		for (u32 i = 0; i < n; i++)
			if ((unsigned int)keep[i] >= from && (unsigned int)keep[i] < next)
				next = (unsigned int)keep[i];
		if (next != from)
			closed &= !syscall(SYS_close_range, from,
					   next == UINT_MAX ? UINT_MAX : next - 1, 0);
		if (next == UINT_MAX)
			return closed;
		from = next + 1;
	}
}

/* Opens /dev/null as the standard descriptors, so that later files do not take their numbers. */
static bool daemonize_open_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
	return fd >= 0;
}

/* Keeps only the capabilities in keep, a bitmap; none in a user namespace of the user. */
static void daemonize_drop_privileges(u64 keep)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (!privilege_in_first_user_namespace())
		keep = 0;
	if (keep == DAEMONIZE_ALL_CAPS || syscall(SYS_capget, &header, data))
		return;
	for (u32 i = 0; i < 2; i++) {
		data[i].effective &= (u32)(keep >> 32 * i);
		data[i].permitted &= (u32)(keep >> 32 * i);
		data[i].inheritable = 0;
	}
	syscall(SYS_capset, &header, data);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Resets signals that the program blocks or ignores. */
static void daemonize_reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Replaces the command line of `xroce run` or `serve`, which may have a program's words: pkill -f
 * for that program must not match this process. The command line lies between the addresses in
 * fields 48 and 49 of /proc/self/stat.
 */
static void daemonize_set_name(const char *name)
{
	char line[2048], *at;
	unsigned long from = 0, to = 0;
	FILE *f = fopen("/proc/self/stat", "re");

	prctl(PR_SET_NAME, name);
	if (!f)
		return;
	/* field 3 follows the name, which may have any characters */
	at = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	for (int field = 2; at && field < 48; field++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, " %lu %lu", &from, &to) != 2 || !from || to <= from)
		return;
	memset((void *)from, 0, to - from);
	memcpy((void *)from, name, strnlen(name, to - from - 1));
}

__attribute__((noreturn)) static void daemonize_begin(const char *name, u64 caps,
						      void (*work)(void *arg), void *arg,
						      const int *keep, u32 n)
{
	daemonize_drop_privileges(caps);
	daemonize_reset_signals();
	daemonize_set_name(name);
	if (daemonize_close_others(keep, n) && daemonize_open_standard() && !chdir("/"))
		work(arg);
	_exit(0);
}

/*
 * The intermediate process exits at once, so that its child is adopted. It is waited for here, as
 * the program must not find a child that it did not start.
 */
int daemonize(const char *name, u64 caps, void (*work)(void *arg), void *arg, const int *keep,
	      u32 n)
{
	pid_t pid;

	if (daemonize_would_be_adopted() || !adopter_reaps())
		return -ECHILD;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		setsid();
		pid = fork();
		if (pid)
			_exit(pid < 0);
		daemonize_begin(name, caps, work, arg, keep, n);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

int daemonize_as_child(const char *name, void (*work)(void *arg), void *arg, const int *keep, u32 n)
{
	const pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		setsid();
		daemonize_begin(name, DAEMONIZE_ALL_CAPS, work, arg, keep, n);
	}
	return pid;
}
