/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process told in one piece (struct xroce_tale), read record by record. It may have filled
 * it with anything: each record that is whole and of a kind that can be is given, and the first
 * that is not ends it. Pure.
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
/* *data has told->size bytes of a packet; of an event there is none. False: that was all. */
bool trace_record_next(struct trace_record *t, struct xroce_told *told, const u8 **data);

/*
 * The packets of a record, each as it would be on the wire: a super-packet, which nothing has cut
 * yet, is cut.
 */

struct packets {
	struct xroce_record *record;
	u32 have;	/* bytes of it */
	u32 num;	/* packets in it; 1 if it is no super-packet, or not all of it is there */
	u32 next;
	bool is_cut_off; /* a super-packet that cannot be cut, as its end is not there */
	struct segments segments;
};

struct one_packet {
	const u8 *data;
	u32 have;	/* bytes of data, */
	u32 len;	/* and of the packet */
	u32 nth;	/* of num */
};

/* r has size bytes, is the caller's, and stays until the last packet has been taken. */
void packets_begin(struct packets *p, struct xroce_record *r, u32 size);
/* False: there are no more. The packet is gone with the next call. */
bool packets_next(struct packets *p, struct one_packet *out);

#endif
