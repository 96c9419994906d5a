/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A tracer's slot at one of our programs (xroce/trace.h): found by the program's number
 * or its maps, taken, leased, released. `xroce capture` and `xroce trace` use slots as root; a
 * broker uses them for users.
 *
 * The traced process may be able to write to the memory: a value read from there is only a number,
 * and never a bound.
 */
#ifndef BROKER_TRACE_SLOT_H
#define BROKER_TRACE_SLOT_H

#include <xroce/trace.h>

#include "../host/client.h"
#include "../os/ask.h"

/* The slots for users, through a broker; the others are for root. */
#define TRACE_SLOT_USERS (XROCE_TRACERS / 2)

/*
 * Descriptors of the maps by which a program is traced; -1: none. With UDP sockets they are files
 * of the broker (host/client.h), without rings_fd.
 */
struct trace_slot_maps {
	int trace_fd, engine_fd, rings_fd;
	int page_fd; /* trace_fd read-only: for a tracer of another user */
};

#define TRACE_SLOT_MAPS_NONE                                                                       \
	{                                                                                          \
		-1, -1, -1, -1                                                                     \
	}

struct trace_slot {
	struct xroce_trace *trace;   /* NULL: not found */
	struct xroce_engine *engine; /* of the traced process: has its hint, `traced` */
	int rings_fd;
	/* with UDP sockets: the client's table, and the tracer's ring for it; else NULL */
	struct host_ring **rings, *ring;
	u32 number;	/* XROCE_TRACERS: no slot is taken */
	u32 owner;	/* the slot's owner field while it is ours */
	u64 lost_before;
};

extern const struct trace_slot trace_slot_none;

/*
 * Finds the maps by the program's number, which takes CAP_SYS_ADMIN. Returns 0; -ENOENT: no program
 * of ours and of this version has the number; -EPERM; -errno.
 */
int trace_slot_find(struct trace_slot *p, u32 prog_id);
/* Uses these maps, which stay the caller's and may be closed at once. Returns as above. */
int trace_slot_use(struct trace_slot *p, const struct trace_slot_maps *maps);
/*
 * The same for a client of a broker with UDP sockets, whose table `rings` must stay until
 * trace_slot_stop(), and for a ring that must stay as long as the slot.
 */
int trace_slot_use_host(struct trace_slot *p, const struct trace_slot_maps *maps,
			struct host_ring **rings, struct host_ring *ring);
void trace_slot_maps_close(struct trace_slot_maps *maps);
/*
 * Takes a free slot, or one whose lease ended XROCE_TRACE_LEASE ago. owner is the caller's alone.
 * Root gets the last slots first, users the first TRACE_SLOT_USERS. Returns 0 or -EBUSY.
 */
int trace_slot_take(struct trace_slot *p, u32 owner, bool for_user, u64 lease_ns);
/*
 * Starts records to the ring of ring_fd, or with UDP sockets to the slot's. Waits as
 * trace_slot_leave() does. Returns 0 or -errno.
 */
int trace_slot_begin(struct trace_slot *p, const struct ask_trace *want, int ring_fd, u64 lease_ns);
/* Renews the lease. Returns false if it had ended: the slot may be ours, but gets no records. */
bool trace_slot_renew(struct trace_slot *p, u64 lease_ns);
bool trace_slot_is_ours(const struct trace_slot *p);
/* Returns the packets and events lost since the slot was taken; 0 if it is not ours. */
u64 trace_slot_lost(const struct trace_slot *p);
/* Stops the records. */
void trace_slot_stop(struct trace_slot *p);
/*
 * Stops the records and frees the slot, if it is ours. Sets *p to trace_slot_none. Waits until no
 * CPU uses the ring. Returns trace_slot_lost() at the end.
 */
u64 trace_slot_leave(struct trace_slot *p);

/* Makes a ring buffer; bytes is a power of two and whole pages. Returns a descriptor or -errno. */
int trace_slot_make_ring(u32 bytes);
#endif
