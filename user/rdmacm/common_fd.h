/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The descriptor that event channels of synchronous ids share once COMMON_FD_PART of the process's
 * descriptors are such channels' own: readable while any of the channels has an event. All under
 * rdmacm_lock, but common_fd_wait().
 */
#ifndef RDMACM_COMMON_FD_H
#define RDMACM_COMMON_FD_H

#include "rdmacm.h"

struct rdmacm_channel;

#define COMMON_FD_PART 16 /* of RLIMIT_NOFILE */

/* The descriptor, for one channel more; or -errno. */
int common_fd_get(void);
/* One channel less. */
void common_fd_put(struct rdmacm_channel *ch);
/* An event of the channel: its waiters wake. */
void common_fd_raise(const struct rdmacm_channel *ch);
/* n events of a channel have been taken. */
void common_fd_lower(u32 n);
/*
 * Sleeps until the channel has an event. Returns 0 or -EINTR. Never returns once the channel has
 * been destroyed. The caller has a hold (cancel.h); with a single one its thread may be cancelled.
 */
int common_fd_wait(struct rdmacm_channel *ch);
void common_fd_after_fork(void);

#endif
