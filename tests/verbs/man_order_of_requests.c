/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The order of requests of one queue pair: what a thread of the responder and a later request
 * observe, the effect of a fence, and the rest of a list after a request in its middle fails.
 * ibv_post_send(3), ibv_create_qp(3), ibv_req_notify_cq(3); the IBTA's table of the order of work
 * requests and its annex A19 for FLUSH and ATOMIC WRITE.
 */
#include <sys/mman.h>

#include "wr.h"

#define LONG	20000u /* bytes of a message of many packets */
#define ROUNDS	60
#define WORD_AT (REMOTE_AT + LONG + 96) /* of end 1; a multiple of 8 */

#define ON_RC(name, body)                                                                          \
	static bool name(void)                                                                     \
	{                                                                                          \
		return on_service(IBV_QPT_RC, body);                                               \
	}

/* Adds a request with these local bytes to the open list. */
static void add(struct wr_ends *e, enum wr_code op, uint32_t remote, uint64_t operand,
		uint32_t local, uint32_t length, unsigned int flags)
{
	struct wr_args a = wr_args_of(e, op);

	a.remote = (uintptr_t)e->buf[1] + remote;
	a.swap_or_add = operand;
	a.word = &operand;
	a.length = length;
	e->ex->wr_flags = flags;
	wr_build(e, op, &a);
	wr_address(e);
	if (wr_ops[op].data != DATA_NONE)
		ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0] + local, length);
}

/* ---- what a thread of the responder observes ---- */

enum signal { BY_ATOMIC_WRITE, BY_ADD, BY_SWAP, BY_WRITE, BY_LAST_BYTE, SIGNALS };

struct watch {
	struct wr_ends *e;
	enum signal signal;
	atomic_int asked, seen; /* rounds */
	atomic_bool stop;
};

static bool has_come(struct watch *w, int round)
{
	const char *word = w->e->buf[1] + WORD_AT;

	if (w->signal == BY_LAST_BYTE)
		return __atomic_load_n(w->e->buf[1] + REMOTE_AT + LONG - 1, __ATOMIC_ACQUIRE) ==
		       (char)round;
	return __atomic_load_n((const uint64_t *)(const void *)word, __ATOMIC_ACQUIRE) ==
	       (uint64_t)round;
}

/* Sees the word, and then all bytes that were written before the word. */
static void *watcher(void *arg)
{
	struct watch *w = arg;

	for (int round = 1; round <= ROUNDS; round++) {
		while (!has_come(w, round))
			if (atomic_load(&w->stop))
				return w;
		for (uint32_t i = 0; i < LONG; i++)
			if (w->e->buf[1][REMOTE_AT + i] != (char)round) {
				printf("# signal %d, round %d: byte %u is older\n", w->signal,
				       round, i);
				return w;
			}
		atomic_store(&w->seen, round);
	}
	return NULL;
}

static bool signalled(struct wr_ends *e, struct watch *w, int round)
{
	struct ibv_wc wc;
	/* two FLUSHes, one of each level, or none */
	const bool flushed = round % 3;

	memset(e->buf[0], round, LONG);
	ibv_wr_start(e->ex);
	e->ex->wr_id = (uint64_t)round;
	add(e, OP_WRITE, REMOTE_AT, 0, 0, LONG, w->signal == BY_LAST_BYTE ? IBV_SEND_SIGNALED : 0);
	if (flushed && w->signal != BY_LAST_BYTE) {
		struct wr_args a = wr_args_of(e, OP_FLUSH);

		a.length = LONG;
		a.level = round % 3 == 1 ? FLUSH_LEVEL_RANGE : FLUSH_LEVEL_MR;
		e->ex->wr_flags = 0;
		wr_build(e, OP_FLUSH, &a);
		wr_address(e);
	}
	switch (w->signal) {
	case BY_ATOMIC_WRITE:
		add(e, OP_ATOMIC_WRITE, WORD_AT, (uint64_t)round, 0, 8, IBV_SEND_SIGNALED);
		break;
	case BY_ADD:
		add(e, OP_FETCH_ADD, WORD_AT, 1, LONG + 8, 8, IBV_SEND_SIGNALED);
		break;
	case BY_SWAP: {
		struct wr_args a = wr_args_of(e, OP_CMP_SWP);

		a.remote = (uintptr_t)e->buf[1] + WORD_AT;
		a.compare = (uint64_t)round - 1;
		a.swap_or_add = (uint64_t)round;
		e->ex->wr_flags = IBV_SEND_SIGNALED;
		wr_build(e, OP_CMP_SWP, &a);
		wr_address(e);
		ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)e->buf[0] + LONG + 8, 8);
		break;
	}
	case BY_WRITE:
		*(uint64_t *)(void *)(e->buf[0] + LONG + 16) = (uint64_t)round;
		add(e, OP_WRITE, WORD_AT, 0, LONG + 16, 8, IBV_SEND_SIGNALED);
		break;
	default:
		break;
	}
	MUST_EQ(ibv_wr_complete(e->ex), 0);
	MUST(wait_wc(e->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, round);
	return counted_to(&w->seen, round) >= round;
}

static bool signals_body(struct wr_ends *e)
{
	for (enum signal s = 0; s < SIGNALS; s++) {
		struct watch w = { .e = e, .signal = s };
		pthread_t thread;
		void *failed;
		bool good = true;

		memset(e->buf[1], 0, BUF_BYTES);
		MUST_EQ(pthread_create(&thread, NULL, watcher, &w), 0);
		for (int round = 1; round <= ROUNDS && good; round++)
			good = signalled(e, &w, round);
		atomic_store(&w.stop, true);
		MUST_EQ(pthread_join(thread, &failed), 0);
		if (!good || failed)
			printf("# signal %d\n", s);
		MUST(good && !failed);
	}
	return true;
}

/* A later WRITE, atomic or ATOMIC WRITE is not visible before all bytes of an earlier WRITE. */
ON_RELIABLE(a_later_word_is_seen_later, signals_body)

/* A receive's completion guarantees that the WRITEs and words before the SEND are in memory. */
static bool received_body(struct wr_ends *e)
{
	static const enum wr_code sends[] = { OP_SEND, OP_SEND_IMM, OP_WRITE_IMM };
	struct ibv_wc wc;

	for (int round = 1; round <= 3 * ROUNDS; round++) {
		const enum wr_code op = sends[round % 3];
		uint64_t words[2];

		memset(e->buf[0], round, LONG);
		memset(e->buf[1], 0, BUF_BYTES);
		MUST_EQ(wr_recv(e, 5, 64), 0);
		ibv_wr_start(e->ex);
		e->ex->wr_id = 4;
		add(e, OP_WRITE, REMOTE_AT, 0, 0, LONG, 0);
		add(e, OP_ATOMIC_WRITE, WORD_AT, (uint64_t)round, 0, 8, 0);
		add(e, OP_FETCH_ADD, WORD_AT + 8, (uint64_t)round, LONG + 8, 8, 0);
		add(e, op, WORD_AT + 64, 0, 0, 8, IBV_SEND_SIGNALED);
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST(wait_wc(e->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST(!memcmp(e->buf[1] + REMOTE_AT, e->buf[0], LONG));
		memcpy(words, e->buf[1] + WORD_AT, 16);
		MUST(words[0] == (uint64_t)round && words[1] == (uint64_t)round);
		MUST_EQ(e->buf[1][op == OP_WRITE_IMM ? WORD_AT + 64 : 0], (char)round);
		MUST(wr_completed(e->cq[0], 4, wr_ops[op].completion, &wc));
	}
	return true;
}

ON_RELIABLE(a_receive_comes_after_what_was_written, received_body)

/* ---- what a later request observes ---- */

/*
 * Changes and reads one word by all operations in one list. Only a request that changes the word
 * after a READ is fenced.
 */
static bool chain_body(struct wr_ends *e)
{
	uint64_t *const local = (uint64_t *)(void *)e->buf[0];

	for (uint64_t round = 0; round < ROUNDS; round++) {
		const uint64_t a = round * 1000 + 1, b = round * 1000 + 500;
		struct wr_args swap = wr_args_of(e, OP_CMP_SWP);
		struct ibv_wc wc;

		memset(e->buf[0], 0xff, 128);
		local[0] = a;
		swap.remote = (uintptr_t)e->buf[1] + WORD_AT;
		swap.compare = b;
		swap.swap_or_add = b + 7;
		ibv_wr_start(e->ex);
		e->ex->wr_id = round;
		add(e, OP_WRITE, WORD_AT, 0, 0, 8, 0);
		add(e, OP_FETCH_ADD, WORD_AT, 1, 8, 8, 0); /* a */
		add(e, OP_READ, WORD_AT, 0, 16, 8, 0);	   /* a + 1 */
		add(e, OP_ATOMIC_WRITE, WORD_AT, b, 0, 8, IBV_SEND_FENCE);
		e->ex->wr_flags = 0;
		wr_build(e, OP_CMP_SWP, &swap); /* b */
		wr_address(e);
		ibv_wr_set_sge(e->ex, e->mr[0]->lkey, (uintptr_t)&local[3], 8);
		add(e, OP_READ, WORD_AT, 0, 32, 8, 0);			 /* b + 7 */
		add(e, OP_FETCH_ADD, WORD_AT, 1, 40, 8, IBV_SEND_FENCE); /* b + 7 */
		add(e, OP_READ, WORD_AT, 0, 48, 8, IBV_SEND_SIGNALED);	 /* b + 8 */
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST(wr_completed(e->cq[0], round, IBV_WC_RDMA_READ, &wc));
		MUST_EQ(local[1], a);
		MUST_EQ(local[2], a + 1);
		MUST_EQ(local[3], b);
		MUST_EQ(local[4], b + 7);
		MUST_EQ(local[5], b + 7);
		MUST_EQ(local[6], b + 8);
	}
	return true;
}

ON_RELIABLE(a_later_request_finds_what_was_done, chain_body)

/* A READ returns all bytes of the WRITE before it, and no byte of a fenced WRITE after it. */
static bool reads_body(struct wr_ends *e)
{
	struct ibv_wc wc;

	for (int round = 1; round <= ROUNDS; round++) {
		const uint32_t length = 1 + (uint32_t)round * 331 % LONG;

		memset(e->buf[0], round, LONG);
		memset(e->buf[0] + LONG, 0xff, 2 * LONG);
		memset(e->buf[1] + REMOTE_AT, round - 1, LONG);
		ibv_wr_start(e->ex);
		e->ex->wr_id = (uint64_t)round;
		add(e, OP_READ, REMOTE_AT, 0, LONG, length, 0);
		add(e, OP_WRITE, REMOTE_AT, 0, 0, length, IBV_SEND_FENCE);
		add(e, OP_READ, REMOTE_AT, 0, 2 * LONG, length, IBV_SEND_SIGNALED);
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST(wr_completed(e->cq[0], (uint64_t)round, IBV_WC_RDMA_READ, &wc));
		for (uint32_t i = 0; i < length; i++) {
			MUST_EQ(e->buf[0][LONG + i], (char)(round - 1));
			MUST_EQ(e->buf[0][2 * LONG + i], (char)round);
		}
		MUST_EQ(e->buf[0][LONG + length], (char)0xff);
	}
	return true;
}

ON_RELIABLE(reads_on_both_sides_of_a_write, reads_body)

/* ---- fences ---- */

/* A fenced request of each kind sends the data that an earlier READ or atomic returned. */
static bool forwarded(struct wr_ends *e, enum wr_code first, enum wr_code second, int round)
{
	const uint32_t length = second == OP_ATOMIC_WRITE || first != OP_READ ? 8 : LONG;
	const uint32_t to = REMOTE_AT + 2 * LONG; /* of the second request */
	struct ibv_sge sge = { (uintptr_t)e->buf[0] + 64, length, e->mr[0]->lkey };
	struct ibv_send_wr b = { .wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE },
			   a = { .wr_id = 1, .next = &b, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_recv_wr recv = { .wr_id = 3, .num_sge = 1 }, *bad_recv;
	struct ibv_sge room = { (uintptr_t)e->buf[1] + to, LONG, e->mr[1]->lkey };
	static const enum ibv_wr_opcode codes[OPS] = {
		[OP_READ] = IBV_WR_RDMA_READ,
		[OP_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[OP_CMP_SWP] = IBV_WR_ATOMIC_CMP_AND_SWP,
		[OP_WRITE] = IBV_WR_RDMA_WRITE,
		[OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[OP_SEND] = IBV_WR_SEND,
		[OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[OP_ATOMIC_WRITE] = IBV_WR_ATOMIC_WRITE,
	};
	struct ibv_wc wc;

	memset(e->buf[0], 0xff, LONG + 64);
	memset(e->buf[1] + REMOTE_AT, round, LONG);
	memset(e->buf[1] + to, 0xee, LONG);
	a.opcode = codes[first];
	b.opcode = codes[second];
	if (first == OP_READ) {
		a.wr.rdma.remote_addr = (uintptr_t)e->buf[1] + REMOTE_AT;
		a.wr.rdma.rkey = e->mr[1]->rkey;
	} else {
		a.wr.atomic.remote_addr = (uintptr_t)e->buf[1] + REMOTE_AT;
		a.wr.atomic.rkey = e->mr[1]->rkey;
	}
	b.wr.rdma.remote_addr = (uintptr_t)e->buf[1] + to;
	b.wr.rdma.rkey = e->mr[1]->rkey;
	recv.sg_list = &room;
	if (wr_ops[second].receives)
		MUST_EQ(ibv_post_recv(e->qp[1], &recv, &bad_recv), 0);
	MUST_EQ(ibv_post_send(e->qp[0], &a, &bad), 0);
	MUST(wr_completed(e->cq[0], 2, wr_ops[second].completion, &wc));
	for (uint32_t i = 0; i < length; i++)
		MUST_EQ(e->buf[1][to + i], (char)round);
	if (length < LONG)
		MUST_EQ(e->buf[1][to + length], (char)0xee);
	if (wr_ops[second].receives) {
		MUST(wait_wc(e->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.byte_len, length);
	}
	return true;
}

static bool fences_body(struct wr_ends *e)
{
	static const enum wr_code first[] = { OP_READ, OP_FETCH_ADD, OP_CMP_SWP },
				  second[] = { OP_SEND, OP_SEND_IMM, OP_WRITE, OP_WRITE_IMM,
					       OP_ATOMIC_WRITE };

	for (int i = 0; i < 8 * 15; i++)
		if (!forwarded(e, first[i % 3], second[i / 3 % 5], 1 + i % 100)) {
			printf("# %s, %s\n", wr_ops[first[i % 3]].name,
			       wr_ops[second[i / 3 % 5]].name);
			return false;
		}
	return true;
}

ON_RC(a_fenced_request_sends_what_was_read, fences_body)

/* ---- the word of an ATOMIC WRITE ---- */

/* docs/memory.md: `vendor_err` is 2 for a bad key, 17 for a good key of bad memory. */
static bool bad_word_body(struct wr_ends *e)
{
	char *page = mmap(FAR_BELOW(0), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, page, 4096, 0);

	MUST(page != MAP_FAILED && mr);
	for (int i = 0; i < 3; i++) {
		struct ibv_sge sge = { (uintptr_t)page, 8, i == 1 ? mr->lkey ^ 0x7700 : mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_ATOMIC_WRITE,
					  .send_flags = IBV_SEND_SIGNALED },
				   *bad;
		struct ibv_wc wc;

		if (i == 2)
			MUST_EQ(mprotect(page, 4096, PROT_NONE), 0);
		wr.wr.rdma.remote_addr = (uintptr_t)e->buf[1] + WORD_AT;
		wr.wr.rdma.rkey = e->mr[1]->rkey;
		MUST_EQ(ibv_post_send(e->qp[0], &wr, &bad), 0);
		MUST(wait_wc(e->cq[0], &wc));
		MUST_EQ(wc.status, i ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
		if (i)
			MUST_EQ(wc.vendor_err, i == 1 ? 2 : 17);
		MUST(!i || wr_again(e));
	}
	MUST_EQ(ibv_dereg_mr(mr), 0);
	munmap(page, 4096);
	return true;
}

ON_RC(a_word_of_bad_memory_says_why, bad_word_body)

/* ---- lists with a failing request ---- */

enum mistake {
	REMOTE_KEY,
	LOCAL_KEY,
	READ_KEY,
	READ_LOCAL_KEY,
	SHORT_ATOMIC,
	UNALIGNED_ATOMIC,
	NO_WINDOW,
	MISTAKES
};

/* Returns the status with which the request must fail. */
static int make_mistake(struct ibv_send_wr *wr, enum mistake m)
{
	const uint64_t remote = wr->wr.rdma.remote_addr;
	const uint32_t rkey = wr->wr.rdma.rkey;

	switch (m) {
	case REMOTE_KEY:
		wr->wr.rdma.rkey ^= 0x7700;
		return IBV_WC_REM_ACCESS_ERR;
	case LOCAL_KEY:
		wr->sg_list->lkey ^= 0x7700;
		return IBV_WC_LOC_PROT_ERR;
	case READ_KEY:
		wr->opcode = IBV_WR_RDMA_READ;
		wr->wr.rdma.rkey ^= 0x7700;
		return IBV_WC_REM_ACCESS_ERR;
	case READ_LOCAL_KEY:
		wr->opcode = IBV_WR_RDMA_READ;
		wr->sg_list->lkey ^= 0x7700;
		return IBV_WC_LOC_PROT_ERR;
	case NO_WINDOW:
		wr->opcode = IBV_WR_LOCAL_INV;
		wr->num_sge = 0;
		wr->invalidate_rkey = rkey;
		return IBV_WC_LOC_QP_OP_ERR;
	default:
		wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr->wr.atomic.remote_addr = remote + (m == UNALIGNED_ATOMIC ? 4 : 0);
		wr->wr.atomic.rkey = rkey;
		if (m == SHORT_ATOMIC)
			wr->sg_list->length = 7;
		return m == SHORT_ATOMIC ? IBV_WC_LOC_LEN_ERR : IBV_WC_REM_INV_REQ_ERR;
	}
}

/* WRITEs of one word each, every other one signaled, and one of them invalid. */
static bool fails_at(struct pair *p, int at, enum mistake m)
{
	struct ibv_send_wr wr[QUEUE], *bad;
	struct ibv_sge sge[QUEUE];
	struct ibv_wc wc;
	uint64_t word;
	int status = 0;

	memset(p->buf[1], 0, 8 * QUEUE);
	for (int i = 0; i < QUEUE; i++) {
		word = 0x0101010101010101 * (uint64_t)(i + 1);
		memcpy(p->buf[0] + 8 * i, &word, 8);
		sge[i] = sge_of(p, 0, 8 * (uint32_t)i, 8);
		wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i,
					      .next = i + 1 < QUEUE ? &wr[i + 1] : NULL,
					      .sg_list = &sge[i],
					      .num_sge = 1,
					      .opcode = IBV_WR_RDMA_WRITE,
					      .send_flags = i % 2 ? IBV_SEND_SIGNALED : 0 };
		wr[i].wr.rdma.remote_addr = (uintptr_t)p->buf[1] + 8 * (uint32_t)i;
		wr[i].wr.rdma.rkey = p->mr[1]->rkey;
	}
	wr[at].send_flags = 0;
	status = make_mistake(&wr[at], m);
	MUST_EQ(ibv_post_send(p->qp[0], wr, &bad), 0);
	for (int i = 0; i < QUEUE; i++) {
		if (i < at && !(i % 2))
			continue;
		MUST(wait_wc(p->cq[0], &wc));
		MUST_EQ(wc.wr_id, i);
		MUST_EQ(wc.status, i < at  ? IBV_WC_SUCCESS :
				   i == at ? status :
					     IBV_WC_WR_FLUSH_ERR);
		MUST_EQ(wc.qp_num, p->qp[0]->qp_num);
	}
	MUST(cq_is_empty(p->cq[0]) && cq_is_empty(p->cq[1]));
	for (int i = 0; i < QUEUE; i++) {
		memcpy(&word, p->buf[1] + 8 * i, 8);
		/* the READ got an answer, after which later requests may be on the wire */
		if (i > at && m == READ_LOCAL_KEY)
			continue;
		MUST_EQ(word, i < at ? 0x0101010101010101 * (uint64_t)(i + 1) : 0);
	}
	MUST_EQ(qp_state_now(p->qp[0]), IBV_QPS_ERR);
	if (status == IBV_WC_REM_ACCESS_ERR)
		MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
	if (status == IBV_WC_REM_INV_REQ_ERR)
		MUST(take_async(IBV_EVENT_QP_REQ_ERR, p->qp[1]));
	for (int i = 0; i < 2; i++)
		MUST(!qp_to_state(p->qp[i], IBV_QPS_RESET) && !qp_to_init(p->qp[i]));
	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_to_rts(p->qp[i], p->qp[!i]->qp_num, 7), 0);
	return true;
}

static bool middle_body(struct pair *p)
{
	for (enum mistake m = 0; m < MISTAKES; m++)
		for (int at = 0; at < QUEUE; at++)
			if (!fails_at(p, at, m)) {
				printf("# mistake %d at %d\n", m, at);
				return false;
			}
	return true;
}

/* Requests before the mistake succeed, the mistake completes unsignaled, later ones are flushed. */
ON_PAIR(a_mistake_completes_in_the_middle, middle_body)

/* "It stops processing WRs from this list at the first failure": earlier ones are executed. */
static bool refused_body(struct pair *p)
{
	static char much[65536];
	struct ibv_sge big = { (uintptr_t)much, sizeof(much), 0 };

	for (int round = 0; round < 5 * 6; round++) {
		const int at = round % 5, kind = round / 5;
		struct ibv_send_wr wr[6], *bad = NULL;
		struct ibv_sge sge[6];
		struct ibv_wc wc;
		int err = EINVAL;

		for (int i = 0; i < 6; i++) {
			sge[i] = sge_of(p, 0, (uint32_t)i, 1);
			p->buf[0][i] = (char)(round + i + 1);
			wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i,
						      .next = i < 5 ? &wr[i + 1] : NULL,
						      .sg_list = &sge[i],
						      .num_sge = 1,
						      .opcode = IBV_WR_SEND };
			MUST(i >= at || !post_recv(p, (uint64_t)i, 100 + (uint32_t)i, 1));
		}
		switch (kind) {
		case 0:
			wr[at].opcode = (enum ibv_wr_opcode)99;
			break;
		case 1:
			wr[at].send_flags = 1u << 20;
			break;
		case 2:
			wr[at].num_sge = 1000;
			break;
		case 3:
			wr[at].num_sge = -1;
			break;
		case 4:
			wr[at].num_sge = -1;
			wr[at].send_flags = IBV_SEND_INLINE;
			break;
		default:
			wr[at].sg_list = &big;
			wr[at].send_flags = IBV_SEND_INLINE;
			err = ENOMEM;
		}
		if (ibv_post_send(p->qp[0], wr, &bad) != err || bad != &wr[at]) {
			printf("# kind %d, at %d\n", kind, at);
			return false;
		}
		/* unsignaled, and without any further call */
		for (int i = 0; i < at; i++) {
			MUST(wait_wc(p->cq[1], &wc));
			MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)i);
			MUST_EQ(p->buf[1][100 + i], p->buf[0][i]);
		}
		/* the next request completes, and frees the queue entries of the others */
		MUST_EQ(post_recv(p, 7, 0, 8), 0);
		MUST_EQ(post_send(p, 8, 0, 1, IBV_SEND_SIGNALED), 0);
		MUST(wait_wc(p->cq[0], &wc));
		MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == 8);
		MUST(wait_wc(p->cq[1], &wc) && wc.wr_id == 7);
		MUST(cq_is_empty(p->cq[0]) && cq_is_empty(p->cq[1]));
	}
	return true;
}

ON_PAIR(a_refused_request_holds_back_none_before_it, refused_body)

/* ---- sq_sig_all ---- */

/* All requests of a QP with sq_sig_all complete, whatever their flags, also window binds. */
static bool all_signaled(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { 16, 16, 2, 2, 16 },
					 .sq_sig_all = 1 };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	static uint64_t memory[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
					       IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw[2] = { ibv_alloc_mw(pd, IBV_MW_TYPE_1), ibv_alloc_mw(pd, IBV_MW_TYPE_2) };
	struct ibv_mw_bind_info info = { mr, (uintptr_t)memory, 64, IBV_ACCESS_REMOTE_WRITE };
	struct ibv_mw_bind bind = { .wr_id = 100, .bind_info = info };
	static const struct {
		enum ibv_wr_opcode op;
		enum ibv_wc_opcode completion;
		unsigned int flags;
	} t[] = {
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0 },
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_SEND_INLINE },
		{ IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0 },
		{ IBV_WR_SEND, IBV_WC_SEND, IBV_SEND_FENCE },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 0 },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, IBV_SEND_FENCE },
		{ IBV_WR_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE, 0 },
		{ IBV_WR_BIND_MW, IBV_WC_BIND_MW, 0 },
		{ IBV_WR_LOCAL_INV, IBV_WC_LOCAL_INV, IBV_SEND_FENCE },
	};
	const int n = sizeof(t) / sizeof(t[0]);
	struct ibv_send_wr wr[sizeof(t) / sizeof(t[0])], *bad;
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 50, .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_wc wc;

	MUST(pd && cq && qp && mr && mw[0] && mw[1]);
	MUST(!qp_to_init(qp) && !qp_to_rts(qp, qp->qp_num, 7));
	MUST_EQ(ibv_post_recv(qp, &recv, &bad_recv), 0);
	for (int i = 0; i < n; i++) {
		wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i,
					      .next = i + 1 < n ? &wr[i + 1] : NULL,
					      .sg_list = &sge,
					      .num_sge = 1,
					      .opcode = t[i].op,
					      .send_flags = t[i].flags };
		wr[i].wr.rdma.remote_addr = (uintptr_t)&memory[8];
		wr[i].wr.rdma.rkey = mr->rkey;
		if (t[i].op == IBV_WR_ATOMIC_FETCH_AND_ADD ||
		    t[i].op == IBV_WR_ATOMIC_CMP_AND_SWP) {
			wr[i].wr.atomic.remote_addr = (uintptr_t)&memory[8];
			wr[i].wr.atomic.rkey = mr->rkey;
		}
	}
	wr[n - 2].num_sge = wr[n - 1].num_sge = 0;
	wr[n - 2].bind_mw.mw = mw[1];
	wr[n - 2].bind_mw.rkey = ibv_inc_rkey(mw[1]->rkey);
	wr[n - 2].bind_mw.bind_info = info;
	wr[n - 1].invalidate_rkey = ibv_inc_rkey(mw[1]->rkey);
	MUST_EQ(ibv_post_send(qp, wr, &bad), 0);
	MUST_EQ(ibv_bind_mw(qp, mw[0], &bind), 0);
	for (int i = 0; i <= n;) {
		MUST(wait_wc(cq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			continue;
		MUST_EQ(wc.wr_id, i < n ? i : 100);
		MUST_EQ(wc.opcode, i < n ? t[i].completion : IBV_WC_BIND_MW);
		i++;
	}
	for (int i = 0; i < 2; i++)
		MUST_EQ(ibv_dealloc_mw(mw[i]), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* ---- solicited events ---- */

/*
 * Each message with the solicited flag raises one event, in one packet or many; no other message
 * does. A WRITE, whatever its flag, has no completion at the receiver.
 */
static bool solicited_body(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_wc wc;

	MUST_EQ(ibv_req_notify_cq(p->cq[1], 1), 0);
	for (int i = 0; i < 3 * 4 * 2; i++) {
		const bool solicited = i & 1;
		const uint32_t length = i & 2 ? 20000 : i & 4 ? 0 : 10;
		struct ibv_sge sge = sge_of(p, 0, 0, length);
		struct ibv_send_wr second = { .sg_list = &sge,
					      .num_sge = 1,
					      .opcode = ops[i / 8],
					      .send_flags = IBV_SEND_SIGNALED |
							    (solicited ? IBV_SEND_SOLICITED : 0) },
				   first = { .next = &second,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_RDMA_WRITE,
					     .send_flags = IBV_SEND_SOLICITED },
				   *bad;

		first.wr.rdma.remote_addr = second.wr.rdma.remote_addr = (uintptr_t)p->buf[1];
		first.wr.rdma.rkey = second.wr.rdma.rkey = p->mr[1]->rkey;
		MUST_EQ(post_recv(p, (uint64_t)i, 0, 20000), 0);
		MUST_EQ(ibv_post_send(p->qp[0], &first, &bad), 0);
		MUST(wait_wc(p->cq[1], &wc));
		MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)i);
		MUST(wait_wc(p->cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		if (!solicited) {
			MUST(no_cq_event(p->channel));
			continue;
		}
		MUST(take_cq_event(p->channel, p->cq[1]));
		MUST_EQ(ibv_req_notify_cq(p->cq[1], 1), 0);
	}
	if (p->srq)
		return true;
	/* "or any error completion" */
	MUST_EQ(post_recv(p, 77, 0, 8), 0);
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	MUST(take_cq_event(p->channel, p->cq[1]));
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	return true;
}

ON_PAIR(solicited_of_rc, solicited_body, .channel = true)
ON_PAIR(solicited_of_uc, solicited_body, .channel = true, .type = IBV_QPT_UC)
ON_PAIR(solicited_of_an_srq, solicited_body, .channel = true, .srq = true)

/* ---- FLUSH ---- */

/* Neither level can flush a window or a null region. */
static bool flush_body(struct wr_ends *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf[1], BUF_BYTES, e->access | IBV_ACCESS_MW_BIND),
		      *null = ibv_alloc_null_mr(e->pd);
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { mr, (uintptr_t)e->buf[1], 8192,
						   IBV_ACCESS_REMOTE_WRITE } };
	struct ibv_wc wc;

	MUST(mr && null && mw);
	MUST_EQ(ibv_bind_mw(e->qp[0], mw, &bind), 0);
	MUST(wait_wc(e->cq[0], &wc) && wc.status == IBV_WC_SUCCESS);
	for (int i = 0; i < 4; i++) {
		struct wr_args a = wr_args_of(e, OP_FLUSH);

		a.rkey = i % 2 ? null->lkey : mw->rkey;
		a.level = i / 2 ? FLUSH_LEVEL_MR : FLUSH_LEVEL_RANGE;
		ibv_wr_start(e->ex);
		e->ex->wr_flags = 0; /* fails, and so completes */
		wr_build(e, OP_FLUSH, &a);
		add(e, OP_WRITE, WORD_AT, 0, 0, 8, 0);
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST(wait_wc(e->cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
		MUST(wait_wc(e->cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, e->qp[1]));
		MUST(wr_again(e));
	}
	/* after another registration, a region grants only its last rights */
	for (int i = 0; i < 4; i++) {
		struct wr_args a = wr_args_of(e, OP_FLUSH);

		MUST(i || !ibv_dealloc_mw(mw));
		MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				     i % 2 ? ACCESS_FLUSH_GLOBAL :
					     e->access & ~ACCESS_FLUSH_GLOBAL),
			0);
		a.rkey = mr->rkey;
		a.level = (uint8_t)(i / 2);
		ibv_wr_start(e->ex);
		e->ex->wr_flags = IBV_SEND_SIGNALED;
		wr_build(e, OP_FLUSH, &a);
		MUST_EQ(ibv_wr_complete(e->ex), 0);
		MUST(wait_wc(e->cq[0], &wc));
		MUST_EQ(wc.status, i % 2 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		if (i % 2)
			continue;
		MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, e->qp[1]));
		MUST(wr_again(e));
	}
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_dereg_mr(null), 0);
	return true;
}

ON_RC(a_flush_is_of_a_region_that_grants_it, flush_body)

const struct test_case man_cases[] = {
	CASE(a_later_word_is_seen_later),
	CASE(a_receive_comes_after_what_was_written),
	CASE(a_later_request_finds_what_was_done),
	CASE(reads_on_both_sides_of_a_write),
	CASE(a_fenced_request_sends_what_was_read),
	CASE(a_word_of_bad_memory_says_why),
	CASE(a_mistake_completes_in_the_middle),
	CASE(a_refused_request_holds_back_none_before_it),
	CASE(all_signaled),
	CASE(solicited_of_rc),
	CASE(solicited_of_uc),
	CASE(solicited_of_an_srq),
	CASE(a_flush_is_of_a_region_that_grants_it),
	{ 0 },
};
