/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clock of everything above the transport, which gets the time as an argument. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "../engine/types.h"

/*
 * Returns CLOCK_MONOTONIC of the first time namespace in nanoseconds: the clock of BPF programs,
 * and the same in all processes. Any thread; never fails.
 */
u64 clock_now_ns(void);
/* Converts a time to CLOCK_MONOTONIC of this process's time namespace. */
u64 clock_own_ns(u64 at_ns);

#endif
