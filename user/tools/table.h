/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows of named values, printed as a table or as JSON from one list of columns. A row is added
 * value by value, in the order of the columns.
 */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include "json.h"

struct column {
	const char *name;  /* in JSON and for --sort */
	const char *title; /* column head; NULL: only in JSON */
	bool is_left;	   /* left-aligned, for text */
};

#define COLUMN(name, title)	 { name, title, false } /* numbers */
#define COLUMN_TEXT(name, title) { name, title, true }
#define COLUMN_JSON(name)	 { name, NULL, false }

struct cell {
	enum cell_kind { CELL_NONE, CELL_TEXT, CELL_NUMBER, CELL_REAL, CELL_BOOL } kind;
	u64 number;
	double real;
	char *text; /* in a table; in JSON only of CELL_TEXT */
	bool is_bad; /* printed in red on a terminal */
	u32 added;   /* cells before it, at first */
};

struct table {
	const struct column *columns;
	u32 num_columns;
	u32 num_cells, room;
	struct cell *cells;
};

/* columns must outlive the table. */
void table_begin(struct table *t, const struct column *columns, u32 num_columns);
void table_end(struct table *t);
static inline u32 table_rows(const struct table *t)
{
	return t->num_cells / t->num_columns;
}

/* Add one value each. The program exits if memory runs out. */
void table_text(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a number: value in JSON, the text in a table ("active", "0x8001", "10.2 GB"). */
void table_number_as(struct table *t, u64 value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static inline void table_number(struct table *t, u64 value)
{
	table_number_as(t, value, "%llu", (unsigned long long)value);
}
void table_real_as(struct table *t, double value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static inline void table_real(struct table *t, double value)
{
	table_real_as(t, value, "%.1f", value);
}
void table_bool(struct table *t, bool value);
void table_none(struct table *t);	/* "-", null */
void table_mark_bad(struct table *t);	/* the last value added */

/* Sorts by a column, ascending or descending. Equal rows are in the order of addition. */
void table_sort(struct table *t, u32 column, bool is_descending);

/*
 * Prints a title line and the rows. Columns that are not within `width` (0: unlimited) are left
 * out; text in the last one is cut.
 */
void table_print(const struct table *t, FILE *out, u32 width, bool is_coloured);
/* Adds an array of objects with that name. */
void table_json(const struct table *t, struct json *j, const char *name);

#endif
