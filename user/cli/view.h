/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files of RDMA devices that programs look for beside libibverbs: /sys/class/infiniband/NAME
 * and the character device /dev/infiniband/NAME. The kernel makes them for its own devices; for
 * ours this process has them in a mount namespace of its own, which ends with its last process.
 * Everything else that was there is there still.
 */
#ifndef CLI_VIEW_H
#define CLI_VIEW_H

#include "../netdev/netdev.h"

/*
 * view.c: this process and what it becomes see the files of n devices, and no other process does. A
 * process with CAP_SYS_ADMIN gets a mount namespace. One of a user without any capability gets it
 * in a user namespace in which it has its own user and group and, after execve(2), no capability.
 * Returns 0, or -errno where it may do neither: then nothing has changed.
 */
int view_enter(const struct netdev *devs, u32 n);

/*
 * view_mount.c: mounts the files, in a mount namespace of this process's own. Returns 0, also if it
 * could make but those of one of the two directories, as each is of use without the other; or
 * -errno. What could not be made is as it was before.
 */
int view_mount(const struct netdev *devs, u32 n);
/* What /proc/PID/mountinfo calls the file systems of view_mount(). */
#define VIEW_SOURCE "xroce"

/*
 * user_namespace.c: a user namespace of the caller's user and group alone. One that view_enter()
 * made for another process of the same user and group is joined: processes of different user
 * namespaces may not look into each other's memory (process_vm_readv(2), /proc/PID/fd), by which
 * MPI and UCX hand over data on one host. Returns a descriptor to close when the files are mounted,
 * by which this namespace is found: until then others wait before they make one; or -errno. An
 * error can leave the process in a user namespace: call it in a child first.
 */
int user_namespace_enter(void);

/*
 * sysfs.c: writes the directory of a device, as the kernel shows one, into an existing directory.
 * Returns 0 or -errno.
 */
int sysfs_write(const char *dir, const struct netdev *dev);

#endif
