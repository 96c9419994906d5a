/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "../os/kernel.h"
#include "../engine/engine.h"
#include "shard.h"

struct trace_tx {
	struct engine_notes notes;
	u32 traced; /* of struct xroce_engine, at the start of the turn */
	/* argument of the program, which changes all but `told` */
	struct xroce_telling what;
	struct xroce_tale tale;
};

_Static_assert(sizeof(struct xroce_told) + PACKET_FRAME_MAX + 8 <= XROCE_TOLD_BYTES,
	       "a packet fits");

void trace_tx_look(struct shard *s)
{
	const u32 traced = trace_tx_traced(s);

	if (!(traced & XROCE_TRACED) || s->all->maps->tell_fd < 0) {
		trace_tx_end(s);
		return;
	}
	if (!s->telling) {
		s->telling = calloc(1, sizeof(*s->telling));
		if (!s->telling)
			return;
		engine_set_notes(s->engine, &s->telling->notes);
	}
	s->telling->traced = traced;
	/* notes since the last turn: state changes by the application */
	trace_tx_all(s);
}

void trace_tx_end(struct shard *s)
{
	if (!s->telling)
		return;
	engine_set_notes(s->engine, NULL);
	free(s->telling);
	s->telling = NULL;
}

/* Clears XROCE_TRACED, as no observer is left; if it has changed, the next turn sees it. */
static void trace_tx_leave(struct shard *s)
{
	u32 traced = s->telling->traced;

	atomic_compare_exchange_strong_explicit(shared_word(&s->all->maps->engine->traced),
						&traced, traced & ~XROCE_TRACED,
						memory_order_relaxed, memory_order_relaxed);
}

/*
 * Passes the collected records to the observers. If they are lost, the next tale reports their
 * number to the program, which counts them.
 */
static void trace_tx_flush(struct shard *s)
{
	struct trace_tx *t = s->telling;
	struct xroce_tale *tale = &t->tale, next = { 0 };
	int wanted;

	if (!tale->packets && !tale->events)
		return;
	t->what.tale = *tale;
	wanted = kernel_program_run(s->all->maps->tell_fd, &t->what, sizeof(t->what));
	if (wanted == -ENOMEM) {
		next.lost_packets = tale->lost_packets + tale->packets;
		next.lost_events = tale->lost_events + tale->events;
	} else if (wanted <= 0) {
		trace_tx_leave(s);
	}
	*tale = next;
}

static void trace_tx_add(struct shard *s, const struct xroce_told *told, const u8 *data)
{
	struct trace_tx *t = s->telling;
	const u32 bytes = (sizeof(*told) + told->size + 7) & ~7u;
	u8 *at;

	if (t->tale.bytes + bytes > sizeof(t->what.told))
		trace_tx_flush(s);
	at = t->what.told + t->tale.bytes;
	memcpy(at, told, sizeof(*told));
	if (told->size)
		memcpy(at + sizeof(*told), data, told->size);
	t->tale.bytes += bytes;
	if (told->kind == XROCE_RECORD_EVENT)
		t->tale.events++;
	else
		t->tale.packets++;
}

static void trace_tx_notes(struct shard *s)
{
	struct engine_notes *n = &s->telling->notes;

	for (u32 i = 0; i < n->num; i++) {
		const struct engine_note *note = &n->note[i];

		trace_tx_add(s,
			     &(struct xroce_told){ .qpn = note->qpn,
						   .peer_qpn = note->peer_qpn,
						   .kind = XROCE_RECORD_EVENT,
						   .event = (u8)note->event,
						   .value = note->value,
						   .more = note->more },
			     NULL);
	}
	s->telling->tale.lost_events += n->lost;
	n->num = n->lost = 0;
}

void trace_tx_sent(struct shard *s, const u8 *frame, u32 len, bool looped)
{
	struct engine_notes *n = &s->telling->notes;

	/* notes about the packet come first */
	trace_tx_notes(s);
	trace_tx_add(
		s,
		&(struct xroce_told){ .qpn = n->output_qpn,
				      .peer_qpn = n->output_peer_qpn,
				      .size = (u16)len,
				      .kind = looped ? XROCE_RECORD_LOOPED : XROCE_RECORD_SENT },
		frame);
	n->output_qpn = n->output_peer_qpn = 0;
}

void trace_tx_all(struct shard *s)
{
	trace_tx_notes(s);
	trace_tx_flush(s);
}
