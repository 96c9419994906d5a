/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* vasprintf(), qsort_r() */
#include <libsmartcols/libsmartcols.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "table.h"

#define TABLE_GAP "  " /* between columns */

void table_begin(struct table *t, const struct column *columns, u32 num_columns)
{
	*t = (struct table){ .columns = columns, .num_columns = num_columns };
}

void table_end(struct table *t)
{
	for (u32 i = 0; i < t->num_cells; i++)
		free(t->cells[i].text);
	free(t->cells);
	t->cells = NULL;
	t->num_cells = t->room = 0;
}

/* Adds a value with its text in a table. */
static void table_add(struct table *t, struct cell cell, const char *fmt, va_list ap)
{
	t->cells = memory_grow(t->cells, t->num_cells, &t->room, sizeof(*t->cells));
	if (vasprintf(&cell.text, fmt, ap) < 0)
		memory_need(NULL);
	cell.added = t->num_cells;
	t->cells[t->num_cells++] = cell;
}

#define TABLE_ADD(t, fmt, ...)                                                                     \
	do {                                                                                       \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, fmt);                                                                 \
		table_add(t, (struct cell){ __VA_ARGS__ }, fmt, ap);                               \
		va_end(ap);                                                                        \
	} while (0)

void table_text(struct table *t, const char *fmt, ...)
{
	TABLE_ADD(t, fmt, .kind = CELL_TEXT);
}

void table_number_as(struct table *t, u64 value, const char *fmt, ...)
{
	TABLE_ADD(t, fmt, .kind = CELL_NUMBER, .number = value);
}

void table_real_as(struct table *t, double value, const char *fmt, ...)
{
	TABLE_ADD(t, fmt, .kind = CELL_REAL, .real = value);
}

static void table_flag(struct table *t, enum cell_kind kind, bool value, const char *fmt, ...)
{
	TABLE_ADD(t, fmt, .kind = kind, .number = value);
}

void table_bool(struct table *t, bool value)
{
	table_flag(t, CELL_BOOL, value, value ? "yes" : "no");
}

void table_none(struct table *t)
{
	table_flag(t, CELL_NONE, false, "-");
}

void table_mark_bad(struct table *t)
{
	t->cells[t->num_cells - 1].is_bad = true;
}

/* ---- sorting ---- */

struct table_order {
	u32 column;
	bool is_descending;
};

static int cell_compare(const struct cell *a, const struct cell *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	switch (a->kind) {
	case CELL_TEXT:
		return strcmp(a->text, b->text);
	case CELL_REAL:
		return a->real < b->real ? -1 : a->real > b->real;
	default:
		return a->number < b->number ? -1 : a->number > b->number;
	}
}

static int row_compare(const void *a, const void *b, void *arg)
{
	const struct cell *x = a, *y = b;
	const struct table_order *by = arg;
	const int order = cell_compare(&x[by->column], &y[by->column]);

	if (order)
		return by->is_descending ? -order : order;
	return x->added < y->added ? -1 : x->added > y->added;
}

void table_sort(struct table *t, u32 column, bool is_descending)
{
	struct table_order by = { column, is_descending };

	if (t->num_cells)
		qsort_r(t->cells, table_rows(t), t->num_columns * sizeof(*t->cells), row_compare,
			&by);
}

/* ---- table, by libsmartcols ---- */

static void table_show_columns(const struct table *t, struct libscols_table *shown)
{
	for (u32 c = 0; c < t->num_columns; c++) {
		const struct column *column = &t->columns[c];
		const int flags = (column->is_left ? 0 : SCOLS_FL_RIGHT) |
				  (column->title ? 0 : SCOLS_FL_HIDDEN);

		scols_cell_set_color(scols_column_get_header(memory_need(scols_table_new_column(
					     shown, column->title ? column->title : "", 0, flags))),
				     "\033[1m");
	}
}

/* libsmartcols escapes what is not printable: names are foreign input. */
static void table_show_row(const struct table *t, struct libscols_table *shown, u32 row)
{
	struct libscols_line *line = memory_need(scols_table_new_line(shown, NULL));

	for (u32 c = 0; c < t->num_columns; c++) {
		const struct cell *cell = &t->cells[row * t->num_columns + c];

		if (!t->columns[c].title)
			continue;
		if (scols_line_set_data(line, c, cell->text))
			memory_need(NULL);
		if (cell->is_bad)
			scols_cell_set_color(scols_line_get_cell(line, c), "\033[31m");
	}
}

/* Returns the table, for free(). Also sets the widths of columns. */
static char *table_to_text(struct libscols_table *shown)
{
	char *text = NULL;

	return scols_print_table_to_string(shown, &text) ? memory_need(NULL) : memory_need(text);
}

/* Hides the columns that do not fit. The last text is cut instead if its title fits. */
static void table_fit(const struct table *t, struct libscols_table *shown, u32 width)
{
	size_t at = 0;

	free(table_to_text(shown));
	for (u32 c = 0; c < t->num_columns; c++) {
		struct libscols_column *column = scols_table_get_column(shown, c);
		const char *title = t->columns[c].title;
		const size_t room = width > at ? width - at : 0;
		const bool is_cut =
			!at || (t->columns[c].is_left && title && strlen(title) <= room);

		if (title && scols_column_get_width(column) <= room) {
			at += scols_column_get_width(column) + strlen(TABLE_GAP);
		} else if (title) {
			scols_column_set_flags(column, is_cut ? SCOLS_FL_TRUNC : SCOLS_FL_HIDDEN);
			at = width;
		}
	}
	scols_table_set_termforce(shown, SCOLS_TERMFORCE_ALWAYS);
	scols_table_set_termwidth(shown, width);
}

void table_print(const struct table *t, FILE *out, u32 width, bool is_coloured)
{
	struct libscols_table *shown = memory_need(scols_new_table());
	char *text;

	scols_table_set_column_separator(shown, TABLE_GAP);
	scols_table_set_termforce(shown, SCOLS_TERMFORCE_NEVER);
	table_show_columns(t, shown);
	for (u32 r = 0; r < table_rows(t); r++)
		table_show_row(t, shown, r);
	/* without a line there would be no head */
	if (!t->num_cells)
		memory_need(scols_table_new_line(shown, NULL));
	if (width)
		table_fit(t, shown, width);
	scols_table_enable_colors(shown, is_coloured);
	text = table_to_text(shown);
	fprintf(out, "%.*s\n", t->num_cells ? INT_MAX : (int)strcspn(text, "\n"), text);
	free(text);
	scols_unref_table(shown);
}

/* ---- JSON ---- */

static void cell_json(const struct cell *cell, struct json *j, const char *name)
{
	switch (cell->kind) {
	case CELL_TEXT:
		json_text(j, name, cell->text);
		break;
	case CELL_NUMBER:
		json_number(j, name, cell->number);
		break;
	case CELL_REAL:
		json_real(j, name, cell->real, 3);
		break;
	case CELL_BOOL:
		json_boolean(j, name, cell->number);
		break;
	case CELL_NONE:
		json_null(j, name);
		break;
	}
}

void table_json(const struct table *t, struct json *j, const char *name)
{
	json_open_array(j, name);
	for (u32 i = 0; i < t->num_cells; i++) {
		const u32 c = i % t->num_columns;

		if (!c)
			json_open_object(j, NULL);
		cell_json(&t->cells[i], j, t->columns[c].name);
		if (c == t->num_columns - 1)
			json_close(j);
	}
	json_close(j);
}
