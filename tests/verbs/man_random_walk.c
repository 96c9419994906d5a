/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A random walk over the verbs beside a model of them: objects come and go in any order, QPs change
 * their states, and requests name any key, live or stale, in bounds or not. What each call returns,
 * what each completion says, each QP's state and every byte of memory must be the model's.
 *
 * One request is under way at a time. A failure prints the seed and the step: XROCE_WALK_SEED=n
 * walks it again, XROCE_WALK_STEPS says how far.
 */
#include "man.h"

#define PDS   2
#define CQS   3
#define SRQS  2
#define QPS   6
#define MRS   8
#define MWS   6
#define AHS   4
#define DEPTH 4 /* receives a queue */
#define MEM   8192
#define MAX   1024 /* bytes of a message: one packet, so that overlaps are defined */
#define NONE  (-1)
#define RIGHTS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct receive {
	uint64_t wr_id;
	uint32_t key, offset, length;
	int mr; /* whose key it was when it was posted */
};

struct fifo {
	struct receive r[DEPTH];
	int n;
};

/* ---- the model ---- */

static struct model {
	struct {
		struct ibv_pd *o;
		int refs;
	} pd[PDS];
	struct {
		struct ibv_cq *o;
		int refs;
	} cq[CQS];
	struct {
		struct ibv_srq *o;
		int refs, pd;
		struct fifo fifo;
	} srq[SRQS];
	struct {
		struct ibv_mr *o;
		int pd, windows;
		uint32_t offset, length, key;
		unsigned int access;
	} mr[MRS];
	struct {
		struct ibv_mw *o;
		int pd, mr, qp;
		enum ibv_mw_type type;
		uint32_t offset, length, key; /* the key it has or had last */
		unsigned int access;
	} mw[MWS];
	struct {
		struct ibv_ah *o;
		int pd;
	} ah[AHS];
	struct {
		struct ibv_qp *o;
		int pd, cq[2], srq, peer;
		enum ibv_qp_state state;
		unsigned int access;
		struct fifo fifo;
	} qp[QPS];
	uint8_t *mem, *want; /* what is there, what ought to be */
	uint64_t wr_id;
	unsigned long done[8], failed;
} m;

static uint64_t state;

static uint32_t draw(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % n;
}

/* ---- expected completions: a step leaves none behind ---- */

static struct expected {
	int cq;
	uint32_t qpn;
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t byte_len;
	bool met;
} expected[4 * DEPTH];
static int expecting;

static void expect(int cq, int qp, uint64_t wr_id, enum ibv_wc_status status,
		   enum ibv_wc_opcode opcode, uint32_t byte_len)
{
	expected[expecting++] =
		(struct expected){ cq, m.qp[qp].o->qp_num, wr_id, status, opcode, byte_len, false };
}

/* Into ERR: what is posted to the QP's own receive queue is flushed. */
static void expect_error(int q)
{
	struct fifo *f = &m.qp[q].fifo;

	if (m.qp[q].state == IBV_QPS_ERR)
		return;
	m.qp[q].state = IBV_QPS_ERR;
	for (int i = 0; i < f->n; i++)
		expect(m.qp[q].cq[1], q, f->r[i].wr_id, IBV_WC_WR_FLUSH_ERR, 0, 0);
	f->n = 0;
}

static bool met(int cq, const struct ibv_wc *wc)
{
	for (int i = 0; i < expecting; i++) {
		struct expected *e = &expected[i];

		if (e->met || e->cq != cq || e->qpn != wc->qp_num || e->wr_id != wc->wr_id)
			continue;
		MUST_EQ(wc->status, e->status);
		if (e->status == IBV_WC_SUCCESS) {
			MUST_EQ(wc->opcode, e->opcode);
			if (e->opcode == IBV_WC_RECV || e->opcode == IBV_WC_RDMA_READ)
				MUST_EQ(wc->byte_len, e->byte_len);
		}
		e->met = true;
		return true;
	}
	printf("# a completion of %#x, wr_id %llu, status %d, that nobody expects\n", wc->qp_num,
	       (unsigned long long)wc->wr_id, wc->status);
	return false;
}

static bool settled(void)
{
	long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
	struct ibv_wc wc;
	int open = expecting, n;

	while (open > 0) {
		for (int c = 0; c < CQS; c++) {
			if (!m.cq[c].o)
				continue;
			n = ibv_poll_cq(m.cq[c].o, 1, &wc);
			MUST(n >= 0);
			if (n) {
				MUST(met(c, &wc));
				open--;
			}
		}
		MUST(clock_ns(CLOCK_MONOTONIC) < end);
	}
	expecting = 0;
	return true;
}

static bool nothing_else(void)
{
	struct ibv_async_event event;
	struct ibv_wc wc;
	bool known;

	for (int c = 0; c < CQS; c++)
		MUST(!m.cq[c].o || !ibv_poll_cq(m.cq[c].o, 1, &wc) || met(c, &wc));
	while (!ibv_get_async_event(ctx, &event)) {
		known = false;
		for (int q = 0; q < QPS; q++)
			known |= m.qp[q].o && m.qp[q].o == event.element.qp;
		ibv_ack_async_event(&event);
		MUST(known);
	}
	MUST_EQ(memcmp(m.mem, m.want, MEM), 0);
	return true;
}

/* ---- objects ---- */

/* A slot of a pool whose object is there, or is not; NONE. */
#define PICK(pool, count, there)                                                                   \
	({                                                                                         \
		int at_ = (int)draw(count), i_;                                                    \
		for (i_ = 0; i_ < (count); i_++, at_ = (at_ + 1) % (count))                        \
			if (!m.pool[at_].o == !(there))                                            \
				break;                                                             \
		i_ < (count) ? at_ : NONE;                                                         \
	})

static bool walk_pd(void)
{
	int i = PICK(pd, PDS, draw(2));

	if (i == NONE)
		return true;
	if (!m.pd[i].o) {
		MUST(m.pd[i].o = ibv_alloc_pd(ctx));
		return true;
	}
	MUST_EQ(ibv_dealloc_pd(m.pd[i].o), m.pd[i].refs ? EBUSY : 0);
	if (!m.pd[i].refs)
		m.pd[i].o = NULL;
	return true;
}

static bool walk_cq(void)
{
	int i = PICK(cq, CQS, draw(2));

	if (i == NONE)
		return true;
	if (!m.cq[i].o) {
		MUST(m.cq[i].o = ibv_create_cq(ctx, 4 * DEPTH * QPS, NULL, NULL, 0));
		return true;
	}
	if (draw(3)) {
		MUST_EQ(ibv_resize_cq(m.cq[i].o, (int)(64 + draw(200))), 0);
		return true;
	}
	MUST_EQ(ibv_destroy_cq(m.cq[i].o), m.cq[i].refs ? EBUSY : 0);
	if (!m.cq[i].refs)
		m.cq[i].o = NULL;
	return true;
}

static bool walk_srq(void)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	int i = PICK(srq, SRQS, draw(2)), pd = PICK(pd, PDS, true);

	if (i == NONE || pd == NONE)
		return true;
	if (!m.srq[i].o) {
		MUST(m.srq[i].o = ibv_create_srq(m.pd[pd].o, &a));
		m.srq[i].pd = pd;
		m.srq[i].fifo.n = 0;
		m.pd[pd].refs++;
		return true;
	}
	MUST_EQ(ibv_destroy_srq(m.srq[i].o), m.srq[i].refs ? EBUSY : 0);
	if (!m.srq[i].refs) {
		m.srq[i].o = NULL;
		m.pd[m.srq[i].pd].refs--;
	}
	return true;
}

static bool walk_ah(void)
{
	struct ibv_ah_attr self = own_address();
	int i = PICK(ah, AHS, draw(2)), pd = PICK(pd, PDS, true);

	if (i == NONE || pd == NONE)
		return true;
	if (m.ah[i].o) {
		MUST_EQ(ibv_destroy_ah(m.ah[i].o), 0);
		m.ah[i].o = NULL;
		m.pd[m.ah[i].pd].refs--;
		return true;
	}
	MUST(m.ah[i].o = ibv_create_ah(m.pd[pd].o, &self));
	m.ah[i].pd = pd;
	m.pd[pd].refs++;
	return true;
}

static bool walk_mr(void)
{
	int i = PICK(mr, MRS, draw(3)), pd = PICK(pd, PDS, true);
	unsigned int access = draw(3) ? (unsigned int)RIGHTS : draw(16);
	uint32_t offset = draw(draw(2) ? MEM / 4 : MEM), length = 1 + draw(MEM - offset);

	if (i == NONE || pd == NONE)
		return true;
	if (m.mr[i].o) {
		MUST_EQ(ibv_dereg_mr(m.mr[i].o), m.mr[i].windows ? EBUSY : 0);
		if (!m.mr[i].windows) {
			m.mr[i].o = NULL;
			m.pd[m.mr[i].pd].refs--;
		}
		return true;
	}
	access |= (draw(2) ? (unsigned int)IBV_ACCESS_MW_BIND : 0) |
		  (draw(4) ? 0 : (unsigned int)IBV_ACCESS_ON_DEMAND);
	/* ibv_reg_mr(3): remote write and remote atomic need local write */
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE)) {
		MUST_FAIL(ibv_reg_mr(m.pd[pd].o, m.mem + offset, length, (int)access), EINVAL);
		return true;
	}
	MUST(m.mr[i].o = ibv_reg_mr(m.pd[pd].o, m.mem + offset, length, (int)access));
	MUST_EQ(m.mr[i].o->lkey, m.mr[i].o->rkey);
	m.mr[i].pd = pd;
	m.mr[i].windows = 0;
	m.mr[i].offset = offset;
	m.mr[i].length = length;
	m.mr[i].key = m.mr[i].o->rkey;
	m.mr[i].access = access;
	m.pd[pd].refs++;
	return true;
}

static void unbound(int i)
{
	if (m.mw[i].mr != NONE)
		m.mr[m.mw[i].mr].windows--;
	m.mw[i].mr = m.mw[i].qp = NONE;
}

static bool drop_mw(int i)
{
	MUST_EQ(ibv_dealloc_mw(m.mw[i].o), 0);
	unbound(i);
	m.mw[i].o = NULL;
	m.pd[m.mw[i].pd].refs--;
	return true;
}

static bool walk_mw(void)
{
	int i = PICK(mw, MWS, draw(3)), pd = PICK(pd, PDS, true);

	if (i == NONE || pd == NONE)
		return true;
	if (m.mw[i].o)
		return drop_mw(i);
	m.mw[i].type = draw(2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	MUST(m.mw[i].o = ibv_alloc_mw(m.pd[pd].o, m.mw[i].type));
	m.mw[i].pd = pd;
	m.mw[i].mr = m.mw[i].qp = NONE;
	m.mw[i].key = m.mw[i].o->rkey;
	m.pd[pd].refs++;
	return true;
}

/* ---- queue pairs ---- */

static bool create_qp(int i)
{
	int pd = PICK(pd, PDS, true), send = PICK(cq, CQS, true), recv = PICK(cq, CQS, true);
	int srq = draw(3) ? NONE : PICK(srq, SRQS, true);
	struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_RC,
				      .cap = { DEPTH, DEPTH, 1, 1, 0 },
				      .sq_sig_all = 1 };

	if (pd == NONE || send == NONE)
		return true;
	a.send_cq = m.cq[send].o;
	a.recv_cq = m.cq[recv].o;
	a.srq = srq == NONE ? NULL : m.srq[srq].o;
	MUST(m.qp[i].o = ibv_create_qp(m.pd[pd].o, &a));
	m.qp[i].pd = pd;
	m.qp[i].cq[0] = send;
	m.qp[i].cq[1] = recv;
	m.qp[i].srq = srq;
	m.qp[i].state = IBV_QPS_RESET;
	m.qp[i].peer = NONE;
	m.qp[i].fifo.n = 0;
	m.pd[pd].refs++;
	m.cq[send].refs++;
	m.cq[recv].refs++;
	if (srq != NONE)
		m.srq[srq].refs++;
	return true;
}

static void alone(int i)
{
	for (int q = 0; q < QPS; q++)
		if (m.qp[q].peer == i)
			m.qp[q].peer = NONE;
	m.qp[i].peer = NONE;
}

/* Type 2 windows that are bound to it go first. */
static bool drop_windows(int qp)
{
	for (int i = 0; i < MWS; i++)
		MUST(!m.mw[i].o || m.mw[i].qp != qp || drop_mw(i));
	return true;
}

static bool destroy_qp(int i)
{
	MUST(drop_windows(i));
	MUST_EQ(ibv_destroy_qp(m.qp[i].o), 0);
	m.qp[i].o = NULL;
	alone(i);
	m.pd[m.qp[i].pd].refs--;
	m.cq[m.qp[i].cq[0]].refs--;
	m.cq[m.qp[i].cq[1]].refs--;
	if (m.qp[i].srq != NONE)
		m.srq[m.qp[i].srq].refs--;
	return true;
}

static int to_init(int i)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	m.qp[i].access = draw(3) ? (unsigned int)RIGHTS & ~1u : draw(8) << 1;
	a.qp_access_flags = m.qp[i].access;
	return ibv_modify_qp(m.qp[i].o, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/*
 * Two of them, from wherever they are. Not one to itself: a request that it refuses has it in error
 * before the answer comes.
 */
static bool connect_qps(void)
{
	int a = PICK(qp, QPS, true), b = PICK(qp, QPS, true);
	const int end[2] = { a, b };

	if (a == NONE || a == b)
		return true;
	for (int i = 0; i < 2; i++) {
		MUST(drop_windows(end[i]));
		MUST_EQ(qp_to_state(m.qp[end[i]].o, IBV_QPS_RESET), 0);
		m.qp[end[i]].state = IBV_QPS_RESET;
		m.qp[end[i]].fifo.n = 0;
		alone(end[i]);
	}
	for (int i = 0; i < 2; i++)
		MUST_EQ(to_init(end[i]), 0);
	for (int i = 0; i < 2; i++) {
		/* without a receive there is an answer at once: no retry */
		MUST_EQ(qp_to_rts(m.qp[end[i]].o, m.qp[end[!i]].o->qp_num, 0), 0);
		m.qp[end[i]].state = IBV_QPS_RTS;
		m.qp[end[i]].peer = end[!i];
	}
	return true;
}

static bool walk_qp(void)
{
	static const enum ibv_qp_state illegal[] = { IBV_QPS_RTS, IBV_QPS_RTR };
	int i = PICK(qp, QPS, draw(4));

	if (i == NONE)
		return true;
	if (!m.qp[i].o)
		return create_qp(i);
	switch (draw(4)) {
	case 0:
		return destroy_qp(i);
	case 1:
		/* these need attributes, and an earlier state */
		if (m.qp[i].state != IBV_QPS_RTS)
			MUST_EQ(qp_to_state(m.qp[i].o, illegal[draw(2)]), EINVAL);
		break;
	case 2:
		expect_error(i);
		MUST_EQ(qp_to_state(m.qp[i].o, IBV_QPS_ERR), 0);
		alone(i);
		MUST(settled());
		break;
	case 3:
		return connect_qps();
	}
	MUST_EQ(qp_state_now(m.qp[i].o), m.qp[i].state);
	return true;
}

/* ---- requests ---- */

struct range {
	uint64_t va; /* as requests name it */
	uint32_t key, length;
	int mr, mw; /* whose key it is, as the model knows it; NONE */
};

static bool mr_suits(int i, int pd, unsigned int right, uint32_t length)
{
	return m.mr[i].pd == pd && (m.mr[i].access & right) == right && m.mr[i].length >= length;
}

static bool mw_suits(int i, int pd, unsigned int right, uint32_t length)
{
	return m.mw[i].mr != NONE && m.mw[i].pd == pd && m.mw[i].access & right &&
	       m.mw[i].length >= length;
}

/*
 * Bytes for a request of a QP of this PD: mostly of a region or window that has the right, mostly
 * within it, and by its key.
 */
static struct range some_range(uint32_t length, int pd, unsigned int right, bool remote)
{
	struct range r = { .length = length, .mr = NONE, .mw = NONE, .key = draw(1u << 31) };
	uint32_t offset = draw(MEM), room = MEM;
	const bool window = remote && !draw(3), any = !draw(40);

	for (int i = 0; i < 30 && r.mr == NONE && r.mw == NONE; i++) {
		int w = window && i < 20 ? PICK(mw, MWS, true) : NONE, mr = PICK(mr, MRS, true);

		if (w != NONE && (any || mw_suits(w, pd, right, length)))
			r.mw = w, r.mr = m.mw[w].mr;
		else if (mr != NONE && (!window || i >= 20) &&
			 (any || mr_suits(mr, pd, right, length)))
			r.mr = mr;
	}
	if (r.mw != NONE) {
		r.key = m.mw[r.mw].key;
		if (r.mr != NONE)
			offset = m.mw[r.mw].offset, room = m.mw[r.mw].length;
	} else if (r.mr != NONE) {
		r.key = m.mr[r.mr].key;
		offset = m.mr[r.mr].offset;
		room = m.mr[r.mr].length;
	}
	if (draw(40) && room >= length)
		offset += draw(room - length + 1);
	else
		offset += draw(room + 16);
	r.va = (uintptr_t)m.mem + offset;
	if (!draw(80)) {
		r.key ^= 1u << draw(32);
		r.mr = r.mw = NONE;
	}
	return r;
}

static uint32_t offset_of(const struct range *r)
{
	return (uint32_t)(r->va - (uintptr_t)m.mem);
}

static bool within(const struct range *r, uint32_t offset, uint32_t length)
{
	uint32_t at = offset_of(r);

	return at >= offset && at - offset <= length && r->length <= length - (at - offset);
}

static bool local_is_good(int pd, const struct range *r, bool written)
{
	return r->mr != NONE && m.mr[r->mr].o && m.mr[r->mr].pd == pd &&
	       within(r, m.mr[r->mr].offset, m.mr[r->mr].length) &&
	       (!written || m.mr[r->mr].access & IBV_ACCESS_LOCAL_WRITE);
}

/* May QP q's peer do that to it? */
static bool remote_is_good(int q, const struct range *r, unsigned int right)
{
	if (!(m.qp[q].access & right))
		return false;
	if (r->mw != NONE)
		return r->mr != NONE && m.mw[r->mw].pd == m.qp[q].pd &&
		       (m.mw[r->mw].type == IBV_MW_TYPE_1 || m.mw[r->mw].qp == q) &&
		       m.mw[r->mw].access & right &&
		       within(r, m.mw[r->mw].offset, m.mw[r->mw].length);
	return r->mr != NONE && m.mr[r->mr].pd == m.qp[q].pd && m.mr[r->mr].access & right &&
	       within(r, m.mr[r->mr].offset, m.mr[r->mr].length);
}

/* A QP whose requests are answered. */
static int sender(void)
{
	for (int i = 0; i < 20; i++) {
		int q = PICK(qp, QPS, true), p;

		if (q == NONE || m.qp[q].state != IBV_QPS_RTS || m.qp[q].peer == NONE)
			continue;
		p = m.qp[q].peer;
		if (m.qp[p].o && m.qp[p].state == IBV_QPS_RTS && m.qp[p].peer == q)
			return q;
	}
	return NONE;
}

static uint32_t some_length(void)
{
	return 1 + draw(draw(8) ? 200 : MAX);
}

/* The request ends so, and then the QP is in error. */
static void fails(int q, enum ibv_wc_status status)
{
	m.failed++;
	expect(m.qp[q].cq[0], q, m.wr_id, status, 0, 0);
	expect_error(q);
}

/* Its peer refuses the request: both ends are in error. */
static void refused(int q, enum ibv_wc_status status)
{
	int p = m.qp[q].peer;

	fails(q, status);
	expect_error(p);
	alone(q);
	alone(p);
}

static bool walk_rdma(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD,
						      IBV_WR_ATOMIC_CMP_AND_SWP };
	static const unsigned int rights[] = { IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
					       IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC };
	static const enum ibv_wc_opcode ends[] = { IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
						   IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP };
	const unsigned int what = draw(4);
	const bool atomic = what > 1;
	const uint32_t length = atomic ? 8 : some_length();
	struct range local, remote;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .opcode = opcodes[what], .sg_list = &sge, .num_sge = 1 }, *bad;
	bool good_local, good_remote;
	int q = sender(), p;
	uint64_t old, new;

	if (q == NONE)
		return true;
	p = m.qp[q].peer;
	local = some_range(length, m.qp[q].pd, what ? IBV_ACCESS_LOCAL_WRITE : 0, false);
	remote = some_range(length, m.qp[p].pd, rights[what], true);
	if (atomic && draw(30))
		remote.va &= ~7ull;
	sge = (struct ibv_sge){ local.va, length, local.key };
	wr.wr_id = ++m.wr_id;
	if (atomic) {
		wr.wr.atomic.remote_addr = remote.va;
		wr.wr.atomic.rkey = remote.key;
		wr.wr.atomic.compare_add = draw(1000);
		wr.wr.atomic.swap = draw(1000);
	} else {
		wr.wr.rdma.remote_addr = remote.va;
		wr.wr.rdma.rkey = remote.key;
	}
	good_local = local_is_good(m.qp[q].pd, &local, what != 0);
	good_remote = remote_is_good(p, &remote, rights[what]);
	MUST_EQ(ibv_post_send(m.qp[q].o, &wr, &bad), 0);
	if (!what && !good_local) {
		fails(q, IBV_WC_LOC_PROT_ERR); /* before anything is sent */
		alone(q);
	} else if (atomic && remote.va % 8) {
		refused(q, IBV_WC_REM_INV_REQ_ERR); /* whatever its key (docs/verbs.md) */
	} else if (!(m.qp[p].access & rights[what])) {
		refused(q, IBV_WC_REM_INV_REQ_ERR);
	} else if (!good_remote) {
		refused(q, IBV_WC_REM_ACCESS_ERR);
	} else if (!atomic) {
		if (good_local)
			memmove(m.want + offset_of(what ? &local : &remote),
				m.want + offset_of(what ? &remote : &local), length);
	} else {
		memcpy(&old, m.want + offset_of(&remote), 8);
		new = what == 2			      ? old + wr.wr.atomic.compare_add :
		      old == wr.wr.atomic.compare_add ? wr.wr.atomic.swap :
							old;
		memcpy(m.want + offset_of(&remote), &new, 8);
		if (good_local)
			memcpy(m.want + offset_of(&local), &old, 8);
	}
	if (what && good_remote && !(atomic && remote.va % 8) && !good_local) {
		fails(q, IBV_WC_LOC_PROT_ERR); /* when the answer comes */
		alone(q);
	}
	if (m.qp[q].state == IBV_QPS_RTS) {
		expect(m.qp[q].cq[0], q, m.wr_id, IBV_WC_SUCCESS, ends[what], length);
		m.done[what]++;
	}
	MUST(settled());
	MUST_EQ(qp_state_now(m.qp[q].o), m.qp[q].state);
	MUST_EQ(qp_state_now(m.qp[p].o), m.qp[p].state);
	return true;
}

static bool walk_receive(void)
{
	int q = draw(10) ? sender() : NONE, s;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = ++m.wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct range r;
	struct fifo *f;
	int err = 0;

	if (q == NONE)
		q = PICK(qp, QPS, true);
	if (q == NONE)
		return true;
	s = m.qp[q].srq;
	r = some_range(draw(20) ? 200 + draw(MAX) : some_length(),
		       s == NONE ? m.qp[q].pd : m.srq[s].pd, IBV_ACCESS_LOCAL_WRITE, false);
	sge = (struct ibv_sge){ r.va, r.length, r.key };
	f = s == NONE ? &m.qp[q].fifo : &m.srq[s].fifo;
	if (s == NONE && m.qp[q].state == IBV_QPS_RESET)
		err = EINVAL;
	else if (f->n == DEPTH)
		err = ENOMEM;
	MUST_EQ(s == NONE ? ibv_post_recv(m.qp[q].o, &wr, &bad) :
			    ibv_post_srq_recv(m.srq[s].o, &wr, &bad),
		err);
	if (err)
		MUST(bad == &wr);
	else if (s == NONE && m.qp[q].state == IBV_QPS_ERR)
		expect(m.qp[q].cq[1], q, m.wr_id, IBV_WC_WR_FLUSH_ERR, 0, 0);
	else
		f->r[f->n++] = (struct receive){ m.wr_id, r.key, offset_of(&r), r.length, r.mr };
	return settled();
}

/* Is the receive's key still the region's? It may have gone, and another come into its place. */
static bool receive_is_good(int pd, const struct receive *r, uint32_t length)
{
	struct range range = { .va = (uintptr_t)m.mem + r->offset, .length = length, .mr = r->mr };

	return r->mr != NONE && m.mr[r->mr].o && m.mr[r->mr].key == r->key &&
	       local_is_good(pd, &range, true);
}

static bool walk_send(void)
{
	const uint32_t length = some_length();
	struct range local;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;
	int q = sender(), p, window = NONE;
	struct receive r = { 0 };
	struct fifo *f;
	bool empty;

	if (q == NONE)
		return true;
	p = m.qp[q].peer;
	f = m.qp[p].srq == NONE ? &m.qp[p].fifo : &m.srq[m.qp[p].srq].fifo;
	if (!f->n && draw(20))
		return true;
	local = some_range(length, m.qp[q].pd, 0, false);
	sge = (struct ibv_sge){ local.va, length, local.key };
	for (int i = 0; i < MWS && window == NONE; i++)
		if (m.mw[i].o && m.mw[i].qp == p && !draw(3))
			window = i;
	if (window != NONE) {
		wr.opcode = IBV_WR_SEND_WITH_INV;
		wr.invalidate_rkey = m.mw[window].key;
	}
	wr.wr_id = ++m.wr_id;
	MUST_EQ(ibv_post_send(m.qp[q].o, &wr, &bad), 0);
	if (!local_is_good(m.qp[q].pd, &local, false)) {
		fails(q, IBV_WC_LOC_PROT_ERR);
		alone(q);
		return settled();
	}
	empty = !f->n;
	if (empty) {
		fails(q, IBV_WC_RNR_RETRY_EXC_ERR);
		alone(q);
		return settled();
	}
	r = f->r[0];
	memmove(f->r, f->r + 1, (size_t)--f->n * sizeof(f->r[0]));
	if (r.length < length) {
		expect(m.qp[p].cq[1], p, r.wr_id, IBV_WC_LOC_LEN_ERR, 0, 0);
		refused(q, IBV_WC_REM_INV_REQ_ERR);
	} else if (!receive_is_good(m.qp[p].srq == NONE ? m.qp[p].pd : m.srq[m.qp[p].srq].pd, &r,
				    length)) {
		expect(m.qp[p].cq[1], p, r.wr_id, IBV_WC_LOC_PROT_ERR, 0, 0);
		refused(q, IBV_WC_REM_OP_ERR);
	} else {
		memmove(m.want + r.offset, m.want + offset_of(&local), length);
		expect(m.qp[q].cq[0], q, m.wr_id, IBV_WC_SUCCESS, IBV_WC_SEND, length);
		expect(m.qp[p].cq[1], p, r.wr_id, IBV_WC_SUCCESS, IBV_WC_RECV, length);
		if (window != NONE)
			unbound(window);
		m.done[4]++;
	}
	MUST(settled());
	MUST_EQ(qp_state_now(m.qp[q].o), m.qp[q].state);
	MUST_EQ(qp_state_now(m.qp[p].o), m.qp[p].state);
	return true;
}

/* A window over a part of a region of its PD, by a QP of that PD: it may always be bound. */
static bool walk_bind(void)
{
	int q = sender(), w = NONE, r = NONE;
	unsigned int access = draw(3) ? (unsigned int)RIGHTS & ~1u : draw(8) << 1;
	struct ibv_mw_bind_info info = { 0 };
	struct ibv_mw_bind one = { 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;

	for (int i = 0; q != NONE && i < 20 && (w == NONE || r == NONE); i++) {
		int a = PICK(mw, MWS, true), b = PICK(mr, MRS, true);

		if (a != NONE && m.mw[a].pd == m.qp[q].pd)
			w = a;
		if (b != NONE && mr_suits(b, m.qp[q].pd, IBV_ACCESS_MW_BIND, 1))
			r = b;
	}
	if (w == NONE || r == NONE)
		return true;
	if (m.mw[w].type == IBV_MW_TYPE_2 && m.mw[w].mr != NONE) {
		/* bound: it is invalidated, by the QP that it is bound to */
		if (m.mw[w].qp != q)
			return true;
		wr.opcode = IBV_WR_LOCAL_INV;
		wr.invalidate_rkey = m.mw[w].key;
		wr.wr_id = ++m.wr_id;
		MUST_EQ(ibv_post_send(m.qp[q].o, &wr, &bad), 0);
		unbound(w);
		expect(m.qp[q].cq[0], q, m.wr_id, IBV_WC_SUCCESS, IBV_WC_LOCAL_INV, 0);
		return settled();
	}
	if (!(m.mr[r].access & IBV_ACCESS_LOCAL_WRITE))
		access &= IBV_ACCESS_REMOTE_READ;
	info.mr = m.mr[r].o;
	info.length = 1 + draw(m.mr[r].length);
	info.addr = (uintptr_t)m.mem + m.mr[r].offset +
		    draw(m.mr[r].length - (uint32_t)info.length + 1);
	info.mw_access_flags = access;
	m.wr_id++;
	if (m.mw[w].type == IBV_MW_TYPE_1) {
		one.wr_id = m.wr_id;
		one.bind_info = info;
		MUST_EQ(ibv_bind_mw(m.qp[q].o, m.mw[w].o, &one), 0);
		m.mw[w].key = m.mw[w].o->rkey;
	} else {
		wr.wr_id = m.wr_id;
		wr.bind_mw.mw = m.mw[w].o;
		wr.bind_mw.rkey = ibv_inc_rkey(m.mw[w].key);
		wr.bind_mw.bind_info = info;
		MUST_EQ(ibv_post_send(m.qp[q].o, &wr, &bad), 0);
		m.mw[w].key = wr.bind_mw.rkey;
	}
	unbound(w);
	m.mw[w].mr = r;
	m.mr[r].windows++;
	m.mw[w].qp = m.mw[w].type == IBV_MW_TYPE_2 ? q : NONE;
	m.mw[w].offset = (uint32_t)(info.addr - (uintptr_t)m.mem);
	m.mw[w].length = (uint32_t)info.length;
	m.mw[w].access = access;
	expect(m.qp[q].cq[0], q, m.wr_id, IBV_WC_SUCCESS, IBV_WC_BIND_MW, 0);
	m.done[5]++;
	return settled();
}

/* ---- the walk ---- */

static bool step(void)
{
	static bool (*const objects[])(void) = { walk_pd, walk_cq, walk_srq, walk_ah, walk_mr,
						 walk_mr, walk_mw, walk_qp,  walk_qp, connect_qps };
	static bool (*const work[])(void) = { walk_rdma,    walk_rdma,	  walk_send,
					      walk_receive, walk_receive, walk_bind };

	if (!draw(3) && sender() == NONE)
		return connect_qps();
	return draw(12) ? work[draw(sizeof(work) / sizeof(*work))]() :
			  objects[draw(sizeof(objects) / sizeof(*objects))]();
}

static bool walk_end(void)
{
	for (int i = 0; i < QPS; i++)
		MUST(!m.qp[i].o || destroy_qp(i));
	for (int i = 0; i < MWS; i++)
		MUST(!m.mw[i].o || drop_mw(i));
	for (int i = 0; i < MRS; i++)
		MUST(!m.mr[i].o || !ibv_dereg_mr(m.mr[i].o));
	for (int i = 0; i < AHS; i++)
		MUST(!m.ah[i].o || !ibv_destroy_ah(m.ah[i].o));
	for (int i = 0; i < SRQS; i++)
		MUST(!m.srq[i].o || !ibv_destroy_srq(m.srq[i].o));
	for (int i = 0; i < CQS; i++)
		MUST(!m.cq[i].o || !ibv_destroy_cq(m.cq[i].o));
	for (int i = 0; i < PDS; i++)
		MUST(!m.pd[i].o || !ibv_dealloc_pd(m.pd[i].o));
	free(m.mem);
	free(m.want);
	return true;
}

static bool walk(uint64_t seed, unsigned long steps)
{
	state = seed * 0x9e3779b97f4a7c15ull + 1;
	memset(&m, 0, sizeof(m));
	expecting = 0;
	MUST((m.mem = aligned_alloc(4096, MEM)) && (m.want = malloc(MEM)));
	for (int i = 0; i < MEM; i++)
		m.mem[i] = m.want[i] = (uint8_t)(i * 7);
	MUST(set_nonblocking(ctx->async_fd, true));
	for (unsigned long i = 0; i < steps; i++) {
		if (step() && nothing_else())
			continue;
		printf("# XROCE_WALK_SEED=%llu, step %lu\n", (unsigned long long)seed, i);
		return false;
	}
	MUST(set_nonblocking(ctx->async_fd, false));
	printf("# done: %lu WRITE, %lu READ, %lu and %lu atomics, %lu SEND, %lu windows; %lu "
	       "failed\n",
	       m.done[0], m.done[1], m.done[2], m.done[3], m.done[4], m.done[5], m.failed);
	/* or it has shown nothing */
	for (int i = 0; i < 6 && steps >= 10000; i++)
		MUST(m.done[i] > steps / 1000);
	return walk_end();
}

static bool the_model_is_right(void)
{
	const char *seed = getenv("XROCE_WALK_SEED"), *steps = getenv("XROCE_WALK_STEPS");

	if (seed)
		return walk(strtoull(seed, NULL, 0), steps ? strtoul(steps, NULL, 0) : 20000);
	for (uint64_t s = 1; s <= 5; s++)
		MUST(walk(s, steps ? strtoul(steps, NULL, 0) : 20000));
	return true;
}

const struct test_case man_cases[] = {
	CASE(the_model_is_right),
	{ 0 },
};
