/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ring buffers of a port's completion channels, and where XDP finds them. Any thread. */
#ifndef WAKE_RINGS_H
#define WAKE_RINGS_H

#include <pthread.h>

#include "../transport/types.h"

/* A ring buffer and its key in xroce_channel. */
struct ring_slot {
	int fd;
	u32 slot;
};

struct rings {
	int map_fd;		  /* xroce_channel; -1: XDP finds none (a forked child) */
	/* a new ring, or -errno. rings_init(): the kernel's, which takes privileges */
	int (*make)(void *arg);
	void *make_arg;
	pthread_mutex_t lock;	  /* of what follows */
	u32 num;		  /* that have been put in: the slots from XROCE_MAX_QUEUE on */
	struct ring_slot *spare;  /* those that no channel uses; room for all */
	u32 num_spare, room;
};

void rings_init(struct rings *r);
void rings_close(struct rings *r);
/*
 * A ring that XDP finds: a spare one, and the caller closes own; or own, which is *r's from then
 * on, or where own is -1 a new one. Returns 0, -ENOSPC (the map is full) or -errno.
 */
int rings_take(struct rings *r, int own, struct ring_slot *out);
/* It is empty, and no CQ uses it any more. */
void rings_give(struct rings *r, const struct ring_slot *ring);

#endif
