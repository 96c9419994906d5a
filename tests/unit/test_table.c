/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* What the command prints: JSON that a reader takes, tables whose columns stand in line. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../user/tools/table.h"

static char *text;
static size_t text_bytes;

static FILE *begin(void)
{
	free(text);
	text = NULL;
	return open_memstream(&text, &text_bytes);
}

static void printed(FILE *out, const char *expected)
{
	fclose(out);
	assert_string_equal(text, expected);
}

static void json__nested(void **state)
{
	FILE *out = begin();
	struct json j;

	json_begin(&j, out);
	json_open_object(&j, NULL);
	json_number(&j, "most", ~0ull);
	json_signed(&j, "least", -5);
	json_open_array(&j, "list");
	json_text(&j, NULL, "a");
	json_null(&j, "ignored");
	json_open_object(&j, NULL);
	json_number(&j, "n", 1);
	json_close(&j);
	json_close(&j);
	json_boolean(&j, "no", false);
	json_close(&j);
	json_end(&j);
	printed(out, "{\n  \"most\": 18446744073709551615,\n  \"least\": -5,\n  \"list\": [\n"
		     "    \"a\",\n    null,\n    {\n      \"n\": 1\n    }\n  ],\n"
		     "  \"no\": false\n}\n");
}

static void json__compact(void **state)
{
	FILE *out = begin();
	struct json j;

	json_begin(&j, out);
	j.is_compact = true;
	for (u32 i = 0; i < 2; i++) {
		json_open_array(&j, NULL);
		json_real(&j, NULL, 1.25, 1);
		json_real(&j, NULL, 0.0 / 0.0, 1);
		json_open_object(&j, NULL);
		json_number(&j, "n", i);
		json_close(&j);
		json_close(&j);
		json_end(&j);
	}
	printed(out, "[1.2,null,{\"n\":0}]\n[1.2,null,{\"n\":1}]\n");
}

static void json_text__escapes(void **state)
{
	FILE *out = begin();
	struct json j;

	json_begin(&j, out);
	j.is_compact = true;
	json_open_array(&j, NULL);
	json_text(&j, NULL, "a\"b\\c\n\001\033[2J\177\xff/");
	json_close(&j);
	json_end(&j);
	printed(out, "[\"a\\\"b\\\\c\\n\\u0001\\u001b[2J\ufffd\ufffd/\"]\n");
}

/* All 64 bits of a counter, and the decimals that the caller wants. */
static void json_number__exact(void **state)
{
	FILE *out = begin();
	struct json j;

	json_begin(&j, out);
	j.is_compact = true;
	json_open_array(&j, NULL);
	json_number(&j, NULL, 9007199254740993ull);
	json_number(&j, NULL, 1ull << 63);
	json_number(&j, NULL, ~0ull - 1);
	json_signed(&j, NULL, INT64_MIN);
	json_real(&j, NULL, 0.1, 9);
	json_real(&j, NULL, 1e21, 0);
	json_real(&j, NULL, -1.0 / 0.0, 3);
	json_close(&j);
	json_end(&j);
	printed(out, "[9007199254740993,9223372036854775808,18446744073709551614,"
		     "-9223372036854775808,0.100000000,1000000000000000000000,null]\n");
}

static const struct column columns[] = {
	COLUMN_TEXT("name", "NAME"),
	COLUMN("count", "N"),
	COLUMN_JSON("hidden"),
	COLUMN_TEXT("last", "LAST"),
};

static void fill(struct table *t)
{
	table_begin(t, columns, ARRAY_SIZE(columns));
	table_text(t, "a");
	table_number(t, 7);
	table_number(t, 1);
	table_text(t, "x");
	table_text(t, "long-name");
	table_number_as(t, 1000, "1k");
	table_bool(t, true);
	table_text(t, "yonder");
	table_mark_bad(t);
	table_text(t, "b");
	table_number(t, 7);
	table_none(t);
	table_none(t);
}

static void table_print__in_line(void **state)
{
	FILE *out = begin();
	struct table t;

	fill(&t);
	table_print(&t, out, 0, false);
	table_end(&t);
	printed(out, "NAME        N  LAST\n"
		     "a           7  x\n"
		     "long-name  1k  yonder\n"
		     "b           7  -\n");
}

/* Of a terminal's width: text is cut, a number is whole or left out. */
static void table_print__fits(void **state)
{
	static const char *const expected[] = {
		[8] = "NAME\na\nlong-nam\nb\n",
		[9] = "NAME\na\nlong-name\nb\n",
		[12] = "NAME\na\nlong-name\nb\n",
		[13] = "NAME        N\na           7\nlong-name  1k\nb           7\n",
		[16] = "NAME        N\na           7\nlong-name  1k\nb           7\n",
		[19] = "NAME        N  LAST\na           7  x\nlong-name  1k  yond\n"
		       "b           7  -\n",
	};
	struct table t;

	fill(&t);
	for (u32 width = 0; width < ARRAY_SIZE(expected); width++) {
		FILE *out = begin();

		table_print(&t, out, width, false);
		if (expected[width])
			printed(out, expected[width]);
		else
			fclose(out);
	}
	table_end(&t);
}

static void table_print__coloured(void **state)
{
	FILE *out = begin();
	struct table t;

	fill(&t);
	table_print(&t, out, 0, true);
	table_end(&t);
	printed(out, "\033[1mNAME     \033[0m  \033[1m N\033[0m  \033[1mLAST\033[0m\n"
		     "a           7  x\n"
		     "long-name  1k  \033[31myonder\033[0m\n"
		     "b           7  -\n");
}

static void table_print__no_rows(void **state)
{
	FILE *out = begin();
	struct table t;

	table_begin(&t, columns, ARRAY_SIZE(columns));
	table_sort(&t, 0, true);
	table_print(&t, out, 20, false);
	table_print(&t, out, 0, true);
	table_end(&t);
	printed(out, "NAME  N  LAST\n\033[1mNAME\033[0m  \033[1mN\033[0m  \033[1mLAST\033[0m\n");
}

/* Names are foreign: nothing that a terminal obeys, in any locale. */
static void table_print__escapes(void **state)
{
	FILE *out = begin();
	struct table t;

	setlocale(LC_ALL, "C.UTF-8");
	table_begin(&t, columns, ARRAY_SIZE(columns));
	table_text(&t, "\033[2J\n\x7f\x9b\xc2\x9b\r");
	table_number(&t, ~0ull);
	table_none(&t);
	table_text(&t, "\\x\t");
	table_print(&t, out, 0, true);
	table_end(&t);
	fclose(out);
	for (const char *c = strchr(text, '\n') + 1; *c; c++)
		assert_true((*c >= ' ' && *c <= '~') || (*c == '\n' && !c[1]));
	assert_non_null(strstr(text, "18446744073709551615"));
	setlocale(LC_ALL, "C");
}

static void table_sort__stable(void **state)
{
	FILE *out = begin();
	struct table t;

	fill(&t);
	table_sort(&t, 1, true);
	table_print(&t, out, 0, false);
	table_sort(&t, 0, false);
	table_print(&t, out, 0, false);
	table_end(&t);
	printed(out, "NAME        N  LAST\n"
		     "long-name  1k  yonder\n"
		     "a           7  x\n"
		     "b           7  -\n"
		     "NAME        N  LAST\n"
		     "a           7  x\n"
		     "b           7  -\n"
		     "long-name  1k  yonder\n");
}

static void table_json__all_columns(void **state)
{
	FILE *out = begin();
	struct table t;
	struct json j;

	fill(&t);
	json_begin(&j, out);
	j.is_compact = true;
	json_open_object(&j, NULL);
	table_json(&t, &j, "rows");
	json_close(&j);
	json_end(&j);
	table_end(&t);
	printed(out, "{\"rows\":[{\"name\":\"a\",\"count\":7,\"hidden\":1,\"last\":\"x\"},"
		     "{\"name\":\"long-name\",\"count\":1000,\"hidden\":true,\"last\":\"yonder\"},"
		     "{\"name\":\"b\",\"count\":7,\"hidden\":null,\"last\":null}]}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json__nested),
		cmocka_unit_test(json__compact),
		cmocka_unit_test(json_text__escapes),
		cmocka_unit_test(json_number__exact),
		cmocka_unit_test(table_print__in_line),
		cmocka_unit_test(table_print__fits),
		cmocka_unit_test(table_print__coloured),
		cmocka_unit_test(table_print__no_rows),
		cmocka_unit_test(table_print__escapes),
		cmocka_unit_test(table_sort__stable),
		cmocka_unit_test(table_json__all_columns),
	};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(text);
	return failed;
}
