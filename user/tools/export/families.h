/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names and texts of the metrics shared by devices and processes. */
#ifndef EXPORT_FAMILIES_H
#define EXPORT_FAMILIES_H

#include "collect.h"
#include "text.h"

/*
 * Begins the family xroce_LEVEL_NAME. A name that ends in _bytes or _packets has that unit. name is
 * without the suffix of its type.
 */
void metrics_family(struct text *t, enum text_type type, const char *level, const char *name,
		    const char *help);

struct count_field {
	const char *name, *text;
	size_t offset; /* of a u64 */
};
/* Fields of struct counts outside struct sums, and of struct objects_now. */
extern const struct count_field count_fields[], object_fields[];
extern const u32 count_num_fields, object_num_fields;

static inline u64 count_at(const void *counts, size_t offset)
{
	return *(const u64 *)((const u8 *)counts + offset);
}

/* Names an index of objects_now.qps. */
const char *qp_state_name(u32 state);

extern const char drops_text[], lost_text[], qps_text[], fullest_text[];

/* Returns the reason of a drop: "icrc" for "drop_icrc" of struct sums. */
static inline const char *drop_reason(const struct counters_field *f)
{
	return f->name + strlen("drop_");
}

#endif
