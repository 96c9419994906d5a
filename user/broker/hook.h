/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The XDP hook of an interface: attaches our program alone, or with others in a dispatcher
 * (XROCE_ATTACH). The owner holds the interface's name.
 */
#ifndef BROKER_HOOK_H
#define BROKER_HOOK_H

#include <stdbool.h>

struct netdev;
struct xroce_bpf;

struct hook {
	int link_fd; /* keeps the program attached; -1: none is */
	int prog_fd; /* of the program in a dispatcher; -1: not in one */
	bool native;
};

#define HOOK_NONE                                                                                  \
	{                                                                                          \
		.link_fd = -1, .prog_fd = -1                                                       \
	}

/*
 * Opens the programs and maps of a port (bpf/xroce.bpf.c) without loading them. Returns NULL with
 * errno set after an error. Before Linux 6.1 xroce_trace_tx will not be loaded: observers then see
 * no sent packets.
 */
struct xroce_bpf *hook_open_program(void);

/* Opens a program without loading it. Returns NULL with errno set. */
typedef struct xroce_bpf *hook_open_fn(void *arg);

/*
 * Loads a program and attaches it: to a hook without one, or in place of the program that is
 * attached alone. Sets *bpf; after an error to NULL, or to a program that is not attached. Returns
 * 0; -E2BIG without a line: the verifier's limit is exceeded, as it may be without CAP_PERFMON; or
 * -errno after a line on standard error.
 */
int hook_attach(const struct netdev *dev, struct hook *h, hook_open_fn *open, void *arg,
		struct xroce_bpf **bpf);
/*
 * Attaches a loaded program: alone, or in place of the program that is attached alone. Returns as
 * hook_attach(); -EBUSY without a line: the hook is in a dispatcher.
 */
int hook_put(const struct netdev *dev, struct hook *h, int prog_fd);
/* Detaches the program, which stays loaded. */
void hook_detach(const struct netdev *dev, struct hook *h);
/* Returns whether the program on the interface's hook is ours, of this process or another. */
bool hook_has_ours(const struct netdev *dev);
/* Takes our link from a new dispatcher, after the program on the hook has changed. */
void hook_follow(const struct netdev *dev, struct hook *h);

/* Returns whether other programs share the hook. */
static inline bool hook_is_in_dispatcher(const struct hook *h)
{
	return h->prog_fd >= 0;
}

#endif
