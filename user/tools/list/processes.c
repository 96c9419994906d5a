/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce clients and stat: the processes that use the interfaces, and the counters of each, once or
 * repeatedly.
 */
#include <pwd.h>
#include <stdlib.h>
#include <time.h>

#include "../../os/clock.h"
#include "../counters.h"
#include "../memory.h"
#include "../observe/observe_options.h"
#include "../output.h"

/* ---- clients ---- */

static const struct column clients_columns[] = {
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
	[OBSERVED_SILENT] = "silent",
	[OBSERVED_SOLE] = "sole",
	[OBSERVED_CLIENT] = "client",
	[OBSERVED_BROKER] = "broker",
};

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

static void clients_add(void *arg, const struct observed *p, const struct snapshot *s)
{
	const struct xroce_engine_stats *engine = &s->sums.engine;
	const u64 lost = counters_lost(&s->sums);
	struct table *t = arg;
	u32 qps = 0;

	if (p->kind == OBSERVED_BROKER)
		return;
	for (u32 i = 0; i < s->num_qps; i++)
		qps += s->qps[i].has_steer;
	table_text(t, "%s", p->iface->name);
	table_number(t, p->iface->ifindex);
	table_text(t, "%s", kinds[p->kind]);
	if (p->kind == OBSERVED_SILENT)
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
	table_number(t, engine->rx_packets);
	table_number(t, engine->tx_packets);
	table_number(t, engine->tx_bytes);
	table_number(t, engine->tx_retransmitted);
	table_number(t, lost);
	if (lost)
		table_mark_bad(t);
	table_number(t, counters_dropped(&s->sums));
	table_number(t, p->sent.refused);
	if (p->sent.refused)
		table_mark_bad(t);
}

static int clients_main(int argc, char **argv)
{
	struct table t;
	struct observe_options l;
	int ret = observe_options_begin(&l, &command_clients, &argc, &argv);

	if (ret)
		return ret;
	if (argc) {
		observe_options_end(&l);
		return usage_error(&command_clients, "unexpected argument '%s'", argv[0]);
	}
	table_begin(&t, clients_columns, ARRAY_SIZE(clients_columns));
	observe_options_each(&l, SNAPSHOT_COUNTERS | SNAPSHOT_QPS, clients_add, &t);
	observe_options_print(&l, &t, "clients");
	ret = observe_options_ends(&l, table_rows(&t), "process");
	table_end(&t);
	observe_options_end(&l);
	return ret;
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
	.letters = "dpj",
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

/* ---- stat ---- */

static const struct column stat_columns[] = {
	COLUMN_TEXT("dev", "DEV"),	   COLUMN("pid", "PID"),
	COLUMN_TEXT("command", "COMMAND"), COLUMN_TEXT("counter", "COUNTER"),
	COLUMN("value", "VALUE"),	   COLUMN("rate", "PER-SECOND"),
	COLUMN_TEXT("text", "MEANING"),
};

/* Counters of a port at the previous reading. Program IDs are never reused. */
struct stat_before {
	u32 prog_id;
	u64 time_ns;
	struct sums sums;
};

struct stat {
	struct table *table; /* NULL: JSON */
	struct json json;
	struct stat_before *before, *now;
	u32 num_before, num_now, room;
	bool has_before;
	u64 time_ns, before_ns; /* CLOCK_MONOTONIC of this reading and the previous one */
	u32 found;
};

static const struct stat_before *stat_find(const struct stat_before *all, u32 num, u32 prog_id)
{
	for (u32 i = 0; i < num; i++)
		if (all[i].prog_id == prog_id)
			return &all[i];
	return NULL;
}

static struct stat_before *stat_remember(struct stat *s)
{
	u32 room = s->room;

	s->now = memory_grow(s->now, s->num_now, &s->room, sizeof(*s->now));
	s->before = memory_grow(s->before, s->num_now, &room, sizeof(*s->before));
	return &s->now[s->num_now++];
}

/* Keeps the previous values of ports that were not read because their broker is silent. */
static void stat_keep(struct stat *s)
{
	const u32 num = s->num_now;

	for (u32 i = 0; i < s->num_before; i++)
		if (!stat_find(s->now, num, s->before[i].prog_id))
			*stat_remember(s) = s->before[i];
}

/* Returns the growth of a counter; 0 if it fell, as a process may write any value. */
static u64 stat_since(const struct sums *now, const struct sums *before,
		      const struct counters_field *f)
{
	const u64 a = counters_get(now, f), b = before ? counters_get(before, f) : 0;

	return a > b ? a - b : 0;
}

static void stat_row(struct stat *s, const struct observed *p, const struct counters_field *f,
		     u64 value, double rate)
{
	table_text(s->table, "%s", p->iface->name);
	if (p->pid)
		table_number(s->table, p->pid);
	else
		table_none(s->table);
	table_text(s->table, "%s", p->command);
	table_text(s->table, "%s", f->name);
	table_number(s->table, value);
	if (s->has_before)
		table_real(s->table, rate);
	else
		table_none(s->table);
	table_text(s->table, "%s", f->text);
}

static void stat_identify(struct json *j, const struct observed *p)
{
	json_text(j, "dev", p->iface->name);
	json_number(j, "pid", p->pid);
	json_text(j, "command", p->command);
	json_text(j, "kind", kinds[p->kind]);
	json_number(j, "program_id", p->prog_id);
}

/* Adds the counters under the names that adapter tools use. */
static void stat_names(struct json *j, const struct sums *now)
{
	for (u32 f = 0; f < NAME_FAMILIES; f++) {
		json_open_object(j, counters_family((enum name_family)f));
		for (u32 i = 0; i < counters_num_names; i++)
			if (counters_names[i].family == f)
				json_number(j, counters_names[i].name,
					    counters_value(now, &counters_names[i]));
		json_close(j);
	}
}

static void stat_port(void *arg, const struct observed *p, const struct snapshot *snapshot)
{
	struct stat *s = arg;
	struct stat_before *remembered = stat_remember(s);
	const struct stat_before *last = stat_find(s->before, s->num_before, p->prog_id);
	const struct sums *now = &remembered->sums, *before = last ? &last->sums : NULL;
	const double seconds = (double)(s->time_ns - (last ? last->time_ns : s->before_ns)) / 1e9;

	s->found++;
	remembered->prog_id = p->prog_id;
	remembered->time_ns = s->time_ns;
	remembered->sums = snapshot->sums;
	if (!s->table) {
		json_open_object(&s->json, NULL);
		stat_identify(&s->json, p);
		json_open_object(&s->json, "counters");
	}
	for (u32 i = 0; i < counters_num_fields; i++) {
		const struct counters_field *f = &counters_fields[i];
		const u64 value = counters_get(now, f), since = stat_since(now, before, f);

		if (!s->table)
			json_number(&s->json, f->name, value);
		else if (s->has_before && !f->is_gauge ? since : value)
			stat_row(s, p, f, value, (double)since / seconds);
	}
	if (s->table)
		return;
	json_close(&s->json);
	stat_names(&s->json, now);
	if (s->has_before) {
		json_open_object(&s->json, "per_second");
		for (u32 i = 0; i < counters_num_fields; i++)
			if (!counters_fields[i].is_gauge)
				json_real(&s->json, counters_fields[i].name,
					  (double)stat_since(now, before, &counters_fields[i]) /
						  seconds,
					  1);
		json_close(&s->json);
	}
	json_close(&s->json);
}

/* Returns 0 or -errno. */
static int stat_once(struct stat *s, struct observe_options *l)
{
	struct table t;
	u32 width, lines;
	const int err = observe_options_list(l);

	if (err)
		return err;
	s->found = s->num_now = 0;
	s->before_ns = s->time_ns;
	s->time_ns = l->time_ns;
	if (l->json) {
		json_begin(&s->json, stdout);
		s->json.is_compact = l->interval_ms;
		json_open_object(&s->json, NULL);
		json_number(&s->json, "time_ns", s->time_ns);
		json_open_array(&s->json, "ports");
		observe_options_ports(l, SNAPSHOT_COUNTERS, stat_port, s);
		json_close(&s->json);
		json_close(&s->json);
		json_end(&s->json);
	} else {
		s->table = &t;
		table_begin(&t, stat_columns, ARRAY_SIZE(stat_columns));
		observe_options_ports(l, SNAPSHOT_COUNTERS, stat_port, s);
		terminal_size(stdout, &width, &lines);
		table_print(&t, stdout, width, terminal_is_coloured(stdout));
		table_end(&t);
		if (l->interval_ms)
			putchar('\n');
	}
	fflush(stdout);
	return 0;
}

static void stat_swap(struct stat *s)
{
	struct stat_before *other = s->before;

	s->before = s->now;
	s->num_before = s->num_now;
	s->now = other;
	s->has_before = true;
}

/* Repeats until l->count readings are printed or standard output fails. Returns 0 or -errno. */
static int stat_watch(struct stat *s, struct observe_options *l)
{
	u64 at_ns = clock_now_ns(), now_ns;
	int err;

	for (u32 n = 0; !l->count || n < l->count; n++) {
		err = stat_once(s, l);
		if (err || ferror(stdout) || (l->count && n + 1 == l->count))
			return err;
		if (*l->silent)
			stat_keep(s);
		stat_swap(s);
		at_ns += (u64)l->interval_ms * NSEC_PER_MSEC;
		now_ns = clock_now_ns();
		if (at_ns > now_ns) {
			const u64 ns = at_ns - now_ns;

			nanosleep(&(struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
						      .tv_nsec = (long)(ns % NSEC_PER_SEC) },
				  NULL);
		} else {
			at_ns = now_ns;
		}
	}
	return 0;
}

static int stat_main(int argc, char **argv)
{
	struct stat s = { 0 };
	struct observe_options l;
	int ret = observe_options_begin(&l, &command_stat, &argc, &argv), err;

	if (ret)
		return ret;
	if (argc) {
		observe_options_end(&l);
		return usage_error(&command_stat, "unexpected argument '%s'", argv[0]);
	}
	err = l.interval_ms ? stat_watch(&s, &l) : stat_once(&s, &l);
	if (err)
		fprintf(stderr, "xroce stat: cannot read the network interfaces: %s\n",
			strerror(-err));
	ret = err ? EXIT_FAILED : observe_options_ends(&l, s.found, "process");
	free(s.before);
	free(s.now);
	observe_options_end(&l);
	return ret;
}

const struct command command_stat = {
	.name = "stat",
	.summary = "print the counters of each process, once or periodically",
	.main = stat_main,
	.help = "usage: xroce stat [OPTION...]\n"
		"\n"
		"Prints the counters of each process that uses an interface: packets sent,\n"
		"received, retransmitted, dropped and lost since it opened the interface. There\n"
		"is a line for each counter that is not 0, with its meaning. With --interval, it\n"
		"repeats, and prints only counters that have grown. JSON has all counters.\n"
		"\n",
	.letters = "dpicj",
	.help_end =
		"\n"
		"With --json and --interval each document is a line; from the second line on, it\n"
		"has rates per second.\n"
		"\n"
		"Exit status: 0; 1 if there is no such process or it may not be inspected; 2 for\n"
		"wrong usage.\n"
		"\n"
		"Examples:\n"
		"  xroce stat --dev eth0\n"
		"  xroce stat -i 1 --pid 4145\n"
		"  xroce stat --json | jq '.ports[].counters.tx_retransmitted'\n",
};
