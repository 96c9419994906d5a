/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prints the results of xroce bench as tables and as JSON. */
#include <sys/utsname.h>
#include <unistd.h>
#include <xroce/version.h>

#include "../json.h"
#include "bench.h"

#define BENCH_FORMAT 1 /* version of the JSON */

const char *const bench_way_word[BENCH_WAY_END] = {
#define BENCH_WAY_WORD(name, word, text) word,
	BENCH_WAYS(BENCH_WAY_WORD)
#undef BENCH_WAY_WORD
};
const char *const bench_way_text[BENCH_WAY_END] = {
#define BENCH_WAY_TEXT(name, word, text) text,
	BENCH_WAYS(BENCH_WAY_TEXT)
#undef BENCH_WAY_TEXT
};

/* ---- text ---- */

static void bench_print_latency(const struct bench_result *r, enum bench_way way, u32 size)
{
	const struct bench_point *p = &r->point[BENCH_LATENCY][way][size];
	const struct histogram *h = &p->all.rtt;
	const struct bench_spread s = bench_spread(p->round, p->rounds);

	printf("%8u  %-13s %8.1f %8.1f %8.1f  %8.1f %8.1f %8.1f %8.1f %8.1f",
	       r->options->sizes[size], bench_way_text[way], s.median / 1e3, s.min / 1e3,
	       s.max / 1e3, (double)h->min_ns / 1e3,
	       (double)histogram_percentile(h, 90) / 1e3,
	       (double)histogram_percentile(h, 99) / 1e3,
	       (double)histogram_percentile(h, 99.9) / 1e3, (double)h->max_ns / 1e3);
	if (p->all.lost)
		printf("  %llu lost", (unsigned long long)p->all.lost);
	printf("\n");
}

static double bench_lost_percent(const struct bench_point *p)
{
	return p->all.messages ? 100.0 * (double)p->all.lost / (double)p->all.messages : 0;
}

static void bench_print_bandwidth(const struct bench_result *r, enum bench_way way, u32 size)
{
	const struct bench_point *p = &r->point[BENCH_BANDWIDTH][way][size];
	const struct bench_spread s = bench_spread(p->round, p->rounds);

	printf("%8u  %-13s %10.1f %10.1f %10.1f %12.0f", r->options->sizes[size],
	       bench_way_text[way], s.median, s.min, s.max,
	       s.median * 1e6 / 8 / r->options->sizes[size]);
	if (p->all.lost)
		printf("  %.1f %% lost", bench_lost_percent(p));
	printf("\n");
}

static void bench_print_table(const struct bench_result *r, enum bench_measure m)
{
	for (u32 size = 0; size < r->options->num_sizes; size++)
		for (u32 way = 0; way < BENCH_WAY_END; way++) {
			if (!r->point[m][way][size].is_there)
				continue;
			if (m == BENCH_LATENCY)
				bench_print_latency(r, way, size);
			else
				bench_print_bandwidth(r, way, size);
		}
}

void bench_print(const struct bench_result *r)
{
	char name[OUTPUT_NAME];

	printf("%s (%s) to %s, path MTU %u, %s, %u rounds of %g s\n", r->peer.local_text,
	       output_name(r->peer.dev.name, name), r->peer.text, r->path_mtu,
	       r->options->events ? "events" : "polling", r->options->rounds,
	       (double)r->options->duration_ns / 1e9);
	if (r->options->measures[BENCH_LATENCY]) {
		printf("\nRound trip in us: the median of each round (median, least, greatest of "
		       "the rounds); of all rounds\n"
		       "   bytes  way             median    least greatest       min      90%%"
		       "      99%%    99.9%%      max\n");
		bench_print_table(r, BENCH_LATENCY);
	}
	if (r->options->measures[BENCH_BANDWIDTH]) {
		printf("\nBandwidth in Mbit/s (median, least, greatest of the rounds)\n"
		       "   bytes  way               median      least   greatest   messages/s\n");
		bench_print_table(r, BENCH_BANDWIDTH);
	}
}

/* ---- JSON ---- */

static void bench_json_point(struct json *j, const struct bench_result *r, enum bench_way way,
			     u32 size, const struct bench_point *p)
{
	json_text(j, "way", bench_way_word[way]);
	json_number(j, "size", r->options->sizes[size]);
	json_number(j, "messages", p->all.messages);
	json_number(j, "lost", p->all.lost);
}

static void bench_json_spread(struct json *j, const char *name, const struct bench_point *p,
			      u32 digits)
{
	const struct bench_spread s = bench_spread(p->round, p->rounds);

	json_object(j, name);
	json_real(j, "min", s.min, digits);
	json_real(j, "median", s.median, digits);
	json_real(j, "max", s.max, digits);
	json_array(j, "rounds");
	for (u32 i = 0; i < p->rounds; i++)
		json_real(j, NULL, p->round[i], digits);
	json_close(j);
	json_close(j);
}

static void bench_json_latency(struct json *j, const struct bench_point *p)
{
	static const double percent[] = { 1, 10, 50, 90, 99, 99.9, 99.99 };
	const struct histogram *h = &p->all.rtt;
	char name[16];

	bench_json_spread(j, "median_ns", p, 0);
	json_object(j, "rtt_ns");
	json_number(j, "min", h->min_ns);
	json_real(j, "mean", histogram_mean(h), 0);
	for (u32 i = 0; i < ARRAY_SIZE(percent); i++) {
		snprintf(name, sizeof(name), "p%g", percent[i]);
		json_number(j, name, histogram_percentile(h, percent[i]));
	}
	json_number(j, "max", h->max_ns);
	json_close(j);
	/* pairs: upper bound in ns, count */
	json_array(j, "histogram");
	for (u32 i = 0; i < HISTOGRAM_BINS; i++)
		if (h->bin[i]) {
			json_array(j, NULL);
			json_number(j, NULL, histogram_last_ns(i));
			json_number(j, NULL, h->bin[i]);
			json_close(j);
		}
	json_close(j);
}

static void bench_json_measure(struct json *j, const struct bench_result *r, enum bench_measure m)
{
	json_array(j, m == BENCH_LATENCY ? "latency" : "bandwidth");
	for (u32 size = 0; size < r->options->num_sizes; size++)
		for (u32 way = 0; way < BENCH_WAY_END; way++) {
			const struct bench_point *p = &r->point[m][way][size];

			if (!p->is_there)
				continue;
			json_object(j, NULL);
			bench_json_point(j, r, way, size, p);
			if (m == BENCH_LATENCY)
				bench_json_latency(j, p);
			else
				bench_json_spread(j, "mbps", p, 3);
			json_close(j);
		}
	json_close(j);
}

void bench_print_json(const struct bench_result *r)
{
	struct utsname host = { .release = "" };
	struct json j;

	uname(&host);
	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_number(&j, "xroce_bench", BENCH_FORMAT);
	json_text(&j, "version", XROCE_VERSION);
	json_text(&j, "kernel", host.release);
	json_number(&j, "cpus", (u64)sysconf(_SC_NPROCESSORS_ONLN));
	json_text(&j, "from", r->peer.local_text);
	json_text(&j, "peer", r->peer.text);
	json_text(&j, "interface", r->peer.dev.name);
	json_number(&j, "interface_mtu", r->peer.dev.mtu);
	json_number(&j, "path_mtu", r->path_mtu);
	json_bool(&j, "events", r->options->events);
	json_number(&j, "rounds", r->options->rounds);
	json_number(&j, "duration_ns", r->options->duration_ns);
	for (u32 m = 0; m < BENCH_MEASURE_END; m++)
		bench_json_measure(&j, r, m);
	json_close(&j);
	json_end(&j);
}
