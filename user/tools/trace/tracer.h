/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looking at one program of ours: a place among its tracers, leased, and a ring buffer that it
 * writes to (xroce/trace.h). Root takes the place itself, and has a ring of its own; whoever may
 * not is given both by the broker, for a process of its own. The program goes on as if nobody
 * looked, if this process is killed.
 */
#ifndef TRACE_TRACER_H
#define TRACE_TRACER_H

#include "../../attach/ask.h"
#include "../../attach/trace_slot.h"

struct ring_buffer;

struct tracer_want {
	u32 what;	/* XROCE_TRACE_* */
	u32 qpn;	/* 0: all */
	u32 bytes;	/* of each packet, at most */
	bool has_peer;
	struct gid peer;
	u32 ring_bytes;	/* a power of two, whole pages */
};

/*
 * Called for each record: r has size bytes, more than a struct xroce_record. It is gone when this
 * returns; a value below 0 ends tracer_read(), and the record counts as read.
 */
typedef int tracer_fn(void *arg, const struct xroce_record *r, u32 size);

struct tracer {
	struct tracer_want want;
	struct trace_slot place; /* root's own */
	struct asker *asker;	/* NULL: root's; not one once the trace has ended */
	u32 prog_id;
	int page_fd;		/* of the asked: struct xroce_trace, to be looked up */
	u32 number;		/* the place in it */
	u64 lost, lost_before;	/* what was said last, and first; */
	u64 lost_elsewhere;	/* in places that were ours before */
	int ring_fd;
	struct ring_buffer *ring;
	bool is_out; /* another has the place that was lost with the lease */
	tracer_fn *fn;
	void *arg;
};

/*
 * Begins. Returns 0; -ENOENT: no program of ours, of this version, has the number; -EBUSY: all
 * places are taken; -EPERM (needs CAP_SYS_ADMIN); -errno.
 */
int tracer_open(struct tracer *t, u32 prog_id, const struct tracer_want *want, tracer_fn *fn,
		void *arg);
/*
 * The same by the broker's leave: number is its client's. asker stays the caller's, and the
 * conversation must go on as long as the tracer is open. Also -EDQUOT: the user has all the rings
 * that it may have; what ask_trace() returns.
 */
int tracer_ask(struct tracer *t, struct asker *asker, u32 number, u32 prog_id,
	       const struct tracer_want *want, tracer_fn *fn, void *arg);
/*
 * Several times within XROCE_TRACE_LEASE. A lease that has run out is taken anew, as soon as there
 * is a place. Returns true if it has run out since the last call: what came then is not counted.
 */
bool tracer_renew(struct tracer *t);
/* All records that there are, until fn says otherwise. False: it did, and there may be more. */
bool tracer_read(struct tracer *t);
/* Packets and events that found no room, up to the last tracer_read() or tracer_stop(). */
u64 tracer_lost(const struct tracer *t);
/*
 * No more records are written, and the place is free; those records that there are can be read, and
 * tracer_lost() says how many are not among them.
 */
void tracer_stop(struct tracer *t);
void tracer_close(struct tracer *t);

#endif
