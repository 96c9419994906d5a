/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A terminal frame as a grid of characters, and the terminal that shows it, by ncurses. Whatever
 * text is put here, the grid has only printable one-column characters.
 */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include "../../engine/types.h"

/* Limits, as a terminal may report any size. */
#define SCREEN_WIDTH_MAX  1000u
#define SCREEN_HEIGHT_MAX 500u

enum screen_style {
	STYLE_PLAIN,
	STYLE_TITLE,	/* column heads */
	STYLE_SORTED,	/* head of the sort column */
	STYLE_STRONG,
	STYLE_GOOD,
	STYLE_WARN,
	STYLE_BAD,
	SCREEN_STYLES
};

struct screen_cell {
	u16 glyph; /* printable ASCII or a SCREEN_BLOCK */
	u8 style;
};

/* The blocks U+2581 (an eighth) to U+2588 (full). */
#define SCREEN_BLOCK(eighths) (u16)(0x2580 + (eighths))

struct screen {
	u32 width, height;
	struct screen_cell *cells;
};

/* Makes a blank frame; *s is zeroed or in use. Returns 0, or -ENOMEM with an empty frame. */
int screen_resize(struct screen *s, u32 width, u32 height);
void screen_end(struct screen *s);
void screen_clear(struct screen *s);

/* Text beyond the edge is left out. Both return the next column. */
u32 screen_put(struct screen *s, u32 line, u32 column, enum screen_style style, const char *text);
u32 screen_glyph(struct screen *s, u32 line, u32 column, enum screen_style style, u16 glyph);
/* Sets the style from column to the end of the line and keeps the characters. */
void screen_style_rest(struct screen *s, u32 line, u32 column, enum screen_style style);

/* Writes a line as UTF-8 without trailing blanks. text has at least 3 * width + 1 bytes. */
void screen_line(const struct screen *s, u32 line, char *text);

/* Numbers in few columns: three digits with a prefix, and spark lines. Pure. */

/* An unknown value. */
#define SPARK_NONE (-1.0)

#define SPARK_TEXT 12

/* "0", "7", "0.5", "941", "9.41k", "12.3G"; "-" for SPARK_NONE. At most 5 columns. */
const char *spark_number(double value, char text[SPARK_TEXT]);

/*
 * Sets glyphs[n] to the values relative to the largest: blocks of 1 to 8 eighths, or ASCII without
 * is_blocks. A value above 0 is never drawn as 0; SPARK_NONE is a blank.
 */
void spark_line(const float *values, u32 n, bool is_blocks, u16 *glyphs);

/*
 * The whole screen: takes over the terminal of standard input and output for frames and keys, and
 * restores it: at the end, while the process is stopped (^Z), and on a crash. One per process.
 */

/* Returns whether standard input and output are a terminal whose cursor ncurses can move. */
bool full_screen_can(void);
/* Sets the locale; returns whether the terminal's characters are UTF-8. */
bool full_screen_has_blocks(void);

/*
 * Takes the terminal. From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT end the process, with status
 * 0. is_coloured: frames have colours and other attributes. Returns 0 or -errno.
 */
int full_screen_begin(bool is_coloured);
void full_screen_end(void);

enum full_screen_event {
	FULL_SCREEN_TIME,
	FULL_SCREEN_KEYS, /* full_screen_key() is due; or the size has changed */
	FULL_SCREEN_ENDED, /* the terminal is closed */
};
/* Waits until until_ns at most (CLOCK_MONOTONIC). A frame is due afterwards. */
enum full_screen_event full_screen_wait(u64 until_ns);
/* Returns a character or a KEY_ of ncurses; 0: there is none. */
u32 full_screen_key(void);
/* Sends the differences from the last frame, and waits for the terminal to accept them. */
void full_screen_show(const struct screen *s);

#endif
