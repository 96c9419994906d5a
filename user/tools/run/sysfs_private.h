/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files of RDMA devices that programs look for beside libibverbs: /sys/class/infiniband/NAME
 * and the character device /dev/infiniband/NAME. The kernel makes them for its own devices; for
 * ours this process has them in a mount namespace of its own, which ends with its last process.
 * Everything else that was there is there still. For all processes of a machine: sysfs_global.h.
 */
#ifndef RUN_SYSFS_PRIVATE_H
#define RUN_SYSFS_PRIVATE_H

#include "../../os/netdev.h"
#include "../../engine/pkey.h"

/* Counters that move, as a file system that a process of its own serves: sysfs_private_counters.c.
 */
struct sysfs_private_counters {
	int fuse_fd, begin_fd; /* -1: it is mounted, or cannot be */
	bool is_bound, is_mounted;
	int err; /* why it is not */
};

/*
 * sysfs_private.c: this process and what it becomes see the files of n devices, and no other
 * process does. A process with CAP_SYS_ADMIN gets a mount namespace. One of a user without any
 * capability gets it in a user namespace in which it has its own user and group and, after
 * execve(2), no capability. Returns 0, or -errno where it may do neither: then nothing has changed.
 * *counters_err: 0, or -errno why there are no counters among the files.
 */
int sysfs_private_enter(const struct netdev *devs, u32 n, int *counters_err);

/*
 * sysfs_private_mount.c: mounts the files, in a mount namespace of this process's own. Returns 0,
 * also if it could make but those of one of the two directories, as each is of use without the
 * other; or -errno. What could not be made is as it was before. c: as it was begun, or NULL for
 * files without counters.
 */
int sysfs_private_mount(const struct netdev *devs, u32 n, struct sysfs_private_counters *c);
/* What /proc/PID/mountinfo calls the file systems of sysfs_private_mount(). */
#define SYSFS_PRIVATE_SOURCE "xroce"
/*
 * The name (comm) of a child that only finds out whether all this works: its user namespace is
 * nobody's to join, as it goes with it.
 */
#define SYSFS_PRIVATE_TRIAL "xroce-trial"

/*
 * sysfs_private_counters.c: begins the process that serves the counters of n devices, in the user
 * namespace and before the mount namespace of the files is entered; it ends with that, or if
 * nothing is mounted. is_bound: or with the caller, where both are in that mount namespace, which
 * would never end otherwise. Returns 0, or -errno: there are none. Then comes
 * sysfs_private_counters_end(), if it is bound as the last thing.
 */
int sysfs_private_counters_begin(struct sysfs_private_counters *c, const struct netdev *devs, u32 n,
				 bool is_bound);
void sysfs_private_counters_end(struct sysfs_private_counters *c);
/*
 * Mounted at the directory hidden; shown in those directories of a device that are in dir, where
 * they have been made; taken from hidden, which leaves what is shown. Return 0 or -errno.
 */
int sysfs_private_counters_mount(struct sysfs_private_counters *c, const char *hidden);
int sysfs_private_counters_show(const char *hidden, const char *dir, const struct netdev *dev);
void sysfs_private_counters_unmount(struct sysfs_private_counters *c, const char *hidden);
/* The directories of a device that they are shown in, and their end. */
int sysfs_private_counters_mkdir(const char *dir, const struct netdev *dev);
void sysfs_private_counters_rmdir(const char *dir, const struct netdev *dev);

/*
 * user_namespace.c: a user namespace of the caller's user and group alone. One that
 * sysfs_private_enter() made for another process of them and of this PID namespace is joined:
 * processes of different user namespaces may not look into each other's memory
 * (process_vm_readv(2), /proc/PID/fd), by which MPI and UCX hand over data on one host. Returns a
 * descriptor to close when the files are mounted, by which this namespace is found: until then
 * others wait before they make one; or -errno. An error can leave the process in a user namespace:
 * call it in a child first. begin_ns: when the first of these calls began, as they wait no longer
 * together than one.
 */
int user_namespace_enter(u64 begin_ns);

/*
 * sysfs.c: writes the directory of a device, as the kernel shows one, into an existing directory;
 * or again, with what has changed. Returns 0 or -errno.
 */
int sysfs_write(const char *dir, const struct netdev *dev, const struct pkey_table *pkeys);

#endif
