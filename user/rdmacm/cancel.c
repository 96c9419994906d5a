/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cancel.h"

#include <pthread.h>

/* Per thread: the number of holds, and the program's cancellation state outside of them. */
static __thread int holds, state;

void cancel_hold(void)
{
	if (!holds++)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
}

void cancel_release(void)
{
	if (!--holds)
		pthread_setcancelstate(state, NULL);
}

void cancel_point(void)
{
	cancel_open();
	pthread_testcancel();
	cancel_shut();
}

void cancel_open(void)
{
	if (holds == 1)
		pthread_setcancelstate(state, NULL);
}

void cancel_shut(void)
{
	if (holds == 1)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}
