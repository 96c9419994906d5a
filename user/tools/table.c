/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* vasprintf() */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

#define TABLE_CELL_MAX 128 /* longest text of a number */

static void table_no_memory(void)
{
	fprintf(stderr, "xroce: out of memory\n");
	exit(1);
}

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

static struct cell *table_add(struct table *t, enum cell_kind kind)
{
	if (t->num_cells == t->room) {
		t->room = t->room ? 2 * t->room : 16 * t->num_columns;
		t->cells = reallocarray(t->cells, t->room, sizeof(*t->cells));
		if (!t->cells)
			table_no_memory();
	}
	t->cells[t->num_cells] = (struct cell){ .kind = kind };
	return &t->cells[t->num_cells++];
}

static void table_say(struct cell *cell, const char *fmt, va_list ap)
{
	if (vasprintf(&cell->text, fmt, ap) < 0)
		table_no_memory();
}

void table_text(struct table *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	table_say(table_add(t, CELL_TEXT), fmt, ap);
	va_end(ap);
}

void table_number(struct table *t, u64 value)
{
	table_add(t, CELL_NUMBER)->number = value;
}

void table_number_as(struct table *t, u64 value, const char *fmt, ...)
{
	struct cell *cell = table_add(t, CELL_NUMBER);
	va_list ap;

	cell->number = value;
	va_start(ap, fmt);
	table_say(cell, fmt, ap);
	va_end(ap);
}

void table_real(struct table *t, double value)
{
	table_add(t, CELL_REAL)->real = value;
}

void table_real_as(struct table *t, double value, const char *fmt, ...)
{
	struct cell *cell = table_add(t, CELL_REAL);
	va_list ap;

	cell->real = value;
	va_start(ap, fmt);
	table_say(cell, fmt, ap);
	va_end(ap);
}

void table_bool(struct table *t, bool value)
{
	table_add(t, CELL_BOOL)->number = value;
}

void table_none(struct table *t)
{
	table_add(t, CELL_NONE);
}

void table_mark_bad(struct table *t)
{
	t->cells[t->num_cells - 1].is_bad = true;
}

/* ---- sorting: few rows, and stable ---- */

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

static bool table_is_ordered(const struct table *t, const struct cell *first,
			     const struct cell *second, u32 column, bool is_descending)
{
	const int cmp = cell_compare(&first[column], &second[column]);

	return is_descending ? cmp >= 0 : cmp <= 0;
}

/* Merges two sorted runs of rows. */
static void table_merge(const struct table *t, struct cell *to, const struct cell *from, u32 low,
			u32 middle, u32 high, u32 column, bool is_descending)
{
	const size_t row = t->num_columns;
	u32 a = low, b = middle;

	for (u32 i = low; i < high; i++) {
		const bool is_first =
			a < middle && (b == high || table_is_ordered(t, &from[a * row],
								     &from[b * row], column,
								     is_descending));
		const u32 next = is_first ? a++ : b++;

		memcpy(&to[i * row], &from[next * row], row * sizeof(*to));
	}
}

void table_sort(struct table *t, u32 column, bool is_descending)
{
	const u32 rows = table_rows(t);
	struct cell *other = calloc(t->room ? t->room : 1, sizeof(*other)), *swap;

	if (!other)
		table_no_memory();
	for (u32 run = 1; run < rows; run *= 2) {
		for (u32 low = 0; low < rows; low += 2 * run) {
			const u32 middle = low + run < rows ? low + run : rows;
			const u32 high = low + 2 * run < rows ? low + 2 * run : rows;

			table_merge(t, other, t->cells, low, middle, high, column, is_descending);
		}
		swap = t->cells;
		t->cells = other;
		other = swap;
	}
	free(other);
}

/* ---- table ---- */

static const char *cell_say(const struct cell *cell, char text[TABLE_CELL_MAX])
{
	if (cell->text)
		return cell->text;
	switch (cell->kind) {
	case CELL_NUMBER:
		snprintf(text, TABLE_CELL_MAX, "%llu", (unsigned long long)cell->number);
		return text;
	case CELL_REAL:
		snprintf(text, TABLE_CELL_MAX, "%.1f", cell->real);
		return text;
	case CELL_BOOL:
		return cell->number ? "yes" : "no";
	default:
		return "-";
	}
}

struct line {
	FILE *out;
	u32 at, width; /* columns; width 0: unlimited */
};

static void line_put(struct line *line, const char *text)
{
	for (; *text; text++) {
		if (line->width && line->at == line->width)
			return;
		line->at++;
		/* names are foreign input; a terminal would execute escape sequences in them */
		fputc(*text < ' ' || *text > '~' ? '?' : *text, line->out);
	}
}

static void line_pad(struct line *line, u32 n)
{
	while (n--)
		line_put(line, " ");
}

static void line_put_cell(struct line *line, const char *text, u32 width, bool is_left,
			  bool is_last, const char *colour)
{
	const u32 pad = width - (u32)strlen(text);

	if (line->at)
		line_pad(line, 2);
	if (!is_left)
		line_pad(line, pad);
	if (colour)
		fputs(colour, line->out);
	line_put(line, text);
	if (colour)
		fputs("\033[0m", line->out);
	if (is_left && !is_last)
		line_pad(line, pad);
}

static u32 table_last_shown(const struct table *t)
{
	u32 last = 0;

	for (u32 c = 0; c < t->num_columns; c++)
		if (t->columns[c].title)
			last = c;
	return last;
}

static void table_print_row(const struct table *t, const u32 *widths, const struct cell *row,
			    FILE *out, u32 width, bool is_coloured)
{
	struct line line = { .out = out, .width = width };
	const u32 last = table_last_shown(t);
	char text[TABLE_CELL_MAX];

	for (u32 c = 0; c < t->num_columns; c++) {
		const struct column *column = &t->columns[c];
		const char *colour = !is_coloured	      ? NULL :
				     !row		      ? "\033[1m" :
				     row[c].is_bad	      ? "\033[31m" :
								NULL;

		if (column->title)
			line_put_cell(&line, row ? cell_say(&row[c], text) : column->title,
				      widths[c], column->is_left, c == last, colour);
	}
	fputc('\n', out);
}

void table_print(const struct table *t, FILE *out, u32 most, u32 width, bool is_coloured)
{
	const u32 all = table_rows(t), rows = most && most < all ? most : all;
	u32 *widths = calloc(t->num_columns, sizeof(*widths)), n;
	char text[TABLE_CELL_MAX];

	if (!widths)
		table_no_memory();
	for (u32 c = 0; c < t->num_columns; c++) {
		widths[c] = t->columns[c].title ? (u32)strlen(t->columns[c].title) : 0;
		for (u32 r = 0; r < rows; r++) {
			n = (u32)strlen(cell_say(&t->cells[r * t->num_columns + c], text));
			widths[c] = n > widths[c] ? n : widths[c];
		}
	}
	table_print_row(t, widths, NULL, out, width, is_coloured);
	for (u32 r = 0; r < rows; r++)
		table_print_row(t, widths, &t->cells[r * t->num_columns], out, width, is_coloured);
	free(widths);
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
