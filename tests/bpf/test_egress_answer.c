/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The client that may answer a REQ, SIDR_REQ or REP (xroce_egress): only the one to which xroce_mux
 * delivered it. Clients 0 and 1 are bound to a service each; client 1 refuses requests for others.
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

#define LOOPBACK   1u /* stands for the TAP device, and for the interface */
#define PLACE(c)   XROCE_CM_PLACE_OF((uint32_t)(c))
#define EMPTY	   XROCE_CM_PLACE_OF(2u) /* no client has it */
#define ID(place)  ((place) << XROCE_CM_ID_BITS | 0x12345)
#define PEER_ID	   0x7777u
#define SERVICE(c) cm_service_id(CM_PS_TCP, (uint16_t)(8080 + (c)))
#define SERIAL(c)  (100u + (uint32_t)(c))
#define REFUSER	   1

static struct frame f;

static int reset(void **state)
{
	const struct xroce_wire wire = { .ifindex = LOOPBACK, .hairpin = LOOPBACK };
	const uint32_t zero = 0;

	broker_reset(bench_peer4);
	broker_clear(broker->skel->maps.xroce_cm_client);
	broker_clear(broker->skel->maps.xroce_service);
	broker_clear(broker->skel->maps.xroce_asked);
	broker_put(broker->skel->maps.xroce_wire, &zero, &wire);
	for (uint32_t c = 0; c < BROKER_CLIENTS; c++) {
		const struct xroce_service service = { .place = PLACE(c) };
		struct xroce_service_key key = { .id = SERVICE(c) };

		broker_put_place(PLACE(c), c, SERIAL(c));
		memcpy(key.address, bench_local4, sizeof(key.address));
		broker_put(broker->skel->maps.xroce_service, &key, &service);
	}
	broker_put_place(XROCE_CM_PLACE_NONE, REFUSER, SERIAL(REFUSER));
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

/* ---- what the peer says ---- */

static void hear(const struct cm_mad *m)
{
	const struct frame_spec s = mad_spec();

	mad_frame(&f, &s, m);
	assert_int_equal(run(broker->skel->progs.xroce_mux), XDP_DROP);
}

static void hear_req(uint32_t id, uint64_t service)
{
	const struct cm_mad m = mad_req(id, service);

	hear(&m);
}

static void hear_sidr(uint32_t id, uint64_t service)
{
	const struct cm_mad m = { .kind = CM_SIDR_REQ,
				  .tid = 0x77,
				  .local_id = id,
				  .sidr_req = { .service_id = service } };

	hear(&m);
}

static void hear_of(enum cm_kind kind, uint32_t id, uint32_t remote_id)
{
	const struct cm_mad m = mad_of(kind, id, remote_id);

	hear(&m);
}

/* ---- what clients say ---- */

struct say {
	struct xroce_tap tap;
	uint8_t to[16];
};

static struct say by(uint32_t client)
{
	struct say s = { .tap = { .client = client, .place = PLACE(client) } };

	memcpy(s.to, bench_peer4, sizeof(s.to));
	return s;
}

static uint64_t refused(enum xroce_egress_reason reason)
{
	uint64_t of[XROCE_EGRESS_COUNT];

	bench_sum_percpu(bpf_map__fd(broker->skel->maps.xroce_refused), of, sizeof(of));
	return of[reason - 1];
}

/* XROCE_EGRESS_none: it leaves. */
static void expect(const char *what, const struct say *by, enum cm_kind kind, uint32_t own_id,
		   uint32_t id, enum xroce_egress_reason reason)
{
	const struct cm_mad m = mad_of(kind, kind == CM_SIDR_REP ? id : own_id, id);
	const uint64_t before = reason ? refused(reason) : 0;
	const uint32_t ifindex = LOOPBACK;
	struct frame_spec s = mad_spec();
	int verdict;

	broker_put(broker->skel->maps.xroce_tap, &ifindex, &by->tap);
	memcpy(s.src, bench_local4, 16);
	memcpy(s.dst, by->to, 16);
	mad_frame(&f, &s, &m);
	verdict = run(broker->skel->progs.xroce_egress);
	check(verdict == (reason ? TC_ACT_SHOT : TC_ACT_REDIRECT), "%s, kind %#x: verdict %d", what,
	      kind, verdict);
	check(!reason || refused(reason) == before + 1, "%s, kind %#x: not counted as reason %d",
	      what, kind, reason);
}

static const enum cm_kind answers[] = { CM_REP, CM_MRA, CM_REJ };

static void expect_all(const char *what, const struct say *by, uint32_t id,
		       enum xroce_egress_reason reason)
{
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		expect(what, by, answers[i], ID(by->tap.place), id, reason);
	expect(what, by, CM_REJ, 0, id, reason);
}

/* ---- requests ---- */

static void answer__of_the_one_that_was_asked(void **state)
{
	struct say own = by(0), other = by(1);

	expect_all("before it", &own, PEER_ID, XROCE_EGRESS_mad_answer);
	hear_req(PEER_ID, SERVICE(0));
	expect_all("the other client", &other, PEER_ID, XROCE_EGRESS_mad_answer);
	expect_all("the client", &own, PEER_ID, XROCE_EGRESS_none);
	expect_all("the client, again", &own, PEER_ID, XROCE_EGRESS_none);
	expect_all("another id", &own, PEER_ID + 1, XROCE_EGRESS_mad_answer);
	expect("a SIDR_REQ has not come", &own, CM_SIDR_REP, 0, PEER_ID, XROCE_EGRESS_mad_answer);
	own.to[15] ^= 1;
	expect_all("another peer", &own, PEER_ID, XROCE_EGRESS_mad_answer);
	own.to[15] ^= 1;
	own.tap.privileged = other.tap.privileged = true;
	expect_all("privileged", &own, PEER_ID, XROCE_EGRESS_none);
	expect_all("another, privileged", &other, PEER_ID, XROCE_EGRESS_mad_answer);
	expect("no id of its own", &own, CM_REP, 0, PEER_ID, XROCE_EGRESS_mad_id);
	expect("no id of its own", &own, CM_MRA, ID(PLACE(1)), PEER_ID, XROCE_EGRESS_mad_id);
	expect("no id of its own", &own, CM_REJ, ID(PLACE(1)), PEER_ID, XROCE_EGRESS_mad_id);
	expect("an id without owner", &own, CM_REJ, ID(EMPTY), PEER_ID, XROCE_EGRESS_mad_id);
}

static void answer__to_a_sidr_req(void **state)
{
	const struct say own = by(0), other = by(1);

	expect("before it", &own, CM_SIDR_REP, 0, PEER_ID, XROCE_EGRESS_mad_answer);
	hear_req(PEER_ID, SERVICE(1));
	hear_sidr(PEER_ID, SERVICE(0));
	expect("the other client", &other, CM_SIDR_REP, 0, PEER_ID, XROCE_EGRESS_mad_answer);
	expect("the client", &own, CM_SIDR_REP, 0, PEER_ID, XROCE_EGRESS_none);
	expect_all("the REQ is another's", &own, PEER_ID, XROCE_EGRESS_mad_answer);
	expect_all("the REQ", &other, PEER_ID, XROCE_EGRESS_none);
}

/* The same id of the peer, in a later request for another service. */
static void answer__to_the_last_request(void **state)
{
	const struct say own = by(0), other = by(1);
	struct cm_mad m = mad_req(PEER_ID, SERVICE(1));

	hear_req(PEER_ID, SERVICE(0));
	m.tid++;
	hear(&m);
	expect_all("the first one's", &own, PEER_ID, XROCE_EGRESS_mad_answer);
	expect_all("the last one's", &other, PEER_ID, XROCE_EGRESS_none);
}

/* The place is a new client's: the request was the old one's. */
static void answer__of_a_client_that_has_gone(void **state)
{
	const struct say own = by(0);
	const uint32_t place = PLACE(0);

	hear_req(PEER_ID, SERVICE(0));
	broker_put_place(place, 0, SERIAL(0) + 50);
	expect_all("the next client", &own, PEER_ID, XROCE_EGRESS_mad_answer);
	hear_req(PEER_ID, SERVICE(0));
	expect_all("asked itself", &own, PEER_ID, XROCE_EGRESS_none);
	bpf_map_delete_elem(bpf_map__fd(broker->skel->maps.xroce_cm_client), &place);
	expect_all("without a QP 1", &own, PEER_ID, XROCE_EGRESS_mad_answer);
}

/* ---- REPs ---- */

static void answer__to_a_rep(void **state)
{
	const struct say own = by(0), other = by(1);

	expect("before it", &own, CM_MRA, ID(PLACE(0)), PEER_ID, XROCE_EGRESS_mad_answer);
	hear_of(CM_REP, PEER_ID, ID(PLACE(0)));
	expect("the client", &own, CM_MRA, ID(PLACE(0)), PEER_ID, XROCE_EGRESS_none);
	expect("the client", &own, CM_REJ, ID(PLACE(0)), PEER_ID, XROCE_EGRESS_none);
	expect("the other client", &other, CM_MRA, ID(PLACE(1)), PEER_ID, XROCE_EGRESS_mad_answer);
	expect("the other client", &other, CM_REJ, ID(PLACE(1)), PEER_ID, XROCE_EGRESS_mad_answer);
	expect("a REP to a REP", &own, CM_REP, ID(PLACE(0)), PEER_ID, XROCE_EGRESS_mad_answer);
}

/* What the receiver finds by both ids is proved by the sender's own. */
static void answer__with_both_ids(void **state)
{
	static const enum cm_kind kinds[] = { CM_RTU, CM_DREQ, CM_DREP, CM_LAP, CM_APR };
	const struct say own = by(0);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		expect("its id", &own, kinds[i], ID(PLACE(0)), PEER_ID, XROCE_EGRESS_none);
		expect("another's", &own, kinds[i], ID(PLACE(1)), PEER_ID, XROCE_EGRESS_mad_id);
	}
	expect("it gives up", &own, CM_REJ, ID(PLACE(0)), 0, XROCE_EGRESS_none);
	expect("no id at all", &own, CM_REJ, 0, 0, XROCE_EGRESS_mad_answer);
}

/* ---- MADs for no client ---- */

static void answer__for_nobody(void **state)
{
	static const uint32_t nobodys[] = { 0, ID(EMPTY) };
	const struct say other = by(0), refuser = by(REFUSER);
	struct say of_broker = { .tap = { .client = XROCE_MAX_CLIENT } };

	memcpy(of_broker.to, bench_peer4, 16);
	expect_all("before it", &refuser, PEER_ID, XROCE_EGRESS_mad_answer);
	hear_req(PEER_ID, SERVICE(7));
	expect_all("not the refuser", &other, PEER_ID, XROCE_EGRESS_mad_answer);
	expect_all("the refuser", &refuser, PEER_ID, XROCE_EGRESS_none);
	hear_sidr(PEER_ID, SERVICE(7));
	expect("not the refuser", &other, CM_SIDR_REP, 0, PEER_ID, XROCE_EGRESS_mad_answer);
	expect("the refuser", &refuser, CM_SIDR_REP, 0, PEER_ID, XROCE_EGRESS_none);
	hear_of(CM_REP, PEER_ID + 1, ID(EMPTY));
	expect("a REP", &refuser, CM_REJ, ID(EMPTY), PEER_ID + 1, XROCE_EGRESS_none);
	expect("another REP", &refuser, CM_REJ, ID(EMPTY), PEER_ID + 2, XROCE_EGRESS_mad_answer);
	for (size_t i = 0; i < ARRAY_SIZE(nobodys); i++) {
		expect("a DREQ", &refuser, CM_DREP, nobodys[i], PEER_ID, XROCE_EGRESS_none);
		expect("a LAP", &refuser, CM_APR, nobodys[i], PEER_ID, XROCE_EGRESS_none);
		expect("not the refuser", &other, CM_DREP, nobodys[i], 1, XROCE_EGRESS_mad_id);
		expect("not the refuser", &other, CM_APR, nobodys[i], 1, XROCE_EGRESS_mad_id);
		expect("the broker", &of_broker, CM_REJ, nobodys[i], 1, XROCE_EGRESS_none);
		expect("the broker", &of_broker, CM_DREP, nobodys[i], 1, XROCE_EGRESS_none);
	}
	expect("the broker", &of_broker, CM_SIDR_REP, 0, PEER_ID + 9, XROCE_EGRESS_none);
	expect("the broker", &of_broker, CM_REJ, ID(PLACE(1)), 1, XROCE_EGRESS_mad_id);
}

/* A service that is bound after the first refusal: the peer may ask again by the same ids. */
static void answer__bound_meanwhile(void **state)
{
	struct xroce_service_key key = { .id = SERVICE(7) };
	const struct xroce_service service = { .place = PLACE(0) };
	const struct say own = by(0), refuser = by(REFUSER);

	hear_req(PEER_ID, SERVICE(7));
	expect("the refuser", &refuser, CM_REJ, 0, PEER_ID, XROCE_EGRESS_none);
	memcpy(key.address, bench_local4, sizeof(key.address));
	broker_put(broker->skel->maps.xroce_service, &key, &service);
	hear_req(PEER_ID, SERVICE(7));
	expect_all("the listener", &own, PEER_ID, XROCE_EGRESS_none);
	expect_all("the refuser", &refuser, PEER_ID, XROCE_EGRESS_mad_answer);
}

/* ---- floods ---- */

/*
 * Requests without number, each twice, for the service of another client: that one may answer no
 * more than before, and the client answers as soon as its peer repeats the request.
 */
static void answer__in_a_flood(void **state)
{
	const struct say own = by(0), other = by(1);

	hear_req(PEER_ID, SERVICE(0));
	expect_all("before the flood", &own, PEER_ID, XROCE_EGRESS_none);
	for (uint32_t id = PEER_ID + 1; id <= PEER_ID + 3 * XROCE_MAX_ASKED; id++) {
		hear_req(id, SERVICE(1));
		assert_int_equal(run(broker->skel->progs.xroce_mux), XDP_DROP);
	}
	expect_all("another, after the flood", &other, PEER_ID, XROCE_EGRESS_mad_answer);
	hear_req(PEER_ID, SERVICE(0));
	expect_all("the peer has repeated it", &own, PEER_ID, XROCE_EGRESS_none);
	expect_all("another, after that", &other, PEER_ID, XROCE_EGRESS_mad_answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(answer__of_the_one_that_was_asked, reset),
		cmocka_unit_test_setup(answer__to_a_sidr_req, reset),
		cmocka_unit_test_setup(answer__to_the_last_request, reset),
		cmocka_unit_test_setup(answer__of_a_client_that_has_gone, reset),
		cmocka_unit_test_setup(answer__to_a_rep, reset),
		cmocka_unit_test_setup(answer__with_both_ids, reset),
		cmocka_unit_test_setup(answer__for_nobody, reset),
		cmocka_unit_test_setup(answer__bound_meanwhile, reset),
		cmocka_unit_test_setup(answer__in_a_flood, reset),
	};

	return cmocka_run_group_tests_name("egress_answer", tests, broker_setup, broker_teardown);
}
