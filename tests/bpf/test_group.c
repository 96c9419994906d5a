/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Packets to multicast groups: packets to QP number 0xffffff and to an address with members here go
 * to the socket; all others with a multicast address, the host's own, pass untouched.
 */
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "bench.h"

static const uint8_t group4[16] = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [15] = 9 };
static const uint8_t group6[16] = { 0xff, 0x15, [15] = 9 };
static struct frame f;

static int groups(void)
{
	return bpf_map__fd(bench->skel->maps.xroce_group);
}

static void put_group(const uint8_t address[16])
{
	const struct xroce_group value = { .members = 2 };

	assert_int_equal(bpf_map_update_elem(groups(), address, &value, BPF_ANY), 0);
}

static uint64_t received(const uint8_t address[16])
{
	struct xroce_group value;

	assert_int_equal(bpf_map_lookup_elem(groups(), address, &value), 0);
	assert_int_equal(value.members, 2);
	return value.rx_packets;
}

static void reset(void)
{
	bench_reset();
	bpf_map_delete_elem(groups(), group4);
	bpf_map_delete_elem(groups(), group6);
}

static struct frame_spec datagram(bool ipv6)
{
	struct frame_spec s = bench_spec();

	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY_IMM);
	s.ecn_qpn = ROCE_MULTICAST_QPN;
	s.ext_len = 12;
	frame_put32(s.ext, 0x1234567); /* no QP's here: each member has its own */
	frame_put32(s.ext + 4, 0x4321);
	frame_put32(s.ext + 8, 0xfeed);
	s.ipv6 = ipv6;
	if (ipv6)
		memcpy(s.src, bench_peer6, 16);
	memcpy(s.dst, ipv6 ? group6 : group4, 16);
	return s;
}

static void group__members_have_it(void **state)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct frame_spec s = datagram(ipv6);

		reset();
		put_group(ipv6 ? group6 : group4);
		frame_build(&f, &s);
		bench_expect_taken("group", &f);
		assert_int_equal(bench->cqe.qpn, ROCE_MULTICAST_QPN);
		assert_int_equal(bench->cqe.src_qpn, 0x4321);
		assert_int_equal(bench->cqe.imm, htobe32(0xfeed));
		assert_int_equal(bench->cqe.byte_len, 64);
		assert_int_equal(bench->cqe.opcode, s.opcode);
		assert_int_equal(bench->cqe.flags,
				 XROCE_RX_IMM | (ipv6 ? XROCE_RX_IPV6 : 0));
		/* whatever members ask for */
		assert_true(bench->cqe.rx_time_ns != 0);
		assert_true(bench->cqe.flow_tag != 0);
		assert_int_equal(received(ipv6 ? group6 : group4), 1);
	}
}

/* What the host's own programs send each other by multicast is not looked at. */
static void others__pass(void **state)
{
	struct frame_spec s = datagram(false);

	reset();
	frame_build(&f, &s);
	bench_expect_pass("no member", f.bytes, f.len, true);
	put_group(group4);
	put_group(group6);
	s.dst[15] ^= 1;
	frame_build(&f, &s);
	bench_expect_pass("another group", f.bytes, f.len, true);
	s = datagram(false);
	s.dport = 5353;
	frame_build(&f, &s);
	bench_expect_pass("another port", f.bytes, f.len, false);
	s = datagram(false);
	s.protocol = 2;
	frame_build(&f, &s);
	bench_expect_pass("IGMP", f.bytes, f.len, false);
	s = datagram(false);
	s.ecn_qpn = BENCH_UD_QPN;
	frame_build(&f, &s);
	bench_expect_pass("to one QP", f.bytes, f.len, true);
	s = datagram(false);
	frame_build(&f, &s);
	f.len = f.bth + 15;
	frame_fix_lengths(&f);
	bench_expect_pass("without a BTH", f.bytes, f.len, true);
	assert_int_equal(received(group4), 0);
	/* the QP number alone belongs to no group */
	s = datagram(false);
	memcpy(s.dst, bench_local4, 16);
	frame_build(&f, &s);
	bench_expect_drop("to one host", f.bytes, f.len, XROCE_DROP_qp_unknown, 0);
}

static void group__faults_are_counted(void **state)
{
	static const uint8_t opcodes[] = { OPCODE(XROCE_RC, OP5_SEND_ONLY),
					   OPCODE(XROCE_UC, OP5_SEND_ONLY), OPCODE_CREDIT_PROBE,
					   OPCODE_CNP };
	struct frame_spec s;

	reset();
	put_group(group4);
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		s = datagram(false);
		s.opcode = opcodes[i];
		s.ext_len = opcodes[i] == OPCODE_CREDIT_PROBE || opcodes[i] == OPCODE_CNP ? 16 : 0;
		s.payload_len = s.ext_len ? 0 : 64;
		frame_build(&f, &s);
		bench_expect_drop("no datagram", f.bytes, f.len, XROCE_DROP_qp_transport, 0);
	}
	s = datagram(false);
	s.opcode = 0x7f;
	frame_build(&f, &s);
	bench_expect_drop("opcode", f.bytes, f.len, XROCE_DROP_opcode, 0);
	s = datagram(false);
	s.payload_len = 4097;
	frame_build(&f, &s);
	bench_expect_drop("too long", f.bytes, f.len, XROCE_DROP_payload_long, 0);
	s = datagram(false);
	frame_build(&f, &s);
	bench_put_xsk(0, false);
	bench_expect_drop("no socket", f.bytes, f.len, XROCE_DROP_no_socket, 0);
	assert_int_equal(received(group4), 0);
}

/* Threads that sleep on the socket are woken by it; else the worker is, if it asks. */
static void group__wakes_the_engine(void **state)
{
	const struct frame_spec s = datagram(false);
	const uint32_t slot = 0;
	struct bench_counts before;
	int ring;

	reset();
	put_group(group4);
	frame_build(&f, &s);
	bench->vector[0].watched = 1;
	bench_expect_taken("watched", &f);
	assert_int_equal(bench->cqe.flags & XROCE_RX_UNANNOUNCED, XROCE_RX_UNANNOUNCED);
	assert_int_equal(bench->vector[0].unannounced, 1);
	bench->vector[0].watched = 0;
	bench->vector[0].asleep = 1;
	before = bench_count();
	bench_expect_taken("asleep", &f);
	assert_int_equal(bench->cqe.flags & XROCE_RX_UNANNOUNCED, 0);
	/* without a ring the word stays: it is the socket's to wake */
	assert_int_equal(bench->vector[0].asleep, 1);
	assert_int_equal(bench_count().rx.engine_wakeups, before.rx.engine_wakeups);
	ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wakeups", 0, 0, XROCE_RING_BYTES, NULL);
	assert_true(ring >= 0);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(bench->skel->maps.xroce_channel), &slot,
					     &ring, BPF_ANY),
			 0);
	close(ring);
	bench_expect_taken("a ring", &f);
	assert_int_equal(bench->vector[0].asleep, 0);
	assert_int_equal(bench->vector[0].wakeups, 1);
	assert_int_equal(bench_count().rx.engine_wakeups, before.rx.engine_wakeups + 1);
	assert_int_equal(bench->vector[0].unannounced, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(group__members_have_it),
		cmocka_unit_test(others__pass),
		cmocka_unit_test(group__faults_are_counted),
		cmocka_unit_test(group__wakes_the_engine),
	};

	return cmocka_run_group_tests(tests, bench_setup, bench_teardown);
}
