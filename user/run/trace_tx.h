/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a shard tells of itself to whoever looks (xroce/trace.h): the packets that it sends, by
 * whatever way they leave, and what its engine notes. Gathered for a batch, and put into the
 * tracers' rings by running xroce_tell, which says whether somebody is still there. Nobody looks:
 * nothing is allocated, and a batch costs a load. Under the shard's lock.
 */
#ifndef RUN_TRACE_TX_H
#define RUN_TRACE_TX_H

#include "shard.h"

struct trace_tx;

/* From here on s->telling is NULL, or what is to be told. */
void trace_tx_look(struct shard *s);
/* A packet that the engine has written; looped: to ourselves. */
void trace_tx_sent(struct shard *s, const u8 *frame, u32 len, bool looped);
/* All of it is shown. */
void trace_tx_all(struct shard *s);
/* The shard's end, or that of its lookers. */
void trace_tx_end(struct shard *s);

/* Somebody may look: XROCE_TRACED in it. Relaxed: a hint. */
static inline u32 trace_tx_traced(const struct shard *s)
{
	return atomic_load_explicit(shared_word(&s->all->maps->engine->traced),
				    memory_order_relaxed);
}

/* At the begin of a turn. */
static inline void trace_tx_begin(struct shard *s)
{
	if (unlikely(trace_tx_traced(s) & XROCE_TRACED || s->telling))
		trace_tx_look(s);
}

#endif
