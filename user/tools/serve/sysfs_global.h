/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes the files of sysfs_private.h for all processes of the caller's mount namespace, usually the
 * whole machine, while the caller lives: `xroce serve --files`. A helper process, the keeper, makes
 * them, updates them, and removes them after the caller has exited for any reason.
 *
 * /sys/class/infiniband/NAME comes from a read-only overlay. Its layers are the existing directory
 * and, in front, SYSFS_GLOBAL_DIR/NS/class, a tmpfs, or its `infiniband`; NS is the inode of the
 * mount namespace. It is mounted over /sys/class/infiniband if the kernel has that, otherwise over
 * /sys/class, and then also shows classes of modules loaded later. A device's directory in it is a
 * bind mount of the one in NS. /dev/infiniband/NAME is a separate node.
 *
 * For each device the keeper holds flock(2) on SYSFS_GLOBAL_DIR/NS/owner/NAME. A file with a free
 * lock is left from a killed keeper and caller, and the next beginning or sysfs_global_sweep()
 * removes it. The file identifies the directory of the device's node. Another mount namespace may
 * have the same /dev, or another with a foreign node of that name. NS/nodes identifies the
 * directory if the keeper made it. NS itself is locked while anything in it changes.
 */
#ifndef SERVE_SYSFS_GLOBAL_H
#define SERVE_SYSFS_GLOBAL_H

#include "../../os/ask.h"
#include "../../os/netdev.h"
#include "../../engine/pkey.h"

#define SYSFS_GLOBAL_DIR ASK_DIR "/files"

/* The caller's end; keeper 0: none. */
struct sysfs_global {
	pid_t keeper;
	int fd;
};
#define SYSFS_GLOBAL_NONE ((struct sysfs_global){ .fd = -1 })

/*
 * sysfs_global.c: makes the files of n devices with these P_Keys. Returns 0, or -errno after a line
 * on standard error, and then leaves nothing. sysfs_global_drop() removes the files of one device,
 * and sysfs_global_end() all of them, before they return. Both do nothing without a beginning.
 */
int sysfs_global_begin(struct sysfs_global *e, const struct netdev *devs, u32 n,
		       const struct pkey_table *pkeys);
void sysfs_global_drop(struct sysfs_global *e, u32 ifindex);
void sysfs_global_end(struct sysfs_global *e);

/* ---- sysfs_global_dir.c ---- */

/* A device of a keeper. */
struct sysfs_global_device {
	struct netdev dev; /* the state in its files */
	int owner_fd;	   /* -1: without files */
};

/* NS of the caller's mount namespace, open and locked; path is its path. */
struct sysfs_global_dir {
	int fd;
	char path[64];
};

/* Returns 0, -ENOENT (without make: it does not exist), -EPERM (not owned by root) or -errno. */
int sysfs_global_enter(struct sysfs_global_dir *d, bool make);
/*
 * Unlocks NS. Without devices also unmounts and removes it, unless other processes have mounted
 * something over it.
 */
void sysfs_global_leave(struct sysfs_global_dir *d);
/*
 * The caller holds NS's lock. sysfs_global_add() returns -EEXIST if the name is taken.
 * sysfs_global_write() updates changed files.
 */
int sysfs_global_add(struct sysfs_global_dir *d, struct sysfs_global_device *device,
		     const struct pkey_table *pkeys);
int sysfs_global_write(struct sysfs_global_dir *d, struct sysfs_global_device *device,
		       const struct pkey_table *pkeys);
void sysfs_global_remove(struct sysfs_global_dir *d, struct sysfs_global_device *device);

/*
 * Removes the remains of killed keepers, in this mount namespace or in a deleted one. Returns the
 * number of devices; 0 also without the privilege. look: only counts.
 */
u32 sysfs_global_sweep(bool look);

/* ---- sysfs_global_mount.c ---- */

/* The directories that programs read. */
#define SYSFS_GLOBAL_SHOWN "/sys/class/infiniband"
#define SYSFS_GLOBAL_NODES "/dev/infiniband"

/* Mounts d's overlay, or remounts it after changes in the lower layers. Return 0 or -errno. */
int sysfs_global_mount(const struct sysfs_global_dir *d);
int sysfs_global_mount_again(const struct sysfs_global_dir *d);
/* Unmounts all overlays of d. Returns false if one is left because another mount covers it. */
bool sysfs_global_unmount(const struct sysfs_global_dir *d);
bool sysfs_global_is_mounted(const struct sysfs_global_dir *d);
/* Opens a socket for the kernel's device events. Returns a descriptor or -errno. */
int sysfs_global_listen(void);
/* Reads all pending events. Returns true if a class or an RDMA device changed. */
bool sysfs_global_hear(int fd);

#endif
