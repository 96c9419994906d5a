/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The overlay of sysfs_global.h. The overlay is read-only, so only its cached lookups can be stale:
 * a name that was absent or another file. A remount drops them.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sysfs_global.h"
#include "../run/sysfs.h"

#define SYS	  "/sys"
#define SYS_CLASS SYS "/class"
#define MOUNTED	  "overlay " SYSFS_SOURCE " " /* in /proc/self/mountinfo, after " - " */
#define FLAGS	  (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* Returns whether the path `at` leads to that file system, with no other mount on top. */
static bool mount_is_on_top(const char *at, unsigned int major, unsigned int minor)
{
	struct stat st;

	return !stat(at, &st) && st.st_dev == makedev(major, minor);
}

/*
 * Returns the mount point of d's overlay, or NULL. Mounts copied from another mount namespace do
 * not count. umount(2) by path takes the topmost mount, so on_top skips a covered overlay.
 */
static const char *sysfs_global_mounted(const struct sysfs_global_dir *d, bool on_top)
{
	const char *at = NULL;
	char line[4096], where[256], lower[sizeof(d->path) + 32];
	FILE *f = fopen("/proc/self/mountinfo", "re");
	unsigned int major, minor;

	snprintf(lower, sizeof(lower), "lowerdir=%s/", d->path);

	while (f && fgets(line, sizeof(line), f)) {
		const char *kind = strstr(line, " - ");

		if (!kind || strncmp(kind + 3, MOUNTED, strlen(MOUNTED)) ||
		    !strstr(kind, lower) ||
		    sscanf(line, "%*u %*u %u:%u %*s %255s", &major, &minor, where) != 3 ||
		    (on_top && !mount_is_on_top(where, major, minor)))
			continue;
		if (!strcmp(where, SYSFS_GLOBAL_SHOWN))
			at = SYSFS_GLOBAL_SHOWN;
		else if (!strcmp(where, SYS_CLASS))
			at = SYS_CLASS;
	}
	if (f)
		fclose(f);
	return at;
}

/* ---- classes with writable files ---- */

/*
 * A class is a directory of links; a few also have attributes (zram-control/hot_add), created with
 * the class. For net, bonding adds one later.
 */
static bool class_has_attributes(const char *name, int fd)
{
	const int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	bool has = !strcmp(name, "net");

	if (!dir) {
		if (copy >= 0)
			close(copy);
		return has;
	}
	while (!has && (e = readdir(dir)))
		has = e->d_type == DT_REG;
	closedir(dir);
	return has;
}

/* Bind-mounts the kernel's directory of a class into the overlay, once. */
static void class_show(const char *from, const char *name)
{
	char path[PATH_MAX], at[sizeof(SYS_CLASS) + NAME_MAX + 1];
	struct stat kernels, shown;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", from, name);
	snprintf(at, sizeof(at), SYS_CLASS "/%s", name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (class_has_attributes(name, fd) && !fstat(fd, &kernels) && !stat(at, &shown) &&
	    kernels.st_dev != shown.st_dev)
		mount(path, at, NULL, MS_BIND, NULL);
	close(fd);
}

/*
 * Makes class attributes writable, which a read-only overlay prevents. A bind mount of /sys alone
 * shows the kernel's file system beneath all mounts.
 */
static void classes_show(const struct sysfs_global_dir *d)
{
	char sys[sizeof(d->path) + sizeof("/sys")], from[sizeof(sys) + sizeof("/class")];
	struct dirent *e;
	DIR *dir;

	snprintf(sys, sizeof(sys), "%s/sys", d->path);
	snprintf(from, sizeof(from), "%s/class", sys);
	if (mount(SYS, sys, NULL, MS_BIND, NULL))
		return;
	dir = opendir(from);
	while (dir && (e = readdir(dir)))
		if (*e->d_name != '.')
			class_show(from, e->d_name);
	if (dir)
		closedir(dir);
	umount2(sys, MNT_DETACH);
}

/* ---- the overlay ---- */

int sysfs_global_mount(const struct sysfs_global_dir *d)
{
	const char *at = sysfs_global_mounted(d, true);
	char options[256];
	struct stat st;
	bool kernels;

	if (at)
		return sysfs_global_mount_again(d);
	kernels = !stat(SYSFS_GLOBAL_SHOWN, &st) && S_ISDIR(st.st_mode);
	at = kernels ? SYSFS_GLOBAL_SHOWN : SYS_CLASS;
	snprintf(options, sizeof(options), "lowerdir=%s/class%s:%s", d->path,
		 kernels ? "/infiniband" : "", at);
	if (mount(SYSFS_SOURCE, at, "overlay", FLAGS, options))
		return -errno;
	if (!kernels)
		classes_show(d);
	return 0;
}

int sysfs_global_mount_again(const struct sysfs_global_dir *d)
{
	const char *at = sysfs_global_mounted(d, true);

	if (!at)
		return -ENOENT;
	if (mount(NULL, at, NULL, MS_REMOUNT | FLAGS, NULL))
		return -errno;
	if (!strcmp(at, SYS_CLASS))
		classes_show(d);
	return 0;
}

bool sysfs_global_unmount(const struct sysfs_global_dir *d)
{
	const char *at;

	while ((at = sysfs_global_mounted(d, true)))
		if (umount2(at, MNT_DETACH))
			return false;
	return !sysfs_global_is_mounted(d);
}

bool sysfs_global_is_mounted(const struct sysfs_global_dir *d)
{
	return sysfs_global_mounted(d, false);
}

/* ---- kernel events of classes and devices (kobject uevents) ---- */

int sysfs_global_listen(void)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	int err;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (const struct sockaddr *)&kernel, sizeof(kernel)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

bool sysfs_global_hear(int fd)
{
	struct sockaddr_nl from;
	char text[8192];
	bool heard = false;
	ssize_t len;

	for (;;) {
		socklen_t from_len = sizeof(from);

		len = recvfrom(fd, text, sizeof(text) - 1, MSG_DONTWAIT, (struct sockaddr *)&from,
			       &from_len);
		if (len < 0 && errno == ENOBUFS) {
			heard = true;
			continue;
		}
		if (len < 0)
			return heard;
		text[len] = 0;
		/* the first word: "add@/class/NAME", "add@/devices/.../infiniband/NAME" */
		if (!from.nl_pid && (strstr(text, "@/class/") || strstr(text, "/infiniband/")))
			heard = true;
	}
}
