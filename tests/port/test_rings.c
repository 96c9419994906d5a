/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * user/run/cq_notify.c where a broker gives a bounded number of rings. The test is the map:
 * libbpf's functions below take the place of the library's.
 */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <xroce/abi.h>

#include "../../user/os/kernel.h"
#include "../../user/run/cq_notify.h"

#define MAP_FD 12345

/* xroce_channel: the descriptor in each slot, -1 for none. */
static int slots[64];
static int put_err;

static void put_in(u32 key, int fd)
{
	const u32 slot = key - XROCE_MAX_QUEUE;

	assert_true(slot < ARRAY_SIZE(slots));
	assert_int_equal(slots[slot], -1);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	slots[slot] = fd;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	assert_int_equal(fd, MAP_FD);
	if (put_err)
		return put_err;
	put_in(*(const u32 *)key, *(const int *)value);
	return 0;
}

/* What the broker has given, and gives at most. */
struct giver {
	u32 before, given, most;
	int newest;
};

static int give(void *arg, struct ring_slot *out)
{
	struct giver *g = arg;

	if (g->given == g->most)
		return -EDQUOT;
	g->newest = eventfd(0, EFD_CLOEXEC);
	*out = (struct ring_slot){ g->newest, XROCE_MAX_QUEUE + g->before + g->given++ };
	put_in(out->slot, out->fd);
	return 0;
}

static void forget(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(slots); i++)
		slots[i] = -1;
	put_err = 0;
}

static void begin(struct channel_rings *r, struct giver *g, u32 most)
{
	forget();
	*g = (struct giver){ .most = most };
	channel_rings_init(r);
	r->make = give;
	r->make_arg = g;
}

static void rings_take__makes_one(void **state)
{
	struct ring_slot ring;
	struct giver g;
	struct channel_rings r;

	begin(&r, &g, 1);
	assert_int_equal(channel_rings_take(&r, &ring), 0);
	assert_int_equal(ring.fd, g.newest);
	assert_int_equal(ring.slot, XROCE_MAX_QUEUE);
	assert_int_equal(slots[0], ring.fd);
	channel_rings_give(&r, &ring);
	channel_rings_close(&r);
	assert_int_equal(fcntl(g.newest, F_GETFD), -1);
}

/* Each counts for the process once it is given: none is thrown away while there are channels. */
static void rings_take__gets_as_many_as_there_may_be(void **state)
{
	struct ring_slot ring[XROCE_MAX_RING];
	struct giver g;
	struct channel_rings r;

	begin(&r, &g, XROCE_MAX_RING);
	for (u32 i = 0; i < XROCE_MAX_RING; i++) {
		assert_int_equal(channel_rings_take(&r, &ring[i]), 0);
		assert_int_equal(slots[ring[i].slot - XROCE_MAX_QUEUE], ring[i].fd);
		for (u32 j = 0; j < i; j++)
			assert_int_not_equal(ring[i].slot, ring[j].slot);
	}
	assert_int_equal(channel_rings_take(&r, &(struct ring_slot){ 0 }), -ENOSPC);
	channel_rings_give(&r, &ring[7]);
	assert_int_equal(channel_rings_take(&r, &ring[7]), 0);
	for (u32 i = 0; i < XROCE_MAX_RING; i++)
		channel_rings_give(&r, &ring[i]);
	channel_rings_close(&r);
}

/* A forked child's. */
static void rings_take__makes_none_without_a_map(void **state)
{
	struct channel_rings r;
	struct ring_slot ring;

	channel_rings_init(&r);
	assert_int_equal(channel_rings_take(&r, &ring), -EBADF);
	channel_rings_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_take__makes_one),
		cmocka_unit_test(rings_take__gets_as_many_as_there_may_be),
		cmocka_unit_test(rings_take__makes_none_without_a_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
