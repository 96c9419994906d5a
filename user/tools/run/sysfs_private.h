/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of RDMA devices that programs read apart from libibverbs: /sys/class/infiniband/NAME
 * (sysfs.h) and the character device /dev/infiniband/NAME. The kernel makes them for its devices.
 * For ours, this process has them in a private mount namespace, which ends with its last process.
 * All other files stay visible. For all processes of a machine: sysfs_global.h.
 */
#ifndef RUN_SYSFS_PRIVATE_H
#define RUN_SYSFS_PRIVATE_H

#include "../../os/netdev.h"

/*
 * Makes the files of n devices visible to this process and the program that it executes, and to no
 * other. A process with CAP_SYS_ADMIN gets a mount namespace. A user without capabilities also gets
 * a user namespace with its own user and group and, after execve(2), no capability. Returns 0, or
 * -errno without any change. *counters_err: 0, or -errno if the files have no counters.
 */
int sysfs_private_enter(const struct netdev *devs, u32 n, int *counters_err);
/*
 * Returns 0 if sysfs_private_enter() would succeed for a user without capabilities, which a child
 * tries; 0 for a process with CAP_SYS_ADMIN without a trial; or -errno.
 */
int sysfs_private_check(const struct netdev *devs, u32 n);

/*
 * Name (comm) of the trial child: its user namespace must not be joined, as it ends with the child.
 */
#define SYSFS_PRIVATE_TRIAL "xroce-trial"

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

#endif
