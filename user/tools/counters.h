/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port's counters, summed over its engines, CPUs and receive queues. Each has a name and a
 * meaning: one table for `xroce stat`, `xroce export` and `xroce explain`. A second table has the
 * names that adapter tools use: the hw_counters of mlx5 and rxe, and InfiniBand port counters.
 * Pure.
 */
#ifndef TOOLS_COUNTERS_H
#define TOOLS_COUNTERS_H

#include <stdbool.h>

#include <xroce/abi.h>
#include <xroce/stat.h>

#include "../engine/types.h"

struct sums {
	struct xroce_engine_stats engine;
	struct xroce_rx_stats rx;
	struct xroce_sock sock;
	struct xroce_drops xdp;	    /* dropped by the XDP program */
	struct xroce_drops refused; /* dropped by the engines */
};

struct counters_field {
	const char *name, *text;
	u32 offset;	/* of a u64 in struct sums */
	bool is_drop;	/* offset is in struct xroce_drops; counters_get() adds xdp and refused */
	bool is_gauge;	/* not a counter: the value may fall */
};

extern const struct counters_field counters_fields[];
extern const u32 counters_num_fields;

u64 counters_get(const struct sums *s, const struct counters_field *f);
/* Returns the text of the counter at that offset in struct sums; "" if it has no row. */
const char *counters_text(u32 offset);
/* Returns the saturated sum: a process can write any value into its counters, and no sum falls. */
static inline u64 counter_plus(u64 a, u64 b)
{
	return a + b < a ? ~0ull : a + b;
}
/* Returns all dropped frames, whatever the reason. */
u64 counters_dropped(const struct sums *s);
/* Returns frames lost as a ring or socket was full. counters_dropped() has xdp.ring_full too. */
u64 counters_lost(const struct sums *s);

/* ---- the names that adapter tools use ---- */

/* As in /sys/class/infiniband: hw_counters with mlx5's or rxe's names, and port counters. */
enum name_family { NAME_MLX5, NAME_RXE, NAME_PORT, NAME_FAMILIES };

struct counters_name {
	enum name_family family;
	const char *name, *unit, *text;
	/* offsets + 1 in struct sums, of a u64 each, added; 0 ends the list */
	u32 plus[4];
	u32 minus[2];	/* likewise, subtracted */
	u32 divisor;	/* 0: 1 */
};

extern const struct counters_name counters_names[];
extern const u32 counters_num_names;

/* Returns the value, at least 0 even if a process's maps are inconsistent. */
u64 counters_value(const struct sums *s, const struct counters_name *c);
/* "mlx5", "rxe", "port" */
const char *counters_family(enum name_family family);

/* ---- texts for numbers in maps; "?" for an unknown number ---- */

/* Return why a QP stopped working (enum xroce_reason), or the name of a drop (enum xroce_drop). */
const char *counters_reason(u32 reason);
const char *counters_drop(u32 drop);

#endif
