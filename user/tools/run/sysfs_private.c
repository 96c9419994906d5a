/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The namespaces of sysfs_private.h: checks which this process may have, and enters them. Mounts
 * the files in them.
 *
 * A parent without `infiniband` cannot get one (/sys/class is sysfs, and /dev is shared). A tmpfs
 * is therefore mounted over the parent, with a bind mount of each entry, and `infiniband`. If the
 * machine has `infiniband`, the tmpfs covers only that, and the kernel's RDMA devices stay visible
 * next to ours.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../client/ask.h"
#include "../../os/clock.h"
#include "../../os/options.h"
#include "../../os/privilege.h"
#include "../cli.h"
#include "sysfs.h"
#include "sysfs_private.h"

#define SYS_CLASS "/sys/class"
#define DEV	  "/dev"
#define RDMA	  "infiniband"
#define NODE	  "/dev/null" /* bound as our character devices, which are never opened */
/* In the tmpfs while the counters are bound; no kernel device has this name. */
#define HIDDEN	  ".xroce-counters"

/* ---- the mounts ---- */

/*
 * Makes the mount of path a slave: mounts on path are invisible outside this mount namespace, but
 * mounts from outside still arrive.
 */
static int mount_keep_private(const char *path)
{
	char at[PATH_MAX];
	char *slash;

	snprintf(at, sizeof(at), "%s", path);
	for (;;) {
		if (!mount(NULL, at, NULL, MS_SLAVE, NULL))
			return 0;
		slash = strrchr(at, '/');
		/* EINVAL: not a mount point; try its parent */
		if (errno != EINVAL || !slash || !strcmp(at, "/"))
			return -errno;
		slash[slash == at] = 0;
	}
}

static int mount_bind(const char *from, const char *to)
{
	return mount(from, to, NULL, MS_BIND | MS_REC, NULL) ? -errno : 0;
}

static int mount_make_file(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Shows an entry of the directory old_fd in the directory cover. */
static int mount_show_entry(int old_fd, const char *name, const char *cover)
{
	char from[NAME_MAX + 64], to[PATH_MAX + NAME_MAX + 2], target[PATH_MAX];
	struct stat st;
	ssize_t len;
	int err;

	/* removed meanwhile */
	if (fstatat(old_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	snprintf(to, sizeof(to), "%s/%s", cover, name);
	if (S_ISLNK(st.st_mode)) {
		len = readlinkat(old_fd, name, target, sizeof(target) - 1);
		if (len < 0)
			return -errno;
		target[len] = 0;
		return symlink(target, to) ? -errno : 0;
	}
	if (S_ISDIR(st.st_mode))
		err = mkdir(to, 0755) ? -errno : 0;
	else
		err = mount_make_file(to);
	if (err)
		return err;
	snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", old_fd, name);
	err = mount_bind(from, to);
	if (err == -ENOENT)
		return (S_ISDIR(st.st_mode) ? rmdir(to) : unlink(to)) ? -errno : 0;
	return err;
}

/* Entries of an outer `xroce run`, which ours replace. */
static bool mount_is_ours(const char *name, int dir_fd)
{
	struct stat st;

	return !strncmp(name, NETDEV_DEVICE_PREFIX, strlen(NETDEV_DEVICE_PREFIX)) &&
	       !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISLNK(st.st_mode);
}

static int mount_show_all(int old_fd, const char *cover, bool is_rdma)
{
	const int fd = dup(old_fd);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int err = 0;

	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    (is_rdma && mount_is_ours(e->d_name, old_fd)))
			continue;
		err = mount_show_entry(old_fd, e->d_name, cover);
	}
	closedir(dir);
	return err;
}

static int mount_sysfs(const char *dir, const struct netdev *dev)
{
	struct ask_kind kind = { .pkeys = options_pkeys() };

	ask_kind_of(netdev_netns(), dev->ifindex, &kind);
	return sysfs_write(dir, dev, &kind.pkeys);
}

static int mount_node(const char *dir, const struct netdev *dev)
{
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), "%s/" NETDEV_DEVICE_PREFIX "%s", dir, dev->name);
	err = mount_make_file(path);
	return err ? err : mount_bind(NODE, path);
}

/* One of the two directories, and its function for a device. */
struct place {
	const char *parent;
	int (*make)(const char *dir, const struct netdev *dev);
	unsigned long flags; /* mount flags of the covered file system */
	bool has_counters;
};

/* Shows a device's counters, or removes their directories. */
static int mount_counters_of(const char *hidden, const char *rdma, const struct netdev *dev)
{
	int err = sysfs_counters_mkdir(rdma, dev);

	if (!err)
		err = sysfs_counters_show(hidden, rdma, dev);
	if (err)
		sysfs_counters_rmdir(rdma, dev);
	return err;
}

/* Failure is no error of the caller, as the files are useful without counters. */
static void mount_counters(struct sysfs_counters *c, const char *rdma,
			   const struct netdev *devs, u32 n)
{
	char hidden[PATH_MAX + sizeof(HIDDEN) + 1];

	snprintf(hidden, sizeof(hidden), "%s/" HIDDEN, rdma);
	c->err = mkdir(hidden, 0700) ? -errno : sysfs_counters_mount(c, hidden);
	for (u32 i = 0; !c->err && i < n; i++)
		c->err = mount_counters_of(hidden, rdma, &devs[i]);
	if (c->is_mounted)
		sysfs_counters_unmount(c, hidden);
	rmdir(hidden);
}

static int mount_fill(const struct place *p, int old_fd, const char *cover, const char *rdma,
		      const struct netdev *devs, u32 n, struct sysfs_counters *c)
{
	const bool is_rdma = !strcmp(cover, rdma);
	int err = mount_show_all(old_fd, cover, is_rdma);

	if (!err && !is_rdma && mkdir(rdma, 0755))
		err = -errno;
	for (u32 i = 0; !err && i < n; i++)
		err = p->make(rdma, &devs[i]);
	if (!err && c && p->has_counters)
		mount_counters(c, rdma, devs, n);
	/* bind mounts receive later mounts of their source, and propagate none */
	if (!err && mount(NULL, cover, NULL, MS_SLAVE | MS_REC, NULL))
		err = -errno;
	if (!err && mount(NULL, cover, NULL, MS_REMOUNT | MS_BIND | p->flags, NULL))
		err = -errno;
	return err;
}

static int mount_place(const struct place *p, const struct netdev *devs, u32 n,
		       struct sysfs_counters *c)
{
	char rdma[PATH_MAX];
	const char *cover;
	struct stat st;
	int old_fd, err;

	snprintf(rdma, sizeof(rdma), "%s/" RDMA, p->parent);
	cover = !stat(rdma, &st) && S_ISDIR(st.st_mode) ? rdma : p->parent;
	old_fd = open(cover, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (old_fd < 0)
		return -errno;
	err = mount_keep_private(cover);
	if (!err && mount(SYSFS_SOURCE, cover, "tmpfs", MS_NOSUID, "mode=0755"))
		err = -errno;
	if (!err) {
		err = mount_fill(p, old_fd, cover, rdma, devs, n, c);
		if (err)
			umount2(cover, MNT_DETACH);
	}
	close(old_fd);
	return err;
}

/*
 * Mounts the files in this process's private mount namespace. Returns 0 also if only one of the two
 * directories succeeded, as each is useful alone; or -errno. A failed directory is unchanged. c:
 * begun, or NULL for files without counters.
 */
static int sysfs_private_mount(const struct netdev *devs, u32 n, struct sysfs_counters *c)
{
	static const struct place places[] = {
		{ SYS_CLASS, mount_sysfs, MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, true },
		{ DEV, mount_node, MS_NOSUID | MS_NOEXEC, false },
	};
	/* readable for any user that the program changes to */
	const mode_t mask = umask(0);
	bool some = false;
	int err, first = 0;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		err = mount_place(&places[i], devs, n, c);
		some |= !err;
		if (!first)
			first = err;
	}
	umask(mask);
	return some ? 0 : first;
}

/* ---- the namespaces ---- */

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
 * (ask_may_serve() in user/client/ask.c). A world-writable tmpfs on /run, as some containers have,
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
	struct sysfs_counters c = { .fuse_fd = -1, .begin_fd = -1 };
	int err;

	if (counters_err)
		c.err = sysfs_counters_begin(&c, devs, n, false);
	err = unshare(CLONE_NEWNS) ?
		      -errno :
		      sysfs_private_mount(devs, n, counters_err && !c.err ? &c : NULL);
	sysfs_counters_end(&c);
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

int sysfs_private_check(const struct netdev *devs, u32 n)
{
	if (privilege_has(privilege_caps(), CAP_SYS_ADMIN))
		return 0;
	return sysfs_private_may_enter_user_namespace() ?
		       sysfs_private_try(devs, n, clock_now_ns()) :
		       -EPERM;
}

int sysfs_private_enter(const struct netdev *devs, u32 n, int *counters_err)
{
	const u64 begin_ns = clock_now_ns();
	const int err = sysfs_private_check(devs, n);

	*counters_err = 0;
	if (err)
		return err;
	return privilege_has(privilege_caps(), CAP_SYS_ADMIN) ?
		       sysfs_private_make(devs, n, counters_err) :
		       sysfs_private_enter_both(devs, n, begin_ns, counters_err);
}
