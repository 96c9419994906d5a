/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of several rings, merged by time. The rings are read one after the other, so a record may
 * be older than one that was read earlier. Records are therefore held for RECORDS_WINDOW_NS. Pure.
 */
#ifndef TRACE_RECORDS_H
#define TRACE_RECORDS_H

#include <xroce/trace.h>

#include "../../engine/types.h"

/* Longest time from a record's timestamp until it is readable; slower records come out of order. */
#define RECORDS_WINDOW_NS (50 * NSEC_PER_MSEC)

struct traced;

struct held_record {
	u64 time_ns;
	u64 nth; /* sequence number over all rings: keeps the order of equal times */
	u32 size;
	struct traced *from;
	struct xroce_record *record;
};

struct records {
	struct held_record *of;
	u32 num, room;
	u64 count;   /* of all records so far */
	u64 last_ns; /* of the last record delivered */
	u64 late;    /* records delivered after one with a later time */
};

/* r has size bytes in a private copy, valid until the function returns. */
typedef void traced_fn(void *arg, struct traced *from, struct xroce_record *r, u32 size);

/* Holds a copy of a record: its header and bytes of data. Returns 0 or -ENOMEM. */
int records_put(struct records *s, struct traced *from, const struct xroce_record *head,
		const void *data, u32 bytes);
/* Calls fn for each record older than until_ns (NSEC_NEVER: all). Returns their number. */
u32 records_give(struct records *s, u64 until_ns, traced_fn *fn, void *arg);
void records_free(struct records *s);

#endif
