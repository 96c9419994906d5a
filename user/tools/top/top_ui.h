/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* User choices in `xroce top`, how keys change them, and the frame that shows them. Pure. */
#ifndef TOP_UI_H
#define TOP_UI_H

#include "screen.h"
#include "top_fields.h"

#define TOP_TYPED 40

struct top_ui {
	enum top_view view;
	u32 sort[TOP_VIEWS]; /* index of a field of the view */
	bool is_reversed[TOP_VIEWS];
	u32 interval_ms;
	bool is_paused, is_help, is_ended;
	char filter[TOP_TYPED];
	bool is_typing; /* a filter, applied while it is typed */
	char typed[TOP_TYPED];
	u32 scroll;   /* rows above the first visible one */
	bool is_blocks; /* draw spark lines with UTF-8 blocks */
	bool is_hidden; /* this user may not see some processes */
	bool is_silent; /* a broker did not answer in time */
};

void top_ui_init(struct top_ui *ui);

/* key: a character or a KEY_ of ncurses. rows: visible at once. */
void top_key(struct top_ui *ui, u32 key, u32 rows);

/* clock: the time of day. Returns the number of rows that fit. */
u32 top_draw(const struct top_model *m, struct top_ui *ui, struct screen *s, const char *clock);

#endif
