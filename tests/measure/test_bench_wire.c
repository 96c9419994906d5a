/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The control connection's messages: sent ones are read, and a peer's invalid requests are refused;
 * the spread of rounds, and when two results differ.
 */
#include "../unit/unit.h"

#include "../../user/tools/bench/bench.h"

static struct bench_message a_setup(void)
{
	return (struct bench_message){
		.type = BENCH_SETUP,
		.test = { .way = BENCH_WRITE, .measure = BENCH_BANDWIDTH, .events = true,
			  .size = 4096, .depth = 16, .path_mtu = 1024, .duration_ns = 5000000 },
		.qpn = 0xabcdef, .psn = 0x123456, .rkey = 0xdeadbeef, .va = 0x1122334455667788ull,
		.port = 4711, .token = 0x8877665544332211ull, .messages = 1ull << 40, .bytes = 3,
		.elapsed_ns = 77,
	};
}

/* Its error as it comes over the wire, or NULL. */
static const char *judge(const struct bench_message *m, struct bench_message *out)
{
	u8 wire[BENCH_WIRE_BYTES];

	bench_encode(wire, m);
	return bench_decode(out, wire);
}

static void bench_decode__what_was_sent(void **state)
{
	const struct bench_message m = a_setup();
	struct bench_message got;

	assert_null(judge(&m, &got));
	assert_int_equal(got.type, BENCH_SETUP);
	assert_int_equal(got.test.way, BENCH_WRITE);
	assert_int_equal(got.test.measure, BENCH_BANDWIDTH);
	assert_true(got.test.events);
	assert_int_equal(got.test.size, 4096);
	assert_int_equal(got.test.depth, 16);
	assert_int_equal(got.test.path_mtu, 1024);
	assert_int_equal(got.test.duration_ns, 5000000);
	assert_int_equal(got.qpn, m.qpn);
	assert_int_equal(got.psn, m.psn);
	assert_int_equal(got.rkey, m.rkey);
	assert_true(got.va == m.va && got.token == m.token && got.port == m.port);
	assert_true(got.messages == m.messages && got.bytes == 3 && got.elapsed_ns == 77);
}

static void bench_decode__bounds_of_a_test(void **state)
{
	struct bench_message m, got;

#define REFUSED(field, value)                    \
	do {                                     \
		m = a_setup();                   \
		m.field = (value);               \
		assert_non_null(judge(&m, &got)); \
	} while (0)
#define TAKEN(field, value)                      \
	do {                                     \
		m = a_setup();                   \
		m.field = (value);               \
		assert_null(judge(&m, &got));    \
	} while (0)
	REFUSED(type, BENCH_TYPE_END);
	REFUSED(test.way, BENCH_WAY_END);
	REFUSED(test.measure, BENCH_MEASURE_END);
	REFUSED(test.size, 0);
	REFUSED(test.size, BENCH_LEAST_SIZE - 1);
	TAKEN(test.size, BENCH_LEAST_SIZE);
	REFUSED(test.size, BENCH_MOST_SIZE + 1);
	REFUSED(test.size, UINT32_MAX);
	REFUSED(test.depth, 0);
	TAKEN(test.depth, bench_depth(4096));
	REFUSED(test.depth, bench_depth(4096) + 1);
	REFUSED(test.depth, UINT32_MAX);
	REFUSED(test.duration_ns, 0);
	TAKEN(test.duration_ns, BENCH_MOST_NS);
	REFUSED(test.duration_ns, BENCH_MOST_NS + 1);
	REFUSED(test.path_mtu, 0);
	REFUSED(test.path_mtu, 128);
	REFUSED(test.path_mtu, 1000);
	REFUSED(test.path_mtu, 8192);
	REFUSED(qpn, 1u << 24);
	REFUSED(psn, 1u << 24);
	/* what no datagram holds */
	REFUSED(test.way, BENCH_UD);
	TAKEN(test.way, BENCH_UDP);
	m = a_setup();
	m.test.way = BENCH_UD;
	m.test.size = 1024;
	assert_null(judge(&m, &got));
	m = (struct bench_message){ .type = BENCH_FAILED };
	assert_non_null(judge(&m, &got));
	m.status = ENODEV;
	assert_null(judge(&m, &got));
	m.status = 4096;
	assert_non_null(judge(&m, &got));
}

/* The client runs its tests with the path MTU of the server's HELLO. */
static void bench_decode__path_mtu_of_hello(void **state)
{
	static const u32 good[] = { 0, 256, 1024, 4096 };
	static const u32 bad[] = { 1, 128, 300, 4095, 4097, 8192, UINT32_MAX };
	struct bench_message m = { .type = BENCH_HELLO }, got;

	for (u32 i = 0; i < ARRAY_SIZE(good); i++) {
		m.path_mtu = good[i];
		assert_null(judge(&m, &got));
		assert_int_equal(got.path_mtu, good[i]);
	}
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		m.path_mtu = bad[i];
		assert_non_null(judge(&m, &got));
	}
}

/* Memory of an end: a slot more than the depth has, of any size that is taken. */
static void bench_depth__is_bounded(void **state)
{
	for (u32 size = BENCH_LEAST_SIZE; size <= BENCH_MOST_SIZE; size += size / 7 + 1) {
		assert_in_range(bench_depth(size), 2, BENCH_MOST_DEPTH);
		assert_true((u64)bench_depth(size) * size <= 2ull * BENCH_MOST_SIZE);
	}
}

static void bench_decode__foreign(void **state)
{
	const struct bench_message m = a_setup();
	struct bench_message got;
	u8 wire[BENCH_WIRE_BYTES];

	for (u32 i = 0; i < 6; i++) { /* magic and version */
		bench_encode(wire, &m);
		wire[i] ^= 1;
		assert_non_null(bench_decode(&got, wire));
	}
	bench_encode(wire, &m);
	wire[9] = 2; /* events */
	assert_non_null(bench_decode(&got, wire));
	memset(wire, 0xff, sizeof(wire));
	assert_non_null(bench_decode(&got, wire));
}

static void bench_spread__of_rounds(void **state)
{
	static const double odd[] = { 5, 1, 9 }, even[] = { 4, 8, 1, 2 };
	struct bench_spread s = bench_spread(odd, 3);

	assert_true(s.min == 1 && s.median == 5 && s.max == 9);
	s = bench_spread(even, 4);
	assert_true(s.min == 1 && s.median == 3 && s.max == 8);
	s = bench_spread(even, 1);
	assert_true(s.min == 4 && s.median == 4 && s.max == 4);
	s = bench_spread(even, 0);
	assert_true(s.min == 0 && s.median == 0 && s.max == 0);
}

static void compare_points__overlap(void **state)
{
	const struct bench_spread low = { 1, 2, 3 }, high = { 4, 5, 6 }, touching = { 3, 5, 6 };

	assert_int_equal(compare_points(&low, &high, true), COMPARE_WORSE);
	assert_int_equal(compare_points(&low, &high, false), COMPARE_BETTER);
	assert_int_equal(compare_points(&high, &low, true), COMPARE_BETTER);
	assert_int_equal(compare_points(&high, &low, false), COMPARE_WORSE);
	assert_int_equal(compare_points(&low, &touching, true), COMPARE_SAME);
	assert_int_equal(compare_points(&touching, &low, false), COMPARE_SAME);
	assert_int_equal(compare_points(&low, &low, true), COMPARE_SAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bench_decode__what_was_sent),
		cmocka_unit_test(bench_decode__bounds_of_a_test),
		cmocka_unit_test(bench_decode__path_mtu_of_hello),
		cmocka_unit_test(bench_depth__is_bounded),
		cmocka_unit_test(bench_decode__foreign),
		cmocka_unit_test(bench_spread__of_rounds),
		cmocka_unit_test(compare_points__overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
