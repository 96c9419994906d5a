/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pthread_cancel(): a call of the library disables cancellation while it holds a lock, an event or
 * an incomplete object. It enables cancellation only while it sleeps. Holds nest.
 */
#ifndef RDMACM_CANCEL_H
#define RDMACM_CANCEL_H

#include <stdbool.h>

/* Disables the cancellation of this thread. */
void cancel_hold(void);
/* Ends a hold; the last one restores the program's cancellation state. */
void cancel_release(void);
/* Holds until the end of the block: the first line of each exported call, except simple queries. */
#define CANCEL_HELD                                                                                \
	__attribute__((cleanup(cancel_block_ends))) bool cancel_is_held = (cancel_hold(), true)
/* Lets a pending cancellation take effect, but not inside a second hold. */
void cancel_point(void);
/* Restores the program's cancellation state for a sleep, but not inside a second hold. */
void cancel_open(void);
/* Ends cancel_open(). */
void cancel_shut(void);

static inline void cancel_block_ends(const bool *is_held)
{
	if (*is_held)
		cancel_release();
}

#endif
