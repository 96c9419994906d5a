/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libxdp's dispatcher: one XDP program on an interface that calls the programs of several owners in
 * turn, each in its slot. libxdp pins programs and links in bpffs, so that they outlive their
 * process. The link of our slot is only a descriptor of this process. When it is closed, however
 * the process ends, the slot calls a stub again, and the next program gets the packet. A killed
 * process leaves two names in bpffs and the loaded program, which dispatcher_sweep() removes.
 */
#ifndef BROKER_DISPATCHER_H
#define BROKER_DISPATCHER_H

#include <stdbool.h>

#include "../engine/types.h"

struct bpf_object;

/* Our program's name, in `bpftool prog` and in dispatchers. */
#define DISPATCHER_OURS "xroce_xdp"
/* The name of the dispatcher itself. */
#define DISPATCHER_NAME "xdp_dispatcher"

/*
 * Our priority in a dispatcher: after filters (xdp-filter has 10), before AF_XDP sockets that take
 * whole queues (20) and programs without a priority (50).
 */
#define DISPATCHER_PRIORITY 15

/*
 * Tests whether this process can put a program into a dispatcher: loads and links one, but attaches
 * nothing to an interface. Returns 0, or -errno with the failed step in *step.
 */
int dispatcher_try(const char **step);

/* Returns whether the interface has a dispatcher now. If so, sets *native to its mode. */
bool dispatcher_is_there(u32 ifindex, bool *native);

/*
 * Loads the object, with program DISPATCHER_OURS in a slot of the interface's dispatcher, which is
 * made if there is none. Returns the slot's link or -errno; -EOPNOTSUPP: libxdp supports none here.
 * The object cannot be loaded again after an error.
 */
int dispatcher_join(struct bpf_object *object, u32 ifindex, bool native);

/*
 * Takes our slot's link again after another program was added or removed: libxdp then makes a new
 * dispatcher with new links. Returns the link or -errno; -EALREADY: this process has it; -ENOENT:
 * the interface has no slot of that program.
 */
int dispatcher_follow(u32 ifindex, int prog_fd);

/* Removes the slot, and with the last one the dispatcher. The link may be closed before. */
void dispatcher_leave(u32 ifindex, int prog_fd);

/* Removes all our programs from the interface's dispatcher: killed processes left them. */
void dispatcher_sweep(u32 ifindex);

#endif
