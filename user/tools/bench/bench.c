/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce bench: its command line. */
#include <getopt.h>
#include <stdlib.h>

#include "bench.h"

#define LEAST_NS (NSEC_PER_MSEC)

enum bench_role { ROLE_CLIENT, ROLE_SERVER, ROLE_COMPARE };

struct bench_line {
	struct bench_options options;
	enum bench_role role;
};

static int bench_bad(const char *option, const char *text, const char *wants)
{
	return usage_error(&command_bench, "%s '%s' is not %s", option, text, wants);
}

/* ---- lists ---- */

static bool bench_add_way(struct bench_options *o, const char *word)
{
	for (u32 i = 0; i < BENCH_WAY_END; i++)
		if (!strcmp(word, bench_way_word[i]))
			return o->ways[i] = true;
	return false;
}

static int bench_set_ways(struct bench_options *o, char *list)
{
	char *one;

	memset(o->ways, 0, sizeof(o->ways));
	while ((one = strsep(&list, ",")))
		if (!bench_add_way(o, one))
			return bench_bad("-t", one, "one of send, write, read, ud, udp, tcp");
	return EXIT_OK;
}

static int bench_set_sizes(struct bench_options *o, char *list)
{
	char *one;
	u64 size;

	o->num_sizes = 0;
	while ((one = strsep(&list, ","))) {
		if (!args_size(one, BENCH_LEAST_SIZE, BENCH_MOST_SIZE, &size))
			return bench_bad("-s", one, "a size from 16 to 8M");
		if (o->num_sizes && size <= o->sizes[o->num_sizes - 1])
			return bench_bad("-s", one, "larger than the size before it");
		if (o->num_sizes == BENCH_MOST_SIZES)
			return bench_bad("-s", one, "one of at most 32 sizes");
		o->sizes[o->num_sizes++] = (u32)size;
	}
	return EXIT_OK;
}

static int bench_set_measure(struct bench_options *o, const char *word)
{
	const bool latency = !strcmp(word, "latency"), bandwidth = !strcmp(word, "bandwidth");

	if (!latency && !bandwidth)
		return bench_bad("--only", word, "latency or bandwidth");
	o->measures[BENCH_LATENCY] = latency;
	o->measures[BENCH_BANDWIDTH] = bandwidth;
	return EXIT_OK;
}

/* ---- options ---- */

static int bench_number(const char *option, u64 least, u64 most, const char *wants, u64 *out)
{
	return args_number(optarg, least, most, out) ? EXIT_OK : bench_bad(option, optarg, wants);
}

static int bench_option(struct bench_line *line, int opt)
{
	struct bench_options *o = &line->options;
	u64 number = 0;
	int ret = EXIT_OK;

	switch (opt) {
	case 't':
		return bench_set_ways(o, optarg);
	case 's':
		return bench_set_sizes(o, optarg);
	case 'O':
		return bench_set_measure(o, optarg);
	case 'D':
		return args_seconds(optarg, LEAST_NS, BENCH_MOST_NS, &o->duration_ns) ?
			       EXIT_OK :
			       bench_bad("-D", optarg, "a time from 0.001 to 60 s");
	case 'r':
		ret = bench_number("-r", 1, BENCH_MOST_ROUNDS, "a number from 1 to 100", &number);
		o->rounds = (u32)number;
		return ret;
	case 'm':
		if (!args_number(optarg, 256, 4096, &number) || (number & (number - 1)))
			return bench_bad("-m", optarg, "256, 512, 1024, 2048 or 4096");
		o->path_mtu = (u32)number;
		return ret;
	case 'p':
		ret = bench_number("-p", 1, UINT16_MAX, "a port", &number);
		o->port = (u16)number;
		return ret;
	case 'd':
		o->iface = optarg;
		return *optarg ? ret : bench_bad("-d", optarg, "an interface");
	case '4':
		o->family = AF_INET;
		return ret;
	case '6':
		o->family = AF_INET6;
		return ret;
	case 'e':
		o->events = true;
		return ret;
	case 'q':
		o->quiet = true;
		return ret;
	case 'j':
		o->json = true;
		return ret;
	case 'g':
		o->svg = optarg;
		return ret;
	case '1':
		o->once = true;
		return ret;
	default:
		line->role = opt == 'S' ? ROLE_SERVER : ROLE_COMPARE;
		return ret;
	}
}

/* ---- roles ---- */

static int bench_start(struct bench_line *line, char **argv, int args)
{
	struct bench_options *o = &line->options;

	switch (line->role) {
	case ROLE_SERVER:
		return args ? usage_error(&command_bench, "a server has no host") :
			      bench_server(o);
	case ROLE_COMPARE:
		return args == 2 ? bench_compare(argv[0], argv[1], o->json) :
				   usage_error(&command_bench, "--compare needs two files");
	default:
		if (args != 1)
			return usage_error(&command_bench,
					   args ? "more than one host" : "no host given");
		o->peer = argv[0];
		return bench_client(o);
	}
}

static int bench_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "transport", required_argument, NULL, 't' },
		{ "sizes", required_argument, NULL, 's' },
		{ "only", required_argument, NULL, 'O' },
		{ "duration", required_argument, NULL, 'D' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "events", no_argument, NULL, 'e' },
		{ "mtu", required_argument, NULL, 'm' },
		{ "dev", required_argument, NULL, 'd' },
		{ "port", required_argument, NULL, 'p' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "json", no_argument, NULL, 'j' },
		{ "svg", required_argument, NULL, 'g' },
		{ "server", no_argument, NULL, 'S' },
		{ "once", no_argument, NULL, '1' },
		{ "compare", no_argument, NULL, 'C' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct bench_line line = {
		.options = { .iface = getenv(NETDEV_ENV),
			     .family = AF_UNSPEC,
			     .port = BENCH_PORT,
			     .ways = { [BENCH_SEND] = true,
				       [BENCH_UDP] = true,
				       [BENCH_TCP] = true },
			     .measures = { true, true },
			     .sizes = { 64, 1024, 4096, 16384, 65536, 262144, 1048576 },
			     .num_sizes = 7,
			     .rounds = 3,
			     .duration_ns = NSEC_PER_SEC / 5 },
	};
	int opt, ret;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":t:s:D:r:m:d:p:46eqh", options, NULL)) != -1) {
		if (opt == ':')
			return usage_error(&command_bench, "option '%s' needs an argument",
					   argv[optind - 1]);
		if (opt == '?')
			return usage_error(&command_bench, "unknown option '%s'", argv[optind - 1]);
		if (opt == 'h') {
			command_help(&command_bench);
			return EXIT_OK;
		}
		ret = bench_option(&line, opt);
		if (ret)
			return ret;
	}
	if (line.options.iface && !*line.options.iface)
		line.options.iface = NULL;
	return bench_start(&line, argv + optind, argc - optind);
}

const struct command command_bench = {
	.name = "bench",
	.summary = "measure latency and bandwidth to a host, compared with UDP and TCP",
	.main = bench_main,
	.help = "usage: xroce bench [OPTION...] {HOST | --server | --compare A B}\n"
		"\n"
		"Measures round trips and bandwidth between this host and HOST, which runs\n"
		"'xroce bench --server', with RDMA verbs, and on the same path with UDP and TCP.\n"
		"Rounds are interleaved.\n"
		"\n"
		"  -t, --transport LIST  measure send, write, read (RC), ud, udp, tcp;\n"
		"                        default send,udp,tcp\n"
		"  -s, --sizes LIST      use message sizes of LIST, increasing, 16 to 8M;\n"
		"                        default 64,1k,4k,16k,64k,256k,1M\n"
		"  --only MEASURE        measure only latency or bandwidth\n"
		"  -D, --duration S      run each test for S seconds, at most 60; default 0.2\n"
		"  -r, --rounds N        run N rounds, 1 to 100; default 3\n"
		"  -e, --events          sleep until a completion event; default: both ends poll\n"
		"  -m, --mtu BYTES       set the path MTU; default: the largest of both devices\n"
		"  -d, --dev IFACE       measure from interface IFACE\n"
		"  -4, -6                use the first IPv4 or IPv6 address of HOST\n"
		"  -p, --port PORT       use TCP port PORT for control; default 18620\n"
		"  -q, --quiet           print no progress\n"
		"  --json                print the result as JSON, with histograms\n"
		"  --svg FILE            draw the result to FILE (needs gnuplot)\n"
		"  --server              be the other end, for one client at a time\n"
		"  --once                with --server: exit after the first client\n"
		"  --compare             compare two results of --json; a median is worse if the\n"
		"                        rounds do not overlap\n"
		"  -h, --help            print this help\n"
		"\n"
		"Exit status: 0 success; 1 failure, or a median of B is worse than that of A; 2\n"
		"wrong usage.\n"
		"\n"
		"Examples:\n"
		"  xroce bench --svg path.svg 192.0.2.7\n"
		"  xroce bench -t send,write,read --only bandwidth --json 192.0.2.7 >after.json\n"
		"  xroce bench --compare before.json after.json\n",
};
