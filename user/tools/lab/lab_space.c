/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/privilege.h"
#include "../cli.h"
#include "lab_space.h"

enum { EXIT_NO_PROC = 77 }; /* of the lab's first process: /proc cannot be mounted */

static int enter_namespaces(bool with_pids)
{
	int err = unshare(CLONE_NEWNET | CLONE_NEWNS) ? -errno : 0;

	if (err == -EPERM)
		/* this user becomes its root */
		err = privilege_make_user_namespace(0, 0);
	else if (!err)
		return with_pids && unshare(CLONE_NEWPID) ? -errno : 0;
	if (err)
		return err;
	return unshare(CLONE_NEWNET | CLONE_NEWNS | (with_pids ? CLONE_NEWPID : 0)) ? -errno : 0;
}

/* Mounts /proc of the PID namespace, and a private /run/xroce. Returns 0 or -errno. */
static int mount_own(bool with_pids)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	if (with_pids && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return -errno;
	/* without the directory brokers listen at an address of the network namespace */
	mount("xroce-lab", "/run/xroce", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755");
	return 0;
}

static void die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
}

/* The lab's first process. */
static int lab_first(struct lab *lab, bool with_pids)
{
	const int err = mount_own(with_pids);

	if (err)
		return with_pids ? EXIT_NO_PROC : lab_failed("make a mount namespace", err);
	if (!with_pids)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	return lab_run(lab);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	return lab_exit_status(status);
}

/* Makes the namespaces, and the first process in them. Returns its exit status. */
static int lab_guard(struct lab *lab, bool with_pids)
{
	const int err = enter_namespaces(with_pids);
	pid_t pid;

	if (err) {
		lab_failed("make namespaces", err);
		if (err == -EPERM || err == -ENOSPC || err == -EACCES)
			fprintf(stderr, "xroce lab: run it as root, or permit user namespaces "
					"(sysctl user.max_user_namespaces, "
					"kernel.unprivileged_userns_clone, "
					"kernel.apparmor_restrict_unprivileged_userns)\n");
		return EXIT_FAILED;
	}
	pid = fork();
	if (pid < 0)
		return lab_failed("start a process", -errno);
	if (!pid) {
		/* the first process of a PID namespace has no parent to compare */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(lab_first(lab, with_pids));
	}
	lab->child = pid;
	return wait_for(pid);
}

static struct lab *the_lab;
static _Atomic bool interrupted;

/* The guard and the process before it pass on signals; the lab's first process ends on them. */
static void pass_on(int sig)
{
	atomic_store_explicit(&interrupted, true, memory_order_relaxed);
	if (the_lab->child)
		kill(the_lab->child, sig);
}

static int lab_in_child(struct lab *lab, bool with_pids)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return lab_failed("start a process", -errno);
	if (!pid) {
		lab->child = 0;
		die_with_parent(parent);
		_exit(lab_guard(lab, with_pids));
	}
	lab->child = pid;
	return wait_for(pid);
}

int lab_space_run(struct lab *lab)
{
	int ret;

	the_lab = lab;
	for (u32 i = 0; i < LAB_SIGNALS; i++)
		signal(lab_signals[i], pass_on);
	ret = lab_in_child(lab, true);
	if (ret != EXIT_NO_PROC || lab->shown->began)
		return ret;
	/* its programs come from outside: without a PID namespace they would stay */
	return lab->is_kept ? lab_failed("mount /proc in a PID namespace", -EPERM) :
			      lab_in_child(lab, false);
}

bool lab_space_interrupted(void)
{
	return atomic_load_explicit(&interrupted, memory_order_relaxed);
}
