/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "clock.h"

#include <time.h>

u64 clock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}
