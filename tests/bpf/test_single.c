/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The program of a client's TAP device for single frames (xroce_single): frames that it sends to
 * the interface itself, and frames left to xroce_egress, which refuses them or sends them by the
 * kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "broker.h"

#define LOOPBACK 1u /* stands for the TAP device, and for the interface */
#define CLIENT	 1

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 }, peer_mac[6] = { 2, 0, 0, 0, 0, 2 };
static struct frame f;
static struct frame_spec s;

static void put_tap(bool privileged)
{
	const struct xroce_tap tap = { .client = CLIENT, .privileged = privileged };
	const uint32_t ifindex = LOOPBACK;

	broker_put(broker->skel->maps.xroce_tap, &ifindex, &tap);
}

static struct xroce_tap get_tap(void)
{
	const uint32_t ifindex = LOOPBACK;
	struct xroce_tap tap;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(broker->skel->maps.xroce_tap), &ifindex,
					     &tap),
			 0);
	return tap;
}

/* f is a frame of s, as the client's sender makes it. */
static void make(void)
{
	frame_build(&f, &s);
	memcpy(f.bytes, peer_mac, 6);
	memcpy(f.bytes + 6, mac, 6);
}

/* Before each test: a frame of the client's RC QP to a QP elsewhere. */
static int reset(void **state)
{
	struct xroce_wire wire = { .ifindex = LOOPBACK, .hairpin = LOOPBACK };
	const uint32_t zero = 0, out = LOOPBACK;

	broker_reset(bench_peer4);
	memcpy(wire.mac, mac, sizeof(wire.mac));
	broker_put(broker->skel->maps.xroce_wire, &zero, &wire);
	broker_put(broker->skel->maps.xroce_out, &zero, &out);
	put_tap(false);
	s = bench_spec();
	memcpy(s.src, bench_local4, 16);
	memcpy(s.dst, bench_peer4, 16);
	s.ecn_qpn = 0x777;
	make();
	return 0;
}

static void ud(uint32_t src_qpn, uint32_t qkey)
{
	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	s.ext_len = 8;
	frame_put32(s.ext, qkey);
	frame_put32(s.ext + 4, src_qpn);
	make();
}

static int run(void)
{
	static uint8_t out[BENCH_BYTES];
	struct xdp_md ctx = { .data_end = f.len, .ingress_ifindex = LOOPBACK };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f.bytes, .data_size_in = f.len,
		    .data_out = out, .data_size_out = sizeof(out), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1);
	int err = bpf_prog_test_run_opts(bpf_program__fd(broker->skel->progs.xroce_single), &opts);

	if (err)
		return err;
	check(opts.data_size_out == f.len && memcmp(out, f.bytes, f.len) == 0, "changed");
	return (int)opts.retval;
}

/* To the interface, counted once. */
static void expect_out(const char *what)
{
	const struct xroce_tap before = get_tap();
	struct xroce_tap after;

	check(run() == XDP_REDIRECT, "%s: stays", what);
	after = get_tap();
	check(after.frames == before.frames + 1 && after.bytes == before.bytes + f.len &&
		      after.hairpin == before.hairpin && after.refused == before.refused,
	      "%s: counted otherwise", what);
}

/* Left to xroce_egress, with the counting. */
static void expect_left(const char *what)
{
	const struct xroce_tap before = get_tap();
	struct xroce_tap after;

	check(run() == XDP_PASS, "%s: leaves", what);
	after = get_tap();
	check(memcmp(&after, &before, sizeof(after)) == 0, "%s: counted", what);
}

static void single__leaves(void **state)
{
	expect_out("RC");
	s.payload_len = 3000;
	make();
	expect_out("a long one");
	ud(BROKER_UD(CLIENT), BROKER_QKEY);
	expect_out("UD");
	s.ipv6 = true;
	memcpy(s.src, bench_local6, 16);
	memcpy(s.dst, bench_peer6, 16);
	make();
	expect_out("UD over IPv6");
}

static void single__addresses(void **state)
{
	f.bytes[6] |= XROCE_ROUTED;
	expect_left("asked to be");
	make();
	f.bytes[11] ^= 1;
	expect_left("another source MAC");
	make();
	f.bytes[6] ^= 4;
	expect_left("another source MAC, its first byte");
	make();
	f.bytes[0] |= 1;
	expect_left("to many");
	make();
	memcpy(s.src, bench_peer4, 16);
	make();
	expect_left("another's address");
	memcpy(s.src, bench_local4, 16);
	memcpy(s.dst, bench_local4, 16);
	make();
	expect_left("to one of the interface's own");
	memcpy(s.dst, bench_peer4, 16);
	s.dst[12] = 0xe1;
	make();
	expect_left("to a multicast address");
	s.dst[12] = 127;
	make();
	expect_left("to a loopback address");
}

static void single__near(void **state)
{
	const struct xroce_neighbour near = { .hairpin = LOOPBACK };

	broker_put(broker->skel->maps.xroce_neighbour, bench_peer4, &near);
	expect_left("to another interface of the namespace");
	bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_neighbour), bench_peer4);
	expect_out("to the same address elsewhere");
}

static void single__form(void **state)
{
	s.tags = 1;
	s.tag_proto[0] = 0x8100;
	make();
	expect_left("a tag");
	s.tags = 0;
	s.option_bytes = 4;
	make();
	expect_left("options");
	s.option_bytes = 0;
	s.dport = 4792;
	make();
	expect_left("another port");
	s.dport = 0;
	make();
	f.len += 2;
	expect_left("padding");
	make();
	f.bytes[f.bth] = 0x1f;
	expect_left("no opcode");
	make();
	f.bytes[f.l3 + 6] = 0x20;
	expect_left("a fragment");
	/* two packets of 40 bytes, to a receiver that believes the identification and the
	 * checksum */
	s.payload_len = 80 - 16;
	make();
	frame_put16(f.bytes + f.l3 + 4, 40);
	bench_sum_super(&f);
	expect_left("what looks like a super-packet");
	f.len = 14;
	expect_left("an Ethernet header");
}

static void single__privileged(void **state)
{
	s.ecn_qpn = 1;
	make();
	expect_left("QP 1");
	put_tap(true);
	expect_out("QP 1, privileged");
	s.ecn_qpn = 0x777;
	ud(BROKER_UD(CLIENT), 0x80010000);
	expect_out("Q_Key, privileged");
	put_tap(false);
	expect_left("Q_Key");
}

static void single__pkey(void **state)
{
	s.pkey = BROKER_PKEY;
	make();
	expect_out("a P_Key of the table");
	s.pkey = BROKER_PKEY_LIMITED;
	make();
	expect_out("a limited member's");
	s.pkey = BROKER_PKEY_LIMITED | 0x8000;
	make();
	expect_left("a full member's, of that partition");
	s.pkey = 0x7fff;
	make();
	expect_left("the default P_Key, limited");
	s.pkey = 0x8003;
	ud(BROKER_UD(CLIENT), BROKER_QKEY);
	expect_left("a datagram with another P_Key");
	put_tap(true);
	expect_left("a privileged client's with another P_Key");
	put_tap(false);
}

static void single__owner(void **state)
{
	const uint32_t ifindex = LOOPBACK;

	ud(BROKER_UD(0), BROKER_QKEY);
	expect_left("from another's QP");
	ud(0x999, BROKER_QKEY);
	expect_left("from nobody's QP");
	bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_tap), &ifindex);
	make();
	assert_int_equal(run(), XDP_PASS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(single__leaves, reset),
		cmocka_unit_test_setup(single__addresses, reset),
		cmocka_unit_test_setup(single__near, reset),
		cmocka_unit_test_setup(single__form, reset),
		cmocka_unit_test_setup(single__privileged, reset),
		cmocka_unit_test_setup(single__pkey, reset),
		cmocka_unit_test_setup(single__owner, reset),
	};

	return cmocka_run_group_tests_name("single", tests, broker_setup, broker_teardown);
}
