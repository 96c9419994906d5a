/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process.h"

static _Atomic pid_t owner; /* 0: nothing has been made */

void process_own(void)
{
	pid_t none = 0;

	/* relaxed: the same value, whichever thread stores it */
	atomic_compare_exchange_strong_explicit(&owner, &none, getpid(), memory_order_relaxed,
						memory_order_relaxed);
}

bool process_is_owner(void)
{
	return atomic_load_explicit(&owner, memory_order_relaxed) == getpid();
}

void process_after_fork_child(void)
{
	atomic_store_explicit(&owner, 0, memory_order_relaxed);
}

void process_name(pid_t pid, char *comm, size_t n)
{
	char path[32];
	FILE *f;

	snprintf(comm, n, "?");
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = pid > 0 ? fopen(path, "re") : NULL;
	if (!f)
		return;
	if (fgets(comm, (int)n, f))
		comm[strcspn(comm, "\n")] = 0;
	fclose(f);
	for (char *c = comm; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

bool process_is_filtered(void)
{
	FILE *f = fopen("/proc/thread-self/status", "re");
	char line[256];
	u32 mode = SECCOMP_MODE_FILTER;

	if (!f)
		return true;
	/* a kernel without seccomp has no such line */
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %u", &mode) == 1)
			break;
	if (feof(f))
		mode = SECCOMP_MODE_DISABLED;
	fclose(f);
	return mode != SECCOMP_MODE_DISABLED;
}

/* Returns 65534 unless the sysctl differs. */
static uid_t process_overflow_uid(void)
{
	FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");
	unsigned int uid;

	if (!f || fscanf(f, "%u", &uid) != 1)
		uid = 65534;
	if (f)
		fclose(f);
	return uid;
}

/* Returns whether every user has a number here, as in the initial namespace; true if unknown. */
static bool process_has_all_uids(void)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned long long n, all = 0;

	if (!f)
		return true;
	while (fscanf(f, "%*u %*u %llu", &n) == 1)
		all += n;
	fclose(f);
	/* (uid_t)-1 is not a user */
	return all >= (uid_t)-1;
}

bool process_is_outside_uid(uid_t uid)
{
	return uid == process_overflow_uid() && !process_has_all_uids();
}

bool process_is_own_uid(uid_t uid)
{
	return uid == geteuid() && !process_is_outside_uid(uid);
}

bool process_is_roots_dir(const char *dir)
{
	struct stat st;

	return !stat(dir, &st) && S_ISDIR(st.st_mode) && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
	       (st.st_uid == 0 || process_is_outside_uid(st.st_uid));
}

bool process_has_mount(pid_t pid, const char *word)
{
	char path[32], *line = NULL;
	bool has = false;
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	f = fopen(path, "re");
	while (f && !has && getline(&line, &n, f) > 0)
		has = strstr(line, word);
	free(line);
	if (f)
		fclose(f);
	return has;
}

/* mount: a word that its mountinfo must contain, or NULL. */
static bool process_any(const char *which, u64 inode, const char *mount)
{
	DIR *proc = opendir("/proc");
	char path[NAME_MAX + 32];
	bool found = !proc;
	struct dirent *e;
	struct stat st;

	while (!found && (e = readdir(proc))) {
		if (!isdigit((unsigned char)*e->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/ns/%s", e->d_name, which);
		found = !fstatat(dirfd(proc), path, &st, 0) && st.st_ino == inode &&
			(!mount || process_has_mount((pid_t)atol(e->d_name), mount));
	}
	if (proc)
		closedir(proc);
	return found;
}

bool process_in_namespace(const char *which, u64 inode)
{
	return process_any(which, inode, NULL);
}

bool process_sees_mount(u64 inode, const char *word)
{
	return process_any("mnt", inode, word);
}
