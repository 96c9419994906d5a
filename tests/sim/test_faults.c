/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * Faults that rules of an endpoint request (user/fault/endpoint.c): answers of a responder,
 * credits, failed and late completions. Each is on the wire and in the completions as if it had
 * happened.
 */
#include "scene.h"

#include <setjmp.h>
#include <cmocka.h>

#include "../../user/fault/endpoint.h"

#define MESSAGES 6
#define BYTES	 64

static struct fault_table table[2]; /* of the requester's node, the responder's */
static struct fault_results results[2];

static const struct engine_faults *faults_of(u32 node, const char *rules, u64 seed)
{
	char wrong[LAB_RULE_TEXT];
	struct lab_error error;

	memset(&results[node], 0, sizeof(results[node]));
	if (!fault_parse(&table[node], rules, seed, &results[node], &error, wrong))
		fail_msg("%s: %s", wrong, error.why);
	return fault_engine(&table[node]);
}

/* A scene whose nodes have these rules, with MESSAGES receives at the responder. */
static struct scene scene_make(const char *of_a, const char *of_b, const struct pair_options *o)
{
	const struct world_options wo = {
		.faults = { faults_of(0, of_a, 1), faults_of(1, of_b, 1) },
		.ecn = true,
	};
	struct world *w = world_create_with(2, 5, &wo);
	struct scene s;

	world_label(w, "test_faults '%s' '%s'", of_a, of_b);
	s = scene_in(w, o, 8192);
	fault_know_qp(&table[0], s.a->qp->qpn);
	fault_know_qp(&table[1], s.b->qp->qpn);
	for (u32 i = 0; i < MESSAGES; i++)
		post_recv_buffer(s.b, 100 + i, s.remote, 512 * i, 512);
	return s;
}

static void post_messages(struct scene *s, enum wr_opcode opcode)
{
	for (u32 i = 0; i < MESSAGES; i++)
		scene_post(s, 1 + i, opcode, BYTES);
}

static void expect_send(struct scene *s, u32 n, enum cqe_status status)
{
	const bool flushed = status == CQE_WR_FLUSH_ERR;

	expect(s->w, s->a->send, n, .wr_id = 1 + n, .opcode = CQE_SEND, .status = status,
	       .vendor_err = !status ? VERR_NONE : flushed ? VERR_FLUSHED : VERR_FAULT_RULE,
	       .byte_len = BYTES, .qpn = s->a->qp->qpn);
}

static void expect_all(struct scene *s)
{
	check_eq(s->w, s->a->send->n, MESSAGES);
	for (u32 i = 0; i < MESSAGES; i++)
		expect_send(s, i, CQE_SUCCESS);
	check_eq(s->w, s->b->recv->n, MESSAGES);
	check_eq(s->w, qp_state(s->a->qp), QPS_RTS);
}

/* Returns how many acknowledgements of the responder have this syndrome. */
static u32 answers_with(const struct scene *s, u8 syndrome)
{
	u32 n = 0;

	for (u32 i = 0; i < s->w->num_sent; i++)
		n += s->w->sent[i].from == 1 && s->w->sent[i].packet.flags & OP_ACK &&
		     s->w->sent[i].packet.syndrome == syndrome;
	return n;
}

/* ---- the responder ---- */

static void rnr__message_is_sent_again(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("", "rnr nth=2..4 timer=3", &o);

	post_messages(&s, WR_SEND);
	world_run(s.w);
	expect_all(&s);
	check_eq(s.w, answers_with(&s, AETH_RNR_NAK | 3), 3);
	check_eq(s.w, s.b->node->stats.tx_rnr_naks, 3);
	check_eq(s.w, results[1].result[0].hits, 3);
	/* the first message, three refusals of the second, the second and four more */
	check_eq(s.w, results[1].result[0].matched, MESSAGES + 3);
	assert_non_null(strstr(results[1].result[0].shown[1], "rc.send.only qp 1 "));
	assert_non_null(strstr(results[1].result[0].shown[1], "(+1) round 2"));
	scene_end(&s);
}

/* The QP's own timer; and a WRITE consumes no receive. */
static void rnr__concerns_requests_that_consume_a_receive(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.min_rnr_timer = 5;
	s = scene_make("", "rnr round=1", &o);
	scene_post(&s, 1, WR_WRITE, BYTES);
	scene_post(&s, 2, WR_SEND, BYTES);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, s.b->node->stats.tx_rnr_naks, 1);
	check_eq(s.w, answers_with(&s, AETH_RNR_NAK | 5), 1);
	scene_end(&s);
	/* a rule that names kinds is for them */
	s = scene_make("", "rnr rc.write round=1", &o);
	scene_post(&s, 1, WR_WRITE, BYTES);
	scene_post(&s, 2, WR_SEND, BYTES);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, s.b->node->stats.tx_rnr_naks, 1);
	check_eq(s.w, answers_with(&s, AETH_RNR_NAK | 5), 1);
	scene_end(&s);
}

static void rnr__for_ever_ends_the_requester(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s;

	o.rnr_retry = 2;
	s = scene_make("", "rnr timer=1", &o);
	post_messages(&s, WR_SEND);
	world_run(s.w);
	expect(s.w, s.a->send, 0, .wr_id = 1, .status = CQE_RNR_RETRY_EXC_ERR,
	       .vendor_err = VERR_RNR, .qpn = s.a->qp->qpn);
	check_eq(s.w, s.b->recv->n, 0);
	scene_end(&s);
}

/* Each new transmission is decided anew, by itself. */
static void rnr__by_chance_completes(void **state)
{
	struct pair_options o = pair_defaults();
	u32 hits[2];

	o.rnr_retry = 7;
	o.min_rnr_timer = 1;
	for (u32 i = 0; i < 2; i++) {
		struct scene s = scene_make("", "rnr p=50%", &o);

		post_messages(&s, WR_SEND);
		world_run(s.w);
		expect_all(&s);
		hits[i] = results[1].result[0].hits;
		check_eq(s.w, hits[i], s.b->node->stats.tx_rnr_naks);
		scene_end(&s);
	}
	assert_in_range(hits[0], 1, 30);
	assert_int_equal(hits[0], hits[1]);
}

static void nak_with(const char *rule, u8 code, enum cqe_status status, enum cqe_status of_receive,
		     u32 event)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("", rule, &o);

	post_messages(&s, WR_SEND);
	world_run(s.w);
	expect_send(&s, 0, CQE_SUCCESS);
	check_eq(s.w, s.a->send->n, MESSAGES);
	check_eq(s.w, s.a->send->log[1].status, status);
	check_eq(s.w, s.a->send->log[1].wr_id, 2);
	for (u32 i = 2; i < MESSAGES; i++)
		expect_send(&s, i, CQE_WR_FLUSH_ERR);
	check_eq(s.w, answers_with(&s, AETH_NAK | code), 1);
	expect(s.w, s.b->recv, 0, .wr_id = 100, .opcode = CQE_RECV, .byte_len = BYTES,
	       .qpn = s.b->qp->qpn);
	expect(s.w, s.b->recv, 1, .wr_id = 101, .status = of_receive,
	       .vendor_err = VERR_FAULT_RULE, .qpn = s.b->qp->qpn);
	expect(s.w, s.b->recv, 2, .wr_id = 102, .status = CQE_WR_FLUSH_ERR,
	       .vendor_err = VERR_FLUSHED, .qpn = s.b->qp->qpn);
	check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
	check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
	if (event)
		check_eq(s.w, world_events(s.b->node, (enum engine_event_type)event, s.b->qp), 1);
	scene_end(&s);
}

static void nak__ends_the_connection(void **state)
{
	nak_with("nak remote-access nth=2", NAK_REMOTE_ACCESS, CQE_REM_ACCESS_ERR,
		 CQE_LOC_ACCESS_ERR, EVENT_QP_ACCESS_ERR);
	nak_with("nak invalid-request h2 nth=2", NAK_INVALID_REQUEST, CQE_REM_INV_REQ_ERR,
		 CQE_REM_INV_REQ_ERR, EVENT_QP_REQ_ERR);
	nak_with("nak operational psn=+1", NAK_REMOTE_OPERATION, CQE_REM_OP_ERR,
		 CQE_LOC_QP_OP_ERR, 0);
}

/* A READ is refused before it is answered. */
static void nak__of_a_read(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("", "nak remote-access rc.read nth=2", &o);

	scene_post(&s, 1, WR_READ, BYTES);
	scene_post(&s, 2, WR_SEND, BYTES);
	scene_post(&s, 3, WR_READ, BYTES);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 3);
	check_eq(s.w, s.a->send->log[1].status, CQE_SUCCESS);
	check_eq(s.w, s.a->send->log[2].status, CQE_REM_ACCESS_ERR);
	check_eq(s.w, world_count_sent(s.w, 1, OP5_READ_RESPONSE_ONLY), 1);
	scene_end(&s);
}

static void credits__are_in_the_answers(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("", "credits=0 times=4", &o);

	post_messages(&s, WR_SEND);
	world_run(s.w);
	expect_all(&s);
	check(s.w, results[1].result[0].hits);
	/* the last answer may have none left to promise */
	check(s.w, answers_with(&s, AETH_ACK) >= results[1].result[0].hits);
	scene_end(&s);
	s = scene_make("", "credits=3", &o);
	post_messages(&s, WR_SEND);
	world_run(s.w);
	expect_all(&s);
	check(s.w, answers_with(&s, AETH_ACK | 3));
	scene_end(&s);
}

static void cnp__is_sent(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("", "cnp nth=2", &o);

	post_messages(&s, WR_SEND);
	world_run(s.w);
	expect_all(&s);
	check_eq(s.w, s.b->node->stats.tx_cnps, 1);
	check_eq(s.w, s.b->node->stats.rx_ce, 0);
	scene_end(&s);
	/* within a CNP's interval further marks have none */
	s = scene_make("", "ecn nth=2..3", &o);
	post_messages(&s, WR_SEND);
	world_run(s.w);
	expect_all(&s);
	check_eq(s.w, s.b->node->stats.rx_ce, 2);
	check_eq(s.w, s.b->node->stats.tx_cnps, 1);
	scene_end(&s);
}

/* ---- completions ---- */

static void complete__send_fails_and_the_rest_is_flushed(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("complete RETRY_EXC_ERR send nth=3", "", &o);

	post_messages(&s, WR_SEND);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, MESSAGES);
	for (u32 i = 0; i < MESSAGES; i++)
		expect_send(&s, i,
			    i < 2  ? CQE_SUCCESS :
			    i == 2 ? CQE_RETRY_EXC_ERR :
				     CQE_WR_FLUSH_ERR);
	check_eq(s.w, qp_state(s.a->qp), QPS_ERR);
	check_eq(s.w, results[0].result[0].hits, 1);
	assert_non_null(strstr(results[0].result[0].shown[0], "send 3 of qp 1 "));
	scene_end(&s);
}

/* The third is a READ, and unsignaled: it completes all the same. */
static void complete__kinds_are_counted_by_themselves(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("complete GENERAL_ERR read", "", &o);
	struct send send = scene_request(&s, 3, WR_READ, BYTES);

	scene_post(&s, 1, WR_SEND, BYTES);
	scene_post(&s, 2, WR_WRITE, BYTES);
	send.flags = 0;
	post_send(s.a, &send);
	scene_post(&s, 4, WR_SEND, BYTES);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 4);
	expect_send(&s, 0, CQE_SUCCESS);
	check_eq(s.w, s.a->send->log[1].status, CQE_SUCCESS);
	check_eq(s.w, s.a->send->log[2].status, 21);
	check_eq(s.w, s.a->send->log[2].wr_id, 3);
	check_eq(s.w, s.a->send->log[3].status, CQE_WR_FLUSH_ERR);
	scene_end(&s);
}

/* A UD QP only stops sending. */
static void complete__datagram(void **state)
{
	struct pair_options o = pair_defaults();
	struct path path;
	struct scene s;

	o.transport = XROCE_UD;
	s = scene_make("complete LOC_QP_OP_ERR send nth=2", "", &o);
	path = world_path(s.w, 0, 1, false);
	for (u32 i = 0; i < MESSAGES; i++) {
		struct send send = scene_request(&s, 1 + i, WR_SEND, BYTES);

		send.path = &path;
		send.remote_qpn = s.b->qp->qpn;
		send.remote_qkey = PAIR_QKEY;
		post_send(s.a, &send);
	}
	world_run(s.w);
	check_eq(s.w, s.a->send->n, MESSAGES);
	for (u32 i = 0; i < MESSAGES; i++)
		expect_send(&s, i,
			    i < 1  ? CQE_SUCCESS :
			    i == 1 ? CQE_LOC_QP_OP_ERR :
				     CQE_WR_FLUSH_ERR);
	check_eq(s.w, qp_state(s.a->qp), QPS_SQE);
	scene_end(&s);
}

static void complete__receive_fails_and_the_peer_gets_a_nak(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("", "complete LOC_PROT_ERR recv nth=2", &o);

	/* without a receive: it does not count */
	scene_post(&s, 1, WR_WRITE, BYTES);
	scene_post(&s, 2, WR_SEND, BYTES);
	scene_post(&s, 3, WR_SEND, BYTES);
	world_run(s.w);
	expect(s.w, s.b->recv, 0, .wr_id = 100, .opcode = CQE_RECV, .byte_len = BYTES,
	       .qpn = s.b->qp->qpn);
	expect(s.w, s.b->recv, 1, .wr_id = 101, .status = CQE_LOC_PROT_ERR,
	       .vendor_err = VERR_FAULT_RULE, .qpn = s.b->qp->qpn);
	check_eq(s.w, s.a->send->log[2].status, CQE_REM_OP_ERR);
	check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
	scene_end(&s);
}

/* The second is late, and holds up those after it. */
static void late__keeps_the_order(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("late 5ms send nth=2", "", &o);

	post_messages(&s, WR_SEND);
	world_run_for(s.w, 4 * NSEC_PER_MSEC);
	check_eq(s.w, s.a->send->n, 1);
	check_eq(s.w, s.b->recv->n, MESSAGES);
	world_run(s.w);
	expect_all(&s);
	check(s.w, s.w->now_ns >= 5 * NSEC_PER_MSEC);
	scene_end(&s);
}

static void late__each_at_its_time(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("late 1ms send nth=2; late 5ms send nth=4", "", &o);

	post_messages(&s, WR_SEND);
	world_run_for(s.w, 500 * NSEC_PER_USEC);
	check_eq(s.w, s.a->send->n, 1);
	world_run_for(s.w, 3 * NSEC_PER_MSEC);
	check_eq(s.w, s.a->send->n, 3);
	world_run(s.w);
	expect_all(&s);
	scene_end(&s);
}

/* Two CQs: a late receive does not hold up sends. A CQ's event comes with its completion. */
static void late__of_one_cq(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("", "late 5ms recv nth=1", &o);

	atomic_store(&s.b->recv->cq.armed, CQ_ARMED_ANY);
	post_messages(&s, WR_SEND);
	world_run_for(s.w, 4 * NSEC_PER_MSEC);
	check_eq(s.w, s.a->send->n, MESSAGES);
	check_eq(s.w, s.b->recv->n, 0);
	check_eq(s.w, world_events(s.b->node, EVENT_COMPLETION, NULL), 0);
	world_run(s.w);
	expect_all(&s);
	check_eq(s.w, world_events(s.b->node, EVENT_COMPLETION, NULL), 1);
	scene_end(&s);
}

/* A share of the sends is the same, whether receives complete before or after. */
static void late__share_of_one_queue(void **state)
{
	struct pair_options o = pair_defaults();
	char shown[2][LAB_RULE_SHOWN][FAULT_SHOWN_TEXT];

	for (u32 first = 0; first < 2; first++) {
		struct scene s = scene_make("late 1us send p=60%", "", &o);
		struct side *sides[] = { s.b, s.a };

		for (u32 i = 0; i < MESSAGES; i++)
			post_recv_buffer(s.a, 200 + i, s.local, 512 * i, 512);
		for (u32 k = 0; k < 2; k++) {
			struct side *from = sides[k ^ first];

			for (u32 i = 0; i < MESSAGES; i++) {
				struct send send = request_between(from == s.a ? s.local : s.remote,
								   s.remote, 1 + i, WR_SEND, BYTES);

				post_send(from, &send);
			}
			world_run(s.w);
		}
		check_eq(s.w, s.a->send->n, MESSAGES);
		check_eq(s.w, s.a->recv->n, MESSAGES);
		for (u32 i = 0; i < LAB_RULE_SHOWN; i++)
			sscanf(results[0].result[0].shown[i], "%79[^(]", shown[first][i]);
		check(s.w, results[0].result[0].num_shown >= 2);
		scene_end(&s);
	}
	assert_memory_equal(shown[0][0], shown[1][0], strlen(shown[0][0]) + 1);
	assert_memory_equal(shown[0][1], shown[1][1], strlen(shown[0][1]) + 1);
}

/* A QP that is reset or destroyed takes its late completions along. */
static void late__end_with_their_qp(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("hold send nth=3", "late 5ms recv", &o);

	post_messages(&s, WR_SEND);
	world_run_for(s.w, NSEC_PER_MSEC);
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, s.b->recv->n, 0);
	check_eq(s.w, side_state(s.b, QPS_RESET), 0);
	world_run(s.w);
	check_eq(s.w, s.a->send->n, 2);
	check_eq(s.w, s.b->recv->n, 0);
	scene_end(&s);
}

/* Rules count by themselves, and a QP that the table does not know has no faults. */
static void rules__of_a_qp(void **state)
{
	struct pair_options o = pair_defaults();
	struct scene s = scene_make("complete GENERAL_ERR qp=2", "rnr qp=2; rnr qp=1 nth=1", &o);

	post_messages(&s, WR_SEND);
	world_run(s.w);
	expect_all(&s);
	check_eq(s.w, results[0].result[0].matched, 0);
	check_eq(s.w, results[1].result[0].matched, 0);
	check_eq(s.w, results[1].result[1].hits, 1);
	scene_end(&s);
	s = scene_make("complete GENERAL_ERR", "rnr", &o);
	table[0].order[s.a->qp->qpn % XROCE_MAX_QP] = 0;
	table[1].order[s.b->qp->qpn % XROCE_MAX_QP] = 0;
	post_messages(&s, WR_SEND);
	world_run(s.w);
	expect_all(&s);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rnr__message_is_sent_again),
		cmocka_unit_test(rnr__concerns_requests_that_consume_a_receive),
		cmocka_unit_test(rnr__for_ever_ends_the_requester),
		cmocka_unit_test(rnr__by_chance_completes),
		cmocka_unit_test(nak__ends_the_connection),
		cmocka_unit_test(nak__of_a_read),
		cmocka_unit_test(credits__are_in_the_answers),
		cmocka_unit_test(cnp__is_sent),
		cmocka_unit_test(complete__send_fails_and_the_rest_is_flushed),
		cmocka_unit_test(complete__kinds_are_counted_by_themselves),
		cmocka_unit_test(complete__datagram),
		cmocka_unit_test(complete__receive_fails_and_the_peer_gets_a_nak),
		cmocka_unit_test(late__keeps_the_order),
		cmocka_unit_test(late__each_at_its_time),
		cmocka_unit_test(late__of_one_cq),
		cmocka_unit_test(late__share_of_one_queue),
		cmocka_unit_test(late__end_with_their_qp),
		cmocka_unit_test(rules__of_a_qp),
	};

	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
