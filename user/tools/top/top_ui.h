/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the user of `xroce top` has chosen, how keys change it, the frame that shows it. Pure. */
#ifndef TOP_UI_H
#define TOP_UI_H

#include "screen.h"
#include "top_fields.h"

#define TOP_TYPED 40

struct top_ui {
	enum top_view view;
	u32 sort[TOP_VIEWS]; /* a field of the view */
	bool is_reversed[TOP_VIEWS];
	u32 interval_ms;
	bool is_paused, is_help, is_ended;
	char filter[TOP_TYPED];
	bool is_typing; /* a filter, which works as it is typed */
	char typed[TOP_TYPED];
	u32 scroll;   /* rows left out at the top */
	bool is_blocks; /* the terminal shows UTF-8 */
	bool is_hidden; /* there is something that this user may not see */
	bool is_silent; /* a broker did not answer in time */
};

enum top_key { /* from 256 on; below, an ASCII character */
	KEY_NONE = 256,
	KEY_UP,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
};

void top_ui_init(struct top_ui *ui);

/* The first key of n bytes that a terminal sent. Returns how many of them it is, 0 if n is 0. */
u32 top_key_decode(const u8 *bytes, u32 n, u32 *key);
/* rows: that the screen shows at once. */
void top_key(struct top_ui *ui, u32 key, u32 rows);

/* clock: the time of day. Returns the number of rows that there is room for. */
u32 top_draw(const struct top_model *m, struct top_ui *ui, struct screen *s, const char *clock);

#endif
