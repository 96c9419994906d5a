/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ring buffers of a port's completion channels, and where XDP finds them. Any thread. */
#ifndef RUN_CHANNEL_RINGS_H
#define RUN_CHANNEL_RINGS_H

#include <pthread.h>
#include <xroce/abi.h>

#include "../engine/types.h"

/* Rings made with the port, while the process has its privileges; more are made when taken. */
#define CHANNEL_RINGS_AHEAD 16

/* A ring buffer and its key in xroce_channel. */
struct ring_slot {
	int fd;
	u32 slot;
};

struct channel_rings {
	int map_fd;		  /* xroce_channel; -1: XDP finds none (a forked child) */
	/* makes a ring, or returns -errno; by default asks the kernel, which needs privileges */
	int (*make)(void *arg);
	void *make_arg;
	pthread_mutex_t lock;	  /* guards the fields below */
	u32 num;		  /* rings in the map: the slots from XROCE_MAX_QUEUE on */
	struct ring_slot spare[XROCE_MAX_RING]; /* num_spare rings that no channel uses */
	u32 num_spare;
};

void channel_rings_init(struct channel_rings *r);
void channel_rings_close(struct channel_rings *r);
/* Adds a ring that is in the map's next slot already, as a spare one. */
void channel_rings_adopt(struct channel_rings *r, int fd);
/*
 * Takes a spare ring, or makes one and puts it into the map. Returns 0, -ENOSPC if all
 * XROCE_MAX_RING are in use, or the -errno of making or inserting the ring.
 */
int channel_rings_take(struct channel_rings *r, struct ring_slot *out);
/* Releases a ring, which must be empty and unused by any CQ. */
void channel_rings_give(struct channel_rings *r, const struct ring_slot *ring);

#endif
