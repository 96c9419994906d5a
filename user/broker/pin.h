/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pins maps, so that observers can read them by names in a BPF file system:
 *
 *   DIR/IFACE@NETNS-INDEX/OWNER/MAP
 *
 * NETNS is the inode of the network namespace, INDEX the interface's index, OWNER broker-PID or
 * client-N-PID (and alone-PID of an earlier version, which is removed). A '.' in IFACE becomes a
 * ':', as the kernel allows no dot.
 *
 * The process that makes an OWNER's directory locks it (flock(2)) until it ends. An unlocked
 * directory was left by a killed process, whatever its PID or namespace, and the next user of DIR
 * removes it. DIR itself is locked while directories are made and removed.
 *
 * Only root has access: files have the mode 0400. Members of a group, if one is given, can read and
 * no more: the kernel gives them descriptors only with BPF_F_RDONLY.
 */
#ifndef BROKER_PIN_H
#define BROKER_PIN_H

#include <bpf/libbpf.h>

#include "../os/netdev.h"

#define PIN_MOUNT "/sys/fs/bpf"
#define PIN_DIR	  PIN_MOUNT "/xroce" /* the default DIR */

/* The directory of an OWNER; fd, which holds its lock, is -1 if there is none. */
struct pin {
	int fd;
	char name[40];
};

/* The pins of a process on an interface; dir_fd -1: none. */
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
 * Makes the directories for KIND-PID of this process, and DIR if it does not exist. Removes what
 * killed processes left. Returns 0, or -errno after a line on standard error.
 */
int pins_begin(struct pins *p, const char *dir, const struct netdev *dev, const char *kind,
	       gid_t group);
/* Removes what pins_begin() made. Does nothing without pins_begin(), or the second time. */
void pins_end(struct pins *p);

/* Makes the directory of another OWNER. Returns 0, or -errno with *out PIN_NONE. */
int pins_add(struct pins *p, const char *name, struct pin *out);
void pins_remove(struct pins *p, struct pin *pin);

/* Pins the maps for whose names is_shown() is true. Returns 0, or -errno at the first failure. */
int pin_maps(const struct pins *p, const struct pin *pin, const struct bpf_object *object,
	     bool (*is_shown)(const char *name));

/* Removes what killed processes left in DIR. Returns the number of OWNERs, or -errno. */
int pins_sweep(const char *dir);

/* Tests whether maps can be pinned in DIR. Returns 0, or -errno with one line of text in why. */
int pins_try(const char *dir, char *why, size_t n);

#endif
