/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * UDP super-packets, which nothing on the way had to cut: told by their checksum and
 * identification, handed over whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "bench.h"

#define SEGMENT 80u /* UDP payload of each: a BTH, 64 bytes, an ICRC */

static struct frame f;

/*
 * A frame of that UDP payload length, with this identification and, unless sum is false, the
 * checksum of a super-packet.
 */
static void build(const struct frame_spec *spec, uint32_t udp_payload, uint16_t id, bool sum)
{
	struct frame_spec s = *spec;

	s.payload_len = udp_payload - 16 - s.ext_len;
	frame_build(&f, &s);
	frame_put16(f.bytes + f.l3 + 4, id);
	if (sum)
		bench_sum_super(&f);
}

/* bytes: of payload, if all have the first one's headers. */
static void expect_super(const char *what, uint32_t segments, uint32_t bytes, uint32_t qpn)
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
	assert_int_equal(bench_get_qp(qpn).rx_bytes, qp.rx_bytes + bytes);
	assert_int_equal(bench_get_qp(qpn).rx_dropped, qp.rx_dropped);
}

static void super__whole_and_with_a_rest(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	build(&s, 2 * SEGMENT, SEGMENT, true);
	expect_super("two", 2, 2 * 64, BENCH_RC_QPN);
	build(&s, 10 * SEGMENT + 20, SEGMENT, true);
	expect_super("ten and a rest", 11, 10 * 64 + 4, BENCH_RC_QPN);
	build(&s, SEGMENT + 4, SEGMENT, true);
	expect_super("one and no room for another", 2, 64, BENCH_RC_QPN);
	/* as many and as long as user space cuts */
	build(&s, XROCE_SEGMENTS_MAX * 20, 20, true);
	expect_super("as many as there may be", XROCE_SEGMENTS_MAX, XROCE_SEGMENTS_MAX * 4,
		     BENCH_RC_QPN);
	build(&s, XROCE_SEGMENT_MAX - 48 + 20, XROCE_SEGMENT_MAX - 48, true);
	expect_super("as long as a packet of that opcode may be", 2, 4096 + 4, BENCH_RC_QPN);
}

/* From a UDP socket: identification 0, and a code for the length in the first BTH. */
static void super__by_code(void **state)
{
	struct frame_spec s = bench_spec();
	const uint32_t qpn = s.ecn_qpn;

	bench_reset();
	s.ecn_qpn = qpn | (SEGMENT / 4 + 16) << 24;
	build(&s, 4 * SEGMENT + 20, 0, true);
	expect_super("64 bytes each", 5, 4 * 64 + 4, BENCH_RC_QPN);
	s.ecn_qpn = qpn | 9u << 24;
	build(&s, 3 * 1040, 0, true);
	expect_super("of the path MTU", 3, 3 * 1024, BENCH_RC_QPN);
	s.ecn_qpn = qpn | 17u << 24;
	build(&s, 4112 + 20, 0, true);
	expect_super("of the largest path MTU", 2, 4096 + 4, BENCH_RC_QPN);
	build(&s, 4112 + 20, 0, false);
	bench_expect_drop("no checksum", f.bytes, f.len, XROCE_DROP_payload_long, BENCH_RC_QPN);
	/* the reserved bits are ignored in a packet, also next to an identification */
	s.ecn_qpn = qpn | 63u << 24;
	build(&s, SEGMENT, 0, true);
	bench_expect_redirect("one packet", f.bytes, f.len, BENCH_RC_QPN);
	build(&s, 4 * SEGMENT, SEGMENT, true);
	expect_super("by identification", 4, 4 * 64, BENCH_RC_QPN);
}

/* Sums that carry. The peer's address produces the carries. */
static void super__sum_carries(void **state)
{
	struct frame_spec s = bench_spec();
	struct xroce_qp qp;

	bench_reset();
	memset(s.src + 12, 0xff, 4);
	qp = bench_qp(XROCE_RC, s.dst, s.src);
	bench_put_qp(BENCH_RC_QPN, &qp);
	build(&s, 3 * SEGMENT, SEGMENT, true);
	expect_super("carries", 3, 3 * 64, BENCH_RC_QPN);
}

/* Each as long as its opcode requires: the lengths of the whole are not used. */
static void super__of_other_opcodes(void **state)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	s.opcode = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE);
	s.ext_len = 4;
	build(&s, 5 * 20, 20, true);
	expect_super("ACKs", 5, 0, BENCH_RC_QPN);
	s = bench_spec();
	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	s.ecn_qpn = BENCH_UD_QPN;
	s.ext_len = 8;
	frame_put32(s.ext, BENCH_QKEY);
	build(&s, 4 * SEGMENT, SEGMENT, true);
	expect_super("datagrams", 4, 4 * 56, BENCH_UD_QPN);
	frame_put32(s.ext, BENCH_QKEY + 1);
	build(&s, 4 * SEGMENT, SEGMENT, true);
	bench_expect_drop("another Q_Key", f.bytes, f.len, XROCE_DROP_qkey, BENCH_UD_QPN);
}

/*
 * All packets share one IP header, and the sender joins packets of one QP: a fault of the first is
 * a fault of all.
 */
static void super__first_refused(void **state)
{
	struct frame_spec s = bench_spec();
	struct xroce_qp qp, other;

	bench_reset();
	s.src[15] ^= 0x40;
	build(&s, 4 * SEGMENT, SEGMENT, true);
	bench_expect_drop("not the peer's address", f.bytes, f.len, XROCE_DROP_peer, BENCH_RC_QPN);
	s = bench_spec();
	memcpy(s.dst, bench_peer4, 16);
	bench_put_gid(bench_peer4, true);
	build(&s, 4 * SEGMENT, SEGMENT, true);
	bench_expect_drop("another address of ours", f.bytes, f.len, XROCE_DROP_peer, BENCH_RC_QPN);
	s = bench_spec();
	s.opcode = OPCODE(XROCE_UC, OP5_SEND_ONLY);
	build(&s, 4 * SEGMENT, SEGMENT, true);
	bench_expect_drop("another transport", f.bytes, f.len, XROCE_DROP_qp_transport,
			  BENCH_RC_QPN);
	s = bench_spec();
	s.opcode = 0x3f;
	build(&s, 4 * SEGMENT, SEGMENT, true);
	bench_expect_drop("no opcode", f.bytes, f.len, XROCE_DROP_opcode, BENCH_RC_QPN);
	s = bench_spec();
	s.bth_flags |= 1;
	build(&s, 4 * SEGMENT, SEGMENT, true);
	bench_expect_drop("another version", f.bytes, f.len, XROCE_DROP_bth_version, BENCH_RC_QPN);
	s = bench_spec();
	s.opcode = OPCODE(XROCE_RC, OP5_WRITE_ONLY);
	build(&s, 4 * 28, 28, true);
	bench_expect_drop("no room for a RETH", f.bytes, f.len, XROCE_DROP_ext_short, BENCH_RC_QPN);
	s.opcode = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE);
	build(&s, 4 * SEGMENT, SEGMENT, true);
	bench_expect_drop("ACKs with payload", f.bytes, f.len, XROCE_DROP_pad, BENCH_RC_QPN);
	s.opcode = OPCODE(XROCE_RC, OP5_SEND_ONLY);
	build(&s, 4 * SEGMENT, SEGMENT + 2, true);
	bench_expect_drop("no whole words", f.bytes, f.len, XROCE_DROP_pad, BENCH_RC_QPN);
	build(&s, XROCE_SEGMENT_MAX + 20, XROCE_SEGMENT_MAX, true);
	bench_expect_drop("too long without more headers", f.bytes, f.len, XROCE_DROP_payload_long,
			  BENCH_RC_QPN);
	qp = other = bench_get_qp(BENCH_RC_QPN);
	other.pkey = 0x8001;
	bench_put_qp(BENCH_RC_QPN, &other);
	build(&s, 4 * SEGMENT, SEGMENT, true);
	bench_expect_drop("another P_Key", f.bytes, f.len, XROCE_DROP_pkey, BENCH_RC_QPN);
	other = qp;
	other.receiving = 0;
	bench_put_qp(BENCH_RC_QPN, &other);
	bench_expect_drop("not receiving", f.bytes, f.len, XROCE_DROP_qp_state, BENCH_RC_QPN);
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
	static const uint16_t sizes[] = {
		0, 15, 4 * SEGMENT, 4 * SEGMENT + 1, XROCE_SEGMENT_MAX + 1, 0xffff
	};
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
	/*
	 * nor is what user space would not cut: more packets, or longer ones, than any super-packet
	 * has
	 */
	build(&s, XROCE_SEGMENTS_MAX * 20 + 4, 20, true);
	bench_expect_redirect("one packet too many", f.bytes, f.len, BENCH_RC_QPN);
	build(&s, XROCE_SEGMENT_MAX + 24, XROCE_SEGMENT_MAX + 4, true);
	bench_expect_drop("longer than any packet", f.bytes, f.len, XROCE_DROP_payload_long,
			  BENCH_RC_QPN);
	s.ipv6 = true;
	memcpy(s.src, bench_peer6, 16);
	memcpy(s.dst, bench_local6, 16);
	frame_build(&f, &s);
	frame_put16(f.bytes + f.l4 + 6, SEGMENT);
	bench_expect_drop("IPv6, from another than the peer", f.bytes, f.len, XROCE_DROP_peer,
			  BENCH_RC_QPN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(super__whole_and_with_a_rest),
		cmocka_unit_test(super__by_code),
		cmocka_unit_test(super__sum_carries),
		cmocka_unit_test(super__of_other_opcodes),
		cmocka_unit_test(super__first_refused),
		cmocka_unit_test(super__of_nobody),
		cmocka_unit_test(super__other_packets_are_none),
	};

	return cmocka_run_group_tests_name("super", tests, bench_setup, bench_teardown);
}
