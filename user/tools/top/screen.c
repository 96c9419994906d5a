/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "screen.h"

#define GLYPH_BYTES 3  /* longest in UTF-8 */
#define STYLE_BYTES 16 /* longest of styles[]; longer than the sequence at the end of a line */

static const char *const styles[SCREEN_STYLES] = {
	[STYLE_PLAIN] = "\033[m",
	[STYLE_TITLE] = "\033[m\033[7m",
	[STYLE_SORTED] = "\033[m\033[1;7m",
	[STYLE_STRONG] = "\033[m\033[1m",
	[STYLE_GOOD] = "\033[m\033[36m",
	[STYLE_WARN] = "\033[m\033[33m",
	[STYLE_BAD] = "\033[m\033[31m",
};

int screen_resize(struct screen *s, u32 width, u32 height)
{
	struct screen_cell *cells;

	width = width < SCREEN_WIDTH_MAX ? width : SCREEN_WIDTH_MAX;
	height = height < SCREEN_HEIGHT_MAX ? height : SCREEN_HEIGHT_MAX;
	cells = calloc((size_t)width * height + 1, sizeof(*cells));
	free(s->cells);
	s->cells = cells;
	s->width = cells ? width : 0;
	s->height = cells ? height : 0;
	screen_clear(s);
	return cells ? 0 : -ENOMEM;
}

void screen_end(struct screen *s)
{
	free(s->cells);
	free(s->bytes);
	*s = (struct screen){ 0 };
}

void screen_clear(struct screen *s)
{
	for (size_t i = 0; i < (size_t)s->width * s->height; i++)
		s->cells[i] = (struct screen_cell){ .glyph = ' ' };
}

static bool glyph_is_shown(u16 glyph)
{
	return (glyph >= ' ' && glyph <= '~') ||
	       (glyph >= SCREEN_BLOCK(1) && glyph <= SCREEN_BLOCK(8));
}

u32 screen_glyph(struct screen *s, u32 line, u32 column, enum screen_style style, u16 glyph)
{
	if (line >= s->height || column >= s->width)
		return column;
	s->cells[(size_t)line * s->width + column] =
		(struct screen_cell){ .glyph = glyph_is_shown(glyph) ? glyph : '?',
				      .style = (u8)style };
	return column + 1;
}

u32 screen_put(struct screen *s, u32 line, u32 column, enum screen_style style, const char *text)
{
	for (; *text; text++)
		column = screen_glyph(s, line, column, style, (u8)*text);
	return column;
}

void screen_style_rest(struct screen *s, u32 line, u32 column, enum screen_style style)
{
	for (; line < s->height && column < s->width; column++)
		s->cells[(size_t)line * s->width + column].style = (u8)style;
}

static char *glyph_put(char *at, u16 glyph)
{
	if (glyph < 0x80) {
		*at++ = (char)glyph;
		return at;
	}
	*at++ = (char)(0xe0 | glyph >> 12);
	*at++ = (char)(0x80 | (glyph >> 6 & 0x3f));
	*at++ = (char)(0x80 | (glyph & 0x3f));
	return at;
}

/* Returns the number of columns up to the last visible one. */
static u32 line_length(const struct screen *s, u32 line)
{
	const struct screen_cell *cells = &s->cells[(size_t)line * s->width];
	u32 n = s->width;

	while (n && cells[n - 1].glyph == ' ' && cells[n - 1].style == STYLE_PLAIN)
		n--;
	return n;
}

void screen_line(const struct screen *s, u32 line, char *text)
{
	u32 n = line < s->height ? s->width : 0;

	while (n && s->cells[(size_t)line * s->width + n - 1].glyph == ' ')
		n--;
	for (u32 i = 0; i < n; i++)
		text = glyph_put(text, s->cells[(size_t)line * s->width + i].glyph);
	*text = 0;
}

static char *bytes_put(char *at, const char *text)
{
	const size_t n = strlen(text);

	memcpy(at, text, n);
	return at + n;
}

static char *bytes_line(const struct screen *s, u32 line, bool is_coloured, char *at)
{
	const struct screen_cell *cells = &s->cells[(size_t)line * s->width];
	const u32 n = line_length(s, line);
	u8 style = STYLE_PLAIN;

	for (u32 i = 0; i < n; i++) {
		if (is_coloured && cells[i].style != style)
			at = bytes_put(at, styles[cells[i].style]);
		style = cells[i].style;
		at = glyph_put(at, cells[i].glyph);
	}
	if (is_coloured && style != STYLE_PLAIN)
		at = bytes_put(at, styles[STYLE_PLAIN]);
	/* after a full line, erasing would delete its last character */
	return n < s->width ? bytes_put(at, "\033[K") : at;
}

const char *screen_bytes(struct screen *s, bool is_coloured, size_t *len)
{
	const size_t most = ((size_t)s->width * (GLYPH_BYTES + STYLE_BYTES) + 2 * STYLE_BYTES) *
				    s->height + 2 * STYLE_BYTES;
	char *at;

	if (most > s->room) {
		at = realloc(s->bytes, most);
		if (!at)
			return NULL;
		s->bytes = at;
		s->room = most;
	}
	at = bytes_put(s->bytes, "\033[H");
	for (u32 i = 0; i < s->height; i++) {
		at = bytes_line(s, i, is_coloured, at);
		if (i + 1 < s->height)
			at = bytes_put(at, "\r\n");
	}
	*len = (size_t)(at - s->bytes);
	return s->bytes;
}

/* ---- spark lines ---- */

#define SPARK_LEVELS 8 /* the first is for 0 only */

const char *spark_number(double value, char text[SPARK_TEXT])
{
	static const char prefixes[] = " kMGTPEZY";
	u32 prefix = 0;

	if (!(value >= 0)) {
		snprintf(text, SPARK_TEXT, "-");
		return text;
	}
	/* printf() rounds 999.5 to 1.00k */
	while (value >= 999.5 && prefix < sizeof(prefixes) - 2) {
		value /= 1000;
		prefix++;
	}
	if (value >= 999.5)
		snprintf(text, SPARK_TEXT, ">999Y");
	else if (!prefix && (value >= 9.95 || value == (u32)value))
		snprintf(text, SPARK_TEXT, "%.0f", value);
	else if (!prefix)
		snprintf(text, SPARK_TEXT, "%.1f", value);
	else
		snprintf(text, SPARK_TEXT, "%.*f%c", value < 9.995 ? 2 : value < 99.95 ? 1 : 0,
			 value, prefixes[prefix]);
	return text;
}

void spark_line(const float *values, u32 n, bool is_blocks, u16 *glyphs)
{
	static const char ascii[SPARK_LEVELS + 1] = "_.-:=+*#";
	float most = 0;

	for (u32 i = 0; i < n; i++)
		most = values[i] > most ? values[i] : most;
	for (u32 i = 0; i < n; i++) {
		u32 level = 0;

		if (!(values[i] >= 0)) {
			glyphs[i] = ' ';
			continue;
		}
		if (values[i] > 0) {
			/* infinity divided by itself is NaN, which is no level */
			const float part = values[i] / most * (SPARK_LEVELS - 1);

			level = part >= 0 && part < SPARK_LEVELS - 1 ? (u32)part + 1 :
								       SPARK_LEVELS - 1;
			level = level < SPARK_LEVELS ? level : SPARK_LEVELS - 1;
		}
		glyphs[i] = is_blocks ? SCREEN_BLOCK(level + 1) : (u16)ascii[level];
	}
}
