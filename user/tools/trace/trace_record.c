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

/* ---- packets ---- */

void packets_begin(struct packets *p, struct xroce_record *r, u32 size)
{
	struct segments *s = &p->segments;
	bool is_super = r->cqe.flags & XROCE_RX_GSO;

	p->record = r;
	p->have = min_u32(size - (u32)sizeof(*r), r->len);
	p->num = 1;
	p->next = 0;
	p->is_cut_off = is_super && p->have < r->len;
	if (!is_super || p->is_cut_off)
		return;
	memset(s->id, 0, sizeof(s->id));
	/* no headroom: segments are copied and r->data stays unchanged */
	s->part[0] = (struct segment_part){ .data = r->data, .len = p->have };
	s->parts = 1;
	if (segments_begin(s, r->cqe.l3_offset))
		p->num = segments_left(s);
}

bool packets_next(struct packets *p, struct one_packet *out)
{
	struct rx_frame frame = { .data = p->record->data, .len = p->have };

	if (p->next == p->num || (p->num > 1 && !segments_next(&p->segments, &frame)))
		return false;
	*out = (struct one_packet){ .data = frame.data, .have = frame.len,
				    .len = p->num > 1 ? frame.len : p->record->len,
				    .nth = ++p->next };
	return true;
}
