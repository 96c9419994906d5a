/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The namespaces of sysfs_private.h: checks which this process may have, and enters them. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/ask.h"
#include "../../os/clock.h"
#include "../../os/privilege.h"
#include "../cli.h"
#include "sysfs_private.h"

/* Checks all sets: a user namespace would lose the capability. */
static bool sysfs_private_has_a_capability(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &header, data))
		return true;
	return data[0].permitted | data[1].permitted | data[0].inheritable | data[1].inheritable;
}

static bool sysfs_private_is_roots(const char *dir)
{
	struct stat st;

	if (stat(dir, &st))
		return errno == ENOENT;
	return S_ISDIR(st.st_mode) && !st.st_uid && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Root never enters a user namespace: it would lose access to other users' files. Its UID is not
 * mapped there either. A broker is known to be root's by the owner of its socket's directory
 * (ask_may_serve() in user/attach/ask.c). A world-writable tmpfs on /run, as some containers have,
 * would therefore leave the program without a broker.
 */
static bool sysfs_private_may_enter_user_namespace(void)
{
	return getuid() && getuid() == geteuid() && getgid() == getegid() &&
	       !sysfs_private_has_a_capability() && sysfs_private_is_roots(ASK_PARENT) &&
	       sysfs_private_is_roots(ASK_DIR);
}

/* counters_err NULL: without counters, to avoid starting their process needlessly */
static int sysfs_private_make(const struct netdev *devs, u32 n, int *counters_err)
{
	struct sysfs_private_counters c = { .fuse_fd = -1, .begin_fd = -1 };
	int err;

	if (counters_err)
		c.err = sysfs_private_counters_begin(&c, devs, n, false);
	err = unshare(CLONE_NEWNS) ?
		      -errno :
		      sysfs_private_mount(devs, n, counters_err && !c.err ? &c : NULL);
	sysfs_private_counters_end(&c);
	if (counters_err)
		*counters_err = c.err;
	return err;
}

/* begin_ns: start of the wait for the lock. */
static int sysfs_private_enter_both(const struct netdev *devs, u32 n, u64 begin_ns,
				    int *counters_err)
{
	const int lock = user_namespace_enter(begin_ns);
	int err;

	if (lock < 0)
		return lock;
	err = sysfs_private_make(devs, n, counters_err);
	/* unlock explicitly: the counters' process may still have a copy of the descriptor */
	flock(lock, LOCK_UN);
	close(lock);
	return err;
}

/*
 * Tries sysfs_private_enter_both() in a child and returns its result. A process cannot leave a user
 * namespace, and a security module may refuse all mounts in one.
 */
static int sysfs_private_try(const struct netdev *devs, u32 n, u64 begin_ns)
{
	int fds[2], err = -EIO;
	pid_t pid;

	if (pipe(fds))
		return -errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, SYSFS_PRIVATE_TRIAL);
		err = sysfs_private_enter_both(devs, n, begin_ns, NULL);
		_exit(write(fds[1], &err, sizeof(err)) != sizeof(err));
	}
	if (pid < 0)
		err = -errno;
	close(fds[1]);
	/* through a pipe: if SIGCHLD is ignored, no exit status is available */
	if (pid > 0 && read(fds[0], &err, sizeof(err)) != sizeof(err))
		err = -EIO;
	close(fds[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return err;
}

int sysfs_private_enter(const struct netdev *devs, u32 n, int *counters_err)
{
	const u64 begin_ns = clock_now_ns();
	int err;

	*counters_err = 0;
	if (privilege_has(privilege_caps(), CAP_SYS_ADMIN))
		return sysfs_private_make(devs, n, counters_err);
	if (!sysfs_private_may_enter_user_namespace())
		return -EPERM;
	err = sysfs_private_try(devs, n, begin_ns);
	return err ? err : sysfs_private_enter_both(devs, n, begin_ns, counters_err);
}
