/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one clock that all above the transport read. The transport is told the time. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "../engine/types.h"

/*
 * CLOCK_MONOTONIC of the first time namespace in nanoseconds: the clock of BPF programs, and the
 * same one in all processes. Any thread; never fails.
 */
u64 clock_now_ns(void);
/* The same moment by CLOCK_MONOTONIC as this process reads it. */
u64 clock_own_ns(u64 at_ns);

#endif
