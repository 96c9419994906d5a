/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user namespace of programs that `xroce run` starts for an unprivileged user, shared by all
 * that run at a time. Only /proc refers to it, so it is found there.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "../../os/privilege.h"
#include "../../os/process.h"
#include "../cli.h"
#include "sysfs.h"
#include "sysfs_private.h"

#define NS_USER "/proc/self/ns/user"
/*
 * Limits of the wait for the lock, which any user can hold: LOCK_MS for another user's process,
 * after which a second namespace may be made. LOCK_OWN_MS for this user's processes, of which many
 * may start at once.
 */
#define LOCK_MS	     2000
#define LOCK_OWN_MS  30000
#define LOCK_LOOK_MS 10 /* pause between attempts, after a first one of 1 ms */
/* Attempts without a holder of this user: the lock may have been released between two. */
#define LOCK_STRANGE 3

/* Returns the PID of the lock's holder, from /proc/locks, or 0. */
static pid_t lock_holder(int fd)
{
	FILE *f = fopen("/proc/locks", "re");
	unsigned int dev_major, dev_minor;
	unsigned long long inode;
	char line[256];
	struct stat st;
	int found = 0, pid;

	if (!f)
		return 0;
	if (fstat(fd, &st))
		st = (struct stat){ 0 };
	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*d: FLOCK %*s WRITE %d %x:%x:%llu", &pid, &dev_major, &dev_minor,
			   &inode) == 4 &&
		    makedev(dev_major, dev_minor) == st.st_dev && inode == st.st_ino)
			found = pid;
	fclose(f);
	return found;
}

static bool lock_is_own(int fd)
{
	const pid_t pid = lock_holder(fd);
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return pid > 0 && !stat(path, &st) && st.st_uid == geteuid();
}

/*
 * Locks the user namespace in which all of them start, so that no file remains. Closing the
 * descriptor unlocks. Returns the descriptor also if the lock was not obtained, or -errno.
 */
static int lock_take(u64 begin_ns)
{
	const int fd = open(NS_USER, O_RDONLY | O_CLOEXEC);
	u64 waited_ms;
	u32 strange = 0;

	if (fd < 0)
		return -errno;
	waited_ms = (clock_now_ns() - begin_ns) / NSEC_PER_MSEC;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (waited_ms >= LOCK_MS)
			strange = lock_is_own(fd) ? 0 : strange + 1;
		if (waited_ms >= LOCK_OWN_MS || strange == LOCK_STRANGE)
			break;
		poll(NULL, 0, waited_ms ? LOCK_LOOK_MS : 1);
		waited_ms = (clock_now_ns() - begin_ns) / NSEC_PER_MSEC;
	}
	return fd;
}

/* ---- joining ---- */

static FILE *proc_open(pid_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return fopen(path, "re");
}

/* Returns whether the map has a single entry, of id to itself. */
static bool map_is_identity(pid_t pid, const char *file, unsigned int id)
{
	FILE *f = proc_open(pid, file);
	unsigned int inside, outside, count, more;
	bool is;

	if (!f)
		return false;
	is = fscanf(f, "%u %u %u", &inside, &outside, &count) == 3 && inside == id &&
	     outside == id && count == 1 && fscanf(f, "%u", &more) != 1;
	fclose(f);
	return is;
}

/* Returns whether `xroce run` has made its mounts. */
static bool process_has_view(pid_t pid)
{
	return process_has_mount(pid, " - tmpfs " SYSFS_SOURCE " ");
}

/* True also for a process that has exited. */
static bool process_is_trial(pid_t pid)
{
	char name[16]; /* TASK_COMM_LEN */

	process_name(pid, name, sizeof(name));
	return !strcmp(name, SYSFS_PRIVATE_TRIAL) || !strcmp(name, "?");
}

/* Returns whether this user made ns as a child of the namespace `here`. */
static bool namespace_is_child(int ns, const struct stat *here)
{
	uid_t owner = 0;
	struct stat st;
	bool is = false;
	const int parent = ioctl(ns, NS_GET_PARENT);

	if (parent < 0)
		return false;
	is = !fstat(parent, &st) && st.st_ino == here->st_ino && st.st_dev == here->st_dev &&
	     !ioctl(ns, NS_GET_OWNER_UID, &owner) && owner == geteuid();
	close(parent);
	return is;
}

/*
 * Returns whether the process is in this PID namespace. Processes of a container are visible from
 * outside, but not the reverse. Each side therefore shares its own user namespace.
 */
static bool process_is_beside(pid_t pid)
{
	char path[64];
	struct stat own, its;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return !stat("/proc/self/ns/pid", &own) && !stat(path, &its) && own.st_ino == its.st_ino &&
	       own.st_dev == its.st_dev;
}

/* Returns a descriptor of the process's user namespace if it may be joined, or -1. */
static int namespace_of(pid_t pid, const struct stat *here)
{
	char path[64];
	struct stat st;
	int ns;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) || st.st_uid != geteuid() || !process_is_beside(pid))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return -1;
	if (fstat(ns, &st) || st.st_ino == here->st_ino || !namespace_is_child(ns, here) ||
	    !map_is_identity(pid, "uid_map", geteuid()) ||
	    !map_is_identity(pid, "gid_map", getegid()) || !process_has_view(pid) ||
	    process_is_trial(pid)) {
		close(ns);
		return -1;
	}
	return ns;
}

/* Returns true after joining another process's namespace. */
static bool namespace_join(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	struct stat here;
	bool joined = false;
	int ns;

	if (!dir)
		return false;
	while (!stat(NS_USER, &here) && !joined && (e = readdir(dir))) {
		if (!isdigit((unsigned char)*e->d_name))
			continue;
		ns = namespace_of((pid_t)atol(e->d_name), &here);
		if (ns < 0)
			continue;
		joined = !setns(ns, CLONE_NEWUSER);
		close(ns);
	}
	closedir(dir);
	return joined;
}

int user_namespace_enter(u64 begin_ns)
{
	const int lock = lock_take(begin_ns);
	int err;

	if (lock < 0)
		return lock;
	if (namespace_join()) {
		flock(lock, LOCK_UN);
		return lock;
	}
	err = privilege_make_user_namespace(geteuid(), getegid());
	if (err)
		close(lock);
	return err ? err : lock;
}
