/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce top: rates per second of queue pairs, processes, CQs and interfaces. */
#define _GNU_SOURCE /* ppoll() */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "../../os/clock.h"
#include "full_screen.h"
#include "../terminal.h"
#include "top_gather.h"
#include "top_ui.h"

#define TOP_OPTIONS "dpqPsovbwnj"

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
	const bool is_coloured = terminal_is_coloured(stdout);
	const time_t now = time(NULL);
	u32 columns, lines;
	const char *bytes;
	char clock[16];
	struct tm tm;
	size_t len;

	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	full_screen_size(&columns, &lines);
	if ((columns != t->screen.width || lines != t->screen.height) &&
	    screen_resize(&t->screen, columns, lines))
		return;
	t->rows = top_draw(&t->model, &t->ui, &t->screen, clock);
	bytes = screen_bytes(&t->screen, is_coloured, &len);
	if (bytes)
		full_screen_show(bytes, len);
}

static void top_read_keys(struct top *t)
{
	u8 bytes[64];
	const u32 n = full_screen_read(bytes, sizeof(bytes));
	u32 key, used;

	for (u32 at = 0; (used = top_key_decode(bytes + at, n - at, &key)); at += used)
		top_key(&t->ui, key, t->rows);
}

static int top_live(struct top *t)
{
	u64 due_ns = 0, round_ns = 0;
	u32 events;
	int err = 0;

	err = full_screen_begin();
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
		events = full_screen_wait(t->ui.is_paused ? NSEC_NEVER : due_ns);
		if (events & FULL_SCREEN_ENDED)
			break;
		if (events & FULL_SCREEN_KEYS)
			top_read_keys(t);
	}
	full_screen_end();
	/* a signal ended it before it had the terminal */
	return err == -EINTR ? 0 : err;
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
	table_print(&table, stdout, 0, width, terminal_is_coloured(stdout));
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
	json_object(&j, NULL);
	json_number(&j, "time_ns", t->model.time_ns);
	json_real(&j, "seconds", t->model.seconds, 9);
	json_bool(&j, "hidden", t->look.is_hidden);
	json_bool(&j, "silent", *t->look.silent);
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
	int ret = observe_options_begin(l, &command_top, TOP_OPTIONS, &argc, &argv), err;

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
		fprintf(stderr, "xroce top: %s\n", strerror(-err));
		ret = EXIT_FAILED;
	}
	top_model_end(&t.model);
	screen_end(&t.screen);
	observe_options_end(l);
	return ret;
}

static void top_options(void)
{
	observe_options_print_options(TOP_OPTIONS);
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
	.print_options = top_options,
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
		"  xroce top -b -n 1 -w 5 --view processes --sort retransmitted_per_second\n"
		"  xroce top --json | jq -c '.qps[] | [.qpn, .rx_bits_per_second]'\n",
};
