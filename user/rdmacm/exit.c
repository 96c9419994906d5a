/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that ends without destroying its ids: the kernel's CM tells the peers when the process
 * has gone; here the process itself does, as long as it ends by exit(3). One that is killed tells
 * nobody.
 */
#include <time.h>

#include "conn.h"

/* The lock's holder may be a thread that a signal's handler interrupted, which called exit(3). */
#define WAIT_NS (100 * NSEC_PER_MSEC)

__attribute__((destructor)) static void exit_close_all(void)
{
	struct timespec until;

	if (!id_all)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)WAIT_NS;
	if ((u64)until.tv_nsec >= NSEC_PER_SEC) {
		until.tv_nsec -= NSEC_PER_SEC;
		until.tv_sec++;
	}
	cancel_hold();
	if (pthread_mutex_timedlock(&rdmacm_lock, &until)) {
		cancel_release();
		return;
	}
	for (struct rdmacm_id *id = id_all; id; id = id->all_next)
		conn_close(id);
	rdmacm_leave();
}
