/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_alloc_parent_domain(3): "Custom memory allocation function for this parent domain". The
 * allocations of each object and their sizes; the queues lie in them; each is freed once: after
 * use, on a resize, and when the verb fails.
 *
 * Each piece has its own pages with an inaccessible page around it, its end at that page's. Freed
 * pieces become inaccessible, too.
 */
#include <sys/mman.h>

#include "man.h"

#define ALLOCATORS                                                                                 \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
#define PAGE   4096u
#define PIECES 64

/* Resource types of this library: docs/verbs.md. */
enum { SEND_QUEUE = 1, RECV_QUEUE = 2, SRQ = 3, CQ = 4, TYPES };

enum answer { GIVE, DEFAULT, REFUSE, MISALIGN };

static struct domain {
	struct ibv_pd *pd, *parent;
	struct ibv_mr *mr;
	char buf[64];
	/* the answer to each resource type, and to the call that comes when countdown is 1 */
	enum answer answer[TYPES];
	int countdown;
	int calls;
	/* called from within a callback */
	bool (*inside)(void);
	bool wrong;
	struct piece {
		char *map, *ptr;
		size_t bytes, size;
		uint64_t type;
		bool freed;
	} piece[PIECES];
	int pieces;
} d;

static char *piece_map(size_t size, size_t *bytes)
{
	char *map;

	*bytes = (size + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
	map = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED || mprotect(map, PAGE, PROT_NONE) ||
	    mprotect(map + *bytes - PAGE, PAGE, PROT_NONE))
		return NULL;
	return map;
}

static void *allocate(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
		      uint64_t type)
{
	struct piece *p = &d.piece[d.pieces];
	enum answer answer = type < TYPES ? d.answer[type] : REFUSE;

	d.calls++;
	/* the power of two is there for posix_memalign() and the like */
	d.wrong |= pd != d.parent || context != &d || !type || type >= TYPES || !size ||
		   alignment < sizeof(void *) || alignment & (alignment - 1) ||
		   size % alignment || d.pieces == PIECES;
	if (d.countdown && --d.countdown == 0)
		answer = REFUSE;
	if (d.inside)
		d.wrong |= !d.inside();
	if (answer == REFUSE || d.wrong)
		return NULL;
	if (answer == DEFAULT)
		return IBV_ALLOCATOR_USE_DEFAULT;
	*p = (struct piece){ .size = size, .type = type };
	p->map = piece_map(size, &p->bytes);
	if (!p->map)
		return NULL;
	p->ptr = p->map + p->bytes - PAGE - size - (answer == MISALIGN ? alignment / 2 : 0);
	d.pieces++;
	return p->ptr;
}

static void release(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
	struct piece *p = d.piece;

	while (p < &d.piece[d.pieces] && (p->freed || p->ptr != ptr))
		p++;
	if (d.inside)
		d.wrong |= !d.inside();
	if (p == &d.piece[d.pieces] || pd != d.parent || context != &d || type != p->type) {
		d.wrong = true;
		return;
	}
	p->freed = true;
	d.wrong |= mprotect(p->map, p->bytes, PROT_NONE) != 0;
}

/* Counts allocated pieces that are not freed: of the type, or of all (0). */
static int held(uint64_t type)
{
	int n = 0;

	for (int i = 0; i < d.pieces; i++)
		n += !d.piece[i].freed && (!type || d.piece[i].type == type);
	return n;
}

static bool open_domain(void)
{
	memset(&d, 0, sizeof(d));
	MUST(d.pd = ibv_alloc_pd(ctx));
	MUST(d.parent = ibv_alloc_parent_domain(
		     ctx, &(struct ibv_parent_domain_init_attr){ .pd = d.pd,
								 .comp_mask = ALLOCATORS,
								 .alloc = allocate,
								 .free = release,
								 .pd_context = &d }));
	MUST(d.mr = ibv_reg_mr(d.parent, d.buf, sizeof(d.buf), IBV_ACCESS_LOCAL_WRITE));
	MUST_EQ(d.calls, 0);
	return true;
}

static bool close_domain(void)
{
	d.inside = NULL;
	MUST_EQ(held(0), 0);
	MUST(!d.wrong);
	MUST_EQ(ibv_dereg_mr(d.mr), 0);
	MUST_EQ(ibv_dealloc_pd(d.parent), 0);
	MUST_EQ(ibv_dealloc_pd(d.pd), 0);
	for (int i = 0; i < d.pieces; i++)
		MUST_EQ(munmap(d.piece[i].map, d.piece[i].bytes), 0);
	return true;
}

static struct ibv_cq *domain_cq(uint32_t cqe)
{
	return (struct ibv_cq *)ibv_create_cq_ex(
		ctx, &(struct ibv_cq_init_attr_ex){ .cqe = cqe,
						    .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
						    .parent_domain = d.parent });
}

static struct ibv_srq *domain_srq(uint32_t max_wr)
{
	return ibv_create_srq(d.parent, &(struct ibv_srq_init_attr){
						.attr = { .max_wr = max_wr, .max_sge = 1 } });
}

static struct ibv_qp *domain_qp(struct ibv_cq *cq, enum ibv_qp_type type, uint32_t sends,
				uint32_t recvs)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = type,
					 .cap = { sends, recvs, 1, 1, 0 } };

	return ibv_create_qp(d.parent, &init);
}

/* n messages of one byte, each with its own content. */
static bool exchange(struct ibv_qp *qp, struct ibv_cq *sends, struct ibv_cq *recvs, int n)
{
	struct ibv_sge from = { (uintptr_t)d.buf, 1, d.mr->lkey };
	struct ibv_sge to = { (uintptr_t)d.buf + 1, 1, d.mr->lkey };

	for (int i = 0; i < n; i++) {
		struct ibv_send_wr wr = { .wr_id = 0x5e4d0000u + (unsigned int)i,
					  .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
					  .send_flags = IBV_SEND_SIGNALED },
				   *bad;
		struct ibv_recv_wr rr = { .wr_id = 0x4ecf0000u + (unsigned int)i,
					  .sg_list = &to, .num_sge = 1 },
				   *bad_rr;
		struct ibv_wc wc;

		d.buf[0] = (char)(i * 7 + 1);
		MUST_EQ(qp->srq ? ibv_post_srq_recv(qp->srq, &rr, &bad_rr) :
				  ibv_post_recv(qp, &rr, &bad_rr),
			0);
		MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
		MUST(wait_wc(recvs, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.wr_id, rr.wr_id);
		MUST_EQ(d.buf[1], d.buf[0]);
		MUST(wait_wc(sends, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.wr_id, wr.wr_id);
	}
	return true;
}

/* Does the piece that is held of this type hold this word? */
static bool holds(uint64_t type, uint64_t word)
{
	for (int i = 0; i < d.pieces; i++)
		for (size_t at = 0; !d.piece[i].freed && d.piece[i].type == type &&
				    at + sizeof(word) <= d.piece[i].size; at += sizeof(word))
			if (!memcmp(d.piece[i].ptr + at, &word, sizeof(word)))
				return true;
	return false;
}

/* "Provider memory allocations will use this function", and no other allocations. */
static bool who_asks(void)
{
	struct ibv_cq *plain = ibv_create_cq(ctx, 10, NULL, NULL, 0), *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[6];

	MUST(plain && open_domain());
	MUST(cq = domain_cq(10));
	MUST(held(CQ) == 1 && d.calls == 1);
	MUST(srq = domain_srq(5));
	MUST(held(SRQ) == 1 && d.calls == 2);
	MUST(qp[0] = domain_qp(plain, IBV_QPT_RC, 5, 3));
	MUST(held(SEND_QUEUE) == 1 && held(RECV_QUEUE) == 1 && d.calls == 4);
	MUST(qp[1] = domain_qp(plain, IBV_QPT_UC, 5, 0));
	MUST(held(SEND_QUEUE) == 2 && held(RECV_QUEUE) == 1 && d.calls == 5);
	MUST(qp[2] = domain_qp(plain, IBV_QPT_UD, 0, 3));
	MUST(held(SEND_QUEUE) == 2 && held(RECV_QUEUE) == 2 && d.calls == 6);
	/* an SRQ's QPs and send-only ones have no receive queue */
	MUST(qp[3] = qp_to_itself(d.parent, plain, plain, srq));
	MUST(held(SEND_QUEUE) == 3 && held(RECV_QUEUE) == 2 && d.calls == 7);
	MUST(qp[4] = domain_qp(plain, IBV_QPT_XRC_SEND, 5, 3));
	MUST(held(SEND_QUEUE) == 4 && held(RECV_QUEUE) == 2 && d.calls == 8);
	/* the PD below has no allocators */
	MUST(qp[5] = qp_to_itself(d.pd, cq, plain, NULL));
	MUST_EQ(d.calls, 8);
	for (int i = 0; i < 6; i++)
		MUST_EQ(ibv_destroy_qp(qp[i]), 0);
	MUST_EQ(held(0), 2);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST(held(0) == 1 && held(CQ) == 1);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST_EQ(ibv_destroy_cq(plain), 0);
	return close_domain();
}

/* The queues are where it said: all round each ring, of which the messages are more than fit. */
static bool queues_lie_there(void)
{
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[2];

	MUST(open_domain());
	MUST((cq = domain_cq(7)) && (srq = domain_srq(3)));
	MUST(qp[0] = qp_to_itself(d.parent, cq, cq, NULL));
	MUST(exchange(qp[0], cq, cq, 100));
	MUST(holds(SEND_QUEUE, 0x5e4d0000u + 99) && holds(RECV_QUEUE, 0x4ecf0000u + 99));
	MUST(holds(CQ, 0x5e4d0000u + 99) && holds(CQ, 0x4ecf0000u + 99));
	MUST(!holds(SRQ, 0x4ecf0000u + 99));
	MUST(qp[1] = qp_to_itself(d.parent, cq, cq, srq));
	MUST(exchange(qp[1], cq, cq, 100));
	MUST(holds(SRQ, 0x4ecf0000u + 99));
	MUST_EQ(ibv_destroy_qp(qp[0]) | ibv_destroy_qp(qp[1]), 0);
	MUST_EQ(ibv_destroy_srq(srq) | ibv_destroy_cq(cq), 0);
	return close_domain();
}

/* On a tag-matching SRQ the send queue is another one within, and the list has a CQ. */
static bool of_tag_matching(void)
{
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_send_wr wr = { .wr_id = 0x7a900001, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	MUST(open_domain() && (cq = domain_cq(20)));
	MUST(srq = tag_srq(d.parent, cq));
	MUST(qp = qp_to_itself(d.parent, cq, cq, srq));
	MUST(d.calls == 3 && held(CQ) == 1 && held(SRQ) == 1 && held(SEND_QUEUE) == 1);
	for (int i = 0; i < 3 * QUEUE; i++) {
		MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
		MUST(wait_wc(cq, &wc) && wc.status == IBV_WC_SUCCESS);
	}
	MUST(holds(SEND_QUEUE, wr.wr_id));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_srq(srq) | ibv_destroy_cq(cq), 0);
	return close_domain();
}

static struct ibv_wq *domain_wq(struct ibv_cq *cq)
{
	struct ibv_wq_init_attr a = {
		.wq_type = IBV_WQT_RQ, .max_wr = 3, .max_sge = 1, .pd = d.parent, .cq = cq
	};

	return ibv_create_wq(ctx, &a);
}

/* ibv_create_wq(3): a receive queue as a QP's. */
static bool of_work_queues(void)
{
	struct ibv_cq *plain = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_wq_attr rdy = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_sge sge = { (uintptr_t)d.buf, 1, 0 };
	struct ibv_recv_wr rr = { .wr_id = 0x30b70001, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wq *wq;

	MUST(plain && open_domain());
	MUST(wq = domain_wq(plain));
	MUST(d.calls == 1 && held(RECV_QUEUE) == 1);
	MUST_EQ(ibv_modify_wq(wq, &rdy), 0);
	MUST_EQ(ibv_post_wq_recv(wq, &rr, &bad), 0);
	MUST(holds(RECV_QUEUE, rr.wr_id));
	MUST_EQ(ibv_destroy_wq(wq), 0);
	MUST_EQ(held(0), 0);
	d.answer[RECV_QUEUE] = REFUSE;
	MUST_FAIL(domain_wq(plain), ENOMEM);
	d.answer[RECV_QUEUE] = DEFAULT;
	MUST(wq = domain_wq(plain));
	MUST_EQ(ibv_destroy_wq(wq), 0);
	MUST_EQ(ibv_destroy_cq(plain), 0);
	return close_domain();
}

/* "NULL to designate an error": of the verb, and its earlier pieces are freed. */
static bool null_is_an_error(void)
{
	struct ibv_cq *plain = ibv_create_cq(ctx, 10, NULL, NULL, 0);

	MUST(plain && open_domain());
	d.answer[CQ] = d.answer[SRQ] = REFUSE;
	MUST_FAIL(domain_cq(10), ENOMEM);
	MUST_FAIL(domain_srq(10), ENOMEM);
	MUST_FAIL(tag_srq(d.parent, plain), ENOMEM);
	MUST_EQ(d.pieces, 0);
	for (int i = 1; i <= 2; i++) {
		d.countdown = i;
		MUST_FAIL(domain_qp(plain, IBV_QPT_RC, 5, 3), ENOMEM);
		MUST(d.countdown == 0 && d.pieces == i - 1 && held(0) == 0);
	}
	MUST_EQ(ibv_destroy_cq(plain), 0);
	return close_domain();
}

/* "IBV_ALLOCATOR_USE_DEFAULT asking the callee to allocate": there is nothing to free then. */
static bool use_default(void)
{
	for (int mine = 0; mine < 16; mine++) {
		struct ibv_cq *cq;
		struct ibv_srq *srq;
		struct ibv_qp *qp[2];

		MUST(open_domain());
		for (int type = SEND_QUEUE; type < TYPES; type++)
			d.answer[type] = mine & 1 << (type - 1) ? GIVE : DEFAULT;
		MUST((cq = domain_cq(7)) && (srq = domain_srq(3)));
		MUST(qp[0] = qp_to_itself(d.parent, cq, cq, NULL));
		MUST(qp[1] = qp_to_itself(d.parent, cq, cq, srq));
		MUST_EQ(d.calls, 5);
		MUST(exchange(qp[0], cq, cq, 10) && exchange(qp[1], cq, cq, 10));
		MUST_EQ(ibv_destroy_qp(qp[0]) | ibv_destroy_qp(qp[1]), 0);
		MUST_EQ(ibv_destroy_srq(srq) | ibv_destroy_cq(cq), 0);
		MUST(close_domain());
	}
	return true;
}

/* It was given the alignment: an unaligned piece cannot be used, and is freed. */
static bool misaligned_is_refused(void)
{
	struct ibv_cq *plain = ibv_create_cq(ctx, 10, NULL, NULL, 0);

	MUST(plain && open_domain());
	for (int type = SEND_QUEUE; type < TYPES; type++)
		d.answer[type] = MISALIGN;
	MUST_FAIL(domain_cq(10), EINVAL);
	MUST_FAIL(domain_srq(10), EINVAL);
	MUST_FAIL(domain_qp(plain, IBV_QPT_RC, 5, 3), EINVAL);
	d.answer[SEND_QUEUE] = GIVE;
	MUST_FAIL(domain_qp(plain, IBV_QPT_RC, 5, 3), EINVAL);
	MUST_EQ(d.pieces, 5);
	MUST_EQ(ibv_destroy_cq(plain), 0);
	return close_domain();
}

/* What fails after the memory was had gives it back; what fails before does not ask. */
static bool what_fails_later(void)
{
	struct ibv_cq *plain = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_srq_init_attr_ex tm = { .attr = { .max_wr = 4, .max_sge = 1 },
					   .srq_type = IBV_SRQT_TM,
					   .comp_mask =
						   IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
						   IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
					   .cq = plain };
	struct ibv_srq *srq;

	MUST(plain && open_domain());
	MUST_FAIL(domain_cq(1u << 30), EINVAL);
	MUST_FAIL(domain_srq(1u << 30), EINVAL);
	MUST_FAIL(domain_qp(plain, IBV_QPT_RC, 1u << 30, 3), EINVAL);
	MUST_EQ(d.calls, 0);
	tm.pd = d.parent;
	tm.tm_cap.max_ops = 4; /* of no tags */
	MUST_FAIL(ibv_create_srq_ex(ctx, &tm), EINVAL);
	MUST(d.pieces == 1 && held(0) == 0);
	/* the engine takes RC alone on a tag-matching SRQ */
	MUST(srq = tag_srq(d.pd, plain));
	struct ibv_qp_init_attr init = { .send_cq = plain, .recv_cq = plain, .srq = srq,
					 .qp_type = IBV_QPT_UC, .cap = { 5, 0, 1, 0, 0 } };

	MUST_FAIL(ibv_create_qp(d.parent, &init), EINVAL);
	MUST(d.pieces == 2 && held(0) == 0);
	MUST_EQ(ibv_destroy_srq(srq) | ibv_destroy_cq(plain), 0);
	return close_domain();
}

/* ibv_resize_cq(3): "outstanding completions" stay, in new memory. */
static bool cq_resizes(void)
{
	struct ibv_cq *cq, *sends = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_qp *qp;
	struct ibv_wc wc;
	uint64_t next = 1;

	MUST(sends && open_domain() && (cq = domain_cq(4)));
	MUST(qp = qp_to_itself(d.parent, sends, cq, NULL));
	for (int i = 0; i < 4; i++) {
		/* three that wait; unsignaled, but for the last of a few */
		MUST(ping(qp, next + 0, 0) && ping(qp, next + 1, 0));
		MUST(ping(qp, next + 2, IBV_SEND_SIGNALED) && wait_wc(sends, &wc));
		d.answer[CQ] = i == 2 ? DEFAULT : GIVE;
		MUST_EQ(ibv_resize_cq(cq, 5 + i), 0);
		MUST_EQ(held(CQ), i != 2);
		/* too small for them: the new memory goes back */
		MUST_EQ(ibv_resize_cq(cq, 2), EINVAL);
		MUST_EQ(held(CQ), i != 2);
		d.answer[CQ] = REFUSE;
		MUST_EQ(ibv_resize_cq(cq, 20), ENOMEM);
		d.answer[CQ] = MISALIGN;
		MUST_EQ(ibv_resize_cq(cq, 20), EINVAL);
		MUST_EQ(held(CQ), i != 2);
		for (int k = 0; k < 3; k++) {
			MUST(wait_wc(cq, &wc));
			MUST_EQ(wc.wr_id, next++);
		}
	}
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(cq) | ibv_destroy_cq(sends), 0);
	return close_domain();
}

/* ibv_modify_srq(3), the number of WRs. */
static bool srq_resizes(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 20, NULL, NULL, 0);
	struct ibv_recv_wr rr = { 0 }, *bad;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad_wr;
	struct ibv_srq_attr a = { 0 };
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	uint64_t next = 1;

	MUST(cq && open_domain() && (srq = domain_srq(3)));
	MUST(qp = qp_to_itself(d.parent, cq, cq, srq));
	for (int i = 0; i < 4; i++) {
		for (rr.wr_id = next; rr.wr_id < next + 3; rr.wr_id++)
			MUST_EQ(ibv_post_srq_recv(srq, &rr, &bad), 0);
		d.answer[SRQ] = i == 2 ? DEFAULT : GIVE;
		a = (struct ibv_srq_attr){ .max_wr = 4 + (uint32_t)i };
		MUST_EQ(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), 0);
		MUST_EQ(held(SRQ), i != 2);
		a.max_wr = 2;
		MUST_EQ(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), EINVAL);
		a = (struct ibv_srq_attr){ .max_wr = 10, .srq_limit = 11 };
		MUST_EQ(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
		MUST_EQ(held(SRQ), i != 2);
		d.answer[SRQ] = REFUSE;
		MUST_EQ(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), ENOMEM);
		/* a change of the limit alone allocates nothing */
		a.srq_limit = 0;
		MUST_EQ(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
		MUST_EQ(held(SRQ), i != 2);
		for (int k = 0; k < 3; k++) {
			MUST_EQ(ibv_post_send(qp, &wr, &bad_wr), 0);
			MUST(wait_wc(cq, &wc));
			MUST_EQ(wc.wr_id, next++);
		}
	}
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_srq(srq) | ibv_destroy_cq(cq), 0);
	return close_domain();
}

static struct ibv_qp *busy;
static struct ibv_cq *busy_cq;

/* Each of them takes locks that making or destroying an object takes as well. */
static bool other_verbs(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	struct ibv_wc wc;

	MUST(cq && busy);
	MUST_EQ(ibv_resize_cq(cq, 20), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	MUST(ping(busy, 9, 0) && wait_wc(busy_cq, &wc));
	MUST_EQ(qp_state_now(busy), IBV_QPS_RTS);
	return true;
}

/* A callback is a function of the application's, which may use the device. */
static bool callbacks_may_call_verbs(void)
{
	struct ibv_srq_attr a = { .max_wr = 20 };
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	MUST(open_domain() && (busy_cq = ibv_create_cq(ctx, 10, NULL, NULL, 0)));
	MUST(busy = qp_to_itself(d.pd, busy_cq, busy_cq, NULL));
	d.inside = other_verbs;
	MUST((cq = domain_cq(10)) && (srq = domain_srq(3)));
	MUST(qp = qp_to_itself(d.parent, cq, cq, NULL));
	MUST_EQ(ibv_resize_cq(cq, 30), 0);
	MUST_EQ(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), 0);
	MUST_EQ(d.calls, 6);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_srq(srq) | ibv_destroy_cq(cq), 0);
	d.inside = NULL;
	MUST_EQ(ibv_destroy_qp(busy) | ibv_destroy_cq(busy_cq), 0);
	return close_domain();
}

static void *without_context(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			     uint64_t type)
{
	d.wrong |= context != NULL;
	return IBV_ALLOCATOR_USE_DEFAULT;
}

/* "Bit-mask of optional fields": a field counts with its bit alone, and allocators are two. */
static bool fields_need_their_bits(void)
{
	struct ibv_parent_domain_init_attr a = { .alloc = allocate, .free = release,
						 .pd_context = &d };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 3, .max_sge = 1 } };
	static const uint32_t masks[] = { 0, IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
					  IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS };
	struct ibv_srq *srq;
	struct ibv_pd *pd;

	MUST(open_domain());
	a.pd = d.pd;
	for (int i = 0; i < 3; i++) {
		a.comp_mask = masks[i];
		a.alloc = i == 2 ? without_context : allocate;
		MUST(pd = ibv_alloc_parent_domain(ctx, &a));
		MUST(srq = ibv_create_srq(pd, &srq_init));
		MUST(d.calls == 0 && !d.wrong);
		MUST_EQ(ibv_destroy_srq(srq), 0);
		MUST_EQ(ibv_dealloc_pd(pd), 0);
	}
	a.comp_mask = ALLOCATORS;
	a.free = NULL;
	MUST_FAIL(ibv_alloc_parent_domain(ctx, &a), EINVAL);
	a.free = release;
	a.alloc = NULL;
	MUST_FAIL(ibv_alloc_parent_domain(ctx, &a), EINVAL);
	/* a parent domain is a PD: as the base of another one, it is the PD alone */
	a = (struct ibv_parent_domain_init_attr){ .pd = d.parent };
	MUST(pd = ibv_alloc_parent_domain(ctx, &a));
	MUST(srq = ibv_create_srq(pd, &srq_init));
	MUST_EQ(d.calls, 0);
	MUST_EQ(ibv_dealloc_pd(d.parent), EBUSY);
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return close_domain();
}

const struct test_case man_cases[] = {
	CASE(who_asks),
	CASE(queues_lie_there),
	CASE(of_tag_matching),
	CASE(of_work_queues),
	CASE(null_is_an_error),
	CASE(use_default),
	CASE(misaligned_is_refused),
	CASE(what_fails_later),
	CASE(cq_resizes),
	CASE(srq_resizes),
	CASE(callbacks_may_call_verbs),
	CASE(fields_need_their_bits),
	{ 0 },
};
