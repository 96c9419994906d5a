/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The directory /sys/class/infiniband/NAME of a device, for `xroce run` (sysfs_private.h) and
 * `xroce serve --files` (sysfs_global.h). sysfs.c describes the tree. Most files are written.
 * Counters, which change at any time, are a FUSE file system of a separate process
 * (sysfs_counters.c).
 *
 * Not all files are in that file system. Without /dev/fuse, or as the first process of a PID
 * namespace, there is no such process, and if it is killed nothing in its file system can be read.
 * The written files are there in all these cases.
 */
#ifndef RUN_SYSFS_H
#define RUN_SYSFS_H

#include "../../os/netdev.h"
#include "../../engine/pkey.h"

/* Source of the mounts in /proc/PID/mountinfo. */
#define SYSFS_SOURCE "xroce"

/* ---- sysfs.c ---- */

/*
 * Writes or updates the directory of a device in an existing directory, like the kernel's. Returns
 * 0 or -errno.
 */
int sysfs_write(const char *dir, const struct netdev *dev, const struct pkey_table *pkeys);

/* Directories of counters in the directory of a port. */
enum sysfs_counter_dir { SYSFS_COUNTERS, SYSFS_HW_COUNTERS, SYSFS_COUNTER_DIRS };
extern const char *const sysfs_counter_dirs[SYSFS_COUNTER_DIRS];
/* Returns whether counters_names[i] is a file of that directory. A repeated name is one file. */
bool sysfs_has_counter(enum sysfs_counter_dir dir, u32 i);

/* ---- sysfs_counters.c: the counters, a file system served by a separate process ---- */

struct sysfs_counters {
	int fuse_fd, begin_fd; /* -1: mounted, or not possible */
	bool is_bound, is_mounted;
	int err; /* reason for having no counters */
};

/*
 * Starts the process that serves the counters of n devices. Called in the user namespace, before
 * entering the mount namespace of the files. The process ends with that mount namespace, or if
 * nothing gets mounted. is_bound: also with the caller; needed if both are in that mount namespace,
 * which would never end otherwise. Returns 0, or -errno without counters. sysfs_counters_end() is
 * due afterwards; if bound, as the last call.
 */
int sysfs_counters_begin(struct sysfs_counters *c, const struct netdev *devs, u32 n, bool is_bound);
void sysfs_counters_end(struct sysfs_counters *c);
/*
 * Mounts the counters at the directory hidden; shows them in a device's directories, already made,
 * in dir; and unmounts them from hidden, which keeps the shown ones. Return 0 or -errno.
 */
int sysfs_counters_mount(struct sysfs_counters *c, const char *hidden);
int sysfs_counters_show(const char *hidden, const char *dir, const struct netdev *dev);
void sysfs_counters_unmount(struct sysfs_counters *c, const char *hidden);
/* Make and remove the directories of a device where counters are shown. */
int sysfs_counters_mkdir(const char *dir, const struct netdev *dev);
void sysfs_counters_rmdir(const char *dir, const struct netdev *dev);

#endif
