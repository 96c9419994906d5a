/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports a shard's packets and events to observers (xroce/trace.h): packets sent by any way, and
 * notes of its engine. They are collected for a batch, and put into the observers' rings by running
 * xroce_tell, which returns whether an observer is left. Without observers nothing is allocated,
 * and a batch costs one load. Under the shard's lock.
 */
#ifndef RUN_TRACE_TX_H
#define RUN_TRACE_TX_H

#include "shard.h"

struct trace_tx;

/* Updates s->telling: NULL, or the state for reporting. */
void trace_tx_look(struct shard *s);
/* Reports a packet that the engine has written; looped: it returns to this process. */
void trace_tx_sent(struct shard *s, const u8 *frame, u32 len, bool looped);
/* Passes everything collected to the observers. */
void trace_tx_all(struct shard *s);
/* Ends reporting, with the shard or its observers. */
void trace_tx_end(struct shard *s);

/* Returns flags: XROCE_TRACED is set if there may be an observer. Relaxed: a hint. */
static inline u32 trace_tx_traced(const struct shard *s)
{
	return atomic_load_explicit(shared_word(&s->all->maps->engine->traced),
				    memory_order_relaxed);
}

/* Called at the start of a turn. */
static inline void trace_tx_begin(struct shard *s)
{
	if (unlikely(trace_tx_traced(s) & XROCE_TRACED || s->telling))
		trace_tx_look(s);
}

#endif
