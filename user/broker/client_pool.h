/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work that is slow in the kernel, done ahead or late: instances are made before a client asks, and
 * TAP devices of clients that have ended are deleted several at a time.
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
	bool is_on; /* spares are made: client_pool_start() */
	u64 fill_ns; /* earliest time to make a spare, after one was taken or could not be made */
	u32 doomed[XROCE_MAX_CLIENT][INSTANCE_TAPS]; /* devices of clients that have ended, */
	int doomed_link_fd[XROCE_MAX_CLIENT];	     /* and their links */
	u32 num_doomed;
	u64 reap_ns; /* when they are deleted */
};

void client_pool_init(struct client_pool *s, const struct instance_plan *plan);
/* Has spares made from now on. single_prog_fd: the program for TAP devices for single frames. */
void client_pool_start(struct client_pool *s, int single_prog_fd);
/* Deletes all spares and doomed devices now. */
void client_pool_empty(struct client_pool *s);

/* Takes an instance, made now if none is ready. Returns 0, or -errno and the step that failed. */
int client_pool_take(struct client_pool *s, u64 now_ns, struct instance *out, const char **step);
/* Puts back an instance that no client got. */
void client_pool_return(struct client_pool *s, struct instance *i);
/* Returns whether spares are missing and may be made; client_pool_fill() makes one. */
bool client_pool_is_short(const struct client_pool *s, u64 now_ns);
void client_pool_fill(struct client_pool *s, u64 now_ns);

/*
 * Schedules an ended client's devices, which send nothing any more, and the broker's link_fd of
 * them (-1: none) for deletion, in case the client's exit does not delete them. Not at once: that
 * may be slow, and other clients' ends wait.
 */
void client_pool_doom(struct client_pool *s, const u32 tap[INSTANCE_TAPS], int link_fd, u64 now_ns);
/* Returns whether devices are due for deletion; client_pool_reap() deletes some. */
bool client_pool_is_due(const struct client_pool *s, u64 now_ns);
void client_pool_reap(struct client_pool *s);

/* Returns when there is work next, or NSEC_NEVER. */
u64 client_pool_next_ns(const struct client_pool *s);

#endif
