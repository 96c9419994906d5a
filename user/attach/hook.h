/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The XDP hook of an interface: attaches our program alone, or with others in a dispatcher
 * (XROCE_ATTACH).
 */
#ifndef ATTACH_HOOK_H
#define ATTACH_HOOK_H

#include "attach.h"

/*
 * Loads the XDP program and attaches it by a descriptor of this process. Sets m->bpf, m->link_fd
 * and the mode. Returns 0, or -errno after a line on standard error.
 */
int hook_attach(const struct netdev *dev, struct attachment *m);

/*
 * Attaches a loaded program alone, in the mode chosen for the interface (*native). Returns a
 * descriptor that keeps it attached, or -errno after a line on standard error.
 */
int hook_attach_link(const struct netdev *dev, int prog_fd, bool *native);

/* Returns the descriptor of our program, which stays m's. */
int hook_prog_fd(const struct attachment *m);

/* Detaches the program, which stays loaded. */
void hook_detach(struct attachment *m);

/* Takes our link from a new dispatcher, after the program on the hook has changed. */
void hook_follow(struct attachment *m);

/* Returns whether other programs share the hook. Any thread: exit() may detach at any time. */
static inline bool hook_is_in_dispatcher(const struct attachment *m)
{
	return atomic_load_explicit(&m->in_dispatcher, memory_order_relaxed);
}

/* In a forked child: closes its copy of the link. The parent's program stays attached. */
void hook_abandon(struct attachment *m);

#endif
