/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel of the simulated machine: implements user/os/kernel.h in place of user/os/kernel.c.
 * Descriptors, sleeping, the clock (machine.c); AF_XDP sockets and their rings, made by libxdp's
 * functions (nic.c); maps, rings of records and the receiving XDP program (xdp.c). Locks and
 * threads replace the C library's (posix.c). The code under test is unchanged.
 *
 * Descriptors are small numbers from SIM_FD on; a name that is closed or of another kind ends the
 * run.
 */
#ifndef PORTSIM_MACHINE_H
#define PORTSIM_MACHINE_H

#include <poll.h>
#include <xroce/abi.h>

#include "scheduler.h"

#define SIM_FD 1000

enum fd_kind { FD_FREE, FD_EVENT, FD_EPOLL, FD_RING, FD_PACKETS, FD_XSK, FD_MAP, FD_MEMORY };

struct fd_event {
	u64 count;
};

/* ---- descriptors: machine.c ---- */

/* Returns a new descriptor for `object`, whose type is given by `kind`. */
int fd_open(enum fd_kind kind, void *object);
/* Returns the object of the descriptor. Any other kind ends the run. */
void *fd_object(int fd, enum fd_kind kind);
bool fd_is_open(int fd);
/* Marks the descriptor readable: its waiters are woken a little later. */
void fd_notify(int fd);
/* Checks that all but `left` descriptors are closed, and forgets them. */
void fd_end(u32 left);
u32 fd_count(void);

/* ppoll() fails with EINTR in one of 65536 / rate calls that block, in actors that take signals. */
struct machine_options {
	u32 eintr_rate;
	u64 wake_max_ns; /* from an event to the thread's running */
};
void machine_begin(const struct machine_options *o);
/* The running actor takes signals. */
void machine_takes_signals(void);
/* Of an actor that waits in ppoll(): what for. NULL: in something else. */
const struct pollfd *machine_waits_for(struct actor *a, u32 *n);

/* ---- ring buffers: xdp.c ---- */
#define RING_RECORDS (XROCE_RING_BYTES / 16)
/* A record is reserved, and readable from then on; it can be taken when it is whole. */
struct record_ring {
	int fd;
	u32 prod, cons;
	bool whole[RING_RECORDS];
	struct xroce_wakeup record[RING_RECORDS];
};

static inline bool ring_has_records(const struct record_ring *r)
{
	return r->prod != r->cons;
}

/* ---- sockets: nic.c ---- */
bool xsk_is_readable(const void *xsk);

/* ---- ring buffers for packets: shared.c ---- */
bool packets_are_readable(const void *ring);

#endif
