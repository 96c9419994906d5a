/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring buffers of a port's completion channels, in xroce_channel where XDP finds them. To put
 * one in takes the kernel some 15 ms, as it waits until no program can see what was there before,
 * but many at once take no longer. So a ring that was put in stays there, for the next channel when
 * its own has gone, and when none is left more than one are put in: half as many as there are.
 */
#include <pthread.h>
#include <stdlib.h>

#include <xroce/abi.h>

#include "../base/kernel.h"
#include "rings.h"

#define AT_ONCE_MAX 256 /* 4 MiB of rings */
#define RINGS_MAX   (XROCE_MAX_CHANNEL - XROCE_MAX_QUEUE)

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
	free(r->spare);
	r->spare = NULL;
	r->room = 0;
	pthread_mutex_destroy(&r->lock);
}

/* Locked. There is room for all that have been put in, so that each can be given back. */
static int rings_make_room(struct rings *r, u32 n)
{
	struct ring_slot *spare;

	if (n <= r->room)
		return 0;
	spare = realloc(r->spare, n * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	r->spare = spare;
	r->room = n;
	return 0;
}

/* Locked. Put in these rings, in the slots behind those that have one. Returns 0 or -errno. */
static int rings_put_in(struct rings *r, const int *fds, u32 n)
{
	u32 slots[AT_ONCE_MAX];
	int err;

	for (u32 i = 0; i < n; i++)
		slots[i] = XROCE_MAX_QUEUE + r->num + i;
	err = n == 1 ? kernel_map_put(r->map_fd, slots, fds) :
		       kernel_map_put_all(r->map_fd, slots, fds, n);
	if (!err)
		r->num += n;
	return err;
}

static void rings_close_all(int *fds, u32 n)
{
	while (n)
		kernel_close(fds[--n]);
}

/*
 * Locked, none is spare. out->fd, or a new ring if that is -1, gets a slot, and others become spare
 * unless descriptors or memory are short, which the application may want. What a broker has given
 * counts for it from then on: up to its limit (EDQUOT) all are kept.
 */
static int rings_grow(struct rings *r, struct ring_slot *out)
{
	const u32 first = r->num,
		  wanted = min_u32(min_u32(first / 2 + 1, AT_ONCE_MAX), RINGS_MAX - first);
	int fds[AT_ONCE_MAX], err;
	u32 n = 1, spare;

	if (!wanted)
		return -ENOSPC;
	err = rings_make_room(r, first + wanted);
	if (err)
		return err;
	fds[0] = out->fd >= 0 ? out->fd : r->make(r->make_arg);
	if (fds[0] < 0)
		return fds[0];
	while (n < wanted && (fds[n] = r->make(r->make_arg)) >= 0)
		n++;
	spare = n == wanted || fds[n] == -EDQUOT ? n - 1 : 0;
	if (spare && rings_put_in(r, fds, n))
		spare = 0;
	if (!spare) {
		rings_close_all(fds + 1, n - 1);
		err = rings_put_in(r, fds, 1);
	}
	if (err) {
		if (out->fd < 0)
			kernel_close(fds[0]);
		return err;
	}
	*out = (struct ring_slot){ fds[0], XROCE_MAX_QUEUE + first };
	for (u32 i = 1; i <= spare; i++)
		r->spare[r->num_spare++] =
			(struct ring_slot){ fds[i], XROCE_MAX_QUEUE + first + i };
	return 0;
}

int rings_take(struct rings *r, int own, struct ring_slot *out)
{
	int err = 0;

	pthread_mutex_lock(&r->lock);
	if (r->num_spare) {
		*out = r->spare[--r->num_spare];
	} else {
		out->fd = own;
		err = rings_grow(r, out);
	}
	pthread_mutex_unlock(&r->lock);
	return err;
}

void rings_give(struct rings *r, const struct ring_slot *ring)
{
	pthread_mutex_lock(&r->lock);
	r->spare[r->num_spare++] = *ring;
	pthread_mutex_unlock(&r->lock);
}
