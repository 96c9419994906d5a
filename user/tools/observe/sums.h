/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port's counters, added up over its engines, CPUs and receive queues, with a name and a meaning
 * each: one table for `xroce stat`, `xroce export` and `xroce explain`.
 */
#ifndef OBSERVE_SUMS_H
#define OBSERVE_SUMS_H

#include "observe.h"

struct sums {
	struct xroce_engine_stats engine;
	struct xroce_rx_stats rx;
	struct xroce_sock sock;
	struct xroce_drops xdp;	    /* dropped by the XDP program, */
	struct xroce_drops refused; /* and by the engines */
};

struct sums_field {
	const char *name, *text;
	u32 offset;	/* in struct sums, of a u64 */
	bool is_drop;	/* the sum of both of struct xroce_drops, by its reason */
	bool is_gauge;	/* not a counter: it may fall */
};

extern const struct sums_field sums_fields[];
extern const u32 sums_num_fields;

/* Of a port that is open. What its maps have not stays 0. */
void sums_read(const struct observed *p, struct sums *s);
u64 sums_get(const struct sums *s, const struct sums_field *f);
void sums_add(struct sums *to, const struct sums *s);
/* All that was dropped, whatever the reason. */
u64 sums_dropped(const struct sums *s);
/* Frames that no ring or socket had room for: they are in no other counter. */
u64 sums_lost(const struct sums *s);

#endif
