/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of RDMA devices that programs read apart from libibverbs: /sys/class/infiniband/NAME and
 * the character device /dev/infiniband/NAME. The kernel makes them for its devices. For ours, this
 * process has them in a private mount namespace, which ends with its last process. All other files
 * stay visible. For all processes of a machine: sysfs_global.h.
 */
#ifndef RUN_SYSFS_PRIVATE_H
#define RUN_SYSFS_PRIVATE_H

#include "../../os/netdev.h"
#include "../../engine/pkey.h"

/* Live counters, a file system served by a separate process: sysfs_private_counters.c. */
struct sysfs_private_counters {
	int fuse_fd, begin_fd; /* -1: mounted, or not possible */
	bool is_bound, is_mounted;
	int err; /* reason for having no counters */
};

/*
 * sysfs_private.c: makes the files of n devices visible to this process and the program that it
 * executes, and to no other. A process with CAP_SYS_ADMIN gets a mount namespace. A user without
 * capabilities also gets a user namespace with its own user and group and, after execve(2), no
 * capability. Returns 0, or -errno without any change. *counters_err: 0, or -errno if the files
 * have no counters.
 */
int sysfs_private_enter(const struct netdev *devs, u32 n, int *counters_err);

/*
 * sysfs_private_mount.c: mounts the files in this process's private mount namespace. Returns 0 also
 * if only one of the two directories succeeded, as each is useful alone; or -errno. A failed
 * directory is unchanged. c: begun, or NULL for files without counters.
 */
int sysfs_private_mount(const struct netdev *devs, u32 n, struct sysfs_private_counters *c);
/* Source of the mounts of sysfs_private_mount() in /proc/PID/mountinfo. */
#define SYSFS_PRIVATE_SOURCE "xroce"
/*
 * Name (comm) of the trial child: its user namespace must not be joined, as it ends with the child.
 */
#define SYSFS_PRIVATE_TRIAL "xroce-trial"

/*
 * sysfs_private_counters.c: starts the process that serves the counters of n devices. Called in the
 * user namespace, before entering the mount namespace of the files. The process ends with that
 * mount namespace, or if nothing gets mounted. is_bound: also with the caller; needed if both are
 * in that mount namespace, which would never end otherwise. Returns 0, or -errno without counters.
 * sysfs_private_counters_end() is due afterwards; if bound, as the last call.
 */
int sysfs_private_counters_begin(struct sysfs_private_counters *c, const struct netdev *devs, u32 n,
				 bool is_bound);
void sysfs_private_counters_end(struct sysfs_private_counters *c);
/*
 * Mounts the counters at the directory hidden; shows them in a device's directories, already made,
 * in dir; and unmounts them from hidden, which keeps the shown ones. Return 0 or -errno.
 */
int sysfs_private_counters_mount(struct sysfs_private_counters *c, const char *hidden);
int sysfs_private_counters_show(const char *hidden, const char *dir, const struct netdev *dev);
void sysfs_private_counters_unmount(struct sysfs_private_counters *c, const char *hidden);
/* Make and remove the directories of a device where counters are shown. */
int sysfs_private_counters_mkdir(const char *dir, const struct netdev *dev);
void sysfs_private_counters_rmdir(const char *dir, const struct netdev *dev);

/*
 * user_namespace.c: enters a user namespace for the caller's user and group. Joins the namespace
 * that sysfs_private_enter() made for another process of this user, group and PID namespace.
 * Processes in different user namespaces cannot access each other's memory (process_vm_readv(2),
 * /proc/PID/fd), which MPI and UCX use on one host. Returns a descriptor to close after the files
 * are mounted, or -errno. The mounts identify the namespace, so other processes wait for that. An
 * error can leave the process in a user namespace, so a child should try first. begin_ns: time of
 * the first of several calls, which share one limit of waiting.
 */
int user_namespace_enter(u64 begin_ns);

/*
 * sysfs.c: writes or updates the directory of a device in an existing directory, like the kernel's.
 * Returns 0 or -errno.
 */
int sysfs_write(const char *dir, const struct netdev *dev, const struct pkey_table *pkeys);

#endif
