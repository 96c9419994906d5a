/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* tier: long tsan */
/*
 * ibv_alloc_dm(3): device memory "inside sge when posting receive or sending work request", by a
 * byte offset "from the beginning of the region", and what its R_Key opens to the peer. Both ends'
 * data lie in device memory. Each case looks at every byte of both.
 */
#include "man.h"

#define BYTES	 16384u	/* of device memory */
#define BASE	 4096u	/* where the region begins in it */
#define LENGTH	 8192u	/* of the region */
#define GRH	 40u
#define SOME	 5000u	/* several packets */
#define ADDS	 2000
#define THREADS	 4
#define PART	 1024u	/* a thread's */
#define ROUNDS	 2000
#define READS	 5000000
#define ALL	 (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

struct ends {
	struct pair *p;
	struct ibv_dm *dm[2];
	struct ibv_mr *mr[2];
	char want[2][BYTES];
};

/* Different bytes at each end, also around the regions. */
static bool ends_fill(struct ends *e)
{
	for (int i = 0; i < 2; i++) {
		for (unsigned int n = 0; n < BYTES; n++)
			e->want[i][n] = (char)(n * 13 + (n >> 8) + (i ? 0x80 : 0));
		MUST_EQ(ibv_memcpy_to_dm(e->dm[i], 0, e->want[i], BYTES), 0);
	}
	return true;
}

static bool ends_open(struct ends *e, struct pair *p)
{
	struct ibv_alloc_dm_attr attr = { .length = BYTES, .log_align_req = 3 };

	memset(e, 0, sizeof(*e));
	e->p = p;
	for (int i = 0; i < 2; i++) {
		MUST(e->dm[i] = ibv_alloc_dm(ctx, &attr));
		MUST(e->mr[i] = ibv_reg_dm_mr(p->pd, e->dm[i], BASE, LENGTH, ALL));
	}
	return ends_fill(e);
}

static bool ends_close(struct ends *e)
{
	bool good = true;

	for (int i = 0; i < 2; i++) {
		good &= !e->mr[i] || !ibv_dereg_mr(e->mr[i]);
		good &= !e->dm[i] || !ibv_free_dm(e->dm[i]);
	}
	return good;
}

/* Device memory is as it must be, to the byte. */
static bool ends_are(struct ends *e)
{
	char got[BYTES];

	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_memcpy_from_dm(got, e->dm[i], 0, BYTES), 0);
		for (unsigned int n = 0; n < BYTES; n++)
			if (got[n] != e->want[i][n]) {
				printf("# end %d, byte %u\n", i, n);
				return false;
			}
	}
	return true;
}

/* length bytes at from of end 0's region go to at of end 1's, or back. */
static void expect_copy(struct ends *e, int to, uint32_t at, uint32_t from, uint32_t length)
{
	memcpy(e->want[to] + BASE + at, e->want[!to] + BASE + from, length);
}

static struct ibv_sge sge_in(const struct ends *e, int end, uint64_t at, uint32_t length)
{
	return (struct ibv_sge){ .addr = at, .length = length, .lkey = e->mr[end]->lkey };
}

static bool receive(struct ends *e, uint64_t at, uint32_t length)
{
	struct ibv_sge sge = sge_in(e, 1, at, length);
	struct ibv_recv_wr wr = { .wr_id = 33, .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST_EQ(ibv_post_recv(e->p->qp[1], &wr, &bad), 0);
	return true;
}

/* End 0's request, and the status that it ends with. */
static bool send_wr(struct ends *e, struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->wr_id = 44;
	wr->send_flags |= IBV_SEND_SIGNALED;
	MUST_EQ(ibv_post_send(e->p->qp[0], wr, &bad), 0);
	MUST(wait_wc(e->p->cq[0], &wc));
	MUST_EQ(wc.wr_id, 44);
	MUST_EQ(wc.status, status);
	return true;
}

static bool rdma(struct ends *e, enum ibv_wr_opcode op, uint64_t local, uint64_t remote,
		 uint32_t length, enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_in(e, 0, local, length);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = op, .imm_data = 0x1234 };

	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = e->mr[1]->rkey;
	return send_wr(e, &wr, status);
}

static bool received(struct ends *e, enum ibv_wc_opcode op, uint32_t length, unsigned int flags)
{
	struct ibv_wc wc;

	MUST(wait_wc(e->p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 33);
	MUST_EQ(wc.opcode, op);
	MUST_EQ(wc.byte_len, length);
	MUST_EQ(wc.wc_flags, flags);
	MUST(!(flags & IBV_WC_WITH_IMM) || wc.imm_data == 0x1234);
	return true;
}

#define ON_ENDS(name, body, ...)                                                  \
	static bool name##_body(struct pair *p)                                   \
	{                                                                         \
		static struct ends e;                                             \
		bool good = ends_open(&e, p) && body(&e) && ends_are(&e);         \
										  \
		return ends_close(&e) && good;                                    \
	}                                                                         \
	ON_PAIR(name, name##_body, __VA_ARGS__)

/* ---- RC ---- */

static bool write_body(struct ends *e)
{
	MUST(rdma(e, IBV_WR_RDMA_WRITE, 3, 1001, SOME, IBV_WC_SUCCESS));
	expect_copy(e, 1, 1001, 3, SOME);
	MUST(ends_are(e));
	/* from the first byte to the last */
	MUST(rdma(e, IBV_WR_RDMA_WRITE, 0, 0, LENGTH, IBV_WC_SUCCESS));
	expect_copy(e, 1, 0, 0, LENGTH);
	MUST(ends_are(e));
	MUST(receive(e, 0, 0));
	MUST(rdma(e, IBV_WR_RDMA_WRITE_WITH_IMM, LENGTH - 7, 1, 7, IBV_WC_SUCCESS));
	expect_copy(e, 1, 1, LENGTH - 7, 7);
	return received(e, IBV_WC_RECV_RDMA_WITH_IMM, 7, IBV_WC_WITH_IMM);
}
ON_ENDS(rc_write, write_body)

static bool read_body(struct ends *e)
{
	MUST(rdma(e, IBV_WR_RDMA_READ, 5, 2003, SOME, IBV_WC_SUCCESS));
	expect_copy(e, 0, 5, 2003, SOME);
	MUST(ends_are(e));
	MUST(rdma(e, IBV_WR_RDMA_READ, 0, 0, LENGTH, IBV_WC_SUCCESS));
	expect_copy(e, 0, 0, 0, LENGTH);
	return true;
}
ON_ENDS(rc_read, read_body)

static bool send_body(struct ends *e)
{
	struct ibv_sge sge[2] = { sge_in(e, 0, 0, 101), sge_in(e, 0, 4001, SOME - 101 - 1500) };
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND };

	MUST(receive(e, 17, SOME));
	MUST(send_wr(e, &wr, IBV_WC_SUCCESS));
	MUST(received(e, IBV_WC_RECV, SOME - 1500, 0));
	expect_copy(e, 1, 17, 0, 101);
	expect_copy(e, 1, 17 + 101, 4001, SOME - 101 - 1500);
	MUST(ends_are(e));
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = 0x1234;
	wr.num_sge = 1;
	MUST(receive(e, LENGTH - 101, 101));
	MUST(send_wr(e, &wr, IBV_WC_SUCCESS));
	expect_copy(e, 1, LENGTH - 101, 0, 101);
	return received(e, IBV_WC_RECV, 101, IBV_WC_WITH_IMM);
}
ON_ENDS(rc_send, send_body)

static bool atomic(struct ends *e, enum ibv_wr_opcode op, uint64_t remote, uint64_t compare_add,
		   uint64_t swap, enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_in(e, 0, 24, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = op };

	wr.wr.atomic.remote_addr = remote;
	wr.wr.atomic.rkey = e->mr[1]->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return send_wr(e, &wr, status);
}

/* The word at `at` of end 1's region becomes this; end 0 has had its original. */
static void expect_word(struct ends *e, uint32_t at, uint64_t now)
{
	memcpy(e->want[0] + BASE + 24, e->want[1] + BASE + at, 8);
	memcpy(e->want[1] + BASE + at, &now, 8);
}

static bool atomics_body(struct ends *e)
{
	const uint32_t last = LENGTH - 8;
	uint64_t word;

	memcpy(&word, e->want[1] + BASE + 8, 8);
	MUST(atomic(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0x0102030405060708, 0, IBV_WC_SUCCESS));
	expect_word(e, 8, word + 0x0102030405060708);
	MUST(ends_are(e));
	memcpy(&word, e->want[1] + BASE + last, 8);
	MUST(atomic(e, IBV_WR_ATOMIC_CMP_AND_SWP, last, word + 1, 1, IBV_WC_SUCCESS));
	expect_word(e, last, word);
	MUST(ends_are(e));
	MUST(atomic(e, IBV_WR_ATOMIC_CMP_AND_SWP, last, word, 77, IBV_WC_SUCCESS));
	expect_word(e, last, 77);
	return true;
}
ON_ENDS(rc_atomics, atomics_body)

#define STEP 0x100000001ull /* both halves at once */

struct reader {
	struct ends *e;
	atomic_bool stop;
	bool good;
};

static bool reader_body(struct reader *r)
{
	uint64_t word, before = 0;

	while (!atomic_load(&r->stop)) {
		MUST_EQ(ibv_memcpy_from_dm(&word, r->e->dm[1], BASE, 8), 0);
		MUST_EQ(word % STEP, 0);
		MUST(word >= before);
		before = word;
	}
	return true;
}

static void *reader_run(void *arg)
{
	struct reader *r = arg;

	r->good = reader_body(r);
	return NULL;
}

/* A counter that a peer adds to is read whole by ibv_memcpy_from_dm() meanwhile. */
static bool counter_body(struct ends *e)
{
	struct reader r = { .e = e };
	pthread_t thread;
	uint64_t word = 0;
	bool good = true;

	MUST_EQ(ibv_memcpy_to_dm(e->dm[1], BASE, &word, 8), 0);
	MUST_EQ(pthread_create(&thread, NULL, reader_run, &r), 0);
	for (int i = 0; good && i < ADDS; i++)
		good = atomic(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, STEP, 0, IBV_WC_SUCCESS);
	atomic_store(&r.stop, true);
	MUST_EQ(pthread_join(thread, NULL), 0);
	word = (ADDS - 1) * STEP;
	memcpy(e->want[0] + BASE + 24, &word, 8);
	word = ADDS * STEP;
	memcpy(e->want[1] + BASE, &word, 8);
	return good && r.good;
}
ON_ENDS(rc_counter, counter_body)

/* ---- what the keys do not open ---- */

static const enum ibv_wr_opcode reach[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

/* Of what failed at its own end, packets that were right may have arrived: in the region. */
static bool accept_part(struct ends *e, int end)
{
	MUST_EQ(ibv_memcpy_from_dm(e->want[end] + BASE, e->dm[end], BASE, LENGTH), 0);
	return true;
}

/* Exactly its bytes, by address as from the region's start; both ends are reset after each. */
static bool outside(bool local, enum ibv_wr_opcode op, uint64_t at, uint32_t length)
{
	static struct ends e;
	struct pair p;
	bool good = pair_open(&p, OPTIONS(0)) && ends_open(&e, &p) &&
		    (local ? rdma(&e, op, at, 0, length, IBV_WC_LOC_PROT_ERR) :
			     rdma(&e, op, 0, at, length, IBV_WC_REM_ACCESS_ERR)) &&
		    (local ? accept_part(&e, op == IBV_WR_RDMA_WRITE) :
			     take_async(IBV_EVENT_QP_ACCESS_ERR, p.qp[1])) &&
		    ends_are(&e);

	good &= ends_close(&e);
	return pair_close(&p) && good;
}

static bool rc_bounds(void)
{
	static const struct {
		uint64_t at;
		uint32_t length;
	} range[] = {
		{ LENGTH, 1 }, { LENGTH - 1, 2 }, { 1, LENGTH }, { UINT64_MAX, 1 },
		{ UINT64_MAX, 2 }, { BASE + LENGTH, 8 },
	};

	for (int local = 0; local < 2; local++)
		for (int op = 0; op < 2; op++)
			for (int i = 0; i < 6; i++)
				MUST(outside(local, reach[op], range[i].at, range[i].length));
	return true;
}

/* Each right alone opens to its own requests, and to no other. */
static bool right_body(struct pair *p, unsigned int right)
{
	static struct ends e;
	struct ibv_mr *mr;
	bool good = ends_open(&e, p);
	const bool opens[3] = { right == IBV_ACCESS_REMOTE_WRITE, right == IBV_ACCESS_REMOTE_READ,
				right == IBV_ACCESS_REMOTE_ATOMIC };

	for (int i = 0; good && i < 3; i++) {
		enum ibv_wc_status want = opens[i] ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;

		mr = ibv_reg_dm_mr(p->pd, e.dm[1], BASE, LENGTH,
				   right | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
		MUST(mr);
		MUST_EQ(ibv_dereg_mr(e.mr[1]), 0);
		e.mr[1] = mr;
		good = i < 2 ? rdma(&e, reach[i], 0, 0, 8, want) :
			       atomic(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 0, want);
		if (!opens[i])
			good &= take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]);
		for (int q = 0; !opens[i] && q < 2; q++)
			good &= !qp_to_state(p->qp[q], IBV_QPS_RESET) && !qp_to_init(p->qp[q]);
		for (int q = 0; !opens[i] && q < 2; q++)
			good &= !qp_to_rts(p->qp[q], p->qp[!q]->qp_num, 7);
	}
	return ends_close(&e) && good;
}

static bool write_right(struct pair *p)
{
	return right_body(p, IBV_ACCESS_REMOTE_WRITE);
}
ON_PAIR(rc_write_alone, write_right)

static bool read_right(struct pair *p)
{
	return right_body(p, IBV_ACCESS_REMOTE_READ);
}
ON_PAIR(rc_read_alone, read_right)

static bool atomic_right(struct pair *p)
{
	return right_body(p, IBV_ACCESS_REMOTE_ATOMIC);
}
ON_PAIR(rc_atomics_alone, atomic_right)

/* "Address alignment may be required": of the word in device memory, not of its offset alone. */
static bool unaligned_body(struct ends *e)
{
	struct ibv_mr *mr = ibv_reg_dm_mr(e->p->pd, e->dm[1], BASE + 4, LENGTH, ALL);

	MUST(mr);
	MUST_EQ(ibv_dereg_mr(e->mr[1]), 0);
	e->mr[1] = mr;
	MUST(atomic(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1, 0, IBV_WC_REM_INV_REQ_ERR));
	return take_async(IBV_EVENT_QP_REQ_ERR, e->p->qp[1]);
}
ON_ENDS(rc_unaligned, unaligned_body)

/* The peer's key opens nothing any more once the region is gone, though the memory is there. */
static bool gone_body(struct ends *e)
{
	uint32_t rkey = e->mr[1]->rkey;
	struct ibv_sge sge = sge_in(e, 0, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };

	MUST_EQ(ibv_dereg_mr(e->mr[1]), 0);
	e->mr[1] = NULL;
	wr.wr.rdma.rkey = rkey;
	MUST(send_wr(e, &wr, IBV_WC_REM_ACCESS_ERR));
	return take_async(IBV_EVENT_QP_ACCESS_ERR, e->p->qp[1]);
}
ON_ENDS(rc_gone, gone_body)

/* ---- UC and UD ---- */

static bool uc_body(struct ends *e)
{
	MUST(rdma(e, IBV_WR_RDMA_WRITE, 9, 2001, SOME, IBV_WC_SUCCESS));
	expect_copy(e, 1, 2001, 9, SOME);
	/* after it */
	MUST(receive(e, 11, SOME));
	MUST(rdma(e, IBV_WR_SEND_WITH_IMM, LENGTH - 1900, 0, 1900, IBV_WC_SUCCESS));
	MUST(received(e, IBV_WC_RECV, 1900, IBV_WC_WITH_IMM));
	expect_copy(e, 1, 11, LENGTH - 1900, 1900);
	return true;
}
ON_ENDS(uc_requests, uc_body, .type = IBV_QPT_UC)

static bool ud_body(struct ends *e)
{
	struct ibv_ah_attr address = own_address();
	struct ibv_ah *ah = ibv_create_ah(e->p->pd, &address);
	struct ibv_sge sge = sge_in(e, 0, 7, 1000);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	MUST(ah);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = e->p->qp[1]->qp_num;
	wr.wr.ud.remote_qkey = UD_QKEY;
	MUST(receive(e, 100, 2000));
	MUST(send_wr(e, &wr, IBV_WC_SUCCESS));
	MUST(received(e, IBV_WC_RECV, GRH + 1000, IBV_WC_GRH));
	expect_copy(e, 1, 100 + GRH, 7, 1000);
	/* the GRH itself is not looked at */
	MUST_EQ(ibv_memcpy_from_dm(e->want[1] + BASE + 100, e->dm[1], BASE + 100, GRH), 0);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	return true;
}
ON_ENDS(ud_requests, ud_body, .type = IBV_QPT_UD)

/* ---- two contexts ---- */

/* A region by one context's handle serves the QPs of the other, whose PD it is in. */
static bool imported_body(struct ends *e)
{
	struct ibv_context *other = ibv_import_device(dup(ctx->cmd_fd));
	struct ibv_dm *dm;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	MUST(other);
	MUST(dm = ibv_import_dm(other, e->dm[1]->handle));
	MUST(pd = ibv_import_pd(other, e->p->pd->handle));
	MUST(mr = ibv_reg_dm_mr(pd, dm, BASE, LENGTH, ALL));
	MUST_EQ(ibv_dereg_mr(e->mr[1]), 0);
	e->mr[1] = mr;
	MUST(rdma(e, IBV_WR_RDMA_WRITE, 3, 1001, SOME, IBV_WC_SUCCESS));
	expect_copy(e, 1, 1001, 3, SOME);
	MUST(ends_are(e));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	e->mr[1] = NULL;
	ibv_unimport_dm(dm);
	ibv_unimport_pd(pd);
	MUST_EQ(ibv_close_device(other), 0);
	return true;
}
ON_ENDS(rc_imported, imported_body)

/* ---- copies by several threads ---- */

struct copier {
	pthread_t thread;
	struct ibv_dm *dm;
	unsigned int number;
	bool good;
};

/* In its part each thread reads its last write; in a shared word, one thread's write. */
static bool copier_body(struct copier *c)
{
	const uint64_t bytes = 0x0101010101010101;
	char mine[PART], got[PART];
	uint64_t word;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		memset(mine, (int)(c->number * 50 + i), PART);
		MUST_EQ(ibv_memcpy_to_dm(c->dm, c->number * PART, mine, PART), 0);
		word = bytes * (uint8_t)(c->number + i);
		MUST_EQ(ibv_memcpy_to_dm(c->dm, THREADS * PART, &word, sizeof(word)), 0);
		MUST_EQ(ibv_memcpy_from_dm(&word, c->dm, THREADS * PART, sizeof(word)), 0);
		MUST_EQ(word, bytes * (uint8_t)word);
		MUST_EQ(ibv_memcpy_from_dm(got, c->dm, c->number * PART, PART), 0);
		MUST(!memcmp(mine, got, PART));
	}
	return true;
}

static void *copier_run(void *arg)
{
	struct copier *c = arg;

	c->good = copier_body(c);
	return NULL;
}

static bool copies_by_several_threads(void)
{
	struct ibv_alloc_dm_attr attr = { .length = THREADS * PART + 8 };
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
	struct copier c[THREADS];
	bool good = true;

	MUST(dm);
	for (unsigned int i = 0; i < THREADS; i++) {
		c[i] = (struct copier){ .dm = dm, .number = i };
		MUST_EQ(pthread_create(&c[i].thread, NULL, copier_run, &c[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		MUST_EQ(pthread_join(c[i].thread, NULL), 0);
		good &= c[i].good;
	}
	MUST_EQ(ibv_free_dm(dm), 0);
	return good;
}

struct writer {
	struct ibv_dm *dm;
	atomic_bool stop;
};

static void *writer_run(void *arg)
{
	struct writer *w = arg;
	uint64_t word;

	for (uint64_t i = 1; !atomic_load(&w->stop); i++) {
		word = (uint32_t)i * STEP;
		ibv_memcpy_to_dm(w->dm, 8, &word, sizeof(word));
	}
	return NULL;
}

/* Both halves of a word are of one copy, whenever the other thread stops or goes on. */
static bool words_are_whole(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 16 };
	struct writer w = { .dm = ibv_alloc_dm(ctx, &attr) };
	pthread_t thread;
	uint64_t word = 0;
	int i;

	MUST(w.dm);
	MUST_EQ(pthread_create(&thread, NULL, writer_run, &w), 0);
	while (!word)
		MUST_EQ(ibv_memcpy_from_dm(&word, w.dm, 8, sizeof(word)), 0);
	for (i = 0; i < READS && word % STEP == 0; i++)
		ibv_memcpy_from_dm(&word, w.dm, 8, sizeof(word));
	atomic_store(&w.stop, true);
	MUST_EQ(pthread_join(thread, NULL), 0);
	MUST_EQ(i, READS);
	MUST_EQ(ibv_free_dm(w.dm), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(rc_write),
	CASE(rc_read),
	CASE(rc_send),
	CASE(rc_atomics),
	CASE(rc_counter),
	CASE(rc_bounds),
	CASE(rc_write_alone),
	CASE(rc_read_alone),
	CASE(rc_atomics_alone),
	CASE(rc_unaligned),
	CASE(rc_gone),
	CASE(uc_requests),
	CASE(ud_requests),
	CASE(rc_imported),
	CASE(copies_by_several_threads),
	CASE(words_are_whole),
	{ 0 },
};
