/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ring buffers of a port's completion channels, and where XDP finds them. Any thread. */
#ifndef RUN_CHANNEL_RINGS_H
#define RUN_CHANNEL_RINGS_H

#include <pthread.h>
#include <xroce/abi.h>

#include "../engine/types.h"

/* Made with a port, as a process may give up its privileges; others when they are taken. */
#define CHANNEL_RINGS_AHEAD 16

/* A ring buffer and its key in xroce_channel. */
struct ring_slot {
	int fd;
	u32 slot;
};

struct channel_rings {
	int map_fd;		  /* xroce_channel; -1: XDP finds none (a forked child) */
	/* a new ring, or -errno. channel_rings_init(): the kernel's, which takes privileges */
	int (*make)(void *arg);
	void *make_arg;
	pthread_mutex_t lock;	  /* of the fields that follow */
	u32 num;		  /* rings in the map: the slots from XROCE_MAX_QUEUE on */
	struct ring_slot spare[XROCE_MAX_RING]; /* num_spare rings that no channel uses */
	u32 num_spare;
};

void channel_rings_init(struct channel_rings *r);
void channel_rings_close(struct channel_rings *r);
/* A ring that is in the map already, in the next slot: it becomes a spare one of *r's. */
void channel_rings_adopt(struct channel_rings *r, int fd);
/*
 * A ring that XDP finds: a spare one, or a new one. Returns 0, -ENOSPC: all XROCE_MAX_RING are in
 * use; or the -errno of making one or of putting it into the map.
 */
int channel_rings_take(struct channel_rings *r, struct ring_slot *out);
/* The ring is empty, and no CQ uses it any more. */
void channel_rings_give(struct channel_rings *r, const struct ring_slot *ring);

#endif
