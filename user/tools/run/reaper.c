/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "daemonize.h"

/* A broker ends a second after its last client (user/broker/broker.c). */
#define REAPER_MAX_NS  (3 * NSEC_PER_SEC)
#define REAPER_LOOK_NS (100 * NSEC_PER_MSEC) /* between two looks at the children */

#define OUR_NAMES "xroce" /* the beginning: of brokers, xroce-counters, xroce-pins */

/* ---- signals ---- */

/*
 * Sets *set to the signals to wait for: all but signals of a fault of this process, and signals
 * that stop it. A terminal stops the program as well, as both are of one process group.
 */
static void reaper_signals(sigset_t *set)
{
	static const int others[] = { SIGSEGV, SIGBUS,	SIGILL,	 SIGFPE,  SIGTRAP,
				      SIGSYS,  SIGABRT, SIGTSTP, SIGTTIN, SIGTTOU };

	sigfillset(set);
	for (u32 i = 0; i < ARRAY_SIZE(others); i++)
		sigdelset(set, others[i]);
}

/* Signals of the kernel, as of a terminal's keys, are for all of the process group. */
static void reaper_pass_on(const siginfo_t *info, pid_t program)
{
	if (info->si_signo != SIGCHLD && info->si_code <= 0 && info->si_pid != program)
		kill(program, info->si_signo);
}

/* ---- children ---- */

/* Returns whether a child of this process is one of ours. False without CONFIG_PROC_CHILDREN. */
static bool reaper_has_ours(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re"), *comm;
	char path[64], name[32];
	bool has = false;
	int pid;

	while (f && !has && fscanf(f, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		comm = fopen(path, "re");
		has = comm && fgets(name, sizeof(name), comm) &&
		      !strncmp(name, OUR_NAMES, strlen(OUR_NAMES));
		if (comm)
			fclose(comm);
	}
	if (f)
		fclose(f);
	return has;
}

/* Reaps all dead children. Returns true if the program is one, with its status in *status. */
static bool reaper_reap(pid_t program, int *status)
{
	bool ended = false;
	int of_child;
	pid_t pid;

	while ((pid = waitpid(-1, &of_child, WNOHANG)) > 0)
		if (pid == program) {
			*status = of_child;
			ended = true;
		}
	return ended;
}

/* Waits for the program. Returns its status. */
static int reaper_await_program(pid_t program, const sigset_t *set)
{
	siginfo_t info;
	int status = 0;

	while (!reaper_reap(program, &status))
		if (sigwaitinfo(set, &info) > 0)
			reaper_pass_on(&info, program);
	return status;
}

/* Waits for processes of ours, at most REAPER_MAX_NS. A signal of another process ends the wait. */
static void reaper_await_ours(const sigset_t *set)
{
	const struct timespec look = { .tv_nsec = REAPER_LOOK_NS };
	const u64 until_ns = clock_now_ns() + REAPER_MAX_NS;
	siginfo_t info;
	int status, sig;

	while (reaper_has_ours() && clock_now_ns() < until_ns) {
		sig = sigtimedwait(set, &info, &look);
		if (sig > 0 && sig != SIGCHLD && sig != SIGCONT)
			break;
		reaper_reap(0, &status);
	}
	reaper_reap(0, &status);
}

/* ---- start and end ---- */

static pid_t reaper_parent; /* in its child; 0: none */

/* Ends this process with the program's status, or by the same signal without another core dump. */
__attribute__((noreturn)) static void reaper_exit(int status)
{
	const struct rlimit none = { 0, 0 };
	sigset_t all;

	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	_exit(128 + WTERMSIG(status));
}

__attribute__((noreturn)) static void reaper_run(pid_t program, const sigset_t *set)
{
	int status;

	/* a signal that the program's parent ignored would not be passed on */
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(set, sig) == 1)
			signal(sig, SIG_DFL);
	daemonize_leave("xroce-run");
	status = reaper_await_program(program, set);
	reaper_await_ours(set);
	reaper_exit(status);
}

void reaper_fork(void)
{
	const pid_t parent = getpid();
	struct sigaction child_before;
	sigset_t set, before;
	pid_t pid;

	if (!daemonize_lacks_adopter() || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		return;
	reaper_signals(&set);
	sigprocmask(SIG_BLOCK, &set, &before);
	/* if SIGCHLD is ignored, the kernel discards the exit status */
	sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, &child_before);
	pid = fork();
	if (pid > 0)
		reaper_run(pid, &set);
	sigaction(SIGCHLD, &child_before, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0) {
		prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
		return;
	}
	reaper_parent = parent;
	daemonize_has_adopter();
}

void reaper_bind(void)
{
	if (!reaper_parent)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != reaper_parent)
		_exit(128 + SIGKILL);
}
