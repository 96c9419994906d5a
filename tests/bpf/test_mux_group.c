/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Multicast groups of a shared interface: xroce_mux gives each client with members a copy, one
 * after the other, and passes packets to other groups.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "broker.h"

static const uint8_t group4[16] = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [15] = 9 };
static const uint8_t group6[16] = { 0xff, 0x15, [15] = 9 };
static struct frame f;

static int run(void)
{
	static uint8_t in[BENCH_BYTES], out[BENCH_BYTES];
	struct xdp_md ctx = { .data_end = f.len };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = in, .data_size_in = f.len, .data_out = out,
		    .data_size_out = sizeof(out), .ctx_in = &ctx, .ctx_size_in = sizeof(ctx),
		    .repeat = 1);
	int err;

	memcpy(in, f.bytes, f.len);
	err = bpf_prog_test_run_opts(bpf_program__fd(broker->skel->progs.xroce_mux), &opts);
	return err ? err : (int)opts.retval;
}

static void put_members(const uint8_t address[16], const struct xroce_members *members)
{
	const int fd = bpf_map__fd(broker->skel->maps.xroce_members);

	bpf_map_delete_elem(fd, address);
	if (members)
		assert_int_equal(bpf_map_update_elem(fd, address, members, BPF_ANY), 0);
}

static struct frame_spec datagram(bool ipv6)
{
	struct frame_spec s = bench_spec();

	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	s.ecn_qpn = ROCE_MULTICAST_QPN;
	s.ext_len = 8;
	frame_put32(s.ext, 0x1234567);
	s.ipv6 = ipv6;
	if (ipv6)
		memcpy(s.src, bench_peer6, 16);
	memcpy(s.dst, ipv6 ? group6 : group4, 16);
	return s;
}

static void reset(void)
{
	broker_reset(bench_peer4);
	put_members(group4, NULL);
	put_members(group6, NULL);
}

/* Runs it. Returns the clients with a copy, a bit each. */
static unsigned int copies(const char *what, int verdict)
{
	unsigned int had = 0;

	for (int c = 0; c < BROKER_CLIENTS; c++)
		broker_read(c);
	check(run() == verdict, "%s: verdict", what);
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		const struct broker_client *b = &broker->client[c];

		broker_read(c);
		check(b->records <= 1, "%s: client %d has it %u times", what, c, b->records);
		if (b->records)
			check(b->len == f.len && !memcmp(b->frame, f.bytes, f.len),
			      "%s: another frame", what);
		had |= b->records << c;
	}
	return had;
}

static void members__each_has_a_copy(void **state)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		const uint8_t *group = ipv6 ? group6 : group4;
		const struct frame_spec s = datagram(ipv6);
		struct xroce_members m = { .num = 2, .client = { 0, 1 } };

		reset();
		frame_build(&f, &s);
		put_members(group, &m);
		assert_int_equal(copies("both", XDP_DROP), 3);
		/* and so the next one */
		assert_int_equal(copies("both again", XDP_DROP), 3);
		m = (struct xroce_members){ .num = 2, .client = { 1, 0 } };
		put_members(group, &m);
		assert_int_equal(copies("the other way round", XDP_DROP), 3);
		for (uint16_t c = 0; c < BROKER_CLIENTS; c++) {
			m = (struct xroce_members){ .num = 1, .client = { c } };
			put_members(group, &m);
			assert_int_equal(copies("one", XDP_DROP), 1u << c);
		}
	}
}

/* A client that exited, or has no room, is left out. */
static void members__some_have_gone(void **state)
{
	const struct frame_spec s = datagram(false);
	struct xroce_members m = { .num = 4, .client = { 7, 0, 8, 1 } };
	struct bench_counts before;

	reset();
	frame_build(&f, &s);
	put_members(group4, &m);
	assert_int_equal(copies("two of four", XDP_DROP), 3);
	broker_put_program(0, false);
	assert_int_equal(copies("one of four", XDP_DROP), 2);
	broker_put_program(1, false);
	before = broker_count();
	assert_int_equal(copies("none", XDP_DROP), 0);
	assert_int_equal(broker_count().drops.qp_unknown, before.drops.qp_unknown + 1);
	broker_put_program(0, true);
	broker_put_program(1, true);
}

/* As many as the kernel lets follow each other. */
static void members__as_many_as_can_be(void **state)
{
	const struct frame_spec s = datagram(false);
	struct xroce_members m = { .num = XROCE_GROUP_CLIENTS };

	reset();
	frame_build(&f, &s);
	for (uint16_t i = 0; i < XROCE_GROUP_CLIENTS; i++)
		m.client[i] = i % 2;
	put_members(group4, &m);
	for (int c = 0; c < BROKER_CLIENTS; c++)
		broker_read(c);
	assert_int_equal(run(), XDP_DROP);
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		broker_read(c);
		assert_int_equal(broker->client[c].records, XROCE_GROUP_CLIENTS / 2);
	}
}

static void others__pass(void **state)
{
	const struct xroce_members m = { .num = 2, .client = { 0, 1 } };
	struct frame_spec s = datagram(false);
	struct bench_counts before;

	reset();
	put_members(group4, &m);
	before = broker_count();
	s.dst[15] ^= 1;
	frame_build(&f, &s);
	assert_int_equal(copies("another group", XDP_PASS), 0);
	s = datagram(false);
	s.ecn_qpn = BROKER_UD(0);
	frame_build(&f, &s);
	assert_int_equal(copies("to one QP", XDP_PASS), 0);
	s = datagram(false);
	s.option_bytes = 4;
	frame_build(&f, &s);
	assert_int_equal(copies("options", XDP_PASS), 0);
	assert_int_equal(broker_count().rx.passed, before.rx.passed + 3);
	s = datagram(false);
	s.dport = 5353;
	frame_build(&f, &s);
	assert_int_equal(copies("another port", XDP_PASS), 0);
	assert_int_equal(broker_count().rx.passed, before.rx.passed + 3);
	assert_int_equal(broker_count().rx.dropped, before.rx.dropped);
}

/* Each client's program counts a packet that is no datagram. */
static void members__refuse_what_is_no_datagram(void **state)
{
	const struct xroce_members m = { .num = 2, .client = { 0, 1 } };
	struct frame_spec s = datagram(false);

	reset();
	put_members(group4, &m);
	s.opcode = OPCODE(XROCE_RC, OP5_SEND_ONLY);
	s.ext_len = 0;
	frame_build(&f, &s);
	assert_int_equal(copies("RC", XDP_DROP), 0);
	for (int c = 0; c < BROKER_CLIENTS; c++)
		assert_true(broker_count_of(c).drops.qp_transport > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members__each_has_a_copy),
		cmocka_unit_test(members__some_have_gone),
		cmocka_unit_test(members__as_many_as_can_be),
		cmocka_unit_test(others__pass),
		cmocka_unit_test(members__refuse_what_is_no_datagram),
	};

	return cmocka_run_group_tests(tests, broker_setup, broker_teardown);
}
