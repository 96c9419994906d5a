/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce ping: its command line, and its results as text and as JSON. */
#include <getopt.h>
#include <stdlib.h>

#include "../json.h"
#include "ping.h"

#define LEAST_INTERVAL_NS NSEC_PER_MSEC
#define MOST_SECONDS	  (86400 * NSEC_PER_SEC)

/* ---- options ---- */

static bool is_server;

static int ping_bad(const char *option, const char *text, const char *wants)
{
	return usage_error(&command_ping, "%s '%s' is not %s", option, text, wants);
}

static int ping_option(struct ping_options *o, int opt)
{
	u64 number;

	switch (opt) {
	case 'c':
		return args_number(optarg, 1, UINT32_MAX, &o->count) ?
			       EXIT_OK :
			       ping_bad("-c", optarg, "a number from 1 up");
	case 'i':
		return args_seconds(optarg, LEAST_INTERVAL_NS, MOST_SECONDS, &o->interval_ns) ?
			       EXIT_OK :
			       ping_bad("-i", optarg, "a time of at least 0.001 s");
	case 'W':
		return args_seconds(optarg, LEAST_INTERVAL_NS, MOST_SECONDS, &o->timeout_ns) ?
			       EXIT_OK :
			       ping_bad("-W", optarg, "a time of at least 0.001 s");
	case 'w':
		return args_seconds(optarg, LEAST_INTERVAL_NS, MOST_SECONDS, &o->deadline_ns) ?
			       EXIT_OK :
			       ping_bad("-w", optarg, "a time of at least 0.001 s");
	case 's':
		if (!args_number(optarg, sizeof(struct ping_header), DATAGRAM_MOST, &number))
			return ping_bad("-s", optarg, "a number of bytes from 24 to 4096");
		o->size = (u32)number;
		return EXIT_OK;
	case 'd':
		o->iface = optarg;
		return *optarg ? EXIT_OK : ping_bad("-d", optarg, "an interface");
	case '4':
		o->family = AF_INET;
		return EXIT_OK;
	case '6':
		o->family = AF_INET6;
		return EXIT_OK;
	case 'q':
		o->quiet = true;
		return EXIT_OK;
	case 'j':
		o->json = o->quiet = true;
		return EXIT_OK;
	default:
		is_server = true;
		return EXIT_OK;
	}
}

static int ping_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'c' },
		{ "interval", required_argument, NULL, 'i' },
		{ "size", required_argument, NULL, 's' },
		{ "timeout", required_argument, NULL, 'W' },
		{ "deadline", required_argument, NULL, 'w' },
		{ "dev", required_argument, NULL, 'd' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "json", no_argument, NULL, 'j' },
		{ "server", no_argument, NULL, 'S' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct ping_options o = {
		.iface = getenv(NETDEV_ENV),
		.family = AF_UNSPEC,
		.interval_ns = NSEC_PER_SEC,
		.timeout_ns = NSEC_PER_SEC,
	};
	int opt, ret;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":c:i:s:W:w:d:46qh", options, NULL)) != -1) {
		if (opt == ':')
			return usage_error(&command_ping, "option '%s' needs an argument",
					   argv[optind - 1]);
		if (opt == '?')
			return usage_error(&command_ping, "unknown option '%s'", argv[optind - 1]);
		if (opt == 'h') {
			command_help(&command_ping);
			return EXIT_OK;
		}
		ret = ping_option(&o, opt);
		if (ret)
			return ret;
	}
	if (o.iface && !*o.iface)
		o.iface = NULL;
	if (is_server)
		return optind == argc ? ping_server(&o) :
					usage_error(&command_ping, "a server has no peer");
	if (optind + 1 != argc)
		return usage_error(&command_ping, optind == argc ? "no peer given" :
								   "more than one peer");
	o.peer = argv[optind];
	return ping_client(&o);
}

const struct command command_ping = {
	.name = "ping",
	.summary = "measure round trips to the RDMA device of a peer",
	.main = ping_main,
	.help = "usage: xroce ping [OPTION...] PEER | xroce ping --server [--dev IFACE]\n"
		"\n"
		"Sends messages of the connection manager (256 bytes, QP 1 to QP 1) to the RDMA\n"
		"device of PEER and measures the round-trip time. On PEER one of these answers:\n"
		"  - the kernel's connection manager: Soft-RoCE, or an adapter, with rdma_cm;\n"
		"  - with xroce: a broker, a program that uses rdma_cm, or 'xroce ping --server'.\n"
		"    A program that owns its interface and uses only verbs does not answer.\n"
		"\n"
		"  -c, --count N        stop after N messages\n"
		"  -i, --interval S     send every S seconds, at least 0.001; default 1\n"
		"  -s, --size BYTES     send datagrams of 24 to 4096 bytes, which 'xroce ping\n"
		"                       --server' echoes\n"
		"  -W, --timeout S      wait S seconds for the last answer; default 1\n"
		"  -w, --deadline S     stop after S seconds\n"
		"  -d, --dev IFACE      send from interface IFACE\n"
		"  -4, -6               use the first IPv4 or IPv6 address of PEER\n"
		"  -q, --quiet          print only the summary\n"
		"  --json               print only the summary, as JSON\n"
		"  --server             answer peers and echo their datagrams until interrupted\n"
		"  -h, --help           print this help\n"
		"\n"
		"If a server answers, the path MTU is measured; otherwise an upper bound is\n"
		"printed.\n"
		"\n"
		"Exit status, like ping(8): 0 if there was an answer, 1 if there was none, 2 for\n"
		"errors.\n"
		"\n"
		"Examples:\n"
		"  xroce ping -c 5 192.0.2.7\n"
		"  xroce ping -s 1024 -i 0.01 -c 1000 -q 192.0.2.7\n",
};

/* ---- results ---- */

static const double ping_percents[] = { 50, 90, 99, 99.9 };

static double ping_ms(double ns)
{
	return ns / 1e6;
}

static double ping_loss_percent(const struct ping_result *r)
{
	return r->sent ? 100.0 * (double)(r->sent - r->received) / (double)r->sent : 0;
}

static void ping_print_json(const struct peer *peer, const struct ping_result *r)
{
	struct json j;
	char name[16];

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_text(&j, "peer", peer->text);
	json_text(&j, "from", peer->local_text);
	json_text(&j, "interface", peer->dev.name);
	json_text(&j, "answered_by", !r->received    ? "nobody" :
				     r->has_server ? "xroce ping --server" :
						     "connection manager");
	json_number(&j, "bytes", r->bytes);
	json_number(&j, "sent", r->sent);
	json_number(&j, "received", r->received);
	json_number(&j, "duplicates", r->duplicates);
	json_number(&j, "damaged", r->damaged);
	json_real(&j, "loss_percent", ping_loss_percent(r), 3);
	json_number(&j, "elapsed_ns", r->elapsed_ns);
	if (r->received) {
		json_object(&j, "rtt_ns");
		json_number(&j, "min", r->rtt.min_ns);
		json_real(&j, "avg", histogram_mean(&r->rtt), 0);
		json_number(&j, "max", r->rtt.max_ns);
		json_real(&j, "mdev", histogram_deviation(&r->rtt), 0);
		for (u32 i = 0; i < ARRAY_SIZE(ping_percents); i++) {
			snprintf(name, sizeof(name), "p%g", ping_percents[i]);
			json_number(&j, name, histogram_percentile(&r->rtt, ping_percents[i]));
		}
		json_close(&j);
	}
	json_object(&j, "path_mtu");
	if (r->path_mtu)
		json_number(&j, "found", r->path_mtu);
	else
		json_null(&j, "found");
	json_number(&j, "at_most", r->path_mtu_most);
	json_number(&j, "interface_mtu", r->link_mtu);
	json_number(&j, "route_mtu", r->route_mtu);
	json_close(&j);
	json_close(&j);
	json_end(&j);
}

static void ping_print_mtu(const struct ping_result *r)
{
	if (r->path_mtu && r->path_mtu >= r->path_mtu_most)
		printf("path MTU %u: datagrams of that size returned, and the interface (MTU %u) "
		       "allows no larger ones\n",
		       r->path_mtu, r->link_mtu);
	else if (r->path_mtu)
		printf("path MTU %u: datagrams of that size returned, larger ones did not\n",
		       r->path_mtu);
	else if (r->has_server)
		printf("path MTU: no datagram returned\n");
	else
		printf("path MTU %u at most, because of the MTU of the interface (%u) and of the "
		       "route (%u); to measure it, run 'xroce ping --server' there\n",
		       r->path_mtu_most, r->link_mtu, r->route_mtu);
}

void ping_print(const struct ping_options *options, const struct peer *peer,
		const struct ping_result *r)
{
	if (options->json) {
		ping_print_json(peer, r);
		return;
	}
	printf("\n--- %s xroce ping statistics ---\n", peer->text);
	printf("%llu sent, %llu received, ", (unsigned long long)r->sent,
	       (unsigned long long)r->received);
	if (r->duplicates)
		printf("%llu duplicates, ", (unsigned long long)r->duplicates);
	if (r->damaged)
		printf("%llu damaged, ", (unsigned long long)r->damaged);
	printf("%.4g%% loss, time %.0f ms\n", ping_loss_percent(r), ping_ms((double)r->elapsed_ns));
	if (!r->received) {
		printf("no answer: 'xroce ping --help' lists the programs that answer\n");
		return;
	}
	printf("rtt min/avg/max/mdev = %.3f/%.3f/%.3f/%.3f ms\n", ping_ms((double)r->rtt.min_ns),
	       ping_ms(histogram_mean(&r->rtt)), ping_ms((double)r->rtt.max_ns),
	       ping_ms(histogram_deviation(&r->rtt)));
	printf("rtt");
	for (u32 i = 0; i < ARRAY_SIZE(ping_percents); i++)
		printf("%s %g%% %.3f", i ? "," : "", ping_percents[i],
		       ping_ms((double)histogram_percentile(&r->rtt, ping_percents[i])));
	printf(" ms\n");
	ping_print_mtu(r);
}
