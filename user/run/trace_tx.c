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
	/* argument of the program, which changes all but `entries` */
	struct xroce_trace_report report;
	struct xroce_trace_record record;
};

_Static_assert(sizeof(struct xroce_trace_entry) + PACKET_FRAME_MAX + 8 <= XROCE_TRACE_ENTRIES_BYTES,
	       "a packet fits");

void trace_tx_look(struct shard *s)
{
	const u32 traced = trace_tx_traced(s);

	if (!(traced & XROCE_TRACED) || s->all->maps->trace_fd < 0) {
		trace_tx_end(s);
		return;
	}
	if (!s->trace_tx) {
		s->trace_tx = calloc(1, sizeof(*s->trace_tx));
		if (!s->trace_tx)
			return;
		engine_set_notes(s->engine, &s->trace_tx->notes);
	}
	s->trace_tx->traced = traced;
	/* notes since the last turn: state changes by the application */
	trace_tx_all(s);
}

void trace_tx_end(struct shard *s)
{
	if (!s->trace_tx)
		return;
	engine_set_notes(s->engine, NULL);
	free(s->trace_tx);
	s->trace_tx = NULL;
}

/* Runs xroce_trace_tx. If the records are lost, the next record has their number. */
static void trace_tx_run(struct shard *s)
{
	struct trace_tx *t = s->trace_tx;
	struct xroce_trace_record next = { 0 };
	int wanted;

	t->report.record = t->record;
	wanted = kernel_program_run(s->all->maps->trace_fd, &t->report, sizeof(t->report));
	if (wanted == -ENOMEM) {
		next.lost_packets = t->record.lost_packets + t->record.packets;
		next.lost_events = t->record.lost_events + t->record.events;
	} else if (wanted <= 0) {
		traced_clear(s->all->maps->engine, t->traced);
	}
	t->record = next;
}

/* Sends a report to the broker, which reads the number of lost records from struct xroce_engine. */
static void trace_tx_send(struct shard *s)
{
	struct trace_tx *t = s->trace_tx;
	struct xroce_engine *engine = s->all->maps->engine;
	int err;

	t->report.record = t->record;
	t->report.record.time_ns = clock_now_ns();
	err = kernel_send(s->all->maps->trace_fd, &t->report.record,
			  (u32)sizeof(t->report.record) + t->report.record.bytes);
	if (err && err != -EPIPE && err != -ECONNRESET) {
		atomic_fetch_add_explicit(shared_word(&engine->lost_packets),
					  t->record.lost_packets + t->record.packets,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(shared_word(&engine->lost_events),
					  t->record.lost_events + t->record.events,
					  memory_order_relaxed);
	}
	t->record = (struct xroce_trace_record){ 0 };
}

static void trace_tx_flush(struct shard *s)
{
	const struct xroce_trace_record *record = &s->trace_tx->record;

	if (!record->packets && !record->events)
		return;
	if (s->all->maps->reports_by_socket)
		trace_tx_send(s);
	else
		trace_tx_run(s);
}

static void trace_tx_add(struct shard *s, const struct xroce_trace_entry *entry, const u8 *data)
{
	struct trace_tx *t = s->trace_tx;
	const u32 bytes = (sizeof(*entry) + entry->size + 7) & ~7u;
	u8 *at;

	if (t->record.bytes + bytes > sizeof(t->report.entries))
		trace_tx_flush(s);
	at = t->report.entries + t->record.bytes;
	memcpy(at, entry, sizeof(*entry));
	if (entry->size)
		memcpy(at + sizeof(*entry), data, entry->size);
	t->record.bytes += bytes;
	if (entry->kind == XROCE_RECORD_EVENT)
		t->record.events++;
	else
		t->record.packets++;
}

static void trace_tx_notes(struct shard *s)
{
	struct engine_notes *n = &s->trace_tx->notes;

	for (u32 i = 0; i < n->num; i++) {
		const struct engine_note *note = &n->note[i];

		trace_tx_add(s,
			     &(struct xroce_trace_entry){ .qpn = note->qpn,
							  .peer_qpn = note->peer_qpn,
							  .kind = XROCE_RECORD_EVENT,
							  .event = (u8)note->event,
							  .value = note->value,
							  .more = note->more },
			     NULL);
	}
	s->trace_tx->record.lost_events += n->lost;
	n->num = n->lost = 0;
}

void trace_tx_sent(struct shard *s, const u8 *frame, u32 len, bool looped)
{
	struct engine_notes *n = &s->trace_tx->notes;

	/* notes about the packet come first */
	trace_tx_notes(s);
	trace_tx_add(s,
		     &(struct xroce_trace_entry){ .qpn = n->output_qpn,
						  .peer_qpn = n->output_peer_qpn,
						  .size = (u16)len,
						  .kind = looped ? XROCE_RECORD_LOOPED :
								   XROCE_RECORD_SENT },
		     frame);
	n->output_qpn = n->output_peer_qpn = 0;
}

void trace_tx_all(struct shard *s)
{
	trace_tx_notes(s);
	trace_tx_flush(s);
}
