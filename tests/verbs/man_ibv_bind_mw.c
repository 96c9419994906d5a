/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_bind_mw(3), ibv_alloc_mw(3), ibv_inc_rkey(3), and windows of type 2 by ibv_post_send(3): the
 * access of a window's R_Key, its lifetime, and valid binds. The rest of the region stays closed:
 * end 1 owns the memory, end 0 tries.
 */
#include "man.h"

#define BASE	 1000u
#define BYTES	 2000u
#define REFUSED	 IBV_WC_REM_ACCESS_ERR
#define WRITE	 IBV_WR_RDMA_WRITE
#define READ	 IBV_WR_RDMA_READ
#define ADD	 IBV_WR_ATOMIC_FETCH_AND_ADD
#define R_WRITE	 IBV_ACCESS_REMOTE_WRITE
#define R_READ	 IBV_ACCESS_REMOTE_READ
#define R_ATOMIC IBV_ACCESS_REMOTE_ATOMIC
#define ROUNDS	 300 /* more than an R_Key's 8 bits */

/* Regions over the memory of end 1, none of which the peer may reach itself. */
struct regions {
	struct pair *p;
	struct ibv_mr *full;   /* IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND */
	struct ibv_mr *rdonly; /* without local write */
	struct ibv_mr *nobind; /* without IBV_ACCESS_MW_BIND */
	struct ibv_mw *mw;
	uint64_t base;	       /* address of the memory */
};

static bool regions_open(struct regions *r, struct pair *p, enum ibv_mw_type type)
{
	*r = (struct regions){ .p = p, .base = (uintptr_t)p->buf[1] };
	MUST(r->full = ibv_reg_mr(p->pd, p->buf[1], BUF_BYTES,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	MUST(r->rdonly = ibv_reg_mr(p->pd, p->buf[1], BUF_BYTES, IBV_ACCESS_MW_BIND));
	MUST(r->nobind = ibv_reg_mr(p->pd, p->buf[1], BUF_BYTES, IBV_ACCESS_LOCAL_WRITE));
	MUST(r->mw = ibv_alloc_mw(p->pd, type));
	return true;
}

static bool regions_close(struct regions *r)
{
	MUST_EQ(!r->mw || !ibv_dealloc_mw(r->mw), true);
	MUST_EQ(ibv_dereg_mr(r->full) | ibv_dereg_mr(r->rdonly) | ibv_dereg_mr(r->nobind), 0);
	return true;
}

/* Resets both ends, after an error at either of them. */
static bool renew(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_to_state(p->qp[i], IBV_QPS_RESET), 0);
	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_to_init(p->qp[i]), 0);
	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_to_rts(p->qp[i], p->qp[!i]->qp_num, 7), 0);
	return true;
}

/* The status that a request of end 0 ends with; -1 if it does not. */
static int status_of(struct pair *p, int end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->send_flags |= IBV_SEND_SIGNALED;
	return !ibv_post_send(p->qp[end], wr, &bad) && wait_wc(p->cq[end], &wc) ? (int)wc.status
										: -1;
}

static int request(struct pair *p, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
		   uint32_t len)
{
	struct ibv_sge sge = sge_of(p, 0, 0, len);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = op };

	if (op == ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return status_of(p, 0, &wr);
}

/* It must end with this status; after a failure the connection is made again. */
static bool ends_with(struct pair *p, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr,
		      uint32_t len, int want)
{
	MUST_EQ(request(p, op, rkey, addr, len), want);
	return !want || renew(p);
}

#define MUST_OPEN(r, op, key, addr, len)   MUST(ends_with((r)->p, op, key, addr, len, 0))
#define MUST_REFUSE(r, op, key, addr, len) MUST(ends_with((r)->p, op, key, addr, len, REFUSED))

static int bind_type1(struct regions *r, struct ibv_mr *mr, uint64_t at, uint64_t len, int access)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { mr, r->base + at, len, (unsigned int)access } };
	struct ibv_wc wc;

	MUST_EQ(ibv_bind_mw(r->p->qp[1], r->mw, &bind), 0);
	return wait_wc(r->p->cq[1], &wc) ? (int)wc.status : -1;
}

static int bind_type2(struct regions *r, uint32_t rkey, uint64_t at, uint64_t len, int access)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };

	wr.bind_mw.mw = r->mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ r->full, r->base + at, len, (unsigned int)access };
	return status_of(r->p, 1, &wr);
}

static int invalidate(struct regions *r, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey };

	return status_of(r->p, 1, &wr);
}

#define ON_REGIONS(name, type, body)                                           \
	static bool name##_body(struct pair *p)                                \
	{                                                                      \
		struct regions r;                                              \
		bool good = regions_open(&r, p, type) && body(&r);             \
									       \
		return regions_close(&r) && good;                              \
	}                                                                      \
	ON_PAIR(name, name##_body)

/* ---- type 1 ---- */

/* "The remote access rights granted by the memory window": to its bytes, of its kind. */
static bool rights(struct regions *r)
{
	const uint64_t at = r->base + BASE;
	uint32_t key;

	MUST_REFUSE(r, WRITE, r->mw->rkey, at, 8);  /* not bound */
	MUST_REFUSE(r, WRITE, r->full->rkey, at, 8); /* a region without remote rights */
	MUST_EQ(bind_type1(r, r->full, BASE, BYTES, R_WRITE), 0);
	key = r->mw->rkey;
	MUST_OPEN(r, WRITE, key, at, BYTES);
	MUST_OPEN(r, WRITE, key, at + BYTES - 8, 8);
	MUST_REFUSE(r, WRITE, key, at - 1, 8);
	MUST_REFUSE(r, WRITE, key, at + BYTES - 7, 8);
	MUST_REFUSE(r, READ, key, at, 8);
	MUST_REFUSE(r, ADD, key, at, 8);
	MUST_EQ(bind_type1(r, r->full, 0, 4096, R_READ | R_ATOMIC), 0);
	MUST_OPEN(r, READ, r->mw->rkey, r->base, 4096);
	MUST_OPEN(r, ADD, r->mw->rkey, r->base + 8, 8);
	MUST_REFUSE(r, WRITE, r->mw->rkey, r->base, 8);
	return true;
}

ON_REGIONS(opens_its_bytes_for_its_rights, IBV_MW_TYPE_1, rights)

/* "If successful, the R_Key [...] is updated", and the one before opens nothing any more. */
static bool old_keys(struct regions *r)
{
	uint32_t before = r->mw->rkey, first;

	MUST_EQ(bind_type1(r, r->full, BASE, BYTES, R_WRITE), 0);
	first = r->mw->rkey;
	MUST(first != before);
	MUST_REFUSE(r, WRITE, before, r->base + BASE, 8);
	MUST_EQ(bind_type1(r, r->full, BASE, BYTES, R_WRITE), 0);
	MUST(r->mw->rkey != first);
	MUST_REFUSE(r, WRITE, first, r->base + BASE, 8);
	MUST_OPEN(r, WRITE, r->mw->rkey, r->base + BASE, 8);
	/* length 0 unbinds */
	first = r->mw->rkey;
	MUST_EQ(bind_type1(r, r->full, 0, 0, 0), 0);
	MUST_REFUSE(r, WRITE, first, r->base + BASE, 8);
	MUST_REFUSE(r, WRITE, r->mw->rkey, r->base + BASE, 8);
	return true;
}

ON_REGIONS(an_old_key_opens_nothing, IBV_MW_TYPE_1, old_keys)

/* IBV_ACCESS_ZERO_BASED: "remote addresses start at 0" */
static bool zero_based(struct regions *r)
{
	MUST_EQ(bind_type1(r, r->full, 512, 100, R_READ | IBV_ACCESS_ZERO_BASED), 0);
	MUST_OPEN(r, READ, r->mw->rkey, 0, 100);
	MUST_REFUSE(r, READ, r->mw->rkey, 1, 100);
	MUST_REFUSE(r, READ, r->mw->rkey, r->base + 512, 8);
	MUST_REFUSE(r, READ, r->mw->rkey, (uint64_t)-8, 16);
	return true;
}

ON_REGIONS(zero_based_windows_end_as_others, IBV_MW_TYPE_1, zero_based)

/* A failed bind: the window is as before, and grants no access to its region. */
static bool bind_fails(struct regions *r, struct ibv_mr *mr, uint64_t at, int access)
{
	uint32_t key = r->mw->rkey;

	MUST_EQ(bind_type1(r, mr, at, 100, access), IBV_WC_MW_BIND_ERR);
	MUST(renew(r->p));
	MUST_REFUSE(r, access & R_WRITE ? WRITE : READ, r->mw->rkey, r->base + at, 8);
	r->mw->rkey = key;
	MUST_OPEN(r, READ, key, r->base + BASE, BYTES);
	return true;
}

static bool refusals(struct regions *r)
{
	MUST_EQ(bind_type1(r, r->full, BASE, BYTES, R_READ), 0);
	/* "must have been registered with IBV_ACCESS_MW_BIND" */
	MUST(bind_fails(r, r->nobind, 0, R_READ));
	/* remote write and atomics need local write */
	MUST(bind_fails(r, r->rdonly, 0, R_WRITE));
	MUST(bind_fails(r, r->rdonly, 0, R_ATOMIC));
	/* bytes that the region does not have */
	MUST(bind_fails(r, r->full, BUF_BYTES - 50, R_READ));
	MUST(bind_fails(r, r->full, (uint64_t)-50, R_READ));
	/* which a region that can only be read is good for */
	MUST_EQ(bind_type1(r, r->rdonly, 0, 100, R_READ), 0);
	MUST_OPEN(r, READ, r->mw->rkey, r->base, 100);
	return true;
}

ON_REGIONS(a_failed_bind_leaves_the_window, IBV_MW_TYPE_1, refusals)

/* ---- type 2 ---- */

/* "ibv_inc_rkey increments the 8 LSB of rkey"; each key lives from its bind to its invalidation. */
static bool generations(struct regions *r)
{
	const uint64_t at = r->base + 64;

	MUST_REFUSE(r, WRITE, r->mw->rkey, at, 8);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t old = r->mw->rkey, key = ibv_inc_rkey(old);

		MUST_EQ(key & ~0xffu, old & ~0xffu);
		MUST_EQ(key & 0xff, (old + 1) & 0xff);
		MUST_EQ(bind_type2(r, key, 64, 128, R_WRITE | R_READ), 0);
		MUST_OPEN(r, WRITE, key, at, 128);
		if (i % 50 == 0) {
			MUST_REFUSE(r, WRITE, old, at, 8);
			MUST_REFUSE(r, WRITE, key, at, 129);
			MUST_OPEN(r, READ, key, at + 36, 92); /* after the QP's reset, too */
		}
		MUST_EQ(invalidate(r, key), 0);
		if (i % 50 == 0)
			MUST_REFUSE(r, WRITE, key, at, 8);
		r->mw->rkey = key;
	}
	return true;
}

ON_REGIONS(type2_keys_come_and_go, IBV_MW_TYPE_2, generations)

/* A window of type 2 is invalidated before it is bound again. */
static bool bound_twice(struct regions *r)
{
	const uint32_t key = ibv_inc_rkey(r->mw->rkey);

	MUST_EQ(bind_type2(r, key, 0, 4096, R_READ), 0);
	MUST_EQ(bind_type2(r, ibv_inc_rkey(key), 0, 100, R_READ), IBV_WC_MW_BIND_ERR);
	MUST(renew(r->p));
	MUST_OPEN(r, READ, key, r->base, 4096);
	MUST_REFUSE(r, READ, ibv_inc_rkey(key), r->base, 8);
	MUST_EQ(ibv_dereg_mr(r->full), EBUSY);
	MUST_EQ(invalidate(r, key), 0);
	return true;
}

ON_REGIONS(type2_is_not_bound_twice, IBV_MW_TYPE_2, bound_twice)

/* A SEND with invalidate of a key that cannot be: refused, and what the key opens stays open. */
static bool send_invalidate_fails(struct pair *p, uint32_t rkey)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 8);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = rkey,
				  .sg_list = &sge, .num_sge = 1 };
	struct ibv_wc wc;
	int status;

	MUST_EQ(post_recv(p, 8, 0, 64), 0);
	status = status_of(p, 0, &wr);
	MUST(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_OP_ERR ||
	     status == IBV_WC_REM_INV_REQ_ERR);
	MUST(wait_wc(p->cq[1], &wc));
	MUST(wc.status != IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 8);
	return renew(p);
}

static bool not_to_be_invalidated(struct regions *r)
{
	struct pair *p = r->p;
	const uint64_t own = (uintptr_t)p->buf[1];

	MUST(send_invalidate_fails(p, ibv_inc_rkey(r->mw->rkey))); /* not bound */
	MUST(send_invalidate_fails(p, p->mr[1]->rkey));		  /* a region's */
	MUST_OPEN(r, WRITE, p->mr[1]->rkey, own, 8);
	MUST_EQ(invalidate(r, p->mr[1]->rkey), IBV_WC_LOC_QP_OP_ERR);
	MUST(renew(p));
	MUST_OPEN(r, WRITE, p->mr[1]->rkey, own, 8);
	return true;
}

ON_REGIONS(only_bound_windows_are_invalidated, IBV_MW_TYPE_2, not_to_be_invalidated)

/* ibv_dealloc_mw(3) of a window that is bound: its key goes with it, its region is free. */
static bool deallocated(struct regions *r)
{
	const uint32_t key = ibv_inc_rkey(r->mw->rkey);

	MUST_EQ(bind_type2(r, key, 0, 64, R_READ), 0);
	MUST_OPEN(r, READ, key, r->base, 64);
	MUST_EQ(ibv_dealloc_mw(r->mw), 0);
	r->mw = NULL;
	MUST_REFUSE(r, READ, key, r->base, 8);
	return true;
}

ON_REGIONS(dealloc_ends_its_key, IBV_MW_TYPE_2, deallocated)

const struct test_case man_cases[] = {
	CASE(opens_its_bytes_for_its_rights),
	CASE(an_old_key_opens_nothing),
	CASE(zero_based_windows_end_as_others),
	CASE(a_failed_bind_leaves_the_window),
	CASE(type2_keys_come_and_go),
	CASE(type2_is_not_bound_twice),
	CASE(only_bound_windows_are_invalidated),
	CASE(dealloc_ends_its_key),
	{ 0 },
};
