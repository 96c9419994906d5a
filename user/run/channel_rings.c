/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring buffers of a port's completion channels, in xroce_channel for XDP. Inserting a ring
 * takes the kernel some 15 ms, as it waits until no program can see the previous entry. So an
 * inserted ring stays, and serves the next channel after its own is destroyed.
 */
#include <pthread.h>

#include "../os/kernel.h"
#include "channel_rings.h"

static int channel_rings_ask_kernel(void *arg)
{
	return kernel_ring_make();
}

void channel_rings_init(struct channel_rings *r)
{
	*r = (struct channel_rings){ .map_fd = -1, .make = channel_rings_ask_kernel };
	pthread_mutex_init(&r->lock, NULL);
}

void channel_rings_close(struct channel_rings *r)
{
	while (r->num_spare)
		kernel_close(r->spare[--r->num_spare].fd);
	pthread_mutex_destroy(&r->lock);
}

void channel_rings_adopt(struct channel_rings *r, int fd)
{
	r->spare[r->num_spare++] = (struct ring_slot){ fd, XROCE_MAX_QUEUE + r->num++ };
}

/* Makes a ring and inserts it. Locked; no ring is spare. */
static int channel_rings_grow(struct channel_rings *r, struct ring_slot *out)
{
	const u32 slot = XROCE_MAX_QUEUE + r->num;
	int fd, err;

	if (r->num == XROCE_MAX_RING)
		return -ENOSPC;
	fd = r->make(r->make_arg);
	if (fd < 0)
		return fd;
	err = kernel_map_put(r->map_fd, &slot, &fd);
	if (err) {
		kernel_close(fd);
		return err;
	}
	r->num++;
	*out = (struct ring_slot){ fd, slot };
	return 0;
}

int channel_rings_take(struct channel_rings *r, struct ring_slot *out)
{
	int err = 0;

	pthread_mutex_lock(&r->lock);
	if (r->num_spare)
		*out = r->spare[--r->num_spare];
	else
		err = channel_rings_grow(r, out);
	pthread_mutex_unlock(&r->lock);
	return err;
}

void channel_rings_give(struct channel_rings *r, const struct ring_slot *ring)
{
	pthread_mutex_lock(&r->lock);
	r->spare[r->num_spare++] = *ring;
	pthread_mutex_unlock(&r->lock);
}
