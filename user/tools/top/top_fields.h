/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The columns of each view of `xroce top`, how entries are sorted by them, and found. Pure. */
#ifndef TOP_FIELDS_H
#define TOP_FIELDS_H

#include "../table.h"
#include "top_model.h"

enum top_kind {
	FIELD_DEV,
	FIELD_TYPE,
	FIELD_STATE,
	FIELD_PID,
	FIELD_COMMAND,
	FIELD_PEER,
	FIELD_NUMBER, /* hexadecimal of QPNs */
	FIELD_RATE,   /* of a counter, times a factor */
	FIELD_TOTAL,  /* a counter itself */
	FIELD_GAUGE,
	FIELD_LOAD,    /* spark lines */
	FIELD_TROUBLE,
};

struct top_field {
	const char *name, *title; /* in JSON and of --sort; title NULL: in JSON alone */
	enum top_kind kind;
	u8 index;     /* of a counter or gauge */
	float factor; /* of a rate or gauge */
	u8 width;     /* at least; texts get what they need up to most */
	u8 most;
	bool is_left;
	u8 rank; /* the highest one goes first where a line has not room for all */
};

#define TOP_FIELDS_MAX 32

struct top_fields {
	const char *name, *text; /* "qps", "queue pairs" */
	const struct top_field *fields;
	u32 num;
	u32 load; /* FIELD_LOAD's place */
};

extern const struct top_fields top_fields[TOP_VIEWS];

#define TOP_CELL 64
/* What a column says, in text or of e; not of spark lines. Nothing in it is to be believed. */
const char *top_cell(const struct top_field *f, const struct top_entry *e, char text[TOP_CELL]);
/* It shows that something is wrong. */
bool top_cell_is_bad(const struct top_field *f, const struct top_entry *e);

/* The field of that name, which --sort takes; -1: none. */
int top_field_find(enum top_view view, const char *name);

/* Has it that text in one of its columns, in any case? "" is in each. */
bool top_entry_matches(const struct top_entry *e, const char *text);

/*
 * The entries of a view that have the text, sorted: by a field, the largest first (of texts the
 * first of the alphabet), or reversed; equal ones by their keys. Returns how many; *sorted is for
 * free(), or NULL.
 */
u32 top_sort(const struct top_model *m, enum top_view view, u32 field, bool is_reversed,
	     const char *text, const struct top_entry ***sorted);

/* A row of a table with all fields of the view but the spark lines. */
u32 top_columns(enum top_view view, struct column columns[TOP_FIELDS_MAX]);
void top_row(struct table *t, enum top_view view, const struct top_entry *e);

#endif
