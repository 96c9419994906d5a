/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Copies of packets for tracers (xroce/trace.h): the content of a record, the packets that have
 * one, the return of a place with an expired lease, and that no packet is treated differently.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "bench.h"

#define RING_BYTES (64u << 10)

static struct frame f;
static struct xroce_trace *trace;
static struct {
	int fd;
	struct ring_buffer *reader;
} ring[XROCE_TRACERS];

/* What a ring had. */
static struct {
	uint32_t records, size;
	struct xroce_record head;
	uint8_t data[BENCH_BYTES];
} got;

static int on_record(void *arg, void *data, size_t size)
{
	got.records++;
	got.size = (uint32_t)size;
	memcpy(&got.head, data, sizeof(got.head));
	memcpy(got.data, (const uint8_t *)data + sizeof(got.head), size - sizeof(got.head));
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static int setup(void **state)
{
	if (bench_setup(state))
		return -1;
	trace = mmap(NULL, sizeof(*trace), PROT_READ | PROT_WRITE, MAP_SHARED,
		     bpf_map__fd(bench->skel->maps.data_trace), 0);
	if (trace == MAP_FAILED)
		return -1;
	for (uint32_t i = 0; i < XROCE_TRACERS; i++) {
		ring[i].fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "t", 0, 0, RING_BYTES, NULL);
		ring[i].reader = ring_buffer__new(ring[i].fd, on_record, NULL, NULL);
		if (!ring[i].reader ||
		    bpf_map_update_elem(bpf_map__fd(bench->skel->maps.xroce_tracer), &i,
					&ring[i].fd, BPF_ANY))
			return -1;
	}
	return 0;
}

/* That tracer looks, at everything, for a minute. */
static void look(uint32_t place)
{
	trace->tracer[place] = (struct xroce_tracer){ .until_ns = now_ns() + 60000000000ull,
						      .what = XROCE_TRACE_RECEIVED |
							      XROCE_TRACE_DROPPED,
						      .bytes = BENCH_BYTES };
	trace->listening |= 1u << place;
}

static void reset(void)
{
	bench_reset();
	trace->listening = 0;
	for (uint32_t i = 0; i < XROCE_TRACERS; i++)
		ring_buffer__consume(ring[i].reader);
	memset(trace->tracer, 0, sizeof(trace->tracer));
	memset(&got, 0, sizeof(got));
}

static uint32_t records_of(uint32_t place)
{
	got.records = 0;
	ring_buffer__consume(ring[place].reader);
	return got.records;
}

static void build(const struct frame_spec *s)
{
	frame_build(&f, s);
}

static void trace__received(void **state)
{
	struct frame_spec s = bench_spec();
	const uint64_t before_ns = now_ns();

	reset();
	look(0);
	s.bth_flags |= BTH_SE;
	build(&s);
	bench_expect_redirect("received", f.bytes, f.len, BENCH_RC_QPN);
	assert_int_equal(records_of(0), 1);
	assert_int_equal(got.head.kind, XROCE_RECORD_RECEIVED);
	assert_int_equal(got.head.drop, XROCE_DROP_none);
	assert_int_equal(got.head.len, f.len);
	assert_memory_equal(got.data, f.bytes, f.len);
	assert_int_equal(got.head.cqe.qpn, BENCH_RC_QPN);
	assert_int_equal(got.head.cqe.byte_len, 64);
	assert_int_equal(got.head.cqe.opcode, s.opcode);
	assert_int_equal(got.head.cqe.l3_offset, 14);
	assert_true(got.head.cqe.flags & XROCE_RX_SOLICITED);
	/* whether or not the QP asks for times */
	assert_true(got.head.cqe.rx_time_ns >= before_ns && got.head.cqe.rx_time_ns <= now_ns());
	assert_int_equal(trace->tracer[0].recorded, 1);
	assert_int_equal(trace->tracer[0].lost, 0);
}

static void trace__dropped(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	look(0);
	s.pkey = 0x8123;
	build(&s);
	bench_expect_drop("P_Key", f.bytes, f.len, XROCE_DROP_pkey, BENCH_RC_QPN);
	assert_int_equal(records_of(0), 1);
	assert_int_equal(got.head.kind, XROCE_RECORD_DROPPED);
	assert_int_equal(got.head.drop, XROCE_DROP_pkey);
	assert_int_equal(got.head.cqe.qpn, BENCH_RC_QPN);
	assert_memory_equal(got.data, f.bytes, f.len);
	/* without a BTH no QP is named */
	s = bench_spec();
	s.option_bytes = 4;
	build(&s);
	bench_expect_drop("options", f.bytes, f.len, XROCE_DROP_ip_options, 0);
	assert_int_equal(records_of(0), 1);
	assert_int_equal(got.head.drop, XROCE_DROP_ip_options);
	assert_int_equal(got.head.cqe.qpn, 0);
}

static void trace__nobody_looks(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	look(0);
	trace->listening = 0;
	build(&s);
	bench_expect_redirect("alone", f.bytes, f.len, BENCH_RC_QPN);
	assert_int_equal(records_of(0), 0);
	assert_int_equal(trace->tracer[0].lost, 0);
}

static void trace__filters(void **state)
{
	static const uint8_t other[16] = { [10] = 0xff, 0xff, 10, 9, 8, 7 };
	struct frame_spec good = bench_spec(), bad = bench_spec();

	bad.pkey = 0x8123;
	for (uint32_t place = 0; place < XROCE_TRACERS; place++) {
		struct xroce_tracer *t = &trace->tracer[place];

		reset();
		look(place);
		t->what = XROCE_TRACE_DROPPED;
		build(&good);
		bench_expect_redirect("drops alone", f.bytes, f.len, BENCH_RC_QPN);
		assert_int_equal(records_of(place), 0);
		t->what = XROCE_TRACE_RECEIVED;
		build(&bad);
		bench_expect_drop("no drops", f.bytes, f.len, XROCE_DROP_pkey, BENCH_RC_QPN);
		assert_int_equal(records_of(place), 0);
		t->what |= XROCE_TRACE_DROPPED;
		t->qpn = BENCH_UD_QPN;
		bench_expect_drop("another QP's", f.bytes, f.len, XROCE_DROP_pkey, BENCH_RC_QPN);
		build(&good);
		bench_expect_redirect("another QP's", f.bytes, f.len, BENCH_RC_QPN);
		assert_int_equal(records_of(place), 0);
		t->qpn = BENCH_RC_QPN;
		t->has_peer = 1;
		memcpy(t->peer, other, sizeof(t->peer));
		bench_expect_redirect("another peer's", f.bytes, f.len, BENCH_RC_QPN);
		assert_int_equal(records_of(place), 0);
		memcpy(t->peer, bench_peer4, sizeof(t->peer));
		bench_expect_redirect("this peer's", f.bytes, f.len, BENCH_RC_QPN);
		assert_int_equal(records_of(place), 1);
		/* nothing of that is a loss */
		assert_int_equal(t->lost, 0);
	}
}

/* As many bytes as are wanted, and the length of the whole. */
static void trace__bytes(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	look(0);
	trace->tracer[0].bytes = 80;
	s.payload_len = 4000;
	build(&s);
	bench_expect_redirect("cut off", f.bytes, f.len, BENCH_RC_QPN);
	assert_int_equal(records_of(0), 1);
	assert_int_equal(got.size, sizeof(got.head) + 80);
	assert_int_equal(got.head.len, f.len);
	assert_memory_equal(got.data, f.bytes, 80);
}

static void trace__lost(void **state)
{
	struct frame_spec s = bench_spec();
	const uint32_t packets = 40;
	uint32_t kept;

	reset();
	look(0);
	s.payload_len = 4000;
	build(&s);
	for (uint32_t i = 0; i < packets; i++)
		bench_expect_redirect("many", f.bytes, f.len, BENCH_RC_QPN);
	kept = records_of(0);
	assert_true(kept > 5 && kept < packets);
	assert_int_equal(trace->tracer[0].recorded, kept);
	assert_int_equal(trace->tracer[0].lost, packets - kept);
}

/* Each has its own copy, and its own filter. */
static void trace__all_places(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	for (uint32_t i = 0; i < XROCE_TRACERS; i++)
		look(i);
	trace->tracer[2].qpn = BENCH_UD_QPN;
	build(&s);
	bench_expect_redirect("for all", f.bytes, f.len, BENCH_RC_QPN);
	for (uint32_t i = 0; i < XROCE_TRACERS; i++)
		assert_int_equal(records_of(i), i != 2);
}

/*
 * The library's records come whole, whatever packets are selected, and are counted by kind: packets
 * for tracers of sent packets, events for tracers of events.
 */
static void trace__tale(void **state)
{
	static struct xroce_trace_report report;
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &report, .ctx_size_in = sizeof(report));
	const int prog = bpf_program__fd(bench->skel->progs.xroce_trace_tx);
	const uint32_t bytes = 5000, size = (uint32_t)sizeof(report.record) + bytes;

	report.record = (struct xroce_trace_record){
		.packets = 3, .events = 2, .lost_packets = 5, .lost_events = 7, .bytes = bytes
	};
	for (uint32_t i = 0; i < bytes; i++)
		report.entries[i] = (uint8_t)(7 * i);
	memset(report.head, 0xff, sizeof(report.head));
	reset();
	look(0);
	assert_int_equal(bpf_prog_test_run_opts(prog, &run), 0);
	assert_int_equal(run.retval, 0);
	assert_int_equal(records_of(0), 0); /* it is not wanted */
	assert_int_equal(trace->tracer[0].lost, 0);
	look(2);
	trace->tracer[0].what = XROCE_TRACE_EVENTS;
	trace->tracer[0].qpn = BENCH_UD_QPN;
	trace->tracer[0].bytes = 80;
	trace->tracer[2].what = XROCE_TRACE_SENT;
	assert_int_equal(bpf_prog_test_run_opts(prog, &run), 0);
	assert_int_equal(run.retval, XROCE_TRACE_EVENTS | XROCE_TRACE_SENT);
	assert_int_equal(records_of(2), 1);
	assert_int_equal(records_of(0), 1);
	assert_int_equal(got.size, sizeof(got.head) + size);
	assert_int_equal(got.head.kind, XROCE_RECORD_TRACE);
	assert_int_equal(got.head.drop, 0);
	assert_int_equal(got.head.cqe.qpn, 0);
	assert_int_equal(got.head.len, size);
	assert_memory_equal(got.data, &report.record, size);
	assert_int_equal(trace->tracer[0].recorded, 2);
	assert_int_equal(trace->tracer[0].lost, 7);
	assert_int_equal(trace->tracer[2].recorded, 3);
	assert_int_equal(trace->tracer[2].lost, 5);
	report.record.lost_packets = report.record.lost_events = 0;
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(bpf_prog_test_run_opts(prog, &run), 0);
	assert_int_equal(trace->tracer[0].recorded + trace->tracer[0].lost, 2 * 41 + 7);
	assert_true(trace->tracer[0].lost > 7 && trace->tracer[0].lost % 2 == 1);
}

/* The longest record; one with a false longer length; a context that is shorter. */
static void trace__tale_of_any_length(void **state)
{
	static struct xroce_trace_report report = {
		.record = { .packets = 1, .bytes = XROCE_TRACE_ENTRIES_BYTES }
	};
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &report, .ctx_size_in = sizeof(report));
	const int prog = bpf_program__fd(bench->skel->progs.xroce_trace_tx);
	const uint32_t wrong[] = { XROCE_TRACE_ENTRIES_BYTES + 1, 1u << 30, ~0u };

	reset();
	look(1);
	trace->tracer[1].what = XROCE_TRACE_SENT;
	assert_int_equal(bpf_prog_test_run_opts(prog, &run), 0);
	assert_int_equal(records_of(1), 1);
	assert_int_equal(got.size, sizeof(report));
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		report.record.bytes = wrong[i];
		assert_int_equal(bpf_prog_test_run_opts(prog, &run), 0);
		assert_int_equal(records_of(1), 0);
	}
	report.record.bytes = 0;
	run.ctx_size_in = sizeof(report) - 1;
	assert_true(bpf_prog_test_run_opts(prog, &run) < 0);
	assert_int_equal(trace->tracer[1].recorded, 1);
	assert_int_equal(trace->tracer[1].lost, 0);
}

/* The time is the library's, unless it lies in the future or long ago. */
static void trace__tale_time(void **state)
{
	static struct xroce_trace_report report = { .record = { .packets = 1 } };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &report, .ctx_size_in = sizeof(report));
	const int prog = bpf_program__fd(bench->skel->progs.xroce_trace_tx);
	const struct {
		int64_t ago_ns;
		bool is_kept;
	} times[] = {
		{ 0, true },
		{ 1000000000, true },
		{ -1000000000, false },
		{ (int64_t)XROCE_TRACE_LEASE, false },
		{ INT64_MAX, false },
	};

	for (uint32_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		const uint64_t before_ns = now_ns();

		reset();
		look(1);
		trace->tracer[1].what = XROCE_TRACE_SENT;
		report.record.time_ns = before_ns - (uint64_t)times[i].ago_ns;
		assert_int_equal(bpf_prog_test_run_opts(prog, &run), 0);
		assert_int_equal(records_of(1), 1);
		if (times[i].is_kept)
			assert_int_equal(got.head.cqe.rx_time_ns, report.record.time_ns);
		else
			assert_in_range(got.head.cqe.rx_time_ns, before_ns, now_ns());
	}
}

/* A killed tracer gets no more copies, and others continue. */
static void trace__lease_passes(void **state)
{
	struct frame_spec s = bench_spec();

	build(&s);
	for (uint32_t i = 0; i < XROCE_TRACERS; i++) {
		const uint32_t other = (i + 1) % XROCE_TRACERS;

		reset();
		look(i);
		look(other);
		trace->tracer[i].until_ns = now_ns();
		bench_expect_redirect("after its end", f.bytes, f.len, BENCH_RC_QPN);
		assert_int_equal(records_of(i), 0);
		assert_int_equal(records_of(other), 1);
		assert_int_equal(trace->listening, 1u << other);
	}
	reset();
	look(1);
	trace->tracer[1].until_ns = now_ns();
	s.pkey = 0x8123;
	build(&s);
	bench_expect_drop("a drop", f.bytes, f.len, XROCE_DROP_pkey, BENCH_RC_QPN);
	assert_int_equal(trace->listening, 0);
	assert_int_equal(records_of(1), 0);
}

/* The same if the library notices it. */
static void trace__lease_passes_for_the_library(void **state)
{
	static struct xroce_trace_report report = { .record = { .packets = 1 } };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &report, .ctx_size_in = sizeof(report));
	const int prog = bpf_program__fd(bench->skel->progs.xroce_trace_tx);

	reset();
	look(1);
	trace->tracer[1].what = XROCE_TRACE_SENT;
	assert_int_equal(bpf_prog_test_run_opts(prog, &run), 0);
	assert_int_equal(run.retval, XROCE_TRACE_SENT);
	trace->tracer[1].until_ns = now_ns();
	assert_int_equal(bpf_prog_test_run_opts(prog, &run), 0);
	assert_int_equal(run.retval, 0);
	assert_int_equal(trace->listening, 0);
	assert_int_equal(trace->tracer[1].recorded, 1);
	assert_int_equal(trace->tracer[1].lost, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace__received),   cmocka_unit_test(trace__dropped),
		cmocka_unit_test(trace__nobody_looks), cmocka_unit_test(trace__filters),
		cmocka_unit_test(trace__bytes),	     cmocka_unit_test(trace__lost),
		cmocka_unit_test(trace__all_places), cmocka_unit_test(trace__tale),
		cmocka_unit_test(trace__tale_of_any_length), cmocka_unit_test(trace__tale_time),
		cmocka_unit_test(trace__lease_passes),
		cmocka_unit_test(trace__lease_passes_for_the_library),
	};

	return cmocka_run_group_tests(tests, setup, bench_teardown);
}
