/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../../engine/packet.h"
#include "trace_record.h"

void trace_record_begin(struct trace_record *t, const u8 *bytes, u32 size)
{
	*t = (struct trace_record){ .bytes = bytes, .at = sizeof(struct xroce_tale), .size = size };
}

bool trace_record_next(struct trace_record *t, struct xroce_told *told, const u8 **data)
{
	const u32 at = t->at;
	u32 whole;

	if (at > t->size || t->size - at < sizeof(*told))
		return false;
	memcpy(told, t->bytes + at, sizeof(*told));
	whole = (u32)(sizeof(*told) + told->size + 7) & ~7u;
	t->at = t->size;
	if (whole > t->size - at || told->kind < XROCE_RECORD_SENT ||
	    told->kind > XROCE_RECORD_EVENT ||
	    (told->kind == XROCE_RECORD_EVENT) != !told->size || told->size > PACKET_FRAME_MAX)
		return false;
	t->at = at + whole;
	*data = t->bytes + at + sizeof(*told);
	return true;
}
