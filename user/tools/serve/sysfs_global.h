/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files of sysfs_private.h for all processes of the caller's mount namespace, the machine as a
 * rule, as long as the caller lives: `xroce serve --files`. A process beside it, the keeper, makes
 * them, writes again what changes, and takes them away when the caller has ended, however it did.
 *
 * /sys/class/infiniband/NAME comes by an overlay file system: above what is there, read-only, with
 * SYSFS_GLOBAL_DIR/NS/class, a tmpfs, or its `infiniband` in front, NS the inode of the mount
 * namespace. It is mounted over /sys/class/infiniband where the kernel has that, and over
 * /sys/class otherwise: a class that a module adds later is in it. A device's directory in it is a
 * bind mount of the one in NS. /dev/infiniband/NAME is a node of its own.
 *
 * Of each device the keeper holds a lock (flock(2)) on SYSFS_GLOBAL_DIR/NS/owner/NAME. One whose
 * lock is free was left where both were killed, and goes with the next that begins or
 * sysfs_global_sweep(). What is in it says in which directory its node was made: other mount
 * namespaces have the same /dev or another, and a node of that name there may be somebody else's.
 * NS/nodes says it of the directory, if that was made. NS itself is locked while anything in it
 * changes.
 */
#ifndef SERVE_SYSFS_GLOBAL_H
#define SERVE_SYSFS_GLOBAL_H

#include "../../os/ask.h"
#include "../../os/identity.h"
#include "../../engine/pkey.h"

#define SYSFS_GLOBAL_DIR ASK_DIR "/files"

/* The caller's end; keeper 0: there is none. */
struct sysfs_global {
	pid_t keeper;
	int fd;
};
#define SYSFS_GLOBAL_NONE ((struct sysfs_global){ .fd = -1 })

/*
 * sysfs_global.c: makes the files of n devices, which have these P_Keys. Returns 0, or -errno after
 * a line on standard error: nothing is left then. Those of one device, or of all, have gone when
 * sysfs_global_drop() or sysfs_global_end() returns; nothing happens without a beginning.
 */
int sysfs_global_begin(struct sysfs_global *e, const struct netdev *devs, u32 n,
		       const struct pkey_table *pkeys);
void sysfs_global_drop(struct sysfs_global *e, u32 ifindex);
void sysfs_global_end(struct sysfs_global *e);

/* ---- sysfs_global_dir.c ---- */

/* A device of a keeper's. */
struct sysfs_global_device {
	struct netdev dev; /* as its files say */
	int owner_fd;	   /* -1: it has no files */
};

/* NS of the caller's mount namespace, entered and locked; all paths of it come from path. */
struct sysfs_global_dir {
	int fd;
	char path[64];
};

/* Returns 0, -ENOENT (not make: there is none), -EPERM (not root's) or -errno. */
int sysfs_global_enter(struct sysfs_global_dir *d, bool make);
/*
 * Without any device in it NS goes, and what is mounted. Both stay while what others have mounted
 * covers it.
 */
void sysfs_global_leave(struct sysfs_global_dir *d);
/*
 * With NS locked. Adding: -EEXIST: somebody else's device has that name. Writing: what has changed.
 */
int sysfs_global_add(struct sysfs_global_dir *d, struct sysfs_global_device *device,
		     const struct pkey_table *pkeys);
int sysfs_global_write(struct sysfs_global_dir *d, struct sysfs_global_device *device,
		       const struct pkey_table *pkeys);
void sysfs_global_remove(struct sysfs_global_dir *d, struct sysfs_global_device *device);

/*
 * Takes away what keepers that were killed have left, in this mount namespace or one that is gone.
 * Returns how many devices' files, 0 also where it may not. look: only counts.
 */
u32 sysfs_global_sweep(bool look);

/* ---- sysfs_global_mount.c ---- */

/* Where programs look. */
#define SYSFS_GLOBAL_SHOWN "/sys/class/infiniband"
#define SYSFS_GLOBAL_NODES "/dev/infiniband"

/* What d has is in front of what is there. Again: what has changed below is seen. 0 or -errno. */
int sysfs_global_mount(const struct sysfs_global_dir *d);
int sysfs_global_mount_again(const struct sysfs_global_dir *d);
/* All of it. False: some is left, as others have mounted something over it. */
bool sysfs_global_unmount(const struct sysfs_global_dir *d);
bool sysfs_global_is_mounted(const struct sysfs_global_dir *d);
/* The kernel tells of devices that come and go: a descriptor, or -errno. */
int sysfs_global_listen(void);
/* All that it has told is taken; has a class come, or a device of the kernel's with such files? */
bool sysfs_global_hear(int fd);

#endif
