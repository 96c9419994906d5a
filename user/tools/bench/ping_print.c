/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prints the results of xroce ping as text and as JSON. */
#include "../json.h"
#include "ping.h"

static const double percents[] = { 50, 90, 99, 99.9 };

static double to_ms(double ns)
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
		for (u32 i = 0; i < ARRAY_SIZE(percents); i++) {
			snprintf(name, sizeof(name), "p%g", percents[i]);
			json_number(&j, name, histogram_percentile(&r->rtt, percents[i]));
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
	printf("%.4g%% loss, time %.0f ms\n", ping_loss_percent(r), to_ms((double)r->elapsed_ns));
	if (!r->received) {
		printf("no answer: 'xroce ping --help' lists the programs that answer\n");
		return;
	}
	printf("rtt min/avg/max/mdev = %.3f/%.3f/%.3f/%.3f ms\n", to_ms((double)r->rtt.min_ns),
	       to_ms(histogram_mean(&r->rtt)), to_ms((double)r->rtt.max_ns),
	       to_ms(histogram_deviation(&r->rtt)));
	printf("rtt");
	for (u32 i = 0; i < ARRAY_SIZE(percents); i++)
		printf("%s %g%% %.3f", i ? "," : "", percents[i],
		       to_ms((double)histogram_percentile(&r->rtt, percents[i])));
	printf(" ms\n");
	ping_print_mtu(r);
}
