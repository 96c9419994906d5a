/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce clients: the processes that use the interfaces, and their receive and send counters. */
#include <pwd.h>

#include "../observe/observe_options.h"

static const struct column columns[] = {
	COLUMN_TEXT("dev", "DEV"),
	COLUMN_JSON("ifindex"),
	COLUMN_TEXT("kind", "AS"),
	COLUMN("client", "CLIENT"),
	COLUMN("pid", "PID"),
	COLUMN_TEXT("command", "COMMAND"),
	COLUMN_JSON("uid"),
	COLUMN_TEXT("user", "USER"),
	COLUMN_JSON("program_id"),
	COLUMN("qps", "QPS"),
	COLUMN("services", "SERVICES"),
	COLUMN("rx_packets", "RX-PKTS"),
	COLUMN("tx_packets", "TX-PKTS"),
	COLUMN("tx_bytes", "TX-BYTES"),
	COLUMN("retransmitted", "RETRANS"),
	COLUMN("lost", "LOST"),
	COLUMN("dropped", "DROPPED"),
	COLUMN("refused", "REFUSED"),
};

static const char *const kinds[] = {
	[OBSERVED_ALONE] = "alone",
	[OBSERVED_FIRST] = "first",
	[OBSERVED_CLIENT] = "client",
	[OBSERVED_BROKER] = "broker",
};

static void count_qp(void *arg, const struct observed *p, const void *key, const void *value)
{
	++*(u32 *)arg;
}

static u64 drops_of(const struct observed *p, const char *map)
{
	u64 all[XROCE_DROP_COUNT], sum = 0;

	if (observed_sum(p, map, all, XROCE_DROP_COUNT))
		return 0;
	for (u32 i = 0; i < XROCE_DROP_COUNT; i++)
		sum += all[i];
	return sum;
}

static void clients_add_user(struct table *t, u32 uid)
{
	const struct passwd *user = uid == ~0u ? NULL : getpwuid(uid);

	if (uid == ~0u)
		table_none(t);
	else
		table_number(t, uid);
	if (user)
		table_text(t, "%s", user->pw_name);
	else if (uid != ~0u)
		table_text(t, "%u", uid);
	else
		table_none(t);
}

static void clients_add(void *arg, const struct observed *p)
{
	struct table *t = arg;
	struct xroce_engine_stats engine;
	struct xroce_sock sock;
	struct xroce_drops xdp;
	u64 lost;
	u32 qps = 0;

	if (p->kind == OBSERVED_BROKER)
		return;
	observed_sum(p, XROCE_MAP_ENGINE_STAT, (u64 *)&engine, sizeof(engine) / sizeof(u64));
	observed_sum(p, XROCE_MAP_SOCK, (u64 *)&sock, sizeof(sock) / sizeof(u64));
	observed_sum(p, XROCE_MAP_DROP, (u64 *)&xdp, sizeof(xdp) / sizeof(u64));
	observed_each(p, XROCE_MAP_QP, sizeof(struct xroce_qp), count_qp, &qps);
	lost = sock.rx_ring_full + sock.rx_dropped + xdp.ring_full;
	table_text(t, "%s", p->iface->name);
	table_number(t, p->iface->ifindex);
	table_text(t, "%s", kinds[p->kind]);
	if (p->kind == OBSERVED_ALONE)
		table_none(t);
	else
		table_number(t, p->client);
	if (p->pid)
		table_number(t, p->pid);
	else
		table_none(t);
	table_text(t, "%s", p->command);
	clients_add_user(t, p->uid);
	table_number(t, p->prog_id);
	table_number(t, qps);
	table_number(t, p->services);
	table_number(t, engine.rx_packets);
	table_number(t, engine.tx_packets);
	table_number(t, engine.tx_bytes);
	table_number(t, engine.tx_retransmitted);
	table_number(t, lost);
	if (lost)
		table_mark_bad(t);
	table_number(t, drops_of(p, XROCE_MAP_DROP) + drops_of(p, XROCE_MAP_ENGINE_DROP) -
				xdp.ring_full);
	table_number(t, p->sent.refused);
	if (p->sent.refused)
		table_mark_bad(t);
}

static int clients_main(int argc, char **argv)
{
	struct table t;
	struct observe_options l;
	int ret = observe_options_begin(&l, &command_clients, "dpj", &argc, &argv);

	if (ret)
		return ret;
	if (argc) {
		observe_options_end(&l);
		return usage_error(&command_clients, "unexpected argument '%s'", argv[0]);
	}
	table_begin(&t, columns, ARRAY_SIZE(columns));
	observe_options_each(&l, clients_add, &t);
	observe_options_print(&l, &t, "clients");
	ret = observe_options_ends(&l, table_rows(&t), "process");
	table_end(&t);
	observe_options_end(&l);
	return ret;
}

static void clients_options(void)
{
	observe_options_print_options("dpj");
}

const struct command command_clients = {
	.name = "clients",
	.summary = "list the processes that use interfaces, and their traffic",
	.main = clients_main,
	.help = "usage: xroce clients [OPTION...]\n"
		"\n"
		"Prints a line for each process that uses an interface of this network namespace:\n"
		"as its owner, or as a client of a broker. Root sees all processes; other users\n"
		"see their own processes that use a broker.\n"
		"\n",
	.print_options = clients_options,
	.help_end =
		"\n"
		"  LOST     frames dropped because the receive ring or socket was full\n"
		"  DROPPED  frames that a check refused, in XDP or in the engine: 'xroce stat'\n"
		"           prints the reasons\n"
		"  REFUSED  frames that the broker's program refused to send\n"
		"\n"
		"Exit status: 0; 1 if there is no such process or it may not be inspected; 2 for\n"
		"wrong usage.\n",
};
