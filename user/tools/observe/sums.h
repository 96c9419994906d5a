/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port's counters, summed over its engines, CPUs and receive queues, each with a name and a
 * meaning: one table for `xroce stat`, `xroce export` and `xroce explain`.
 */
#ifndef OBSERVE_SUMS_H
#define OBSERVE_SUMS_H

#include "observe.h"

struct sums {
	struct xroce_engine_stats engine;
	struct xroce_rx_stats rx;
	struct xroce_sock sock;
	struct xroce_drops xdp;	    /* dropped by the XDP program */
	struct xroce_drops refused; /* dropped by the engines */
};

struct sums_field {
	const char *name, *text;
	u32 offset;	/* of a u64 in struct sums */
	bool is_drop;	/* offset is in struct xroce_drops; sums_get() adds xdp and refused */
	bool is_gauge;	/* not a counter: the value may fall */
};

extern const struct sums_field sums_fields[];
extern const u32 sums_num_fields;

/* Reads the sums of an open port. Counters that its maps lack stay 0. */
void sums_read(const struct observed *p, struct sums *s);
u64 sums_get(const struct sums *s, const struct sums_field *f);
void sums_add(struct sums *to, const struct sums *s);
/* Returns all dropped frames, whatever the reason. */
u64 sums_dropped(const struct sums *s);
/* Returns frames lost as a ring or socket was full. sums_dropped() has xdp.ring_full too. */
u64 sums_lost(const struct sums *s);

#endif
