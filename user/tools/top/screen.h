/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A frame of a terminal as a grid of characters, and the bytes that show it. Whatever text is put
 * here, the terminal is sent printable characters that are one column wide, and escape codes of
 * this file alone. Pure: no terminal, no clock.
 */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include "../../engine/types.h"

/* A terminal may say anything of its size. */
#define SCREEN_WIDTH_MAX  1000u
#define SCREEN_HEIGHT_MAX 500u

enum screen_style {
	STYLE_PLAIN,
	STYLE_TITLE,	/* the heads of columns */
	STYLE_SORTED,	/* the head of the one that is sorted by */
	STYLE_STRONG,
	STYLE_GOOD,
	STYLE_WARN,
	STYLE_BAD,
	SCREEN_STYLES
};

struct screen_cell {
	u16 glyph; /* a character: printable ASCII, or one of SCREEN_BLOCK */
	u8 style;
};

/* The blocks U+2581 (an eighth) to U+2588 (full). */
#define SCREEN_BLOCK(eighths) (u16)(0x2580 + (eighths))

struct screen {
	u32 width, height;
	struct screen_cell *cells;
	char *bytes; /* of screen_bytes() */
	size_t room;
};

/* Returns 0 or -ENOMEM, then it is empty. *s is zeroed, or of an earlier call. Blank. */
int screen_resize(struct screen *s, u32 width, u32 height);
void screen_end(struct screen *s);
void screen_clear(struct screen *s);

/* What does not fit is left out. Both return the column behind it. */
u32 screen_put(struct screen *s, u32 line, u32 column, enum screen_style style, const char *text);
u32 screen_glyph(struct screen *s, u32 line, u32 column, enum screen_style style, u16 glyph);
/* From there to the end of the line, which keeps its characters. */
void screen_style_rest(struct screen *s, u32 line, u32 column, enum screen_style style);

/* A line as UTF-8, without blanks at its end. text is of 3 * width + 1 bytes at least. */
void screen_line(const struct screen *s, u32 line, char *text);

/*
 * What shows the frame on a terminal, whatever was shown before: cursor home, each line, the rest
 * of the terminal blank. Returns the bytes, which stay until the next call, NULL without memory.
 */
const char *screen_bytes(struct screen *s, bool is_coloured, size_t *len);

/* Numbers in few columns: with a prefix of three digits, and as spark lines. Pure. */

/* A value that is not known. */
#define SPARK_NONE (-1.0)

#define SPARK_TEXT 12

/* "0", "7", "0.5", "941", "9.41k", "12.3G"; "-" of SPARK_NONE. At most 5 columns. */
const char *spark_number(double value, char text[SPARK_TEXT]);

/*
 * The characters of so many values, each of them relative to the largest: a block of 1 to 8
 * eighths, or without is_blocks a character of ASCII. A value above 0 is never drawn as 0, and
 * SPARK_NONE is a blank.
 */
void spark_line(const float *values, u32 n, bool is_blocks, u16 *glyphs);

#endif
