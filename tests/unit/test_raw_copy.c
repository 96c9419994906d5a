/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Flows with copies (sniffers, and flows that do not trap) in the engine: of frames that flows
 * take, and of frames that only XDP or the pump shows it. No receiver loses a frame to another's
 * copy.
 */
#include "raw_bench.h"

#include "../../user/engine/raw.h"

static const struct raw_rule sniffs = { .copies = true, .sniffs = true };

static u8 frame[128];
static u32 len;

static int begin(void **state)
{
	len = make_frame(frame, 0);
	return setup(state);
}

static struct raw_rule not_trapping(u32 order)
{
	return (struct raw_rule){ .order = order, .copies = true };
}

static struct raw_rule taking(u32 order)
{
	return (struct raw_rule){ .order = order };
}

static struct raw_rule dropping(u32 order)
{
	return (struct raw_rule){ .order = order, .drops = true };
}

static void copy(enum raw_copy kind)
{
	u8 *exact = exact_copy(frame, len);
	const struct rx_frame f = { .data = exact, .len = len };

	raw_copy(engine, kind, 55, &f, 0);
	free(exact);
}

static void copies__and_the_frame_goes_on(void **state)
{
	struct qp *sniffer = make_raw(), *beside = make_raw(), *taker = make_raw();
	const struct raw_rule b = not_trapping(4), t = taking(4);

	attach_rule(taker, &t);
	attach_rule(beside, &b);
	attach_rule(sniffer, &sniffs);
	post_receive(sniffer, 0, SLOT);
	post_receive(beside, 1, SLOT);
	post_receive(taker, 2, SLOT);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	expect_cqe(sniffer, 0, len);
	expect_cqe(beside, 1, len);
	expect_cqe(taker, 2, len);
	expect_no_cqe();
	for (u32 i = 0; i < 3; i++)
		assert_memory_equal(memory[i], frame, len);
}

/* Priorities hold for copies: none of a frame that a flow of higher priority took or dropped. */
static void copies__not_behind_the_one_that_takes_it(void **state)
{
	struct qp *behind = make_raw(), *taker = make_raw();
	const struct raw_rule b = not_trapping(5), t = taking(4);
	struct raw_flow *flow;

	attach_rule(behind, &b);
	flow = attach_rule(taker, &t);
	post_receive(behind, 0, SLOT);
	post_receive(taker, 1, SLOT);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	expect_cqe(taker, 1, len);
	expect_no_cqe();
	raw_detach(engine, flow);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	expect_cqe(behind, 0, len);
}

/* Within a priority flows with copies come before flows that drop, whatever their age. */
static void copies__of_what_is_dropped(void **state)
{
	struct qp *qp = make_raw();
	const struct raw_rule b = not_trapping(4), d = dropping(4);
	const u64 counted = drops.flow_drop;

	attach_rule(qp, &d);
	attach_rule(qp, &b);
	post_receive(qp, 0, SLOT);
	assert_int_equal(input_as(frame, len, NULL), XROCE_DROP_none);
	assert_int_equal(drops.flow_drop, counted + 1);
	expect_cqe(qp, 0, len);
	expect_no_cqe();
	/* no copy is delivered: the frame counts as dropped */
	assert_int_equal(input_as(frame, len, NULL), XROCE_DROP_flow_drop);
}

/* A QP gets one copy for each priority, with the flow's tag. */
static void copies__one_for_each_priority(void **state)
{
	struct raw_rule a = sniffs, b = not_trapping(3), again = not_trapping(3), t = taking(7);
	struct qp *qp = make_raw();
	const u32 tags[] = { 11, 22, 44 };
	struct cqe cqe;

	a.tag = 11;
	b.tag = 22;
	again.tag = 33;
	t.tag = 44;
	attach_rule(qp, &t);
	attach_rule(qp, &b);
	attach_rule(qp, &again);
	attach_rule(qp, &a);
	attach_rule(qp, &a);
	for (u32 i = 0; i < 3; i++)
		post_receive(qp, i, SLOT);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	for (u32 i = 0; i < 3; i++) {
		assert_true(poll_cq(&cqe));
		assert_int_equal(cqe.wr_id, i);
		assert_int_equal(cqe.flow_tag, tags[i]);
	}
	expect_no_cqe();
}

/* A receiver that lacks a receive or room costs the others nothing. */
static void copies__refused_alone(void **state)
{
	struct qp *none_posted = make_raw(), *too_short = make_raw(), *taker = make_raw();
	const struct raw_rule b = not_trapping(4), t = taking(4);
	struct cqe cqe;

	attach_rule(none_posted, &sniffs);
	attach_rule(too_short, &b);
	attach_rule(taker, &t);
	post_receive(too_short, 0, len - 1);
	post_receive(taker, 1, SLOT);
	assert_int_equal(input(frame, len), XROCE_DROP_none);
	assert_int_equal(drops.no_receive, 1);
	assert_int_equal(drops.receive_short, 1);
	assert_true(poll_cq(&cqe));
	assert_int_equal(cqe.qpn, too_short->qpn);
	assert_int_equal(cqe.status, CQE_LOC_LEN_ERR);
	assert_int_equal(qp_state(too_short), QPS_ERR);
	expect_cqe(taker, 1, len);
	assert_memory_equal(memory[1], frame, len);
}

/* ---- frames with another destination ---- */

/* Copies by kind: to a sniffer, and to flows that do not trap before and after a flow that does. */
static void copy__by_kind(void **state)
{
	static const struct {
		enum raw_copy kind;
		bool sniffer, before, behind, counted;
	} rows[] = {
		{ RAW_COPY_OTHER, true, true, false, false },
		{ RAW_COPY_OWN, true, true, true, false },
		{ RAW_COPY_LOOPED, true, true, true, true },
		{ RAW_COPY_SENT, true, false, false, true },
		/* the record's byte was not written */
		{ RAW_COPY_NONE, false, false, false, false },
		{ (enum raw_copy)(RAW_COPY_SENT + 1), false, false, false, false },
		{ (enum raw_copy)255, false, false, false, false },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct qp *sniffer = make_raw(), *before = make_raw(), *behind = make_raw(),
			  *taker = make_raw();
		struct raw_counter counter[4] = { 0 };
		struct raw_rule s = sniffs, b = not_trapping(2), t = taking(3), e = not_trapping(4);
		const bool has[] = { rows[i].sniffer, rows[i].before, rows[i].behind, false };
		struct qp *const qp[] = { sniffer, before, behind, taker };

		s.counter = &counter[0];
		b.counter = &counter[1];
		e.counter = &counter[2];
		t.counter = &counter[3];
		attach_rule(sniffer, &s);
		attach_rule(before, &b);
		attach_rule(taker, &t);
		attach_rule(behind, &e);
		for (u32 k = 0; k < 3; k++)
			post_receive(qp[k], k, SLOT);
		copy(rows[i].kind);
		for (u32 k = 0; k < 4; k++) {
			const u64 counted = has[k] && rows[i].counted;

			if (has[k])
				expect_cqe(qp[k], k, len);
			if (counter[k].own.packets != counted ||
			    counter[k].own.bytes != counted * len)
				fail_msg("row %u: flow %u counts %u", i, k,
					 (u32)counter[k].own.packets);
		}
		expect_no_cqe();
		assert_true(!has[0] || !memcmp(memory[0], frame, len));
		while (raw_flows(engine))
			raw_detach(engine, (struct raw_flow *)raw_flows(engine));
		for (u32 k = 0; k < 4; k++)
			qp_destroy(engine, qp[k]);
	}
}

/* The time stamp is the frame's, from XDP. */
static void copy__time(void **state)
{
	struct qp *qp = make_raw();
	struct cqe cqe;

	attach_rule(qp, &sniffs);
	post_receive(qp, 0, SLOT);
	copy(RAW_COPY_OWN);
	assert_true(poll_cq(&cqe));
	assert_int_equal(cqe.time_ns, 55);
}

/* Each copy without a receive is counted as one drop; the frame itself is not. */
static void copy__refusals(void **state)
{
	struct qp *a = make_raw(), *b = make_raw();
	const u64 packets = stats.rx_packets;

	attach_rule(a, &sniffs);
	attach_rule(b, &sniffs);
	copy(RAW_COPY_OWN);
	assert_int_equal(drops.no_receive, 2);
	post_receive(b, 0, SLOT);
	copy(RAW_COPY_OWN);
	assert_int_equal(drops.no_receive, 3);
	expect_cqe(b, 0, len);
	assert_int_equal(stats.rx_packets, packets);
	raw_detach(engine, (struct raw_flow *)raw_flows(engine));
	raw_detach(engine, (struct raw_flow *)raw_flows(engine));
	/* no flow is left for it, which is not a drop */
	copy(RAW_COPY_OWN);
	assert_int_equal(drops.no_receive, 3);
	assert_int_equal(drops.flow, 0);
}

/* A frame that is cut to nothing is not delivered. */
static void copy__cut_short(void **state)
{
	struct qp *qp = make_raw();

	attach_rule(qp, &sniffs);
	post_receive(qp, 0, SLOT);
	len = 13;
	copy(RAW_COPY_OWN);
	expect_no_cqe();
	len = 14;
	copy(RAW_COPY_OWN);
	expect_cqe(qp, 0, 14);
}

static void has_copies__while_there_are_some(void **state)
{
	struct qp *qp = make_raw();
	const struct raw_rule t = taking(0), b = not_trapping(0);
	struct raw_flow *one, *two;

	attach_rule(qp, &t);
	assert_false(raw_has_copies(engine));
	one = attach_rule(qp, &sniffs);
	two = attach_rule(qp, &b);
	raw_detach(engine, one);
	assert_true(raw_has_copies(engine));
	raw_detach(engine, two);
	assert_false(raw_has_copies(engine));
}

/* A sniffer with an indirection table spreads its copies by the frames' hashes. */
static void copy__spread_by_a_table(void **state)
{
	static const u8 key[RSS_KEY_BYTES] = { 0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2,
					       0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0 };
	struct qp *wq[2], *of[16], *qp;
	struct qp_init init = plain_init(XROCE_RAW);
	struct rss *rss;
	u32 first = 0;
	struct cqe cqe;

	init.is_wq = true;
	init.send_cq = NULL;
	init.max_send_wr = 0;
	init.max_send_sge = 0;
	init.max_recv_wr = 16;
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(qp_create(engine, &init, &wq[i]), 0);
		assert_int_equal(wq_modify(engine, wq[i], WQS_RDY, 0), 0);
	}
	assert_int_equal(rss_create(key, RSS_SRC_UDP, wq, 2, &rss), 0);
	init = plain_init(XROCE_RAW);
	init.send_cq = init.recv_cq = NULL;
	init.max_send_wr = init.max_recv_wr = init.max_send_sge = init.max_recv_sge = 0;
	init.rss = rss;
	assert_int_equal(qp_create(engine, &init, &qp), 0);
	attach_rule(qp, &sniffs);
	for (u32 i = 0; i < 16; i++) {
		struct xroce_flow_key fields = { .kinds = XROCE_FLOW_IPV4 | XROCE_FLOW_UDP };

		frame[34] = (u8)(i * 37);
		frame[35] = (u8)(i * 11);
		memcpy(&fields.sport, frame + 34, 2);
		of[i] = rss_pick(rss, &fields);
		first += of[i] == wq[0];
		post_receive(of[i], 0, SLOT);
		copy(i & 1 ? RAW_COPY_OWN : RAW_COPY_SENT);
		assert_true(poll_cq(&cqe));
		assert_int_equal(cqe.qpn, of[i]->qpn);
		assert_int_equal(cqe.byte_len, len);
		assert_memory_equal(memory[0], frame, len);
	}
	assert_in_range(first, 1, 15);
	expect_no_cqe();
	while (raw_flows(engine))
		raw_detach(engine, (struct raw_flow *)raw_flows(engine));
	qp_destroy(engine, qp);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(copies__and_the_frame_goes_on),
		CASE(copies__not_behind_the_one_that_takes_it),
		CASE(copies__of_what_is_dropped),
		CASE(copies__one_for_each_priority),
		CASE(copies__refused_alone),
		CASE(copy__by_kind),
		CASE(copy__time),
		CASE(copy__refusals),
		CASE(copy__cut_short),
		CASE(has_copies__while_there_are_some),
		CASE(copy__spread_by_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
