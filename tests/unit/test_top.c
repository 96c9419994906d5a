/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* What `xroce top` makes of samples: rates, histories, order, frames; and of keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../user/tools/top/top_ui.h"

#define SECOND NSEC_PER_SEC

static struct top_model model;
static struct top_ui ui;
static struct screen screen;

static int reset(void **state)
{
	top_model_end(&model);
	top_ui_init(&ui);
	return 0;
}

/* ---- samples ---- */

static struct top_sample *process(u32 pid, u64 rx_bytes, u64 tx_bytes)
{
	struct top_sample *s = top_model_add(&model, TOP_PROCESSES);

	s->ifindex = 2;
	s->owner = s->pid = pid;
	strcpy(s->dev, "va");
	snprintf(s->command, sizeof(s->command), "command%u", pid);
	s->counters[TOP_RX_BYTES] = rx_bytes;
	s->counters[TOP_TX_BYTES] = tx_bytes;
	return s;
}

static struct top_sample *qp(u32 pid, u32 qpn, u64 tx_bytes)
{
	struct top_sample *s = top_model_add(&model, TOP_QPS);

	s->ifindex = 2;
	s->owner = s->pid = pid;
	s->number = qpn;
	strcpy(s->dev, "va");
	snprintf(s->command, sizeof(s->command), "command%u", pid);
	strcpy(s->peer, "10.77.0.2");
	s->type = "RC";
	s->state = "rts";
	s->counters[TOP_TX_BYTES] = tx_bytes;
	return s;
}

static void interface(void)
{
	struct top_sample *s = top_model_add(&model, TOP_INTERFACES);

	s->ifindex = 2;
	strcpy(s->dev, "va");
}

static void round_at(u64 ns)
{
	assert_int_equal(top_model_round(&model, ns), 0);
}

static const struct top_entry *entry(enum top_view view, u32 nth)
{
	assert_true(nth < model.lists[view].num);
	return &model.lists[view].entries[nth];
}

static void rate_is(const struct top_entry *e, enum top_counter counter, double expected)
{
	assert_true(e->rates[counter] > expected - 1e-6 && e->rates[counter] < expected + 1e-6);
}

/* ---- rates ---- */

static void top_model_round__rates(void **state)
{
	qp(7, 0x11, 1000);
	round_at(5 * SECOND);
	rate_is(entry(TOP_QPS, 0), TOP_TX_BYTES, SPARK_NONE);
	qp(7, 0x11, 1500);
	round_at(7 * SECOND);
	rate_is(entry(TOP_QPS, 0), TOP_TX_BYTES, 250);
	rate_is(entry(TOP_QPS, 0), TOP_RETRANSMITTED, 0);
	assert_true(top_entry_load(entry(TOP_QPS, 0)) == 2000);
	/* it fell: that is no rate, whatever its writer */
	qp(7, 0x11, 3);
	round_at(8 * SECOND);
	rate_is(entry(TOP_QPS, 0), TOP_TX_BYTES, 0);
	qp(7, 0x11, ~0ull);
	round_at(8 * SECOND + 1);
	assert_true(entry(TOP_QPS, 0)->rates[TOP_TX_BYTES] > 1e27);
	round_at(9 * SECOND);
	assert_int_equal(model.lists[TOP_QPS].num, 0);
}

/* Time that does not go on gives no rates. */
static void top_model_round__no_time(void **state)
{
	qp(7, 0x11, 1);
	round_at(SECOND);
	qp(7, 0x11, 2);
	round_at(SECOND);
	rate_is(entry(TOP_QPS, 0), TOP_TX_BYTES, SPARK_NONE);
}

static void top_model_round__new_ones(void **state)
{
	round_at(10 * SECOND);
	/* made since: all of it is of this interval; found since: that is not known */
	qp(7, 1, 800)->made_ns = 10 * SECOND + 5;
	qp(7, 2, 800)->made_ns = 9 * SECOND;
	process(7, 100, 0);
	round_at(11 * SECOND);
	rate_is(entry(TOP_QPS, 0), TOP_TX_BYTES, 800);
	rate_is(entry(TOP_QPS, 1), TOP_TX_BYTES, SPARK_NONE);
	rate_is(entry(TOP_PROCESSES, 0), TOP_RX_BYTES, 100);
	assert_int_equal(entry(TOP_PROCESSES, 0)->now.gauges[TOP_NUM_QPS], 2);
	/* another QP of the number of the first */
	qp(7, 1, 60)->made_ns = 11 * SECOND + 5;
	round_at(12 * SECOND);
	rate_is(entry(TOP_QPS, 0), TOP_TX_BYTES, 60);
	assert_int_equal(entry(TOP_QPS, 0)->num_history, 1);
}

/* Whatever the order of samples, each finds its earlier value; the same key twice is one. */
static void top_model_round__keys(void **state)
{
	qp(9, 3, 10);
	qp(7, 5, 20);
	qp(7, 3, 30);
	round_at(SECOND);
	assert_int_equal(model.lists[TOP_QPS].num, 3);
	qp(7, 3, 31);
	qp(9, 3, 12);
	qp(7, 3, 1);
	round_at(2 * SECOND);
	assert_int_equal(model.lists[TOP_QPS].num, 2);
	rate_is(entry(TOP_QPS, 0), TOP_TX_BYTES, 2);
	rate_is(entry(TOP_QPS, 1), TOP_TX_BYTES, 2);
	assert_int_equal(entry(TOP_QPS, 1)->now.pid, 9);
}

/* An interface keeps what processes did that have ended. */
static void top_model_round__interfaces(void **state)
{
	interface();
	process(7, 100, 0);
	process(9, 50, 0);
	round_at(SECOND);
	assert_int_equal(entry(TOP_INTERFACES, 0)->now.counters[TOP_RX_BYTES], 150);
	rate_is(entry(TOP_INTERFACES, 0), TOP_RX_BYTES, SPARK_NONE);
	interface();
	process(9, 80, 0);
	process(11, 5, 0);
	round_at(2 * SECOND);
	assert_int_equal(entry(TOP_INTERFACES, 0)->now.counters[TOP_RX_BYTES], 185);
	rate_is(entry(TOP_INTERFACES, 0), TOP_RX_BYTES, 35);
	assert_int_equal(entry(TOP_INTERFACES, 0)->now.gauges[TOP_NUM_PROCESSES], 2);
	interface();
	round_at(3 * SECOND);
	assert_int_equal(entry(TOP_INTERFACES, 0)->now.counters[TOP_RX_BYTES], 185);
	rate_is(entry(TOP_INTERFACES, 0), TOP_RX_BYTES, 0);
}

/* A broker that was silent for a round: its counts are added once, and no rate is invented. */
static void top_model_keep__is_no_end(void **state)
{
	interface();
	process(7, 1000, 0);
	qp(7, 3, 500);
	round_at(SECOND);
	interface();
	process(7, 1010, 0);
	qp(7, 3, 510);
	round_at(2 * SECOND);
	interface();
	top_model_keep(&model, 3);
	top_model_keep(&model, 2);
	/* the one of its two that it told of before it fell silent */
	process(7, 1020, 0);
	round_at(3 * SECOND);
	assert_int_equal(model.lists[TOP_PROCESSES].num, 1);
	rate_is(entry(TOP_PROCESSES, 0), TOP_RX_BYTES, 10);
	assert_int_equal(model.lists[TOP_QPS].num, 1);
	assert_int_equal(entry(TOP_QPS, 0)->now.counters[TOP_TX_BYTES], 510);
	rate_is(entry(TOP_QPS, 0), TOP_TX_BYTES, SPARK_NONE);
	assert_int_equal(entry(TOP_PROCESSES, 0)->now.gauges[TOP_NUM_QPS], 1);
	interface();
	top_model_keep(&model, 2);
	round_at(4 * SECOND);
	rate_is(entry(TOP_PROCESSES, 0), TOP_RX_BYTES, SPARK_NONE);
	rate_is(entry(TOP_INTERFACES, 0), TOP_RX_BYTES, SPARK_NONE);
	assert_int_equal(entry(TOP_INTERFACES, 0)->now.counters[TOP_RX_BYTES], 1020);
	/* it answers again */
	interface();
	process(7, 1050, 0);
	qp(7, 3, 600);
	round_at(5 * SECOND);
	rate_is(entry(TOP_QPS, 0), TOP_TX_BYTES, SPARK_NONE);
	rate_is(entry(TOP_INTERFACES, 0), TOP_RX_BYTES, SPARK_NONE);
	assert_int_equal(entry(TOP_INTERFACES, 0)->now.counters[TOP_RX_BYTES], 1050);
	interface();
	process(7, 1055, 0);
	round_at(6 * SECOND);
	rate_is(entry(TOP_PROCESSES, 0), TOP_RX_BYTES, 5);
	rate_is(entry(TOP_INTERFACES, 0), TOP_RX_BYTES, 5);
	assert_int_equal(model.lists[TOP_QPS].num, 0);
}

static void top_entry_history__newest_last(void **state)
{
	const struct top_entry *e;
	float values[4];
	u64 bytes = 0;

	for (u32 i = 0; i < 3; i++) {
		qp(7, 1, bytes += i);
		round_at((i + 1) * SECOND);
	}
	e = entry(TOP_QPS, 0);
	top_entry_history(e, e->load, 4, values);
	assert_true(values[0] < 0 && values[1] < 0 && values[2] == 8 && values[3] == 16);
	for (u32 i = 3; i < TOP_HISTORY + 3; i++) {
		qp(7, 1, bytes += i);
		round_at((i + 1) * SECOND);
	}
	e = entry(TOP_QPS, 0);
	top_entry_history(e, e->load, 2, values);
	assert_true(values[0] == 8 * (TOP_HISTORY + 1) && values[1] == 8 * (TOP_HISTORY + 2));
	assert_int_equal(e->num_history, TOP_HISTORY);
}

/* ---- order and filter ---- */

/* QPs 1, 2 and 3 with rates of 10, 30 and 20 bytes; 2 and 3 send again. */
static void three(void)
{
	for (u32 i = 1; i <= 3; i++)
		qp(10 - i, i, 0);
	interface();
	round_at(SECOND);
	qp(9, 1, 10);
	qp(8, 2, 30)->counters[TOP_RETRANSMITTED] = 4;
	qp(7, 3, 20)->counters[TOP_RETRANSMITTED] = 4;
	process(7, 0, 0);
	interface();
	round_at(2 * SECOND);
}

static void order_is(u32 field, bool is_reversed, const char *text, const char *expected)
{
	const struct top_entry **sorted;
	const u32 n = top_sort(&model, TOP_QPS, field, is_reversed, text, &sorted);
	char got[16] = "";

	for (u32 i = 0; i < n; i++)
		got[i] = (char)('0' + sorted[i]->now.number);
	free(sorted);
	assert_string_equal(got, expected);
}

static void top_sort__order(void **state)
{
	three();
	order_is(top_fields[TOP_QPS].load, false, "", "231");
	order_is(top_fields[TOP_QPS].load, true, "", "132");
	/* equal ones stay in the order of their keys: by process, which is 7, 8, 9 */
	order_is((u32)top_field_find(TOP_QPS, "retransmitted_per_second"), false, "", "321");
	order_is((u32)top_field_find(TOP_QPS, "command"), false, "", "321");
	order_is((u32)top_field_find(TOP_QPS, "pid"), false, "", "123");
	assert_int_equal(top_field_find(TOP_QPS, "nosuch"), -1);
	assert_int_equal(top_field_find(TOP_CQS, "qpn"), -1);
}

static void top_sort__filter(void **state)
{
	three();
	order_is(0, false, "COMMAND8", "2");
	order_is(0, false, "0x000003", "3");
	order_is(0, false, "10.77", "321");
	order_is(0, false, "\033", "");
}

static void top_fields__load_is_it(void **state)
{
	for (u32 v = 0; v < TOP_VIEWS; v++) {
		assert_int_equal(top_fields[v].fields[top_fields[v].load].kind, FIELD_LOAD);
		assert_true(top_fields[v].num <= TOP_FIELDS_MAX);
	}
}

/* ---- frames ---- */

static const char *line(u32 nth)
{
	static char text[3 * SCREEN_WIDTH_MAX + 1];

	screen_line(&screen, nth, text);
	return text;
}

static void draw(u32 width, u32 height)
{
	assert_int_equal(screen_resize(&screen, width, height), 0);
	top_draw(&model, &ui, &screen, "12:00:00");
}

static void top_draw__wide(void **state)
{
	three();
	draw(150, 24);
	assert_string_equal(line(0), "xroce top  12:00:00  queue pairs 3  by RATE  every 1 s");
	assert_non_null(strstr(line(1), "va       rx     0b/s"));
	assert_non_null(strstr(line(2), "DEV       QPN TYPE STATE     PID COMMAND  PEER"));
	assert_non_null(strstr(line(2), "RETR/S"));
	assert_non_null(strstr(line(3), "va   0x000002 RC   rts         8 command8 10.77.0.2 "));
	assert_non_null(strstr(line(3), "     0    240      0      0      4      0      0  "));
	assert_string_equal(strchr(line(3), '#') + 1, "        #");
}

/* Of narrow ones the columns of least use are left out, and no line is longer. */
static void top_draw__narrow(void **state)
{
	three();
	draw(40, 10);
	assert_non_null(strstr(line(2), "QPN"));
	assert_non_null(strstr(line(2), "RX-BPS"));
	assert_non_null(strstr(line(2), "RATE"));
	assert_null(strstr(line(2), "TYPE"));
	assert_null(strstr(line(2), "PEER"));
	draw(10, 10);
	assert_string_equal(line(2), "     QPN");
	assert_string_equal(line(3), "0x000002");
	draw(3, 10);
	assert_string_equal(line(3), "0x0");
}

/* A low one keeps its rows longest; none is too small. */
static void top_draw__low(void **state)
{
	three();
	draw(80, 2);
	assert_non_null(strstr(line(0), "QPN"));
	assert_non_null(strstr(line(1), "0x000002"));
	draw(80, 1);
	assert_non_null(strstr(line(0), "0x000002"));
	for (u32 width = 0; width < 200; width += 7)
		for (u32 height = 0; height < 30; height++) {
			ui.is_help = height & 1;
			ui.is_typing = height & 2;
			draw(width, height);
		}
}

static void top_draw__scroll(void **state)
{
	three();
	/* state, titles, two rows, keys */
	ui.scroll = 1;
	draw(80, 5);
	assert_non_null(strstr(line(2), "0x000003"));
	ui.scroll = UINT32_MAX;
	draw(80, 5);
	assert_int_equal(ui.scroll, 1);
}

static void top_draw__spark(void **state)
{
	three();
	draw(60, 24);
	assert_non_null(strstr(line(3), " #"));
	ui.is_blocks = true;
	draw(60, 24);
	assert_non_null(strstr(line(3), "\xe2\x96\x88"));
}

/* ---- keys ---- */

static void keys(const char *characters)
{
	for (; *characters; characters++)
		top_key(&ui, (u8)*characters, 10);
}

static void top_key__views_and_order(void **state)
{
	keys("p");
	assert_int_equal(ui.view, TOP_PROCESSES);
	keys("c");
	assert_int_equal(ui.view, TOP_CQS);
	keys("i");
	assert_int_equal(ui.view, TOP_INTERFACES);
	keys("Qr");
	assert_int_equal(ui.view, TOP_QPS);
	assert_true(ui.is_reversed[TOP_QPS] && !ui.is_reversed[TOP_CQS]);
	/* round and round, and a column without a title is left out */
	for (u32 i = 0; i < 100; i++) {
		keys(i & 4 ? "<" : "s\033[C");
		assert_non_null(top_fields[TOP_QPS].fields[ui.sort[TOP_QPS]].title);
	}
	keys("q");
	assert_true(ui.is_ended);
}

static void top_key__interval(void **state)
{
	keys("+");
	assert_int_equal(ui.interval_ms, 2000);
	keys("--");
	assert_int_equal(ui.interval_ms, 500);
	keys("----------");
	assert_int_equal(ui.interval_ms, 100);
	keys("+++++++++++++");
	assert_int_equal(ui.interval_ms, 60000);
	ui.interval_ms = 1500;
	keys("-");
	assert_int_equal(ui.interval_ms, 1000);
}

static void top_key__filter(void **state)
{
	keys("/qqx\x7f");
	assert_true(ui.is_typing);
	assert_string_equal(ui.typed, "qq");
	keys("\r");
	assert_false(ui.is_typing || ui.is_ended);
	assert_string_equal(ui.filter, "qq");
	/* left as it was */
	keys("/other\033");
	assert_string_equal(ui.filter, "qq");
	keys("\033");
	assert_string_equal(ui.filter, "");
	/* no more than it has room for */
	keys("/");
	for (u32 i = 0; i < 1000; i++)
		keys("a");
	assert_int_equal(strlen(ui.typed), TOP_TYPED - 1);
}

static void top_key__pause_and_help(void **state)
{
	keys(" ");
	assert_true(ui.is_paused);
	keys(" h");
	assert_true(!ui.is_paused && ui.is_help);
	keys("p");
	assert_true(!ui.is_help && ui.view == TOP_QPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(top_model_round__rates, reset),
		cmocka_unit_test_setup(top_model_round__no_time, reset),
		cmocka_unit_test_setup(top_model_round__new_ones, reset),
		cmocka_unit_test_setup(top_model_round__keys, reset),
		cmocka_unit_test_setup(top_model_round__interfaces, reset),
		cmocka_unit_test_setup(top_model_keep__is_no_end, reset),
		cmocka_unit_test_setup(top_entry_history__newest_last, reset),
		cmocka_unit_test_setup(top_sort__order, reset),
		cmocka_unit_test_setup(top_sort__filter, reset),
		cmocka_unit_test(top_fields__load_is_it),
		cmocka_unit_test_setup(top_draw__wide, reset),
		cmocka_unit_test_setup(top_draw__narrow, reset),
		cmocka_unit_test_setup(top_draw__low, reset),
		cmocka_unit_test_setup(top_draw__scroll, reset),
		cmocka_unit_test_setup(top_draw__spark, reset),
		cmocka_unit_test_setup(top_key__views_and_order, reset),
		cmocka_unit_test_setup(top_key__interval, reset),
		cmocka_unit_test_setup(top_key__filter, reset),
		cmocka_unit_test_setup(top_key__pause_and_help, reset),
	};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	top_model_end(&model);
	screen_end(&screen);
	return failed;
}
