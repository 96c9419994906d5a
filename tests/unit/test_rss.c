/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Work queues and receive side scaling: the Toeplitz hash against the vectors that Microsoft
 * publishes and against the definition, which work queue has a frame, and a work queue's states.
 */
#include <arpa/inet.h>

#include "bare_engine.h"

#define NUM_WQ 4u
#define SLOT   256u

static u8 memory[NUM_WQ][8][SLOT];
static struct mr *mr;
static struct cq other_cq;
static const struct xroce_rx_cqe hint = { .qpn = 1 };
static const struct raw_rule all;
static const u32 all_ipv4 = RSS_SRC_IPV4 | RSS_DST_IPV4, all_ipv6 = RSS_SRC_IPV6 | RSS_DST_IPV6;
static const u32 all_ports = RSS_SRC_TCP | RSS_DST_TCP | RSS_SRC_UDP | RSS_DST_UDP;

/* "Verifying the RSS Hash Calculation", Microsoft's documentation of network drivers. */
static const u8 published_key[RSS_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};
static const struct {
	const char *dst, *src;
	u16 dport, sport;
	u32 addresses, with_ports;
} published[] = {
	{ "161.142.100.80", "66.9.149.187", 1766, 2794, 0x323e8fc2, 0x51ccc178 },
	{ "65.69.140.83", "199.92.111.2", 4739, 14230, 0xd718262a, 0xc626b0ea },
	{ "12.22.207.184", "24.19.198.95", 38024, 12898, 0xd2d0a5de, 0x5c2b394a },
	{ "209.142.163.6", "38.27.205.30", 2217, 48228, 0x82989176, 0xafc7327f },
	{ "202.188.127.2", "153.39.163.191", 1303, 44251, 0x5d1809c5, 0x10e828a2 },
	{ "3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5, 0x40207d3d },
	{ "ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c, 0xdde51bbf },
	{ "fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251,
	  0x4b61e985, 0x02d1feef },
};

/* ---- the hash ---- */

/* As it is defined, bit by bit. */
static u32 toeplitz(const u8 *key, const u8 *input, u32 bytes)
{
	u32 hash = 0;

	for (u32 bit = 0; bit < 8 * bytes; bit++) {
		if (!(input[bit / 8] >> (7 - bit % 8) & 1))
			continue;
		for (u32 i = 0; i < 32; i++)
			if (key[(bit + i) / 8] >> (7 - (bit + i) % 8) & 1)
				hash ^= 1u << (31 - i);
	}
	return hash;
}

static struct xroce_flow_key flow_key(const char *src, const char *dst, u16 sport, u16 dport,
				      u32 l4)
{
	const bool v6 = strchr(src, ':');
	struct xroce_flow_key key = { .kinds = (v6 ? XROCE_FLOW_IPV6 : XROCE_FLOW_IPV4) | l4,
				      .sport = htobe16(sport), .dport = htobe16(dport) };

	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, src, key.src), 1);
	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, dst, key.dst), 1);
	return key;
}

static struct qp *make_wq_on(struct cq *where)
{
	struct qp_init init = plain_init(XROCE_RAW);
	struct qp *wq;

	init.is_wq = true;
	init.send_cq = NULL;
	init.recv_cq = where;
	init.max_send_wr = 0;
	assert_int_equal(qp_create(engine, &init, &wq), 0);
	assert_int_equal(wq_state(wq), WQS_RESET);
	return wq;
}

static struct qp *make_wq(void)
{
	struct qp *wq = make_wq_on(&cq);

	assert_int_equal(wq_modify(engine, wq, WQS_RDY, 0), 0);
	return wq;
}

static struct rss *make_rss(const u8 *key, u32 fields, u32 num)
{
	struct qp *wq[NUM_WQ];
	struct rss *rss;

	for (u32 i = 0; i < num; i++)
		wq[i] = make_wq();
	assert_int_equal(rss_create(key, fields, wq, num, &rss), 0);
	return rss;
}

static void rss_hash__published_vectors(void **state)
{
	struct rss *addresses = make_rss(published_key, all_ipv4 | all_ipv6, 1);
	struct rss *with_ports = make_rss(published_key, all_ipv4 | all_ipv6 | all_ports, 1);

	for (u32 i = 0; i < ARRAY_SIZE(published); i++) {
		const u32 l4 = i & 1 ? XROCE_FLOW_UDP : XROCE_FLOW_TCP;
		const struct xroce_flow_key key = flow_key(published[i].src, published[i].dst,
							   published[i].sport, published[i].dport,
							   l4);

		if (rss_hash(addresses, &key) != published[i].addresses ||
		    rss_hash(with_ports, &key) != published[i].with_ports)
			fail_msg("vector %u: %08x, %08x", i, rss_hash(addresses, &key),
				 rss_hash(with_ports, &key));
	}
	rss_free(addresses);
	rss_free(with_ports);
}

/* The input by the man page's fields: the selected ones, in this order. */
static u32 expected_hash(const u8 *key, u32 fields, const struct xroce_flow_key *k)
{
	const bool v4 = k->kinds & XROCE_FLOW_IPV4, v6 = k->kinds & XROCE_FLOW_IPV6;
	const bool whole = !(k->ip_flags & XROCE_FLOW_MORE_FRAGMENTS);
	const bool tcp = k->kinds & XROCE_FLOW_TCP && whole;
	const bool udp = k->kinds & XROCE_FLOW_UDP && whole;
	u8 input[36];
	u32 n = 0;

#define ADD(condition, field, bytes)                                                               \
	do {                                                                                       \
		if (condition)                                                                     \
			memcpy(input + n, field, bytes), n += bytes;                               \
	} while (0)
	ADD(v4 && fields & RSS_SRC_IPV4, k->src, 4u);
	ADD(v6 && fields & RSS_SRC_IPV6, k->src, 16u);
	ADD(v4 && fields & RSS_DST_IPV4, k->dst, 4u);
	ADD(v6 && fields & RSS_DST_IPV6, k->dst, 16u);
	ADD((tcp && fields & RSS_SRC_TCP) || (udp && fields & RSS_SRC_UDP), &k->sport, 2u);
	ADD((tcp && fields & RSS_DST_TCP) || (udp && fields & RSS_DST_UDP), &k->dport, 2u);
#undef ADD
	return toeplitz(key, input, n);
}

/* Every choice of fields, of every kind of frame. */
static void rss_hash__each_choice_of_fields(void **state)
{
	static const u32 kinds[] = {
		0,
		XROCE_FLOW_IPV4,
		XROCE_FLOW_IPV4 | XROCE_FLOW_TCP,
		XROCE_FLOW_IPV4 | XROCE_FLOW_UDP,
		XROCE_FLOW_IPV6,
		XROCE_FLOW_IPV6 | XROCE_FLOW_TCP,
		XROCE_FLOW_IPV6 | XROCE_FLOW_UDP,
	};
	u64 seed = 7;
	struct qp *wq = make_wq();

	for (u32 fields = 0; fields <= RSS_FIELDS; fields++) {
		u8 secret[RSS_KEY_BYTES];
		struct rss *rss;

		for (u32 i = 0; i < sizeof(secret); i++)
			secret[i] = (u8)next_random(&seed);
		assert_int_equal(rss_create(secret, fields, &wq, 1, &rss), 0);
		for (u32 i = 0; i < 2 * ARRAY_SIZE(kinds); i++) {
			struct xroce_flow_key key;

			for (u32 n = 0; n < sizeof(key); n++)
				((u8 *)&key)[n] = (u8)next_random(&seed);
			key.kinds = kinds[i / 2];
			key.ip_flags = i & 1 ? XROCE_FLOW_MORE_FRAGMENTS
					     : XROCE_FLOW_DONT_FRAGMENT;
			if (rss_hash(rss, &key) != expected_hash(secret, fields, &key))
				fail_msg("fields %02x, kind %u", fields, i);
		}
		rss_free(rss);
	}
}

/* ---- tables ---- */

static void rss_create__refused(void **state)
{
	struct qp *wq = make_wq(), *raw = make_qp(XROCE_RAW);
	struct qp *table[] = { wq, wq, wq, wq };
	struct rss *rss;

	assert_int_equal(rss_create(published_key, 0, table, 0, &rss), -EINVAL);
	assert_int_equal(rss_create(published_key, 0, table, 3, &rss), -EINVAL);
	assert_int_equal(rss_create(published_key, 0, table, 2 * RSS_TABLE_MAX, &rss), -EINVAL);
	assert_int_equal(rss_create(published_key, RSS_FIELDS + 1, table, 4, &rss), -EINVAL);
	table[3] = raw;
	assert_int_equal(rss_create(published_key, 0, table, 4, &rss), -EINVAL);
	assert_int_equal(rss_create(published_key, 0, table, 2, &rss), 0);
	rss_free(rss);
}

/* XDP's information: the CQ of all, if there is just one. */
static void rss_cq__of_all_or_none(void **state)
{
	struct qp *here = make_wq(), *too = make_wq(), *there = make_wq_on(&other_cq);
	struct rss *one, *several;

	assert_int_equal(rss_create(published_key, 0, (struct qp *[]){ here, too }, 2, &one), 0);
	assert_int_equal(rss_create(published_key, 0, (struct qp *[]){ here, there }, 2, &several),
			 0);
	assert_ptr_equal(rss_cq(one), &cq);
	assert_null(rss_cq(several));
	assert_false(rss_with_time(several));
	assert_false(rss_with_flow_tag(several));
	other_cq.with_time = other_cq.with_flow_tag = true;
	assert_true(rss_with_time(several));
	assert_true(rss_with_flow_tag(several));
	assert_false(rss_with_time(one));
	assert_false(rss_with_flow_tag(one));
	other_cq.with_time = other_cq.with_flow_tag = false;
	rss_free(one);
	rss_free(several);
}

/* ---- frames ---- */

static int setup(void **state)
{
	int err = make_engine(state) || cq_init(&other_cq, 16);

	memset(memory, 0, sizeof(memory));
	return err ? err :
		     mr_add(engine_mr_table(engine), 1, memory, sizeof(memory),
			    (u64)(uintptr_t)memory, MR_LOCAL_WRITE, &mr);
}

/* QPs of tables before the work queues in them. */
static int teardown(void **state)
{
	while (raw_flows(engine))
		raw_detach(engine, (struct raw_flow *)raw_flows(engine));
	for (u32 wqs = 0; wqs < 2; wqs++)
		for (u32 i = 0; i < XROCE_MAX_QP; i++)
			if (engine->qp[i] && engine->qp[i]->is_wq == wqs)
				qp_destroy(engine, engine->qp[i]);
	mr_remove(engine_mr_table(engine), mr);
	cq_free(&other_cq);
	return drop_engine(state);
}

static struct qp_init rss_init(struct rss *rss)
{
	return (struct qp_init){ .transport = XROCE_RAW, .rss = rss, .pd = 1 };
}

/* A QP that takes all frames, whose table has these work queues. */
static struct qp *make_rss_qp(struct qp *const *wq, u32 num, u32 fields)
{
	struct qp_init init = rss_init(NULL);
	struct raw_flow *flow;
	struct qp *qp;

	assert_int_equal(rss_create(published_key, fields, wq, num, &init.rss), 0);
	assert_int_equal(qp_create(engine, &init, &qp), 0);
	assert_int_equal(raw_attach(engine, qp, &all, &flow), 0);
	return qp;
}

/* wr_id: 100 times the number of the work queue, and the slot. */
static void post_receive(struct qp *wq, u32 number, u32 slot, u32 length)
{
	struct recv_wqe *wqe = rq_slot(&wq->rq, 0);

	assert_non_null(wqe);
	wqe->wr_id = 100 * number + slot;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct sge){ (u64)(uintptr_t)memory[number][slot], length, mr_key(mr) };
	rq_publish(&wq->rq, 1);
}

#define FRAME_BYTES 60u

static void make_frame(u8 *frame, const char *src, const char *dst, u16 sport, u16 dport)
{
	const u16 ports[] = { htobe16(sport), htobe16(dport) };

	memset(frame, 0, FRAME_BYTES);
	frame[0] = 2;
	frame[12] = 8;
	frame[14] = 0x45;
	frame[23] = 17;
	inet_pton(AF_INET, src, frame + 26);
	inet_pton(AF_INET, dst, frame + 30);
	memcpy(frame + 34, ports, sizeof(ports));
}

static enum xroce_drop input(const u8 *frame)
{
	const struct rx_frame f = { .data = frame, .len = FRAME_BYTES };

	return engine_input(engine, &hint, &f, 0);
}

static bool take_cqe(struct cqe *to)
{
	const struct cqe *e = cq_peek(&cq);

	if (!e)
		return false;
	*to = *e;
	cq_pop(&cq);
	return true;
}

/* Each in the work queue that the published hash says, and in no other. */
static void raw_input__to_the_work_queue_of_the_hash(void **state)
{
	struct qp *wq[NUM_WQ];
	u32 posted[NUM_WQ] = { 0 };
	u8 frame[FRAME_BYTES];

	for (u32 i = 0; i < NUM_WQ; i++)
		wq[i] = make_wq();
	make_rss_qp(wq, NUM_WQ, all_ipv4 | RSS_SRC_UDP | RSS_DST_UDP);
	for (u32 i = 0; i < ARRAY_SIZE(published); i++) {
		const u32 to = published[i].with_ports % NUM_WQ;
		struct cqe cqe = { 0 };

		if (strchr(published[i].src, ':'))
			continue;
		for (u32 n = 0; n < NUM_WQ; n++)
			post_receive(wq[n], n, posted[n]++, SLOT);
		make_frame(frame, published[i].src, published[i].dst, published[i].sport,
			   published[i].dport);
		assert_int_equal(input(frame), XROCE_DROP_none);
		assert_true(take_cqe(&cqe));
		assert_int_equal(cqe.status, CQE_SUCCESS);
		assert_int_equal(cqe.opcode, CQE_RECV);
		assert_int_equal(cqe.qpn, wq[to]->qpn);
		assert_int_equal(cqe.wr_id / 100, to);
		assert_int_equal(cqe.byte_len, FRAME_BYTES);
		assert_memory_equal(memory[to][cqe.wr_id % 100], frame, FRAME_BYTES);
		assert_false(take_cqe(&cqe));
		for (u32 n = 0; n < NUM_WQ; n++)
			rq_reset(&wq[n]->rq);
	}
}

/* Frames with none of the fields, or hashed by none, go to the first one. */
static void raw_input__without_fields(void **state)
{
	struct qp *wq[] = { make_wq(), make_wq() };
	u8 frame[FRAME_BYTES];
	struct cqe cqe;

	make_rss_qp(wq, 2, all_ipv6 | RSS_SRC_TCP);
	post_receive(wq[0], 0, 0, SLOT);
	post_receive(wq[1], 1, 0, SLOT);
	make_frame(frame, "66.9.149.187", "161.142.100.81", 2794, 1767);
	assert_int_equal(input(frame), XROCE_DROP_none);
	assert_true(take_cqe(&cqe));
	assert_int_equal(cqe.qpn, wq[0]->qpn);
	frame[12] = 9;
	post_receive(wq[0], 0, 0, SLOT);
	assert_int_equal(input(frame), XROCE_DROP_none);
	assert_true(take_cqe(&cqe));
	assert_int_equal(cqe.qpn, wq[0]->qpn);
}

/* The work queue's state counts; of the QP with the table only that it is not in error. */
static void raw_input__states(void **state)
{
	struct qp *wq = make_wq_on(&cq), *qp = make_rss_qp(&wq, 1, 0);
	const struct qp_attr err = { .state = QPS_ERR }, reset = { .state = QPS_RESET },
			     init = { .state = QPS_INIT, .port = 1 }, rtr = { .state = QPS_RTR },
			     rts = { .state = QPS_RTS };
	u8 frame[FRAME_BYTES];
	struct cqe cqe;

	make_frame(frame, "1.2.3.4", "5.6.7.8", 1, 2);
	assert_int_equal(input(frame), XROCE_DROP_qp_state);
	assert_int_equal(wq_modify(engine, wq, WQS_RDY, 0), 0);
	assert_int_equal(input(frame), XROCE_DROP_no_receive);
	post_receive(wq, 0, 0, SLOT);
	assert_int_equal(input(frame), XROCE_DROP_none);
	assert_true(take_cqe(&cqe));
	post_receive(wq, 0, 0, SLOT);
	assert_int_equal(qp_modify(engine, qp, &err, QP_ATTR_STATE, 0), 0);
	assert_int_equal(input(frame), XROCE_DROP_qp_state);
	assert_int_equal(qp_modify(engine, qp, &reset, QP_ATTR_STATE, 0), 0);
	assert_int_equal(input(frame), XROCE_DROP_none);
	assert_true(take_cqe(&cqe));
	/* as far as a QP goes that cannot send */
	assert_int_equal(wq_modify(engine, wq, WQS_RDY, 0), 0);
	assert_int_equal(qp_modify(engine, qp, &init, QP_ATTR_STATE | QP_ATTR_PORT, 0), 0);
	assert_int_equal(qp_modify(engine, qp, &rtr, QP_ATTR_STATE, 0), 0);
	assert_int_equal(qp_modify(engine, qp, &rts, QP_ATTR_STATE, 0), -EINVAL);
	assert_int_equal(wq_modify(engine, wq, WQS_ERR, 0), 0);
	assert_int_equal(input(frame), XROCE_DROP_qp_state);
}

/* The receive fails, and puts the work queue in error, with an event. */
static void raw_input__receive_too_short(void **state)
{
	struct qp *wq = make_wq();
	struct engine_event event;
	u8 frame[FRAME_BYTES];
	u32 events = 0;
	struct cqe cqe;

	make_rss_qp(&wq, 1, 0);
	post_receive(wq, 0, 0, FRAME_BYTES - 1);
	post_receive(wq, 0, 1, SLOT);
	make_frame(frame, "1.2.3.4", "5.6.7.8", 1, 2);
	assert_int_equal(input(frame), XROCE_DROP_receive_short);
	assert_true(take_cqe(&cqe));
	assert_int_equal(cqe.status, CQE_LOC_LEN_ERR);
	assert_int_equal(cqe.qpn, wq->qpn);
	assert_true(take_cqe(&cqe));
	assert_int_equal(cqe.status, CQE_WR_FLUSH_ERR);
	assert_int_equal(cqe.wr_id, 1);
	assert_int_equal(wq_state(wq), WQS_ERR);
	while (engine_next_event(engine, &event))
		if (event.qp == wq)
			events |= event.type;
	assert_int_equal(events, EVENT_QP_FATAL | EVENT_QP_STATE);
}

/* Where its CQ has overrun a work queue ends, with its event; another one of the table goes on. */
static void raw_input__cq_overrun(void **state)
{
	struct qp *wq[] = { make_wq_on(&other_cq), make_wq() }, *qp;
	struct engine_event event;
	u8 frame[FRAME_BYTES];
	u32 events = 0;
	struct cqe cqe;

	qp = make_rss_qp(wq, 2, all_ipv4);
	assert_int_equal(wq_modify(engine, wq[0], WQS_RDY, 0), 0);
	/* 0x323e8fc2 */
	make_frame(frame, "66.9.149.187", "161.142.100.80", 1, 2);
	for (u32 i = 0; wq_state(wq[0]) == WQS_RDY && i < 100; i++) {
		post_receive(wq[0], 0, 0, SLOT);
		input(frame);
		while (engine_next_event(engine, &event))
			if (event.qp == wq[0])
				events |= event.type;
	}
	assert_true(cq_has_overrun(&other_cq));
	assert_int_equal(wq_state(wq[0]), WQS_ERR);
	assert_int_equal(events, EVENT_QP_FATAL | EVENT_QP_STATE);
	assert_int_not_equal(qp_state(qp), QPS_ERR);
	/* 0x5d1809c5 */
	make_frame(frame, "153.39.163.191", "202.188.127.2", 1, 2);
	post_receive(wq[1], 1, 0, SLOT);
	assert_int_equal(input(frame), XROCE_DROP_none);
	assert_true(take_cqe(&cqe));
	assert_int_equal(cqe.qpn, wq[1]->qpn);
}

/* ---- work queues ---- */

/* ibv_modify_wq(3): an attribute that is not in the mask stays unchanged. */
static void wq_modify__each_pair(void **state)
{
	static const bool allowed[3][4] = {
		[WQS_RESET] = { true, true, false, false },
		[WQS_RDY] = { true, true, true, false },
		[WQS_ERR] = { true, false, true, false },
	};

	for (u32 from = WQS_RESET; from <= WQS_ERR; from++) {
		for (u32 to = WQS_RESET; to <= WQS_ERR + 1; to++) {
			struct qp *wq = make_wq_on(&cq);
			int err;

			if (from != WQS_RESET)
				assert_int_equal(wq_modify(engine, wq, WQS_RDY, 0), 0);
			if (from == WQS_ERR)
				assert_int_equal(wq_modify(engine, wq, WQS_ERR, 0), 0);
			assert_int_equal(wq_state(wq), from);
			err = wq_modify(engine, wq, (enum wq_state)to, 0);
			if (err != (allowed[from][to] ? 0 : -EINVAL))
				fail_msg("from %u to %u: %d", from, to, err);
			assert_int_equal(wq_state(wq), err ? from : to);
			qp_destroy(engine, wq);
		}
	}
}

/* ERR flushes; RESET forgets, earlier completions as well. */
static void wq_modify__err_and_reset(void **state)
{
	struct qp *wq = make_wq();
	struct cqe cqe;

	post_receive(wq, 0, 0, SLOT);
	post_receive(wq, 0, 1, SLOT);
	assert_int_equal(wq_modify(engine, wq, WQS_ERR, 0), 0);
	assert_true(take_cqe(&cqe));
	assert_int_equal(cqe.status, CQE_WR_FLUSH_ERR);
	assert_int_equal(cqe.wr_id, 0);
	assert_int_equal(cqe.qpn, wq->qpn);
	assert_int_equal(wq_modify(engine, wq, WQS_RESET, 0), 0);
	assert_false(take_cqe(&cqe));
	assert_int_equal(wq_modify(engine, wq, WQS_RDY, 0), 0);
	post_receive(wq, 0, 0, SLOT);
	assert_int_equal(wq_modify(engine, wq, WQS_RESET, 0), 0);
	assert_int_equal(rq_posted(&wq->rq), 0);
	assert_int_equal(wq_modify(engine, make_qp(XROCE_RAW), WQS_RDY, 0), -EINVAL);
}

/* Neither has what the other has, and no flow is a work queue's. */
static void qp_create__refused(void **state)
{
	struct rss *rss = make_rss(published_key, 0, 1);
	struct qp_init wq = plain_init(XROCE_RAW), rss_qp = rss_init(rss), bad;
	struct raw_flow *flow;
	struct qp *qp;

	wq.is_wq = true;
	wq.send_cq = NULL;
	wq.max_send_wr = 0;
#define REFUSED(of, field, value)                                                                  \
	do {                                                                                       \
		bad = of;                                                                          \
		bad.field = value;                                                                 \
		assert_int_equal(qp_create(engine, &bad, &qp), -EINVAL);                           \
	} while (0)
	REFUSED(wq, transport, XROCE_UD);
	REFUSED(wq, send_cq, &cq);
	REFUSED(wq, recv_cq, NULL);
	REFUSED(wq, max_send_wr, 1);
	REFUSED(rss_qp, transport, XROCE_UD);
	REFUSED(rss_qp, is_wq, true);
	REFUSED(rss_qp, send_cq, &cq);
	REFUSED(rss_qp, recv_cq, &cq);
	REFUSED(rss_qp, max_send_wr, 1);
	REFUSED(rss_qp, max_recv_wr, 1);
	rss_free(rss);
	assert_int_equal(raw_attach(engine, make_wq(), &all, &flow), -EINVAL);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(rss_hash__published_vectors),
		CASE(rss_hash__each_choice_of_fields),
		CASE(rss_create__refused),
		CASE(rss_cq__of_all_or_none),
		CASE(raw_input__to_the_work_queue_of_the_hash),
		CASE(raw_input__without_fields),
		CASE(raw_input__states),
		CASE(raw_input__receive_too_short),
		CASE(raw_input__cq_overrun),
		CASE(wq_modify__each_pair),
		CASE(wq_modify__err_and_reset),
		CASE(qp_create__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
