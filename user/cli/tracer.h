/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looking at one program of ours: a place among its tracers, leased, and a ring buffer of our own
 * that it writes to (xroce/trace.h). The program goes on as if nobody looked, if this process is
 * killed.
 */
#ifndef CLI_TRACER_H
#define CLI_TRACER_H

#include <xroce/trace.h>

#include "../transport/types.h"

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
	struct xroce_trace *trace; /* shared with XDP and with the traced */
	struct tracer_want want;
	int places_fd, ring_fd;
	struct ring_buffer *ring;
	u32 place;
	u64 lost_before; /* what the place's counter said when we took it */
	u64 interrupted; /* times that the lease ran out: what came then is not counted */
	tracer_fn *fn;
	void *arg;
};

/*
 * Begins. Returns 0; -ENOENT: no program of ours, of this version, has the number; -EBUSY: all
 * places are taken; -EPERM (needs CAP_SYS_ADMIN); -errno.
 */
int tracer_open(struct tracer *t, u32 prog_id, const struct tracer_want *want, tracer_fn *fn,
		void *arg);
/* Several times within XROCE_TRACE_LEASE. A lease that has run out is taken anew. */
void tracer_renew(struct tracer *t);
/* All records that there are, until fn says otherwise. */
void tracer_read(struct tracer *t);
/* Records that found no room, so far. */
u64 tracer_lost(const struct tracer *t);
/* No more records are written; those that there are can be read. */
void tracer_stop(struct tracer *t);
void tracer_close(struct tracer *t);

#endif
