/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Times, counted in bins whose width grows with them: 64 bins for each power of two, so that a
 * percentile is at most 1.6 % above what it would be of all times sorted. Exact below 128 ns.
 * Pure: no memory but the caller's.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include "../../engine/types.h"

#define HISTOGRAM_SUB	  64u
#define HISTOGRAM_MOST_NS ((1ull << 40) - 1) /* 18 minutes; what is longer counts as that */
#define HISTOGRAM_BINS	  (HISTOGRAM_SUB * 35)

struct histogram {
	u64 count, min_ns, max_ns;
	double sum_ns, sum_square; /* of the times, and of their squares */
	u64 bin[HISTOGRAM_BINS];
};

/* All zero is an empty one. */
void histogram_add(struct histogram *h, u64 ns);
void histogram_merge(struct histogram *to, const struct histogram *from);

/* The bin of a time, and the first and last time of a bin. */
u32 histogram_bin(u64 ns);
u64 histogram_first_ns(u32 bin);
u64 histogram_last_ns(u32 bin);

/*
 * The time that so many per cent (0..100) of all do not exceed: the last of its bin, but never more
 * than max_ns or less than min_ns. 0 of an empty one.
 */
u64 histogram_percentile(const struct histogram *h, double percent);
/* In nanoseconds; 0 of an empty one. */
double histogram_mean(const struct histogram *h);
/* ping(8)'s mdev: the standard deviation of all. */
double histogram_deviation(const struct histogram *h);

#endif
