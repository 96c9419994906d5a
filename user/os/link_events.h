/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel says of changes on interfaces, of the network namespace in which the socket was
 * opened: its messages tell which interface has news, seldom what they are.
 */
#ifndef OS_LINK_EVENTS_H
#define OS_LINK_EVENTS_H

#include <libmnl/libmnl.h>

#include "../engine/types.h"

struct link_events {
	int fd; /* readable when there are some */
	char messages[32768] __attribute__((aligned(NLMSG_ALIGNTO))); /* the kernel's largest */
};

enum link_events_kind {
	LINK_EVENTS_LINK, /* the interface's state may be another: the message says so */
	LINK_EVENTS_ADDRESS,
	LINK_EVENTS_GONE, /* also when its number has been given to another interface since */
	LINK_EVENTS_LOST, /* messages were: of any interface; ifindex and nlh are none */
};

typedef void link_events_fn(void *arg, enum link_events_kind kind, u32 ifindex,
			    const struct nlmsghdr *nlh);

/* Returns 0 or -errno; then n->fd is -1. */
int link_events_open(struct link_events *n);
void link_events_close(struct link_events *n);
/* Tells fn of all that has come. Does not wait. */
void link_events_take(struct link_events *n, link_events_fn *fn, void *arg);

#endif
