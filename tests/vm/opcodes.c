/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both ends of a connection, of which one may be another implementation: each operation of a
 * transport at sizes where packets begin and end, in both directions, one at a time; every byte and
 * every field of a completion is checked.
 *
 *	opcodes [options] CASE [HOST]	without HOST: server, waits for one client
 *
 * CASE: rc, uc, ud; inv (memory windows and SEND with invalidate); rnr (receives that come late);
 * atomics (counters that both ends change all the time); errors. Exit status 1 and a line on
 * standard error if anything was wrong.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../netns/lib/ctl.h"
#include "lib/end.h"

struct run {
	struct end_options end;
	const char *port;
	unsigned int number; /* 0 the server, 1 the client */
	uint32_t rounds;
	int ctl;
	uint32_t step; /* counts barriers; names content */
	uint64_t exchanges, bytes;
};

static void run_open(struct run *run, struct end *e, enum ibv_qp_type type)
{
	end_open(e, &run->end, type);
	ctl_swap(run->ctl, &e->own, &e->peer, sizeof(e->own));
	end_connect(e);
	ctl_barrier(run->ctl, ++run->step);
}

static void run_close(struct run *run, struct end *e)
{
	ctl_barrier(run->ctl, ++run->step);
	end_close(e);
}

static bool takes_receive(enum ibv_wr_opcode op)
{
	return op != IBV_WR_RDMA_WRITE && op != IBV_WR_RDMA_READ &&
	       op != IBV_WR_ATOMIC_CMP_AND_SWP && op != IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_send(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV;
}

static void must_be(const uint8_t *at, uint32_t key, uint32_t len, uint32_t room, const char *what)
{
	uint32_t wrong = end_differs(at, key, len), behind;

	must(wrong == len, "%s of %u bytes is wrong from byte %u on", what, len, wrong);
	behind = end_not_poison(at + len, room - len);
	must(behind == room - len, "%s of %u bytes: byte %u was written too", what, len,
	     len + behind);
}

/* ---- one operation ---- */

static void exchange_prepare(struct run *run, struct end *e, const struct end_request *r,
			     bool is_requester, bool is_late)
{
	memset(e->memory, END_POISON, END_AREAS * END_AREA);
	if (is_requester && r->opcode != IBV_WR_RDMA_READ)
		end_fill(end_at(e, END_LOCAL), run->step, r->len);
	if (!is_requester && r->opcode == IBV_WR_RDMA_READ)
		end_fill(end_at(e, END_SOURCE), run->step, r->len);
	if (!is_requester && takes_receive(r->opcode) && !is_late)
		end_receive(e, run->step, is_send(r->opcode) ? r->len : 0);
}

/* A WRITE over UC completes at its requester before it has arrived: wait for its last byte. */
static void exchange_await_write(struct end *e, const struct end_request *r, uint32_t key)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (end_differs(end_at(e, END_TARGET), key, r->len) != r->len)
		must(now_ms() < end, "a WRITE of %u bytes has not arrived", r->len);
}

static void exchange_verify(struct end *e, const struct end_request *r, uint32_t key,
			    bool is_requester)
{
	uint8_t *receive = end_at(e, END_RECEIVE) + (e->type == IBV_QPT_UD ? END_GRH : 0);

	if (is_requester) {
		must_be(end_at(e, END_LOCAL), key, r->len, END_AREA, "the requester's buffer");
		return;
	}
	if (is_send(r->opcode))
		must_be(receive, key, r->len, END_AREA - END_GRH, "a received message");
	else if (r->opcode == IBV_WR_RDMA_READ)
		must_be(end_at(e, END_SOURCE), key, r->len, END_AREA, "the source of a READ");
	else
		must_be(end_at(e, END_TARGET), key, r->len, END_AREA, "the target of a WRITE");
}

/*
 * Late: the receive is posted when the request is on its way, so that it meets a receiver that is
 * not ready. Polling has the packet looked at first.
 */
static void exchange_receive_late(struct run *run, struct end *e, const struct end_request *r)
{
	struct ibv_wc wc;

	must(!end_poll(e, &wc), "a completion without a receive");
	end_receive(e, run->step, is_send(r->opcode) ? r->len : 0);
}

static void exchange(struct run *run, struct end *e, struct end_request *r, unsigned int requester,
		     bool is_late)
{
	bool is_requester = run->number == requester;
	uint32_t key = ++run->step;
	struct ibv_wc wc;

	r->id = key;
	r->local = (uint64_t)END_LOCAL * END_AREA;
	r->remote = (uint64_t)(r->opcode == IBV_WR_RDMA_READ ? END_SOURCE : END_TARGET) * END_AREA;
	if (r->opcode == IBV_WR_SEND_WITH_IMM || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		r->imm = htonl(0xfeed0000u + key);
	exchange_prepare(run, e, r, is_requester, is_late);
	ctl_barrier(run->ctl, key);
	if (is_requester)
		end_post(e, r);
	if (is_late) {
		ctl_barrier(run->ctl, ~key);
		if (!is_requester)
			exchange_receive_late(run, e, r);
	}
	if (is_requester) {
		end_wait(e, &wc);
		end_judge_request(e, r, &wc);
	} else if (takes_receive(r->opcode)) {
		end_wait(e, &wc);
		end_judge_receive(e, r, key, &wc);
	} else if (e->type == IBV_QPT_UC) {
		exchange_await_write(e, r, key);
	}
	ctl_barrier(run->ctl, ++run->step);
	exchange_verify(e, r, key, is_requester);
	must(!end_poll(e, &wc), "a completion too many: wr_id %#llx, %s",
	     (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
	run->exchanges++;
	run->bytes += r->len;
}

/* ---- atomics, one at a time ---- */

static void exchange_atomic(struct run *run, struct end *e, unsigned int requester, bool is_add,
			    bool is_equal)
{
	uint64_t original = 0x1122334455667788ull + run->step, *cell, result;
	struct end_request r = {
		.opcode = is_add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP,
		.id = run->step + 1,
		.len = 8,
		.local = (uint64_t)END_LOCAL * END_AREA,
		.remote = (uint64_t)END_TARGET * END_AREA + 16,
		.compare_add = is_equal ? original : original + 1,
		.swap = 0xfedcba9876543210ull,
	};
	struct ibv_wc wc;

	++run->step;
	memset(e->memory, END_POISON, END_AREAS * END_AREA);
	cell = (uint64_t *)(end_at(e, END_TARGET) + 16);
	*cell = original;
	ctl_barrier(run->ctl, run->step);
	if (run->number == requester) {
		end_post(e, &r);
		end_wait(e, &wc);
		end_judge_request(e, &r, &wc);
		memcpy(&result, end_at(e, END_LOCAL), 8);
		must(result == original, "an atomic gave %#llx where %#llx was",
		     (unsigned long long)result, (unsigned long long)original);
		must(end_not_poison(end_at(e, END_LOCAL) + 8, END_AREA - 8) == END_AREA - 8,
		     "an atomic wrote more than 8 bytes at its requester");
	}
	ctl_barrier(run->ctl, ++run->step);
	if (run->number != requester) {
		uint64_t want = is_add ? original + r.compare_add : is_equal ? r.swap : original;

		must(*cell == want, "an atomic left %#llx where %#llx is right",
		     (unsigned long long)*cell, (unsigned long long)want);
		*cell = ~0ull / 0xff * END_POISON;
		must(end_not_poison(end_at(e, END_TARGET), END_AREA) == END_AREA,
		     "an atomic changed more than its 8 bytes");
	}
	run->exchanges++;
}

/* ---- the cases ---- */

static void case_transport(struct run *run, enum ibv_qp_type type, const enum ibv_wr_opcode *ops,
			   unsigned int num)
{
	uint32_t m = run->end.path_mtu;
	uint32_t sizes[] = { 0, 1, 2, 3, 64, m - 1, m, m + 1, 2 * m, 3 * m + 2, 10 * m + 3 };
	unsigned int i, k, requester;
	struct end e;

	run_open(run, &e, type);
	for (i = 0; i < num; i++)
		for (k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
			for (requester = 0; requester < 2; requester++) {
				struct end_request r = { .opcode = ops[i], .len = sizes[k] };

				if (type == IBV_QPT_UD && r.len > m)
					continue;
				exchange(run, &e, &r, requester, false);
			}
	for (i = 0; type == IBV_QPT_RC && i < 8; i++)
		exchange_atomic(run, &e, i & 1, i & 2, i & 4);
	run_close(run, &e);
}

static void case_rc(struct run *run)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						  IBV_WR_RDMA_READ };

	case_transport(run, IBV_QPT_RC, ops, 5);
}

static void case_uc(struct run *run)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM };

	case_transport(run, IBV_QPT_UC, ops, 4);
}

static void case_ud(struct run *run)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM };

	case_transport(run, IBV_QPT_UD, ops, 2);
}

static void case_rnr(struct run *run)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_WRITE_WITH_IMM };
	struct end e;

	run_open(run, &e, IBV_QPT_RC);
	for (unsigned int i = 0; i < 12; i++) {
		struct end_request r = { .opcode = ops[i / 2 % 3], .len = i < 6 ? 100 : 5000 };

		exchange(run, &e, &r, i % 2, true);
	}
	run_close(run, &e);
}

/* A window of the responder's, its R_Key by way of the control connection. */
static uint32_t inv_bind(struct run *run, struct end *e, struct ibv_mw *mw, bool is_requester)
{
	struct ibv_send_wr wr = {
		.wr_id = 0xb17d,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw,
			     .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = { .mr = e->mr,
					    .addr = (uintptr_t)end_at(e, END_TARGET),
					    .length = END_AREA,
					    .mw_access_flags = IBV_ACCESS_REMOTE_WRITE } },
	};
	struct ibv_send_wr *bad;
	uint32_t own = 0, theirs;
	struct ibv_wc wc;

	if (!is_requester) {
		errno = ibv_post_send(e->qp, &wr, &bad);
		must(errno == 0, "ibv_post_send of BIND_MW: %s", strerror(errno));
		end_wait(e, &wc);
		must(wc.wr_id == 0xb17d && wc.status == IBV_WC_SUCCESS, "BIND_MW: wr_id %#llx, %s",
		     (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
		own = mw->rkey = wr.bind_mw.rkey;
	}
	ctl_swap(run->ctl, &own, &theirs, sizeof(own));
	return is_requester ? theirs : own;
}

/* WRITE through a window, then invalidate it by a SEND; at last it must be gone. */
static void case_inv(struct run *run)
{
	uint32_t sizes[] = { 0, 7, run->end.path_mtu, 2 * run->end.path_mtu + 1 };
	unsigned int i, requester;
	struct ibv_mw *mw;
	struct ibv_wc wc;
	struct end e;
	uint32_t rkey;

	for (requester = 0; requester < 2; requester++) {
		run_open(run, &e, IBV_QPT_RC);
		mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
		must(mw, "ibv_alloc_mw: %s", strerror(errno));
		for (i = 0, rkey = 0; i < 4; i++) {
			struct end_request w = { .opcode = IBV_WR_RDMA_WRITE, .len = 100 };
			struct end_request s = { .opcode = IBV_WR_SEND_WITH_INV, .len = sizes[i] };

			rkey = w.rkey = s.imm = inv_bind(run, &e, mw, run->number == requester);
			exchange(run, &e, &w, requester, false);
			exchange(run, &e, &s, requester, false);
		}
		if (run->number == requester) {
			struct end_request w = { .opcode = IBV_WR_RDMA_WRITE, .len = 100,
						 .rkey = rkey,
						 .remote = (uint64_t)END_TARGET * END_AREA };

			end_post(&e, &w);
			end_wait(&e, &wc);
			must(wc.status == IBV_WC_REM_ACCESS_ERR, "a window that is gone: %s",
			     ibv_wc_status_str(wc.status));
		}
		ctl_barrier(run->ctl, ++run->step);
		must(end_not_poison(end_at(&e, END_TARGET), END_AREA) == END_AREA,
		     "a window that is gone was written through");
		ctl_barrier(run->ctl, ++run->step);
		errno = ibv_dealloc_mw(mw);
		must(errno == 0, "ibv_dealloc_mw: %s", strerror(errno));
		run_close(run, &e);
	}
}

/* ---- counters under fire: both ends change each other's, some requests always open ---- */

#define OPEN_MOST 4

struct fire {
	uint64_t expected[OPEN_MOST]; /* what request i % OPEN_MOST must return */
	struct end_request r[OPEN_MOST];
	uint64_t counter; /* the peer's, as it will be when all that was posted is done */
	uint32_t posted, done, received;
};

static void fire_post(struct end *e, struct fire *f)
{
	uint32_t i = f->posted++, k = i % OPEN_MOST;
	struct end_request *r = &f->r[k];

	*r = (struct end_request){ .id = i,
				   .len = 8,
				   .local = (uint64_t)END_LOCAL * END_AREA + k * 8,
				   .remote = (uint64_t)END_TARGET * END_AREA };
	f->expected[k] = f->counter;
	switch (i % 5) {
	case 0:
	case 2:
		r->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		r->compare_add = i * 0x10001ull + 1;
		f->counter += r->compare_add;
		break;
	case 1: /* hits */
		r->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		r->compare_add = f->counter;
		r->swap = f->counter = f->counter * 3 + i;
		break;
	case 3: /* misses */
		r->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		r->compare_add = f->counter + 1;
		r->swap = 0xbad;
		break;
	default: /* requests with a plain ACK, between others */
		r->opcode = IBV_WR_SEND;
		r->len = 3000;
		r->local = (uint64_t)END_SOURCE * END_AREA;
		break;
	}
	if (r->len == 8)
		memset(end_at(e, END_LOCAL) + k * 8, END_POISON, 8);
	end_post(e, r);
}

static void fire_complete(struct end *e, struct fire *f, const struct ibv_wc *wc)
{
	uint32_t k = f->done % OPEN_MOST;
	uint64_t got;

	if (wc->wr_id & END_RECEIVE_ID) {
		const struct end_request r = { .opcode = IBV_WR_SEND, .len = 3000 };

		end_judge_receive(e, &r, f->received++, wc);
		end_receive(e, f->received + OPEN_MOST - 1, 3000);
		return;
	}
	end_judge_request(e, &f->r[k], wc);
	memcpy(&got, end_at(e, END_LOCAL) + k * 8, 8);
	must(f->r[k].opcode == IBV_WR_SEND || got == f->expected[k],
	     "atomic %u, opcode %d, gave %#llx where %#llx was", f->done, f->r[k].opcode,
	     (unsigned long long)got, (unsigned long long)f->expected[k]);
	f->done++;
}

static void case_atomics(struct run *run)
{
	uint64_t end, theirs;
	struct fire f = { .counter = 0 };
	struct ibv_wc wc;
	struct end e;

	run_open(run, &e, IBV_QPT_RC);
	*(uint64_t *)end_at(&e, END_TARGET) = 0;
	for (uint32_t i = 0; i < OPEN_MOST; i++)
		end_receive(&e, i, 3000);
	ctl_barrier(run->ctl, ++run->step);
	end = now_ms() + WAIT_MS;
	while (f.done < run->rounds || f.received < run->rounds / 5) {
		while (f.posted < run->rounds && f.posted - f.done < OPEN_MOST)
			fire_post(&e, &f);
		if (end_poll(&e, &wc)) {
			fire_complete(&e, &f, &wc);
			end = now_ms() + WAIT_MS;
		}
		must(now_ms() < end, "nothing for %d ms after %u of %u requests", WAIT_MS, f.done,
		     run->rounds);
	}
	/* the expected value of the peer's counter, from the request that changed it */
	ctl_swap(run->ctl, &f.counter, &theirs, sizeof(theirs));
	must(*(uint64_t *)end_at(&e, END_TARGET) == theirs,
	     "the counter is %#llx where %#llx is right",
	     (unsigned long long)*(uint64_t *)end_at(&e, END_TARGET), (unsigned long long)theirs);
	run->exchanges += f.done;
	run_close(run, &e);
}

/* ---- errors ---- */

struct error_case {
	const char *name;
	struct end_request r;
	uint32_t receive;	/* bytes of the responder's receive; 0 = none is posted */
	bool is_forbidden;	/* an R_Key that is for WRITE alone, or for READ alone */
	enum ibv_wc_status want;
	enum ibv_wc_status rxe; /* Soft-RoCE's status for the requester, if it is wrong */
	bool responder_lives;	/* its QP does not go to error */
};

#define BEYOND ((uint64_t)END_AREAS * END_AREA - 8)

static const struct error_case error_cases[] = {
	{ "a WRITE with a bad key",
	  { .opcode = IBV_WR_RDMA_WRITE, .len = 100, .rkey = 0x7777777 },
	  0,
	  false,
	  IBV_WC_REM_ACCESS_ERR,
	  0,
	  false },
	{ "a READ with a bad key",
	  { .opcode = IBV_WR_RDMA_READ, .len = 100, .rkey = 0x7777777 },
	  0,
	  false,
	  IBV_WC_REM_ACCESS_ERR,
	  0,
	  false },
	{ "an atomic with a bad key",
	  { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .rkey = 0x7777777 },
	  0,
	  false,
	  IBV_WC_REM_ACCESS_ERR,
	  0,
	  false },
	{ "a WRITE past the end",
	  { .opcode = IBV_WR_RDMA_WRITE, .len = 9, .remote = BEYOND },
	  0,
	  false,
	  IBV_WC_REM_ACCESS_ERR,
	  0,
	  false },
	{ "a long WRITE past the end",
	  { .opcode = IBV_WR_RDMA_WRITE, .len = 9000, .remote = BEYOND - 8000 },
	  0,
	  false,
	  IBV_WC_REM_ACCESS_ERR,
	  0,
	  false },
	{ "a READ past the end",
	  { .opcode = IBV_WR_RDMA_READ, .len = 9, .remote = BEYOND },
	  0,
	  false,
	  IBV_WC_REM_ACCESS_ERR,
	  0,
	  false },
	{ "a WRITE without permission",
	  { .opcode = IBV_WR_RDMA_WRITE, .len = 100 },
	  0,
	  true,
	  IBV_WC_REM_ACCESS_ERR,
	  0,
	  false },
	{ "a READ without permission",
	  { .opcode = IBV_WR_RDMA_READ, .len = 100 },
	  0,
	  true,
	  IBV_WC_REM_ACCESS_ERR,
	  0,
	  false },
	{ "a receive that is too short",
	  { .opcode = IBV_WR_SEND, .len = 100 },
	  50,
	  false,
	  IBV_WC_REM_INV_REQ_ERR,
	  IBV_WC_REM_OP_ERR,
	  false },
	{ "no receive at all",
	  { .opcode = IBV_WR_SEND, .len = 100 },
	  0,
	  false,
	  IBV_WC_RNR_RETRY_EXC_ERR,
	  0,
	  true },
};

/* The faulty request, one after it that must be flushed, and the final state of both ends. */
static void error_run(struct run *run, const struct error_case *c, unsigned int requester)
{
	struct end_request r = c->r, behind = { .opcode = IBV_WR_SEND, .id = 2, .len = 10 };
	struct end_options options = run->end;
	uint64_t limit = now_ms() + WAIT_MS;
	uint32_t peer_is_rxe, is_rxe = options.is_rxe;
	struct ibv_wc wc;
	struct end e;

	/* an end to waiting for a receiver that never will be ready */
	run->end.rnr_retry = 2;
	run_open(run, &e, IBV_QPT_RC);
	run->end = options;
	ctl_swap(run->ctl, &is_rxe, &peer_is_rxe, sizeof(is_rxe));
	if (run->number != requester && c->receive)
		end_receive(&e, 1, c->receive);
	ctl_barrier(run->ctl, ++run->step);
	if (run->number == requester) {
		r.id = 1;
		if (c->is_forbidden)
			r.rkey = r.opcode == IBV_WR_RDMA_READ ? e.peer.write_rkey
							      : e.peer.read_rkey;
		end_post(&e, &r);
		end_post(&e, &behind);
		end_wait(&e, &wc);
		must(wc.wr_id == 1, "%s: wr_id %#llx", c->name, (unsigned long long)wc.wr_id);
		must(wc.status == c->want || (peer_is_rxe && c->rxe && wc.status == c->rxe),
		     "%s: %s", c->name, ibv_wc_status_str(wc.status));
		end_wait(&e, &wc);
		must(wc.wr_id == 2 && wc.status == IBV_WC_WR_FLUSH_ERR,
		     "behind %s: wr_id %#llx, %s", c->name, (unsigned long long)wc.wr_id,
		     ibv_wc_status_str(wc.status));
		must(end_state(&e) == IBV_QPS_ERR, "%s leaves state %d", c->name, end_state(&e));
	}
	ctl_barrier(run->ctl, ++run->step);
	if (run->number != requester) {
		enum ibv_qp_state want = c->responder_lives ? IBV_QPS_RTS : IBV_QPS_ERR;

		while (end_state(&e) != want)
			must(now_ms() < limit, "%s leaves its responder in state %d", c->name,
			     end_state(&e));
		must(c->receive ? end_not_poison(e.memory, END_AREA) == END_AREA
				: end_not_poison(e.memory, END_AREAS * END_AREA) ==
					  END_AREAS * END_AREA,
		     "%s changed the responder's memory", c->name);
	}
	run->exchanges++;
	run_close(run, &e);
}

static void case_errors(struct run *run)
{
	for (unsigned int i = 0; i < 2 * sizeof(error_cases) / sizeof(*error_cases); i++)
		error_run(run, &error_cases[i / 2], i % 2);
}

static const struct {
	const char *name;
	void (*run)(struct run *run);
} cases[] = { { "rc", case_rc },   { "uc", case_uc },	    { "ud", case_ud },
	      { "inv", case_inv }, { "rnr", case_rnr },	    { "atomics", case_atomics },
	      { "errors", case_errors } };

static uint32_t number(const char *text, uint32_t most)
{
	char *end;
	unsigned long v = strtoul(text, &end, 0);

	must(*text && !*end && v <= most, "opcodes: '%s' is not a number up to %u", text, most);
	return v;
}

int main(int argc, char **argv)
{
	struct run run = { .end = { .path_mtu = 1024, .timeout = 18, .retry_cnt = 6, .rnr_retry = 7,
				    .psn = 0xfffff0 },
			   .port = "18610",
			   .rounds = 200 };
	unsigned int i;
	int c;

	while ((c = getopt(argc, argv, "d:g:m:n:p:P:T:r")) != -1) {
		switch (c) {
		case 'd': run.end.device = optarg; break;
		case 'g': run.end.gid_index = number(optarg, 255); break;
		case 'm': run.end.path_mtu = number(optarg, 4096); break;
		case 'n': run.rounds = number(optarg, 1000000); break;
		case 'p': run.port = optarg; break;
		case 'P': run.end.psn = number(optarg, 0xffffff); break;
		case 'T': run.end.timeout = number(optarg, 31); break;
		case 'r': run.end.is_rxe = true; break;
		default: return 1;
		}
	}
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (optind < argc && strcmp(argv[optind], cases[i].name) == 0)
			break;
	must(i < sizeof(cases) / sizeof(*cases),
	     "opcodes [-d DEVICE] [-g GID-INDEX] [-m PATH-MTU] [-n ROUNDS] [-p PORT] [-P PSN] "
	     "[-T TIMEOUT] [-r] rc|uc|ud|inv|rnr|atomics|errors [HOST]");
	run.number = argv[optind + 1] != NULL;
	run.end.psn = (run.end.psn + 5 * run.number) & 0xffffff;
	run.ctl = ctl_open(argv[optind + 1], run.port);
	cases[i].run(&run);
	printf("opcodes: %s side %u: %llu exchanges, %llu bytes right\n", cases[i].name, run.number,
	       (unsigned long long)run.exchanges, (unsigned long long)run.bytes);
	close(run.ctl);
	return 0;
}
