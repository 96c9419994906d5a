/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The XDP hook of an interface: our program alone on it, or beside others in a dispatcher
 * (XROCE_ATTACH).
 */
#ifndef ATTACH_HOOK_H
#define ATTACH_HOOK_H

#include "attach.h"

/*
 * Load the XDP program and attach it, as a descriptor of this process: m->bpf, m->link_fd and the
 * mode are set. Returns 0, or -errno after a line on standard error.
 */
int hook_attach(const struct netdev *dev, struct attachment *m);

/*
 * Attach a program that is loaded, alone, in the mode that the interface is to have. Returns a
 * descriptor that holds it there, or -errno after a line on standard error.
 */
int hook_attach_link(const struct netdev *dev, int prog_fd, bool *native);

/* Our program, a descriptor of m's. */
int hook_prog_fd(const struct attachment *m);

/* The program sees no more packets; it stays loaded. */
void hook_detach(struct attachment *m);

/* The hook has another program: in a dispatcher anew, ours is held by this process again. */
void hook_follow(struct attachment *m);

/* Beside other programs. Any thread: one that detaches as the process ends may be at it. */
static inline bool hook_is_in_dispatcher(const struct attachment *m)
{
	return atomic_load_explicit(&m->in_dispatcher, memory_order_relaxed);
}

/* Let go of it in a forked child: the parent's program stays where it is. */
void hook_abandon(struct attachment *m);

#endif
