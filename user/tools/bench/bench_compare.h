/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decides whether two points differ. Pure. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include "bench.h"

enum compare_verdict { COMPARE_SAME, COMPARE_BETTER, COMPARE_WORSE };

/* Returns COMPARE_SAME if the ranges of the rounds overlap. */
enum compare_verdict compare_points(const struct bench_spread *before,
				    const struct bench_spread *after, bool less_is_better);
const char *compare_word(enum compare_verdict verdict);

#endif
