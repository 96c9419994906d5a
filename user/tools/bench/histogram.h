/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts times in bins of increasing width: 64 bins for each power of two, so that a percentile is
 * at most 1.6 % above the exact value. Exact below 128 ns. Pure: uses only the caller's memory.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include "../../engine/types.h"

#define HISTOGRAM_SUB	  64u
#define HISTOGRAM_MOST_NS ((1ull << 40) - 1) /* 18 minutes; longer times count as this */
#define HISTOGRAM_BINS	  (HISTOGRAM_SUB * 35)

struct histogram {
	u64 count, min_ns, max_ns;
	double sum_ns, sum_square; /* of the times, and of their squares */
	u64 bin[HISTOGRAM_BINS];
};

/* An all-zero histogram is empty. */
void histogram_add(struct histogram *h, u64 ns);
void histogram_merge(struct histogram *to, const struct histogram *from);

/* Return the bin of a time, and the first and last time of a bin. */
u32 histogram_bin(u64 ns);
u64 histogram_first_ns(u32 bin);
u64 histogram_last_ns(u32 bin);

/*
 * Returns the time that percent (0..100) of all times do not exceed: the last of its bin, clamped
 * to min_ns and max_ns. 0 if empty.
 */
u64 histogram_percentile(const struct histogram *h, double percent);
/* In nanoseconds; 0 if empty. */
double histogram_mean(const struct histogram *h);
/* Returns the standard deviation, as mdev of ping(8). */
double histogram_deviation(const struct histogram *h);

#endif
