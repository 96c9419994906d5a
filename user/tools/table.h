/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows of named values, printed as a table for people or as JSON for programs: the columns are
 * said once. A row is written value after value, in the order of the columns.
 */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include "json.h"

struct column {
	const char *name;  /* in JSON; of both */
	const char *title; /* the head of the column; NULL: in JSON alone */
	bool is_left;	   /* aligned to the left: text */
};

#define COLUMN(name, title)	 { name, title, false } /* numbers */
#define COLUMN_TEXT(name, title) { name, title, true }
#define COLUMN_JSON(name)	 { name, NULL, false }

struct cell {
	enum cell_kind { CELL_NONE, CELL_TEXT, CELL_NUMBER, CELL_REAL, CELL_BOOL } kind;
	u64 number;
	double real;
	/* of CELL_TEXT; of others what the table says in place of the number, or NULL */
	char *text;
	bool is_bad; /* in red, on a terminal */
};

struct table {
	const struct column *columns;
	u32 num_columns;
	u32 num_cells, room;
	struct cell *cells;
};

/* columns must stay as long as the table. */
void table_begin(struct table *t, const struct column *columns, u32 num_columns);
void table_end(struct table *t);
static inline u32 table_rows(const struct table *t)
{
	return t->num_cells / t->num_columns;
}

/* One value each; memory that there is not ends the program. */
void table_text(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_number(struct table *t, u64 value);
/* A number that the table says by that text ("active", "0x8001", "10.2 GB"), JSON as it is. */
void table_number_as(struct table *t, u64 value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void table_real(struct table *t, double value); /* the table has one digit behind the point */
void table_real_as(struct table *t, double value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void table_bool(struct table *t, bool value);
void table_none(struct table *t);	/* "-", null */
void table_mark_bad(struct table *t);	/* the last value */

/* Sorts by a column, the largest first if so wanted. Equal rows keep their order. */
void table_sort(struct table *t, u32 column, bool is_descending);

/*
 * With a line of titles. Rows behind the first most (0: all) are left out. width: lines are cut
 * there (0: they are not). Colours by is_coloured.
 */
void table_print(const struct table *t, FILE *out, u32 most, u32 width, bool is_coloured);
/* An array of objects, under that name. */
void table_json(const struct table *t, struct json *j, const char *name);

#endif
