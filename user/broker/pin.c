/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../os/privilege.h"
#include "../client/attach_error.h"
#include "pin.h"

#define PIN_LOCK_MS 2000 /* the lock is held only while a few directories change */
#define PIN_AGAIN   10	 /* attempts, if DIR is removed while it is opened */
#define PIN_PREFIX  "xroce_"

/* ---- DIR ---- */

/* Opens a directory. Refuses symbolic links, so that the path is the real one. */
static int pin_open_dir(const char *path)
{
	const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS };
	const long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static bool pin_is_bpffs(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == BPF_FS_MAGIC;
}

static int pin_check(int fd)
{
	return pin_is_bpffs(fd) ? directory_check(fd) : -ENODEV;
}

/*
 * The mode of a DIR that is made here, and removed when it is empty. The sticky bit marks it, and
 * has no effect in a directory to which only its owner can write. Other users cannot open it:
 * otherwise they could hold its lock.
 */
#define PIN_DIR_MODE (S_ISVTX | 0711)

static int pin_mkdir(int parent, const char *name, mode_t mode, gid_t group)
{
	if (mkdirat(parent, name, 0700))
		return -errno;
	if (group != (gid_t)-1 && fchownat(parent, name, (uid_t)-1, group, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return fchmodat(parent, name, mode, 0) ? -errno : 0;
}

/* Makes DIR, whose parent must be a directory of a BPF file system. Returns 0 or -errno. */
static int pin_make_dir(const char *path)
{
	char *parent = strdup(path), *name;
	int fd, err;

	if (!parent)
		return -ENOMEM;
	name = strrchr(parent, '/');
	*name++ = 0;
	fd = pin_open_dir(*parent ? parent : "/");
	err = fd < 0 ? fd : pin_is_bpffs(fd) ? 0 : -ENODEV;
	if (!err)
		err = pin_mkdir(fd, name, PIN_DIR_MODE, (gid_t)-1);
	if (fd >= 0)
		close(fd);
	free(parent);
	return err == -EEXIST ? 0 : err;
}

/* Returns a copy without a '/' at the end; NULL if dir is not absolute, or the root directory. */
static char *pin_path(const char *dir)
{
	char *path = *dir == '/' ? strdup(dir) : NULL;
	size_t len = path ? strlen(path) : 0;

	while (len > 1 && path[len - 1] == '/')
		path[--len] = 0;
	if (len > 1)
		return path;
	free(path);
	return NULL;
}

/* Returns -ESTALE if another process removes DIR at the same time. */
static int pin_try_enter(const char *path, bool make)
{
	int fd = pin_open_dir(path), err;

	if (fd == -ENOENT && make) {
		err = pin_make_dir(path);
		if (err)
			return err;
		fd = pin_open_dir(path);
		if (fd == -ENOENT)
			return -ESTALE;
	}
	if (fd < 0)
		return fd;
	/* before the lock too, so as not to wait for a lock of another user's directory */
	err = pin_check(fd);
	if (!err)
		err = directory_lock(fd, PIN_LOCK_MS);
	if (!err)
		err = pin_check(fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/*
 * Opens, checks and locks DIR. Returns its descriptor, which releases the lock when it is closed,
 * or -errno.
 */
static int pin_enter(const char *path, bool make)
{
	int fd = -ESTALE;

	for (int i = 0; i < PIN_AGAIN && fd == -ESTALE; i++)
		fd = pin_try_enter(path, make);
	return fd;
}

/* ---- names ---- */

static const char *pin_digits(const char *at)
{
	const char *end = at;

	while (isdigit((unsigned char)*end))
		end++;
	return end > at ? end : NULL;
}

static bool pin_is_iface(const char *name)
{
	const char *at = strrchr(name, '@');

	at = at && at > name ? pin_digits(at + 1) : NULL;
	at = at && *at == '-' ? pin_digits(at + 1) : NULL;
	return at && !*at;
}

static bool pin_is_owner(const char *name)
{
	static const char *const kinds[] = { "alone-", "broker-", "client-" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *at = name + strlen(kinds[i]);

		if (strncmp(name, kinds[i], strlen(kinds[i])))
			continue;
		at = pin_digits(at);
		if (at && i == 2)
			at = *at == '-' ? pin_digits(at + 1) : NULL;
		return at && !*at;
	}
	return false;
}

static void pin_name_iface(const struct netdev *dev, char *name, size_t n)
{
	snprintf(name, n, "%s@%llu-%u", dev->name, (unsigned long long)netdev_netns(),
		 dev->ifindex);
	for (char *at = name; (at = strchr(at, '.'));)
		*at = ':';
}

/* ---- the directory of an OWNER ---- */

/* Calls fn for each name in the directory, and perhaps for names that are made at that time. */
static void pin_each(int fd, void (*fn)(void *arg, int dir, const char *name), void *arg)
{
	const int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!dir) {
		if (copy >= 0)
			close(copy);
		return;
	}
	while ((e = readdir(dir)))
		if (*e->d_name != '.')
			fn(arg, fd, e->d_name);
	closedir(dir);
}

static void pin_unlink(void *arg, int dir, const char *name)
{
	if (!strncmp(name, PIN_PREFIX, strlen(PIN_PREFIX)))
		unlinkat(dir, name, 0);
}

/* Removes our pins and the directory, unless it has other files. The caller holds its lock. */
static int pin_empty(int parent, const char *name, int fd)
{
	pin_each(fd, pin_unlink, NULL);
	return unlinkat(parent, name, AT_REMOVEDIR) ? -errno : 0;
}

static int pin_open_in(int parent, const char *name)
{
	const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* ---- remains of killed processes ---- */

static void pin_sweep_owner(void *arg, int dir, const char *name)
{
	int *swept = arg;
	int fd = pin_is_owner(name) ? pin_open_in(dir, name) : -1;

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB) && !pin_empty(dir, name, fd))
		++*swept;
	close(fd);
}

static void pin_sweep_iface(void *arg, int dir, const char *name)
{
	int fd = pin_is_iface(name) ? pin_open_in(dir, name) : -1;

	if (fd < 0)
		return;
	pin_each(fd, pin_sweep_owner, arg);
	close(fd);
	/* fails unless it is empty */
	unlinkat(dir, name, AT_REMOVEDIR);
}

/* Removes a DIR that was made here, if it is empty. The caller holds its lock. */
static void pin_leave_dir(int fd, const char *path)
{
	struct stat st;

	if (!fstat(fd, &st) && (st.st_mode & 07777) == PIN_DIR_MODE)
		rmdir(path);
}

int pins_sweep(const char *dir)
{
	char *path = pin_path(dir);
	int swept = 0, fd = path ? pin_enter(path, false) : -EINVAL;

	if (fd >= 0) {
		pin_each(fd, pin_sweep_iface, &swept);
		pin_leave_dir(fd, path);
		close(fd);
	}
	free(path);
	return fd < 0 ? fd : swept;
}

/* ---- the pins of a process ---- */

/* The caller holds DIR's lock, so that no process removes the directory before it is locked. */
static int pins_make_owner(struct pins *p, const char *name, struct pin *out)
{
	const bool grouped = p->group != (gid_t)-1;
	int err = pin_mkdir(p->iface_fd, name, grouped ? 0750 : 0700, p->group);

	*out = PIN_NONE;
	if (err)
		return err;
	out->fd = pin_open_in(p->iface_fd, name);
	err = out->fd < 0 ? out->fd : flock(out->fd, LOCK_EX | LOCK_NB) ? -errno : 0;
	if (err) {
		unlinkat(p->iface_fd, name, AT_REMOVEDIR);
		if (out->fd >= 0)
			close(out->fd);
		*out = PIN_NONE;
	} else {
		snprintf(out->name, sizeof(out->name), "%s", name);
	}
	return err;
}

static int pins_make(struct pins *p, const char *kind)
{
	char name[sizeof(p->own.name)];
	int swept = 0, err;

	pin_each(p->dir_fd, pin_sweep_iface, &swept);
	err = pin_mkdir(p->dir_fd, p->iface, 0755, (gid_t)-1);
	if (err && err != -EEXIST)
		return err;
	p->iface_fd = pin_open_in(p->dir_fd, p->iface);
	if (p->iface_fd < 0)
		return p->iface_fd;
	snprintf(name, sizeof(name), "%s-%d", kind, (int)getpid());
	return pins_make_owner(p, name, &p->own);
}

static void pin_explain(const char *dir, int err, char *why, size_t n)
{
	if (err == -ENODEV || err == -ENOENT)
		snprintf(why, n,
			 "%s is not on a BPF file system; mount one (`mount -t bpf bpf " PIN_MOUNT
			 "`) or choose a directory on one",
			 dir);
	else if (err == -EPERM || err == -EACCES)
		snprintf(why, n, "%s belongs to another user, is writable by other users, or is "
				 "not writable by this process", dir);
	else if (err == -ELOOP || err == -ENOTDIR)
		snprintf(why, n, "%s is not a directory, or its path has a symbolic link", dir);
	else if (err == -EINVAL)
		snprintf(why, n, "%s is not an absolute path", dir);
	else
		snprintf(why, n, "%s: %s", dir, strerror(-err));
}

static void pins_close(struct pins *p)
{
	if (p->own.fd >= 0)
		close(p->own.fd);
	if (p->iface_fd >= 0)
		close(p->iface_fd);
	if (p->dir_fd >= 0)
		close(p->dir_fd);
	free(p->path);
	*p = PINS_NONE;
}

int pins_begin(struct pins *p, const char *dir, const struct netdev *dev, const char *kind,
	       gid_t group)
{
	char why[512];
	int err;

	*p = PINS_NONE;
	p->group = group;
	pin_name_iface(dev, p->iface, sizeof(p->iface));
	p->path = pin_path(dir);
	p->dir_fd = p->path ? pin_enter(p->path, true) : -EINVAL;
	err = p->dir_fd < 0 ? p->dir_fd : pins_make(p, kind);
	if (err) {
		pin_explain(dir, err, why, sizeof(why));
		attach_complain(dev, "cannot pin the maps: %s", why);
		pins_end(p);
		return err;
	}
	flock(p->dir_fd, LOCK_UN);
	return 0;
}

void pins_end(struct pins *p)
{
	int err;

	if (p->dir_fd < 0) {
		pins_close(p);
		return;
	}
	/* without the lock, empty directories stay: another process may be about to use them */
	err = directory_lock(p->dir_fd, PIN_LOCK_MS);
	if (p->own.fd >= 0)
		pin_empty(p->iface_fd, p->own.name, p->own.fd);
	if (!err) {
		unlinkat(p->dir_fd, p->iface, AT_REMOVEDIR);
		pin_leave_dir(p->dir_fd, p->path);
	}
	pins_close(p);
}

int pins_add(struct pins *p, const char *name, struct pin *out)
{
	int err;

	*out = PIN_NONE;
	if (p->dir_fd < 0)
		return -ENOENT;
	err = directory_lock(p->dir_fd, PIN_LOCK_MS);
	if (err)
		return err;
	err = pins_make_owner(p, name, out);
	flock(p->dir_fd, LOCK_UN);
	return err;
}

void pins_remove(struct pins *p, struct pin *pin)
{
	if (pin->fd < 0)
		return;
	pin_empty(p->iface_fd, pin->name, pin->fd);
	close(pin->fd);
	*pin = PIN_NONE;
}

/* Pins by a path in /proc, as bpf(2) takes a directory's descriptor only from Linux 6.5 on. */
static int pin_map(const struct pins *p, const struct pin *pin, int fd, const char *name)
{
	const bool grouped = p->group != (gid_t)-1;
	char path[128];
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", pin->fd, name);
	err = bpf_obj_pin(fd, path);
	if (!err && grouped && fchownat(pin->fd, name, (uid_t)-1, p->group, AT_SYMLINK_NOFOLLOW))
		err = -errno;
	if (!err && fchmodat(pin->fd, name, grouped ? 0440 : 0400, 0))
		err = -errno;
	return err;
}

int pin_maps(const struct pins *p, const struct pin *pin, const struct bpf_object *object,
	     bool (*is_shown)(const char *name))
{
	const struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, object)
		if (!err && is_shown(bpf_map__name(map)))
			err = pin_map(p, pin, bpf_map__fd(map), bpf_map__name(map));
	return err;
}

int pins_try(const char *dir, char *why, size_t n)
{
	char *path = pin_path(dir), *slash;
	int fd = path ? pin_open_dir(path) : -EINVAL, err;

	err = fd < 0 ? fd : pin_check(fd);
	/* pins_begin() would make it: checks the parent */
	if (fd == -ENOENT) {
		slash = strrchr(path, '/');
		*slash = 0;
		fd = pin_open_dir(*path ? path : "/");
		err = fd < 0 ? fd : pin_is_bpffs(fd) ? 0 : -ENODEV;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	if (err)
		pin_explain(dir, err, why, n);
	return err;
}
