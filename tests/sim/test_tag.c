/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tag matching: the list and its operations, each kind of message, rendezvous, what goes wrong, and every small pattern of losses. */
#include "pair.h"
#include "runs.h"

#include <setjmp.h>
#include <cmocka.h>

#define PMTU	  256
#define MAX_TAGS  8
#define MAX_OPS	  6
#define RECEIVE	  1024	/* bytes of a receive WQE: number n lies at RECEIVES + n * RECEIVE */
#define RECEIVES  (64 * 1024)
#define BOTH	  (CQE_TM_MATCH | CQE_TM_DATA_VALID)
#define APP_CTX	  0xc0ffee00u

struct scene {
	struct world *w;
	struct watched_cq *cq;	/* of the SRQ */
	struct srq *srq;	/* of node 1 */
	struct pair p;
	struct side *a, *b;
	struct buffer *local, *remote;
};

static struct pair_options options(void)
{
	struct pair_options o = pair_defaults();

	o.pmtu = PMTU;
	o.max_inline = 0;
	return o;
}

static void scene_connect(struct scene *s, struct pair_options *o)
{
	o->srq[1] = s->srq;
	s->p = pair_connect(s->w, o);
	s->a = &s->p.side[0];
	s->b = &s->p.side[1];
	/* for FINs */
	for (u64 i = 0; i < 8; i++)
		post_recv_buffer(s->a, 900 + i, s->local, (u32)(s->local->len - 64 * (i + 1)), 64);
}

static void scene_open_with(struct scene *s, const char *name, struct pair_options *o)
{
	*s = (struct scene){ .w = world_create(2, 23) };
	world_label(s->w, "test_tag %s", name);
	s->cq = world_cq(&s->w->node[1], 256);
	s->srq = world_tag_srq(&s->w->node[1], 32, MAX_TAGS, MAX_OPS, s->cq);
	s->local = world_buffer(&s->w->node[0], 64 * 1024, PAIR_ACCESS_ALL);
	s->remote = world_buffer(&s->w->node[1], 128 * 1024, PAIR_ACCESS_ALL);
	scene_connect(s, o);
}

static void scene_open(struct scene *s, const char *name)
{
	struct pair_options o = options();

	scene_open_with(s, name, &o);
}

static void scene_close(struct scene *s)
{
	pair_destroy(&s->p);
	check_eq(s->w, s->srq->users, 0);
	world_tag_srq_destroy(s->srq);
	world_destroy(s->w);
}

static int op(struct scene *s, struct tag_op *o)
{
	int err = tag_post(s->w->node[1].engine, s->srq, o, s->w->now_ns);

	world_settle(s->w);
	return err;
}

/* The buffer of n bytes at the remote's offset, for tag; unsignaled, as of count unexpected messages. Returns its handle. */
static u32 add(struct scene *s, u64 recv_wr_id, u64 tag, u64 mask, u32 offset, u32 n, u32 count)
{
	struct sge sge = buffer_sge(s->remote, offset, n);
	struct tag_op o = { .opcode = TAG_ADD, .flags = TAG_OP_SYNC, .unexpected_cnt = count, .recv_wr_id = recv_wr_id, .tag = tag, .mask = mask,
			    .sge = &sge, .num_sge = 1 };

	check_eq(s->w, op(s, &o), 0);
	return o.handle;
}

static void sync_to(struct scene *s, u32 count)
{
	check_eq(s->w, op(s, &(struct tag_op){ .opcode = TAG_SYNC, .unexpected_cnt = count }), 0);
}

static void post_receives(struct scene *s, u64 first, u64 end)
{
	for (u64 i = first; i < end; i++) {
		struct sge sge = buffer_sge(s->remote, RECEIVES + (u32)i * RECEIVE, RECEIVE);

		post_srq_recv(s->srq, i, &sge, 1);
	}
}

/* Lay a message out at an offset of local: header and len bytes of payload. Its request. */
static struct send message(struct scene *s, u32 at, u8 opcode, u64 tag, u32 len)
{
	struct tmh h = { .opcode = opcode, .app_ctx = htobe32(APP_CTX + (u32)tag), .tag = htobe64(tag) };

	memcpy(s->local->bytes + at, &h, sizeof(h));
	buffer_fill(s->local->bytes + at + sizeof(h), len, (u32)tag);
	return (struct send){ .wr_id = at, .opcode = WR_SEND, .flags = WR_SIGNALED, .num_sge = 1,
			      .sge = { buffer_sge(s->local, at, (u32)sizeof(h) + len) } };
}

static void send_eager(struct scene *s, u64 tag, u32 len)
{
	struct send send = message(s, 0, TMH_EAGER, tag, len);

	post_send(s->a, &send);
	world_run(s->w);
}

/* A rendezvous at `at`, whose data are len bytes at `data`. */
static struct send rendezvous(struct scene *s, u32 at, u64 tag, u32 data, u32 len, u32 extra)
{
	struct send send = message(s, at, TMH_RNDV, tag, (u32)sizeof(struct rvh) + extra);
	struct rvh v = { .va = htobe64(buffer_va(s->local) + data), .rkey = htobe32(s->local->mr->key), .len = htobe32(len) };

	memcpy(s->local->bytes + at + sizeof(struct tmh), &v, sizeof(v));
	buffer_fill(s->local->bytes + data, len, (u32)tag);
	return send;
}

static void expect_match(struct scene *s, u32 n, u64 wr_id, u64 tag, u16 flags, u32 byte_len)
{
	expect(s->w, s->cq, n, .wr_id = wr_id, .opcode = CQE_TM_RECV, .byte_len = byte_len, .flags = flags, .qpn = s->b->qp->qpn,
	       .src_qpn = s->a->qp->qpn);
	check_eq(s->w, s->cq->log[n].tm_tag, flags & CQE_TM_MATCH ? tag : 0);
	check_eq(s->w, s->cq->log[n].tm_priv, flags & CQE_TM_MATCH ? (u32)(APP_CTX + tag) : 0);
}

/* Completion n is a whole message in receive WQE number receive. */
static void expect_whole(struct scene *s, u32 n, u64 receive, u16 opcode, const struct send *send)
{
	expect(s->w, s->cq, n, .wr_id = receive, .opcode = opcode, .byte_len = send->sge[0].length, .qpn = s->b->qp->qpn,
	       .src_qpn = s->a->qp->qpn);
	check_eq(s->w, s->cq->log[n].tm_tag, 0);
	check_eq(s->w, s->cq->log[n].tm_priv, 0);
	check(s->w, memcmp(s->remote->bytes + RECEIVES + receive * RECEIVE, (void *)(uintptr_t)send->sge[0].addr, send->sge[0].length) == 0);
}

/* ---- eager ---- */

static void eager__one_packet(void **state)
{
	static const u32 lengths[] = { 0, 1, 100, PMTU - 16 };
	struct scene s;

	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
		scene_open(&s, "one packet");
		s.w->split_bytes = i % 2 ? 64 : WORLD_SPLIT_BYTES; /* within the header */
		memset(s.remote->bytes, 0xee, 1024);
		add(&s, 70, 0x1234567812345678, UINT64_MAX, 64, 512, 0);
		check_eq(s.w, s.cq->n, 0);
		send_eager(&s, 0x1234567812345678, lengths[i]);
		check_eq(s.w, s.cq->n, 1);
		expect_match(&s, 0, 70, 0x1234567812345678, BOTH, lengths[i]);
		check(s.w, bytes_are(s.remote->bytes + 64, lengths[i], 0x12345678));
		check_eq(s.w, s.remote->bytes[63], 0xee);
		check_eq(s.w, s.remote->bytes[64 + lengths[i]], 0xee);
		expect(s.w, s.a->send, 0, .wr_id = 0, .opcode = CQE_SEND, .byte_len = 16 + lengths[i], .qpn = s.a->qp->qpn);
		check_eq(s.w, s.b->recv->n, 0);
		scene_close(&s);
	}
}

/* The match is told at once, the data when they are there; the length is of what the buffer got. */
static void eager__several_packets(void **state)
{
	struct scene s;
	struct send send;

	scene_open(&s, "several packets");
	add(&s, 70, 5, UINT64_MAX, 0, 700, 0);
	s.w->node[0].to[1].drop = 4; /* the last of three is late */
	send = message(&s, 0, TMH_EAGER, 5, 700);
	post_send(s.a, &send);
	world_run_for(s.w, 10 * WORLD_LATENCY_NS);
	check_eq(s.w, s.cq->n, 1);
	expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 0);
	world_run(s.w);
	check_eq(s.w, s.cq->n, 2);
	expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 700);
	check(s.w, bytes_are(s.remote->bytes, 700, 5));
	scene_close(&s);
}

static void eager__into_a_list_of_elements(void **state)
{
	struct scene s;
	struct sge sge[TAG_MAX_SGE];
	u8 got[600];

	scene_open(&s, "elements");
	for (u32 i = 0; i < TAG_MAX_SGE; i++)
		sge[i] = buffer_sge(s.remote, i * 1000, 75);
	check_eq(s.w, op(&s, &(struct tag_op){ .opcode = TAG_ADD, .recv_wr_id = 3, .tag = 9, .mask = 0xff, .sge = sge, .num_sge = TAG_MAX_SGE }), 0);
	send_eager(&s, 0x509, 600);
	expect_match(&s, 0, 3, 0x509, CQE_TM_MATCH, 0);
	expect_match(&s, 1, 3, 0x509, CQE_TM_DATA_VALID, 600);
	for (u32 i = 0; i < TAG_MAX_SGE; i++)
		memcpy(got + 75 * i, s.remote->bytes + i * 1000, 75);
	check(s.w, bytes_are(got, 600, 0x509));
	scene_close(&s);
}

/* With immediate data and the solicited bit, as any SEND. */
static void eager__carries_what_a_send_carries(void **state)
{
	struct scene s;
	struct send send;

	scene_open(&s, "immediate");
	add(&s, 70, 5, UINT64_MAX, 0, 700, 0);
	atomic_store(&s.cq->cq.armed, CQ_ARMED_SOLICITED);
	send = message(&s, 0, TMH_EAGER, 5, 300);
	send.opcode = WR_SEND_WITH_IMM;
	send.imm = htobe32(0x1234);
	send.flags |= WR_SOLICITED;
	post_send(s.a, &send);
	world_run(s.w);
	expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 0);
	expect(s.w, s.cq, 1, .wr_id = 70, .opcode = CQE_TM_RECV, .byte_len = 300, .flags = CQE_TM_DATA_VALID | CQE_WITH_IMM, .imm = htobe32(0x1234),
	       .qpn = s.b->qp->qpn);
	check_eq(s.w, world_events(&s.w->node[1], EVENT_COMPLETION, NULL), 1);
	scene_close(&s);
}

/* (TMH.tag & mask) == tag, the oldest entry first, each once. */
static void match__order_and_mask(void **state)
{
	struct scene s;

	scene_open(&s, "order");
	post_receives(&s, 0, 4);
	add(&s, 1, 0x10, 0xf0, 0, 64, 0);
	add(&s, 2, 0x11, 0xff, 64, 64, 0);
	add(&s, 3, 0, 0, 128, 64, 0);
	add(&s, 4, 0x11, 0xff, 192, 64, 0);
	add(&s, 5, 0x1f, 0x0f, 256, 64, 0); /* bits outside of its mask: matches nothing */
	send_eager(&s, 0x11, 1);
	send_eager(&s, 0x11, 2);
	send_eager(&s, 0x11, 3);
	send_eager(&s, 0x11, 4);
	send_eager(&s, 0x1f, 5);
	expect_match(&s, 0, 1, 0x11, BOTH, 1);
	expect_match(&s, 1, 2, 0x11, BOTH, 2);
	expect_match(&s, 2, 3, 0x11, BOTH, 3);
	expect_match(&s, 3, 4, 0x11, BOTH, 4);
	expect(s.w, s.cq, 4, .wr_id = 0, .opcode = CQE_TM_RECV, .byte_len = 16 + 5, .qpn = s.b->qp->qpn);
	check_eq(s.w, s.cq->n, 5);
	scene_close(&s);
}

/* ---- what has no tag ---- */

static void whole__what_is_not_matched(void **state)
{
	static const struct {
		u8 opcode;
		u32 len; /* of the whole message */
		u16 seen_as;
	} table[] = {
		{ TMH_NO_TAG, 100, CQE_TM_NO_TAG }, { TMH_NO_TAG, 700, CQE_TM_NO_TAG }, { TMH_NO_TAG, 1, CQE_TM_NO_TAG },
		{ TMH_NO_TAG, 0, CQE_TM_NO_TAG },   { TMH_FIN, 16, CQE_TM_NO_TAG },	{ TMH_FIN, 32, CQE_TM_NO_TAG },
		{ TMH_EAGER, 15, CQE_TM_NO_TAG },   { 4, 100, CQE_TM_NO_TAG },		{ 255, 100, CQE_TM_NO_TAG },
		{ TMH_RNDV, 31, CQE_TM_NO_TAG },    { TMH_RNDV, PMTU + 1, CQE_TM_NO_TAG }, { TMH_EAGER, 100, CQE_TM_RECV },
		{ TMH_EAGER, 700, CQE_TM_RECV },    { TMH_RNDV, 32, CQE_TM_RECV },	{ TMH_RNDV, PMTU, CQE_TM_RECV },
	};
	struct scene s;

	for (u32 i = 0; i < ARRAY_SIZE(table); i++) {
		struct send send;

		scene_open(&s, "whole");
		post_receives(&s, 3, 5);
		/* a tag that the opcode's column of the table matches only where it is believed to have one */
		add(&s, 70, table[i].seen_as == CQE_TM_NO_TAG ? 5 : 6, UINT64_MAX, 0, 512, 0);
		send = message(&s, 0, table[i].opcode, 5, 700);
		send.sge[0].length = table[i].len;
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.cq->n, 1);
		expect_whole(&s, 0, 3, table[i].seen_as, &send);
		/* only what has a tag counts as unexpected */
		check_eq(s.w, op(&s, &(struct tag_op){ .wr_id = 8, .opcode = TAG_SYNC, .flags = TAG_OP_SIGNALED, .unexpected_cnt = 0 }), 0);
		expect(s.w, s.cq, 1, .wr_id = 8, .opcode = CQE_TM_SYNC, .flags = table[i].seen_as == CQE_TM_NO_TAG ? 0 : CQE_TM_SYNC_REQ);
		scene_close(&s);
	}
}

/* Longer than a rendezvous request may be, though it fits a packet. */
static void whole__a_rendezvous_request_that_is_too_long(void **state)
{
	struct pair_options o = options();
	struct scene s;

	for (u32 extra = 0; extra < 2; extra++) {
		struct send send;

		o.pmtu = 1024;
		scene_open_with(&s, "too long", &o);
		post_receives(&s, 3, 5);
		add(&s, 70, 5, UINT64_MAX, 0, 512, 0);
		send = rendezvous(&s, 0, 5, 1024, 100, TAG_MAX_RENDEZVOUS_BYTES - 32 + extra);
		post_send(s.a, &send);
		world_run(s.w);
		if (extra)
			expect_whole(&s, 0, 3, CQE_TM_NO_TAG, &send);
		else
			expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 100);
		scene_close(&s);
	}
}

/* WRITE with immediate data takes a receive WQE as on any SRQ. */
static void write_imm__is_no_message_of_tags(void **state)
{
	struct scene s;

	scene_open(&s, "write");
	post_receives(&s, 2, 3);
	add(&s, 70, 0, 0, 0, 512, 0);
	post_send(s.a, &(struct send){ .wr_id = 1, .opcode = WR_WRITE_WITH_IMM, .imm = htobe32(9), .num_sge = 1, .sge = { buffer_sge(s.local, 0, 300) },
				       .remote_addr = buffer_va(s.remote), .rkey = s.remote->mr->key });
	world_run(s.w);
	expect(s.w, s.cq, 0, .wr_id = 2, .opcode = CQE_RECV_WITH_IMM, .byte_len = 300, .flags = CQE_WITH_IMM, .imm = htobe32(9), .qpn = s.b->qp->qpn);
	send_eager(&s, 77, 5);
	expect_match(&s, 1, 70, 77, BOTH, 5);
	scene_close(&s);
}

/* No receive WQE for an unexpected message: RNR, and when it comes again it is matched anew. */
static void unexpected__waits_for_a_receive(void **state)
{
	struct scene s;
	struct send send;

	scene_open(&s, "rnr");
	send = message(&s, 0, TMH_EAGER, 5, 400);
	post_send(s.a, &send);
	world_run_for(s.w, 3 * NSEC_PER_MSEC);
	check(s.w, s.w->node[1].stats.tx_rnr_naks >= 1);
	check_eq(s.w, s.cq->n, 0);
	/* nothing was taken in, so nothing was unexpected yet: a tag that is added now is good for it */
	add(&s, 70, 5, UINT64_MAX, 0, 512, 0);
	world_run(s.w);
	expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 0);
	expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 400);

	send = message(&s, 0, TMH_EAGER, 6, 400);
	post_send(s.a, &send);
	world_run_for(s.w, 3 * NSEC_PER_MSEC);
	post_receives(&s, 4, 5);
	world_run(s.w);
	expect_whole(&s, 2, 4, CQE_TM_RECV, &send);
	check_eq(s.w, s.cq->n, 3);
	scene_close(&s);
}

/* ---- being in step ---- */

static void step__new_tags_wait_after_an_unexpected_message(void **state)
{
	struct scene s;

	scene_open(&s, "step");
	post_receives(&s, 0, 8);
	add(&s, 70, 1, UINT64_MAX, 0, 64, 0);
	send_eager(&s, 2, 10); /* unexpected: 1 */
	check_eq(s.w, s.cq->n, 1);
	add(&s, 71, 3, UINT64_MAX, 64, 64, 0); /* as of 0: it waits */
	send_eager(&s, 3, 11); /* unexpected: 2 */
	expect(s.w, s.cq, 1, .wr_id = 1, .opcode = CQE_TM_RECV, .byte_len = 27, .qpn = s.b->qp->qpn);
	send_eager(&s, 1, 12); /* an entry of before is matched all the same */
	expect_match(&s, 2, 70, 1, BOTH, 12);
	sync_to(&s, 1);
	send_eager(&s, 3, 13); /* still behind: unexpected: 3 */
	expect(s.w, s.cq, 3, .wr_id = 2, .opcode = CQE_TM_RECV, .byte_len = 29, .qpn = s.b->qp->qpn);
	sync_to(&s, 3);
	send_eager(&s, 3, 14);
	expect_match(&s, 4, 71, 3, BOTH, 14);
	/* an ADD may say the count itself, for those before it as well */
	send_eager(&s, 9, 15); /* unexpected: 4 */
	add(&s, 72, 4, UINT64_MAX, 128, 64, 3);
	add(&s, 73, 5, UINT64_MAX, 192, 64, 4);
	send_eager(&s, 4, 16);
	send_eager(&s, 5, 17);
	expect_match(&s, 6, 72, 4, BOTH, 16);
	expect_match(&s, 7, 73, 5, BOTH, 17);
	scene_close(&s);
}

static void step__is_asked_for(void **state)
{
	struct tag_op sync = { .wr_id = 4, .opcode = TAG_SYNC, .flags = TAG_OP_SIGNALED, .unexpected_cnt = 1 };
	struct tag_op one = { .wr_id = 5, .opcode = TAG_ADD, .flags = TAG_OP_SIGNALED, .recv_wr_id = 70 };
	struct scene s;

	scene_open(&s, "asked for");
	post_receives(&s, 0, 8);
	check_eq(s.w, op(&s, &one), 0);
	expect(s.w, s.cq, 0, .wr_id = 5, .opcode = CQE_TM_ADD);
	one.tag = one.mask = UINT64_MAX;
	send_eager(&s, 1, 0); /* matches the first: mask 0 */
	send_eager(&s, 2, 10);
	expect(s.w, s.cq, 2, .wr_id = 0, .opcode = CQE_TM_RECV, .byte_len = 26, .qpn = s.b->qp->qpn);
	/* without TAG_OP_SYNC an ADD's count is no news */
	one.unexpected_cnt = 1;
	check_eq(s.w, op(&s, &one), 0);
	expect(s.w, s.cq, 3, .wr_id = 5, .opcode = CQE_TM_ADD, .flags = CQE_TM_SYNC_REQ);
	check_eq(s.w, op(&s, &sync), 0);
	expect(s.w, s.cq, 4, .wr_id = 4, .opcode = CQE_TM_SYNC);
	sync.unexpected_cnt = 0x10001; /* 16 bits count */
	check_eq(s.w, op(&s, &sync), 0);
	expect(s.w, s.cq, 5, .wr_id = 4, .opcode = CQE_TM_SYNC);
	sync.unexpected_cnt = 2;
	check_eq(s.w, op(&s, &sync), 0);
	expect(s.w, s.cq, 6, .wr_id = 4, .opcode = CQE_TM_SYNC, .flags = CQE_TM_SYNC_REQ);
	scene_close(&s);
}

/* Far behind, also an unexpected message's completion asks. */
static void step__is_asked_for_by_messages(void **state)
{
	struct scene s;
	u32 asked = 0;

	scene_open(&s, "far behind");
	s.w->keep_frames = false;
	for (u32 i = 0; i < 0x2002; i++) {
		post_receives(&s, 1, 2);
		send_eager(&s, 2, 0);
		check_eq(s.w, s.cq->n, 1);
		check(s.w, !asked || s.cq->log[0].flags);
		asked += s.cq->log[0].flags == CQE_TM_SYNC_REQ;
		s.cq->n = s.a->send->n = 0;
	}
	check_eq(s.w, asked, 2);
	sync_to(&s, 0x2002);
	add(&s, 70, 7, UINT64_MAX, 0, 64, 0x2002);
	send_eager(&s, 7, 3);
	expect_match(&s, 0, 70, 7, BOTH, 3);
	scene_close(&s);
}

/* Unexpected messages that the application will never see do not count: one cut off by an error, and completions that went with their QP. */
static void step__lost_messages_do_not_count(void **state)
{
	struct pair_options o = options();
	struct scene s;
	struct send send;

	scene_open(&s, "lost");
	post_receives(&s, 0, 8);
	send_eager(&s, 1, 10); /* unexpected: 1 */
	s.w->node[0].to[1].drop = 4 << s.w->node[0].to[1].count;
	send = message(&s, 0, TMH_EAGER, 2, 600); /* and the rest does not come */
	post_send(s.a, &send);
	world_run_for(s.w, 10 * WORLD_LATENCY_NS);
	add(&s, 70, 3, UINT64_MAX, 0, 64, 1);
	check_eq(s.w, side_state(s.b, QPS_ERR), 0);
	world_run(s.w);
	check_eq(s.w, s.cq->n, 2);
	expect(s.w, s.cq, 1, .wr_id = 1, .status = CQE_WR_FLUSH_ERR, .vendor_err = VERR_FLUSHED, .qpn = s.b->qp->qpn);
	pair_destroy(&s.p);

	s.cq->n = 0;
	scene_connect(&s, &o);
	send_eager(&s, 3, 11); /* in step by then */
	expect_match(&s, 0, 70, 3, BOTH, 11);
	s.cq->polled = false;
	send_eager(&s, 4, 12);
	send_eager(&s, 5, 13);
	pair_destroy(&s.p);
	world_poll(s.cq);
	check_eq(s.w, s.cq->n, 1);
	s.cq->polled = true;
	s.cq->n = 0;
	scene_connect(&s, &o);
	add(&s, 71, 6, UINT64_MAX, 0, 64, 1);
	send_eager(&s, 6, 14);
	expect_match(&s, 0, 71, 6, BOTH, 14);

	/* the same by RESET, in the middle of a message */
	s.w->node[0].to[1].drop = 4 << s.w->node[0].to[1].count;
	send = message(&s, 0, TMH_EAGER, 2, 600);
	post_send(s.a, &send);
	world_run_for(s.w, 10 * WORLD_LATENCY_NS);
	check_eq(s.w, side_state(s.b, QPS_RESET), 0);
	pair_destroy(&s.p);
	world_drop_flights(s.w);
	s.cq->n = 0;
	scene_connect(&s, &o);
	add(&s, 72, 8, UINT64_MAX, 0, 64, 1);
	send_eager(&s, 8, 15);
	expect_match(&s, 0, 72, 8, BOTH, 15);
	scene_close(&s);
}

/* ---- operations ---- */

static void ops__refused(void **state)
{
	struct sge sge[TAG_MAX_SGE + 1] = { { 0 } };
	struct scene s;

	scene_open(&s, "refused");
	check_eq(s.w, op(&s, &(struct tag_op){ .opcode = 3 }), EINVAL);
	check_eq(s.w, op(&s, &(struct tag_op){ .opcode = UINT32_MAX }), EINVAL);
	check_eq(s.w, op(&s, &(struct tag_op){ .opcode = TAG_SYNC, .flags = 4 }), EINVAL);
	check_eq(s.w, op(&s, &(struct tag_op){ .opcode = TAG_ADD, .sge = sge, .num_sge = TAG_MAX_SGE + 1 }), EINVAL);
	check_eq(s.w, op(&s, &(struct tag_op){ .opcode = TAG_DEL, .handle = MAX_TAGS }), EINVAL);
	for (u32 i = 0; i < MAX_TAGS; i++)
		add(&s, i, i, UINT64_MAX, 0, 64, 0);
	check_eq(s.w, op(&s, &(struct tag_op){ .opcode = TAG_ADD, .flags = TAG_OP_SIGNALED }), ENOMEM);
	check_eq(s.w, s.cq->n, 0);
	for (u32 i = 0; i < MAX_TAGS; i++)
		send_eager(&s, i, i);
	for (u32 i = 0; i < MAX_TAGS; i++)
		expect_match(&s, i, i, i, BOTH, i);
	for (u32 i = 0; i < MAX_TAGS; i++)
		add(&s, i, i, UINT64_MAX, 0, 64, 0);
	scene_close(&s);
	assert_int_equal(tag_list_create(0, 1, &s.srq->tags), -EINVAL);
	assert_int_equal(tag_list_create(1, 0, &s.srq->tags), -EINVAL);
	assert_int_equal(tag_list_create(TAG_MAX_TAGS + 1, 1, &s.srq->tags), -EINVAL);
	assert_int_equal(tag_list_create(1, TAG_MAX_OPS + 1, &s.srq->tags), -EINVAL);
}

static void ops__delete(void **state)
{
	struct tag_op del = { .wr_id = 6, .opcode = TAG_DEL, .flags = TAG_OP_SIGNALED };
	u32 handle[4];
	struct scene s;

	scene_open(&s, "delete");
	post_receives(&s, 0, 8);
	for (u32 i = 0; i < 4; i++)
		handle[i] = add(&s, 70 + i, 5, UINT64_MAX, 64 * i, 64, 0);
	send_eager(&s, 5, 1);
	expect_match(&s, 0, 70, 5, BOTH, 1);
	del.handle = handle[0]; /* "may fail due to concurrent tag consumption" */
	check_eq(s.w, op(&s, &del), 0);
	expect(s.w, s.cq, 1, .wr_id = 6, .status = CQE_TM_ERR, .vendor_err = VERR_TAG_CONSUMED);
	check_eq(s.w, s.cq->log[1].opcode, CQE_TM_DEL);
	add(&s, 80, 5, UINT64_MAX, 512, 64, 0); /* in the same slot: the old handle must not name it */
	check_eq(s.w, op(&s, &del), 0);
	check_eq(s.w, s.cq->log[2].status, CQE_TM_ERR);
	del.handle = handle[2]; /* from the middle */
	check_eq(s.w, op(&s, &del), 0);
	expect(s.w, s.cq, 3, .wr_id = 6, .opcode = CQE_TM_DEL);
	check_eq(s.w, op(&s, &del), 0);
	check_eq(s.w, s.cq->log[4].status, CQE_TM_ERR);
	del.flags = 0; /* nothing is said of it */
	check_eq(s.w, op(&s, &del), 0);
	del.handle = handle[1]; /* the head */
	check_eq(s.w, op(&s, &del), 0);
	check_eq(s.w, s.cq->n, 5);
	send_eager(&s, 5, 2);
	send_eager(&s, 5, 3);
	send_eager(&s, 5, 4);
	expect_match(&s, 5, 73, 5, BOTH, 2);
	expect_match(&s, 6, 80, 5, BOTH, 3);
	expect(s.w, s.cq, 7, .wr_id = 0, .opcode = CQE_TM_RECV, .byte_len = 20, .qpn = s.b->qp->qpn);
	scene_close(&s);
}

/* A signaled operation is outstanding until it is polled. */
static void ops__outstanding(void **state)
{
	struct tag_op sync = { .opcode = TAG_SYNC, .flags = TAG_OP_SIGNALED };
	struct scene s;

	scene_open(&s, "outstanding");
	s.cq->polled = false;
	for (u32 round = 0; round < 3; round++) {
		for (u32 i = 0; i < MAX_OPS; i++)
			check_eq(s.w, op(&s, &sync), 0);
		check_eq(s.w, op(&s, &sync), ENOMEM);
		sync.flags = 0;
		check_eq(s.w, op(&s, &sync), 0);
		sync.flags = TAG_OP_SIGNALED;
		cq_peek(&s.cq->cq);
		cq_pop(&s.cq->cq);
		check_eq(s.w, op(&s, &sync), 0);
		check_eq(s.w, op(&s, &sync), ENOMEM);
		world_poll(s.cq);
	}
	check_eq(s.w, s.cq->n, 3 * MAX_OPS);
	scene_close(&s);
}

/* ---- rendezvous ---- */

static void expect_fin(struct scene *s, u32 n, u64 tag, u32 data, u32 len)
{
	const struct tmh h = { .opcode = TMH_FIN, .app_ctx = htobe32(APP_CTX + (u32)tag), .tag = htobe64(tag) };
	const struct rvh v = { .va = htobe64(buffer_va(s->local) + data), .rkey = htobe32(s->local->mr->key), .len = htobe32(len) };
	const u8 *got = s->local->bytes + s->local->len - 64 * (n + 1);

	expect(s->w, s->a->recv, n, .wr_id = 900 + n, .opcode = CQE_RECV, .byte_len = 32, .qpn = s->a->qp->qpn, .src_qpn = s->b->qp->qpn);
	check(s->w, memcmp(got, &h, sizeof(h)) == 0);
	check(s->w, memcmp(got + sizeof(h), &v, sizeof(v)) == 0);
}

static void rendezvous__is_fetched_and_answered(void **state)
{
	static const u32 lengths[] = { 0, 1, PMTU, 40 * PMTU + 3 };
	struct scene s;

	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct send send;

		scene_open(&s, "rendezvous");
		add(&s, 70, 5, UINT64_MAX, 100, 41 * PMTU, 0);
		send = rendezvous(&s, 0, 5, 1024, lengths[i], i * 70);
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.cq->n, 2);
		expect_match(&s, 0, 70, 5, CQE_TM_MATCH, lengths[i]);
		expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, lengths[i]);
		check(s.w, bytes_are(s.remote->bytes + 100, lengths[i], 5));
		check_eq(s.w, s.a->recv->n, 1);
		expect_fin(&s, 0, 5, 1024, lengths[i]);
		check_eq(s.w, s.b->send->n, 0); /* what the engine sends is not the application's */
		scene_close(&s);
	}
}

/* Several at once, with requests of the application's between: each completes, all in order, and the application's queue is as long as it asked for. */
static void rendezvous__beside_the_applications_requests(void **state)
{
	struct pair_options o = options();
	struct send list[4];
	struct scene s;

	o.max_send_wr = 4;
	o.max_rd_atomic = o.max_dest_rd_atomic = 2;
	o.max_inline = 48;
	scene_open_with(&s, "beside", &o);
	for (u32 i = 0; i < 4; i++) {
		add(&s, 70 + i, i, UINT64_MAX, i * 4096, 4096, 0);
		list[i] = rendezvous(&s, i * 64, i, 1024 + i * 4096, 3000 + i, 0);
	}
	post_sends(s.a, list, 4);
	for (u32 i = 0; i < 4; i++)
		post_send(s.b, &(struct send){ .wr_id = i, .opcode = i % 2 ? WR_READ : WR_WRITE, .flags = WR_SIGNALED, .num_sge = 1,
					       .sge = { buffer_sge(s.remote, RECEIVES + i * 1024, 1000) },
					       .remote_addr = buffer_va(s.local) + 20000, .rkey = s.local->mr->key });
	check_eq(s.w, try_post_send(s.b, &(struct send){ .opcode = WR_WRITE }), (u64)-1);
	check_eq(s.w, try_post_send(s.b, &(struct send){ .opcode = WR_WRITE, .flags = WR_RENDEZVOUS }), (u64)-1);
	world_run(s.w);
	check_eq(s.w, s.b->send->n, 4);
	for (u32 i = 0; i < 4; i++) {
		expect(s.w, s.b->send, i, .wr_id = i, .opcode = i % 2 ? CQE_READ : CQE_WRITE, .byte_len = 1000, .qpn = s.b->qp->qpn);
		check(s.w, bytes_are(s.remote->bytes + i * 4096, 3000 + i, i));
		expect_fin(&s, i, i, 1024 + i * 4096, 3000 + i);
	}
	check_eq(s.w, s.cq->n, 8);
	check_eq(s.w, try_post_send(s.b, &(struct send){ .opcode = WR_WRITE, .flags = WR_RENDEZVOUS }), EINVAL);
	scene_close(&s);
}

/* ibv_create_qp(3) with no send WRs at all: the send queue is the engine's alone. */
static void rendezvous__without_sends_of_its_own(void **state)
{
	struct pair_options o = options();
	struct scene s;
	struct send send;

	o.max_send_wr = 8;
	scene_open_with(&s, "without", &o);
	pair_destroy(&s.p);
	o.max_send_wr = 0;
	s.p.side[1] = side_create(&s.w->node[1], &o, s.srq);
	o.max_send_wr = 8;
	s.p.side[0] = side_create(&s.w->node[0], &o, NULL);
	for (u32 i = 0; i < 2; i++) {
		side_init(&s.p.side[i], &o);
		side_rtr(&s.p.side[i], &o, !i, s.p.side[!i].qp->qpn, o.psn[!i]);
		side_rts(&s.p.side[i], &o, o.psn[i]);
	}
	post_recv_buffer(s.a, 900, s.local, s.local->len - 64, 64);
	check_eq(s.w, try_post_send(s.b, &(struct send){ .opcode = WR_WRITE }), (u64)-1);
	add(&s, 70, 5, UINT64_MAX, 100, 1000, 0);
	send = rendezvous(&s, 0, 5, 1024, 1000, 0);
	post_send(s.a, &send);
	world_run(s.w);
	expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 1000);
	expect_fin(&s, 0, 5, 1024, 1000);
	scene_close(&s);
}

/* More than the engine has slots for: the others are told to come again, and lose nothing. */
static void rendezvous__many(void **state)
{
	struct pair_options o = options();
	struct scene s;
	u32 done = 0;

	o.max_send_wr = 128;
	o.max_recv_wr = 256;
	o.min_rnr_timer = 1;
	scene_open_with(&s, "many", &o);
	s.w->node[1].to[0].dead = true; /* no READ gets through for a while */
	for (u32 i = 0; i < 128; i++) /* the application's own queue is full */
		post_send(s.b, &(struct send){ .opcode = WR_WRITE });
	tag_list_free(s.srq->tags);
	assert_int_equal(tag_list_create(100, 1, &s.srq->tags), 0);
	for (u32 i = 0; i < 100; i++) {
		struct send send = rendezvous(&s, i * 32, i, 4096, 100, 0);

		add(&s, i, i, UINT64_MAX, i * 128, 128, 0);
		post_send(s.a, &send);
		post_recv_buffer(s.a, i, s.local, 60000, 64);
	}
	world_run_for(s.w, 200 * NSEC_PER_USEC);
	check_eq(s.w, s.cq->n, 64);
	check(s.w, s.w->node[1].stats.tx_rnr_naks >= 1);
	s.w->node[1].to[0].dead = false;
	world_run(s.w);
	for (u32 i = 0; i < s.cq->n; i++)
		done += s.cq->log[i].flags == CQE_TM_DATA_VALID;
	check_eq(s.w, done, 100);
	check_eq(s.w, s.a->recv->n, 100);
	scene_close(&s);
}

/* What the engine cannot fetch is left to the application, with the headers in the tag's buffer. The QP goes on. */
static void rendezvous__left_to_the_application(void **state)
{
	static const struct {
		u32 room, len;
		u8 max_rd_atomic;
	} table[] = { { 999, 1000, 4 }, { 0, 1, 4 }, { 20, 100, 4 }, { 1000, 1000, 0 }, { 512, UINT32_MAX, 4 } };

	for (u32 i = 0; i < ARRAY_SIZE(table); i++) {
		u32 got = min_u32(32, table[i].room);
		struct pair_options o = options();
		struct scene s;
		struct send send;
		struct rvh v;

		o.max_rd_atomic = table[i].max_rd_atomic;
		scene_open_with(&s, "left", &o);
		memset(s.remote->bytes, 0xee, 2048);
		add(&s, 70, 5, UINT64_MAX, 0, table[i].room, 0);
		send = rendezvous(&s, 0, 5, 1024, min_u32(table[i].len, 1000), 40);
		v = (struct rvh){ .va = htobe64(1), .rkey = htobe32(2), .len = htobe32(table[i].len) };
		memcpy(s.local->bytes + 16, &v, sizeof(v));
		post_send(s.a, &send);
		world_run(s.w);
		check_eq(s.w, s.cq->n, 1);
		expect(s.w, s.cq, 0, .wr_id = 70, .status = CQE_TM_RNDV_INCOMPLETE, .vendor_err = VERR_RENDEZVOUS, .qpn = s.b->qp->qpn);
		check_eq(s.w, s.cq->log[0].opcode, CQE_TM_RECV);
		check_eq(s.w, s.cq->log[0].flags, BOTH);
		check_eq(s.w, s.cq->log[0].byte_len, got);
		check_eq(s.w, s.cq->log[0].tm_tag, 5);
		check(s.w, memcmp(s.remote->bytes, s.local->bytes, got) == 0);
		check_eq(s.w, s.remote->bytes[got], 0xee);
		check_eq(s.w, qp_state(s.b->qp), QPS_RTS);
		check_eq(s.w, s.a->recv->n, 0);
		add(&s, 71, 6, UINT64_MAX, 0, 64, 0);
		send_eager(&s, 6, 9);
		expect_match(&s, 1, 71, 6, BOTH, 9);
		scene_close(&s);
	}
}

static void rendezvous__before_rts_waits(void **state)
{
	struct pair_options o = options();
	struct scene s;
	struct send send;

	scene_open_with(&s, "before rts", &o);
	pair_destroy(&s.p);
	for (u32 i = 0; i < 2; i++) {
		s.p.side[i] = side_create(&s.w->node[i], &o, i ? s.srq : NULL);
		side_init(&s.p.side[i], &o);
	}
	for (u32 i = 0; i < 2; i++)
		side_rtr(&s.p.side[i], &o, !i, s.p.side[!i].qp->qpn, o.psn[!i]);
	side_rts(s.a, &o, o.psn[0]);
	post_recv_buffer(s.a, 900, s.local, s.local->len - 64, 64);
	add(&s, 70, 5, UINT64_MAX, 100, 1000, 0);
	send = rendezvous(&s, 0, 5, 1024, 1000, 0);
	post_send(s.a, &send);
	world_run_for(s.w, 3 * NSEC_PER_MSEC);
	check_eq(s.w, s.cq->n, 0);
	side_rts(s.b, &o, o.psn[1]);
	world_run(s.w);
	check_eq(s.w, s.cq->n, 2);
	expect_fin(&s, 0, 5, 1024, 1000);
	scene_close(&s);
}

/* ---- errors ---- */

/* A tag's buffer that is too short, or whose key fails: as with any receive. */
static void error__buffer(void **state)
{
	for (u32 i = 0; i < 6; i++) {
		bool key = i % 2, matched = i < 4, first = i < 2;
		struct scene s;
		struct sge sge;
		struct tag_op o = { .opcode = TAG_ADD, .recv_wr_id = 70, .sge = &sge, .num_sge = 1 };

		scene_open(&s, "buffer");
		sge = buffer_sge(s.remote, 0, key ? 2000 : first ? 9 : 300);
		sge.lkey += key;
		if (matched)
			check_eq(s.w, op(&s, &o), 0);
		else
			post_srq_recv(s.srq, 70, &sge, 1);
		send_eager(&s, 5, first ? 10 : 400);
		/* matched by a first packet that fits, and then too long */
		if (s.cq->n == 2)
			expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 0);
		check_eq(s.w, s.cq->n, matched && !first && !key ? 2 : 1);
		expect(s.w, s.cq, s.cq->n - 1, .wr_id = 70, .status = key ? CQE_LOC_PROT_ERR : CQE_LOC_LEN_ERR, .qpn = s.b->qp->qpn);
		check_eq(s.w, s.cq->log[s.cq->n - 1].opcode, matched ? CQE_TM_RECV : CQE_RECV);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		check_eq(s.w, s.a->send->log[0].status, key ? CQE_REM_OP_ERR : CQE_REM_INV_REQ_ERR);
		/* nobody saw an unexpected message */
		check_eq(s.w, op(&s, &(struct tag_op){ .opcode = TAG_SYNC, .flags = TAG_OP_SIGNALED }), 0);
		check_eq(s.w, s.cq->log[s.cq->n - 1].flags, 0);
		scene_close(&s);
	}
}

/* The rendezvous fails: its buffer comes back with the status of the READ. */
static void error__rendezvous(void **state)
{
	for (u32 i = 0; i < 3; i++) {
		struct scene s;
		struct send send;
		struct sge sge;
		struct tag_op o = { .opcode = TAG_ADD, .recv_wr_id = 70, .sge = &sge, .num_sge = 1 };
		struct rvh *v;

		scene_open(&s, "rendezvous error");
		sge = buffer_sge(s.remote, 0, 2000);
		sge.lkey += i == 1;
		check_eq(s.w, op(&s, &o), 0);
		send = rendezvous(&s, 0, 5, 1024, 1000, 0);
		v = (struct rvh *)(s.local->bytes + 16);
		if (i == 0)
			v->rkey++;
		if (i == 2) /* the receiver goes to ERR while it fetches */
			s.w->node[1].to[0].dead = true;
		post_send(s.a, &send);
		if (i == 2) {
			world_run_for(s.w, 10 * WORLD_LATENCY_NS);
			check_eq(s.w, side_state(s.b, QPS_ERR), 0);
		}
		world_run(s.w);
		check_eq(s.w, s.cq->n, 2);
		expect_match(&s, 0, 70, 5, CQE_TM_MATCH, 1000);
		expect(s.w, s.cq, 1, .wr_id = 70, .qpn = s.b->qp->qpn,
		       .status = i == 0 ? CQE_REM_ACCESS_ERR : i == 1 ? CQE_LOC_PROT_ERR : CQE_WR_FLUSH_ERR);
		check_eq(s.w, s.cq->log[1].opcode, CQE_TM_RECV);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		check_eq(s.w, s.b->send->n, 0);
		scene_close(&s);
	}
}

/* The FIN cannot be delivered: no work request tells the application, so an event does. */
static void error__fin(void **state)
{
	struct pair_options o = options();
	struct scene s;
	struct send send;

	o.rnr_retry = 1;
	scene_open_with(&s, "fin", &o);
	pair_destroy(&s.p);
	s.p = pair_connect(s.w, &o); /* and no receive for it */
	add(&s, 70, 5, UINT64_MAX, 0, 2000, 0);
	send = rendezvous(&s, 0, 5, 1024, 1000, 0);
	post_send(s.a, &send);
	world_run(s.w);
	expect_match(&s, 1, 70, 5, CQE_TM_DATA_VALID, 1000);
	check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
	check_eq(s.w, world_events(&s.w->node[1], EVENT_QP_FATAL, s.b->qp), 1);
	check_eq(s.w, s.cq->n, 2);
	scene_close(&s);
}

/* In ERR what the application posts is flushed, in order, through its own queue. */
static void error__posts_are_flushed(void **state)
{
	struct pair_options o = options();
	struct scene s;

	o.max_send_wr = 3;
	scene_open_with(&s, "flushed", &o);
	check_eq(s.w, side_state(s.b, QPS_ERR), 0);
	for (u32 i = 0; i < 10; i++) {
		post_send(s.b, &(struct send){ .wr_id = i, .opcode = WR_WRITE });
		world_settle(s.w);
		check_eq(s.w, s.b->send->n, i + 1);
		expect(s.w, s.b->send, i, .wr_id = i, .status = CQE_WR_FLUSH_ERR, .qpn = s.b->qp->qpn);
	}
	check_eq(s.w, world_events(&s.w->node[1], EVENT_QP_LAST_WQE, s.b->qp), 1);
	scene_close(&s);
}

/* The SRQ's CQ runs over, by operations or by messages: the SRQ has failed, and its QPs with it. */
static void error__cq_overrun(void **state)
{
	struct tag_op sync = { .opcode = TAG_SYNC, .flags = TAG_OP_SIGNALED };

	for (u32 by_messages = 0; by_messages < 2; by_messages++) {
		struct node *n;
		struct scene s;

		scene_open(&s, "overrun");
		n = &s.w->node[1];
		s.cq->polled = false;
		s.cq->cq.capacity = 2;
		post_receives(&s, 0, 3);
		for (u32 i = 0; i < 3; i++) {
			check_eq(s.w, world_events(n, EVENT_SRQ_ERR, NULL), 0);
			if (by_messages)
				send_eager(&s, i, 10);
			else
				check_eq(s.w, op(&s, &sync), 0);
		}
		check_eq(s.w, world_events(n, EVENT_SRQ_ERR, NULL), 1);
		check_eq(s.w, n->events[n->num_events - 1].srq == s.srq, 1);
		check_eq(s.w, world_events(n, EVENT_CQ_ERR, NULL), 1);
		check_eq(s.w, world_events(n, EVENT_QP_FATAL, s.b->qp), 1);
		check_eq(s.w, qp_state(s.b->qp), QPS_ERR);
		scene_close(&s);
	}
}

/* The same where no QP is on it: operations are all there is. */
static void error__cq_overrun_without_a_qp(void **state)
{
	struct tag_op sync = { .opcode = TAG_SYNC, .flags = TAG_OP_SIGNALED };
	struct world *w = world_create(1, 23);
	struct watched_cq *cq = world_cq(&w->node[0], 2);
	struct srq *srq = world_tag_srq(&w->node[0], 1, MAX_TAGS, MAX_OPS, cq);

	world_label(w, "test_tag overrun without a QP");
	cq->polled = false;
	for (u32 i = 0; i < 4; i++) {
		check_eq(w, tag_post(w->node[0].engine, srq, &sync, w->now_ns), 0);
		world_settle(w);
		check_eq(w, world_events(&w->node[0], EVENT_SRQ_ERR, NULL), i >= 2);
	}
	check_eq(w, w->node[0].num_events, 2);
	check_eq(w, world_events(&w->node[0], EVENT_CQ_ERR, NULL), 1);
	world_tag_srq_destroy(srq);
	world_destroy(w);
}

/* Only RC. */
static void transports__rc_only(void **state)
{
	static const enum xroce_transport others[] = { XROCE_UC, XROCE_UD };
	struct scene s;

	scene_open(&s, "rc only");
	for (u32 i = 0; i < ARRAY_SIZE(others); i++) {
		struct qp_init init = { .transport = others[i], .send_cq = &s.cq->cq, .recv_cq = &s.cq->cq, .srq = s.srq, .pd = PAIR_PD };
		struct qp *qp;

		check_eq(s.w, (u64)qp_create(s.w->node[1].engine, &init, &qp), (u64)-EINVAL);
	}
	scene_close(&s);
}

/* ---- loss ---- */

/* An eager message of two packets that matches, one that does not, and a rendezvous of two READ responses. */
static void run_mask(struct scene *s, u32 forward, u32 backward)
{
	struct pair_options o = options();
	struct send list[3];
	u32 seen = 0;

	o.psn[0] = (0xfffffe + forward) & ROCE_PSN_MASK;
	o.timeout = 8;
	s->cq->n = 0;
	scene_connect(s, &o);
	memset(s->remote->bytes, 0, 2048);
	post_receives(s, 0, 1);
	list[0] = message(s, 0, TMH_EAGER, 1, 300);
	list[1] = message(s, 1024, TMH_EAGER, 2, 300);
	list[2] = rendezvous(s, 2048, 3, 4096, PMTU + 7, 0);
	add(s, 71, 1, UINT64_MAX, 0, 512, 0);
	add(s, 73, 3, UINT64_MAX, 512, 512, 0);
	/* a second buffer for each: a message that is taken in twice would find it */
	add(s, 81, 1, UINT64_MAX, 1024, 512, 0);
	add(s, 83, 3, UINT64_MAX, 1536, 512, 0);
	s->w->node[0].to[1] = (struct faults){ .drop = forward };
	s->w->node[1].to[0] = (struct faults){ .drop = backward };
	post_sends(s->a, list, 3);
	world_run(s->w);
	check_eq(s->w, s->a->send->n, 3);
	check_eq(s->w, s->a->send->log[2].status, CQE_SUCCESS);
	check_eq(s->w, s->cq->n, 5);
	for (u32 i = 0; i < 5; i++) {
		const struct cqe *e = &s->cq->log[i];

		check_eq(s->w, e->status, CQE_SUCCESS);
		seen |= (e->wr_id == 71 ? 1u : e->wr_id == 73 ? 4u : e->wr_id == 0 ? 16u : 0) << (e->flags == CQE_TM_DATA_VALID);
	}
	check_eq(s->w, seen, 1 | 2 | 4 | 8 | 16);
	check(s->w, bytes_are(s->remote->bytes, 300, 1));
	check(s->w, bytes_are(s->remote->bytes + 512, PMTU + 7, 3));
	check(s->w, memcmp(s->remote->bytes + RECEIVES, s->local->bytes + 1024, 316) == 0);
	check_eq(s->w, s->a->recv->n, 1);
	expect_fin(s, 0, 3, 4096, PMTU + 7);
	pair_destroy(&s->p);
}

static void loss__every_mask(void **state)
{
	struct masks m = masks_of(7, 6);

	for (u32 forward = m.forward; forward < m.forward_end; forward++) {
		struct scene s;

		scene_open(&s, "loss");
		s.w->keep_frames = false;
		pair_destroy(&s.p);
		for (u32 backward = m.backward; backward < m.backward_end; backward++) {
			if (!m.one && !masks_within_retries(forward, backward))
				continue;
			world_label(s.w, "XROCE_SIM_MASK=%x:%x test_tag", forward, backward);
			tag_list_free(s.srq->tags);
			assert_int_equal(tag_list_create(MAX_TAGS, MAX_OPS, &s.srq->tags), 0);
			run_mask(&s, forward, backward);
		}
		world_tag_srq_destroy(s.srq);
		world_destroy(s.w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eager__one_packet),
		cmocka_unit_test(eager__several_packets),
		cmocka_unit_test(eager__into_a_list_of_elements),
		cmocka_unit_test(eager__carries_what_a_send_carries),
		cmocka_unit_test(match__order_and_mask),
		cmocka_unit_test(whole__what_is_not_matched),
		cmocka_unit_test(whole__a_rendezvous_request_that_is_too_long),
		cmocka_unit_test(write_imm__is_no_message_of_tags),
		cmocka_unit_test(unexpected__waits_for_a_receive),
		cmocka_unit_test(step__new_tags_wait_after_an_unexpected_message),
		cmocka_unit_test(step__is_asked_for),
		cmocka_unit_test(step__is_asked_for_by_messages),
		cmocka_unit_test(step__lost_messages_do_not_count),
		cmocka_unit_test(ops__refused),
		cmocka_unit_test(ops__delete),
		cmocka_unit_test(ops__outstanding),
		cmocka_unit_test(rendezvous__is_fetched_and_answered),
		cmocka_unit_test(rendezvous__beside_the_applications_requests),
		cmocka_unit_test(rendezvous__without_sends_of_its_own),
		cmocka_unit_test(rendezvous__many),
		cmocka_unit_test(rendezvous__left_to_the_application),
		cmocka_unit_test(rendezvous__before_rts_waits),
		cmocka_unit_test(error__buffer),
		cmocka_unit_test(error__rendezvous),
		cmocka_unit_test(error__fin),
		cmocka_unit_test(error__posts_are_flushed),
		cmocka_unit_test(error__cq_overrun),
		cmocka_unit_test(error__cq_overrun_without_a_qp),
		cmocka_unit_test(transports__rc_only),
		cmocka_unit_test(loss__every_mask),
	};

	return cmocka_run_group_tests_name("tag", tests, NULL, NULL);
}
