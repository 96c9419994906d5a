/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "top_ui.h"

#define KEY_ESCAPE 27u

static const u32 intervals_ms[] = { 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000 };

void top_ui_init(struct top_ui *ui)
{
	*ui = (struct top_ui){ .interval_ms = 1000 };
	for (u32 v = 0; v < TOP_VIEWS; v++)
		ui->sort[v] = top_fields[v].load;
}

/* ---- bytes ---- */

/* Decodes the rest of a sequence after "ESC [" or "ESC O": parameters and a final byte. */
static u32 key_decode_sequence(const u8 *bytes, u32 n, u32 *key)
{
	u32 at = 2;

	*key = KEY_NONE;
	while (at < n && bytes[at] >= 0x20 && bytes[at] <= 0x3f)
		at++;
	if (at == n)
		return n;
	switch (bytes[at]) {
	case 'A': *key = KEY_UP; break;
	case 'B': *key = KEY_DOWN; break;
	case 'C': *key = KEY_RIGHT; break;
	case 'D': *key = KEY_LEFT; break;
	case 'H': *key = KEY_HOME; break;
	case 'F': *key = KEY_END; break;
	case '~':
		switch (bytes[2]) {
		case '1': *key = KEY_HOME; break;
		case '4': *key = KEY_END; break;
		case '5': *key = KEY_PAGE_UP; break;
		case '6': *key = KEY_PAGE_DOWN; break;
		}
		break;
	}
	return at + 1;
}

u32 top_key_decode(const u8 *bytes, u32 n, u32 *key)
{
	if (!n)
		return 0;
	if (bytes[0] == KEY_ESCAPE && n > 2 && (bytes[1] == '[' || bytes[1] == 'O'))
		return key_decode_sequence(bytes, n, key);
	*key = bytes[0] < 0x80 ? bytes[0] : KEY_NONE;
	return 1;
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
	} else if ((key == 127 || key == 8) && n) {
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
	case KEY_PAGE_UP: ui_scroll(ui, -(s64)rows); break;
	case KEY_PAGE_DOWN: ui_scroll(ui, rows); break;
	case KEY_HOME: ui->scroll = 0; break;
	case KEY_END: ui->scroll = UINT32_MAX; break;
	}
}
