/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The keeper's directory in SYSFS_GLOBAL_DIR (sysfs_global.h), and the files of a device. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../../os/close_fd.h"
#include "../../os/privilege.h"
#include "../../os/process.h"
#include "sysfs_global.h"
#include "../run/sysfs.h"

#define LOCK_MS 2000 /* longer than the mounts made under the lock */
#define AGAIN	10   /* attempts if NS is removed while being opened */

#define NODE makedev(1, 3) /* as in sysfs_private.c: never opened */

#define SOURCE "xroce-files" /* differs from SYSFS_SOURCE, of a program's private view */

/* ---- directories ---- */

/* mode: of a directory that is made; 0: none is made */
static int dir_open(const char *path, mode_t mode)
{
	const bool make = mode;
	int fd, err;

	if (make && mkdir(path, mode) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return make && errno == ENOENT ? -ESTALE : -errno;
	err = directory_check(fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int dir_remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	remove(path);
	return 0;
}

/* Removes a directory tree without entering mounts. */
static void dir_remove(const char *path)
{
	nftw(path, dir_remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static void dir_name(const struct sysfs_global_dir *d, const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", d->path, name);
}

/* Returns the number NS of the caller. */
static unsigned long dir_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/mnt", &st) ? 0 : (unsigned long)st.st_ino;
}

/* Returns -ESTALE if another process has removed the directory. */
static int dir_try_enter(struct sysfs_global_dir *d, bool make)
{
	int fd = dir_open(ASK_DIR, make ? 0755 : 0), err;

	if (fd < 0)
		return fd;
	close(fd);
	fd = dir_open(SYSFS_GLOBAL_DIR, make ? 0755 : 0);
	if (fd < 0)
		return fd;
	close(fd);
	/* other users cannot open it: a user who can could hold its lock */
	d->fd = dir_open(d->path, make ? 0711 : 0);
	if (d->fd < 0)
		return d->fd;
	err = directory_lock(d->fd, LOCK_MS);
	if (!err)
		err = directory_check(d->fd);
	if (!err)
		return 0;
	close_fd(&d->fd);
	return err;
}

static int dir_make(const struct sysfs_global_dir *d, const char *name)
{
	char path[PATH_MAX];

	dir_name(d, name, path);
	if (!mkdir(path, 0755))
		/* an overlay whose directory was deleted */
		sysfs_global_unmount(d);
	else if (errno != EEXIST)
		return -errno;
	return 0;
}

/*
 * Mounts a separate tmpfs, so that open files of the overlay stay unchanged after unmounting. An
 * overlay of a deleted directory lists nothing.
 */
static int dir_mount_class(const struct sysfs_global_dir *d)
{
	char path[PATH_MAX];
	struct stat ours, at;

	dir_name(d, "class", path);
	if (fstat(d->fd, &ours) || lstat(path, &at))
		return -errno;
	if (at.st_dev != ours.st_dev)
		return 0;
	return mount(SOURCE, path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755") ?
		       -errno :
		       0;
}

static int dir_make_all(const struct sysfs_global_dir *d)
{
	static const char *const names[] = { "owner", "counters", "sys", "class" };
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !err; i++)
		err = dir_make(d, names[i]);
	if (!err)
		err = dir_mount_class(d);
	return err ? err : dir_make(d, "class/infiniband");
}

static int dir_enter(struct sysfs_global_dir *d, unsigned long namespace, bool make)
{
	int err = -ESTALE;

	d->fd = -1;
	snprintf(d->path, sizeof(d->path), SYSFS_GLOBAL_DIR "/%lu", namespace);
	for (int i = 0; i < AGAIN && err == -ESTALE; i++)
		err = dir_try_enter(d, make);
	if (!err && make)
		err = dir_make_all(d);
	if (err)
		close_fd(&d->fd);
	return err;
}

int sysfs_global_enter(struct sysfs_global_dir *d, bool make)
{
	return dir_enter(d, dir_namespace(), make);
}

static bool dir_has_devices(const struct sysfs_global_dir *d)
{
	char path[PATH_MAX];
	struct dirent *e;
	bool has = false;
	DIR *dir;

	dir_name(d, "owner", path);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		has |= *e->d_name != '.';
	if (dir)
		closedir(dir);
	return has;
}

/* is_ours: d belongs to the caller's mount namespace. */
static void dir_leave(struct sysfs_global_dir *d, bool is_ours)
{
	static const char *const mounted[] = { "counters", "sys" };
	char path[PATH_MAX];

	if (!dir_has_devices(d)) {
		/* left by a keeper that was killed while mounting */
		for (size_t i = 0; is_ours && i < ARRAY_SIZE(mounted); i++) {
			dir_name(d, mounted[i], path);
			umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
		}
		if (!is_ours || sysfs_global_unmount(d)) {
			dir_name(d, "class", path);
			umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
			dir_remove(d->path);
			rmdir(SYSFS_GLOBAL_DIR);
		}
	}
	close_fd(&d->fd);
}

void sysfs_global_leave(struct sysfs_global_dir *d)
{
	dir_leave(d, true);
}

/* ---- a device ---- */

/* Formats the identity of the directory SYSFS_GLOBAL_NODES. */
static int nodes_identify(char text[64])
{
	struct stat st;

	if (stat(SYSFS_GLOBAL_NODES, &st))
		return -errno;
	snprintf(text, 64, "%llu %llu\n", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return 0;
}

static int nodes_write(int fd)
{
	char text[64];
	int err = nodes_identify(text);

	if (err)
		return err;
	return pwrite(fd, text, strlen(text), 0) == (ssize_t)strlen(text) ? 0 : -EIO;
}

/* Returns whether fd identifies the present directory. */
static bool nodes_match(int fd)
{
	char text[64] = "", said[64] = "";

	return !nodes_identify(text) && pread(fd, said, sizeof(said) - 1, 0) > 0 &&
	       !strcmp(text, said);
}

/* Opens NS/nodes, which exists only if a keeper made SYSFS_GLOBAL_NODES. */
static int nodes_open(const struct sysfs_global_dir *d, int flags)
{
	char path[PATH_MAX];

	dir_name(d, "nodes", path);
	return open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0644);
}

static int nodes_make(const struct sysfs_global_dir *d)
{
	int fd, err;

	if (mkdir(SYSFS_GLOBAL_NODES, 0755))
		return errno == EEXIST ? 0 : -errno;
	fd = nodes_open(d, O_RDWR | O_CREAT | O_TRUNC);
	err = fd < 0 ? -errno : nodes_write(fd);
	if (fd >= 0)
		close(fd);
	if (err)
		rmdir(SYSFS_GLOBAL_NODES);
	return err;
}

static void nodes_remove(const struct sysfs_global_dir *d)
{
	const int fd = nodes_open(d, O_RDONLY);

	if (fd < 0)
		return;
	if (nodes_match(fd))
		rmdir(SYSFS_GLOBAL_NODES);
	close(fd);
}

/* Makes a device node. The record comes first, so that a killed keeper leaves none without. */
static int node_make(const struct sysfs_global_dir *d, int owner_fd, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	int err = nodes_make(d);

	if (err)
		return err;
	snprintf(path, sizeof(path), SYSFS_GLOBAL_NODES "/%s", name);
	if (!lstat(path, &st))
		return -EEXIST;
	err = nodes_write(owner_fd);
	if (!err && mknod(path, S_IFCHR | 0666, NODE)) {
		err = -errno;
		/* the node is not ours, so drop the record */
		if (ftruncate(owner_fd, 0))
			return -EIO;
	}
	return err ? err : chmod(path, 0666) ? -errno : 0;
}

/* Removes the node, unless it has another device number. */
static void node_remove(const struct sysfs_global_dir *d, int owner_fd, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), SYSFS_GLOBAL_NODES "/%s", name);
	if (nodes_match(owner_fd) && !lstat(path, &st) && S_ISCHR(st.st_mode) &&
	    st.st_rdev == NODE)
		unlink(path);
	nodes_remove(d);
}

/* name: of the device, for example xroce_eth0. */
static void device_remove(const struct sysfs_global_dir *d, int owner_fd, const char *name,
			  bool is_ours)
{
	char path[PATH_MAX], under[NAME_MAX + 64];

	snprintf(path, sizeof(path), SYSFS_GLOBAL_SHOWN "/%s", name);
	/* with the counters mounted in it */
	if (is_ours)
		umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
	node_remove(d, owner_fd, name);
	snprintf(under, sizeof(under), "class/infiniband/%s", name);
	dir_name(d, under, path);
	dir_remove(path);
	snprintf(under, sizeof(under), "owner/%s", name);
	dir_name(d, under, path);
	unlink(path);
	if (is_ours)
		sysfs_global_mount_again(d);
}

static void device_name(const struct sysfs_global_device *device, char name[NAME_MAX])
{
	snprintf(name, NAME_MAX, NETDEV_DEVICE_PREFIX "%s", device->dev.name);
}

/* Takes the device's lock, which stands for ownership. */
static int device_own(const struct sysfs_global_dir *d, struct sysfs_global_device *device)
{
	char name[NAME_MAX], under[NAME_MAX + 8], path[PATH_MAX];
	int err;

	device_name(device, name);
	snprintf(under, sizeof(under), "owner/%s", name);
	dir_name(d, under, path);
	device->owner_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (device->owner_fd < 0)
		return -errno;
	if (!flock(device->owner_fd, LOCK_EX | LOCK_NB))
		return 0;
	err = errno == EWOULDBLOCK ? -EEXIST : -errno;
	close_fd(&device->owner_fd);
	return err;
}

int sysfs_global_write(struct sysfs_global_dir *d, struct sysfs_global_device *device,
		       const struct pkey_table *pkeys)
{
	char path[PATH_MAX];

	dir_name(d, "class/infiniband", path);
	return sysfs_write(path, &device->dev, pkeys);
}

/*
 * Bind-mounts the device's directory over its name in the overlay. Through the overlay a file that
 * any process has open would show its old content to all.
 */
static int device_bind(const struct sysfs_global_dir *d, const char *name)
{
	char under[NAME_MAX + 64], path[PATH_MAX], at[PATH_MAX];

	snprintf(under, sizeof(under), "class/infiniband/%s", name);
	dir_name(d, under, path);
	snprintf(at, sizeof(at), SYSFS_GLOBAL_SHOWN "/%s", name);
	if (mount(path, at, NULL, MS_BIND, NULL))
		return -errno;
	return mount(NULL, at, NULL,
		     MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) ?
		       -errno :
		       0;
}

/* Makes the directories before the overlay is mounted, as mounts are made on them. */
static int device_show(struct sysfs_global_dir *d, struct sysfs_global_device *device,
		       const struct pkey_table *pkeys)
{
	char name[NAME_MAX], path[PATH_MAX];
	int err = sysfs_global_write(d, device, pkeys);

	device_name(device, name);
	dir_name(d, "class/infiniband", path);
	if (!err)
		err = sysfs_counters_mkdir(path, &device->dev);
	if (!err)
		err = sysfs_global_mount(d);
	if (!err)
		err = device_bind(d, name);
	return err ? err : node_make(d, device->owner_fd, name);
}

int sysfs_global_add(struct sysfs_global_dir *d, struct sysfs_global_device *device,
		     const struct pkey_table *pkeys)
{
	char name[NAME_MAX], path[PATH_MAX];
	int err;

	device_name(device, name);
	/* sysfs_global_sweep() has removed remains of killed keepers */
	snprintf(path, sizeof(path), SYSFS_GLOBAL_SHOWN "/%s", name);
	if (!access(path, F_OK))
		return -EEXIST;
	err = device_own(d, device);
	if (err)
		return err;
	err = device_show(d, device, pkeys);
	if (err)
		sysfs_global_remove(d, device);
	return err;
}

void sysfs_global_remove(struct sysfs_global_dir *d, struct sysfs_global_device *device)
{
	char name[NAME_MAX];

	if (device->owner_fd < 0)
		return;
	device_name(device, name);
	device_remove(d, device->owner_fd, name, true);
	close_fd(&device->owner_fd);
}

/* ---- remains of killed keepers ---- */

static u32 sweep_dir(struct sysfs_global_dir *d, bool is_ours, bool look)
{
	char path[PATH_MAX];
	struct dirent *e;
	u32 swept = 0;
	DIR *dir;

	dir_name(d, "owner", path);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		int fd;

		if (*e->d_name == '.')
			continue;
		fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!flock(fd, LOCK_EX | LOCK_NB)) {
			swept++;
			if (!look)
				device_remove(d, fd, e->d_name, is_ours);
		}
		close(fd);
	}
	if (dir)
		closedir(dir);
	return swept;
}

/* Unmounts an overlay whose directory was deleted. */
static void sweep_mount(unsigned long ours)
{
	struct sysfs_global_dir d;

	snprintf(d.path, sizeof(d.path), SYSFS_GLOBAL_DIR "/%lu", ours);
	if (!access(d.path, F_OK) || !sysfs_global_is_mounted(&d) || dir_enter(&d, ours, true))
		return;
	dir_leave(&d, true);
}

/* Returns whether a process in that namespace still sees the mounts, which must then stay. */
static bool dir_is_mounted_in(unsigned long namespace)
{
	char word[sizeof(((struct sysfs_global_dir *)0)->path) + 1];

	snprintf(word, sizeof(word), SYSFS_GLOBAL_DIR "/%lu/", namespace);
	return process_sees_mount(namespace, word);
}

u32 sysfs_global_sweep(bool look)
{
	const unsigned long ours = dir_namespace();
	struct sysfs_global_dir d;
	unsigned long namespace;
	struct dirent *e;
	u32 swept = 0;
	char behind;
	DIR *dir;

	if (geteuid())
		return 0;
	if (!look)
		sweep_mount(ours);
	dir = opendir(SYSFS_GLOBAL_DIR);
	while (dir && (e = readdir(dir))) {
		if (sscanf(e->d_name, "%lu%c", &namespace, &behind) != 1 ||
		    (namespace != ours && dir_is_mounted_in(namespace)) ||
		    dir_enter(&d, namespace, false))
			continue;
		swept += sweep_dir(&d, namespace == ours, look);
		if (look)
			close(d.fd);
		else
			dir_leave(&d, namespace == ours);
	}
	if (dir)
		closedir(dir);
	return swept;
}
