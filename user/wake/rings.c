/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring buffers of a port's completion channels, in xroce_channel where XDP finds them. To put
 * one in takes the kernel some 15 ms, as it waits until no program can see what was there before.
 * So a ring that was put in stays there, for the next channel when its own has gone.
 */
#include <pthread.h>

#include "../base/kernel.h"
#include "rings.h"

static int rings_ask_kernel(void *arg)
{
	return kernel_ring_make();
}

void rings_init(struct rings *r)
{
	*r = (struct rings){ .map_fd = -1, .make = rings_ask_kernel };
	pthread_mutex_init(&r->lock, NULL);
}

void rings_close(struct rings *r)
{
	while (r->num_spare)
		kernel_close(r->spare[--r->num_spare].fd);
	pthread_mutex_destroy(&r->lock);
}

void rings_adopt(struct rings *r, int fd)
{
	r->spare[r->num_spare++] = (struct ring_slot){ fd, XROCE_MAX_QUEUE + r->num++ };
}

/* Locked, none is spare. */
static int rings_grow(struct rings *r, struct ring_slot *out)
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

int rings_take(struct rings *r, struct ring_slot *out)
{
	int err = 0;

	pthread_mutex_lock(&r->lock);
	if (r->num_spare)
		*out = r->spare[--r->num_spare];
	else
		err = rings_grow(r, out);
	pthread_mutex_unlock(&r->lock);
	return err;
}

void rings_give(struct rings *r, const struct ring_slot *ring)
{
	pthread_mutex_lock(&r->lock);
	r->spare[r->num_spare++] = *ring;
	pthread_mutex_unlock(&r->lock);
}
