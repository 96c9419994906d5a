/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pthread_cancel(): a call of the library holds the cancellation of its thread off while it has a
 * lock, an event or an object half made, and lets cancellation in only where it sleeps. Holds nest.
 */
#ifndef RDMACM_CANCEL_H
#define RDMACM_CANCEL_H

/* Holds off the cancellation of this thread. */
void cancel_hold(void);
/* Ends a hold; the last one restores the program's cancellation state. */
void cancel_release(void);
/* Restores the program's cancellation state for a sleep, but not inside a second hold. */
void cancel_open(void);
/* Ends cancel_open(). */
void cancel_shut(void);

#endif
