/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "../engine/engine.h"
#include "../os/clock.h"
#include "../os/kernel.h"
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

/* Runs xroce_tell. If the records are lost, the next tale has their number. */
static void trace_tx_run(struct shard *s)
{
	struct trace_tx *t = s->telling;
	struct xroce_tale next = { 0 };
	int wanted;

	t->what.tale = t->tale;
	wanted = kernel_program_run(s->all->maps->tell_fd, &t->what, sizeof(t->what));
	if (wanted == -ENOMEM) {
		next.lost_packets = t->tale.lost_packets + t->tale.packets;
		next.lost_events = t->tale.lost_events + t->tale.events;
	} else if (wanted <= 0) {
		traced_clear(s->all->maps->engine, t->traced);
	}
	t->tale = next;
}

/* Sends a report to the broker, which reads the number of lost records from struct xroce_engine. */
static void trace_tx_send(struct shard *s)
{
	struct trace_tx *t = s->telling;
	struct xroce_engine *engine = s->all->maps->engine;
	int err;

	t->what.tale = t->tale;
	t->what.tale.time_ns = clock_now_ns();
	err = kernel_send(s->all->maps->tell_fd, &t->what.tale,
			  (u32)sizeof(t->what.tale) + t->what.tale.bytes);
	if (err && err != -EPIPE && err != -ECONNRESET) {
		atomic_fetch_add_explicit(shared_word(&engine->lost_packets),
					  t->tale.lost_packets + t->tale.packets,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(shared_word(&engine->lost_events),
					  t->tale.lost_events + t->tale.events,
					  memory_order_relaxed);
	}
	t->tale = (struct xroce_tale){ 0 };
}

static void trace_tx_flush(struct shard *s)
{
	const struct xroce_tale *tale = &s->telling->tale;

	if (!tale->packets && !tale->events)
		return;
	if (s->all->maps->tells_by_socket)
		trace_tx_send(s);
	else
		trace_tx_run(s);
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
