/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Frames by flows of raw packet QPs: what one takes is redirected with its QP's number, what none
 * takes passes untouched, and no RoCEv2 packet for this device ever comes to one. Which frames
 * match, tests/unit/test_raw.c has in full: the code is the same.
 */
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "bench.h"

#define RAW_QPN	   0x15
#define LONGEST	   1518
#define OTHER_PORT 5000

static struct frame f;
static const struct xroce_flow_key none;

static void put(uint32_t key, const struct xroce_flow *flow)
{
	const int fd = bpf_map__fd(bench->skel->maps.xroce_flow);

	assert_int_equal(bpf_map_update_elem(fd, &key, flow, BPF_ANY), 0);
}

static void put_flow(uint32_t key, const struct xroce_flow_key *value,
		     const struct xroce_flow_key *mask, uint32_t qpn)
{
	const struct xroce_flow flow = { .value = *value, .mask = *mask, .qpn = qpn };

	put(key, &flow);
}

static void put_flows(uint32_t generation, uint32_t in_first, uint32_t in_second)
{
	const struct xroce_flows flows = { .generation = generation,
					   .num = { in_first, in_second },
					   .longest = LONGEST };
	const uint32_t zero = 0;
	const int fd = bpf_map__fd(bench->skel->maps.xroce_flows);

	assert_int_equal(bpf_map_update_elem(fd, &zero, &flows, BPF_ANY), 0);
}

static void put_qp(bool receiving)
{
	struct xroce_qp qp = { .transport = XROCE_RAW,
			       .receiving = receiving,
			       .recv_cq = BENCH_RECV_CQ,
			       .send_cq = BENCH_SEND_CQ };

	bench_put_qp(RAW_QPN, &qp);
}

static void reset(void)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	put_qp(true);
	put_flows(0, 0, 0);
	frame_build(&f, &s);
	frame_put16(f.bytes + 14 + 20 + 2, OTHER_PORT);
}

static void expect_taken(const char *what)
{
	struct xroce_qp qp;

	bench_expect_taken(what, &f);
	assert_int_equal(bench->cqe.qpn, RAW_QPN);
	assert_int_equal(bench->cqe.l3_offset, 0);
	assert_int_equal(bench->cqe.byte_len, f.len);
	qp = bench_get_qp(RAW_QPN);
	assert_int_equal(qp.rx_packets, 1);
	assert_int_equal(qp.rx_bytes, f.len);
}

static void flow__none_passes(void **state)
{
	reset();
	bench_expect_pass("no flow", f.bytes, f.len, false);
}

static void flow__takes_what_matches(void **state)
{
	const struct xroce_flow_key port = { .dport = htobe16(OTHER_PORT) },
				    other = { .dport = htobe16(OTHER_PORT + 1) },
				    mask = { .dport = 0xffff };

	reset();
	put_flow(0, &other, &mask, RAW_QPN + 1);
	put_flow(1, &port, &mask, RAW_QPN);
	put_flows(0, 2, 0);
	expect_taken("the second flow");
	/* one flow less: it is not looked at */
	put_flows(0, 1, 0);
	bench_expect_pass("another port", f.bytes, f.len, false);
}

static void flow__the_half_that_counts(void **state)
{
	reset();
	put_flow(XROCE_MAX_FLOW, &none, &none, RAW_QPN);
	put_flow(0, &none, &none, RAW_QPN + 1);
	put_flows(0, 0, 1);
	bench_expect_pass("the first half is empty", f.bytes, f.len, false);
	put_flows(1, 0, 1);
	expect_taken("the second half");
}

/* All flows that there can be, and the last one takes it. */
static void flow__the_last_of_all(void **state)
{
	const struct xroce_flow_key other = { .dport = 1 }, mask = { .dport = 0xffff };

	reset();
	for (uint32_t i = 0; i + 1 < XROCE_MAX_FLOW; i++)
		put_flow(i, &other, &mask, RAW_QPN + 1);
	put_flow(XROCE_MAX_FLOW - 1, &none, &none, RAW_QPN);
	put_flows(0, XROCE_MAX_FLOW, 0);
	expect_taken("the last flow");
}

static void flow__too_long_passes(void **state)
{
	static uint8_t bytes[LONGEST + 1];

	reset();
	memcpy(bytes, f.bytes, f.len);
	put_flow(0, &none, &none, RAW_QPN);
	put_flows(0, 1, 0);
	bench_expect_pass("a super-packet", bytes, sizeof(bytes), false);
	assert_int_equal(bench_run(bytes, LONGEST), XDP_REDIRECT);
}

/* Its own packets never come to a flow, whether they are good or not; others' do. */
static void flow__behind_roce(void **state)
{
	struct frame_spec s = bench_spec();

	reset();
	put_flow(0, &none, &none, RAW_QPN);
	put_flows(0, 1, 0);
	frame_build(&f, &s);
	bench_expect_redirect("RoCEv2", f.bytes, f.len, BENCH_RC_QPN);
	s.ecn_qpn = 0x999;
	frame_build(&f, &s);
	bench_expect_drop("no such QP", f.bytes, f.len, XROCE_DROP_qp_unknown, 0);
	/* to the raw packet QP's number */
	s.ecn_qpn = RAW_QPN;
	frame_build(&f, &s);
	bench_expect_drop("to a raw packet QP", f.bytes, f.len, XROCE_DROP_qp_transport, RAW_QPN);
	/* a CNP is of no transport, but not for raw packets either */
	s.opcode = OPCODE_CNP;
	s.ext_len = 0;
	s.payload_len = 16;
	frame_build(&f, &s);
	bench_expect_drop("a CNP", f.bytes, f.len, XROCE_DROP_qp_transport, RAW_QPN);
	/* another program's address */
	reset();
	put_flow(0, &none, &none, RAW_QPN);
	put_flows(0, 1, 0);
	s = bench_spec();
	s.dst[15] ^= 0x40;
	frame_build(&f, &s);
	expect_taken("RoCEv2 for somebody else");
}

static void flow__qp_not_receiving(void **state)
{
	reset();
	put_flow(0, &none, &none, RAW_QPN);
	put_flows(0, 1, 0);
	put_qp(false);
	bench_expect_drop("not receiving", f.bytes, f.len, XROCE_DROP_qp_state, RAW_QPN);
}

/* A deleted flow, or one of another kind of QP, takes nothing. */
static void flow__no_such_qp(void **state)
{
	reset();
	put_flow(0, &none, &none, RAW_QPN + 1);
	put_flows(0, 1, 0);
	bench_expect_pass("no QP", f.bytes, f.len, false);
	put_flow(0, &none, &none, BENCH_RC_QPN);
	bench_expect_pass("no raw packet QP", f.bytes, f.len, false);
}

static void flow__shortest(void **state)
{
	reset();
	put_flow(0, &none, &none, RAW_QPN);
	put_flows(0, 1, 0);
	f.len = 14;
	expect_taken("an Ethernet header");
}

/* At once, whatever its length and its QP's state; counted, without a wake-up. */
static void flow__drops(void **state)
{
	const struct xroce_flow drop = { .qpn = RAW_QPN, .actions = XROCE_FLOW_DROP };
	static uint8_t bytes[LONGEST + 1];

	reset();
	put(0, &drop);
	put_flow(1, &none, &none, RAW_QPN);
	put_flows(0, 2, 0);
	bench_expect_drop("dropped", f.bytes, f.len, XROCE_DROP_flow_drop, 0);
	memcpy(bytes, f.bytes, f.len);
	bench_expect_drop("a super-packet", bytes, sizeof(bytes), XROCE_DROP_flow_drop, 0);
	put_qp(false);
	bench_expect_drop("not receiving", f.bytes, f.len, XROCE_DROP_flow_drop, 0);
}

/* A drop flow after the flow that takes the frame has no effect. */
static void flow__first_of_two_decides(void **state)
{
	const struct xroce_flow drop = { .qpn = RAW_QPN, .actions = XROCE_FLOW_DROP, .order = 1 };

	reset();
	put_flow(0, &none, &none, RAW_QPN);
	put(1, &drop);
	put_flows(0, 2, 0);
	expect_taken("the first flow");
}

/*
 * Each flow of the first one's order that takes the frame counts it: no other, and none after the
 * flows. If the flags say that none counts, none is read.
 */
static void flow__counts(void **state)
{
	const struct xroce_flow_key other = { .dport = 1 }, mask = { .dport = 0xffff };
	const uint32_t more = XROCE_FLOW_MORE_COUNT;
	struct xroce_flow flow[] = {
		{ .qpn = RAW_QPN, .order = 3, .counter = 1, .value = other, .mask = mask,
		  .actions = more },
		{ .qpn = RAW_QPN, .order = 3, .counter = 2, .actions = more },
		{ .qpn = RAW_QPN, .order = 3, .counter = 3, .value = other, .mask = mask,
		  .actions = more },
		{ .qpn = RAW_QPN, .order = 3, .actions = more },
		{ .qpn = RAW_QPN, .order = 3, .counter = XROCE_MAX_COUNTER - 1 },
		{ .qpn = RAW_QPN, .order = 3, .counter = 4 },
		{ .qpn = RAW_QPN, .order = 5, .counter = 5 },
	};
	struct xroce_flow_count before[6], last, now;

	reset();
	for (uint32_t i = 0; i < 7; i++)
		put(i, &flow[i]);
	put_flows(0, 7, 0);
	for (uint32_t i = 1; i < 6; i++)
		before[i] = bench_flow_count(i);
	last = bench_flow_count(XROCE_MAX_COUNTER - 1);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_REDIRECT);
	for (uint32_t i = 1; i < 6; i++) {
		now = bench_flow_count(i);
		assert_int_equal(now.packets - before[i].packets, i == 2);
		assert_int_equal(now.bytes - before[i].bytes, i == 2 ? f.len : 0);
	}
	now = bench_flow_count(XROCE_MAX_COUNTER - 1);
	assert_int_equal(now.packets - last.packets, 1);
	assert_int_equal(now.bytes - last.bytes, f.len);
	/* the order ends: whatever the flag says */
	flow[1].actions |= XROCE_FLOW_DROP;
	flow[2].order = 4;
	put(1, &flow[1]);
	put(2, &flow[2]);
	assert_int_equal(bench_run(f.bytes, f.len), XDP_DROP);
	now = bench_flow_count(2);
	assert_int_equal(now.packets - before[2].packets, 2);
	now = bench_flow_count(XROCE_MAX_COUNTER - 1);
	assert_int_equal(now.packets - last.packets, 1);
}

/* The matching code is the library's; XDP compares inner headers, and only on request. */
static void flow__tunnels(void **state)
{
	static const uint8_t vxlan[] = { 8, 0, 0, 0, 0x12, 0x34, 0x56, 0 };
	struct xroce_flow flow = { .qpn = RAW_QPN };
	static uint8_t inner[256];
	const uint32_t at = 14 + 20 + 8 + sizeof(vxlan);

	reset();
	memcpy(inner, f.bytes, 14 + 20 + 8);
	memcpy(f.bytes + 14 + 20 + 8, vxlan, sizeof(vxlan));
	memcpy(f.bytes + at, inner, 14 + 20 + 8);
	f.len = at + 14 + 20 + 8;
	frame_put16(f.bytes + 14 + 20 + 2, 4789);
	flow.tunnel_value.id = htobe32(0x123456);
	flow.tunnel_mask.id = ~0u;
	flow.tunnel_value.inner.dport = htobe16(OTHER_PORT + 1);
	flow.tunnel_mask.inner.dport = 0xffff;
	put(0, &flow);
	put_flows(0, 1, 0);
	expect_taken("no tunnel is asked for");
	flow.value.kinds = flow.mask.kinds = XROCE_FLOW_TUNNEL;
	put(0, &flow);
	bench_expect_pass("another inner port", f.bytes, f.len, false);
	flow.tunnel_value.inner.dport = htobe16(OTHER_PORT);
	put(0, &flow);
	put_qp(true);
	expect_taken("the inner port");
	f.bytes[at - 2] ^= 1;
	bench_expect_pass("another VNI", f.bytes, f.len, false);
}

/* A frame that passes, as it is too long, is not counted. */
static void flow__counts_what_it_takes(void **state)
{
	const struct xroce_flow flow = { .qpn = RAW_QPN, .counter = 1 };
	const struct xroce_flow_count before = bench_flow_count(1);
	static uint8_t bytes[LONGEST + 1];
	struct xroce_flow_count now;

	reset();
	memcpy(bytes, f.bytes, f.len);
	put(0, &flow);
	put_flows(0, 1, 0);
	bench_expect_pass("a super-packet", bytes, sizeof(bytes), false);
	now = bench_flow_count(1);
	assert_int_equal(now.packets, before.packets);
	/* matched, and refused by its QP */
	put_qp(false);
	bench_expect_drop("not receiving", f.bytes, f.len, XROCE_DROP_qp_state, RAW_QPN);
	now = bench_flow_count(1);
	assert_int_equal(now.packets - before.packets, 1);
	assert_int_equal(now.bytes - before.bytes, f.len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow__none_passes),
		cmocka_unit_test(flow__takes_what_matches),
		cmocka_unit_test(flow__the_half_that_counts),
		cmocka_unit_test(flow__the_last_of_all),
		cmocka_unit_test(flow__too_long_passes),
		cmocka_unit_test(flow__behind_roce),
		cmocka_unit_test(flow__qp_not_receiving),
		cmocka_unit_test(flow__no_such_qp),
		cmocka_unit_test(flow__shortest),
		cmocka_unit_test(flow__drops),
		cmocka_unit_test(flow__first_of_two_decides),
		cmocka_unit_test(flow__counts),
		cmocka_unit_test(flow__counts_what_it_takes),
		cmocka_unit_test(flow__tunnels),
	};

	return cmocka_run_group_tests(tests, bench_setup, bench_teardown);
}
