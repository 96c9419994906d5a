/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "../base/kernel.h"
#include "../transport/note.h"
#include "tell.h"

struct telling {
	struct engine_notes notes;
	u64 now_ns; /* of the turn */
	u32 used, records;
	/* struct xroce_tale, and records of struct xroce_told */
	u8 bytes[XROCE_TOLD_BYTES] __attribute__((aligned(8)));
};

_Static_assert(sizeof(struct xroce_tale) + sizeof(struct xroce_told) + PACKET_FRAME_MAX + 8 <=
		       XROCE_TOLD_BYTES,
	       "a packet fits");

/*
 * What those want who are still there. A tracer's place is memory that XDP and it write as well:
 * each word is read once, and a wrong one has us tell too much or nothing.
 */
static u32 tell_wanted(struct xroce_trace *t, u64 now_ns)
{
	const u32 listening =
		atomic_load_explicit(shared_word(&t->listening), memory_order_relaxed);
	u32 what = 0;

	for (u32 i = 0; i < XROCE_TRACERS; i++) {
		struct xroce_tracer *p = &t->tracer[i];

		if (!(listening & 1u << i))
			continue;
		/* relaxed: a hint; as XDP does, trace_is_leased() in bpf/trace.h */
		if (atomic_load_explicit(shared_word(&p->until_ns), memory_order_relaxed) > now_ns)
			what |= atomic_load_explicit(shared_word(&p->what), memory_order_relaxed);
		else
			atomic_fetch_and_explicit(shared_word(&t->listening), ~(1u << i),
						  memory_order_relaxed);
	}
	return what;
}

void tell_look(struct shard *s, u64 now_ns)
{
	const bool wanted = s->all->maps->tell_fd >= 0 &&
			    tell_wanted(s->all->maps->trace, now_ns) &
				    (XROCE_TRACE_SENT | XROCE_TRACE_EVENTS);

	if (!wanted) {
		tell_end(s);
		return;
	}
	if (!s->telling) {
		s->telling = calloc(1, sizeof(*s->telling));
		if (!s->telling)
			return;
		s->telling->used = sizeof(struct xroce_tale);
		engine_set_notes(s->engine, &s->telling->notes);
	}
	s->telling->now_ns = now_ns;
	/* what has been noted since the last turn: states that the application has changed */
	tell_all(s);
}

void tell_end(struct shard *s)
{
	if (!s->telling)
		return;
	engine_set_notes(s->engine, NULL);
	free(s->telling);
	s->telling = NULL;
}

/* It is shown, or nobody is there any more: what is lost the program counts. */
static void tell_flush(struct shard *s)
{
	struct telling *t = s->telling;
	const struct xroce_tale tale = { .records = t->records };

	if (!t->records)
		return;
	memcpy(t->bytes, &tale, sizeof(tale));
	kernel_program_run(s->all->maps->tell_fd, t->bytes, t->used);
	t->used = sizeof(tale);
	t->records = 0;
}

static void tell_add(struct shard *s, const struct xroce_told *told, const u8 *data)
{
	struct telling *t = s->telling;
	const u32 bytes = (sizeof(*told) + told->size + 7) & ~7u;

	if (t->used + bytes > sizeof(t->bytes))
		tell_flush(s);
	memcpy(t->bytes + t->used, told, sizeof(*told));
	if (told->size)
		memcpy(t->bytes + t->used + sizeof(*told), data, told->size);
	t->used += bytes;
	t->records++;
}

static void tell_notes(struct shard *s)
{
	struct engine_notes *n = &s->telling->notes;

	for (u32 i = 0; i < n->num; i++) {
		const struct engine_note *note = &n->note[i];

		tell_add(s,
			 &(struct xroce_told){ .time_ns = s->telling->now_ns,
					       .qpn = note->qpn,
					       .peer_qpn = note->peer_qpn,
					       .kind = XROCE_RECORD_EVENT,
					       .event = (u8)note->event,
					       .value = note->value,
					       .more = note->more },
			 NULL);
	}
	n->num = 0;
}

void tell_sent(struct shard *s, const u8 *frame, u32 len, bool looped)
{
	struct engine_notes *n = &s->telling->notes;

	/* what was noted of it comes first */
	tell_notes(s);
	tell_add(s,
		 &(struct xroce_told){ .time_ns = s->telling->now_ns,
				       .qpn = n->output_qpn,
				       .peer_qpn = n->output_peer_qpn,
				       .size = (u16)len,
				       .kind = looped ? XROCE_RECORD_LOOPED : XROCE_RECORD_SENT },
		 frame);
	n->output_qpn = n->output_peer_qpn = 0;
}

void tell_all(struct shard *s)
{
	tell_notes(s);
	tell_flush(s);
}
