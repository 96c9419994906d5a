/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* Bins of times, and the percentiles that come of them, against all times sorted. */
#include <math.h>

#include "../unit/unit.h"

#include "../../user/tools/bench/histogram.h"

static int compare(const void *a, const void *b)
{
	const u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Every bin begins after the one before, and its times lead to it. */
static void histogram_bin__covers_all(void **state)
{
	assert_int_equal(histogram_first_ns(0), 0);
	for (u32 i = 0; i < HISTOGRAM_BINS; i++) {
		const u64 first = histogram_first_ns(i), last = histogram_last_ns(i);

		assert_true(last >= first);
		assert_int_equal(histogram_bin(first), i);
		assert_int_equal(histogram_bin(last), i);
		if (i)
			assert_int_equal(first, histogram_last_ns(i - 1) + 1);
		if (i < 128)
			assert_int_equal(first, last);
		else
			assert_true((double)(last - first + 1) <= (double)first / 64);
	}
	assert_int_equal(histogram_last_ns(HISTOGRAM_BINS - 1), HISTOGRAM_MOST_NS);
	assert_int_equal(histogram_bin(HISTOGRAM_MOST_NS + 1), HISTOGRAM_BINS - 1);
	assert_int_equal(histogram_bin(UINT64_MAX), HISTOGRAM_BINS - 1);
}

static void histogram__empty(void **state)
{
	static const struct histogram h;

	assert_int_equal(histogram_percentile(&h, 50), 0);
	assert_true(histogram_mean(&h) == 0 && histogram_deviation(&h) == 0);
}

static void histogram__one(void **state)
{
	struct histogram *h = calloc(1, sizeof(*h));

	histogram_add(h, 1000003);
	assert_int_equal(histogram_percentile(h, 0), 1000003);
	assert_int_equal(histogram_percentile(h, 50), 1000003);
	assert_int_equal(histogram_percentile(h, 100), 1000003);
	assert_true(histogram_mean(h) == 1000003 && histogram_deviation(h) < 1);
	free(h);
}

/* Small times are exact: 1..100, of which the nth per cent is n. */
static void histogram_percentile__exact(void **state)
{
	struct histogram *h = calloc(1, sizeof(*h));

	for (u64 i = 100; i >= 1; i--)
		histogram_add(h, i);
	for (u32 i = 1; i <= 100; i++)
		assert_int_equal(histogram_percentile(h, i), i);
	assert_int_equal(histogram_percentile(h, 0), 1);
	assert_int_equal(histogram_percentile(h, 99.5), 100);
	assert_int_equal(h->count, 100);
	assert_int_equal(h->min_ns, 1);
	assert_int_equal(h->max_ns, 100);
	assert_true(fabs(histogram_mean(h) - 50.5) < 1e-9);
	/* (n^2 - 1) / 12 is the variance of 1..n */
	assert_true(fabs(histogram_deviation(h) - sqrt(9999 / 12.0)) < 1e-6);
	free(h);
}

#define TIMES 5000

/* Times of many orders, in two histograms that are merged. */
static void histogram_percentile__of_random_times(void **state)
{
	static const double percent[] = { 0.1, 1, 10, 50, 90, 99, 99.9, 100 };
	struct histogram *h = calloc(2, sizeof(*h));
	u64 *times = calloc(TIMES, sizeof(*times)), seed = 88172645463325252ull;

	for (u32 i = 0; i < TIMES; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		times[i] = (seed >> 8) >> (16 + seed % 40);
		histogram_add(&h[i % 2], times[i]);
	}
	histogram_merge(&h[0], &h[1]);
	qsort(times, TIMES, sizeof(*times), compare);
	assert_int_equal(h[0].count, TIMES);
	assert_int_equal(h[0].min_ns, times[0]);
	assert_int_equal(h[0].max_ns, times[TIMES - 1]);
	for (size_t i = 0; i < ARRAY_SIZE(percent); i++) {
		const u64 exact = times[(u32)ceil(TIMES * percent[i] / 100) - 1];
		const u64 got = histogram_percentile(&h[0], percent[i]);

		if (got < exact || (double)got > (double)exact * (1 + 1.0 / 64))
			fail_msg("%g %%: %llu, not %llu", percent[i], (unsigned long long)got,
				 (unsigned long long)exact);
	}
	free(times);
	free(h);
}

static void histogram_merge__into_and_of_empty(void **state)
{
	struct histogram *h = calloc(3, sizeof(*h));

	histogram_add(&h[0], 7);
	histogram_merge(&h[0], &h[1]);
	assert_int_equal(h[0].min_ns, 7);
	histogram_merge(&h[2], &h[0]);
	assert_int_equal(h[2].min_ns, 7);
	assert_int_equal(h[2].max_ns, 7);
	assert_int_equal(h[2].count, 1);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(histogram_bin__covers_all),
		cmocka_unit_test(histogram__empty),
		cmocka_unit_test(histogram__one),
		cmocka_unit_test(histogram_percentile__exact),
		cmocka_unit_test(histogram_percentile__of_random_times),
		cmocka_unit_test(histogram_merge__into_and_of_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
