/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libxdp's dispatcher: one XDP program on an interface that calls those of several owners in turn,
 * each in a slot of its own. libxdp keeps programs and links in bpffs, so that they outlive their
 * process; ours do not: the link of our slot is a descriptor of this process and nothing else. When
 * it goes, however the process ends, the slot is empty again: it calls a stub, and the next program
 * gets the packet. Two names in bpffs and the loaded program remain after a process that was
 * killed; dispatcher_sweep() takes them away.
 */
#ifndef ATTACH_DISPATCHER_H
#define ATTACH_DISPATCHER_H

#include <stdbool.h>

#include "../engine/types.h"

struct bpf_object;

/* The program's name, in `bpftool prog` and in dispatchers. */
#define DISPATCHER_OURS "xroce_xdp"
/* That of the dispatcher itself. */
#define DISPATCHER_NAME "xdp_dispatcher"

/*
 * The order in a dispatcher: behind filters (xdp-filter has 10), before AF_XDP sockets that take
 * whole queues (20) and what says nothing (50).
 */
#define DISPATCHER_PRIORITY 15

/*
 * Could this process put a program into a dispatcher? Loads and links what it needs for that, and
 * attaches nothing to an interface. Returns 0, or -errno and what failed.
 */
int dispatcher_try(const char **step);

/* True if the interface has a dispatcher now, and whether in native mode. */
bool dispatcher_is_there(u32 ifindex, bool *native);

/*
 * Load the object, with program DISPATCHER_OURS as a slot of the interface's dispatcher, which is
 * made if there is none. Returns the slot's link or -errno: -EOPNOTSUPP too where libxdp finds that
 * it cannot. The object cannot be loaded again after an error.
 */
int dispatcher_join(struct bpf_object *object, u32 ifindex, bool native);

/*
 * Another program came or went: libxdp has made a new dispatcher, with links of its own for all
 * slots. Makes the link of ours the process's again. Returns it or -errno: -EALREADY if it is,
 * -ENOENT if the interface has no slot of that program.
 */
int dispatcher_follow(u32 ifindex, int prog_fd);

/* Take the slot away, and the dispatcher with the last one. The link may be closed before. */
void dispatcher_leave(u32 ifindex, int prog_fd);

/* Take away what killed processes have left in the interface's dispatcher: all programs of ours. */
void dispatcher_sweep(u32 ifindex);

#endif
