/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=1 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: a file that `xroce bench --compare` reads. Looks for reads after the text's
 * end. An accepted document is bounded in depth and holds printable text only; it has the brackets
 * and commas, and reads the same, after it is written again, also by the writer of the command; cut
 * or continued, it is refused.
 *
 * scripts/fuzz.sh BUILD json SECONDS runs it. An input is the text.
 */
#include <math.h>

#include "../../user/tools/bench/json_read.h"
#include "../../user/tools/json.h"
#include "fuzz.h"

#define EXACT 9007199254740992.0 /* whole numbers below are exact in a double */

/* Reads a copy whose end is the end of its memory. */
static struct json_value *read_copy(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1);
	struct json_value *v;
	size_t at;

	REQUIRE(copy);
	memcpy(copy, text, len);
	v = json_read(copy, len, &at);
	REQUIRE(at <= len && (!v || at == len));
	free(copy);
	return v;
}

static void check_text(const char *text)
{
	for (; *text; text++)
		REQUIRE(*text >= ' ' && *text <= '~');
}

/* Returns the levels of the tree. */
static u32 check_tree(const struct json_value *v, bool is_named)
{
	u32 below = 0;

	REQUIRE(!v->name == !is_named && !v->text == (v->kind != JSON_TEXT));
	if (v->name)
		check_text(v->name);
	if (v->text)
		check_text(v->text);
	REQUIRE(isfinite(v->number) && (v->kind == JSON_NUMBER || v->number == 0));
	REQUIRE(!v->first || v->kind == JSON_ARRAY || v->kind == JSON_OBJECT);
	for (const struct json_value *m = v->first; m; m = m->next) {
		const u32 levels = check_tree(m, v->kind == JSON_OBJECT);

		below = levels > below ? levels : below;
	}
	return below + 1;
}

static bool is_same(const struct json_value *a, const struct json_value *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (a->kind != b->kind || a->is_true != b->is_true || a->number != b->number ||
		    (a->text && strcmp(a->text, b->text)) ||
		    (a->name && strcmp(a->name, b->name)) || !is_same(a->first, b->first))
			return false;
	return !a && !b;
}

/* ---- written again ---- */

static void write_text(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++)
		fprintf(f, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	fputc('"', f);
}

static void write_value(FILE *f, const struct json_value *v)
{
	const bool is_object = v->kind == JSON_OBJECT;

	if (v->name) {
		write_text(f, v->name);
		fputc(':', f);
	}
	if (v->kind == JSON_TEXT)
		write_text(f, v->text);
	else if (v->kind == JSON_NUMBER)
		fprintf(f, "%.17g", v->number);
	else if (v->kind == JSON_BOOL)
		fputs(v->is_true ? "true" : "false", f);
	else if (v->kind == JSON_NULL)
		fputs("null", f);
	else
		fputc(is_object ? '{' : '[', f);
	for (const struct json_value *m = v->first; m; m = m->next) {
		write_value(f, m);
		if (m->next)
			fputc(',', f);
	}
	if (is_object || v->kind == JSON_ARRAY)
		fputc(is_object ? '}' : ']', f);
}

/* By the command's writer, which writes whole numbers as they are. */
static void write_by_command(struct json *j, struct json_value *v)
{
	if (v->kind == JSON_NUMBER && (fabs(v->number) >= EXACT || v->number != trunc(v->number)))
		v->number = 1;
	if (v->kind == JSON_TEXT) {
		json_text(j, v->name, v->text);
	} else if (v->kind == JSON_NUMBER) {
		json_signed(j, v->name, (s64)v->number);
	} else if (v->kind == JSON_BOOL) {
		json_bool(j, v->name, v->is_true);
	} else if (v->kind == JSON_NULL) {
		json_null(j, v->name);
	} else {
		if (v->kind == JSON_OBJECT)
			json_object(j, v->name);
		else
			json_array(j, v->name);
		for (struct json_value *m = v->first; m; m = m->next)
			write_by_command(j, m);
		json_close(j);
	}
}

/* The next character outside of strings that is no part of a value; 0: there is none. */
static char next_mark(const char **at, const char *end)
{
	bool is_quoted = false;

	while (*at < end) {
		const char c = *(*at)++;

		if (is_quoted && c == '\\')
			(*at)++;
		else if (c == '"')
			is_quoted = !is_quoted;
		else if (!is_quoted && memchr("{}[],:", c, 6))
			return c;
	}
	return 0;
}

/* Both have the same brackets, commas and colons. */
static void check_marks(const char *a, size_t a_len, const char *b, size_t b_len)
{
	const char *const a_end = a + a_len, *const b_end = b + b_len;
	char mark;

	do {
		mark = next_mark(&a, a_end);
		REQUIRE(next_mark(&b, b_end) == mark);
	} while (mark);
}

static void check_again(struct json_value *v, bool by_command, const char *read, size_t read_len)
{
	struct json_value *again;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct json j;

	REQUIRE(f);
	if (by_command) {
		json_begin(&j, f);
		write_by_command(&j, v);
		json_end(&j);
	} else {
		write_value(f, v);
	}
	REQUIRE(!fclose(f));
	check_marks(read, read_len, text, len);
	again = read_copy(text, len);
	REQUIRE(again && is_same(v, again));
	json_read_free(again);
	free(text);
}

/* ---- cut and continued ---- */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void check_ends(const char *text, size_t len, const struct json_value *v)
{
	char *longer = malloc(len + 1);
	struct json_value *again;

	REQUIRE(longer);
	memcpy(longer, text, len);
	longer[len] = ' ';
	again = read_copy(longer, len + 1);
	REQUIRE(again && is_same(v, again));
	json_read_free(again);
	longer[len] = ',';
	REQUIRE(!read_copy(longer, len + 1));
	free(longer);
	while (len && is_space(text[len - 1]))
		len--;
	if (v->kind != JSON_NUMBER)
		REQUIRE(!read_copy(text, len - 1));
}

/* ---- seeds ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const seeds[] = {
		"{\"xroce_bench\":1,\"version\":\"1.0\",\"kernel\":\"6.12\",\"path_mtu\":1024,"
		"\"events\":false,\"latency\":[{\"way\":\"send\",\"size\":64,\"median_ns\":"
		"{\"min\":1e3,\"median\":2.5E+3,\"max\":-4e-1}}],\"bandwidth\":[]}",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u001b[2J\\u0041\\u20ac\x7f\xc3\xa9\"",
		" [ null , true , false , -0 , 0.5 , { \"a\" : [ { } ] , \"a\" : 2 } ] ",
		"-123456789.000e-30",
	};

	if (!fuzz_seed_dir())
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
		fuzz_seed("json", i, NULL, 0, seeds[i], strlen(seeds[i]));
	exit(0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct json_value *v = read_copy((const char *)data, size);
	u32 levels;

	if (!v)
		return 0;
	levels = check_tree(v, false);
	REQUIRE(levels <= JSON_READ_DEPTH);
	check_ends((const char *)data, size, v);
	check_again(v, false, (const char *)data, size);
	if (levels <= JSON_DEPTH)
		check_again(v, true, (const char *)data, size);
	json_read_free(v);
	return 0;
}
