/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce export: the counters of all processes for Prometheus, by HTTP or once. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../cli.h"
#include "listen.h"
#include "metrics.h"

#define EXPORT_QPS	 256
#define EXPORT_PROCESSES 64
#define EXPORT_MOST	 65536

struct export {
	const char *dev;
	const char *listen;
	bool once, has_format;
	enum text_format format;
	u32 most_qps, most_processes;
	struct collector collector;
	struct http http;
};

/* ---- options ---- */

enum { OPTION_FORMAT = CLI_LONG, OPTION_QPS, OPTION_PROCESSES };

static const struct cli_option export_options[] = {
	{ 'l', "listen", "ADDR[:PORT]",
	  "listen on an IPv4 address, an IPv6 address in\n"
	  "brackets, or the path of a Unix socket", NULL },
	{ '1', "once", NULL, "print the metrics once and do not listen", NULL },
	{ OPTION_FORMAT, "format", "FORMAT",
	  "with --once: prometheus (default) or openmetrics", NULL },
	{ OPTION_QPS, "max-qps", "N",
	  "export the N busiest queue pairs, default 256, and\n"
	  "the sum of the others", "a number up to 65536" },
	{ OPTION_PROCESSES, "max-processes", "N", "export N processes, default 64",
	  "a number up to 65536" },
	{ 0 },
};

static int export_option(void *arg, int option, char *value)
{
	struct export *e = arg;
	bool good = true;

	switch (option) {
	case 'l':
		e->listen = value;
		break;
	case '1':
		e->once = true;
		break;
	case 'd':
		e->dev = value;
		break;
	case OPTION_FORMAT:
		e->has_format = true;
		if (!strcmp(value, "openmetrics"))
			e->format = TEXT_OPENMETRICS;
		else
			good = !strcmp(value, "prometheus");
		break;
	case OPTION_QPS:
		good = cli_number32(value, 0, EXPORT_MOST, &e->most_qps);
		break;
	case OPTION_PROCESSES:
		good = cli_number32(value, 0, EXPORT_MOST, &e->most_processes);
		break;
	}
	return good ? EXIT_OK : CLI_REFUSED;
}

static int export_arguments(struct export *e, int argc, char **argv)
{
	const int ret = cli_parse(&command_export, &argc, &argv, export_option, e);

	if (ret)
		return ret;
	if (argc)
		return usage_error(&command_export, "unexpected argument '%s'", argv[0]);
	if (e->has_format && !e->once)
		return usage_error(&command_export, "--format needs --once");
	if (e->once && e->listen)
		return usage_error(&command_export, "--once does not listen");
	return EXIT_OK;
}

/* ---- once ---- */

static int export_print(struct export *e)
{
	struct text t;
	int ret = EXIT_OK;

	collector_collect(&e->collector);
	text_begin(&t, e->format);
	metrics_write(&t, &e->collector, NULL);
	if (text_end(&t) || fwrite(t.at, 1, t.len, stdout) != t.len || fflush(stdout)) {
		fprintf(stderr, "xroce export: cannot write: %s\n", strerror(errno));
		ret = EXIT_FAILED;
	}
	free(t.at);
	return e->collector.is_up ? ret : EXIT_FAILED;
}

/* ---- serving ---- */

static int export_page(void *arg, struct text *t)
{
	struct export *e = arg;

	collector_collect(&e->collector);
	metrics_write(t, &e->collector, &e->http.counts);
	return 0;
}

/* Signals that end it, as a descriptor. */
static int export_signals(void)
{
	sigset_t ends;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Without a struct loop: one of the two descriptors ends the loop, the other has a set inside. */
static int export_loop(struct export *e, int signals)
{
	struct pollfd fds[] = { { .fd = signals, .events = POLLIN },
				{ .fd = http_fd(&e->http), .events = POLLIN } };

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), http_wait_ms(&e->http)) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			return EXIT_OK;
		if (http_run(&e->http))
			break;
	}
	fprintf(stderr, "xroce export: cannot serve any longer: %s\n", strerror(errno));
	return EXIT_FAILED;
}

static int export_serve(struct export *e)
{
	int fd = listen_inherited(), signals, ret;
	const bool is_inherited = fd != -ENOENT;
	struct listen_at at = { 0 };
	char where[160];

	if (!is_inherited) {
		const char *text = e->listen ? e->listen : "127.0.0.1";

		if (listen_parse(text, &at))
			return usage_error(&command_export, "'%s' is not an address to listen on",
					   text);
		fd = listen_open(&at);
	}
	if (fd < 0) {
		fprintf(stderr, "xroce export: cannot listen on %s: %s\n",
			is_inherited ? "systemd's socket" : e->listen ? e->listen : "127.0.0.1",
			strerror(-fd));
		return EXIT_FAILED;
	}
	listen_describe(fd, where, sizeof(where));
	signals = export_signals();
	ret = signals < 0 ? -errno : http_open(&e->http, fd, export_page, e);
	if (ret) {
		fprintf(stderr, "xroce export: cannot serve: %s\n", strerror(-ret));
		ret = EXIT_FAILED;
	} else {
		printf("xroce export: %s\n", where);
		fflush(stdout);
		notify_systemd("READY=1");
		ret = export_loop(e, signals);
		http_close(&e->http);
	}
	if (signals >= 0)
		close(signals);
	if (!is_inherited)
		listen_close(&at);
	return ret;
}

static int export_main(int argc, char **argv)
{
	struct export e = { .format = TEXT_PROMETHEUS,
			    .most_qps = EXPORT_QPS,
			    .most_processes = EXPORT_PROCESSES };
	struct netdev dev;
	int ret = export_arguments(&e, argc, argv);

	/* for the words that all subcommands have for it; later it may go, and come back */
	if (!ret && e.dev && strncmp(e.dev, "xroce_", 6))
		ret = find_device(&command_export, e.dev, &dev);
	if (!ret)
		ret = observe_options_raise_limit(&command_export);
	if (ret)
		return ret;
	collector_begin(&e.collector, e.dev, e.most_processes, e.most_qps);
	ret = e.once ? export_print(&e) : export_serve(&e);
	collector_end(&e.collector);
	return ret;
}

const struct command command_export = {
	.name = "export",
	.summary = "export all counters to Prometheus, over HTTP or once",
	.main = export_main,
	.help = "usage: xroce export [OPTION...]\n"
		"\n"
		"Serves the counters of every process on every interface at\n"
		"http://127.0.0.1:9791/metrics until it is stopped, as OpenMetrics, or in the\n"
		"Prometheus text format for clients that request it. Root sees all processes,\n"
		"other users their own processes that use a broker.\n"
		"\n",
	.letters = "d",
	.options = export_options,
	.help_end =
		"\n"
		"The connection is not encrypted, and any client that can connect sees the names\n"
		"of programs.\n"
		"\n"
		"Exit status: 0; 1 if it cannot listen or read the interfaces; 2 for wrong usage\n"
		"or no such interface.\n"
		"\n"
		"Examples:\n"
		"  xroce export --listen [::1]:9000\n"
		"  xroce export --once >xroce.prom.new &&\n"
		"          mv xroce.prom.new /var/lib/node_exporter/xroce.prom\n",
};
