/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_SEEDS=30 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/* tier: long san_long XROCE_SIM_ENGINES=3 */
/*
 * Random tag matching over bad links, with an application that does its half: it matches the
 * messages that the engine did not, deletes their buffers from the engine's list, and reports its
 * count.
 *
 * The oracle: messages of one sender come in order, buffers are posted in order, each side takes
 * the oldest of the other that fits. In any order of posts and arrivals only one result is
 * possible: each message in turn gets the oldest buffer that fits. A message that is
 * matched twice, out of turn or by an out-of-step buffer gives another result.
 */
#include <stdlib.h>

#include "pair.h"
#include "runs.h"

#include <setjmp.h>
#include <cmocka.h>

#define SENDERS	 3
#define MESSAGES 40  /* of each sender */
#define BUFFERS	 40  /* for each sender */
#define ALL	 (SENDERS * BUFFERS)
#define BYTES	 2048 /* of each */
#define SEEDS	 400
#define NOBODY	 UINT32_MAX
#define SENDER_SHIFT 32 /* a tag's upper half says whose it is */

struct message {
	bool has_tag, is_rendezvous;
	u32 len;
	u64 tag;
};

struct buffer_state {
	u64 tag, mask;
	u32 handle;
	u32 message;	/* the message's number at its sender, or NOBODY */
	bool by_engine, done;
};

struct sender {
	struct pair p;
	struct buffer *mem;	/* each message and its data; then room for FINs */
	struct message message[MESSAGES];
	struct buffer_state buffer[BUFFERS];
	u32 sent, posted;
	u32 unexpected[MESSAGES], num_unexpected; /* that wait for a buffer, oldest first */
	u32 fins, fins_wanted;
};

struct run {
	struct world *w;
	struct rng r;
	struct watched_cq *cq;
	struct srq *srq;
	struct buffer *sink;	/* buffers by wr_id, then receive WQEs */
	struct sender s[SENDERS];
	u32 handled;		/* unexpected messages */
	u32 seen;		/* completions of cq */
	bool ask;		/* SYNC_REQ was seen */
	u32 busy;		/* receive WQEs that are posted or not yet looked at: a bit each */
};

static u32 seen_eager, seen_fetched, seen_unexpected, seen_asked, seen_left;

static u32 receive_offset(u32 n)
{
	return (ALL + n) * BYTES;
}

static void post_receive(struct run *x)
{
	u32 n = (u32)__builtin_ctz(~x->busy);
	struct sge sge = buffer_sge(x->sink, receive_offset(n), BYTES);

	if (n >= 31 || !rq_slot(&x->srq->rq, 0))
		return;
	x->busy |= 1u << n;
	post_srq_recv(x->srq, 1000 + n, &sge, 1);
}

static bool fits(const struct buffer_state *b, u64 tag)
{
	return (tag & b->mask) == b->tag;
}

/* The bytes that a message's buffer is to hold. */
static u32 seed_of(u32 sender, u32 message)
{
	return sender * 1000 + message;
}

static void send_one(struct run *x, u32 sender)
{
	struct sender *s = &x->s[sender];
	u32 n = s->sent, at = n * 2 * BYTES, data = at + BYTES, head = sizeof(struct tmh);
	struct message *m = &s->message[n];
	struct tmh h = { .app_ctx = htobe32(n) };
	struct rvh v;

	if (n == MESSAGES || !sq_slot(&s->p.side[0].qp->sq, 0))
		return;
	m->has_tag = rng_below(&x->r, 8) != 0;
	m->is_rendezvous = m->has_tag && rng_below(&x->r, 3) == 0;
	m->len = rng_below(&x->r, 2) ? rng_below(&x->r, 200) : rng_below(&x->r, BYTES - 64);
	m->tag = (u64)sender << SENDER_SHIFT | rng_below(&x->r, 6);
	h.opcode = !m->has_tag ? TMH_NO_TAG : m->is_rendezvous ? TMH_RNDV : TMH_EAGER;
	h.tag = htobe64(m->tag);
	memcpy(s->mem->bytes + at, &h, sizeof(h));
	if (m->is_rendezvous) {
		v = (struct rvh){ .va = htobe64(buffer_va(s->mem) + data),
				  .rkey = htobe32(s->mem->mr->key),
				  .len = htobe32(m->len) };
		memcpy(s->mem->bytes + at + head, &v, sizeof(v));
		buffer_fill(s->mem->bytes + data, m->len, seed_of(sender, n));
		head += sizeof(v);
	} else {
		buffer_fill(s->mem->bytes + at + head, m->len, seed_of(sender, n));
		head += m->len;
	}
	post_recv_buffer(&s->p.side[0], n, s->mem, MESSAGES * 2 * BYTES, 64);
	post_send(&s->p.side[0], &(struct send){ .wr_id = n,
						 .opcode = WR_SEND,
						 .flags = WR_SIGNALED,
						 .num_sge = 1,
						 .sge = { buffer_sge(s->mem, at, head) } });
	s->sent++;
}

static void check_data(struct run *x, u32 sender, u32 b)
{
	struct buffer_state *state = &x->s[sender].buffer[b];

	check(x->w,
	      bytes_are(x->sink->bytes + (sender * BUFFERS + b) * BYTES,
			x->s[sender].message[state->message].len, seed_of(sender, state->message)));
}

/*
 * Gets a buffer filled: from an unexpected message, or through the engine's list.
 */
static void post_buffer(struct run *x, u32 sender)
{
	struct sender *s = &x->s[sender];
	u32 n = s->posted;
	struct buffer_state *b = &s->buffer[n];
	struct sge sge = buffer_sge(x->sink, (sender * BUFFERS + n) * BYTES, BYTES);
	struct tag_op add = {
		.opcode = TAG_ADD, .recv_wr_id = sender * BUFFERS + n, .sge = &sge, .num_sge = 1
	};

	if (n == BUFFERS)
		return;
	s->posted++;
	*b = (struct buffer_state){ .tag = (u64)sender << SENDER_SHIFT,
				    .mask = UINT64_MAX << SENDER_SHIFT,
				    .message = NOBODY };
	if (rng_below(&x->r, 4)) {
		b->tag |= rng_below(&x->r, 6);
		b->mask = UINT64_MAX;
	}
	for (u32 i = 0; i < s->num_unexpected; i++) {
		if (!fits(b, s->message[s->unexpected[i]].tag))
			continue;
		b->message = s->unexpected[i];
		b->done = true;
		memmove(&s->unexpected[i], &s->unexpected[i + 1],
			(--s->num_unexpected - i) * sizeof(s->unexpected[0]));
		return;
	}
	add.tag = b->tag;
	add.mask = b->mask;
	if (rng_below(&x->r, 2)) {
		add.flags = TAG_OP_SYNC;
		add.unexpected_cnt = x->handled;
	}
	check_eq(x->w, tag_post(x->w->node[0].engine, x->srq, &add, x->w->now_ns), 0);
	b->handle = add.handle;
}

static void sync_up(struct run *x)
{
	struct tag_op sync = { .wr_id = 5000,
			       .opcode = TAG_SYNC,
			       .flags = TAG_OP_SIGNALED,
			       .unexpected_cnt = x->handled };

	check_eq(x->w, tag_post(x->w->node[0].engine, x->srq, &sync, x->w->now_ns), 0);
	x->ask = false;
}

/* The engine left a message to the application. */
static void handle_unexpected(struct run *x, u32 sender, u32 message)
{
	struct sender *s = &x->s[sender];
	u64 tag = s->message[message].tag;

	seen_unexpected++;
	x->handled++;
	x->ask = true;
	for (u32 i = 0; i < s->posted; i++) {
		struct tag_op del = { .wr_id = 5001,
				      .opcode = TAG_DEL,
				      .flags = TAG_OP_SIGNALED,
				      .handle = s->buffer[i].handle };
		const struct cqe *e;

		if (s->buffer[i].message != NOBODY || !fits(&s->buffer[i], tag))
			continue;
		/*
		 * it was not in step when the message came, and is not yet: the engine still has it
		 */
		check_eq(x->w, tag_post(x->w->node[0].engine, x->srq, &del, x->w->now_ns), 0);
		world_poll(x->cq);
		e = &x->cq->log[x->cq->n - 1];
		check_eq(x->w, e->opcode, CQE_TM_DEL);
		check_eq(x->w, e->status, CQE_SUCCESS);
		s->buffer[i].message = message;
		s->buffer[i].done = true;
		return;
	}
	s->unexpected[s->num_unexpected++] = message;
}

static u32 sender_of(struct run *x, u32 qpn)
{
	for (u32 i = 0; i < SENDERS; i++)
		if (x->s[i].p.side[1].qp->qpn == qpn)
			return i;
	check(x->w, false);
	return 0;
}

static void handle_match(struct run *x, const struct cqe *e)
{
	u32 sender = sender_of(x, e->qpn), n = (u32)e->wr_id % BUFFERS;
	struct buffer_state *b = &x->s[sender].buffer[n];
	const struct message *m;

	check_eq(x->w, e->wr_id / BUFFERS, sender);
	if (e->flags & CQE_TM_MATCH) {
		check_eq(x->w, b->message, NOBODY);
		b->message = e->tm_priv;
		b->by_engine = true;
		m = &x->s[sender].message[b->message];
		check_eq(x->w, e->tm_tag, m->tag);
		x->s[sender].fins_wanted += m->is_rendezvous;
		seen_eager += !m->is_rendezvous;
		seen_fetched += m->is_rendezvous;
	}
	check(x->w, b->by_engine && !b->done);
	if (e->flags & CQE_TM_DATA_VALID) {
		b->done = true;
		check_eq(x->w, e->byte_len, x->s[sender].message[b->message].len);
		check_data(x, sender, n);
	}
}

static void take_completions(struct run *x, u32 most)
{
	for (; most-- && x->seen < x->cq->n; x->seen++) {
		struct cqe e = x->cq->log[x->seen];
		struct tmh h;

		check(x->w, e.status == CQE_SUCCESS);
		if (e.flags & CQE_TM_SYNC_REQ) {
			seen_asked++;
			x->ask = true;
		}
		if (e.opcode != CQE_TM_RECV && e.opcode != CQE_TM_NO_TAG)
			continue; /* operations */
		if (e.flags & (CQE_TM_MATCH | CQE_TM_DATA_VALID)) {
			handle_match(x, &e);
			continue;
		}
		memcpy(&h, x->sink->bytes + receive_offset((u32)e.wr_id - 1000), sizeof(h));
		check_eq(x->w, h.opcode == TMH_NO_TAG, e.opcode == CQE_TM_NO_TAG);
		if (e.opcode == CQE_TM_RECV)
			handle_unexpected(x, sender_of(x, e.qpn), be32toh(h.app_ctx));
		else
			seen_left++;
		x->busy &= ~(1u << (e.wr_id - 1000));
		post_receive(x);
	}
}

/* Give each message in turn the oldest buffer that fits and is free. */
static void judge(struct run *x)
{
	for (u32 k = 0; k < SENDERS; k++) {
		struct sender *s = &x->s[k];
		u32 want[BUFFERS];

		memset(want, 0xff, sizeof(want));
		for (u32 m = 0; m < MESSAGES; m++)
			for (u32 b = 0; b < BUFFERS && s->message[m].has_tag; b++)
				if (want[b] == NOBODY && fits(&s->buffer[b], s->message[m].tag)) {
					want[b] = m;
					break;
				}
		for (u32 b = 0; b < BUFFERS; b++) {
			check_eq(x->w, s->buffer[b].message, want[b]);
			check_eq(x->w, s->buffer[b].done, want[b] != NOBODY);
		}
		check_eq(x->w, s->p.side[0].send->n, MESSAGES);
		for (u32 m = 0; m < MESSAGES; m++)
			check_eq(x->w, s->p.side[0].send->log[m].status, CQE_SUCCESS);
		check_eq(x->w, s->p.side[0].recv->n, s->fins_wanted);
	}
}

static struct faults random_faults(struct rng *r)
{
	struct faults f = { .hold_packets = 1 + rng_below(r, 4) };

	if (rng_below(r, 4)) {
		f.drop_rate = rng_below(r, 2500);
		f.duplicate_rate = rng_below(r, 1500);
		f.corrupt_rate = rng_below(r, 800);
		f.hold_rate = rng_below(r, 2500);
	}
	return f;
}

static void run_seed(u64 seed)
{
	struct run *x = calloc(1, sizeof(*x));
	struct pair_options o = pair_defaults();
	u32 left, rounds = 0;

	assert_non_null(x);
	x->r.state = seed * 6151 + 3;
	x->w = world_create(1 + SENDERS, seed);
	world_label(x->w, "XROCE_SIM_SEED=%llu test_tag_random", (unsigned long long)seed);
	x->w->keep_frames = false;
	x->w->rx_batch = 1 + rng_below(&x->r, 8);
	x->w->split_bytes = rng_below(&x->r, 2) ? WORLD_SPLIT_BYTES : 100 + rng_below(&x->r, 200);
	x->cq = world_cq(&x->w->node[0], 4096);
	x->srq = world_tag_srq(&x->w->node[0], 16, ALL, 64, x->cq);
	x->sink = world_buffer(&x->w->node[0], (ALL + 32) * BYTES, PAIR_ACCESS_ALL);
	o.pmtu = 256u << rng_below(&x->r, 3);
	o.timeout = 9;
	o.min_rnr_timer = 2;
	o.max_send_wr = 1 + rng_below(&x->r, 8);
	o.max_recv_wr = MESSAGES;
	o.max_rd_atomic = (u8)(1 + rng_below(&x->r, 4));
	for (u32 i = 0; i < SENDERS; i++) {
		struct sender *s = &x->s[i];

		s->mem = world_buffer(&x->w->node[1 + i], (MESSAGES * 2 + 1) * BYTES,
				      PAIR_ACCESS_ALL);
		for (u32 k = 0; k < 2; k++)
			s->p.side[k] =
				side_create(&x->w->node[k ? 0 : 1 + i], &o, k ? x->srq : NULL);
		for (u32 k = 0; k < 2; k++) {
			side_init(&s->p.side[k], &o);
			side_rtr(&s->p.side[k], &o, k ? 1 + i : 0, s->p.side[!k].qp->qpn,
				 o.psn[!k]);
			side_rts(&s->p.side[k], &o, o.psn[k]);
		}
		x->w->node[0].to[1 + i] = random_faults(&x->r);
		x->w->node[1 + i].to[0] = random_faults(&x->r);
	}
	for (u32 i = rng_below(&x->r, 16); i--;)
		post_receive(x);
	do {
		check(x->w, rounds++ < 100000);
		left = 0;
		for (u32 i = 0; i < SENDERS; i++) {
			for (u32 n = rng_below(&x->r, 4); n--;)
				send_one(x, i);
			for (u32 n = rng_below(&x->r, 4); n--;)
				post_buffer(x, i);
			left += x->s[i].sent < MESSAGES || x->s[i].posted < BUFFERS;
		}
		for (u32 n = rng_below(&x->r, 3); n--;)
			post_receive(x);
		world_run_for(x->w, rng_below(&x->r, 20 * WORLD_LATENCY_NS));
		take_completions(x, rng_below(&x->r, 12));
		if (x->ask && rng_below(&x->r, 3) == 0)
			sync_up(x);
		for (u32 i = 0; i < SENDERS; i++)
			left += x->s[i].p.side[0].send->n < x->s[i].sent;
	} while (left);
	world_run(x->w);
	take_completions(x, UINT32_MAX);
	judge(x);
	for (u32 i = 0; i < SENDERS; i++)
		pair_destroy(&x->s[i].p);
	world_tag_srq_destroy(x->srq);
	world_destroy(x->w);
	free(x);
}

static void random_messages__go_where_they_belong(void **state)
{
	if (run_seeds(SEEDS, run_seed))
		assert_true(seen_eager && seen_fetched && seen_unexpected && seen_asked &&
			    seen_left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_messages__go_where_they_belong),
	};

	return cmocka_run_group_tests_name("tag random", tests, NULL, NULL);
}
