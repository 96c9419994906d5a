/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps that are made for reading, by names in a BPF file system:
 *
 *   DIR/IFACE@NETNS-INDEX/OWNER/MAP
 *
 * NETNS is the inode of the network namespace, INDEX the interface's; OWNER is one of alone-PID,
 * broker-PID, client-N-PID. The kernel allows no dot in such names: of an interface's it is a ':'.
 *
 * Whoever makes the directory of an OWNER holds a lock on it (flock(2)) as long as it lives. So one
 * whose lock is free was left by a process that was killed, whatever its number or namespace, and
 * anyone who begins takes it away. DIR itself is locked while directories come and go.
 *
 * All of it is for root: files have the mode 0400. A group, if one is given, reads as well, and no
 * more: the kernel gives a member of it descriptors with BPF_F_RDONLY alone.
 */
#ifndef ATTACH_PIN_H
#define ATTACH_PIN_H

#include <bpf/libbpf.h>

#include "../os/netdev.h"

#define PIN_MOUNT "/sys/fs/bpf"
#define PIN_DIR	  PIN_MOUNT "/xroce" /* unless another is asked for */

/* The directory of an OWNER; fd -1: there is none. */
struct pin {
	int fd;
	char name[40];
};

/* Those of a process on an interface; dir_fd -1: nothing is pinned. */
struct pins {
	int dir_fd, iface_fd;
	gid_t group; /* -1: none */
	char *path;  /* of DIR */
	char iface[64];
	struct pin own;
};

#define PIN_NONE  ((struct pin){ .fd = -1 })
#define PINS_NONE ((struct pins){ .dir_fd = -1, .iface_fd = -1, .own = PIN_NONE })

/*
 * Makes the directories for KIND-PID of this process, and DIR itself if it is not there. Takes away
 * what others have left. Returns 0, or -errno after a line on standard error.
 */
int pins_begin(struct pins *p, const char *dir, const struct netdev *dev, const char *kind,
	       gid_t group);
/* All that it has made goes. Nothing happens without a beginning, or the second time. */
void pins_end(struct pins *p);
/* In a forked child: the parent's stay. */
void pins_abandon(struct pins *p);

/* One more OWNER. Returns 0, or -errno: there is none. */
int pins_add(struct pins *p, const char *name, struct pin *out);
void pins_remove(struct pins *p, struct pin *pin);

/* Pins the maps of the object whose names are shown. Returns 0, or -errno of the first failure. */
int pin_maps(const struct pins *p, const struct pin *pin, const struct bpf_object *object,
	     bool (*is_shown)(const char *name));

/* Takes away what processes that were killed have left in DIR. Returns of how many, or -errno. */
int pins_sweep(const char *dir);

/* Can maps be pinned in DIR? 0, or -errno, and a line's worth of text that says why not. */
int pins_try(const char *dir, char *why, size_t n);

#endif
