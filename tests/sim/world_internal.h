/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the simulated world share. */
#ifndef SIM_WORLD_INTERNAL_H
#define SIM_WORLD_INTERNAL_H

#include "world.h"

/* A frame on its way. */
struct flight {
	u64 time_ns;
	u64 sequence;
	u32 to;
	u32 from;
	u32 overtake;	/* packets still to pass this one */
	bool held;
	u8 *data;
	u32 len;
};

/* Room for one more element of a growing array, which has n. */
void *world_grow(void *array, u32 n, u32 *room, size_t size);

/* A node sends a frame, which is changed if the link does so. */
void link_transmit(struct world *w, u32 from, u8 *frame, u32 len);

#endif
