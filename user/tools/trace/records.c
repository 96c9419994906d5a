/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_FIRST 1024u

int records_put(struct records *s, struct traced *from, const struct xroce_record *head,
		const void *data, u32 bytes)
{
	const u32 size = (u32)sizeof(*head) + bytes;
	const u32 room = s->room ? 2 * s->room : RECORDS_FIRST;
	struct held_record *more = s->of;
	struct xroce_record *copy;

	if (s->num == s->room) {
		more = reallocarray(s->of, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		s->of = more;
		s->room = room;
	}
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, head, sizeof(*head));
	memcpy(copy->data, data, bytes);
	more[s->num++] = (struct held_record){ .time_ns = head->cqe.rx_time_ns,
					       .nth = s->count++,
					       .size = size,
					       .from = from,
					       .record = copy };
	return 0;
}

static int records_compare(const void *a, const void *b)
{
	const struct held_record *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->nth < y->nth ? -1 : 1;
}

u32 records_give(struct records *s, u64 until_ns, traced_fn *fn, void *arg)
{
	u32 n = 0;

	/* of is NULL before the first record */
	if (s->num)
		qsort(s->of, s->num, sizeof(*s->of), records_compare);
	for (; n < s->num && (s->of[n].time_ns < until_ns || until_ns == NSEC_NEVER); n++) {
		const struct held_record *h = &s->of[n];

		s->late += h->time_ns < s->last_ns;
		s->last_ns = max_u64(s->last_ns, h->time_ns);
		fn(arg, h->from, h->record, h->size);
		free(h->record);
	}
	s->num -= n;
	if (n && s->num)
		memmove(s->of, s->of + n, s->num * sizeof(*s->of));
	return n;
}

void records_free(struct records *s)
{
	for (u32 i = 0; i < s->num; i++)
		free(s->of[i].record);
	free(s->of);
	*s = (struct records){ 0 };
}
