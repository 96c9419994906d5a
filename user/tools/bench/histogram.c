/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Log-linear bins, indexed by the upper seven bits of a time. */
#include "histogram.h"

#include <math.h>

#define SUB_BITS 6

u32 histogram_bin(u64 ns)
{
	u32 shift;

	ns = min_u64(ns, HISTOGRAM_MOST_NS);
	if (ns < HISTOGRAM_SUB)
		return (u32)ns;
	shift = 63 - SUB_BITS - (u32)__builtin_clzll(ns);
	return (shift << SUB_BITS) + (u32)(ns >> shift);
}

u64 histogram_first_ns(u32 bin)
{
	const u32 shift = bin < 2 * HISTOGRAM_SUB ? 0 : (bin >> SUB_BITS) - 1;

	return (u64)(bin - (shift << SUB_BITS)) << shift;
}

u64 histogram_last_ns(u32 bin)
{
	return histogram_first_ns(bin + 1) - 1;
}

void histogram_add(struct histogram *h, u64 ns)
{
	if (!h->count || ns < h->min_ns)
		h->min_ns = ns;
	h->max_ns = max_u64(h->max_ns, ns);
	h->count++;
	h->sum_ns += (double)ns;
	h->sum_square += (double)ns * (double)ns;
	h->bin[histogram_bin(ns)]++;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	if (!from->count)
		return;
	if (!to->count || from->min_ns < to->min_ns)
		to->min_ns = from->min_ns;
	to->max_ns = max_u64(to->max_ns, from->max_ns);
	to->count += from->count;
	to->sum_ns += from->sum_ns;
	to->sum_square += from->sum_square;
	for (u32 i = 0; i < HISTOGRAM_BINS; i++)
		to->bin[i] += from->bin[i];
}

u64 histogram_percentile(const struct histogram *h, double percent)
{
	const double want = ceil((double)h->count * percent / 100);
	u64 seen = 0;

	for (u32 i = 0; i < HISTOGRAM_BINS; i++) {
		seen += h->bin[i];
		if (seen && (double)seen >= want)
			return max_u64(min_u64(histogram_last_ns(i), h->max_ns), h->min_ns);
	}
	return h->max_ns;
}

double histogram_mean(const struct histogram *h)
{
	return h->count ? h->sum_ns / (double)h->count : 0;
}

double histogram_deviation(const struct histogram *h)
{
	const double mean = histogram_mean(h);
	const double variance = h->count ? h->sum_square / (double)h->count - mean * mean : 0;

	return variance > 0 ? sqrt(variance) : 0;
}
