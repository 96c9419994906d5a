/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The effect of keys, and the frame: a status line, a line for each interface, column heads, rows,
 * and a line of keys or the filter being typed. On a small terminal the rows are kept longest.
 */
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <stdio.h>
#include <stdlib.h>

#include "top_ui.h"

#define KEY_ESCAPE 27u

static const u32 intervals_ms[] = { 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000 };

void top_ui_init(struct top_ui *ui)
{
	*ui = (struct top_ui){ .interval_ms = 1000 };
	for (u32 v = 0; v < TOP_VIEWS; v++)
		ui->sort[v] = top_fields[v].load;
}

/* ---- actions ---- */

static void ui_type(struct top_ui *ui, u32 key)
{
	const size_t n = strlen(ui->typed);

	ui->scroll = 0;
	if (key == '\r' || key == '\n') {
		memcpy(ui->filter, ui->typed, sizeof(ui->filter));
		ui->is_typing = false;
	} else if (key == KEY_ESCAPE) {
		ui->is_typing = false;
	} else if ((key == 127 || key == 8 || key == KEY_BACKSPACE) && n) {
		ui->typed[n - 1] = 0;
	} else if (key == 21) { /* ^U */
		ui->typed[0] = 0;
	} else if (key >= ' ' && key < 127 && n + 1 < sizeof(ui->typed)) {
		ui->typed[n] = (char)key;
		ui->typed[n + 1] = 0;
	}
}

/* Moves to the next or previous column with a title. */
static void ui_sort(struct top_ui *ui, bool is_next)
{
	const struct top_fields *all = &top_fields[ui->view];
	u32 *at = &ui->sort[ui->view];

	do
		*at = (*at + (is_next ? 1 : all->num - 1)) % all->num;
	while (!all->fields[*at].title);
}

static void ui_interval(struct top_ui *ui, bool is_longer)
{
	const u32 num = ARRAY_SIZE(intervals_ms);
	u32 i = 0;

	if (is_longer) {
		while (i < num && intervals_ms[i] <= ui->interval_ms)
			i++;
		ui->interval_ms = i < num ? intervals_ms[i] : ui->interval_ms;
	} else {
		for (i = num; i && intervals_ms[i - 1] >= ui->interval_ms; i--)
			;
		ui->interval_ms = i ? intervals_ms[i - 1] : ui->interval_ms;
	}
}

static void ui_view(struct top_ui *ui, enum top_view view)
{
	ui->view = view;
	ui->scroll = 0;
}

/* top_draw() keeps scroll in bounds. */
static void ui_scroll(struct top_ui *ui, s64 rows)
{
	const s64 to = (s64)ui->scroll + rows;

	ui->scroll = to < 0 ? 0 : to > UINT32_MAX ? UINT32_MAX : (u32)to;
}

void top_key(struct top_ui *ui, u32 key, u32 rows)
{
	if (ui->is_typing) {
		ui_type(ui, key);
		return;
	}
	if (ui->is_help) {
		ui->is_help = false;
		ui->is_ended = key == 'q';
		return;
	}
	switch (key) {
	case 'q': ui->is_ended = true; break;
	case 'h':
	case '?': ui->is_help = true; break;
	case ' ': ui->is_paused = !ui->is_paused; break;
	case 'r': ui->is_reversed[ui->view] = !ui->is_reversed[ui->view]; break;
	case 's':
	case '>':
	case KEY_RIGHT: ui_sort(ui, true); break;
	case '<':
	case KEY_LEFT: ui_sort(ui, false); break;
	case '+':
	case '=': ui_interval(ui, true); break;
	case '-': ui_interval(ui, false); break;
	case 'Q': ui_view(ui, TOP_QPS); break;
	case 'p': ui_view(ui, TOP_PROCESSES); break;
	case 'c': ui_view(ui, TOP_CQS); break;
	case 'i': ui_view(ui, TOP_INTERFACES); break;
	case '/':
		ui->is_typing = true;
		memset(ui->typed, 0, sizeof(ui->typed));
		ui->scroll = 0;
		break;
	case KEY_ESCAPE: memset(ui->filter, 0, sizeof(ui->filter)); break;
	case KEY_UP: ui_scroll(ui, -1); break;
	case KEY_DOWN: ui_scroll(ui, 1); break;
	case KEY_PPAGE: ui_scroll(ui, -(s64)rows); break;
	case KEY_NPAGE: ui_scroll(ui, rows); break;
	case KEY_HOME: ui->scroll = 0; break;
	case KEY_END: ui->scroll = UINT32_MAX; break;
	}
}

#define DRAW_INTERFACES 8u /* maximum of lines */
#define DRAW_SPARK	24u /* columns of an interface's spark line */

/* ---- spark lines ---- */

static u32 draw_spark(struct screen *s, u32 line, u32 at, u32 width, const struct top_entry *e,
		      const float *ring, enum screen_style style, bool is_blocks)
{
	float values[TOP_HISTORY];
	u16 glyphs[TOP_HISTORY];

	width = width < TOP_HISTORY ? width : TOP_HISTORY;
	top_entry_history(e, ring, width, values);
	spark_line(values, width, is_blocks, glyphs);
	for (u32 i = 0; i < width; i++)
		at = screen_glyph(s, line, at, style, glyphs[i]);
	return at;
}

/* ---- columns ---- */

struct shown {
	const struct top_fields *all;
	u32 widths[TOP_FIELDS_MAX]; /* 0: hidden */
	u32 used;
};

static bool field_is_spark(const struct top_field *f)
{
	return f->kind == FIELD_LOAD || f->kind == FIELD_TROUBLE;
}

static u32 field_width(const struct top_field *f, const struct top_entry *const *rows, u32 num)
{
	u32 width = f->width, n = (u32)strlen(f->title);
	char text[TOP_CELL];

	width = n > width ? n : width;
	for (u32 i = 0; !field_is_spark(f) && f->most > f->width && i < num; i++) {
		n = (u32)strlen(top_cell(f, rows[i], text));
		n = n < f->most ? n : f->most;
		width = n > width ? n : width;
	}
	return width;
}

/* Returns the column to hide first: the one with the highest rank. */
static u32 shown_least(const struct shown *c)
{
	u32 least = c->all->num;

	for (u32 i = 0; i < c->all->num; i++)
		if (c->widths[i] && (least == c->all->num ||
				     c->all->fields[i].rank > c->all->fields[least].rank))
			least = i;
	return least;
}

/* Chooses the columns that fit the width; spark lines share the rest. */
static void shown_choose(struct shown *c, enum top_view view, const struct top_entry *const *rows,
			 u32 num, u32 width)
{
	*c = (struct shown){ .all = &top_fields[view] };
	for (u32 i = 0; i < c->all->num; i++)
		if (c->all->fields[i].title) {
			c->widths[i] = field_width(&c->all->fields[i], rows, num);
			c->used += c->widths[i] + 1;
		}
	while (c->used > width + 1) {
		const u32 least = shown_least(c);

		if (c->used == c->widths[least] + 1)
			break; /* the last column is cut instead */
		c->used -= c->widths[least] + 1;
		c->widths[least] = 0;
	}
	for (u32 i = 0; i < c->all->num && c->used < width + 1; i++) {
		const struct top_field *f = &c->all->fields[i];
		u32 more = width + 1 - c->used;

		if (!c->widths[i] || !field_is_spark(f) || c->widths[i] >= f->most)
			continue;
		more = more < f->most - c->widths[i] ? more : f->most - c->widths[i];
		c->widths[i] += more;
		c->used += more;
	}
}

/* Draws text aligned and cut to width. Returns the start of the next column. */
static u32 draw_text(struct screen *s, u32 line, u32 at, u32 width, bool is_left,
		     enum screen_style style, const char *text)
{
	const u32 n = (u32)strnlen(text, width);
	u32 to = is_left ? at : at + width - n;

	for (u32 i = 0; i < n; i++)
		to = screen_glyph(s, line, to, style, (u8)text[i]);
	return at + width + 1;
}

static void draw_titles(struct screen *s, u32 line, const struct shown *c, u32 sort)
{
	u32 at = 0;

	screen_style_rest(s, line, 0, STYLE_TITLE);
	for (u32 i = 0; i < c->all->num; i++)
		if (c->widths[i])
			at = draw_text(s, line, at, c->widths[i], c->all->fields[i].is_left,
				       i == sort ? STYLE_SORTED : STYLE_TITLE,
				       c->all->fields[i].title);
}

static void draw_row(struct screen *s, u32 line, const struct shown *c, const struct top_entry *e,
		     bool is_blocks)
{
	char text[TOP_CELL];
	u32 at = 0;

	for (u32 i = 0; i < c->all->num; i++) {
		const struct top_field *f = &c->all->fields[i];

		if (!c->widths[i])
			continue;
		if (!field_is_spark(f)) {
			at = draw_text(s, line, at, c->widths[i], f->is_left,
				       top_cell_is_bad(f, e) ? STYLE_BAD : STYLE_PLAIN,
				       top_cell(f, e, text));
			continue;
		}
		draw_spark(s, line, at, c->widths[i], e,
			   f->kind == FIELD_LOAD ? e->load : e->trouble,
			   f->kind == FIELD_LOAD ? STYLE_GOOD : STYLE_WARN, is_blocks);
		at += c->widths[i] + 1;
	}
}

/* ---- lines around the rows ---- */

static const char *ui_filter(const struct top_ui *ui)
{
	return ui->is_typing ? ui->typed : ui->filter;
}

static void draw_state(struct screen *s, const struct top_model *m, const struct top_ui *ui,
		       u32 found, const char *clock)
{
	const struct top_fields *all = &top_fields[ui->view];
	const char *title = all->fields[ui->sort[ui->view]].title;
	char text[256];
	u32 at;

	at = screen_put(s, 0, 0, STYLE_STRONG, "xroce top");
	snprintf(text, sizeof(text), "  %s  %s %u", clock, all->text, found);
	at = screen_put(s, 0, at, STYLE_PLAIN, text);
	if (*ui_filter(ui)) {
		snprintf(text, sizeof(text), " of %u with '%s'", m->lists[ui->view].num,
			 ui_filter(ui));
		at = screen_put(s, 0, at, STYLE_PLAIN, text);
	}
	if (ui->is_paused)
		at = screen_put(s, 0, at, STYLE_WARN, "  paused");
	snprintf(text, sizeof(text), "  by %s%s  every %g s", title ? title : "?",
		 ui->is_reversed[ui->view] ? " reversed" : "", (double)ui->interval_ms / 1000);
	at = screen_put(s, 0, at, STYLE_PLAIN, text);
	if (m->left_out) {
		snprintf(text, sizeof(text), "  %u more left out", m->left_out);
		screen_put(s, 0, at, STYLE_BAD, text);
	}
}

/* Draws an error counter: per second, and in total. */
static u32 draw_wrong(struct screen *s, u32 line, u32 at, const char *name,
		      const struct top_entry *e, enum top_counter counter)
{
	char rate[SPARK_TEXT], all[SPARK_TEXT], text[64];
	const u64 total = e->now.counters[counter];

	snprintf(text, sizeof(text), "  %s %5s/s (%s)", name, spark_number(e->rates[counter], rate),
		 spark_number((double)total, all));
	return screen_put(s, line, at,
			  e->rates[counter] > 0 ? STYLE_BAD : STYLE_PLAIN, text);
}

static void draw_interface(struct screen *s, u32 line, const struct top_entry *e,
			   const struct top_ui *ui)
{
	char rx[SPARK_TEXT], tx[SPARK_TEXT], rx_packets[SPARK_TEXT], tx_packets[SPARK_TEXT];
	const double *rates = e->rates;
	char text[128];
	u32 at;

	at = screen_put(s, line, 0, STYLE_STRONG, e->now.dev);
	at = at < 8 ? 8 : at;
	snprintf(text, sizeof(text), " rx %5sb/s %5sp/s  tx %5sb/s %5sp/s",
		 spark_number(rates[TOP_RX_BYTES] < 0 ? SPARK_NONE : 8 * rates[TOP_RX_BYTES], rx),
		 spark_number(rates[TOP_RX_PACKETS], rx_packets),
		 spark_number(rates[TOP_TX_BYTES] < 0 ? SPARK_NONE : 8 * rates[TOP_TX_BYTES], tx),
		 spark_number(rates[TOP_TX_PACKETS], tx_packets));
	at = screen_put(s, line, at, STYLE_PLAIN, text);
	at = draw_wrong(s, line, at, "drops", e, TOP_DROPPED);
	at = draw_wrong(s, line, at, "lost", e, TOP_LOST);
	draw_spark(s, line, at + 2, DRAW_SPARK, e, e->load, STYLE_GOOD, ui->is_blocks);
}

/* Draws interfaces in use. Returns the next line. */
static u32 draw_interfaces(struct screen *s, u32 line, u32 most, const struct top_model *m,
			   const struct top_ui *ui)
{
	const struct top_list *list = &m->lists[TOP_INTERFACES];
	const u32 end = line + most;

	for (u32 i = 0; i < list->num && line < end; i++)
		if (list->entries[i].now.gauges[TOP_NUM_PROCESSES])
			draw_interface(s, line++, &list->entries[i], ui);
	return line;
}

static void draw_help(struct screen *s, u32 line, u32 end)
{
	static const char *const lines[] = {
		"Q p c i      queue pairs, processes, completion queues, interfaces",
		"s > <        sort by the next or the previous column (also: right, left)",
		"r            reverse the order",
		"/            filter rows by text; Enter keeps the filter, Escape clears it",
		"+ -          lengthen or shorten the interval",
		"space        pause or continue",
		"up down      scroll (also: Page Up, Page Down, Home, End)",
		"h            this help; any key ends it",
		"q            quit",
		"",
		"BPS, PPS     bits and packets per second; k, M, G are powers of 1000",
		"RETR/S       request packets retransmitted per second",
		"RNR/S        RNR NAKs received: the peer had posted no receive",
		"DROP/S       packets that a check refused, in XDP or in the engine",
		"LOST/S       frames dropped because a ring or socket was full",
		"OUT          request packets in flight",
		"RTT-US       smoothed round-trip time of RC in microseconds",
		"RATE         bits per second in both directions, one character per interval,",
		"             relative to the highest one shown; RETRANS: retransmissions",
	};

	for (u32 i = 0; i < ARRAY_SIZE(lines) && line < end; i++, line++)
		screen_put(s, line, 1, STYLE_PLAIN, lines[i]);
}

static void draw_foot(struct screen *s, u32 line, const struct top_ui *ui)
{
	u32 at;

	if (ui->is_typing) {
		at = screen_put(s, line, 0, STYLE_STRONG, "/");
		at = screen_put(s, line, at, STYLE_PLAIN, ui->typed);
		screen_put(s, line, at, STYLE_STRONG, "_");
		return;
	}
	at = screen_put(s, line, 0, STYLE_PLAIN,
			"h help  q quit  Q p c i views  < > sort  r reverse  / filter  + - interval"
			"  space pause");
	if (ui->is_hidden)
		at = screen_put(s, line, at, STYLE_WARN, "  (root sees more)");
	if (ui->is_silent)
		screen_put(s, line, at, STYLE_BAD, "  (a broker does not answer)");
}

static void draw_none(struct screen *s, u32 line, const struct top_model *m,
		      const struct top_ui *ui)
{
	char text[80];

	if (!m->lists[ui->view].num && ui->is_hidden)
		snprintf(text, sizeof(text), "Permission denied for some processes; run as root to "
					     "inspect them.");
	else
		snprintf(text, sizeof(text), "No %s.", top_fields[ui->view].text);
	screen_put(s, line, 1, STYLE_PLAIN, text);
}

u32 top_draw(const struct top_model *m, struct top_ui *ui, struct screen *s, const char *clock)
{
	const u32 height = s->height;
	const u32 most = height < 6 ? 0 : height < 12 ? 1 : (height - 8) / 2;
	const u32 end = height > 4 ? height - 1 : height; /* the line after the rows */
	u32 sort = ui->sort[ui->view], line = height > 2, found, rows;
	const struct top_entry **sorted;
	struct shown shown;

	screen_clear(s);
	found = top_sort(m, ui->view, sort, ui->is_reversed[ui->view], ui_filter(ui), &sorted);
	if (height > 2)
		draw_state(s, m, ui, found, clock);
	line = draw_interfaces(s, line, most < DRAW_INTERFACES ? most : DRAW_INTERFACES, m, ui);
	if (ui->is_help) {
		draw_help(s, line, end);
	} else if (height > 1) {
		/* widths over all rows, so that columns stay when scrolling */
		shown_choose(&shown, ui->view, sorted, found, s->width);
		draw_titles(s, line++, &shown, sort);
	} else {
		shown_choose(&shown, ui->view, sorted, found, s->width);
	}
	rows = end > line ? end - line : 0;
	if (ui->scroll > (found > rows ? found - rows : 0))
		ui->scroll = found > rows ? found - rows : 0;
	for (u32 i = 0; !ui->is_help && i < rows && ui->scroll + i < found; i++)
		draw_row(s, line + i, &shown, sorted[ui->scroll + i], ui->is_blocks);
	if (!found && !ui->is_help)
		draw_none(s, line, m, ui);
	if (end < height)
		draw_foot(s, height - 1, ui);
	free(sorted);
	return rows;
}
