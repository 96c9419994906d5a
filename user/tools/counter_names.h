/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The counters under the names that adapter tools use: the hw_counters of mlx5 and rxe, and
 * InfiniBand port counters. One table of names, fields of struct sums, units and meanings.
 */
#ifndef TOOLS_COUNTER_NAMES_H
#define TOOLS_COUNTER_NAMES_H

#include "observe/sums.h"

/* As in /sys/class/infiniband: hw_counters with mlx5's or rxe's names, and port counters. */
enum name_family { NAME_MLX5, NAME_RXE, NAME_PORT, NAME_FAMILIES };

struct counter_name {
	enum name_family family;
	const char *name, *unit, *text;
	/* offsets + 1 in struct sums, of a u64 each, added; 0 ends the list */
	u32 plus[4];
	u32 minus[2];	/* likewise, subtracted */
	u32 divisor;	/* 0: 1 */
};

extern const struct counter_name counter_names[];
extern const u32 counter_num_names;

/* Returns the value, at least 0 even if a process's maps are inconsistent. */
u64 counter_value(const struct sums *s, const struct counter_name *c);
/* "mlx5", "rxe", "port" */
const char *counter_family(enum name_family family);

#endif
