/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections to a name of the interface (netdev_hold(), netdev_say_alone()). They only show who
 * holds it, and hang up when the broker ends. Any user can connect, and send: the broker accepts
 * all, so that nothing waits in the kernel, and keeps the newest.
 */
#ifndef BROKER_VISITORS_H
#define BROKER_VISITORS_H

#include "../os/loop.h"

#define VISITORS_TRUSTED 64u /* of root and of the broker's user */
#define VISITORS_OTHERS	 16u /* of all other users */

struct visitors {
	struct source source; /* fd -1: none */
	struct loop *loop;
	int trusted[VISITORS_TRUSTED], other[VISITORS_OTHERS]; /* -1: none */
	u32 next_trusted, next_other;
};

/* For visitors_end() without visitors_begin(). */
void visitors_init(struct visitors *v);
/* Accepts connections to listen_fd from now on; it stays the caller's. Returns 0 or -errno. */
int visitors_begin(struct visitors *v, struct loop *loop, int listen_fd);
/* Closes all connections, as the broker ends. */
void visitors_end(struct visitors *v);

#endif
