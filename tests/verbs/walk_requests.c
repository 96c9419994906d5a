/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of the random walk, and what the model has of them; see walk.h. */
#include "walk.h"

struct range {
	uint64_t va; /* as requests name it */
	uint32_t key, length;
	int mr, mw; /* the key's owner in the model; NONE */
};

static bool mr_suits(int i, int pd, unsigned int right, uint32_t length)
{
	return model.mr[i].pd == pd && (model.mr[i].access & right) == right &&
	       model.mr[i].length >= length;
}

static bool mw_suits(int i, int pd, unsigned int right, uint32_t length)
{
	return model.mw[i].mr != NONE && model.mw[i].pd == pd && model.mw[i].access & right &&
	       model.mw[i].length >= length;
}

/*
 * Bytes for a request of a QP of this PD: mostly of a region or window that has the right, mostly
 * within it, and by its key.
 */
static struct range some_range(uint32_t length, int pd, unsigned int right, bool remote)
{
	struct range r = { .length = length, .mr = NONE, .mw = NONE, .key = walk_draw(1u << 31) };
	uint32_t offset = walk_draw(MEM), room = MEM;
	const bool window = remote && !walk_draw(3), any = !walk_draw(40);

	for (int i = 0; i < 30 && r.mr == NONE && r.mw == NONE; i++) {
		int w = window && i < 20 ? PICK(mw, MWS, true) : NONE, mr = PICK(mr, MRS, true);

		if (w != NONE && (any || mw_suits(w, pd, right, length)))
			r.mw = w, r.mr = model.mw[w].mr;
		else if (mr != NONE && (!window || i >= 20) &&
			 (any || mr_suits(mr, pd, right, length)))
			r.mr = mr;
	}
	if (r.mw != NONE) {
		r.key = model.mw[r.mw].key;
		if (r.mr != NONE)
			offset = model.mw[r.mw].offset, room = model.mw[r.mw].length;
	} else if (r.mr != NONE) {
		r.key = model.mr[r.mr].key;
		offset = model.mr[r.mr].offset;
		room = model.mr[r.mr].length;
	}
	if (walk_draw(40) && room >= length)
		offset += walk_draw(room - length + 1);
	else
		offset += walk_draw(room + 16);
	r.va = (uintptr_t)model.mem + offset;
	if (!walk_draw(80)) {
		r.key ^= 1u << walk_draw(32);
		r.mr = r.mw = NONE;
	}
	return r;
}

static uint32_t offset_of(const struct range *r)
{
	return (uint32_t)(r->va - (uintptr_t)model.mem);
}

static bool within(const struct range *r, uint32_t offset, uint32_t length)
{
	uint32_t at = offset_of(r);

	return at >= offset && at - offset <= length && r->length <= length - (at - offset);
}

static bool local_is_good(int pd, const struct range *r, bool written)
{
	return r->mr != NONE && model.mr[r->mr].o && model.mr[r->mr].pd == pd &&
	       within(r, model.mr[r->mr].offset, model.mr[r->mr].length) &&
	       (!written || model.mr[r->mr].access & IBV_ACCESS_LOCAL_WRITE);
}

/* May QP q's peer do that to it? */
static bool remote_is_good(int q, const struct range *r, unsigned int right)
{
	if (!(model.qp[q].access & right))
		return false;
	if (r->mw != NONE)
		return r->mr != NONE && model.mw[r->mw].pd == model.qp[q].pd &&
		       (model.mw[r->mw].type == IBV_MW_TYPE_1 || model.mw[r->mw].qp == q) &&
		       model.mw[r->mw].access & right &&
		       within(r, model.mw[r->mw].offset, model.mw[r->mw].length);
	return r->mr != NONE && model.mr[r->mr].pd == model.qp[q].pd &&
	       model.mr[r->mr].access & right &&
	       within(r, model.mr[r->mr].offset, model.mr[r->mr].length);
}

int walk_sender(void)
{
	for (int i = 0; i < 20; i++) {
		int q = PICK(qp, QPS, true), p;

		if (q == NONE || model.qp[q].state != IBV_QPS_RTS || model.qp[q].peer == NONE)
			continue;
		p = model.qp[q].peer;
		if (model.qp[p].o && model.qp[p].state == IBV_QPS_RTS && model.qp[p].peer == q)
			return q;
	}
	return NONE;
}

static uint32_t some_length(void)
{
	return 1 + walk_draw(walk_draw(8) ? 200 : MAX);
}

/* The request ends so, and then the QP is in error. */
static void fails(int q, enum ibv_wc_status status)
{
	model.failed++;
	walk_expect(model.qp[q].cq[0], q, model.wr_id, status, 0, 0);
	walk_expect_error(q);
}

/* Its peer refuses the request: both ends are in error. */
static void refused(int q, enum ibv_wc_status status)
{
	int p = model.qp[q].peer;

	fails(q, status);
	walk_expect_error(p);
	walk_alone(q);
	walk_alone(p);
}

bool walk_rdma(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD,
						      IBV_WR_ATOMIC_CMP_AND_SWP };
	static const unsigned int rights[] = { IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
					       IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC };
	static const enum ibv_wc_opcode ends[] = { IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
						   IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP };
	const unsigned int what = walk_draw(4);
	const bool atomic = what > 1;
	const uint32_t length = atomic ? 8 : some_length();
	struct range local, remote;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .opcode = opcodes[what], .sg_list = &sge, .num_sge = 1 }, *bad;
	bool good_local, good_remote;
	int q = walk_sender(), p;
	uint64_t old, new;

	if (q == NONE)
		return true;
	p = model.qp[q].peer;
	local = some_range(length, model.qp[q].pd, what ? IBV_ACCESS_LOCAL_WRITE : 0, false);
	remote = some_range(length, model.qp[p].pd, rights[what], true);
	if (atomic && walk_draw(30))
		remote.va &= ~7ull;
	sge = (struct ibv_sge){ local.va, length, local.key };
	wr.wr_id = ++model.wr_id;
	if (atomic) {
		wr.wr.atomic.remote_addr = remote.va;
		wr.wr.atomic.rkey = remote.key;
		wr.wr.atomic.compare_add = walk_draw(1000);
		wr.wr.atomic.swap = walk_draw(1000);
	} else {
		wr.wr.rdma.remote_addr = remote.va;
		wr.wr.rdma.rkey = remote.key;
	}
	good_local = local_is_good(model.qp[q].pd, &local, what != 0);
	good_remote = remote_is_good(p, &remote, rights[what]);
	MUST_EQ(ibv_post_send(model.qp[q].o, &wr, &bad), 0);
	if (!what && !good_local) {
		fails(q, IBV_WC_LOC_PROT_ERR); /* before anything is sent */
		walk_alone(q);
	} else if (atomic && remote.va % 8) {
		refused(q, IBV_WC_REM_INV_REQ_ERR); /* whatever its key (docs/verbs.md) */
	} else if (!(model.qp[p].access & rights[what])) {
		refused(q, IBV_WC_REM_INV_REQ_ERR);
	} else if (!good_remote) {
		refused(q, IBV_WC_REM_ACCESS_ERR);
	} else if (!atomic) {
		if (good_local)
			memmove(model.want + offset_of(what ? &local : &remote),
				model.want + offset_of(what ? &remote : &local), length);
	} else {
		memcpy(&old, model.want + offset_of(&remote), 8);
		new = what == 2			      ? old + wr.wr.atomic.compare_add :
		      old == wr.wr.atomic.compare_add ? wr.wr.atomic.swap :
							old;
		memcpy(model.want + offset_of(&remote), &new, 8);
		if (good_local)
			memcpy(model.want + offset_of(&local), &old, 8);
	}
	if (what && good_remote && !(atomic && remote.va % 8) && !good_local) {
		fails(q, IBV_WC_LOC_PROT_ERR); /* when the answer comes */
		walk_alone(q);
	}
	if (model.qp[q].state == IBV_QPS_RTS) {
		walk_expect(model.qp[q].cq[0], q, model.wr_id, IBV_WC_SUCCESS, ends[what], length);
		model.done[what]++;
	}
	MUST(walk_settled());
	MUST_EQ(qp_state_now(model.qp[q].o), model.qp[q].state);
	MUST_EQ(qp_state_now(model.qp[p].o), model.qp[p].state);
	return true;
}

bool walk_receive(void)
{
	int q = walk_draw(10) ? walk_sender() : NONE, s;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = ++model.wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct range r;
	struct fifo *f;
	int err = 0;

	if (q == NONE)
		q = PICK(qp, QPS, true);
	if (q == NONE)
		return true;
	s = model.qp[q].srq;
	r = some_range(walk_draw(20) ? 200 + walk_draw(MAX) : some_length(),
		       s == NONE ? model.qp[q].pd : model.srq[s].pd, IBV_ACCESS_LOCAL_WRITE, false);
	sge = (struct ibv_sge){ r.va, r.length, r.key };
	f = s == NONE ? &model.qp[q].fifo : &model.srq[s].fifo;
	if (s == NONE && model.qp[q].state == IBV_QPS_RESET)
		err = EINVAL;
	else if (f->n == DEPTH)
		err = ENOMEM;
	MUST_EQ(s == NONE ? ibv_post_recv(model.qp[q].o, &wr, &bad) :
			    ibv_post_srq_recv(model.srq[s].o, &wr, &bad),
		err);
	if (err)
		MUST(bad == &wr);
	else if (s == NONE && model.qp[q].state == IBV_QPS_ERR)
		walk_expect(model.qp[q].cq[1], q, model.wr_id, IBV_WC_WR_FLUSH_ERR, 0, 0);
	else
		f->r[f->n++] =
			(struct receive){ model.wr_id, r.key, offset_of(&r), r.length, r.mr };
	return walk_settled();
}

/* Is the receive's key still the region's? The region may be deregistered, and its place reused. */
static bool receive_is_good(int pd, const struct receive *r, uint32_t length)
{
	struct range range = { .va = (uintptr_t)model.mem + r->offset,
			       .length = length,
			       .mr = r->mr };

	return r->mr != NONE && model.mr[r->mr].o && model.mr[r->mr].key == r->key &&
	       local_is_good(pd, &range, true);
}

bool walk_send(void)
{
	const uint32_t length = some_length();
	struct range local;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;
	int q = walk_sender(), p, window = NONE;
	struct receive r = { 0 };
	struct fifo *f;
	bool empty;

	if (q == NONE)
		return true;
	p = model.qp[q].peer;
	f = model.qp[p].srq == NONE ? &model.qp[p].fifo : &model.srq[model.qp[p].srq].fifo;
	if (!f->n && walk_draw(20))
		return true;
	local = some_range(length, model.qp[q].pd, 0, false);
	sge = (struct ibv_sge){ local.va, length, local.key };
	for (int i = 0; i < MWS && window == NONE; i++)
		if (model.mw[i].o && model.mw[i].qp == p && !walk_draw(3))
			window = i;
	if (window != NONE) {
		wr.opcode = IBV_WR_SEND_WITH_INV;
		wr.invalidate_rkey = model.mw[window].key;
	}
	wr.wr_id = ++model.wr_id;
	MUST_EQ(ibv_post_send(model.qp[q].o, &wr, &bad), 0);
	if (!local_is_good(model.qp[q].pd, &local, false)) {
		fails(q, IBV_WC_LOC_PROT_ERR);
		walk_alone(q);
		return walk_settled();
	}
	empty = !f->n;
	if (empty) {
		fails(q, IBV_WC_RNR_RETRY_EXC_ERR);
		walk_alone(q);
		return walk_settled();
	}
	r = f->r[0];
	memmove(f->r, f->r + 1, (size_t)--f->n * sizeof(f->r[0]));
	if (r.length < length) {
		walk_expect(model.qp[p].cq[1], p, r.wr_id, IBV_WC_LOC_LEN_ERR, 0, 0);
		refused(q, IBV_WC_REM_INV_REQ_ERR);
	} else if (!receive_is_good(model.qp[p].srq == NONE ? model.qp[p].pd :
							      model.srq[model.qp[p].srq].pd,
				    &r, length)) {
		walk_expect(model.qp[p].cq[1], p, r.wr_id, IBV_WC_LOC_PROT_ERR, 0, 0);
		refused(q, IBV_WC_REM_OP_ERR);
	} else {
		memmove(model.want + r.offset, model.want + offset_of(&local), length);
		walk_expect(model.qp[q].cq[0], q, model.wr_id, IBV_WC_SUCCESS, IBV_WC_SEND, length);
		walk_expect(model.qp[p].cq[1], p, r.wr_id, IBV_WC_SUCCESS, IBV_WC_RECV, length);
		if (window != NONE)
			walk_unbound(window);
		model.done[4]++;
	}
	MUST(walk_settled());
	MUST_EQ(qp_state_now(model.qp[q].o), model.qp[q].state);
	MUST_EQ(qp_state_now(model.qp[p].o), model.qp[p].state);
	return true;
}

/* A window over a part of a region of its PD, by a QP of that PD: it may always be bound. */
bool walk_bind(void)
{
	int q = walk_sender(), w = NONE, r = NONE;
	unsigned int access = walk_draw(3) ? (unsigned int)RIGHTS & ~1u : walk_draw(8) << 1;
	struct ibv_mw_bind_info info = { 0 };
	struct ibv_mw_bind one = { 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;

	for (int i = 0; q != NONE && i < 20 && (w == NONE || r == NONE); i++) {
		int a = PICK(mw, MWS, true), b = PICK(mr, MRS, true);

		if (a != NONE && model.mw[a].pd == model.qp[q].pd)
			w = a;
		if (b != NONE && mr_suits(b, model.qp[q].pd, IBV_ACCESS_MW_BIND, 1))
			r = b;
	}
	if (w == NONE || r == NONE)
		return true;
	if (model.mw[w].type == IBV_MW_TYPE_2 && model.mw[w].mr != NONE) {
		/* bound: it is invalidated, by the QP that it is bound to */
		if (model.mw[w].qp != q)
			return true;
		wr.opcode = IBV_WR_LOCAL_INV;
		wr.invalidate_rkey = model.mw[w].key;
		wr.wr_id = ++model.wr_id;
		MUST_EQ(ibv_post_send(model.qp[q].o, &wr, &bad), 0);
		walk_unbound(w);
		walk_expect(model.qp[q].cq[0], q, model.wr_id, IBV_WC_SUCCESS, IBV_WC_LOCAL_INV, 0);
		return walk_settled();
	}
	if (!(model.mr[r].access & IBV_ACCESS_LOCAL_WRITE))
		access &= IBV_ACCESS_REMOTE_READ;
	info.mr = model.mr[r].o;
	info.length = 1 + walk_draw(model.mr[r].length);
	info.addr = (uintptr_t)model.mem + model.mr[r].offset +
		    walk_draw(model.mr[r].length - (uint32_t)info.length + 1);
	info.mw_access_flags = access;
	model.wr_id++;
	if (model.mw[w].type == IBV_MW_TYPE_1) {
		one.wr_id = model.wr_id;
		one.bind_info = info;
		MUST_EQ(ibv_bind_mw(model.qp[q].o, model.mw[w].o, &one), 0);
		model.mw[w].key = model.mw[w].o->rkey;
	} else {
		wr.wr_id = model.wr_id;
		wr.bind_mw.mw = model.mw[w].o;
		wr.bind_mw.rkey = ibv_inc_rkey(model.mw[w].key);
		wr.bind_mw.bind_info = info;
		MUST_EQ(ibv_post_send(model.qp[q].o, &wr, &bad), 0);
		model.mw[w].key = wr.bind_mw.rkey;
	}
	walk_unbound(w);
	model.mw[w].mr = r;
	model.mr[r].windows++;
	model.mw[w].qp = model.mw[w].type == IBV_MW_TYPE_2 ? q : NONE;
	model.mw[w].offset = (uint32_t)(info.addr - (uintptr_t)model.mem);
	model.mw[w].length = (uint32_t)info.length;
	model.mw[w].access = access;
	walk_expect(model.qp[q].cq[0], q, model.wr_id, IBV_WC_SUCCESS, IBV_WC_BIND_MW, 0);
	model.done[5]++;
	return walk_settled();
}
