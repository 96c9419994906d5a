/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The exporter's series, totals and bounds, from maps whose contents are recorded or made up: the
 * collector, the readers of maps and the text are the exporter's, the kernel is recorded_maps.h.
 */
#include <unistd.h>

#include "unit.h"

#include "../../user/tools/export/metrics.h"
#include "recorded_maps.h"

const u32 http_codes[HTTP_CODES] = { 200, 404, 405, 406, 503 };

static struct {
	struct collector c;
	struct text t;
} x;

static int end(void **state)
{
	collector_end(&x.c);
	free(x.t.at);
	kernel_end();
	return 0;
}

static int begin_with(u32 most_processes, u32 most_qps)
{
	memset(&x, 0, sizeof(x));
	kernel_begin();
	collector_begin(&x.c, NULL, most_processes, most_qps);
	return 0;
}

static int begin(void **state)
{
	return begin_with(64, 64);
}

/* Collects once, and writes the metrics into x.t. */
static void scrape(void)
{
	collector_collect(&x.c);
	free(x.t.at);
	text_begin(&x.t, TEXT_OPENMETRICS);
	metrics_write(&x.t, &x.c, NULL);
	assert_int_equal(text_end(&x.t), 0);
	x.t.at = realloc(x.t.at, x.t.len + 1);
	assert_non_null(x.t.at);
	x.t.at[x.t.len] = 0;
}

/* Returns how many samples of `name` have `label` in their labels, and their sum in *sum. */
static u32 samples(const char *name, const char *label, double *sum)
{
	u32 n = 0;

	*sum = 0;
	for (const char *at = x.t.at, *next; *at; at = next) {
		const size_t len = strlen(name);
		const char *value;
		char line[1024];

		next = strchr(at, '\n') + 1;
		assert_true((size_t)(next - at) < sizeof(line));
		memcpy(line, at, (size_t)(next - at));
		line[next - at - 1] = 0;
		if (strncmp(line, name, len) || (line[len] != '{' && line[len] != ' '))
			continue;
		if (label && !strstr(line, label))
			continue;
		value = strrchr(line, ' ');
		*sum += strtod(value + 1, NULL);
		n++;
	}
	return n;
}

static u32 series(const char *name, const char *label)
{
	double sum;

	return samples(name, label, &sum);
}

/* Returns the value of the only sample of `name` that has `label`. */
static double value(const char *name, const char *label)
{
	double sum;

	if (samples(name, label, &sum) != 1)
		fail_msg("%u samples of %s with %s", series(name, label), name,
			 label ? label : "any label");
	return sum;
}

static double total(const char *name)
{
	double sum;

	samples(name, NULL, &sum);
	return sum;
}

#define need_value(name, label, want) \
	assert_float_equal(value(name, label), (double)(want), 0.001)

/* ---- texts ---- */

/* Each counter of a queue pair has a text, most of them that of the counter of all queue pairs. */
static void export_texts__of_queue_pairs(void **state)
{
	scrape();
	for (u32 i = 0; i < qp_num_fields; i++)
		assert_true(*(qp_fields[i].text ? qp_fields[i].text :
						  counters_text(qp_fields[i].sum)));
	assert_string_equal(counters_text(offsetof(struct sums, engine.timeouts) + 1), "");
	assert_non_null(strstr(x.t.at, "# HELP xroce_qp_timeouts time-outs of IBV_QP_TIMEOUT\n"));
}

/* ---- nothing is there ---- */

static void export__nobody_there(void **state)
{
	scrape();
	need_value("xroce_up", NULL, 1);
	assert_int_equal(series("xroce_device_info", NULL), 0);
	assert_int_equal(series("xroce_process_info", NULL), 0);
	assert_int_equal(series("xroce_qp_info", NULL), 0);
	/* a requested interface has its zeros */
	x.c.dev = "va";
	kernel_iface("va");
	scrape();
	need_value("xroce_device_info", "ibdevice=\"xroce_va\",mode=\"unused\"", 1);
	need_value("xroce_device_tx_packets_total", "device=\"va\"", 0);
}

/* ---- values ---- */

/* As tests/netns/export.sh has it: the server of steady_pingpong on va, stopped. */
static void export_values__of_a_recorded_process(void **state)
{
	struct fake_port *p = kernel_pingpong();

	scrape();
	need_value("xroce_device_info", "mode=\"silent\"", 1);
	need_value("xroce_device_processes", NULL, 1);
	need_value("xroce_device_hidden", NULL, 0);
	need_value("xroce_process_info", "command=\"steady_pingpong\",kind=\"silent\"", 1);
	need_value("xroce_device_rx_packets_total", NULL, 5680);
	need_value("xroce_process_tx_packets_total", "pid=\"3202\"", 5681);
	need_value("xroce_process_tx_bytes_total", "pid=\"3202\"", 4988122);
	need_value("xroce_process_tx_retransmitted_total", NULL, 1);
	need_value("xroce_process_rto_probes_total", NULL, 1);
	need_value("xroce_device_xdp_redirected_total", NULL, 5680);
	need_value("xroce_device_drops_total", "reason=\"peer\"", 7);
	need_value("xroce_qp_info", "type=\"RC\",peer=\"10.77.0.2\",peer_qpn=\"0x518923\"", 1);
	need_value("xroce_qp_state", "qpn=\"0x3efc75\"", 3);
	need_value("xroce_qp_tx_packets_total", "qpn=\"0x3efc75\"", 5681);
	need_value("xroce_qp_rx_packets_total", NULL, 5680);
	need_value("xroce_qp_wakeups_total", NULL, 12);
	need_value("xroce_device_qps", "state=\"rts\"", 1);
	need_value("xroce_device_cqs", NULL, 1);
	need_value("xroce_device_cq_entries", NULL, 501);
	need_value("xroce_device_cq_waiting", NULL, 1);
	need_value("xroce_device_cq_completions_total", NULL, 2272);
	need_value("xroce_process_mrs", NULL, 1);
	need_value("xroce_process_mr_bytes", NULL, 4096);
	/* of two CPUs and two receive queues, which are added up */
	assert_int_equal(p->maps[MAP_RX].cpus, 2);
	assert_int_equal(p->maps[MAP_SOCK].entries, 2);
	need_value("xroce_device_sock_rx_frames_total", NULL, 5680);
}

/* Each counter has its own number: no series has another one's. */
static void export_values__each_counter_in_its_series(void **state)
{
	struct fake_port *p = kernel_port("va", 1, 100);
	char name[128];

	for (enum fake_map_name m = MAP_ENGINE_STAT; m <= MAP_ENGINE_DROP; m++)
		for (u32 i = 0; i < p->maps[m].value_size / sizeof(u64); i++)
			((u64 *)p->maps[m].values)[i] = 1000 * (m + 1) + i;
	scrape();
	for (u32 i = 0; i < counters_num_fields; i++) {
		const struct counters_field *f = &counters_fields[i];
		const u64 want = counters_get(&x.c.ports[0]->now.sums, f);

		assert_true(want >= 1000);
		if (f->is_drop) {
			snprintf(name, sizeof(name), "reason=\"%s\"", f->name + strlen("drop_"));
			need_value("xroce_device_drops_total", name, want);
			need_value("xroce_process_drops_total", name, want);
			continue;
		}
		if (f->is_gauge) {
			snprintf(name, sizeof(name), "xroce_process_%s", f->name);
			need_value(name, NULL, want);
			continue;
		}
		for (const char *const *of = (const char *const[]){ "device", "process", NULL };
		     *of; of++) {
			double sum;
			u32 n;

			snprintf(name, sizeof(name), "xroce_%s_%s_total", *of, f->name);
			n = samples(name, NULL, &sum);
			if (!n) {
				snprintf(name, sizeof(name), "xroce_%s_%s_packets_total", *of,
					 f->name);
				n = samples(name, NULL, &sum);
			}
			if (n != 1)
				fail_msg("%u series of %s", n, f->name);
			assert_float_equal(sum, (double)want, 0.001);
		}
	}
	for (u32 i = 0; i < counters_num_names; i++) {
		const struct counters_name *n = &counters_names[i];
		const char *family = n->family == NAME_PORT ? "" : counters_family(n->family);

		snprintf(name, sizeof(name), "xroce_device_%s%s%s_total", family,
			 *family ? "_" : "", n->name);
		need_value(name, NULL, counters_value(&x.c.ports[0]->now.sums, n));
	}
}

/* ---- totals ---- */

static void port_counts(struct fake_port *p, u64 tx_packets)
{
	((struct xroce_engine_stats *)p->maps[MAP_ENGINE_STAT].values)->tx_packets = tx_packets;
}

static void export_totals__outlive_a_process(void **state)
{
	struct fake_port *p = kernel_pingpong();

	scrape();
	need_value("xroce_device_tx_packets_total", NULL, 5681);
	/* its counts after the scrape and before it is killed */
	port_counts(p, 9000);
	p->is_gone = true;
	scrape();
	need_value("xroce_device_tx_packets_total", NULL, 9000);
	need_value("xroce_device_processes", NULL, 0);
	assert_int_equal(series("xroce_process_info", NULL), 0);
	need_value("xroce_device_qps", "state=\"rts\"", 0);
	need_value("xroce_device_cqs", NULL, 0);
	p = kernel_port("va", 2, 200);
	port_counts(p, 70);
	for (u32 i = 0; i < 2; i++) {
		scrape();
		need_value("xroce_device_tx_packets_total", NULL, 9070);
		need_value("xroce_process_tx_packets_total", "pid=\"2\"", 70);
	}
	/* counters that fall take nothing away */
	port_counts(p, 3);
	scrape();
	need_value("xroce_device_tx_packets_total", NULL, 9070);
}

/* The process that was alone becomes the first of several, under another program. */
static void export_totals__another_program_counts_once(void **state)
{
	struct fake_port *p = kernel_pingpong(), *second;

	scrape();
	p->prog_id = 777;
	p->kind = OBSERVED_SOLE;
	fake.ifaces[0].broker_prog_id = 778;
	fake.ifaces[0].asks = true;
	port_counts(p, 6000);
	second = kernel_port("va", 2, 300);
	second->kind = OBSERVED_CLIENT;
	port_counts(second, 11);
	scrape();
	need_value("xroce_device_info", "mode=\"shared\"", 1);
	need_value("xroce_device_processes", NULL, 2);
	need_value("xroce_device_tx_packets_total", NULL, 6011);
	need_value("xroce_process_tx_packets_total", "pid=\"3202\"", 6000);
	assert_float_equal(total("xroce_process_tx_packets_total"), 6011, 0.001);
}

/* ---- bounds ---- */

static u64 make_qps(u32 num)
{
	struct fake_port *p = kernel_port("va", 5, 100);
	u64 sum = 0;

	port_qps(p, num);
	for (u32 i = 0; i < num; i++) {
		port_qp(p, i)->tx_packets = 100 * i;
		sum += 100 * i;
	}
	port_counts(p, sum);
	return sum;
}

static void export_bounds__the_rest_is_one_series(void **state)
{
	u64 sum;

	end(NULL);
	begin_with(1, 4);
	sum = make_qps(40);
	scrape();
	assert_int_equal(series("xroce_qp_tx_packets_total", NULL), 5);
	assert_int_equal(series("xroce_qp_info", NULL), 4);
	need_value("xroce_device_qps_other", NULL, 36);
	need_value("xroce_device_processes_other", NULL, 0);
	assert_int_equal(series("xroce_qp_tx_packets_total", "pid=\"other\",command=\"other\","
							     "qpn=\"other\""), 1);
	assert_float_equal(total("xroce_qp_tx_packets_total"), (double)sum, 0.001);
}

static void export_bounds__none_and_all(void **state)
{
	u64 sum;

	end(NULL);
	begin_with(0, 0);
	sum = make_qps(40);
	scrape();
	assert_int_equal(series("xroce_qp_tx_packets_total", NULL), 1);
	assert_int_equal(series("xroce_process_info", NULL), 0);
	assert_float_equal(total("xroce_process_tx_packets_total"), (double)sum, 0.001);
	need_value("xroce_device_tx_packets_total", NULL, sum);
	end(NULL);
	begin_with(8, 1000);
	make_qps(40);
	scrape();
	assert_int_equal(series("xroce_qp_info", NULL), 40);
}

/* ---- unreadable or silent processes ---- */

static void export_hidden__is_said(void **state)
{
	kernel_pingpong()->open_err = -EPERM;
	scrape();
	need_value("xroce_device_hidden", NULL, 1);
	assert_int_equal(series("xroce_process_info", NULL), 0);
	need_value("xroce_exporter_errors_total", "what=\"maps\"", 0);
}

static void export_broker__that_is_silent_is_an_error(void **state)
{
	struct fake_port *p = kernel_pingpong();

	p->kind = OBSERVED_CLIENT;
	p->pid = (u32)getpid(); /* a process that lives */
	fake.ifaces[0].broker_prog_id = 9;
	fake.ifaces[0].asks = true;
	scrape();
	need_value("xroce_exporter_errors_total", "what=\"broker\"", 0);
	fake.ifaces[0].asks = false;
	p->is_gone = true;
	scrape();
	need_value("xroce_exporter_errors_total", "what=\"broker\"", 1);
	assert_int_equal(series("xroce_qp_info", NULL), 1);
	fake.ifaces[0].asks = true;
	p->is_gone = false;
	scrape();
	need_value("xroce_device_processes", NULL, 1);
}

static void export_name__any_bytes(void **state)
{
	struct fake_port *p = kernel_pingpong();

	strcpy(p->command, "a\"} 9\\\t#\xc3\xa9\xff");
	scrape();
	need_value("xroce_process_info",
		   "command=\"a\\\"} 9\\\\\xef\xbf\xbd#\xc3\xa9\xef\xbf\xbd\"", 1);
}

/* ---- maps that lie ---- */

/* Each line is a comment, or a name, labels and a finite number that is not negative. */
static void need_valid_text(void)
{
	const char *at = x.t.at;

	for (const char *next; *at; at = next) {
		const char *value_at;
		char *after;
		double number;

		next = strchr(at, '\n');
		assert_non_null(next);
		for (const char *c = at; c < next; c++)
			assert_true((u8)*c >= ' ' && *c != 0x7f);
		next++;
		if (*at == '#')
			continue;
		if (strncmp(at, "xroce_", 6))
			fail_msg("no sample: %.*s", (int)(next - at), at);
		for (value_at = next - 1; value_at[-1] != ' '; value_at--)
			assert_true(value_at > at);
		number = strtod(value_at, &after);
		assert_true(after == next - 1 && number >= 0 && number <= 1.8446744073709552e19);
	}
	assert_string_equal(at - strlen("# EOF\n"), "# EOF\n");
}

static void export_maps__any_bytes(void **state)
{
	for (u32 size = 0; size < 40; size++) {
		struct fake_port *p;
		double before = 0;

		end(NULL);
		begin(NULL);
		p = kernel_pingpong();
		port_qps(p, 64);
		if (size)
			kernel_resize(p, size);
		for (u32 n = 0; n < 10; n++) {
			kernel_mutate(p, 100 * size + n);
			scrape();
			need_valid_text();
			assert_true(value("xroce_device_tx_packets_total", NULL) >= before);
			before = value("xroce_device_tx_packets_total", NULL);
			assert_true(series("xroce_qp_info", NULL) <= 64);
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(export_texts__of_queue_pairs),
		TEST(export__nobody_there),
		TEST(export_values__of_a_recorded_process),
		TEST(export_values__each_counter_in_its_series),
		TEST(export_totals__outlive_a_process),
		TEST(export_totals__another_program_counts_once),
		TEST(export_bounds__the_rest_is_one_series),
		TEST(export_bounds__none_and_all),
		TEST(export_hidden__is_said),
		TEST(export_broker__that_is_silent_is_an_error),
		TEST(export_name__any_bytes),
		TEST(export_maps__any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
