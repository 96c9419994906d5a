/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UDP super-packets, which nothing on the way had to cut: told by their checksum and identification, handed over whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "bench.h"

#define SEGMENT 80u /* UDP payload of each: a BTH, 64 bytes, an ICRC */

static struct frame f;

/* A frame of that much UDP payload, with this identification and, unless sum is false, the checksum of a super-packet. */
static void build(const struct frame_spec *spec, uint32_t udp_payload, uint16_t id, bool sum)
{
	struct frame_spec s = *spec;

	s.payload_len = udp_payload - 16 - s.ext_len;
	frame_build(&f, &s);
	frame_put16(f.bytes + f.l3 + 4, id);
	if (sum)
		bench_sum_super(&f);
}

static void expect_super(const char *what, uint32_t segments, uint32_t qpn)
{
	struct bench_counts before = bench_count(), after;
	struct xroce_qp qp = bench_get_qp(qpn);

	check(bench_run(f.bytes, f.len) == XDP_REDIRECT, "%s: not redirected", what);
	after = bench_count();
	check(bench->has_cqe && bench->cqe.flags & XROCE_RX_GSO, "%s: no CQE that says so", what);
	assert_int_equal(bench->cqe.qpn, qpn);
	assert_int_equal(bench->cqe.l3_offset, f.l3);
	assert_int_equal(after.rx.redirected, before.rx.redirected + 1);
	assert_int_equal(after.rx.super_packets, before.rx.super_packets + 1);
	assert_int_equal(after.rx.super_segments, before.rx.super_segments + segments);
	assert_int_equal(bench_get_qp(qpn).rx_packets, qp.rx_packets + segments);
	assert_int_equal(bench_get_qp(qpn).rx_bytes, qp.rx_bytes + f.len - f.bth - segments * 16);
}

static void super__whole_and_with_a_rest(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	build(&s, 2 * SEGMENT, SEGMENT, true);
	expect_super("two", 2, BENCH_RC_QPN);
	build(&s, 10 * SEGMENT + 20, SEGMENT, true);
	expect_super("ten and a rest", 11, BENCH_RC_QPN);
	build(&s, SEGMENT + 4, SEGMENT, true);
	expect_super("one and no room for another", 2, BENCH_RC_QPN);
	/* sums that carry */
	memset(s.src + 12, 0xff, 4);
	build(&s, 3 * SEGMENT, SEGMENT, true);
	expect_super("carries", 3, BENCH_RC_QPN);
}

/* The opcode's own rules are of one packet: ACKs have no payload. Nor is the first one's QP the only one meant. */
static void super__not_checked_as_one_packet(void **state)
{
	struct frame_spec s = bench_spec();
	struct xroce_qp qp;

	bench_reset();
	s.opcode = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE);
	s.ext_len = 4;
	build(&s, 5 * 20, 20, true);
	expect_super("ACKs", 5, BENCH_RC_QPN);
	s = bench_spec();
	qp = bench_get_qp(BENCH_RC_QPN);
	qp.receiving = 0;
	bench_put_qp(BENCH_RC_QPN, &qp);
	build(&s, 4 * SEGMENT, SEGMENT, true);
	expect_super("not receiving", 4, BENCH_RC_QPN);
}

static void super__of_nobody(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	s.ecn_qpn = 0x777;
	build(&s, 4 * SEGMENT, SEGMENT, true);
	bench_expect_drop("no such QP", f.bytes, f.len, XROCE_DROP_qp_unknown, 0);
	s = bench_spec();
	s.dst[15] ^= 0x40;
	build(&s, 4 * SEGMENT, SEGMENT, true);
	bench_expect_pass("another's address", f.bytes, f.len, true);
}

/* Without the checksum's sign, or with a length that makes no sense, it is one packet. */
static void super__other_packets_are_none(void **state)
{
	static const uint16_t sizes[] = { 0, 15, 4 * SEGMENT, 4 * SEGMENT + 1, 0xffff };
	struct frame_spec s = bench_spec();

	bench_reset();
	build(&s, 4 * SEGMENT, SEGMENT, false);
	bench_expect_redirect("no checksum", f.bytes, f.len, BENCH_RC_QPN);
	build(&s, 4 * SEGMENT, SEGMENT, true);
	f.bytes[f.l4 + 7]++;
	bench_expect_redirect("another checksum", f.bytes, f.len, BENCH_RC_QPN);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		build(&s, 4 * SEGMENT, sizes[i], true);
		bench_expect_redirect("no segment's length", f.bytes, f.len, BENCH_RC_QPN);
	}
	s.ipv6 = true;
	memcpy(s.src, bench_peer6, 16);
	memcpy(s.dst, bench_local6, 16);
	frame_build(&f, &s);
	frame_put16(f.bytes + f.l4 + 6, SEGMENT);
	bench_expect_drop("IPv6, from another than the peer", f.bytes, f.len, XROCE_DROP_peer, BENCH_RC_QPN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(super__whole_and_with_a_rest),
		cmocka_unit_test(super__not_checked_as_one_packet),
		cmocka_unit_test(super__of_nobody),
		cmocka_unit_test(super__other_packets_are_none),
	};

	return cmocka_run_group_tests_name("super", tests, bench_setup, bench_teardown);
}
