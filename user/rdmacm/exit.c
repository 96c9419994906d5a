/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that exits without destroying its ids: the kernel's CM notifies the peers after the
 * process has exited. Here the process itself notifies them, if it exits by exit(3). The peers of a
 * killed process are not notified.
 */
#include "../os/clock.h"
#include "../os/kernel.h"

#include "channel.h"
#include "cm_device.h"
#include "conn.h"
#include "id.h"
#include "interfaces.h"
#include "loop.h"

/* A signal handler that interrupted the lock's holder may have called exit(3). */
#define WAIT_NS (100 * NSEC_PER_MSEC)

__attribute__((destructor)) static void exit_close_all(void)
{
	u64 until_ns, now_ns;

	if (!id_all)
		return;
	now_ns = clock_now_ns();
	until_ns = now_ns + WAIT_NS;
	cancel_hold();
	/* polls: pthread_mutex_timedlock() uses a clock that may be set back */
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

/*
 * fork(): the lock is held across it, so the guarded data is consistent in the child. All objects
 * in the child belong to an older generation: no call on them reaches the core, a device or the
 * parent. Devices are forgotten, so that the child opens its own.
 */

pthread_mutex_t rdmacm_lock = PTHREAD_MUTEX_INITIALIZER;
u32 rdmacm_generation;

static void fork_child(void)
{
	rdmacm_generation++;
	id_all = NULL;
	devices_after_fork();
	loop_after_fork();
	work_after_fork();
	common_fd_after_fork();
	interfaces_after_fork();
	pthread_mutex_init(&rdmacm_lock, NULL);
	cancel_release();
}

static void fork_before(void)
{
	rdmacm_enter();
	interfaces_before_fork();
}

static void fork_parent(void)
{
	interfaces_after_fork();
	rdmacm_leave();
}

/* libibverbs' handlers were registered earlier, so its prepare handler runs after this one. */
__attribute__((constructor)) static void fork_register(void)
{
	pthread_atfork(fork_before, fork_parent, fork_child);
}
