/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clock of everything above the transport, which gets the time as an argument. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include <sys/time.h>

#include "../engine/types.h"

/*
 * Returns CLOCK_MONOTONIC of the first time namespace in nanoseconds: the clock of BPF programs,
 * and the same in all processes. Any thread; never fails.
 */
u64 clock_now_ns(void);
/* Converts a time to CLOCK_MONOTONIC of this process's time namespace. */
u64 clock_own_ns(u64 at_ns);

/* Returns a duration rounded up to microseconds: 0, for many calls no limit, only for 0. */
static inline struct timeval clock_timeval(u64 ns)
{
	const u64 us = ns / NSEC_PER_USEC + (ns % NSEC_PER_USEC != 0);

	return (struct timeval){ (time_t)(us / 1000000), (suseconds_t)(us % 1000000) };
}

#endif
