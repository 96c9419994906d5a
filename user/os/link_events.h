/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's notifications about interfaces, in the network namespace in which the socket was
 * opened: they identify the interface that changed, and rarely the change.
 */
#ifndef OS_LINK_EVENTS_H
#define OS_LINK_EVENTS_H

#include <libmnl/libmnl.h>

#include "../engine/types.h"

struct link_events {
	int fd; /* readable when there are notifications */
	/* the kernel's longest message */
	char messages[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
};

enum link_events_kind {
	LINK_EVENTS_LINK, /* the interface's state may have changed: nlh has it */
	LINK_EVENTS_ADDRESS,
	LINK_EVENTS_GONE, /* also if the ifindex has been given to another interface since */
	LINK_EVENTS_LOST, /* notifications of any interface were lost; no ifindex and nlh */
};

typedef void link_events_fn(void *arg, enum link_events_kind kind, u32 ifindex,
			    const struct nlmsghdr *nlh);

/* Returns 0, or -errno with n->fd -1. */
int link_events_open(struct link_events *n);
void link_events_close(struct link_events *n);
/* Passes all pending notifications to fn. Does not wait. */
void link_events_take(struct link_events *n, link_events_fn *fn, void *arg);

#endif
