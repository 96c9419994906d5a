/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Draws a result with gnuplot(1), if installed: the distribution of round trips of the smallest
 * message, and round trips and bandwidth over the message size.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

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

/* ---- data ---- */

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
	fprintf(stderr, "xroce bench: %s: %s\n", file,
		err == -EPIPE ? "gnuplot failed" : strerror(-err));
	return EXIT_FAILED;
}
