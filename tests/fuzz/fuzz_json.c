/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=1 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: a file that `xroce bench --compare` reads. Looks for reads after the text's
 * end, and for leaks. Compares an accepted document with itself and with a plain result: the output
 * has printable characters only, as JSON it is read again, and a result is not worse than itself.
 *
 * scripts/fuzz.sh BUILD json SECONDS runs it. An input is the text.
 */
#include <json-c/json.h>
#include <string.h>

#include "../../user/tools/bench/bench.h"
#include "fuzz.h"

static const char plain[] =
	"{\"xroce_bench\":1,\"version\":\"1.0\",\"kernel\":\"6.12\",\"path_mtu\":1024,"
	"\"events\":false,\"latency\":[{\"way\":\"send\",\"size\":64,\"median_ns\":"
	"{\"min\":1e3,\"median\":2.5E+3,\"max\":4e3}}],\"bandwidth\":[{\"way\":\"read\","
	"\"size\":4096,\"mbps\":{\"min\":100,\"median\":200,\"max\":300.5}}]}";

/* Reads a copy whose end is the end of its memory. */
static struct json_object *read_copy(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1);
	struct json_object *v;
	size_t at;

	REQUIRE(copy);
	memcpy(copy, text, len);
	v = compare_parse(copy, len, &at);
	REQUIRE(at <= len);
	free(copy);
	return v;
}

static void check_printed(const char *text, size_t len, bool is_json)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *v;

	for (size_t i = 0; i < len; i++)
		REQUIRE(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
	if (is_json) {
		json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
		v = json_tokener_parse_ex(tokener, text, (int)len);
		REQUIRE(json_object_is_type(v, json_type_array));
		json_object_put(v);
	}
	json_tokener_free(tokener);
}

/* Returns the points that are worse in after. */
static u32 check_compared(struct json_object *before, struct json_object *after, bool as_json)
{
	FILE *const out = stdout;
	char *text = NULL;
	size_t len = 0;
	u32 worse, points;

	stdout = open_memstream(&text, &len);
	REQUIRE(stdout);
	points = compare_results(before, after, as_json, &worse);
	REQUIRE(!fclose(stdout));
	stdout = out;
	REQUIRE(worse <= points);
	check_printed(text, len, as_json);
	free(text);
	return worse;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const seeds[] = {
		plain,
		"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
		"{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u001b[2J\\u0041\\u20ac\x7f\xc3\xa9\"}",
		" { \"latency\" : [ null , true , false , -0 , 0.5 , { \"way\" : 1 } ] } ",
		"{\"duration_ns\":-123456789.000e-30,\"cpus\":18446744073709551616}",
	};

	if (!fuzz_seed_dir())
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
		fuzz_seed("json", i, NULL, 0, seeds[i], strlen(seeds[i]));
	exit(0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct json_object *v = read_copy((const char *)data, size);
	struct json_object *other;

	if (!v)
		return 0;
	other = read_copy(plain, sizeof(plain) - 1);
	REQUIRE(other);
	for (u32 as_json = 0; as_json < 2; as_json++) {
		REQUIRE(!check_compared(v, v, as_json));
		check_compared(v, other, as_json);
		check_compared(other, v, as_json);
	}
	json_object_put(v);
	json_object_put(other);
	return 0;
}
