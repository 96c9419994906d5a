/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce bench --compare: compares two results point by point. A difference is reported only if the
 * rounds do not overlap; smaller ones may be noise. Computes the spread of rounds.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../json.h"
#include "bench.h"
#include "json_read.h"

static const struct {
	const char *array, *spread, *unit;
	bool less_is_better;
	double scale;
} measures[BENCH_MEASURE_END] = {
	[BENCH_LATENCY] = { "latency", "median_ns", "us", true, 1e-3 },
	[BENCH_BANDWIDTH] = { "bandwidth", "mbps", "Mbit/s", false, 1 },
};

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
static bool compare_spread(const struct json_value *point, const char *name,
			   struct bench_spread *out)
{
	const struct json_value *s = json_member(point, name);

	*out = (struct bench_spread){ .min = json_number_of(s, "min", -1),
				      .median = json_number_of(s, "median", -1),
				      .max = json_number_of(s, "max", -1) };
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
static const struct json_value *compare_find(const struct json_value *array,
					     const struct json_value *like)
{
	const char *way = json_text_of(like, "way");
	const double size = json_number_of(like, "size", 0);

	if (!array || array->kind != JSON_ARRAY)
		return NULL;
	for (const struct json_value *p = array->first; p; p = p->next)
		if (!strcmp(json_text_of(p, "way"), way) && json_number_of(p, "size", 0) == size)
			return p;
	return NULL;
}

/* ---- all points ---- */

static void compare_print(struct json *j, enum bench_measure m, const struct json_value *point,
			  const struct bench_spread *a, const struct bench_spread *b,
			  enum compare_verdict verdict)
{
	const double scale = measures[m].scale;

	if (!j) {
		printf("%8.0f  %-6s %10.1f %10.1f %-6s  %7.3g x  %s\n",
		       json_number_of(point, "size", 0), json_text_of(point, "way"),
		       a->median * scale, b->median * scale, measures[m].unit,
		       b->median / a->median, compare_word(verdict));
		return;
	}
	json_object(j, NULL);
	json_text(j, "measure", measures[m].array);
	json_text(j, "way", json_text_of(point, "way"));
	json_real(j, "size", json_number_of(point, "size", 0), 0);
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
static void compare_measure(struct json *j, enum bench_measure m, const struct json_value *before,
			    const struct json_value *after, struct compare_counts *counts)
{
	const struct json_value *first = json_member(before, measures[m].array);
	const struct json_value *second = json_member(after, measures[m].array);
	struct bench_spread a, b;
	bool has_title = false;

	if (!first || first->kind != JSON_ARRAY)
		return;
	for (const struct json_value *p = first->first; p; p = p->next) {
		const struct json_value *q = compare_find(second, p);
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
static void compare_conditions(const struct json_value *a, const struct json_value *b)
{
	static const char *const numbers[] = { "path_mtu", "interface_mtu", "cpus", "duration_ns" };
	static const char *const texts[] = { "kernel", "version" };
	const struct json_value *ea = json_member(a, "events"), *eb = json_member(b, "events");

	for (u32 i = 0; i < ARRAY_SIZE(numbers); i++) {
		const double x = json_number_of(a, numbers[i], 0);
		const double y = json_number_of(b, numbers[i], 0);

		if (x != y)
			printf("note: %s is %.0f before, %.0f after\n", numbers[i], x, y);
	}
	for (u32 i = 0; i < ARRAY_SIZE(texts); i++)
		if (strcmp(json_text_of(a, texts[i]), json_text_of(b, texts[i])))
			printf("note: %s is %s before, %s after\n", texts[i],
			       json_text_of(a, texts[i]), json_text_of(b, texts[i]));
	if (ea && eb && ea->is_true != eb->is_true)
		printf("note: one result used events, the other polling\n");
}

/* ---- files ---- */

/* Returns a result, or NULL after a line on standard error. */
static struct json_value *compare_load(const char *file)
{
	const int fd = open(file, O_RDONLY | O_CLOEXEC);
	const char *wrong = NULL;
	struct json_value *v = NULL;
	struct stat st;
	size_t at = 0;
	void *map;

	if (fd < 0 || fstat(fd, &st)) {
		fprintf(stderr, "xroce bench: cannot open %s: %s\n", file, strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	map = S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= JSON_READ_BYTES ?
		      mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) :
		      MAP_FAILED;
	close(fd);
	if (map == MAP_FAILED) {
		fprintf(stderr,
			"xroce bench: cannot read %s: not a result of 'xroce bench --json'\n",
			file);
		return NULL;
	}
	v = json_read(map, (size_t)st.st_size, &at);
	munmap(map, (size_t)st.st_size);
	if (!v)
		wrong = "invalid JSON";
	else if (json_number_of(v, "xroce_bench", 0) != 1)
		wrong = "not a result of 'xroce bench --json', or of another version";
	if (!wrong)
		return v;
	fprintf(stderr, "xroce bench: cannot read %s: %s", file, wrong);
	if (!v)
		fprintf(stderr, ", at byte %zu", at);
	fprintf(stderr, "\n");
	json_read_free(v);
	return NULL;
}

int bench_compare(const char *before, const char *after, bool as_json)
{
	struct json_value *a = compare_load(before), *b = a ? compare_load(after) : NULL;
	struct compare_counts counts = { 0 };
	struct json j;

	if (b && as_json) {
		json_begin(&j, stdout);
		json_array(&j, NULL);
	} else if (b) {
		printf("before: %s (%s to %s)\nafter:  %s (%s to %s)\n", before,
		       json_text_of(a, "from"), json_text_of(a, "peer"), after,
		       json_text_of(b, "from"), json_text_of(b, "peer"));
		compare_conditions(a, b);
	}
	for (u32 m = 0; b && m < BENCH_MEASURE_END; m++)
		compare_measure(as_json ? &j : NULL, m, a, b, &counts);
	if (b && as_json) {
		json_close(&j);
		json_end(&j);
	}
	if (b && !counts.points)
		fprintf(stderr, "xroce bench: the results have no transport and size in common\n");
	if (counts.worse)
		fprintf(stderr, "xroce bench: %u of %u medians are worse in %s\n", counts.worse,
			counts.points, after);
	json_read_free(a);
	json_read_free(b);
	return counts.points && !counts.worse ? EXIT_OK : EXIT_FAILED;
}
