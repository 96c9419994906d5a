/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that ends without destroying its ids: the kernel's CM tells the peers when the process
 * has gone; here the process itself does, as long as it ends by exit(3). One that is killed tells
 * nobody.
 */
#include "../os/clock.h"
#include "../os/kernel.h"
#include "conn.h"

/* The lock's holder may be a thread that a signal's handler interrupted, which called exit(3). */
#define WAIT_NS (100 * NSEC_PER_MSEC)

__attribute__((destructor)) static void exit_close_all(void)
{
	u64 until_ns, now_ns;

	if (!id_all)
		return;
	now_ns = clock_now_ns();
	until_ns = now_ns + WAIT_NS;
	cancel_hold();
	/* tried again and again: pthread_mutex_timedlock() goes by a clock that may be set back */
	while (pthread_mutex_trylock(&rdmacm_lock)) {
		if (now_ns >= until_ns) {
			cancel_release();
			return;
		}
		kernel_await(NULL, 0, now_ns + NSEC_PER_MSEC);
		now_ns = clock_now_ns();
	}
	for (struct rdmacm_id *id = id_all; id; id = id->all_next)
		conn_close(id);
	rdmacm_leave();
}
