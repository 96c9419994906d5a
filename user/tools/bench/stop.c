/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static _Atomic bool requested;

static void stop_on_signal(int sig)
{
	atomic_store_explicit(&requested, true, memory_order_relaxed);
}

bool stop_requested(void)
{
	return atomic_load_explicit(&requested, memory_order_relaxed);
}

/* Without SA_RESTART, so that a signal interrupts waits. */
void stop_catch_signals(void)
{
	const struct sigaction action = { .sa_handler = stop_on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}
