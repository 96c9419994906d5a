/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pthread_cancel(): a call of the library disables cancellation while it holds a lock, an event or
 * an incomplete object. It enables cancellation only while it sleeps. Holds nest.
 */
#ifndef RDMACM_CANCEL_H
#define RDMACM_CANCEL_H

/* Disables the cancellation of this thread. */
void cancel_hold(void);
/* Ends a hold; the last one restores the program's cancellation state. */
void cancel_release(void);
/* Restores the program's cancellation state for a sleep, but not inside a second hold. */
void cancel_open(void);
/* Ends cancel_open(). */
void cancel_shut(void);

#endif
