/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of several rings, given in the order of their times. One ring is read after the other, so
 * a record of the first may be older than one of the last that was read before it: records are held
 * for RECORDS_WINDOW_NS. Pure.
 */
#ifndef TRACE_RECORDS_H
#define TRACE_RECORDS_H

#include <xroce/trace.h>

#include "../../engine/types.h"

/* From the time that a record says to when it can be read; what takes longer comes late. */
#define RECORDS_WINDOW_NS (50 * NSEC_PER_MSEC)

struct traced;

struct held_record {
	u64 time_ns;
	u64 nth; /* of all: those of one time stay in their order */
	u32 size;
	struct traced *from;
	struct xroce_record *record;
};

struct records {
	struct held_record *of;
	u32 num, room;
	u64 count;   /* that there have been */
	u64 last_ns; /* of the last that was given */
	u64 late;    /* given after one of a later time */
};

/* r has size bytes of which no other copy changes; it is the caller's until this returns. */
typedef void traced_fn(void *arg, struct traced *from, struct xroce_record *r, u32 size);

/* Holds a copy of a record that is a header and bytes of data. Returns 0 or -ENOMEM. */
int records_put(struct records *s, struct traced *from, const struct xroce_record *head,
		const void *data, u32 bytes);
/* Calls fn for each that is older than until_ns (NSEC_NEVER: all). Returns how many there were. */
u32 records_give(struct records *s, u64 until_ns, traced_fn *fn, void *arg);
void records_free(struct records *s);

#endif
