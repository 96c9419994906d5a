/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce ping: its command line, and its results as text and as JSON. */
#include <stdlib.h>

#include "../json.h"
#include "ping.h"

#define LEAST_INTERVAL_NS NSEC_PER_MSEC
#define MOST_SECONDS	  (86400 * NSEC_PER_SEC)

/* ---- options ---- */

#define PING_SECONDS "seconds, at least 0.001"

static bool is_server;

enum { OPTION_QUIET = CLI_LONG, OPTION_SERVER };

static const struct cli_option ping_table[] = {
	{ 'c', "count", "N", "stop after N messages", "a number from 1 on" },
	{ 'i', "interval", "S", "send every S seconds, at least 0.001; default 1", PING_SECONDS },
	{ 's', "size", "BYTES",
	  "send datagrams of 24 to 4096 bytes, which 'xroce ping\n"
	  "--server' echoes", "a number of bytes from 24 to 4096" },
	{ 'W', "timeout", "S", "wait S seconds for the last answer; default 1", PING_SECONDS },
	{ 'd', "dev", "IFACE", "send from interface IFACE", "an interface" },
	{ '4', NULL, NULL, "use the first IPv4 address of PEER", NULL },
	{ '6', NULL, NULL, "use the first IPv6 address of PEER", NULL },
	{ OPTION_QUIET, "quiet", NULL, "print only the summary", NULL },
	{ 'j', "json", NULL, "print only the summary, as JSON", NULL },
	{ OPTION_SERVER, "server", NULL,
	  "answer peers and echo their datagrams until interrupted", NULL },
	{ 0 },
};

static int ping_option(void *arg, int opt, char *value)
{
	struct ping_options *o = arg;
	bool good = true;

	switch (opt) {
	case 'c':
		good = cli_number(value, 1, UINT32_MAX, &o->count);
		break;
	case 'i':
		good = cli_seconds(value, LEAST_INTERVAL_NS, MOST_SECONDS, &o->interval_ns);
		break;
	case 'W':
		good = cli_seconds(value, LEAST_INTERVAL_NS, MOST_SECONDS, &o->timeout_ns);
		break;
	case 'D':
		good = cli_seconds(value, LEAST_INTERVAL_NS, MOST_SECONDS, &o->deadline_ns);
		break;
	case 's':
		good = cli_number32(value, sizeof(struct ping_header), DATAGRAM_MOST, &o->size);
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
	case OPTION_QUIET:
		o->quiet = true;
		break;
	case 'j':
		o->json = o->quiet = true;
		break;
	case OPTION_SERVER:
		is_server = true;
		break;
	}
	return good ? EXIT_OK : CLI_REFUSED;
}

static int ping_main(int argc, char **argv)
{
	struct ping_options o = {
		.iface = getenv(NETDEV_ENV),
		.family = AF_UNSPEC,
		.interval_ns = NSEC_PER_SEC,
		.timeout_ns = NSEC_PER_SEC,
	};
	const int ret = cli_parse(&command_ping, &argc, &argv, ping_option, &o);

	if (ret)
		return ret;
	if (o.iface && !*o.iface)
		o.iface = NULL;
	if (is_server)
		return argc ? usage_error(&command_ping, "a server has no peer") : ping_server(&o);
	if (argc != 1)
		return usage_error(&command_ping, argc ? "more than one peer" : "no peer given");
	o.peer = argv[0];
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
		"    A program that has its interface to itself and uses only verbs does not\n"
		"    answer.\n"
		"\n",
	.letters = "D",
	.options = ping_table,
	.help_end =
		"\n"
		"If a server answers, the path MTU is measured; otherwise an upper bound is\n"
		"printed.\n"
		"\n"
		"Exit status, like ping(8): 0 if there was an answer, 1 if there was none, 2 for\n"
		"errors.\n"
		"\n"
		"Examples:\n"
		"  xroce ping -c 5 192.0.2.7\n"
		"  xroce ping -s 1024 -i 0.01 -c 1000 --quiet 192.0.2.7\n",
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

/* Writes null for a text that was not found out. */
static void ping_print_known(struct json *j, const char *name, const char *text)
{
	if (*text)
		json_text(j, name, text);
	else
		json_null(j, name);
}

static void ping_print_json(const struct ping_options *o, const struct peer *peer,
			    const struct ping_result *r)
{
	struct json j;
	char name[16];

	json_begin(&j, stdout);
	json_open_object(&j, NULL);
	json_text(&j, "peer", *peer->text ? peer->text : o->peer);
	ping_print_known(&j, "from", peer->local_text);
	ping_print_known(&j, "interface", peer->dev.name);
	json_text(&j, "answered_by", !r->received    ? "nobody" :
				     r->has_server ? "xroce ping --server" :
						     "connection manager");
	json_number(&j, "bytes", r->bytes);
	json_number(&j, "sent", r->sent);
	json_number(&j, "received", r->received);
	json_number(&j, "duplicates", r->duplicates);
	json_number(&j, "damaged", r->damaged);
	if (r->sent)
		json_real(&j, "loss_percent", ping_loss_percent(r), 3);
	else
		json_null(&j, "loss_percent");
	json_number(&j, "elapsed_ns", r->elapsed_ns);
	if (r->received) {
		json_open_object(&j, "rtt_ns");
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
	json_open_object(&j, "path_mtu");
	if (r->path_mtu)
		json_number(&j, "found", r->path_mtu);
	else
		json_null(&j, "found");
	json_boolean(&j, "is_measured", r->mtu_is_measured);
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
	else if (r->path_mtu && r->mtu_is_measured)
		printf("path MTU %u: datagrams of that size returned, larger ones did not\n",
		       r->path_mtu);
	else if (r->mtu_is_measured)
		printf("path MTU: no datagram returned\n");
	else if (r->has_server)
		printf("path MTU from %u to %u: the measurement was interrupted\n",
		       r->path_mtu ? r->path_mtu : 256, r->path_mtu_most);
	else
		printf("path MTU %u at most, because of the MTU of the interface (%u) and of the "
		       "route (%u); to measure it, run 'xroce ping --server' there\n",
		       r->path_mtu_most, r->link_mtu, r->route_mtu);
}

void ping_print(const struct ping_options *options, const struct peer *peer,
		const struct ping_result *r)
{
	if (options->json) {
		ping_print_json(options, peer, r);
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
