/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads a batch of records from a process (struct xroce_tale). Its content is not trusted: records
 * that are whole and of a valid kind are returned, and the first other record ends the batch. Pure.
 */
#ifndef TRACE_RECORD_H
#define TRACE_RECORD_H

#include <xroce/trace.h>

#include "../../engine/gso.h"
#include "../../engine/types.h"

struct trace_record {
	const u8 *bytes;
	u32 at, size;
};

void trace_record_begin(struct trace_record *t, const u8 *bytes, u32 size);
/* Sets *data to told->size bytes of a packet; an event has none. Returns false at the end. */
bool trace_record_next(struct trace_record *t, struct xroce_told *told, const u8 **data);

/*
 * Splits a record into packets as on the wire: a super-packet, not yet segmented, is segmented
 * here.
 */

struct packets {
	struct xroce_record *record;
	u32 have;	/* bytes of the record's packet data */
	u32 num;	/* packets in it; 1 for a single packet or an incomplete super-packet */
	u32 next;
	bool is_cut_off; /* a super-packet that is truncated and cannot be segmented */
	struct segments segments;
};

struct one_packet {
	const u8 *data;
	u32 have;	/* bytes of data */
	u32 len;	/* bytes of the packet */
	u32 nth;	/* index from 1 to num */
};

/* r has size bytes; the caller keeps it unchanged until the last packet. */
void packets_begin(struct packets *p, struct xroce_record *r, u32 size);
/* Returns false after the last packet. *out is valid until the next call. */
bool packets_next(struct packets *p, struct one_packet *out);

#endif
