/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* How many MADs a broker sends to the peers of a client that died, and when. */
#include "../unit/unit.h"

#include "../../user/broker/dead_peers.h"
#include "../../user/os/clock.h"

#define PEERS	6000u
#define PLACE	3u
#define SECOND	1000u /* ms */

static u32 peers, told[PEERS], all, most_in_10_ms;
static u64 now_ns;

/* ---- what dead_peers.c calls ---- */

u64 clock_now_ns(void)
{
	return now_ns;
}

bool mux_has_place(const struct mux *m, u32 place)
{
	assert_int_equal(place, PLACE);
	return false;
}

void mux_take_dead_peers(struct mux *m, u64 serial, mux_dead_peer_fn *fn, void *arg)
{
	for (u32 i = 0; i < peers; i++)
		fn(arg, &(struct mux_dead_peer){ .own_id = i });
}

void mad_sender_tell(struct mad_sender *s, u32 place, const struct mux_dead_peer *o)
{
	assert_int_equal(place, PLACE);
	told[o->own_id]++;
	all++;
}

/* A broker that has much to do calls it each 100 us, for a second and a half. */
static void run(u32 num, bool is_unconfirmed)
{
	struct broker *b = calloc(1, sizeof(*b));
	u32 before;

	assert_non_null(b);
	now_ns = NSEC_PER_SEC;
	peers = num;
	all = most_in_10_ms = 0;
	memset(told, 0, sizeof(told));
	dead_peers_take(b, PLACE, 1, is_unconfirmed);
	for (u32 step = 0; step < SECOND / 10 * 15 / 10; step++) {
		before = all;
		for (u32 i = 0; i < 100; i++, now_ns += 100 * NSEC_PER_USEC)
			dead_peers_tell(b, now_ns);
		most_in_10_ms = all - before > most_in_10_ms ? all - before : most_in_10_ms;
	}
	assert_int_equal(dead_peers_next_ns(b), NSEC_NEVER);
	dead_peers_free(b);
	free(b);
}

static void dead_peers_tell__four_times(void **state)
{
	run(PEERS, false);
	for (u32 i = 0; i < PEERS; i++)
		assert_int_equal(told[i], 4);
	run(200, true);
	for (u32 i = 0; i < 200; i++)
		assert_int_equal(told[i], 4);
}

/* Of peers whose addresses may be forged few get a second MAD, and none many at a time. */
static void dead_peers_tell__unconfirmed(void **state)
{
	run(PEERS, true);
	assert_int_equal(all, 4096 + 3 * 256);
	for (u32 i = 0; i < PEERS; i++)
		assert_int_equal(told[i], i < 256 ? 4 : i < 4096);
	assert_true(most_in_10_ms <= 2 * 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dead_peers_tell__four_times),
		cmocka_unit_test(dead_peers_tell__unconfirmed),
	};

	return cmocka_run_group_tests_name("dead_peers", tests, NULL, NULL);
}
