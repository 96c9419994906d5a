/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The MADs that a client may send from QP 1 (xroce_egress, xroce_single): whole MADs of the
 * connection manager, to QP 1, with a communication id of the client. The client that answers
 * unowned requests may use ids without an owner. All answered MADs have arrived;
 * test_egress_answer.c has the addressed client. The programs are run on one frame at a time;
 * test_egress.c has the devices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>
#include <linux/pkt_cls.h>

#include "broker.h"
#include "mad_frame.h"

#define LOOPBACK 1u /* stands for the TAP device, and for the interface */
#define OWN	 XROCE_CM_PLACE_OF(0u)
#define OTHER	 XROCE_CM_PLACE_OF(1u)
#define EMPTY	 XROCE_CM_PLACE_OF(2u) /* unowned */
#define ID(p)	 ((p) << XROCE_CM_ID_BITS | 0x12345)
#define PEER_ID	 0x77u

static struct frame f;
static struct frame_spec s;

static void put_place(uint32_t place, uint32_t client)
{
	const struct xroce_cm_client p = { .client = client };

	broker_put(broker->skel->maps.xroce_cm_client, &place, &p);
}

static void put_tap(bool privileged, uint32_t place)
{
	const struct xroce_tap tap = { .privileged = privileged, .place = place };
	const uint32_t ifindex = LOOPBACK;

	broker_put(broker->skel->maps.xroce_tap, &ifindex, &tap);
}

/* The peer has sent this to the client at OWN. */
static void put_asked(enum cm_kind kind, uint32_t id)
{
	const struct xroce_asked asked = { .place = OWN };
	struct xroce_asked_key key = { .id = id, .kind = kind };

	memcpy(key.gid, bench_peer4, sizeof(key.gid));
	broker_put(broker->skel->maps.xroce_asked, &key, &asked);
}

static int reset(void **state)
{
	const struct xroce_wire wire = { .ifindex = LOOPBACK, .hairpin = LOOPBACK };
	const uint32_t zero = 0, out = LOOPBACK;

	broker_reset(bench_peer4);
	broker_put(broker->skel->maps.xroce_wire, &zero, &wire);
	broker_put(broker->skel->maps.xroce_out, &zero, &out);
	put_tap(false, OWN);
	put_place(OWN, 0);
	put_place(OTHER, 1);
	put_place(XROCE_CM_PLACE_NONE, 1);
	put_asked(CM_REQ, PEER_ID);
	s = mad_spec();
	memcpy(s.src, bench_local4, 16);
	memcpy(s.dst, bench_peer4, 16);
	return 0;
}

struct counts {
	union {
		struct xroce_refused refused;
		uint64_t of[XROCE_EGRESS_COUNT];
	};
	struct xroce_tap tap;
};

static struct counts count(void)
{
	const uint32_t ifindex = LOOPBACK;
	struct counts c;

	bench_sum_percpu(bpf_map__fd(broker->skel->maps.xroce_refused), c.of, sizeof(c.refused));
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(broker->skel->maps.xroce_tap), &ifindex,
					     &c.tap),
			 0);
	return c;
}

static int run(const struct bpf_program *prog)
{
	static uint8_t out[BENCH_BYTES];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f.bytes, .data_size_in = f.len,
		    .data_out = out, .data_size_out = sizeof(out), .repeat = 1);
	int err = bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);

	check(!err, "cannot run");
	check(opts.data_size_out == f.len && memcmp(out, f.bytes, f.len) == 0, "changed");
	return (int)opts.retval;
}

/* XROCE_EGRESS_none: it leaves. Never by xroce_single, which leaves it to xroce_egress. */
static void expect(const char *what, int reason)
{
	const struct counts before = count();
	struct counts after;
	int verdict;

	check(run(broker->skel->progs.xroce_single) == XDP_PASS, "%s: without an skb", what);
	verdict = run(broker->skel->progs.xroce_egress);
	check(verdict == (reason ? TC_ACT_SHOT : TC_ACT_REDIRECT), "%s: verdict %d", what, verdict);
	after = count();
	for (int i = XROCE_EGRESS_none + 1; i < XROCE_EGRESS_END; i++)
		check(after.of[i - 1] - before.of[i - 1] == (i == reason),
		      "%s: the counter of reason %d", what, i);
	check(after.tap.refused - before.tap.refused == (reason != XROCE_EGRESS_none) &&
		      after.tap.frames - before.tap.frames == (reason == XROCE_EGRESS_none),
	      "%s: the counters of its device", what);
}

static void build(enum cm_kind kind, uint32_t local_id)
{
	const struct cm_mad m = mad_of(kind, local_id, PEER_ID);

	mad_frame(&f, &s, &m);
}

/* Kinds by the ids that they may carry: nothing else decides. */
static void expect_ids(bool is_refuser)
{
	static const uint32_t places[] = { OWN, OTHER, EMPTY, XROCE_CM_PLACE_NONE,
					   XROCE_CM_PLACE_MAX };

	put_place(XROCE_CM_PLACE_NONE, is_refuser ? 0 : 1);
	for (enum cm_kind kind = CM_REQ; kind < CM_KIND_END; kind++) {
		const bool refuses = kind == CM_REJ || kind == CM_DREP || kind == CM_APR;

		for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
			const uint32_t place = places[i];
			const bool may = place == OWN || kind == CM_SIDR_REP ||
					 (refuses && is_refuser && place != OTHER);
			char what[64];

			snprintf(what, sizeof(what), "kind %#x, place %u, refuser %d", kind, place,
				 is_refuser);
			put_asked(CM_SIDR_REQ, ID(place));
			build(kind, ID(place));
			expect(what, may ? XROCE_EGRESS_none : XROCE_EGRESS_mad_id);
		}
	}
}

static void mad__ids(void **state)
{
	expect_ids(true);
	expect_ids(false);
	build(CM_REJ, 0);
	expect("the refusal of a REQ", XROCE_EGRESS_none);
	build(CM_RTU, OWN << XROCE_CM_ID_BITS);
	expect("the first id", XROCE_EGRESS_none);
	build(CM_RTU, (OWN + 1) << XROCE_CM_ID_BITS);
	expect("the next client's first", XROCE_EGRESS_mad_id);
	build(CM_RTU, ((OWN + 1) << XROCE_CM_ID_BITS) - 1);
	expect("the last id", XROCE_EGRESS_none);
	put_tap(false, XROCE_CM_PLACE_MAX);
	build(CM_REQ, ~0u);
	expect("the first client's", XROCE_EGRESS_none);
	build(CM_REQ, ID(OWN));
	expect("not the first client's", XROCE_EGRESS_mad_id);
}

static void expect_qpn(uint32_t qpn, int reason)
{
	struct cm_mad m = { .kind = CM_REQ, .local_id = ID(OWN) };

	m.req.qpn = qpn;
	m.req.responder_resources = 0xff; /* next to it */
	mad_frame(&f, &s, &m);
	expect("a REQ", reason);
	m = mad_of(CM_REP, ID(OWN), PEER_ID);
	m.rep.qpn = qpn;
	m.rep.vendor_id = 0xff0000; /* next to it */
	mad_frame(&f, &s, &m);
	expect("a REP", reason);
}

/* A peer that knows a connection of the QP would end it. */
static void mad__qp_of_another(void **state)
{
	struct cm_mad m = mad_of(CM_DREQ, ID(OWN), PEER_ID);

	expect_qpn(BROKER_RC(0), XROCE_EGRESS_none);
	expect_qpn(BROKER_RC(1), XROCE_EGRESS_src_qpn);
	expect_qpn(0xabcdef, XROCE_EGRESS_none);
	m.dreq.qpn = BROKER_RC(1); /* the receiver's */
	mad_frame(&f, &s, &m);
	expect("a DREQ", XROCE_EGRESS_none);
	put_tap(true, OWN);
	expect_qpn(BROKER_RC(1), XROCE_EGRESS_src_qpn);
}

/* The privileged have no other ids either. */
static void mad__of_the_privileged(void **state)
{
	put_tap(true, OWN);
	build(CM_REQ, ID(OWN));
	expect("own id", XROCE_EGRESS_none);
	build(CM_REQ, ID(OTHER));
	expect("another's id", XROCE_EGRESS_mad_id);
	s.payload_len = 252;
	build(CM_REQ, ID(OWN));
	expect("too short", XROCE_EGRESS_mad);
}

static void mad__to_a_process_here(void **state)
{
	memcpy(s.dst, bench_local4, 16);
	build(CM_REQ, ID(OTHER));
	expect("another's id", XROCE_EGRESS_mad_id);
	build(CM_REQ, ID(OWN));
	assert_int_equal(run(broker->skel->progs.xroce_egress), TC_ACT_REDIRECT);
	assert_int_equal(count().tap.hairpin, 1);
}

static void mad__ipv6(void **state)
{
	s.ipv6 = true;
	memcpy(s.src, bench_local6, 16);
	memcpy(s.dst, bench_peer6, 16);
	build(CM_REQ, ID(OWN));
	expect("own id", XROCE_EGRESS_none);
	build(CM_REQ, ID(OTHER));
	expect("another's id", XROCE_EGRESS_mad_id);
}

static void mad__not_whole(void **state)
{
	static const struct {
		const char *what;
		uint32_t at;
		uint8_t value;
	} rows[] = {
		{ "base version", 0, 2 },
		{ "class", 1, 3 },
		{ "class version", 2, 1 },
		{ "method", 3, 0x81 },
		{ "attribute 0x0f", 17, 0x0f },
		{ "attribute 0x1b", 17, 0x1b },
		{ "attribute 0x110", 16, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		build(CM_REQ, ID(OWN));
		f.bytes[f.payload + rows[i].at] = rows[i].value;
		expect(rows[i].what, XROCE_EGRESS_mad);
	}
	for (uint32_t len = 0; len <= 520; len += 4) {
		if (len == CM_MAD_BYTES)
			continue;
		s.payload_len = len;
		build(CM_REQ, ID(OWN));
		frame_put32(f.bytes + f.payload + len, 0);
		expect("another length", XROCE_EGRESS_mad);
	}
	s.payload_len = 255;
	build(CM_REQ, ID(OWN));
	expect("a pad", XROCE_EGRESS_mad);
	s.payload_len = CM_MAD_BYTES;
	frame_put32(s.ext, BROKER_QKEY);
	build(CM_REQ, ID(OWN));
	expect("another Q_Key", XROCE_EGRESS_mad);
	frame_put32(s.ext, XROCE_CM_QKEY | 1);
	build(CM_REQ, ID(OWN));
	expect("another privileged Q_Key", XROCE_EGRESS_mad);
}

/* All else that has to do with QP 1 is refused as ever. */
static void mad__other_ways(void **state)
{
	struct frame_spec whole = s;

	s.ecn_qpn = 0x777;
	build(CM_REQ, ID(OWN));
	expect("from QP 1 to another", XROCE_EGRESS_qkey);
	put_tap(true, OWN);
	expect("from QP 1 to another, privileged", XROCE_EGRESS_src_qpn);
	put_tap(false, OWN);
	s = whole;
	frame_put32(s.ext + 4, BROKER_UD(0));
	build(CM_REQ, ID(OWN));
	expect("from another to QP 1", XROCE_EGRESS_qp1);
	put_tap(true, OWN);
	assert_int_equal(run(broker->skel->progs.xroce_egress), TC_ACT_REDIRECT);
	put_tap(false, OWN);
	s = whole;
	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY_IMM);
	s.ext_len = 12;
	build(CM_REQ, ID(OWN));
	expect("with immediate data", XROCE_EGRESS_qp1);
	put_tap(true, OWN);
	expect("with immediate data, privileged", XROCE_EGRESS_src_qpn);
	put_tap(false, OWN);
	s = whole;
	s.opcode = OPCODE_CREDIT_PROBE;
	build(CM_REQ, ID(OWN));
	expect("a flow probe", XROCE_EGRESS_qp1);
	s = whole;
	s.opcode = OPCODE(XROCE_RC, OP5_SEND_ONLY);
	build(CM_REQ, ID(OWN));
	expect("no datagram", XROCE_EGRESS_qp1);
	s = whole;
	s.pkey = 0x8003;
	build(CM_REQ, ID(OWN));
	expect("another P_Key", XROCE_EGRESS_pkey);
	s = whole;
	s.src[15] ^= 0x40;
	build(CM_REQ, ID(OWN));
	expect("another source", XROCE_EGRESS_source);
}

/* A receiver would find two packets: each would have to be checked, and none has to be sent so. */
static void mad__super_packet(void **state)
{
	uint32_t size;

	build(CM_REQ, ID(OWN));
	size = f.len - f.bth;
	memcpy(f.bytes + f.len, f.bytes + f.bth, size);
	f.len += size;
	frame_put16(f.bytes + f.l3 + 4, (uint16_t)size);
	frame_fix_lengths(&f);
	bench_sum_super(&f);
	expect("a super-packet", XROCE_EGRESS_qp1);
	put_tap(true, OWN);
	expect("a super-packet, privileged", XROCE_EGRESS_src_qpn);
}

/* A whole MAD, with the code for the length of a packet: a receiver would find two. */
static void mad__super_packet_by_code(void **state)
{
	uint32_t code = 0;

	build(CM_REQ, ID(OWN));
	while (roce_segment_of_code[code] != (f.len - f.bth) / 2)
		check(++code < 64, "no code for half a MAD");
	f.bytes[f.bth + 4] |= (uint8_t)code;
	frame_put16(f.bytes + f.l3 + 4, 0);
	frame_fix_lengths(&f);
	bench_sum_super(&f);
	expect("a code", XROCE_EGRESS_qp1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(mad__ids, reset),
		cmocka_unit_test_setup(mad__qp_of_another, reset),
		cmocka_unit_test_setup(mad__of_the_privileged, reset),
		cmocka_unit_test_setup(mad__to_a_process_here, reset),
		cmocka_unit_test_setup(mad__ipv6, reset),
		cmocka_unit_test_setup(mad__not_whole, reset),
		cmocka_unit_test_setup(mad__other_ways, reset),
		cmocka_unit_test_setup(mad__super_packet, reset),
		cmocka_unit_test_setup(mad__super_packet_by_code, reset),
	};

	return cmocka_run_group_tests_name("egress_mad", tests, broker_setup, broker_teardown);
}
