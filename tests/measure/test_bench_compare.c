/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* Results that `xroce bench --compare` reads: whole documents, odd values. */
#include "../unit/unit.h"

#include <json-c/json.h>

#include "../../user/tools/bench/bench.h"
#include "../../user/tools/json.h"

static char *text;
static size_t text_bytes;

static struct json_object *parse(const char *document, size_t len)
{
	char *copy = exact_copy(document, len);
	struct json_object *v;
	size_t at;

	v = compare_parse(copy, len, &at);
	assert_true(at <= len);
	free(copy);
	return v;
}

/* Returns what the comparison prints. */
static const char *compare(const char *before, const char *after, bool as_json, u32 points,
			   u32 worse)
{
	struct json_object *a = parse(before, strlen(before)), *b = parse(after, strlen(after));
	FILE *const out = stdout;
	u32 got;

	assert_true(a && b);
	free(text);
	stdout = open_memstream(&text, &text_bytes);
	assert_int_equal(compare_results(a, b, as_json, &got), points);
	fclose(stdout);
	stdout = out;
	assert_int_equal(got, worse);
	json_object_put(a);
	json_object_put(b);
	return text;
}

#define POINT(way, size, min, median, max)                                                         \
	"{\"way\":\"" way "\",\"size\":" size ",\"median_ns\":{\"min\":" min ",\"median\":" median \
	",\"max\":" max "}}"
#define RESULT(points) "{\"xroce_bench\":1,\"latency\":[" points "]}"

static void compare_parse__documents(void **state)
{
	static const char *const good[] = { "{}", " { } \n", "{\"a\":[1,2.5e-3,{\"b\":null}]}" };
	static const char *const bad[] = {
		"", " ", "1", "[]", "\"a\"", "null", "{", "{}}", "{},", "{} 1", "{\"a\"}",
		"{\"a\":}", "{\"a\":1,}", "{a:1}", "{\"a\":\"\\x\"}",
		"{\"a\":\"\xff\"}", "{\"a\":[1}", "{\"a\":nul}", "{\"a\":True}", "{/* */}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct json_object *v = parse(good[i], strlen(good[i]));

		if (!v)
			fail_msg("refused: %s", good[i]);
		json_object_put(v);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i], strlen(bad[i])))
			fail_msg("taken: %s", bad[i]);
}

static void compare_parse__depth(void **state)
{
	char document[256] = "{\"a\":";
	struct json_object *v;

	for (u32 levels = 24; levels < 64; levels += 32) {
		memset(document + 5, '[', levels);
		memset(document + 5 + levels, ']', levels);
		strcpy(document + 5 + 2 * levels, "}");
		v = parse(document, strlen(document));
		assert_int_equal(v != NULL, levels == 24);
		json_object_put(v);
	}
}

/* A document of the writer's, cut at every length, is never taken before its last bracket. */
static void compare_parse__what_we_write(void **state)
{
	FILE *out;
	struct json j;

	free(text);
	out = open_memstream(&text, &text_bytes);
	json_begin(&j, out);
	json_open_object(&j, NULL);
	json_text(&j, "name \"x\"", "a\tb\\");
	json_open_array(&j, "list");
	json_real(&j, NULL, 1.25, 2);
	json_number(&j, NULL, ~0ull);
	json_null(&j, NULL);
	json_close(&j);
	json_close(&j);
	json_end(&j);
	fclose(out);
	for (size_t n = 0; n <= text_bytes; n++) {
		struct json_object *v = parse(text, n);

		assert_int_equal(v != NULL, n >= text_bytes - 1);
		json_object_put(v);
	}
}

static void compare_results__points(void **state)
{
	const char *before = RESULT(POINT("send", "64", "10", "11", "12") ","
				    POINT("read", "64", "10", "11", "12") ","
				    POINT("read", "128", "10", "11", "12"));
	const char *after = RESULT(POINT("read", "64", "20", "21", "22") ","
				   POINT("send", "64", "12", "12.5", "13"));

	assert_non_null(strstr(compare(before, after, false, 2, 1), "worse\n"));
	assert_non_null(strstr(text, "within the rounds\n"));
	assert_non_null(strstr(compare(after, before, false, 2, 0), "better\n"));
	assert_non_null(strstr(compare(before, after, true, 2, 1), "\"ratio\": 1.9091"));
}

/* Values of other kinds, or that are no numbers, are no points. */
static void compare_results__odd_values(void **state)
{
	static const char *const odd[] = {
		"{}", "{\"latency\":1}", "{\"latency\":{}}", "{\"latency\":[1,null,[]]}",
		RESULT("{\"way\":1,\"size\":[],\"median_ns\":[]}"),
		RESULT("{\"way\":\"send\",\"size\":64,\"median_ns\":{\"min\":null}}"),
		RESULT(POINT("send", "64", "0", "11", "12")),
		RESULT(POINT("send", "64", "12", "11", "10")),
		RESULT(POINT("send", "64", "10", "11", "1e999")),
		RESULT(POINT("send", "64", "10", "\"11\"", "12")),
		RESULT(POINT("send", "64", "NaN", "NaN", "NaN")),
	};

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		struct json_object *v = parse(odd[i], strlen(odd[i]));

		if (v)
			assert_string_equal(compare(odd[i], odd[i], false, 0, 0), "");
		json_object_put(v);
	}
}

/* No character of a foreign text controls a terminal. */
static void compare_results__text_is_printable(void **state)
{
	const char *result =
		RESULT(POINT("a\\u001b[2J\\u0000\xc3\xa9\x7f", "64", "10", "11", "12"));

	assert_non_null(strstr(compare(result, result, false, 1, 0), " a?[2J"));
	for (const char *c = text; *c; c++)
		assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compare_parse__documents),
		cmocka_unit_test(compare_parse__depth),
		cmocka_unit_test(compare_parse__what_we_write),
		cmocka_unit_test(compare_results__points),
		cmocka_unit_test(compare_results__odd_values),
		cmocka_unit_test(compare_results__text_is_printable),
	};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(text);
	return failed;
}
