/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work that takes the kernel its time, done ahead and done late: instances are made before a client
 * asks, and TAP devices of clients that have gone are deleted several at a time.
 */
#ifndef BROKER_STOCK_H
#define BROKER_STOCK_H

#include <xroce/abi.h>

#include "instance.h"

#define STOCK_SPARES 2

struct stock {
	struct instance_plan plan;
	struct instance spare[STOCK_SPARES];
	u32 spares;
	u64 fill_ns; /* making one failed, or one was taken: not before this */
	u32 doomed[XROCE_MAX_CLIENT][INSTANCE_TAPS]; /* devices of clients that have gone, */
	int doomed_link_fd[XROCE_MAX_CLIENT];	     /* and their links */
	u32 num_doomed;
	u64 reap_ns; /* when they are deleted */
};

void stock_init(struct stock *s, const struct instance_plan *plan);
/* Spares and what is doomed go at once. */
void stock_empty(struct stock *s);

/* An instance, made now if none is ready: 0, or -errno and what failed. */
int stock_take(struct stock *s, u64 now_ns, struct instance *out, const char **step);
/* One that nobody was given. */
void stock_return(struct stock *s, struct instance *i);
/* True if spares are missing and can be made: stock_fill() makes one. */
bool stock_is_short(const struct stock *s, u64 now_ns);
void stock_fill(struct stock *s, u64 now_ns);

/*
 * The client that had these devices has gone, and nothing leaves by them any more: they go in a
 * moment, if the client's end has not ended them, with what the broker holds of them. Not now: that
 * may take its time, and other clients' ends are waiting.
 */
void stock_doom(struct stock *s, const u32 tap[INSTANCE_TAPS], int link_fd, u64 now_ns);
/* True if devices are to be deleted: stock_reap() deletes some. */
bool stock_is_due(const struct stock *s, u64 now_ns);
void stock_reap(struct stock *s);

/* When there is something to do next; NSEC_NEVER. */
u64 stock_next_ns(const struct stock *s);

#endif
