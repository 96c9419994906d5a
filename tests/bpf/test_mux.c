/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The program in front of the clients' (xroce_mux): packets for the interface, the client's program
 * that runs, and packets without an owner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "broker.h"

static struct frame f;

static int run(const uint8_t *bytes, uint32_t len, uint32_t linear)
{
	static uint8_t in[BENCH_BYTES], out[BENCH_BYTES];
	struct xdp_md ctx = { .data_end = linear ? linear : len };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = in, .data_size_in = len, .data_out = out,
		    .data_size_out = sizeof(out), .ctx_in = &ctx, .ctx_size_in = sizeof(ctx),
		    .repeat = 1);
	int err;

	memcpy(in, bytes, len);
	err = bpf_prog_test_run_opts(bpf_program__fd(broker->skel->progs.xroce_mux), &opts);
	return err ? err : (int)opts.retval;
}

static struct frame_spec spec(void)
{
	struct frame_spec s = bench_spec();

	s.ecn_qpn = BROKER_RC(0);
	return s;
}

static void ipv6(struct frame_spec *s)
{
	s->ipv6 = true;
	memcpy(s->src, bench_peer6, 16);
	memcpy(s->dst, bench_local6, 16);
}

static void ud(struct frame_spec *s, int client)
{
	s->opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	s->ecn_qpn = BROKER_UD(client);
	s->ext_len = 8;
	frame_put32(s->ext, BROKER_QKEY);
}

/* No counter of the broker's has moved, but the one for reason and its related ones. */
static void check_broker(const char *what, const struct bench_counts *before, int reason,
			 int passed)
{
	const struct bench_counts after = broker_count();

	for (int i = XROCE_DROP_none + 1; i < XROCE_DROP_END; i++)
		check(after.drop[XROCE_DROP_INDEX(i)] - before->drop[XROCE_DROP_INDEX(i)] ==
			      (i == reason),
		      "%s: the broker's counter of %s", what, bench_reason(i));
	check(after.rx.dropped - before->rx.dropped == (reason != XROCE_DROP_none),
	      "%s: the broker's rx.dropped", what);
	check(after.rx.passed - before->rx.passed == (uint64_t)passed,
	      "%s: the broker's rx.passed", what);
	check(after.rx.redirected == before->rx.redirected, "%s: the broker's rx.redirected", what);
}

/* To this client's ring, untouched, and to no other's. */
static void expect_client(const char *what, int client)
{
	const struct bench_counts before = broker_count();

	for (int c = 0; c < BROKER_CLIENTS; c++)
		broker_read(c);
	check(run(f.bytes, f.len, 0) == XDP_DROP, "%s: verdict", what);
	check_broker(what, &before, XROCE_DROP_none, 0);
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		broker_read(c);
		check(broker->client[c].records == (c == client), "%s: client %d got %u", what, c,
		      broker->client[c].records);
	}
	check(broker->client[client].len == f.len &&
		      memcmp(broker->client[client].frame, f.bytes, f.len) == 0,
	      "%s: another frame", what);
}

/* By no client's program. */
static void expect_none(const char *what, int verdict, int reason, bool passed)
{
	const struct bench_counts before = broker_count();
	struct bench_counts of[BROKER_CLIENTS];

	for (int c = 0; c < BROKER_CLIENTS; c++)
		of[c] = broker_count_of(c);
	check(run(f.bytes, f.len, 0) == verdict, "%s: verdict", what);
	check_broker(what, &before, reason, passed);
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		const struct bench_counts after = broker_count_of(c);

		check(memcmp(&after, &of[c], sizeof(after)) == 0, "%s: seen by client %d", what, c);
		broker_read(c);
		check(!broker->client[c].records, "%s: client %d got it", what, c);
	}
}

static void mux__to_the_owner(void **state)
{
	struct frame_spec s;

	broker_reset(bench_peer4);
	for (int c = 0; c < BROKER_CLIENTS; c++) {
		s = spec();
		s.ecn_qpn = BROKER_RC(c);
		frame_build(&f, &s);
		expect_client("RC", c);
		ud(&s, c);
		frame_build(&f, &s);
		expect_client("UD", c);
		ipv6(&s);
		frame_build(&f, &s);
		expect_client("UD over IPv6, to another than the first GID", c);
		s.ecn_qpn |= 0xff000000;
		s.tags = 1;
		s.tag_proto[0] = 0x8100;
		frame_build(&f, &s);
		expect_client("reserved bits beside the QPN, and a VLAN tag", c);
	}
}

/* The owner of the QP counts a faulty packet to it. */
static void mux__faults_are_the_owners(void **state)
{
	struct frame_spec s = spec();
	struct bench_counts before, of, after;

	broker_reset(bench_peer4);
	s.pkey = 0x8001;
	s.ecn_qpn = BROKER_RC(1);
	frame_build(&f, &s);
	before = broker_count();
	of = broker_count_of(1);
	assert_int_equal(run(f.bytes, f.len, 0), XDP_DROP);
	check_broker("another P_Key", &before, XROCE_DROP_none, 0);
	after = broker_count_of(1);
	assert_int_equal(after.drops.pkey, of.drops.pkey + 1);
	/* lengths too: the BTH is where it ought to be */
	s = spec();
	frame_build(&f, &s);
	frame_put16(f.bytes + f.l4 + 4, 20);
	of = broker_count_of(0);
	assert_int_equal(run(f.bytes, f.len, 0), XDP_DROP);
	check_broker("UDP length", &before, XROCE_DROP_none, 0);
	assert_int_equal(broker_count_of(0).drops.udp_length, of.drops.udp_length + 1);
}

static void mux__not_ours(void **state)
{
	struct frame_spec s = spec();

	broker_reset(bench_peer4);
	s.dst[15] ^= 0x40;
	frame_build(&f, &s);
	expect_none("another's address", XDP_PASS, XROCE_DROP_none, true);
	s.option_bytes = 8;
	frame_build(&f, &s);
	expect_none("another's address, malformed", XDP_PASS, XROCE_DROP_none, true);
	s = spec();
	s.dport = 4792;
	frame_build(&f, &s);
	expect_none("another port", XDP_PASS, XROCE_DROP_none, false);
	s = spec();
	s.protocol = 6;
	frame_build(&f, &s);
	expect_none("TCP", XDP_PASS, XROCE_DROP_none, false);
	s = spec();
	ipv6(&s);
	s.dst[0] ^= 1;
	frame_build(&f, &s);
	expect_none("another's IPv6 address", XDP_PASS, XROCE_DROP_none, true);
}

/* A client that has taken its own maps apart is seen by itself alone. */
static void mux__client_without_maps(void **state)
{
	struct frame_spec s = spec();

	broker_reset(bench_peer4);
	broker_put_qp(0, BROKER_RC(0) + XROCE_MAX_QP, &(struct xroce_qp){ 0 });
	frame_build(&f, &s);
	assert_int_equal(run(f.bytes, f.len, 0), XDP_DROP);
	assert_true(broker_count_of(0).drops.qp_unknown > 0);
	s.ecn_qpn = BROKER_RC(1);
	frame_build(&f, &s);
	expect_client("the other's", 1);
}

static void options(void)
{
	struct frame_spec s = spec();

	s.option_bytes = 4;
	frame_build(&f, &s);
}

static void first_fragment(void)
{
	frame_put16(f.bytes + f.l3 + 6, 0x2000);
}

static void ip_length(void)
{
	frame_put16(f.bytes + f.l3 + 2, (uint16_t)(f.len - f.l3 + 1));
}

static void udp_length(void)
{
	frame_put16(f.bytes + f.l4 + 4, (uint16_t)(f.len - f.l4 + 1));
}

static void bth_short(void)
{
	f.len = f.bth + 15;
	frame_fix_lengths(&f);
}

static void bth_version(void)
{
	f.bytes[f.bth + 1] |= 1;
}

static void opcode(void)
{
	f.bytes[f.bth] = 0x3f;
}

static void ext_short(void)
{
	f.bytes[f.bth] = OPCODE(XROCE_RC, OP5_WRITE_ONLY);
	f.len = f.bth + 12 + 8 + 4;
	frame_fix_lengths(&f);
}

static void pad(void)
{
	f.len -= 1;
	frame_fix_lengths(&f);
}

static void payload_long(void)
{
	struct frame_spec s = spec();

	s.payload_len = 4100;
	s.ecn_qpn = 0x777;
	frame_build(&f, &s);
}

static void nothing(void)
{
}

/* To an unowned QP: the reason is the same that an exclusive process would count. */
static void mux__nobodys(void **state)
{
	static const struct {
		enum xroce_drop reason;
		void (*spoil)(void);
	} rows[] = {
		{ XROCE_DROP_qp_unknown, nothing },
		{ XROCE_DROP_ip_options, options },
		{ XROCE_DROP_ip_fragment, first_fragment },
		{ XROCE_DROP_ip_length, ip_length },
		{ XROCE_DROP_udp_length, udp_length },
		{ XROCE_DROP_bth_short, bth_short },
		{ XROCE_DROP_bth_version, bth_version },
		{ XROCE_DROP_opcode, opcode },
		{ XROCE_DROP_ext_short, ext_short },
		{ XROCE_DROP_pad, pad },
		{ XROCE_DROP_payload_long, payload_long },
	};

	broker_reset(bench_peer4);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct frame_spec s = spec();

		s.ecn_qpn = 0x777;
		frame_build(&f, &s);
		rows[i].spoil();
		expect_none(bench_reason(rows[i].reason), XDP_DROP, rows[i].reason, false);
	}
}

/* The header of a client's packet is not in the first buffer: nothing says whose it is. */
static void mux__headers_in_pieces(void **state)
{
	struct frame_spec s = spec();
	const struct bench_counts before = broker_count();

	broker_reset(bench_peer4);
	s.payload_len = 4096;
	frame_build(&f, &s);
	assert_int_equal(run(f.bytes, f.len, f.bth + 11), XDP_DROP);
	check_broker("BTH in pieces", &before, XROCE_DROP_multibuffer, 0);
}

/* Faults of the IP header are counted by the broker, also with an owner's QPN after it. */
static void mux__ip_faults(void **state)
{
	struct frame_spec s = spec();

	broker_reset(bench_peer4);
	options();
	expect_none("options", XDP_DROP, XROCE_DROP_ip_options, false);
	frame_build(&f, &s);
	first_fragment();
	expect_none("a fragment", XDP_DROP, XROCE_DROP_ip_fragment, false);
}

static void mux__owner_has_gone(void **state)
{
	struct frame_spec s = spec();

	broker_reset(bench_peer4);
	frame_build(&f, &s);
	broker_put_program(0, false);
	expect_none("no program", XDP_DROP, XROCE_DROP_qp_unknown, false);
	broker_put_owner(BROKER_RC(0), -1);
	broker_put_program(0, true);
	expect_none("no owner", XDP_DROP, XROCE_DROP_qp_unknown, false);
	broker_put_owner(BROKER_RC(0), XROCE_MAX_CLIENT);
	expect_none("an owner beyond the map", XDP_DROP, XROCE_DROP_qp_unknown, false);
	broker_put_owner(BROKER_RC(0), 0);
	expect_client("again", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mux__to_the_owner),
		cmocka_unit_test(mux__faults_are_the_owners),
		cmocka_unit_test(mux__not_ours),
		cmocka_unit_test(mux__client_without_maps),
		cmocka_unit_test(mux__nobodys),
		cmocka_unit_test(mux__headers_in_pieces),
		cmocka_unit_test(mux__ip_faults),
		cmocka_unit_test(mux__owner_has_gone),
	};

	return cmocka_run_group_tests_name("mux", tests, broker_setup, broker_teardown);
}
