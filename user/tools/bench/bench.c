/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce bench: its command line. */
#include <stdlib.h>

#include "bench.h"

#define LEAST_NS   NSEC_PER_MSEC
#define BENCH_LIST 256 /* longest list, in characters */

enum bench_role { ROLE_CLIENT, ROLE_SERVER, ROLE_COMPARE };

struct bench_line {
	struct bench_options options;
	enum bench_role role;
};

/* ---- lists ---- */

static bool bench_add_way(struct bench_options *o, const char *word)
{
	for (u32 i = 0; i < BENCH_WAY_END; i++)
		if (!strcmp(word, bench_way_word[i]))
			return o->ways[i] = true;
	return false;
}

/* Copies a list, to be cut into words. Returns false if it is too long. */
static bool bench_copy(char copy[BENCH_LIST], const char *list)
{
	return snprintf(copy, BENCH_LIST, "%s", list) < BENCH_LIST;
}

static bool bench_set_ways(struct bench_options *o, const char *list)
{
	char copy[BENCH_LIST], *rest = copy, *one;
	bool good = bench_copy(copy, list);

	memset(o->ways, 0, sizeof(o->ways));
	while (good && (one = strsep(&rest, ",")))
		good = bench_add_way(o, one);
	return good;
}

static bool bench_add_size(struct bench_options *o, const char *text)
{
	u64 size;

	if (!args_size(text, BENCH_LEAST_SIZE, BENCH_MOST_SIZE, &size) ||
	    o->num_sizes == BENCH_MOST_SIZES ||
	    (o->num_sizes && size <= o->sizes[o->num_sizes - 1]))
		return false;
	o->sizes[o->num_sizes++] = (u32)size;
	return true;
}

static bool bench_set_sizes(struct bench_options *o, const char *list)
{
	char copy[BENCH_LIST], *rest = copy, *one;
	bool good = bench_copy(copy, list);

	o->num_sizes = 0;
	while (good && (one = strsep(&rest, ",")))
		good = bench_add_size(o, one);
	return good;
}

static bool bench_set_measure(struct bench_options *o, const char *word)
{
	o->measures[BENCH_LATENCY] = !strcmp(word, "latency");
	o->measures[BENCH_BANDWIDTH] = !strcmp(word, "bandwidth");
	return o->measures[BENCH_LATENCY] || o->measures[BENCH_BANDWIDTH];
}

/* ---- options ---- */

enum {
	OPTION_ONLY = CLI_LONG,
	OPTION_ROUNDS,
	OPTION_SLEEP,
	OPTION_MTU,
	OPTION_TCP_PORT,
	OPTION_QUIET,
	OPTION_SVG,
	OPTION_SERVER,
	OPTION_ONE_CLIENT,
	OPTION_COMPARE,
};

static const struct cli_option bench_table[] = {
	{ 't', "transport", "LIST",
	  "measure send, write, read (RC), ud, udp, tcp;\n"
	  "default send,udp,tcp", "a list of send, write, read, ud, udp, tcp" },
	{ 's', "sizes", "LIST",
	  "use message sizes of LIST, increasing, 16 to 8M;\n"
	  "default 64,1k,4k,16k,64k,256k,1M", "up to 32 increasing sizes from 16 to 8M" },
	{ OPTION_ONLY, "only", "MEASURE", "measure only latency or bandwidth",
	  "latency or bandwidth" },
	{ 'D', "duration", "S", "run each test for S seconds, at most 60; default 0.2",
	  "seconds from 0.001 to 60" },
	{ OPTION_ROUNDS, "rounds", "N", "run N rounds, 1 to 100; default 3",
	  "a number from 1 to 100" },
	{ OPTION_SLEEP, "sleep", NULL, "sleep until a completion event; default: both ends poll",
	  NULL },
	{ OPTION_MTU, "mtu", "BYTES", "set the path MTU; default: the largest of both devices",
	  "256, 512, 1024, 2048 or 4096" },
	{ 'd', "dev", "IFACE", "measure from interface IFACE", "an interface" },
	{ '4', NULL, NULL, "use the first IPv4 address of HOST", NULL },
	{ '6', NULL, NULL, "use the first IPv6 address of HOST", NULL },
	{ OPTION_TCP_PORT, "tcp-port", "PORT", "use TCP port PORT for control; default 18620",
	  "a port" },
	{ OPTION_QUIET, "quiet", NULL, "print no progress", NULL },
	{ 'j', "json", NULL, "print the result as JSON, with rounds and histograms", NULL },
	{ OPTION_SVG, "svg", "FILE", "draw the result to FILE (needs gnuplot)", NULL },
	{ OPTION_SERVER, "server", NULL, "be the other end, for one client at a time", NULL },
	{ OPTION_ONE_CLIENT, "one-client", NULL, "with --server: exit after the first client",
	  NULL },
	{ OPTION_COMPARE, "compare", NULL,
	  "compare two results of --json; a median is worse if the\n"
	  "rounds do not overlap", NULL },
	/* names until 0.2 */
	{ OPTION_SLEEP, "events", NULL, NULL, NULL },
	{ OPTION_TCP_PORT, "port", "PORT", NULL, NULL },
	{ OPTION_ONE_CLIENT, "once", NULL, NULL, NULL },
	{ 0 },
};

static bool bench_set_mtu(struct bench_options *o, const char *text)
{
	return cli_number32(text, 256, 4096, &o->path_mtu) &&
	       !(o->path_mtu & (o->path_mtu - 1));
}

static int bench_option(void *arg, int opt, char *value)
{
	struct bench_line *line = arg;
	struct bench_options *o = &line->options;
	bool good = true;
	u32 number = 0;

	switch (opt) {
	case 't':
		good = bench_set_ways(o, value);
		break;
	case 's':
		good = bench_set_sizes(o, value);
		break;
	case OPTION_ONLY:
		good = bench_set_measure(o, value);
		break;
	case 'D':
		good = cli_seconds(value, LEAST_NS, BENCH_MOST_NS, &o->duration_ns);
		break;
	case OPTION_ROUNDS:
		good = cli_number32(value, 1, BENCH_MOST_ROUNDS, &o->rounds);
		break;
	case OPTION_MTU:
		good = bench_set_mtu(o, value);
		break;
	case OPTION_TCP_PORT:
		good = cli_number32(value, 1, UINT16_MAX, &number);
		o->port = (u16)number;
		break;
	case 'd':
		o->iface = value;
		good = *value;
		break;
	case '4':
		o->family = AF_INET;
		break;
	case '6':
		o->family = AF_INET6;
		break;
	case OPTION_SLEEP:
		o->events = true;
		break;
	case OPTION_QUIET:
		o->quiet = true;
		break;
	case 'j':
		o->json = true;
		break;
	case OPTION_SVG:
		o->svg = value;
		break;
	case OPTION_ONE_CLIENT:
		o->once = true;
		break;
	case OPTION_SERVER:
		line->role = ROLE_SERVER;
		break;
	case OPTION_COMPARE:
		line->role = ROLE_COMPARE;
		break;
	}
	return good ? EXIT_OK : CLI_REFUSED;
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
	const int ret = cli_parse(&command_bench, &argc, &argv, bench_option, &line);

	if (ret)
		return ret;
	if (line.options.iface && !*line.options.iface)
		line.options.iface = NULL;
	return bench_start(&line, argv, argc);
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
		"\n",
	.options = bench_table,
	.help_end =
		"\n"
		"Exit status: 0 success; 1 failure, or a median of B is worse than that of A; 2\n"
		"wrong usage.\n"
		"\n"
		"Examples:\n"
		"  xroce bench --svg path.svg 192.0.2.7\n"
		"  xroce bench -t send,write,read --only bandwidth --json 192.0.2.7 >after.json\n"
		"  xroce bench --compare before.json after.json\n",
};
