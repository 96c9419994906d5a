/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files counters/NAME and hw_counters/NAME of devices, as a file system that this process
 * serves over FUSE. Each read sums the counters of `xroce stat` over the processes visible to this
 * user. Nothing is cached between reads.
 */
#ifndef RUN_COUNTERS_FS_H
#define RUN_COUNTERS_FS_H

#include "../../os/netdev.h"

/* The root has a directory per interface name, each with these two. */
#define COUNTERS_DIRS 2
extern const char *const counters_dirs[COUNTERS_DIRS];

/* Serves n interfaces on fd, an open /dev/fuse, until the file system is no longer mounted. */
void counters_fs_serve(int fd, const struct netdev *devs, u32 n);

#endif
