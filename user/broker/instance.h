/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a client is given: a program of its own with its maps, rings and TAP devices, made before
 * it asks and the same for every client.
 */
#ifndef BROKER_INSTANCE_H
#define BROKER_INSTANCE_H

#include <xroce/trace.h>

#include "../os/ask.h"
#include "readonly_maps.h"

#define INSTANCE_TAPS 2
#define INSTANCE_KIB  10240u /* of the kernel's memory, at most */

struct xroce_bpf;

struct instance {
	struct xroce_bpf *bpf; /* NULL: not made */
	int wake_fd;	       /* the ring of its service thread */
	int tap_fd, single_fd;
	u32 tap, single;       /* these devices */
	int single_link_fd;    /* of the XDP program on the second */
	struct readonly_maps shown;
	u32 prog_id;
	u32 ring_bytes;
};

/* What all instances of a broker have in common. */
struct instance_plan {
	u32 ifindex;
	u32 ring_bytes;
	int tap_ingress_fd, tap_egress_fd, tap_single_fd; /* programs */
	int clients_fd, turn_fd; /* the broker's maps, which clients' programs have as well */
};

/*
 * Returns 0, or -errno and the step that failed; nothing is left then. No packet reaches its
 * program yet, and what is sent by its devices is refused.
 */
int instance_make(struct instance *i, const struct instance_plan *plan, const char **step);

/*
 * Only a device to send by, of all frames, for a client that has the rest. Returns its descriptor
 * or -errno.
 */
int instance_make_tap(const struct instance_plan *plan, u32 *tap);

/* Its descriptors in the order of enum ask_fd: they stay the instance's. */
void instance_fds(const struct instance *i, int fd[ASK_FDS]);
int instance_prog_fd(const struct instance *i);

/* Closes this process's descriptors: of one that was not given away, nothing is left. */
void instance_close(struct instance *i);

#endif
