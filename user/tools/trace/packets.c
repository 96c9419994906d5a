/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "packets.h"

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
	/* no room in front: each is copied, and stays what it was */
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
