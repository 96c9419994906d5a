/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "options.h"
#include "privilege.h"

/* The inode of the initial user namespace, in every kernel (proc_ns.h). */
#define FIRST_USER_NAMESPACE "user:[4026531837]"

u64 privilege_caps(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &header, data))
		return 0;
	return (u64)data[1].effective << 32 | data[0].effective;
}

bool privilege_in_first_user_namespace(void)
{
	char target[64];
	ssize_t n = readlink("/proc/self/ns/user", target, sizeof(target) - 1);

	if (n < 0)
		return true;
	target[n] = 0;
	return !strcmp(target, FIRST_USER_NAMESPACE);
}

/* For the kernel, CAP_SYS_ADMIN includes the other two. */
bool privilege_may_attach(void)
{
	const u64 caps = privilege_caps();

	return privilege_in_first_user_namespace() &&
	       (privilege_has(caps, CAP_SYS_ADMIN) ||
		(privilege_has(caps, CAP_NET_ADMIN) && privilege_has(caps, CAP_BPF)));
}

bool privilege_verifies_fast(void)
{
	const u64 caps = privilege_caps();

	return privilege_has(caps, CAP_PERFMON) || privilege_has(caps, CAP_SYS_ADMIN);
}

static int print_if_debugging(enum libbpf_print_level level, const char *format, va_list args)
{
	return options_is_set(OPTION_DEBUG) ? vfprintf(stderr, format, args) : 0;
}

libbpf_print_fn_t privilege_hush_libbpf(void)
{
	return libbpf_set_print(print_if_debugging);
}

static int proc_write(const char *file, const char *text)
{
	const int fd = open(file, O_WRONLY | O_CLOEXEC);
	const size_t len = strlen(text);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		err = -errno;
	close(fd);
	return err;
}

int privilege_make_user_namespace(uid_t uid, gid_t gid)
{
	char uids[64], gids[64];
	int err;

	snprintf(uids, sizeof(uids), "%u %u 1", uid, geteuid());
	snprintf(gids, sizeof(gids), "%u %u 1", gid, getegid());
	if (unshare(CLONE_NEWUSER))
		return -errno;
	err = proc_write("/proc/self/uid_map", uids);
	if (!err)
		err = proc_write("/proc/self/setgroups", "deny");
	return err ? err : proc_write("/proc/self/gid_map", gids);
}

/* ---- directory ---- */

int directory_check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!st.st_nlink)
		return -ESTALE;
	return (!st.st_uid || st.st_uid == geteuid()) && !(st.st_mode & (S_IWGRP | S_IWOTH)) ?
		       0 :
		       -EPERM;
}

int directory_lock(int fd, u32 ms)
{
	for (u32 waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (waited >= ms)
			return -EBUSY;
		poll(NULL, 0, 1);
	}
	return 0;
}
