/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel says of changes on interfaces, of the network namespace in which the socket was
 * opened: its messages tell which interface has news, seldom what they are.
 */
#ifndef PORT_NEWS_H
#define PORT_NEWS_H

#include <libmnl/libmnl.h>

#include "../engine/types.h"

struct news {
	int fd; /* readable when there are some */
	char messages[32768] __attribute__((aligned(NLMSG_ALIGNTO))); /* the kernel's largest */
};

enum news_kind {
	NEWS_LINK,    /* the interface's state may be another: the message says so */
	NEWS_ADDRESS,
	NEWS_GONE,    /* also when its number has been given to another interface since */
	NEWS_LOST,    /* messages were: of any interface; ifindex and nlh are none */
};

typedef void news_fn(void *arg, enum news_kind kind, u32 ifindex, const struct nlmsghdr *nlh);

/* Returns 0 or -errno; then n->fd is -1. */
int news_open(struct news *n);
void news_close(struct news *n);
/* Tells fn of all that has come. Does not wait. */
void news_take(struct news *n, news_fn *fn, void *arg);

#endif
