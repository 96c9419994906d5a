/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SIGINT and SIGTERM stop a command in order: it still prints its results. */
#ifndef BENCH_STOP_H
#define BENCH_STOP_H

#include <stdbool.h>

void stop_catch_signals(void);
bool stop_requested(void);

#endif
