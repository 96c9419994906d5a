/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process told in one piece (struct xroce_tale), read record by record. It may have filled
 * it with anything: each record that is whole and of a kind that can be is given, and the first
 * that is not ends it. Pure.
 */
#ifndef CLI_TALE_H
#define CLI_TALE_H

#include <xroce/trace.h>

#include "../../engine/types.h"

struct trace_record {
	const u8 *bytes;
	u32 at, size;
};

void trace_record_begin(struct trace_record *t, const u8 *bytes, u32 size);
/* *data has told->size bytes of a packet; of an event there is none. False: that was all. */
bool trace_record_next(struct trace_record *t, struct xroce_told *told, const u8 **data);

#endif
