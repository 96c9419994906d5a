/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A place among those that look at one program of ours (xroce/trace.h): found by the program's
 * number or by its maps, taken, leased, given back. `xroce capture` and `xroce trace` have it as
 * root, and a broker has it for a user's.
 *
 * The memory may be the traced process's own, which then writes into it what it likes: whatever is
 * read from it is a number, and bounds nothing.
 */
#ifndef ATTACH_TRACE_SLOT_H
#define ATTACH_TRACE_SLOT_H

#include <xroce/trace.h>

#include "../os/ask.h"

/* What users get through a broker; the rest is root's. */
#define TRACE_SLOT_USERS (XROCE_TRACERS / 2)

/* The maps by which a program is traced: descriptors, -1: none. */
struct trace_slot_maps {
	int trace_fd, engine_fd, rings_fd;
	int page_fd; /* of the first, to be read: for a tracer that is another user's */
};

#define TRACE_SLOT_MAPS_NONE                                                                       \
	{                                                                                          \
		-1, -1, -1, -1                                                                     \
	}

struct trace_slot {
	struct xroce_trace *trace;   /* NULL: not found */
	struct xroce_engine *engine; /* of the traced process: its hint */
	int rings_fd;
	u32 number;	/* XROCE_TRACERS: none is taken */
	u32 owner;	/* what it has in it while it is ours */
	u64 lost_before;
};

extern const struct trace_slot place_none;

/*
 * Finds the maps by the number of the program, which takes CAP_SYS_ADMIN. Returns 0; -ENOENT: no
 * program of ours, of this version, has the number; -EPERM; -errno.
 */
int trace_slot_find(struct trace_slot *p, u32 prog_id);
/* Uses these maps, which stay the caller's and may be closed before the place is left. As above. */
int trace_slot_use(struct trace_slot *p, const struct trace_slot_maps *maps);
void trace_slot_maps_close(struct trace_slot_maps *maps);
/*
 * A free one, or one whose tracer has been gone for as long as a lease; owner is of nobody else's.
 * Root takes the last ones first, users have the first TRACE_SLOT_USERS. Returns 0 or -EBUSY.
 */
int trace_slot_take(struct trace_slot *p, u32 owner, bool for_user, u64 lease_ns);
/* From here on records come to the ring. Waits as trace_slot_leave(). Returns 0 or -errno. */
int trace_slot_begin(struct trace_slot *p, const struct ask_trace *want, int ring_fd, u64 lease_ns);
/* False: the lease had passed. The place may be ours still, and is not used. */
bool trace_slot_renew(struct trace_slot *p, u64 lease_ns);
bool trace_slot_is_ours(const struct trace_slot *p);
/* Packets and events that found no room, since it was taken; 0 if it is not ours. */
u64 trace_slot_lost(const struct trace_slot *p);
/* No more records come. */
void trace_slot_stop(struct trace_slot *p);
/*
 * And the place is free, if it was ours; *p is place_none. Waits until no CPU uses the ring any
 * more. Returns what trace_slot_lost() says then.
 */
u64 trace_slot_leave(struct trace_slot *p);

/* A ring buffer of so many bytes, a power of two and whole pages. A descriptor or -errno. */
int trace_slot_make_ring(u32 bytes);
#endif
