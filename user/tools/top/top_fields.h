/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The columns of each view of `xroce top`; sorts and finds entries by them. Pure. */
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
	FIELD_NUMBER, /* hexadecimal for QPNs */
	FIELD_RATE,   /* of a counter, multiplied by factor */
	FIELD_TOTAL,  /* a counter's value */
	FIELD_GAUGE,
	FIELD_LOAD,    /* spark lines */
	FIELD_TROUBLE,
};

struct top_field {
	const char *name, *title; /* name: in JSON and for --sort; title NULL: only in JSON */
	enum top_kind kind;
	u8 index;     /* enum top_counter or top_gauge */
	float factor; /* for rates and gauges */
	u8 width;     /* minimum; texts grow up to most */
	u8 most;
	bool is_left;
	u8 rank; /* the highest is hidden first if a line is full */
};

#define TOP_FIELDS_MAX 32

struct top_fields {
	const char *name, *text; /* name, text: for example "qps", "queue pairs" */
	const struct top_field *fields;
	u32 num;
	u32 load; /* index of FIELD_LOAD */
};

extern const struct top_fields top_fields[TOP_VIEWS];

#define TOP_CELL 64
/* Returns a cell's text, in text or in e; not for spark lines. The text is not trusted. */
const char *top_cell(const struct top_field *f, const struct top_entry *e, char text[TOP_CELL]);
/* Returns whether the cell shows a fault. */
bool top_cell_is_bad(const struct top_field *f, const struct top_entry *e);

/* Returns the index of the field that --sort names, or -1. */
int top_field_find(enum top_view view, const char *name);

/* Returns whether a column of e contains text, ignoring case; "" matches always. */
bool top_entry_matches(const struct top_entry *e, const char *text);

/*
 * Sorts the entries that match text by a field: numbers descending, texts ascending, or reversed;
 * equal ones by key. Returns their number; *sorted is for free() and may be NULL.
 */
u32 top_sort(const struct top_model *m, enum top_view view, u32 field, bool is_reversed,
	     const char *text, const struct top_entry ***sorted);

/* Columns and a row of a table: all fields of the view except spark lines. */
u32 top_columns(enum top_view view, struct column columns[TOP_FIELDS_MAX]);
void top_row(struct table *t, enum top_view view, const struct top_entry *e);

#endif
