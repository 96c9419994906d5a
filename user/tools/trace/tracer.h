/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traces one xroce program: a leased slot among its tracers, and a ring buffer that the program
 * writes to (xroce/trace.h). Root takes a slot and makes a ring itself. Other users receive both
 * from the broker, for their own processes. If this process is killed, the program runs on as
 * without a tracer.
 */
#ifndef TRACE_TRACER_H
#define TRACE_TRACER_H

#include "../../attach/ask.h"
#include "../../attach/trace_slot.h"

struct ring_buffer;

struct tracer_want {
	u32 what;	/* XROCE_TRACE_* */
	u32 qpn;	/* 0: all */
	u32 bytes;	/* limit for each packet */
	bool has_peer;
	struct gid peer;
	u32 ring_bytes;	/* a power of two, whole pages */
};

/*
 * Called for each record: r has size bytes, more than a struct xroce_record, valid until the
 * return. A negative value ends tracer_read(); the record counts as read.
 */
typedef int tracer_fn(void *arg, const struct xroce_record *r, u32 size);

struct tracer {
	struct tracer_want want;
	struct trace_slot place; /* slot taken by root */
	struct asker *asker;	/* NULL: root's tracer, or a stopped one */
	u32 prog_id;
	int page_fd;		/* with a broker: map of struct xroce_trace */
	u32 number;		/* slot in the page */
	u64 lost, lost_before;	/* the slot's counter at the last and the first reading */
	u64 lost_elsewhere;	/* lost records in slots held earlier */
	int ring_fd;
	struct ring_buffer *ring;
	bool is_out; /* another tracer has the slot that was lost with the lease */
	tracer_fn *fn;
	void *arg;
};

/*
 * Begins as root. Returns 0; -ENOENT: no xroce program of this version has the ID; -EBUSY: all
 * slots are taken; -EPERM (needs CAP_SYS_ADMIN); -errno.
 */
int tracer_open(struct tracer *t, u32 prog_id, const struct tracer_want *want, tracer_fn *fn,
		void *arg);
/*
 * Begins through the broker for its client number. The caller keeps asker, which must stay
 * connected while the tracer is open. Returns as tracer_open(); -EDQUOT: the user has reached its
 * limit of rings; or as ask_trace().
 */
int tracer_ask(struct tracer *t, struct asker *asker, u32 number, u32 prog_id,
	       const struct tracer_want *want, tracer_fn *fn, void *arg);
/*
 * Renews the lease; due several times per XROCE_TRACE_LEASE. Takes an expired lease again as soon
 * as a slot is free. Returns true if it expired since the last call: losses then were not counted.
 */
bool tracer_renew(struct tracer *t);
/* Reads all records until fn returns a negative value. Returns false then, as more may be left. */
bool tracer_read(struct tracer *t);
/* Returns the packets and events lost for lack of room, at the last read or stop. */
u64 tracer_lost(const struct tracer *t);
/*
 * Stops the program's records and frees the slot. Records in the ring can still be read, and
 * tracer_lost() then has the final count.
 */
void tracer_stop(struct tracer *t);
void tracer_close(struct tracer *t);

#endif
