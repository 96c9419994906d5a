/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fork(): the lock is held across it, so what it guards is whole in the child. There everything
 * that was made is of an older generation: no call on it reaches the core, a device or the parent,
 * and its devices are forgotten, so that the child opens its own.
 */
#include "common_fd.h"
#include "cm_device.h"
#include "id.h"
#include "interfaces.h"
#include "loop.h"

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

/* libibverbs' handlers were registered before: those of prepare run after these. */
__attribute__((constructor)) static void fork_register(void)
{
	pthread_atfork(fork_before, fork_parent, fork_child);
}
