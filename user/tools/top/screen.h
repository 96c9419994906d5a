/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A terminal frame as a grid of characters, the bytes that draw it, and the terminal that shows
 * them. Whatever text is put here, the output has only printable one-column characters and this
 * file's escape sequences. The grid is pure: no terminal, no clock.
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
	char *bytes; /* buffer of screen_bytes() */
	size_t room;
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

/*
 * Returns the bytes that redraw the whole frame: cursor home, each line, blank rest. They are valid
 * until the next call. Returns NULL if memory runs out.
 */
const char *screen_bytes(struct screen *s, bool is_coloured, size_t *len);

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
 * The whole screen: takes over the terminal for frames and keys, and restores it: at the end, on
 * signals, while the process is stopped (^Z), and on a crash. One per process.
 */

/* Returns whether standard input and output are a terminal that can move the cursor. */
bool full_screen_can(void);
/* Sets the locale; returns whether the terminal's characters are UTF-8. */
bool full_screen_has_blocks(void);

/*
 * Takes the terminal, and SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT and SIGWINCH. Returns
 * 0 or -errno.
 */
int full_screen_begin(void);
void full_screen_end(void); /* also called at exit(); idempotent */

enum full_screen_event {
	FULL_SCREEN_KEYS = 1,  /* full_screen_read() is due */
	/* a frame is due: resized, taken again, or ready for output again */
	FULL_SCREEN_SHOW = 2,
	FULL_SCREEN_ENDED = 4, /* by a signal, or the terminal is closed */
};
/*
 * Waits until until_ns at most (CLOCK_MONOTONIC) and sends the rest of the last frame. Returns enum
 * full_screen_event bits, 0 on timeout.
 */
u32 full_screen_wait(u64 until_ns);
u32 full_screen_read(u8 *bytes, u32 size);
void full_screen_size(u32 *columns, u32 *lines);
/* Writes the frame at once; skips it while an older frame waits. */
void full_screen_show(const char *bytes, size_t len);

#endif
