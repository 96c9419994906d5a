/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* tier: long san */
/* tier: long san_engines XROCE_SIM_ENGINES=3 */
/*
 * FLUSH and ATOMIC WRITE: what each may name, what the answer looks like, and that an ATOMIC WRITE
 * happens once, in its turn, under every 8-bit loss mask of both directions.
 * XROCE_SIM_MASK=forward:backward (hexadecimal) runs one mask.
 */
#include "raw.h"
#include "runs.h"

#include <setjmp.h>
#include <cmocka.h>

#define FLUSH_BOTH (MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT)

/* The FETH's fields (IBTA A19): placement type bits 3..0, selectivity bits 5..4. */
enum { GLOBAL = 1, PERSISTENT = 2, RANGE = 0 << 4, REGION = 1 << 4 };

struct scene {
	struct world *w;
	struct pair p;
	struct buffer *local, *remote;
};

static void scene_open(struct scene *s, u32 access)
{
	struct pair_options o = pair_defaults();

	o.timeout = 10;
	s->w = world_create(2, 31);
	s->p = pair_connect(s->w, &o);
	s->local = world_buffer(&s->w->node[0], 256, PAIR_ACCESS_ALL);
	s->remote = world_buffer(&s->w->node[1], 4096, access);
}

static void scene_close(struct scene *s)
{
	pair_destroy(&s->p);
	world_destroy(s->w);
}

static struct send flush(const struct scene *s, u32 offset, u32 len, u32 feth)
{
	return (struct send){ .wr_id = 1,
			      .opcode = WR_FLUSH,
			      .flags = WR_SIGNALED,
			      .remote_addr = buffer_va(s->remote) + offset,
			      .rkey = s->remote->mr->key,
			      .length = len,
			      .compare_add = feth };
}

static struct send atomic_write(const struct scene *s, u32 offset, u64 value)
{
	return (struct send){ .wr_id = 2,
			      .opcode = WR_ATOMIC_WRITE,
			      .flags = WR_SIGNALED,
			      .length = 8,
			      .swap = value,
			      .remote_addr = buffer_va(s->remote) + offset,
			      .rkey = s->remote->mr->key };
}

static void flush__rights_range_and_region(void **state)
{
	static const struct { u32 access, offset, len, feth; enum cqe_status status; } cases[] = {
		{ FLUSH_BOTH, 0, 4096, GLOBAL | RANGE, CQE_SUCCESS },
		{ FLUSH_BOTH, 4095, 1, PERSISTENT | RANGE, CQE_SUCCESS },
		{ FLUSH_BOTH, 8, 16, GLOBAL | PERSISTENT | RANGE, CQE_SUCCESS },
		{ FLUSH_BOTH, 0, 0, GLOBAL | RANGE, CQE_SUCCESS },
		{ FLUSH_BOTH, 1, 4096, GLOBAL | RANGE, CQE_REM_ACCESS_ERR },
		{ FLUSH_BOTH, 4096, 1, GLOBAL | RANGE, CQE_REM_ACCESS_ERR },
		{ FLUSH_BOTH, 0, 0xffffffff, GLOBAL | RANGE, CQE_REM_ACCESS_ERR },
		{ MR_FLUSH_GLOBAL, 0, 8, GLOBAL | RANGE, CQE_SUCCESS },
		{ MR_FLUSH_GLOBAL, 0, 8, PERSISTENT | RANGE, CQE_REM_ACCESS_ERR },
		{ MR_FLUSH_GLOBAL, 0, 8, GLOBAL | PERSISTENT | RANGE, CQE_REM_ACCESS_ERR },
		{ MR_FLUSH_PERSISTENT, 0, 8, PERSISTENT | RANGE, CQE_SUCCESS },
		{ MR_FLUSH_PERSISTENT, 0, 8, GLOBAL | RANGE, CQE_REM_ACCESS_ERR },
		{ MR_FLUSH_PERSISTENT, 0, 0, GLOBAL | RANGE, CQE_REM_ACCESS_ERR },
		{ PAIR_ACCESS_ALL, 0, 8, GLOBAL | RANGE, CQE_REM_ACCESS_ERR },
		/* the whole region, whatever the address says */
		{ FLUSH_BOTH, 4096, 8, GLOBAL | REGION, CQE_SUCCESS },
		{ FLUSH_BOTH, 0, 0xffffffff, PERSISTENT | REGION, CQE_SUCCESS },
		{ MR_FLUSH_GLOBAL, 0, 8, PERSISTENT | REGION, CQE_REM_ACCESS_ERR },
		{ PAIR_ACCESS_ALL, 0, 0, GLOBAL | REGION, CQE_REM_ACCESS_ERR },
	};

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		struct scene s;
		struct send send;

		scene_open(&s, cases[i].access);
		world_label(s.w, "test_placement flush case %u", i);
		send = flush(&s, cases[i].offset, min_u32(cases[i].len, ROCE_MESSAGE_MAX),
			     cases[i].feth);
		post_send(&s.p.side[0], &send);
		world_run(s.w);
		check_eq(s.w, s.p.side[0].send->n, 1);
		check_eq(s.w, s.p.side[0].send->log[0].status, cases[i].status);
		check_eq(s.w, world_events(&s.w->node[1], EVENT_QP_ACCESS_ERR, NULL),
			 cases[i].status != CQE_SUCCESS);
		if (cases[i].status == CQE_SUCCESS) {
			const struct sent_frame *request = world_sent(s.w, 0, OP5_FLUSH, 0),
						*answer;

			answer = world_sent(s.w, 1, OP5_READ_RESPONSE_ONLY, 0);
			expect(s.w, s.p.side[0].send, 0, .wr_id = 1, .opcode = CQE_FLUSH,
			       .byte_len = send.length, .qpn = s.p.side[0].qp->qpn);
			check(s.w, request && answer);
			check_eq(s.w, request->packet.flush, cases[i].feth);
			check_eq(s.w, request->packet.dma_len, send.length);
			check_eq(s.w, answer->packet.payload_len, 0);
			check_eq(s.w, answer->packet.psn, request->packet.psn);
			check_eq(s.w, answer->packet.msn, 1);
		}
		scene_close(&s);
	}
}

static void flush__unknown_key_other_pd_and_no_such_kind(void **state)
{
	static const struct { u32 feth; bool unknown, other_pd; u8 nak; } cases[] = {
		{ GLOBAL, true, false, NAK_REMOTE_ACCESS },
		{ GLOBAL | REGION, true, false, NAK_REMOTE_ACCESS },
		{ GLOBAL, false, true, NAK_REMOTE_ACCESS },
		{ GLOBAL | REGION, false, true, NAK_REMOTE_ACCESS },
		{ 0, false, false, NAK_INVALID_REQUEST },
		{ 4, false, false, NAK_INVALID_REQUEST },
		{ 8 | GLOBAL, false, false, NAK_INVALID_REQUEST },
		{ 2 << 4 | GLOBAL, false, false, NAK_INVALID_REQUEST },
		{ 3 << 4 | GLOBAL, false, false, NAK_INVALID_REQUEST },
	};

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pair_options o = pair_defaults();
		struct raw r = raw_create(&o, "test_placement raw flush");
		struct buffer *b = world_buffer_pd(&r.w->node[1], 64, FLUSH_BOTH,
						   cases[i].other_pd ? 9 : PAIR_PD);

		world_label(r.w, "test_placement raw flush %u", i);
		raw_send(&r,
			 (struct packet){ .opcode = RC(FLUSH),
					  .psn = RAW_PSN,
					  .flush = cases[i].feth,
					  .va = buffer_va(b),
					  .dma_len = 8,
					  .rkey = cases[i].unknown ? 0x77777777 : b->mr->key },
			 NULL, 0);
		expect_ack(&r, AETH_NAK | cases[i].nak, RAW_PSN, 0);
		expect_failed(&r, cases[i].nak);
		raw_destroy(&r);
	}
}

static void atomic_write__places_eight_bytes(void **state)
{
	const u64 value = 0x1122334455667788;
	struct scene s;
	struct send send;

	scene_open(&s, PAIR_ACCESS_ALL);
	world_label(s.w, "test_placement atomic write");
	send = atomic_write(&s, 16, value);
	post_send(&s.p.side[0], &send);
	world_run(s.w);
	check_eq(s.w, s.p.side[0].send->n, 1);
	expect(s.w, s.p.side[0].send, 0, .wr_id = 2, .opcode = CQE_ATOMIC_WRITE, .byte_len = 8,
	       .qpn = s.p.side[0].qp->qpn);
	/* as it lies in memory, not turned round */
	check(s.w, memcmp(s.remote->bytes + 16, &value, 8) == 0);
	check_eq(s.w, world_count_sent(s.w, 1, OP5_READ_RESPONSE_ONLY), 1);
	check_eq(s.w, world_sent(s.w, 1, OP5_READ_RESPONSE_ONLY, 0)->packet.payload_len, 0);
	scene_close(&s);
}

static void atomic_write__only_its_bytes(void **state)
{
	struct scene s;
	struct send send;
	u8 before[4096];

	scene_open(&s, MR_LOCAL_WRITE | MR_REMOTE_WRITE);
	world_label(s.w, "test_placement atomic write bytes");
	memcpy(before, s.remote->bytes, sizeof(before));
	send = atomic_write(&s, 4088, ~0ull);
	post_send(&s.p.side[0], &send);
	world_run(s.w);
	memset(before + 4088, 0xff, 8);
	check(s.w, memcmp(s.remote->bytes, before, sizeof(before)) == 0);
	scene_close(&s);
}

static void atomic_write__refused(void **state)
{
	static const struct { u32 access, offset, dma_len, payload; u8 nak; } cases[] = {
		{ MR_LOCAL_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC, 0, 8, 8, NAK_REMOTE_ACCESS },
		{ PAIR_ACCESS_ALL, 64, 8, 8, NAK_REMOTE_ACCESS },
		{ PAIR_ACCESS_ALL, 60, 8, 8, NAK_INVALID_REQUEST },
		{ PAIR_ACCESS_ALL, 4, 8, 8, NAK_INVALID_REQUEST },
		{ PAIR_ACCESS_ALL, 1, 8, 8, NAK_INVALID_REQUEST },
		{ PAIR_ACCESS_ALL, 0, 16, 8, NAK_INVALID_REQUEST },
		{ PAIR_ACCESS_ALL, 0, 0, 8, NAK_INVALID_REQUEST },
		{ PAIR_ACCESS_ALL, 0, 8, 4, NAK_INVALID_REQUEST },
		{ PAIR_ACCESS_ALL, 0, 8, 12, NAK_INVALID_REQUEST },
		{ PAIR_ACCESS_ALL, 0, 8, 0, NAK_INVALID_REQUEST },
	};

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pair_options o = pair_defaults();
		struct raw r = raw_create(&o, "");
		struct buffer *b = world_buffer(&r.w->node[1], 64, cases[i].access);

		world_label(r.w, "test_placement raw atomic write %u", i);
		raw_send(&r,
			 (struct packet){ .opcode = RC(ATOMIC_WRITE),
					  .psn = RAW_PSN,
					  .va = buffer_va(b) + cases[i].offset,
					  .dma_len = cases[i].dma_len,
					  .rkey = b->mr->key },
			 NULL, cases[i].payload);
		expect_ack(&r, AETH_NAK | cases[i].nak, RAW_PSN, 0);
		check(r.w, bytes_are(b->bytes, 64, 1));
		expect_failed(&r, cases[i].nak);
		raw_destroy(&r);
	}
}

/* What the QP does not grant, the region cannot: ibv_modify_qp(3). An invalid request, then. */
static void placement__needs_the_qps_right(void **state)
{
	static const struct { u32 qp_access, feth; bool granted; } cases[] = {
		{ MR_REMOTE_READ | MR_REMOTE_ATOMIC | FLUSH_BOTH, 0, false }, /* ATOMIC WRITE */
		{ MR_REMOTE_WRITE, 0, true },
		{ PAIR_ACCESS_ALL, GLOBAL | RANGE, false },
		{ PAIR_ACCESS_ALL, GLOBAL | REGION, false },
		{ MR_FLUSH_GLOBAL, GLOBAL | RANGE, true },
		{ MR_FLUSH_GLOBAL, GLOBAL | REGION, true },
		{ MR_FLUSH_GLOBAL, PERSISTENT | RANGE, false },
		{ MR_FLUSH_PERSISTENT, GLOBAL | RANGE, false },
		{ MR_FLUSH_PERSISTENT, PERSISTENT | REGION, true },
		{ MR_FLUSH_PERSISTENT, GLOBAL | PERSISTENT | REGION, false },
		{ FLUSH_BOTH, GLOBAL | PERSISTENT | REGION, true },
	};

	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		const u8 opcode = cases[i].feth ? RC(FLUSH) : RC(ATOMIC_WRITE);
		struct pair_options o = pair_defaults();
		struct raw r;
		struct packet p;

		o.access = cases[i].qp_access;
		r = raw_create(&o, "test_placement qp right");
		world_label(r.w, "test_placement qp right %u", i);
		r.mem->mr->access |= FLUSH_BOTH;
		p = raw_access(&r, opcode, RAW_PSN, 0, 8);
		p.flush = cases[i].feth;
		raw_send(&r, p, NULL, cases[i].feth ? 0 : 8);
		if (cases[i].granted) {
			check(r.w, raw_answer(&r) != NULL);
		} else {
			expect_ack(&r, AETH_NAK | NAK_INVALID_REQUEST, RAW_PSN, 0);
			check(r.w, bytes_are(r.mem->bytes, r.mem->len, 1));
		}
		raw_destroy(&r);
	}
}

/*
 * Two requests of one PSN are not each other's repetition: a PSN used by a READ is not answered as
 * an ATOMIC WRITE or FLUSH, nor vice versa.
 */
static void duplicate__is_of_the_same_kind(void **state)
{
	static const u8 opcodes[] = { RC(READ_REQUEST), RC(ATOMIC_WRITE), RC(FLUSH) };
	const u64 value = 5;

	for (u32 first = 0; first < 3; first++)
		for (u32 second = 0; second < 3; second++) {
			struct pair_options o = pair_defaults();
			struct raw r = raw_create(&o, "test_placement kinds");
			struct packet p = raw_access(&r, opcodes[first], RAW_PSN, 0, 8);
			bool placed = first && second;

			r.mem->mr->access |= FLUSH_BOTH;
			p.flush = GLOBAL | RANGE;
			check_eq(r.w, raw_send(&r, p, &value, first == 1 ? 8 : 0), 0);
			check(r.w, raw_answer(&r) != NULL);
			p.opcode = opcodes[second];
			check_eq(r.w, raw_send(&r, p, &value, second == 1 ? 8 : 0),
				 placed || first == second ? 0 : XROCE_DROP_psn_duplicate);
			if (!placed && first != second)
				expect_silence(&r);
			raw_destroy(&r);
		}
}

/*
 * A repeated request is answered and not executed; an unseen request that is a duplicate by PSN is
 * dropped.
 */
static void atomic_write__a_duplicate_is_only_answered(void **state)
{
	struct pair_options o = pair_defaults();
	struct raw r = raw_create(&o, "test_placement duplicate");
	struct packet p = raw_access(&r, RC(ATOMIC_WRITE), RAW_PSN, 0, 8);
	u64 value = 5, later = 6;
	const struct packet *answer;

	raw_send(&r, p, &value, 8);
	answer = raw_answer(&r);
	check(r.w, answer && answer->opcode == RC(READ_RESPONSE_ONLY) && answer->msn == 1);
	memcpy(r.mem->bytes, &later, 8);
	raw_send(&r, p, &value, 8);
	answer = raw_answer(&r);
	check(r.w, answer && answer->opcode == RC(READ_RESPONSE_ONLY) && answer->psn == RAW_PSN &&
			   answer->payload_len == 0);
	check(r.w, memcmp(r.mem->bytes, &later, 8) == 0);
	p.psn = RAW_PSN - 1;
	check_eq(r.w, raw_send(&r, p, &value, 8), XROCE_DROP_psn_duplicate);
	expect_silence(&r);
	check(r.w, memcmp(r.mem->bytes, &later, 8) == 0);
	raw_destroy(&r);
}

/* Both take a place among max_rd_atomic, there and here. */
static void placement__counts_as_outstanding(void **state)
{
	for (u32 limit = 1; limit <= 3; limit++) {
		struct pair_options o = pair_defaults();
		struct world *w = world_create(2, 33);
		struct send list[6];
		struct scene s = { .w = w };
		u32 sent;

		world_label(w, "test_placement outstanding %u", limit);
		o.max_rd_atomic = (u8)limit;
		o.timeout = 10;
		s.p = pair_connect(w, &o);
		s.remote = world_buffer(&w->node[1], 64, PAIR_ACCESS_ALL | MR_FLUSH_GLOBAL);
		for (u32 i = 0; i < 6; i++)
			list[i] = i % 2 ? flush(&s, 0, 8, GLOBAL) : atomic_write(&s, 0, i);
		post_sends(&s.p.side[0], list, 6);
		world_settle(w);
		sent = world_count_sent(w, 0, OP5_FLUSH) + world_count_sent(w, 0, OP5_ATOMIC_WRITE);
		check_eq(w, sent, limit);
		world_run(w);
		check_eq(w, s.p.side[0].send->n, 6);
		pair_destroy(&s.p);
		world_destroy(w);
	}
}

/* ---- loss ---- */

/*
 * Each ATOMIC WRITE sets the word, each FETCH_ADD returns the old value: a request executed twice,
 * late or not at all shows.
 */
static void run_mask(struct scene *s, u32 forward, u32 backward)
{
	static const u64 values[] = { 100, 200, 300 };
	bool must = masks_within_retries(forward, backward);
	struct pair_options o = pair_defaults();
	struct side *a;
	struct send list[8];
	u64 value;
	u32 n = 0, i = 0;

	o.timeout = 10;
	o.max_rd_atomic = o.max_dest_rd_atomic = (u8)(1 + forward % 5);
	o.psn[0] = (0xfffffc + forward) & ROCE_PSN_MASK;
	s->p = pair_connect(s->w, &o);
	a = &s->p.side[0];
	memset(s->remote->bytes, 0, 16);
	memset(s->local->bytes, 0xff, 24);
	for (u32 k = 0; k < 3; k++) {
		list[n++] = atomic_write(s, 8, values[k]);
		list[n++] = (struct send){ .opcode = WR_FETCH_ADD,
					   .flags = WR_SIGNALED,
					   .num_sge = 1,
					   .sge = { buffer_sge(s->local, 8 * k, 8) },
					   .remote_addr = buffer_va(s->remote) + 8,
					   .rkey = s->remote->mr->key,
					   .compare_add = k + 1 };
		if (k < 2)
			list[n++] = flush(s, 0, 64, GLOBAL | PERSISTENT);
	}
	for (u32 k = 0; k < n; k++)
		list[k].wr_id = k;
	s->w->node[0].to[1] = (struct faults){ .drop = forward };
	s->w->node[1].to[0] = (struct faults){ .drop = backward };
	post_sends(a, list, n);
	world_run(s->w);
	check_eq(s->w, a->send->n, n);
	for (; i < n && a->send->log[i].status == CQE_SUCCESS; i++)
		expect(s->w, a->send, i, .wr_id = i, .qpn = a->qp->qpn,
		       .byte_len = list[i].opcode == WR_FLUSH ? 64 : 8,
		       .opcode = list[i].opcode == WR_FLUSH	? CQE_FLUSH :
				 list[i].opcode == WR_FETCH_ADD ? CQE_FETCH_ADD :
								  CQE_ATOMIC_WRITE);
	if (i < n) {
		check(s->w, !must && a->send->log[i].status == CQE_RETRY_EXC_ERR);
	} else {
		for (u32 k = 0; k < 3; k++) {
			memcpy(&value, s->local->bytes + 8 * k, 8);
			check_eq(s->w, value, values[k]);
		}
		memcpy(&value, s->remote->bytes + 8, 8);
		check_eq(s->w, value, values[2] + 3);
		memcpy(&value, s->remote->bytes, 8);
		check_eq(s->w, value, 0);
	}
	if (!forward && !backward) {
		check_eq(s->w, s->w->node[0].stats.tx_retransmitted, 0);
		check_eq(s->w, s->w->node[1].stats.duplicate_requests, 0);
	}
	pair_destroy(&s->p);
}

static void loss__once_under_every_mask(void **state)
{
	struct masks m = masks_of(8, 8);
	struct scene s = { .w = world_create(2, 35) };

	s.w->keep_frames = false;
	s.local = world_buffer(&s.w->node[0], 64, PAIR_ACCESS_ALL);
	s.remote = world_buffer(&s.w->node[1], 64, PAIR_ACCESS_ALL | FLUSH_BOTH);
	for (u32 forward = m.forward; forward < m.forward_end; forward++)
		for (u32 backward = m.backward; backward < m.backward_end; backward++) {
			world_label(s.w, "XROCE_SIM_MASK=%x:%x test_placement", forward, backward);
			run_mask(&s, forward, backward);
			s.w->node[0].num_events = s.w->node[1].num_events = 0;
		}
	world_destroy(s.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flush__rights_range_and_region),
		cmocka_unit_test(flush__unknown_key_other_pd_and_no_such_kind),
		cmocka_unit_test(atomic_write__places_eight_bytes),
		cmocka_unit_test(atomic_write__only_its_bytes),
		cmocka_unit_test(atomic_write__refused),
		cmocka_unit_test(placement__needs_the_qps_right),
		cmocka_unit_test(duplicate__is_of_the_same_kind),
		cmocka_unit_test(atomic_write__a_duplicate_is_only_answered),
		cmocka_unit_test(placement__counts_as_outstanding),
		cmocka_unit_test(loss__once_under_every_mask),
	};

	return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
