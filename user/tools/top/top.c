/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce top: rates per second of queue pairs, processes, CQs and interfaces. Collects the samples
 * from the maps of the processes that match its options, and shows them: live on a terminal, or as
 * tables and JSON.
 */
#define _GNU_SOURCE /* ppoll() */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <xroce/stat.h>

#include "../../os/clock.h"
#include "../counters.h"
#include "../observe/observe_options.h"
#include "../output.h"
#include "top_ui.h"

/* ---- samples ---- */

struct gather {
	struct observe_options *look;
	struct top_model *model;
};

static void gather_name(char *to, size_t size, const char *name)
{
	snprintf(to, size, "%s", name);
	output_clean(to);
}

/* Returns a process's key, which stays when a broker gives the process another program. */
static u64 gather_owner(const struct observed *p)
{
	return p->pid ? p->pid : 1ull << 32 | p->prog_id;
}

static struct top_sample *gather_add(struct gather *g, enum top_view view,
				     const struct observed *p)
{
	struct top_sample *s = top_model_add(g->model, view);

	if (!s)
		return NULL;
	s->ifindex = p->iface->ifindex;
	s->owner = gather_owner(p);
	s->pid = p->pid;
	gather_name(s->dev, sizeof(s->dev), p->iface->name);
	gather_name(s->command, sizeof(s->command), p->command);
	return s;
}

static void gather_process(struct gather *g, const struct observed *p, const struct sums *sums)
{
	struct top_sample *s = gather_add(g, TOP_PROCESSES, p);

	if (!s)
		return;
	s->counters[TOP_RX_BYTES] = sums->rx.redirected_bytes;
	s->counters[TOP_TX_BYTES] = sums->engine.tx_bytes;
	s->counters[TOP_RX_PACKETS] = sums->engine.rx_packets;
	s->counters[TOP_TX_PACKETS] = sums->engine.tx_packets;
	s->counters[TOP_RETRANSMITTED] = sums->engine.tx_retransmitted;
	s->counters[TOP_RNR] = sums->engine.rx_rnr_naks;
	s->counters[TOP_DROPPED] = counters_dropped(sums);
	s->counters[TOP_LOST] = counters_lost(sums);
}

static void gather_qp(struct gather *g, const struct observed *p, const struct qp_view *v)
{
	struct top_sample *s = gather_add(g, TOP_QPS, p);
	const struct xroce_qp_stat *stat = &v->stat;
	const struct xroce_qp *steer = &v->steer;
	char text[46];

	if (!s)
		return;
	s->number = v->qpn;
	s->pid = p->pid ? p->pid : v->has_stat ? stat->pid : steer->pid;
	s->made_ns = stat->made_ns;
	s->type = observe_options_transport(v->has_stat ? stat->transport : steer->transport);
	snprintf(s->peer, sizeof(s->peer), "%s",
		 observe_options_gid(v->has_stat ? stat->peer : steer->peer, text));
	s->state = v->has_stat ? observe_options_state(stat->state) : "";
	s->is_bad = v->has_stat && stat->state == XROCE_QPS_ERR;
	/* an older library has only XDP's counters */
	s->counters[TOP_RX_BYTES] = v->has_stat ? stat->rx_bytes : steer->rx_bytes;
	s->counters[TOP_RX_PACKETS] = v->has_stat ? stat->rx_packets : steer->rx_packets;
	s->counters[TOP_TX_BYTES] = stat->tx_bytes;
	s->counters[TOP_TX_PACKETS] = stat->tx_packets;
	s->counters[TOP_RETRANSMITTED] = stat->tx_retransmitted;
	s->counters[TOP_RNR] = stat->rx_rnr_naks;
	s->counters[TOP_DROPPED] = stat->rx_dropped + steer->rx_dropped;
	s->gauges[TOP_OUTSTANDING] = stat->outstanding;
	s->gauges[TOP_RTT_NS] = stat->rtt_ns;
}

static void gather_cq(struct gather *g, const struct observed *p, const struct xroce_cq_stat *stat)
{
	struct top_sample *s = stat ? gather_add(g, TOP_CQS, p) : NULL;

	if (!s)
		return;
	s->number = stat->cq;
	s->pid = p->pid ? p->pid : stat->pid;
	s->is_bad = stat->overruns;
	s->counters[TOP_COMPLETIONS] = stat->completions;
	s->counters[TOP_EVENTS] = stat->events;
	s->counters[TOP_OVERRUNS] = stat->overruns;
	s->gauges[TOP_WAITING] = stat->waiting;
	s->gauges[TOP_MOST_WAITING] = stat->most_waiting;
	s->gauges[TOP_ENTRIES] = stat->entries;
}

/* With a QP filter, skips processes without a matching QP. */
static void gather_port(void *arg, const struct observed *p, const struct snapshot *s)
{
	struct gather *g = arg;
	const struct observe_options *l = g->look;
	bool has_any = !l->has_qpn && !l->has_peer && !l->has_state;

	for (u32 i = 0; i < s->num_qps; i++) {
		if (!observe_options_has_qp(l, &s->qps[i]))
			continue;
		gather_qp(g, p, &s->qps[i]);
		has_any = true;
	}
	if (!has_any)
		return;
	for (u32 i = 0; i < s->lists[SNAPSHOT_CQ].num; i++)
		gather_cq(g, p, snapshot_object(s, SNAPSHOT_CQ, i));
	gather_process(g, p, &s->sums);
}

static void gather_interfaces(struct gather *g)
{
	const struct observer *o = &g->look->observer;

	for (u32 i = 0; i < o->num_ifaces; i++) {
		struct top_sample *s = top_model_add(g->model, TOP_INTERFACES);

		if (!s)
			return;
		s->ifindex = o->ifaces[i].ifindex;
		gather_name(s->dev, sizeof(s->dev), o->ifaces[i].name);
		/* a silent broker's processes still exist */
		if (o->ifaces[i].is_silent)
			top_model_keep(g->model, s->ifindex);
	}
}

/*
 * Runs a round of the model, and without --dev follows added and removed interfaces. Returns 0, or
 * -errno with the model unchanged.
 */
static int top_gather(struct observe_options *l, struct top_model *m)
{
	struct gather g = { l, m };
	const int err = observe_options_list(l);

	if (err)
		return err;
	observe_options_ports(l, SNAPSHOT_COUNTERS | SNAPSHOT_QPS | SNAPSHOT_CQS, gather_port, &g);
	gather_interfaces(&g);
	return top_model_round(m, l->time_ns);
}

/* ---- the state of the command ---- */

#define TOP_OPTIONS "dpqPSicoVbj"

struct top {
	struct observe_options look;
	struct top_model model;
	struct top_ui ui;
	struct screen screen;
	u32 rows; /* rows visible at once */
	u64 found; /* entries of the view, summed over all rounds */
};

static u64 top_interval_ns(const struct top *t)
{
	return (u64)t->ui.interval_ms * NSEC_PER_MSEC;
}

static int top_round(struct top *t)
{
	const int err = top_gather(&t->look, &t->model);

	t->found += t->model.lists[t->ui.view].num;
	t->ui.is_hidden = t->look.is_hidden;
	t->ui.is_silent = *t->look.silent;
	return err;
}

/* ---- terminal ---- */

static void top_show(struct top *t)
{
	const time_t now = time(NULL);
	u32 columns, lines;
	char clock[16];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	terminal_size(stdout, &columns, &lines);
	if (!columns || !lines) {
		columns = 80;
		lines = 24;
	}
	if ((columns != t->screen.width || lines != t->screen.height) &&
	    screen_resize(&t->screen, columns, lines))
		return;
	t->rows = top_draw(&t->model, &t->ui, &t->screen, clock);
	full_screen_show(&t->screen);
}

static void top_read_keys(struct top *t)
{
	u32 key;

	while ((key = full_screen_key()))
		top_key(&t->ui, key, t->rows);
}

static int top_live(struct top *t)
{
	u64 due_ns = 0, round_ns = 0;
	enum full_screen_event event;
	int err = full_screen_begin(terminal_is_coloured(stdout));

	if (err)
		return err;
	while (!err && !t->ui.is_ended) {
		if (!t->ui.is_paused && clock_now_ns() >= due_ns) {
			round_ns = clock_now_ns();
			err = top_round(t);
			if (err || (t->look.count && t->model.rounds > t->look.count))
				break;
		}
		top_show(t);
		/* from the last round, so that a new interval takes effect at once */
		due_ns = round_ns + top_interval_ns(t);
		event = full_screen_wait(t->ui.is_paused ? NSEC_NEVER : due_ns);
		if (event == FULL_SCREEN_ENDED)
			break;
		if (event == FULL_SCREEN_KEYS)
			top_read_keys(t);
	}
	full_screen_end();
	return err;
}

/* ---- tables and JSON ---- */

static _Atomic bool batch_ended;

static bool batch_has_ended(void)
{
	return atomic_load_explicit(&batch_ended, memory_order_relaxed);
}

static void batch_end(int sig)
{
	atomic_store_explicit(&batch_ended, true, memory_order_relaxed);
}

/* Fills table with the sorted rows of a view. */
static void batch_table(struct top *t, enum top_view view, struct table *table,
			struct column columns[TOP_FIELDS_MAX])
{
	const struct top_entry **sorted;
	const u32 n = top_sort(&t->model, view, t->ui.sort[view], false, "", &sorted);

	table_begin(table, columns, top_columns(view, columns));
	for (u32 i = 0; i < n; i++)
		top_row(table, view, sorted[i]);
	free(sorted);
}

static void batch_print_view(struct top *t, enum top_view view)
{
	struct column columns[TOP_FIELDS_MAX];
	struct table table;
	u32 width, lines;

	terminal_size(stdout, &width, &lines);
	batch_table(t, view, &table, columns);
	table_print(&table, stdout, width, terminal_is_coloured(stdout));
	table_end(&table);
}

static void batch_print(struct top *t)
{
	if (t->ui.view != TOP_INTERFACES) {
		batch_print_view(t, TOP_INTERFACES);
		putchar('\n');
	}
	batch_print_view(t, t->ui.view);
	putchar('\n');
}

static void batch_json(struct top *t)
{
	struct column columns[TOP_FIELDS_MAX];
	struct table table;
	struct json j;

	json_begin(&j, stdout);
	j.is_compact = true;
	json_open_object(&j, NULL);
	json_number(&j, "time_ns", t->model.time_ns);
	json_real(&j, "seconds", t->model.seconds, 9);
	json_boolean(&j, "hidden", t->look.is_hidden);
	json_boolean(&j, "silent", *t->look.silent);
	for (u32 v = 0; v < TOP_VIEWS; v++) {
		batch_table(t, v, &table, columns);
		table_json(&table, &j, top_fields[v].name);
		table_end(&table);
	}
	json_close(&j);
	json_end(&j);
}

/*
 * Returns false after SIGINT or SIGTERM, which are unblocked only here. Calls ppoll() at least
 * once, also when rounds take longer than the interval.
 */
static bool batch_wait(u64 until_ns, const sigset_t *mask)
{
	do {
		const u64 now_ns = clock_now_ns();
		const u64 left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		const struct timespec time = { .tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
					       .tv_nsec = (long)(left_ns % NSEC_PER_SEC) };

		ppoll(NULL, 0, &time, mask);
	} while (!batch_has_ended() && clock_now_ns() < until_ns);
	return !batch_has_ended();
}

/* The first round starts the first interval and has no rates, so it is not printed. */
static int top_batch(struct top *t)
{
	struct sigaction action = { .sa_handler = batch_end };
	u64 due_ns = clock_now_ns(), now_ns;
	sigset_t ending, mask;
	int err = 0;

	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigprocmask(SIG_BLOCK, &ending, &mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (t->ui.interval_ms > 1000)
		terminal_say("xroce top: measuring the first interval of %g s",
			     (double)t->ui.interval_ms / 1000);
	for (u32 n = 0; !err && (!t->look.count || n <= t->look.count); n++) {
		if (!batch_wait(due_ns, &mask))
			break;
		err = top_round(t);
		if (!err && n) {
			terminal_say(NULL);
			if (t->look.json)
				batch_json(t);
			else
				batch_print(t);
			/* the reader has closed the output */
			if (fflush(stdout) || ferror(stdout))
				break;
		}
		due_ns += top_interval_ns(t);
		now_ns = clock_now_ns();
		due_ns = due_ns > now_ns ? due_ns : now_ns;
	}
	terminal_say(NULL);
	return err;
}

/* ---- the command ---- */

/* Returns EXIT_OK, or EXIT_USAGE after an error message. */
static int top_choose(struct top *t)
{
	const struct observe_options *l = &t->look;
	int field;

	top_ui_init(&t->ui);
	if (l->interval_ms)
		t->ui.interval_ms = l->interval_ms;
	if (l->view) {
		while (t->ui.view < TOP_VIEWS && strcmp(top_fields[t->ui.view].name, l->view) != 0)
			t->ui.view++;
		if (t->ui.view == TOP_VIEWS)
			return usage_error(&command_top, "no such view '%s'", l->view);
	}
	if (l->sort) {
		field = top_field_find(t->ui.view, l->sort);
		if (field < 0)
			return usage_error(&command_top, "no such column '%s'", l->sort);
		t->ui.sort[t->ui.view] = (u32)field;
	}
	return EXIT_OK;
}

static int top_main(int argc, char **argv)
{
	static struct top t;
	struct observe_options *l = &t.look;
	int ret = observe_options_begin(l, &command_top, &argc, &argv), err;

	if (ret)
		return ret;
	ret = argc ? usage_error(&command_top, "unexpected argument '%s'", argv[0]) :
			     top_choose(&t);
	if (ret) {
		observe_options_end(l);
		return ret;
	}
	if (l->is_batch || l->json || !full_screen_can()) {
		err = top_batch(&t);
		ret = observe_options_ends(l, t.found != 0, "queue pair or process");
	} else {
		t.ui.is_blocks = full_screen_has_blocks();
		err = top_live(&t);
	}
	if (err) {
		fprintf(stderr, "xroce top: cannot show the processes: %s\n", strerror(-err));
		ret = EXIT_FAILED;
	}
	top_model_end(&t.model);
	screen_end(&t.screen);
	observe_options_end(l);
	return ret;
}

const struct command command_top = {
	.name = "top",
	.summary = "show live rates of queue pairs, processes, CQs and interfaces",
	.main = top_main,
	.help = "usage: xroce top [OPTION...]\n"
		"\n"
		"Shows the rates of the processes that use interfaces of this network namespace,\n"
		"busiest first, with spark lines of the last intervals: bits and packets in both\n"
		"directions, retransmissions, RNR NAKs, drops. On a terminal it is an interactive\n"
		"screen (h lists the keys, q quits); otherwise, or with --batch, it prints\n"
		"tables, one per interval.\n"
		"\n",
	.letters = TOP_OPTIONS,
	.help_end =
		"\n"
		"VIEW is qps (default), processes, cqs or interfaces. COLUMN is a name that the\n"
		"JSON output of the view has, or rate or trouble. The default interval is 1 s.\n"
		"JSON is a line for each interval, with all views, counters and rates.\n"
		"\n"
		"Exit status: 0, also after SIGINT or SIGTERM; 1 if it failed, or if tables or\n"
		"JSON had nothing that the options select or nothing may be inspected; 2 for\n"
		"wrong usage.\n"
		"\n"
		"Examples:\n"
		"  xroce top --dev eth0\n"
		"  xroce top -b -c 1 -i 5 --view processes --sort retransmitted_per_second\n"
		"  xroce top --json | jq -c '.qps[] | [.qpn, .rx_bits_per_second]'\n",
};
