/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pthread_cancel(3) of a thread that makes one call of the library. */
#ifndef TESTS_VERBS_CANCELLED_H
#define TESTS_VERBS_CANCELLED_H

#include "contract.h"

struct cancelled {
	pthread_t thread;
	int (*call)(void *arg);
	void *arg;
	bool sleeps; /* another thread cancels it while it waits in the call */
	int rc;	     /* of the call, if it returned */
	bool returned;
};

/* Makes the call in a thread that cancels itself before it. The result is in *c. */
bool cancelled_calls(struct cancelled *c, int (*call)(void *arg), void *arg);
/*
 * Makes the call in a thread that is cancelled once it has had time to fall asleep in the call; an
 * earlier cancel is valid, and tests less. The call must have no reason to return.
 */
bool cancelled_sleeps(int (*call)(void *arg), void *arg);

#endif
