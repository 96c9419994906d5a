/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* The JSON reader: valid and invalid JSON, and the output of xroce's writer. */
#include "../unit/unit.h"

#include "../../user/tools/bench/json_read.h"
#include "../../user/tools/json.h"

static struct json_value *read_text(const char *text)
{
	const size_t len = strlen(text);
	char *copy = exact_copy(text, len);
	struct json_value *v;
	size_t at;

	v = json_read(copy, len, &at);
	assert_true(at <= len);
	free(copy);
	return v;
}

static void json_read__documents(void **state)
{
	static const char *const good[] = {
		"null", " true ", "false", "0", "-0", "12", "-1.5", "1e3", "1E+3", "2.5e-3", "\"\"",
		"[]", "{}", "[ ]", "{ }", "[1,2 , 3]", "{\"a\":1}", "{ \"a\" : [ { } ] , \"b\":2 }",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u20ac\"", "[[[[]]]]",
	};
	static const char *const bad[] = {
		"", " ", "nul", "nulll", "True", "01", "-", "+1", "1.", ".5", "1e", "1e+", "0x1",
		"NaN", "inf", "1e999", "\"", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
		"\"\n\"", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{", "{\"a\"", "{\"a\":",
		"{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{a:1}", "{1:1}", "{\"a\" 1}", "1 2", "[]]",
		"'a'", "[1}", "{\"a\":1]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct json_value *v = read_text(good[i]);

		if (!v)
			fail_msg("refused: %s", good[i]);
		json_read_free(v);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (read_text(bad[i]))
			fail_msg("taken: %s", bad[i]);
}

static void json_read__values(void **state)
{
	struct json_value *v =
		read_text("{\"n\":-2.5e1,\"t\":\"a\\n\\u0042\\u20ac\",\"b\":true,\"l\":[1,\"x\"],"
			  "\"n\":7}");
	const struct json_value *l = json_member(v, "l");

	assert_non_null(v);
	assert_true(json_number_of(v, "n", 0) == -25);
	assert_string_equal(json_text_of(v, "t"), "a?B?");
	assert_true(json_member(v, "b")->is_true);
	assert_int_equal(l->kind, JSON_ARRAY);
	assert_true(l->first->number == 1);
	assert_string_equal(l->first->next->text, "x");
	assert_null(l->first->next->next);
	assert_true(json_number_of(v, "t", 9) == 9);
	assert_true(json_number_of(v, "none", 9) == 9);
	assert_string_equal(json_text_of(v, "n"), "");
	assert_null(json_member(l, "n"));
	assert_null(json_member(NULL, "n"));
	json_read_free(v);
}

/* No character of a foreign text controls a terminal. */
static void json_read__text_is_printable(void **state)
{
	struct json_value *v = read_text("{\"a\\u001b[2J\":\"~ \\u0000\\u001b\\b\\u007f"
					 "\x7f\x9b\xc3\xa9\"}");

	assert_non_null(v);
	assert_string_equal(v->first->name, "a?[2J");
	assert_string_equal(v->first->text, "~ ????????");
	json_read_free(v);
}

static void json_read__depth(void **state)
{
	char text[2 * JSON_READ_DEPTH + 4];

	for (u32 depth = JSON_READ_DEPTH - 1; depth <= JSON_READ_DEPTH + 1; depth++) {
		struct json_value *v;

		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		text[2 * depth] = 0;
		v = read_text(text);
		assert_int_equal(v != NULL, depth <= JSON_READ_DEPTH);
		json_read_free(v);
	}
}

/* A document of the writer's, whole, and cut at every length: never taken when it is not whole. */
static void json_read__what_we_write(void **state)
{
	char *text = NULL;
	size_t len = 0, at;
	FILE *out = open_memstream(&text, &len);
	struct json_value *v;
	struct json j;

	json_begin(&j, out);
	json_object(&j, NULL);
	json_text(&j, "name \"x\"", "a\tb\\");
	json_array(&j, "list");
	json_real(&j, NULL, 1.25, 2);
	json_number(&j, NULL, UINT32_MAX);
	json_null(&j, NULL);
	json_close(&j);
	json_close(&j);
	json_end(&j);
	fclose(out);
	v = json_read(text, len, &at);
	assert_non_null(v);
	assert_string_equal(json_text_of(v, "name \"x\""), "a?b\\");
	assert_true(json_member(v, "list")->first->number == 1.25);
	json_read_free(v);
	for (size_t n = 0; n < len && text[n] != 0; n++) {
		char *copy = exact_copy(text, n);

		v = json_read(copy, n, &at);
		/* but for the newline at its end */
		assert_int_equal(v != NULL, n == len - 1);
		json_read_free(v);
		free(copy);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_read__documents),
		cmocka_unit_test(json_read__values),
		cmocka_unit_test(json_read__text_is_printable),
		cmocka_unit_test(json_read__depth),
		cmocka_unit_test(json_read__what_we_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
