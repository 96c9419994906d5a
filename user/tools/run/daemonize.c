/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Starts a process that outlives the program, if the first process of its namespace adopts it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/inherited.h"
#include "../../os/privilege.h"
#include "daemonize.h"

/* ---- who adopts ---- */

#define ADOPTER_TEXT 4096

static bool adopter_signals_have(const char *status, const char *line)
{
	const char *at = strstr(status, line);

	return at && strtoull(at + strlen(line), NULL, 16) & 1ull << (SIGCHLD - 1);
}

bool adopter_status_reaps(const char *status)
{
	return adopter_signals_have(status, "\nSigBlk:") ||
	       adopter_signals_have(status, "\nSigIgn:");
}

bool adopter_stat_reaps(const char *stat)
{
	/* proc(5), field 11 (the state is 3): minor faults of children that were waited for */
	unsigned long long faults;

	return sscanf(stat, "%*c %*d %*d %*d %*d %*d %*u %*u %llu", &faults) == 1 && faults;
}

/* Reads a file of /proc and appends a 0. Returns false if unreadable. */
static bool adopter_read(const char *path, char text[ADOPTER_TEXT])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, ADOPTER_TEXT - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	return n > 0;
}

/* Returns stat from the state on, as the name before it may have any characters; NULL if none. */
static const char *adopter_state(const char *stat)
{
	const char *end = strrchr(stat, ')');

	return end && end[1] == ' ' ? end + 2 : NULL;
}

/* Returns whether /proc belongs to this process's PID namespace. */
static bool adopter_is_seen(void)
{
	char text[32] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 && atol(text) == getpid();
}

/* Without CONFIG_PROC_CHILDREN returns false. */
static bool adopter_has_many_dead(void)
{
	FILE *f = fopen("/proc/1/task/1/children", "re");
	char path[64], text[ADOPTER_TEXT];
	const char *state;
	int pid, dead = 0;

	while (f && dead < ADOPTER_DEAD_MAX && fscanf(f, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		if (adopter_read(path, text) && strstr(text, "(xroce-")) {
			state = adopter_state(text);
			dead += state && *state == 'Z';
		}
	}
	if (f)
		fclose(f);
	return dead == ADOPTER_DEAD_MAX;
}

bool adopter_reaps(void)
{
	char text[ADOPTER_TEXT];
	const char *state;

	if (!adopter_is_seen())
		return false;
	if (adopter_read("/proc/1/status", text) && adopter_status_reaps(text))
		return true;
	state = adopter_read("/proc/1/stat", text) ? adopter_state(text) : NULL;
	return state && adopter_stat_reaps(state) && !adopter_has_many_dead();
}

/* ---- the process ---- */

/* Orphans are waited for: by the first process, or by the parent of this process (reaper.h). */
static bool daemonize_is_adopted;

static bool daemonize_would_be_adopted(void)
{
	int adopts = 0;

	return getpid() == 1 || (!prctl(PR_GET_CHILD_SUBREAPER, &adopts, 0, 0, 0) && adopts);
}

bool daemonize_lacks_adopter(void)
{
	if (daemonize_would_be_adopted() || !adopter_is_seen())
		return false;
	daemonize_is_adopted = adopter_reaps();
	return !daemonize_is_adopted;
}

void daemonize_has_adopter(void)
{
	daemonize_is_adopted = true;
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

void daemonize_leave(const char *name)
{
	daemonize_set_name(name);
	daemonize_close_others(NULL, 0);
	daemonize_open_standard();
	/* a failure only keeps the directory in use */
	(void)!chdir("/");
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

	if (daemonize_would_be_adopted() || (!daemonize_is_adopted && !adopter_reaps()))
		return -ECHILD;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		setsid();
		/* here, as the child might never run beside a program that spins */
		inherited_reset();
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
