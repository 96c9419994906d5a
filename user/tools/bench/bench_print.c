/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prints the results of xroce bench as tables and as JSON. Draws them with gnuplot(1), if
 * installed: the distribution of round trips of the smallest message, and round trips and bandwidth
 * over the message size.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
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

	json_open_object(j, name);
	json_real(j, "min", s.min, digits);
	json_real(j, "median", s.median, digits);
	json_real(j, "max", s.max, digits);
	json_open_array(j, "rounds");
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
	json_open_object(j, "rtt_ns");
	json_number(j, "min", h->min_ns);
	json_real(j, "mean", histogram_mean(h), 0);
	for (u32 i = 0; i < ARRAY_SIZE(percent); i++) {
		snprintf(name, sizeof(name), "p%g", percent[i]);
		json_number(j, name, histogram_percentile(h, percent[i]));
	}
	json_number(j, "max", h->max_ns);
	json_close(j);
	/* pairs: upper bound in ns, count */
	json_open_array(j, "histogram");
	for (u32 i = 0; i < HISTOGRAM_BINS; i++)
		if (h->bin[i]) {
			json_open_array(j, NULL);
			json_number(j, NULL, histogram_last_ns(i));
			json_number(j, NULL, h->bin[i]);
			json_close(j);
		}
	json_close(j);
}

static void bench_json_measure(struct json *j, const struct bench_result *r, enum bench_measure m)
{
	json_open_array(j, m == BENCH_LATENCY ? "latency" : "bandwidth");
	for (u32 size = 0; size < r->options->num_sizes; size++)
		for (u32 way = 0; way < BENCH_WAY_END; way++) {
			const struct bench_point *p = &r->point[m][way][size];

			if (!p->is_there)
				continue;
			json_open_object(j, NULL);
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
	json_open_object(&j, NULL);
	json_number(&j, "xroce_bench", BENCH_FORMAT);
	json_text(&j, "version", XROCE_VERSION);
	json_text(&j, "kernel", host.release);
	json_number(&j, "cpus", (u64)sysconf(_SC_NPROCESSORS_ONLN));
	json_text(&j, "from", r->peer.local_text);
	json_text(&j, "peer", r->peer.text);
	json_text(&j, "interface", r->peer.dev.name);
	json_number(&j, "interface_mtu", r->peer.dev.mtu);
	json_number(&j, "path_mtu", r->path_mtu);
	json_boolean(&j, "events", r->options->events);
	json_number(&j, "rounds", r->options->rounds);
	json_number(&j, "duration_ns", r->options->duration_ns);
	for (u32 m = 0; m < BENCH_MEASURE_END; m++)
		bench_json_measure(&j, r, m);
	json_close(&j);
	json_end(&j);
}

/* ---- pictures ---- */

/* By Okabe and Ito: distinguishable with colour blindness. */
static const char *const colour[BENCH_WAY_END] = { "#0072B2", "#009E73", "#CC79A7",
						   "#56B4E9", "#E69F00", "#D55E00" };

bool bench_svg_possible(void)
{
	const char *path = getenv("PATH");
	char file[4096];

	for (path = path ? path : "/bin:/usr/bin"; *path; path += *path == ':') {
		const size_t len = strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s/gnuplot", (int)len, path);
		if (len && access(file, X_OK) == 0)
			return true;
		path += len;
	}
	fprintf(stderr, "xroce bench: --svg needs gnuplot; install it (Debian: gnuplot-nox), or "
			"save the result with --json\n");
	return false;
}

/* ---- pictures: data ---- */

static bool svg_has(const struct bench_result *r, enum bench_measure m, enum bench_way way)
{
	for (u32 i = 0; i < r->options->num_sizes; i++)
		if (r->point[m][way][i].is_there)
			return true;
	return false;
}

/* columns: size; median, least and greatest round; 99th percentile */
static void svg_points(FILE *g, const struct bench_result *r, enum bench_measure m,
		       enum bench_way way)
{
	fprintf(g, "$m%u_%u << EOD\n", m, way);
	for (u32 i = 0; i < r->options->num_sizes; i++) {
		const struct bench_point *p = &r->point[m][way][i];
		const struct bench_spread s = bench_spread(p->round, p->rounds);
		const double scale = 1e-3; /* ns to us; Mbit/s to Gbit/s */

		if (p->is_there)
			fprintf(g, "%u %.6g %.6g %.6g %.6g\n", r->options->sizes[i],
				s.median * scale, s.min * scale, s.max * scale,
				(double)histogram_percentile(&p->all.rtt, 99) * scale);
	}
	fprintf(g, "EOD\n");
}

/* Returns the first size with round trips. */
static u32 svg_first_size(const struct bench_result *r)
{
	for (u32 i = 0; i < r->options->num_sizes; i++)
		for (u32 way = 0; way < BENCH_WAY_END; way++)
			if (r->point[BENCH_LATENCY][way][i].is_there)
				return i;
	return 0;
}

/* columns: us; per cent of round trips up to that time */
static void svg_distribution(FILE *g, const struct bench_result *r, enum bench_way way)
{
	const struct histogram *h = &r->point[BENCH_LATENCY][way][svg_first_size(r)].all.rtt;
	u64 seen = 0;

	fprintf(g, "$d%u << EOD\n", way);
	for (u32 i = 0; i < HISTOGRAM_BINS; i++) {
		if (!h->bin[i])
			continue;
		if (!seen)
			fprintf(g, "%.6g 0\n", (double)h->min_ns / 1e3);
		seen += h->bin[i];
		fprintf(g, "%.6g %.6g\n", (double)min_u64(histogram_last_ns(i), h->max_ns) / 1e3,
			100.0 * (double)seen / (double)h->count);
	}
	fprintf(g, "EOD\n");
}

/* ---- panels ---- */

static void svg_size_axis(FILE *g, const struct bench_result *r)
{
	fprintf(g, "set logscale x 2\nset xlabel 'message, bytes'\nset xtics (");
	for (u32 i = 0; i < r->options->num_sizes; i++) {
		const u32 size = r->options->sizes[i];
		const bool mega = !(size % (1 << 20)), kilo = !(size % (1 << 10));

		fprintf(g, "%s'%u%s' %u", i ? ", " : "",
			mega ? size >> 20 : kilo ? size >> 10 : size,
			mega ? " M" : kilo ? " k" : "", size);
	}
	fprintf(g, ")\nset xrange [%g:%g]\n", r->options->sizes[0] / 1.2,
		r->options->sizes[r->options->num_sizes - 1] * 1.2);
}

/* Returns the end of the x axis: 99.9 % of each way fit; the JSON has the longest. */
static double svg_longest_us(const struct bench_result *r)
{
	const u32 first = svg_first_size(r);
	u64 most = 0;

	for (u32 way = 0; way < BENCH_WAY_END; way++) {
		const struct histogram *h = &r->point[BENCH_LATENCY][way][first].all.rtt;

		most = max_u64(most, histogram_percentile(h, 99.9));
	}
	return (double)most * 1.2 / 1e3;
}

static void svg_plot_distribution(FILE *g, const struct bench_result *r)
{
	const char *comma = "plot";

	fprintf(g, "set title 'Round trips of %u bytes: how many took no longer (to 99.9 %%)'\n"
		   "set logscale x 10\nset xlabel 'us'\nset ylabel '%%'\nset yrange [0:100]\n"
		   "set xrange [*:%g]\nset xtics autofreq\n",
		r->options->sizes[svg_first_size(r)], svg_longest_us(r));
	for (u32 way = 0; way < BENCH_WAY_END; way++)
		if (r->point[BENCH_LATENCY][way][svg_first_size(r)].is_there) {
			fprintf(g, "%s $d%u using 1:2 with steps lw 2 lc rgb '%s' title '%s'",
				comma, way, colour[way], bench_way_text[way]);
			comma = ",";
		}
	fprintf(g, "\nunset logscale\nset yrange [*:*]\n");
}

static void svg_plot_sizes(FILE *g, const struct bench_result *r, enum bench_measure m)
{
	const bool latency = m == BENCH_LATENCY;
	const char *comma = "plot";

	fprintf(g, "set title '%s'\nset ylabel '%s'\n%s\n",
		latency ? "Round trip: median of the rounds, their spread; dashed: 99 % of all" :
			  "Bandwidth: median of the rounds, their spread",
		latency ? "us" : "Gbit/s",
		latency ? "set logscale y 10" : "unset logscale y\nset yrange [0:*]");
	svg_size_axis(g, r);
	for (u32 way = 0; way < BENCH_WAY_END; way++) {
		if (!svg_has(r, m, way))
			continue;
		fprintf(g, "%s $m%u_%u using 1:2:3:4 with yerrorlines lw 2 pt 7 ps 0.5 "
			   "lc rgb '%s' title '%s'", comma, m, way, colour[way],
			bench_way_text[way]);
		comma = ",";
		if (latency)
			fprintf(g, ", $m%u_%u using 1:5 with lines lw 1 dt 2 lc rgb '%s' notitle",
				m, way, colour[way]);
	}
	fprintf(g, "\nunset logscale\n");
}

static void svg_write(FILE *g, const struct bench_result *r)
{
	const bool latency = r->options->measures[BENCH_LATENCY];
	const bool bandwidth = r->options->measures[BENCH_BANDWIDTH];
	const u32 panels = (latency ? 2 : 0) + (bandwidth ? 1 : 0);

	for (u32 m = 0; m < BENCH_MEASURE_END; m++)
		for (u32 way = 0; way < BENCH_WAY_END; way++)
			if (svg_has(r, m, way))
				svg_points(g, r, m, way);
	for (u32 way = 0; latency && way < BENCH_WAY_END; way++)
		if (r->point[BENCH_LATENCY][way][svg_first_size(r)].is_there)
			svg_distribution(g, r, way);
	fprintf(g, "set terminal svg size 1000,%u font 'sans-serif,13' background '#ffffff'\n"
		   "set grid lt 1 lc rgb '#dddddd'\nset border 3\nset tics nomirror\n"
		   "set lmargin 12\nset rmargin 22\nset key outside right top\n"
		   "set multiplot layout %u,1 title \"xroce bench, %s to %s: path MTU %u, %s, "
		   "%u rounds of %g s\"\n",
		60 + 360 * panels, panels, r->peer.local_text, r->peer.text, r->path_mtu,
		r->options->events ? "events" : "polling", r->options->rounds,
		(double)r->options->duration_ns / 1e9);
	if (latency) {
		svg_plot_distribution(g, r);
		svg_plot_sizes(g, r, BENCH_LATENCY);
	}
	if (bandwidth)
		svg_plot_sizes(g, r, BENCH_BANDWIDTH);
	fprintf(g, "unset multiplot\n");
}

/* ---- gnuplot ---- */

/* Starts gnuplot with the file as standard output, so no name passes through its language. */
static pid_t svg_start(int in, int out)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(127);
	execlp("gnuplot", "gnuplot", "-", (char *)NULL);
	_exit(127);
}

static int svg_draw(const struct bench_result *r, int out)
{
	int fds[2], status = -1;
	FILE *g;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	g = fdopen(fds[1], "w");
	pid = g ? svg_start(fds[0], out) : -1;
	close(fds[0]);
	if (!g) {
		close(fds[1]);
		return -ENOMEM;
	}
	/* an early exit of gnuplot is reported by its status, not by SIGPIPE */
	signal(SIGPIPE, SIG_IGN);
	if (pid > 0)
		svg_write(g, r);
	fclose(g);
	if (pid < 0)
		return -EAGAIN;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EPIPE;
}

int bench_svg(const struct bench_result *r, const char *file)
{
	const int out = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int err = out < 0 ? -errno : svg_draw(r, out);

	if (out >= 0 && close(out) && !err)
		err = -errno;
	if (!err)
		return EXIT_OK;
	fprintf(stderr, "xroce bench: cannot draw %s: %s\n", file,
		err == -EPIPE ? "gnuplot failed" : strerror(-err));
	return EXIT_FAILED;
}
