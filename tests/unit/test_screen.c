/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* The grid of a frame, spark lines, numbers in few columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../user/tools/top/screen.h"

static struct screen screen;

static void begin(u32 width, u32 height)
{
	assert_int_equal(screen_resize(&screen, width, height), 0);
}

static void shows(u32 line, const char *expected)
{
	char text[3 * SCREEN_WIDTH_MAX + 1];

	screen_line(&screen, line, text);
	assert_string_equal(text, expected);
}

static void screen_put__stays_in_its_line(void **state)
{
	begin(5, 2);
	assert_int_equal(screen_put(&screen, 0, 3, STYLE_PLAIN, "abc"), 5);
	assert_int_equal(screen_put(&screen, 2, 0, STYLE_PLAIN, "x"), 0);
	assert_int_equal(screen_put(&screen, 1, 9, STYLE_PLAIN, "x"), 9);
	shows(0, "   ab");
	shows(1, "");
	shows(2, "");
}

/* ESC, a newline, UTF-8, C1 controls, DEL: a column each, and nothing that a terminal obeys. */
static void screen_put__only_what_can_be_printed(void **state)
{
	begin(20, 1);
	screen_put(&screen, 0, 0, STYLE_PLAIN, "a\033[2Jb\n\xe4\xb8\xad\xc2\x9b\x7f~");
	shows(0, "a?[2Jb???????~");
	screen_glyph(&screen, 0, 0, STYLE_PLAIN, 0x4e2d);
	screen_glyph(&screen, 0, 1, STYLE_PLAIN, SCREEN_BLOCK(8));
	screen_glyph(&screen, 0, 2, STYLE_PLAIN, SCREEN_BLOCK(9));
	shows(0, "?\xe2\x96\x88?2Jb???????~");
}

static void screen_resize__in_bounds(void **state)
{
	begin(65535, 65535);
	assert_int_equal(screen.width, SCREEN_WIDTH_MAX);
	assert_int_equal(screen.height, SCREEN_HEIGHT_MAX);
	begin(0, 0);
	assert_int_equal(screen_put(&screen, 0, 0, STYLE_PLAIN, "x"), 0);
	screen_end(&screen);
}

static void spark_number__five_columns(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{ SPARK_NONE, "-" }, { 0, "0" }, { 0.04, "0.0" }, { 0.5, "0.5" }, { 7, "7" },
		{ 9.949, "9.9" }, { 9.951, "10" }, { 99.5, "100" }, { 999, "999" },
		{ 999.4, "999" }, { 999.5, "1.00k" }, { 9994, "9.99k" }, { 9995, "10.0k" },
		{ 99949, "99.9k" }, { 99950, "100k" }, { 999499, "999k" }, { 999500, "1.00M" },
		{ 12.34e9, "12.3G" }, { 18446744073709551615.0, "18.4E" }, { 1e27, ">999Y" },
		{ 1e300, ">999Y" }, { 0.0 / 0.0, "-" },
	};
	char text[SPARK_TEXT];

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_string_equal(spark_number(rows[i].value, text), rows[i].text);
		assert_true(strlen(text) <= 5);
	}
}

static void spark(const float *values, u32 n, bool is_blocks, const char *expected)
{
	u16 glyphs[16];

	spark_line(values, n, is_blocks, glyphs);
	begin(16, 1);
	for (u32 i = 0; i < n; i++)
		screen_glyph(&screen, 0, i, STYLE_PLAIN, glyphs[i]);
	shows(0, expected);
}

static void spark_line__relative_to_the_largest(void **state)
{
	const float rise[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, none[] = { -1, 0, 0 };
	const float tiny[] = { 1, 1e30f, 0 }, odd[] = { 0.0f / 0.0f, 1.0f / 0.0f, 5 };

	spark(rise, 8, true, "\u2581\u2583\u2584\u2585\u2586\u2587\u2588\u2588");
	spark(rise, 8, false, "_-:=+*##");
	spark(none, 3, false, " __");
	/* a nonzero value is not drawn as 0, however small it is */
	spark(tiny, 3, false, ".#_");
	spark(odd, 3, false, " #.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(screen_put__stays_in_its_line),
		cmocka_unit_test(screen_put__only_what_can_be_printed),
		cmocka_unit_test(screen_resize__in_bounds),
		cmocka_unit_test(spark_number__five_columns),
		cmocka_unit_test(spark_line__relative_to_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
