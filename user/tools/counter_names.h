/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The counters under the names that tools for adapters know: the hw_counters of mlx5 and rxe, and
 * the port counters of InfiniBand. One table: the name, what of struct sums it is, its unit and
 * its meaning.
 */
#ifndef TOOLS_COUNTER_NAMES_H
#define TOOLS_COUNTER_NAMES_H

#include "observe/sums.h"

/* As in /sys/class/infiniband: a port's hw_counters, as mlx5 or as rxe calls them; its counters. */
enum name_family { NAME_MLX5, NAME_RXE, NAME_PORT, NAME_FAMILIES };

struct counter_name {
	enum name_family family;
	const char *name, *unit, *text;
	/* in struct sums, of a u64 each, + 1; the first 0 ends them. They are added up, */
	u32 plus[4];
	u32 minus[2];	/* less these */
	u32 divisor;	/* 0: 1 */
};

extern const struct counter_name counter_names[];
extern const u32 counter_num_names;

/* Not below 0, whatever a process has written to its maps. */
u64 counter_value(const struct sums *s, const struct counter_name *c);
/* "mlx5", "rxe", "port" */
const char *counter_family(enum name_family family);

#endif
