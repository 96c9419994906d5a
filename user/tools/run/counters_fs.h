/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files counters/NAME and hw_counters/NAME of devices, as a file system that this process
 * serves over FUSE: what one says is added up when it is read, of the processes that this user may
 * see, from what `xroce stat` has of each. Nothing is kept between two reads.
 */
#ifndef RUN_COUNTERS_FS_H
#define RUN_COUNTERS_FS_H

#include "../../os/netdev.h"

/* The root has a directory for each interface, by its name, and that one these two. */
#define COUNTERS_DIRS 2
extern const char *const counters_dirs[COUNTERS_DIRS];

/*
 * Serves n interfaces by fd, an open /dev/fuse, until what is mounted by it is mounted nowhere any
 * more.
 */
void counters_fs_serve(int fd, const struct netdev *devs, u32 n);

#endif
