/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one clock that all above the transport read. The transport is told the time. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "../transport/types.h"

/* CLOCK_MONOTONIC in nanoseconds. Any thread; never fails. */
u64 clock_now_ns(void);

#endif
