/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The broker's records of connections (xroce_conn, xroce_asked), by which it ends the connections
 * of an exited client: from the client's MADs (xroce_egress), and for the first client from MADs to
 * it (xroce_mux).
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
#define ID(p)	 ((p) << XROCE_CM_ID_BITS | 0x12345)
#define PEER_ID	 0x7777u
#define PEER_QPN 0xabcdefu
#define SERIAL	 100u
#define HTTP	 cm_service_id(CM_PS_TCP, 8080)

static struct frame f;

/* Client 0 has that place, and is bound to HTTP. */
static void begin(uint32_t place)
{
	const struct xroce_tap tap = { .place = place };
	const struct xroce_wire wire = { .ifindex = LOOPBACK, .hairpin = LOOPBACK };
	const uint32_t ifindex = LOOPBACK, zero = 0;
	struct xroce_service_key key = { .id = HTTP };
	const struct xroce_service service = { .place = place };

	broker_reset(bench_peer4);
	broker_clear(broker->skel->maps.xroce_cm_client);
	broker_clear(broker->skel->maps.xroce_asked);
	broker_clear(broker->skel->maps.xroce_conn);
	broker_put(broker->skel->maps.xroce_wire, &zero, &wire);
	broker_put(broker->skel->maps.xroce_tap, &ifindex, &tap);
	broker_put_place(place, 0, SERIAL);
	broker_put_place(OTHER, 1, SERIAL + 1);
	memcpy(key.address, bench_local4, sizeof(key.address));
	broker_put(broker->skel->maps.xroce_service, &key, &service);
}

static int reset(void **state)
{
	begin(OWN);
	return 0;
}

static int run(const struct bpf_program *prog)
{
	static uint8_t out[BENCH_BYTES];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f.bytes, .data_size_in = f.len,
		    .data_out = out, .data_size_out = sizeof(out), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(prog), &opts), 0);
	return (int)opts.retval;
}

/* A client sends it to the peer. */
static void say(const struct cm_mad *m, int verdict)
{
	struct frame_spec s = mad_spec();

	memcpy(s.src, bench_local4, 16);
	memcpy(s.dst, bench_peer4, 16);
	mad_frame(&f, &s, m);
	assert_int_equal(run(broker->skel->progs.xroce_egress), verdict);
}

static void say_of(enum cm_kind kind, uint32_t own_id)
{
	const struct cm_mad m = mad_of(kind, own_id, PEER_ID);

	say(&m, TC_ACT_REDIRECT);
}

/* It comes from the peer, or (by one bit) from another. */
static void hear(const struct cm_mad *m, uint8_t other)
{
	struct frame_spec s = mad_spec();

	s.src[15] ^= other;
	mad_frame(&f, &s, m);
	assert_int_equal(run(broker->skel->progs.xroce_mux), XDP_DROP);
}

static void hear_of(enum cm_kind kind, uint32_t own_id)
{
	const struct cm_mad m = mad_of(kind, PEER_ID, own_id);

	hear(&m, 0);
}

static void hear_req(void)
{
	struct cm_mad m = mad_req(PEER_ID, HTTP);

	m.req.qpn = PEER_QPN;
	m.req.responder_resources = 0xff; /* next to it */
	hear(&m, 0);
}

static void hear_rep(uint32_t own_id)
{
	struct cm_mad m = mad_of(CM_REP, PEER_ID, own_id);

	m.rep.qpn = PEER_QPN;
	m.rep.vendor_id = 0xff0000; /* next to it */
	hear(&m, 0);
}

static uint32_t num_conns(void)
{
	const int fd = bpf_map__fd(broker->skel->maps.xroce_conn);
	uint32_t key, n = 0, *before = NULL;

	for (; bpf_map_get_next_key(fd, before, &key) == 0; before = &key)
		n++;
	return n;
}

static void check_conn(uint32_t own_id)
{
	struct xroce_conn conn;

	assert_int_equal(num_conns(), 1);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(broker->skel->maps.xroce_conn), &own_id,
					     &conn),
			 0);
	assert_memory_equal(conn.gid, bench_peer4, 16);
	assert_memory_equal(conn.own_gid, bench_local4, 16);
	assert_int_equal(conn.serial, SERIAL);
	assert_int_equal(conn.id, PEER_ID);
	assert_int_equal(conn.qpn, PEER_QPN);
}

static struct xroce_asked asked(bool is_reply)
{
	struct xroce_asked_key key = { .id = PEER_ID, .kind = is_reply ? CM_REP : CM_REQ };
	struct xroce_asked a;

	memcpy(key.gid, bench_peer4, 16);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(broker->skel->maps.xroce_asked), &key, &a),
			 0);
	return a;
}

/* ---- what a client says ---- */

static void conn_said__the_one_that_was_asked(void **state)
{
	hear_req();
	assert_int_equal(asked(false).qpn, PEER_QPN);
	assert_int_equal(asked(false).answered, 0);
	assert_memory_equal(asked(false).own_gid, bench_local4, 16);
	assert_int_equal(num_conns(), 0);
	say_of(CM_MRA, ID(OWN));
	say_of(CM_RTU, ID(OWN)); /* it answers a REP */
	assert_int_equal(num_conns(), 0);
	assert_int_equal(asked(false).answered, 0);
	say_of(CM_REP, ID(OWN));
	check_conn(ID(OWN));
	assert_int_equal(asked(false).answered, 1);
	say_of(CM_REP, ID(OWN));
	check_conn(ID(OWN));
}

static void conn_said__the_one_that_has_asked(void **state)
{
	say_of(CM_REQ, ID(OWN));
	hear_rep(ID(OWN));
	assert_int_equal(num_conns(), 0);
	say_of(CM_RTU, ID(OWN));
	check_conn(ID(OWN));
}

static void conn_said__it_ends(void **state)
{
	static const enum cm_kind kinds[] = { CM_DREQ, CM_DREP, CM_REJ };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		hear_rep(ID(OWN));
		say_of(CM_RTU, ID(OWN));
		say_of(kinds[i], ID(OWN) + 1);
		check_conn(ID(OWN));
		/* its client's own act ends it: it lives, and repeats itself */
		hear_of(kinds[i], ID(OWN));
		check_conn(ID(OWN));
		say_of(kinds[i], ID(OWN));
		assert_int_equal(num_conns(), 0);
	}
}

/* A refusal has no id of ours. */
static void conn_said__refused(void **state)
{
	hear_req();
	say_of(CM_REJ, 0);
	assert_int_equal(asked(false).answered, 1);
	assert_int_equal(num_conns(), 0);
}

/* No record of MADs without a peer's request, of another client's, or of unsent ones. */
static void conn_said__of_nobody(void **state)
{
	const struct xroce_conn left = { .serial = SERIAL + 7 };
	const uint32_t gone = ID(OTHER + 2);
	struct cm_mad m;

	m = mad_of(CM_REP, ID(OWN), PEER_ID);
	say(&m, TC_ACT_SHOT);
	say_of(CM_RTU, ID(OWN));
	assert_int_equal(num_conns(), 0);
	hear_rep(ID(OTHER));
	say_of(CM_RTU, ID(OWN));
	assert_int_equal(num_conns(), 0);
	hear_rep(ID(OWN));
	m = mad_of(CM_RTU, ID(OTHER), PEER_ID);
	say(&m, TC_ACT_SHOT);
	assert_int_equal(num_conns(), 0);
	say_of(CM_RTU, ID(OWN));
	check_conn(ID(OWN));
	m = mad_of(CM_DREQ, ID(OTHER), PEER_ID);
	say(&m, TC_ACT_SHOT);
	check_conn(ID(OWN));
	/* the broker takes the remaining ones: their refusal does not */
	broker_put_place(XROCE_CM_PLACE_NONE, 0, SERIAL);
	broker_put(broker->skel->maps.xroce_conn, &gone, &left);
	m = mad_of(CM_DREP, gone, PEER_ID);
	say(&m, TC_ACT_REDIRECT);
	m.kind = CM_REJ;
	say(&m, TC_ACT_REDIRECT);
	assert_int_equal(num_conns(), 2);
}

/* ---- MADs to the first client ---- */

static void conn_heard__by_the_first(void **state)
{
	static const enum cm_kind kinds[] = { CM_DREQ, CM_DREP, CM_REJ };
	const uint32_t id = ID(XROCE_CM_PLACE_MAX);
	struct cm_mad m;

	begin(XROCE_CM_PLACE_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		hear_rep(id);
		check_conn(id);
		m = mad_of(kinds[i], PEER_ID, id);
		hear(&m, 1);
		check_conn(id); /* another than its peer has no say */
		hear(&m, 0);
		assert_int_equal(num_conns(), 0);
	}
	hear_of(CM_RTU, id);
	assert_int_equal(num_conns(), 0); /* of no REQ */
	hear_req();
	hear_of(CM_RTU, id);
	check_conn(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(conn_said__the_one_that_was_asked, reset),
		cmocka_unit_test_setup(conn_said__the_one_that_has_asked, reset),
		cmocka_unit_test_setup(conn_said__it_ends, reset),
		cmocka_unit_test_setup(conn_said__refused, reset),
		cmocka_unit_test_setup(conn_said__of_nobody, reset),
		cmocka_unit_test_setup(conn_heard__by_the_first, reset),
	};

	return cmocka_run_group_tests_name("conn", tests, broker_setup, broker_teardown);
}
