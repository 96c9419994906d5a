/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files of view.h for all processes of the caller's mount namespace, the machine as a rule, as
 * long as the caller lives: `xroce serve --files`. A process beside it, the keeper, makes them,
 * writes again what changes, and takes them away when the caller has ended, however it did.
 *
 * /sys/class/infiniband/NAME comes by an overlay file system: above what is there, read-only, with
 * EVERYONE_DIR/NS/class, a tmpfs, or its `infiniband` in front, NS the inode of the mount
 * namespace. It is mounted over /sys/class/infiniband where the kernel has that, and over
 * /sys/class otherwise: a class that a module adds later is in it. A device's directory in it is a
 * bind mount of the one in NS. /dev/infiniband/NAME is a node of its own.
 *
 * Of each device the keeper holds a lock (flock(2)) on EVERYONE_DIR/NS/owner/NAME. One whose lock
 * is free was left where both were killed, and goes with the next that begins or everyone_sweep().
 * What is in it says in which directory its node was made: other mount namespaces have the same
 * /dev or another, and a node of that name there may be somebody else's. NS/nodes says it of the
 * directory, if that was made.
 * NS itself is locked while anything in it changes.
 */
#ifndef CLI_EVERYONE_H
#define CLI_EVERYONE_H

#include "../os/ask.h"
#include "../os/identity.h"
#include "../engine/pkey.h"

#define EVERYONE_DIR ASK_DIR "/files"

/* The caller's end; keeper 0: there is none. */
struct everyone {
	pid_t keeper;
	int fd;
};
#define EVERYONE_NONE ((struct everyone){ .fd = -1 })

/*
 * everyone.c: makes the files of n devices, which have these P_Keys. Returns 0, or -errno after a
 * line on standard error: nothing is left then. Those of one device, or of all, have gone when
 * everyone_drop() or everyone_end() returns; nothing happens without a beginning.
 */
int everyone_begin(struct everyone *e, const struct netdev *devs, u32 n,
		   const struct pkey_table *pkeys);
void everyone_drop(struct everyone *e, u32 ifindex);
void everyone_end(struct everyone *e);

/* ---- everyone_dir.c ---- */

/* A device of a keeper's. */
struct everyone_device {
	struct netdev dev; /* as its files say */
	int owner_fd;	   /* -1: it has no files */
};

/* NS of the caller's mount namespace, entered and locked; all paths of it come from path. */
struct everyone_dir {
	int fd;
	char path[64];
};

/* Returns 0, -ENOENT (not make: there is none), -EPERM (not root's) or -errno. */
int everyone_enter(struct everyone_dir *d, bool make);
/*
 * Without any device in it NS goes, and what is mounted. Both stay while what others have mounted
 * covers it.
 */
void everyone_leave(struct everyone_dir *d);
/*
 * With NS locked. Adding: -EEXIST: somebody else's device has that name. Writing: what has changed.
 */
int everyone_add(struct everyone_dir *d, struct everyone_device *device,
		 const struct pkey_table *pkeys);
int everyone_write(struct everyone_dir *d, struct everyone_device *device,
		   const struct pkey_table *pkeys);
void everyone_remove(struct everyone_dir *d, struct everyone_device *device);

/*
 * Takes away what keepers that were killed have left, in this mount namespace or one that is gone.
 * Returns how many devices' files, 0 also where it may not. look: only counts.
 */
u32 everyone_sweep(bool look);

/* ---- everyone_mount.c ---- */

/* Where programs look. */
#define EVERYONE_SHOWN "/sys/class/infiniband"
#define EVERYONE_NODES "/dev/infiniband"

/* What d has is in front of what is there. Again: what has changed below is seen. 0 or -errno. */
int everyone_mount(const struct everyone_dir *d);
int everyone_mount_again(const struct everyone_dir *d);
/* All of it. False: some is left, as others have mounted something over it. */
bool everyone_unmount(const struct everyone_dir *d);
bool everyone_is_mounted(const struct everyone_dir *d);
/* The kernel tells of devices that come and go: a descriptor, or -errno. */
int everyone_listen(void);
/* All that it has told is taken; has a class come, or a device of the kernel's with such files? */
bool everyone_hear(int fd);

#endif
