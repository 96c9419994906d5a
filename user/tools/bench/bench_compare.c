/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce bench --compare: compares two results point by point. A difference is reported only if the
 * rounds do not overlap; smaller ones may be noise. Computes the spread of rounds.
 */
#include <fcntl.h>
#include <json-c/json.h>
#include <json-c/json_visit.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../json.h"
#include "../output.h"
#include "bench.h"

#define COMPARE_DEPTH 32	   /* levels of a result */
#define COMPARE_BYTES (64u << 20) /* of a file */

static const struct {
	const char *array, *spread, *unit;
	bool less_is_better;
	double scale;
} measures[BENCH_MEASURE_END] = {
	[BENCH_LATENCY] = { "latency", "median_ns", "us", true, 1e-3 },
	[BENCH_BANDWIDTH] = { "bandwidth", "mbps", "Mbit/s", false, 1 },
};

/* ---- a result, by json-c ---- */

/* Returns the member's number, or otherwise. */
static double compare_number(struct json_object *v, const char *name, double otherwise)
{
	struct json_object *m = json_object_object_get(v, name);
	const bool is_number = json_object_is_type(m, json_type_int) ||
			       json_object_is_type(m, json_type_double);
	const double number = is_number ? json_object_get_double(m) : otherwise;

	return isfinite(number) ? number : otherwise;
}

/* Returns the member's text, or "". */
static const char *compare_text(struct json_object *v, const char *name)
{
	struct json_object *m = json_object_object_get(v, name);

	return json_object_is_type(m, json_type_string) ? json_object_get_string(m) : "";
}

/* Returns the number of elements of a member, 0 if it is no array. */
static size_t compare_length(struct json_object *v, const char *name)
{
	struct json_object *m = json_object_object_get(v, name);

	return json_object_is_type(m, json_type_array) ? json_object_array_length(m) : 0;
}

static struct json_object *compare_point(struct json_object *v, const char *array, size_t i)
{
	return json_object_array_get_idx(json_object_object_get(v, array), i);
}

/* Replaces what a terminal might obey: a result may come from another host. */
static int compare_clean(struct json_object *v, int flags, struct json_object *parent,
			 const char *name, size_t *index, void *arg)
{
	char *text;
	int ret;

	if (!json_object_is_type(v, json_type_string))
		return JSON_C_VISIT_RETURN_CONTINUE;
	text = strdup(json_object_get_string(v));
	if (!text)
		return JSON_C_VISIT_RETURN_ERROR;
	output_clean(text);
	ret = json_object_set_string(v, text) ? JSON_C_VISIT_RETURN_CONTINUE :
						JSON_C_VISIT_RETURN_ERROR;
	free(text);
	return ret;
}

struct json_object *compare_parse(const char *text, size_t len, size_t *at)
{
	struct json_tokener *tokener = json_tokener_new_ex(COMPARE_DEPTH);
	struct json_object *v;

	*at = 0;
	if (!tokener)
		return NULL;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	v = json_tokener_parse_ex(tokener, text, (int)len);
	*at = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	if (json_object_is_type(v, json_type_object) && !json_c_visit(v, 0, compare_clean, NULL))
		return v;
	json_object_put(v);
	return NULL;
}

/* ---- one point ---- */

static int bench_compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

struct bench_spread bench_spread(const double *round, u32 rounds)
{
	double sorted[BENCH_MOST_ROUNDS];

	rounds = min_u32(rounds, BENCH_MOST_ROUNDS);
	if (!rounds)
		return (struct bench_spread){ 0 };
	memcpy(sorted, round, rounds * sizeof(*sorted));
	qsort(sorted, rounds, sizeof(*sorted), bench_compare_doubles);
	return (struct bench_spread){
		.min = sorted[0],
		.median = (sorted[(rounds - 1) / 2] + sorted[rounds / 2]) / 2,
		.max = sorted[rounds - 1],
	};
}

/* Returns false if the spread is missing or inconsistent. */
static bool compare_spread(struct json_object *point, const char *name,
			   struct bench_spread *out)
{
	struct json_object *s = json_object_object_get(point, name);

	*out = (struct bench_spread){ .min = compare_number(s, "min", -1),
				      .median = compare_number(s, "median", -1),
				      .max = compare_number(s, "max", -1) };
	return out->min > 0 && out->median >= out->min && out->max >= out->median;
}

enum compare_verdict compare_points(const struct bench_spread *before,
				    const struct bench_spread *after, bool less_is_better)
{
	if (after->min <= before->max && before->min <= after->max)
		return COMPARE_SAME;
	return (after->median < before->median) == less_is_better ? COMPARE_BETTER : COMPARE_WORSE;
}

const char *compare_word(enum compare_verdict verdict)
{
	static const char *const word[] = {
		[COMPARE_SAME] = "within the rounds",
		[COMPARE_BETTER] = "better",
		[COMPARE_WORSE] = "worse",
	};

	return word[verdict];
}

/* Returns the point of the same way and size in the other result, or NULL. */
static struct json_object *compare_find(struct json_object *result, const char *array,
					struct json_object *like)
{
	const char *way = compare_text(like, "way");
	const double size = compare_number(like, "size", 0);

	for (size_t i = 0; i < compare_length(result, array); i++) {
		struct json_object *p = compare_point(result, array, i);

		if (!strcmp(compare_text(p, "way"), way) && compare_number(p, "size", 0) == size)
			return p;
	}
	return NULL;
}

/* ---- all points ---- */

static void compare_print(struct json *j, enum bench_measure m, struct json_object *point,
			  const struct bench_spread *a, const struct bench_spread *b,
			  enum compare_verdict verdict)
{
	const double scale = measures[m].scale;

	if (!j) {
		printf("%8.0f  %-6s %10.1f %10.1f %-6s  %7.3g x  %s\n",
		       compare_number(point, "size", 0), compare_text(point, "way"),
		       a->median * scale, b->median * scale, measures[m].unit,
		       b->median / a->median, compare_word(verdict));
		return;
	}
	json_open_object(j, NULL);
	json_text(j, "measure", measures[m].array);
	json_text(j, "way", compare_text(point, "way"));
	json_real(j, "size", compare_number(point, "size", 0), 0);
	json_real(j, "before", a->median, 3);
	json_real(j, "after", b->median, 3);
	json_real(j, "ratio", b->median / a->median, 4);
	json_text(j, "verdict", compare_word(verdict));
	json_close(j);
}

/* Points that both results have, and points that are worse in the second. */
struct compare_counts {
	u32 points, worse;
};

/* Prints the points of a measure that both results have, and adds them to counts. */
static void compare_measure(struct json *j, enum bench_measure m, struct json_object *before,
			    struct json_object *after, struct compare_counts *counts)
{
	struct bench_spread a, b;
	bool has_title = false;

	for (size_t i = 0; i < compare_length(before, measures[m].array); i++) {
		struct json_object *p = compare_point(before, measures[m].array, i);
		struct json_object *q = compare_find(after, measures[m].array, p);
		enum compare_verdict verdict;

		if (!compare_spread(p, measures[m].spread, &a) ||
		    !compare_spread(q, measures[m].spread, &b))
			continue;
		if (!has_title && !j)
			printf("\n%s, medians\n"
			       "   bytes  way        before      after             after/before\n",
			       m == BENCH_LATENCY ? "Round trip" : "Bandwidth");
		has_title = true;
		verdict = compare_points(&a, &b, measures[m].less_is_better);
		compare_print(j, m, p, &a, &b, verdict);
		counts->points++;
		counts->worse += verdict == COMPARE_WORSE;
	}
}

/* Prints each condition that differs between the results, as the numbers then depend on it. */
static void compare_conditions(struct json_object *a, struct json_object *b)
{
	static const char *const numbers[] = { "path_mtu", "interface_mtu", "cpus", "duration_ns" };
	static const char *const texts[] = { "kernel", "version" };
	struct json_object *ea = json_object_object_get(a, "events");
	struct json_object *eb = json_object_object_get(b, "events");

	for (u32 i = 0; i < ARRAY_SIZE(numbers); i++) {
		const double x = compare_number(a, numbers[i], 0);
		const double y = compare_number(b, numbers[i], 0);

		if (x != y)
			printf("note: %s is %.0f before, %.0f after\n", numbers[i], x, y);
	}
	for (u32 i = 0; i < ARRAY_SIZE(texts); i++)
		if (strcmp(compare_text(a, texts[i]), compare_text(b, texts[i])))
			printf("note: %s is %s before, %s after\n", texts[i],
			       compare_text(a, texts[i]), compare_text(b, texts[i]));
	if (ea && eb && json_object_get_boolean(ea) != json_object_get_boolean(eb))
		printf("note: one result used events, the other polling\n");
}

/* ---- files ---- */

/* Returns a result, or NULL after a line on standard error. */
static struct json_object *compare_load(const char *file)
{
	const int fd = open(file, O_RDONLY | O_CLOEXEC);
	const char *wrong = NULL;
	struct json_object *v = NULL;
	struct stat st;
	size_t at = 0;
	void *map;

	if (fd < 0 || fstat(fd, &st)) {
		fprintf(stderr, "xroce bench: cannot open %s: %s\n", file, strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	map = S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= COMPARE_BYTES ?
		      mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) :
		      MAP_FAILED;
	close(fd);
	if (map == MAP_FAILED) {
		fprintf(stderr,
			"xroce bench: cannot read %s: not a result of 'xroce bench --json'\n",
			file);
		return NULL;
	}
	v = compare_parse(map, (size_t)st.st_size, &at);
	munmap(map, (size_t)st.st_size);
	if (!v)
		wrong = "invalid JSON";
	else if (compare_number(v, "xroce_bench", 0) != 1)
		wrong = "not a result of 'xroce bench --json', or of another version";
	if (!wrong)
		return v;
	fprintf(stderr, "xroce bench: cannot read %s: %s", file, wrong);
	if (!v)
		fprintf(stderr, ", at byte %zu", at);
	fprintf(stderr, "\n");
	json_object_put(v);
	return NULL;
}

u32 compare_results(struct json_object *before, struct json_object *after, bool as_json,
		    u32 *worse)
{
	struct compare_counts counts = { 0 };
	struct json j;

	if (as_json) {
		json_begin(&j, stdout);
		json_open_array(&j, NULL);
	} else {
		compare_conditions(before, after);
	}
	for (u32 m = 0; m < BENCH_MEASURE_END; m++)
		compare_measure(as_json ? &j : NULL, m, before, after, &counts);
	if (as_json) {
		json_close(&j);
		json_end(&j);
	}
	*worse = counts.worse;
	return counts.points;
}

int bench_compare(const char *before, const char *after, bool as_json)
{
	struct json_object *a = compare_load(before), *b = a ? compare_load(after) : NULL;
	u32 points = 0, worse = 0;

	if (b && !as_json)
		printf("before: %s (%s to %s)\nafter:  %s (%s to %s)\n", before,
		       compare_text(a, "from"), compare_text(a, "peer"), after,
		       compare_text(b, "from"), compare_text(b, "peer"));
	if (b)
		points = compare_results(a, b, as_json, &worse);
	if (b && !points)
		fprintf(stderr, "xroce bench: the results have no transport and size in common\n");
	if (worse)
		fprintf(stderr, "xroce bench: %u of %u medians are worse in %s\n", worse, points,
			after);
	json_object_put(a);
	json_object_put(b);
	return points && !worse ? EXIT_OK : EXIT_FAILED;
}
