/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work that takes the kernel its time, done ahead and done late: instances are made before a client
 * asks, and TAP devices of clients that have gone are deleted several at a time.
 */
#ifndef BROKER_CLIENT_POOL_H
#define BROKER_CLIENT_POOL_H

#include <xroce/abi.h>

#include "instance.h"

#define CLIENT_POOL_SPARES 2

struct client_pool {
	struct instance_plan plan;
	struct instance spare[CLIENT_POOL_SPARES];
	u32 spares;
	u64 fill_ns; /* making one failed, or one was taken: not before this */
	u32 doomed[XROCE_MAX_CLIENT][INSTANCE_TAPS]; /* devices of clients that have gone, */
	int doomed_link_fd[XROCE_MAX_CLIENT];	     /* and their links */
	u32 num_doomed;
	u64 reap_ns; /* when they are deleted */
};

void client_pool_init(struct client_pool *s, const struct instance_plan *plan);
/* Spares and what is doomed go at once. */
void client_pool_empty(struct client_pool *s);

/* An instance, made now if none is ready: 0, or -errno and what failed. */
int client_pool_take(struct client_pool *s, u64 now_ns, struct instance *out, const char **step);
/* One that nobody was given. */
void client_pool_return(struct client_pool *s, struct instance *i);
/* True if spares are missing and can be made: client_pool_fill() makes one. */
bool client_pool_is_short(const struct client_pool *s, u64 now_ns);
void client_pool_fill(struct client_pool *s, u64 now_ns);

/*
 * The client that had these devices has gone, and nothing leaves by them any more: they go in a
 * moment, if the client's end has not ended them, with what the broker holds of them. Not now: that
 * may take its time, and other clients' ends are waiting.
 */
void client_pool_doom(struct client_pool *s, const u32 tap[INSTANCE_TAPS], int link_fd, u64 now_ns);
/* True if devices are to be deleted: client_pool_reap() deletes some. */
bool client_pool_is_due(const struct client_pool *s, u64 now_ns);
void client_pool_reap(struct client_pool *s);

/* When there is something to do next; NSEC_NEVER. */
u64 client_pool_next_ns(const struct client_pool *s);

#endif
