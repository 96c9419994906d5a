/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that the processor accesses while peers read and write it (docs/memory.md): words are not
 * torn, messages arrive in byte order, atomics are atomic. Jobs are drawn from a seed
 * (words/job.c); the memory is checked, or changed, after each instruction of a thread that posts
 * and polls (words/watch.c). Also judged: each completion, each byte, bytes around a message.
 *
 *	words [-d DEVICE] [-g GID-INDEX] [-s SEED] [-n JOBS] [-j JOB] [-m MTU] [-L] [-t] [-l] [HOST]
 *
 *	-j	this job alone
 *	-m	longest path MTU, in bytes
 *	-L	both ends in this process
 *	-t	a thread looks, instead of steps
 *	-l	packets may be lost, doubled or overtaken on the way: UC and UD need not deliver
 *		all messages, nor in order
 *
 * The end with HOST requests, the other one responds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "words/job.h"
#include "words/watch.h"

#define PORT	     "18660"
#define POISON	     0xa5
#define LATE	     0x5a
#define QKEY	     0x11111111
#define PSN	     0xfffffa /* wraps soon */
#define IOVA_AT	     0x700000000000ull
#define DEPTH	     32
#define SETTLE_MS    30 /* after which a UC or UD packet has arrived, or is lost */
#define DUPLICATE_MS 5
#define ALL                                                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

enum { SERVER, CLIENT };

/* What the ends tell each other: `base` is the address of the offset 0 of their memory. */
struct address {
	union ibv_gid gid;
	uint64_t base;
	uint32_t qpn, rkey, srqn;
};

struct party {
	int number, ctl;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *null;
	uint8_t *memory;
	uint64_t bytes;
	/* of a job */
	struct job *j;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	uint64_t base;
	struct address own, peer;
	uint32_t received, completed; /* messages */
	uint64_t value;		      /* of an atomic or READ of its word: the last one */
};

static const char *device, *host;
static int gid_index;
static uint64_t seed = 1;
static uint32_t jobs = 40, limit = 4096;
static int only = -1;
static bool is_loop, steps = true, loses;

#define need(p, condition, ...)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			job_print((p)->j);                                                         \
			die(__VA_ARGS__);                                                          \
		}                                                                                  \
	} while (0)

/* ---- objects ---- */

static void make_region(struct party *p)
{
	const uint32_t skew = p->j->skew[p->number];

	p->base = (uintptr_t)p->memory;
	switch (p->j->region[p->number]) {
	case ZERO_BASED:
		p->mr = ibv_reg_mr(p->pd, p->memory + skew, MEMORY - skew,
				   ALL | IBV_ACCESS_ZERO_BASED);
		p->base = -(uint64_t)skew;
		break;
	case IOVA:
		p->mr = ibv_reg_mr_iova(p->pd, p->memory, MEMORY, IOVA_AT, ALL);
		p->base = IOVA_AT;
		break;
	case ON_DEMAND:
		p->mr = ibv_reg_mr(p->pd, p->memory, MEMORY, ALL | IBV_ACCESS_ON_DEMAND);
		break;
	case WHOLE_SPACE:
		p->mr = ibv_reg_mr(p->pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND);
		break;
	default:
		p->mr = ibv_reg_mr(p->pd, p->memory, MEMORY, ALL);
	}
	need(p, p->mr, "ibv_reg_mr: %s", strerror(errno));
	p->own.base = p->base;
	p->own.rkey = p->mr->rkey;
}

static void make_srq(struct party *p)
{
	struct ibv_srq_init_attr_ex a = { .attr = { .max_wr = DEPTH, .max_sge = ELEMENTS },
					  .comp_mask =
						  IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					  .srq_type = IBV_SRQT_BASIC,
					  .pd = p->pd };

	if (p->j->service == ON_XRC) {
		a.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		a.srq_type = IBV_SRQT_XRC;
		a.xrcd = p->xrcd;
		a.cq = p->cq;
	}
	need(p, (p->srq = ibv_create_srq_ex(p->ctx, &a)), "ibv_create_srq_ex: %s", strerror(errno));
	if (p->j->service == ON_XRC)
		need(p, !ibv_get_srq_num(p->srq, &p->own.srqn), "ibv_get_srq_num");
}

static void make_qp(struct party *p)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_XRC_SEND,
						  IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_qp_init_attr_ex a = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = { DEPTH, DEPTH, ELEMENTS, ELEMENTS, INLINE },
		.qp_type = types[p->j->service],
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = p->pd,
	};

	if (p->j->service == ON_SRQ)
		a.srq = p->srq;
	if (p->j->service == ON_XRC)
		a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
	if (p->j->service == ON_XRC && p->number == SERVER)
		a = (struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_XRC_RECV,
						  .comp_mask = IBV_QP_INIT_ATTR_XRCD,
						  .xrcd = p->xrcd };
	need(p, (p->qp = ibv_create_qp_ex(p->ctx, &a)), "ibv_create_qp_ex: %s", strerror(errno));
	p->own.qpn = p->qp->qp_num;
}

static void modify(struct party *p, enum ibv_qp_state state, struct ibv_qp_attr a, int mask)
{
	a.qp_state = state;
	errno = ibv_modify_qp(p->qp, &a, mask | IBV_QP_STATE);
	need(p, !errno, "ibv_modify_qp to %d: %s", (int)state, strerror(errno));
}

static void connect_qp(struct party *p)
{
	const bool is_ud = p->j->service == ON_UD, is_uc = p->j->service == ON_UC;
	const bool is_reliable = job_is_reliable(p->j);
	struct ibv_qp_attr a = {
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = p->j->mtu,
		.dest_qp_num = p->peer.qpn,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.max_dest_rd_atomic = 8,
		.max_rd_atomic = 8,
		.min_rnr_timer = 1,
		.timeout = loses ? 14 : 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = p->peer.gid,
				      .sgid_index = (uint8_t)gid_index,
				      .hop_limit = 64 } },
	};

	modify(p, IBV_QPS_INIT, a,
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	modify(p, IBV_QPS_RTR, a,
	       is_ud ? 0 :
		       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			       (p->qp->qp_type == IBV_QPT_RC || p->qp->qp_type == IBV_QPT_XRC_RECV ?
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER :
					0));
	if (p->qp->qp_type == IBV_QPT_XRC_RECV)
		return;
	modify(p, IBV_QPS_RTS, a,
	       IBV_QP_SQ_PSN |
		       (is_reliable && !is_uc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC :
						0));
	if (is_ud)
		need(p, (p->ah = ibv_create_ah(p->pd, &a.ah_attr)), "ibv_create_ah: %s",
		     strerror(errno));
}

static struct ibv_wc wait_wc(struct party *p)
{
	const uint64_t until = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	watch_me();
	while (!(n = ibv_poll_cq(p->cq, 1, &wc)) && now_ms() < until)
		;
	watch_me_no_more();
	need(p, n == 1, "end %d: no completion in time (%d)", p->number, n);
	return wc;
}

/* Of the bytes that the client may reach; the key and the address go to the client. */
static void bind_window(struct party *p)
{
	const struct job *j = p->j;
	const bool reads = j->op == IBV_WR_RDMA_READ;
	const uint32_t from = reads ? SLOT(0) + j->from.e[0].at : LANDING + j->to.e[0].at;
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_wc wc;

	need(p, (p->mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2)), "ibv_alloc_mw: %s", strerror(errno));
	wr.bind_mw.mw = p->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(p->mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = p->mr,
		.addr = p->base + from,
		.length = j->len + (reads ? AREA * (SLOTS - 1) : 0),
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   (j->has_zero_window ? IBV_ACCESS_ZERO_BASED : 0),
	};
	need(p, !ibv_post_send(p->qp, &wr, &bad), "posting a bind");
	wc = wait_wc(p);
	need(p, wc.status == IBV_WC_SUCCESS, "bind: %s", ibv_wc_status_str(wc.status));
	p->own.rkey = p->mw->rkey;
	if (j->has_zero_window)
		p->own.base = -(uint64_t)from;
}

static void make(struct party *p)
{
	struct ibv_xrcd_init_attr x = { .comp_mask =
						IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					.fd = -1,
					.oflags = O_CREAT };

	p->own = (struct address){ 0 };
	p->received = p->completed = 0;
	p->value = 0;
	must(!ibv_query_gid(p->ctx, 1, gid_index, &p->own.gid), "ibv_query_gid(%d)", gid_index);
	need(p, (p->cq = ibv_create_cq(p->ctx, 4 * DEPTH, NULL, NULL, 0)), "ibv_create_cq: %s",
	     strerror(errno));
	make_region(p);
	if (p->j->service == ON_XRC)
		need(p, (p->xrcd = ibv_open_xrcd(p->ctx, &x)), "ibv_open_xrcd: %s",
		     strerror(errno));
	if (p->j->service == ON_SRQ || (p->j->service == ON_XRC && p->number == SERVER))
		make_srq(p);
	make_qp(p);
	ctl_swap(p->ctl, &p->own, &p->peer, sizeof(p->own));
	connect_qp(p);
	ctl_barrier(p->ctl, 1);
	if (p->j->has_window && p->number == SERVER)
		bind_window(p);
	ctl_swap(p->ctl, &p->own, &p->peer, sizeof(p->own));
}

static void unmake(struct party *p)
{
	need(p,
	     (!p->ah || !ibv_destroy_ah(p->ah)) && (!p->mw || !ibv_dealloc_mw(p->mw)) &&
		     !ibv_destroy_qp(p->qp) && (!p->srq || !ibv_destroy_srq(p->srq)) &&
		     (!p->xrcd || !ibv_close_xrcd(p->xrcd)) && !ibv_dereg_mr(p->mr) &&
		     !ibv_destroy_cq(p->cq),
	     "cannot destroy");
	p->ah = NULL;
	p->mw = NULL;
	p->srq = NULL;
	p->xrcd = NULL;
}

/* ---- requests ---- */

static int sges(struct party *p, const struct list *l, uint32_t base, struct ibv_sge *sge)
{
	for (uint32_t i = 0; i < l->n; i++)
		sge[i] = (struct ibv_sge){ p->base + base + l->e[i].at, l->e[i].len,
					   l->e[i].null ? p->null->lkey : p->mr->lkey };
	return (int)l->n;
}

static void receive(struct party *p, uint32_t wr_id)
{
	struct ibv_sge sge[ELEMENTS];
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge }, *bad;

	if (p->j->op != IBV_WR_RDMA_WRITE_WITH_IMM)
		wr.num_sge = sges(p, &p->j->to, LANDING, sge);
	errno = p->srq ? ibv_post_srq_recv(p->srq, &wr, &bad) : ibv_post_recv(p->qp, &wr, &bad);
	need(p, !errno, "posting a receive: %s", strerror(errno));
}

static void post(struct party *p, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (p->j->service == ON_XRC)
		wr->qp_type.xrc.remote_srqn = p->peer.srqn;
	if (p->j->service == ON_UD) {
		wr->wr.ud.ah = p->ah;
		wr->wr.ud.remote_qpn = p->peer.qpn;
		wr->wr.ud.remote_qkey = QKEY;
	}
	watch_me();
	errno = ibv_post_send(p->qp, wr, &bad);
	watch_me_no_more();
	need(p, !errno, "ibv_post_send: %s", strerror(errno));
}

/* A message from the slot, or of a READ from the peer's. */
static void request(struct party *p, uint16_t generation, uint32_t slot)
{
	const struct job *j = p->j;
	struct ibv_sge sge[ELEMENTS];
	struct ibv_send_wr wr = { .wr_id = generation,
				  .opcode = j->op,
				  .sg_list = sge,
				  .imm_data = htonl(generation),
				  .send_flags = j->is_inline ? IBV_SEND_INLINE : 0 };

	wr.wr.rdma.rkey = p->peer.rkey;
	if (j->op == IBV_WR_RDMA_READ) {
		wr.num_sge = sges(p, &j->to, LANDING, sge);
		wr.wr.rdma.remote_addr = p->peer.base + slot + j->from.e[0].at;
	} else {
		wr.num_sge = sges(p, &j->from, slot, sge);
		wr.wr.rdma.remote_addr = p->peer.base + LANDING + j->to.e[0].at;
	}
	for (int i = 0; j->is_inline && i < wr.num_sge; i++)
		sge[i].addr = (uintptr_t)p->memory + slot + j->from.e[i].at;
	post(p, &wr);
	if (j->is_inline && !j->is_moving)
		memset(p->memory + slot, 0xdd, AREA);
}

/* The source of the next READ, which is the peer's slot. */
static void write_slot(struct party *p, uint16_t generation, uint32_t slot)
{
	const struct element *e = &p->j->from.e[0];
	struct ibv_sge sge = { p->base + slot + e->at, e->len, p->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = generation, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1
	};

	wr.wr.rdma.rkey = p->peer.rkey;
	wr.wr.rdma.remote_addr = p->peer.base + slot + e->at;
	post(p, &wr);
}

/* ---- completions ---- */

static void judge_receive(struct party *p, const struct ibv_wc *wc)
{
	const struct job *j = p->j;
	const bool is_write = j->op == IBV_WR_RDMA_WRITE_WITH_IMM;
	const bool has_imm = is_write || j->op == IBV_WR_SEND_WITH_IMM;

	need(p, wc->status == IBV_WC_SUCCESS, "a receive: %s", ibv_wc_status_str(wc->status));
	p->received++;
	need(p, wc->wr_id == p->received, "receive %lu, not %u", (unsigned long)wc->wr_id,
	     p->received);
	need(p, wc->opcode == (is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV),
	     "opcode %d of a receive", (int)wc->opcode);
	need(p, wc->byte_len == j->len + j->grh, "byte_len %u", wc->byte_len);
	need(p, !!(wc->wc_flags & IBV_WC_WITH_IMM) == has_imm, "wc_flags %u", wc->wc_flags);
	need(p, wc->qp_num == p->qp->qp_num, "qp_num %u", wc->qp_num);
	need(p, !has_imm || !j->is_in_order || ntohl(wc->imm_data) == p->received,
	     "immediate %u, not %u", ntohl(wc->imm_data), p->received);
	need(p, j->service != ON_UD || (wc->src_qp == p->peer.qpn && (wc->wc_flags & IBV_WC_GRH)),
	     "src_qp %u, wc_flags %u", wc->src_qp, wc->wc_flags);
}

static void judge_send(struct party *p, enum ibv_wc_opcode opcode, uint64_t wr_id)
{
	const struct ibv_wc wc = wait_wc(p);

	need(p, wc.status == IBV_WC_SUCCESS, "request %lu: %s", (unsigned long)wr_id,
	     ibv_wc_status_str(wc.status));
	need(p, wc.wr_id == wr_id && wc.opcode == opcode, "completion %lu opcode %d, not %lu",
	     (unsigned long)wc.wr_id, (int)wc.opcode, (unsigned long)wr_id);
	need(p, opcode != IBV_WC_RDMA_READ || wc.byte_len == p->j->len, "byte_len %u of a READ",
	     wc.byte_len);
}

static enum ibv_wc_opcode opcode_of(const struct job *j)
{
	switch (j->op) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	default:
		return IBV_WC_SEND;
	}
}

static void complete_next(struct party *p)
{
	p->completed++;
	if (p->j->op == IBV_WR_RDMA_READ && !p->j->is_moving)
		judge_send(p, IBV_WC_RDMA_WRITE, p->completed);
	judge_send(p, opcode_of(p->j), p->completed);
}

static bool is_told(struct party *p)
{
	struct pollfd fd = { p->ctl, POLLIN, 0 };

	return poll(&fd, 1, 0) > 0;
}

static uint64_t wait_told(struct party *p)
{
	struct pollfd fd = { p->ctl, POLLIN, 0 };

	must(poll(&fd, 1, 4 * WAIT_MS) > 0, "the other end says nothing");
	return now_ms();
}

/* The server receives until the client is at the barrier and all words arrived, or are lost. */
static void serve(struct party *p, uint32_t expected)
{
	const struct job *j = p->j;
	const bool may_lose = !j->is_in_order;
	uint64_t told;
	struct ibv_wc wc;
	int n;

	/* In one process the client polls for both, and is watched. */
	for (told = is_loop ? wait_told(p) : 0;;) {
		watch_me();
		n = ibv_poll_cq(p->cq, 1, &wc);
		watch_me_no_more();
		need(p, n >= 0, "ibv_poll_cq: %d", n);
		if (n)
			judge_receive(p, &wc);
		else if (!told && is_told(p))
			told = now_ms();
		if (n || !told)
			continue;
		if (job_takes_receives(j) ? p->received == expected : job_is_reliable(j))
			return;
		if (now_ms() > told + (may_lose || !job_takes_receives(j) ? SETTLE_MS : WAIT_MS))
			break;
	}
	need(p, !job_takes_receives(j) || may_lose, "%u of %u receives", p->received, expected);
}

/* ---- received messages ---- */

static void judge_gaps(struct party *p)
{
	static const uint8_t zeros[LONGEST + GRH];
	uint8_t *landing = p->memory + LANDING;

	list_put(&p->j->to, landing, 0, zeros);
	for (uint32_t i = 0, e; i < AREA; i++) {
		for (e = 0; e < p->j->to.n; e++)
			if (i - p->j->to.e[e].at < p->j->to.e[e].len && !p->j->to.e[e].null)
				break;
		need(p, e < p->j->to.n || landing[i] == POISON, "byte %u beside the message is %#x",
		     i, landing[i]);
	}
}

static void judge_landing(struct party *p, uint16_t generation)
{
	static _Thread_local uint8_t is[GRH + LONGEST], want[LONGEST];
	const struct job *j = p->j;

	job_image(j, generation, want);
	memcpy(is + j->grh, want, j->len);
	list_get(&j->to, p->memory, LANDING, true, is);
	for (uint32_t i = 0; j->is_moving && i < j->num_words; i++) {
		uint64_t word;

		memcpy(&word, is + j->grh + j->words[i].msg, WORD);
		need(p, job_is_whole(word), "a word of two moments at byte %u: %016lx",
		     j->words[i].msg, (unsigned long)word);
		memcpy(want + j->words[i].msg, &word, WORD);
	}
	for (uint32_t i = 0; i < j->len; i++)
		need(p, is[j->grh + i] == want[i], "message %u: byte %u is %#x, not %#x",
		     generation, i, is[j->grh + i], want[i]);
	p->bytes += j->len;
}

/* Duplicates that come now must not be written. */
static void judge_late(struct party *p)
{
	const uint64_t until = now_ms() + DUPLICATE_MS;
	struct ibv_wc wc;

	memset(p->memory + LANDING, LATE, AREA);
	while (now_ms() < until)
		need(p, !ibv_poll_cq(p->cq, 1, &wc), "one completion too many");
	for (uint32_t i = 0; i < AREA; i++)
		need(p, p->memory[LANDING + i] == LATE, "byte %u was written late: %#x", i,
		     p->memory[LANDING + i]);
}

/* ---- a job ---- */

static bool lands_here(const struct party *p)
{
	return p->number == (p->j->op == IBV_WR_RDMA_READ ? CLIENT : SERVER);
}

static bool watches_here(const struct party *p)
{
	return job_is_atomic(p->j) ? p->number == SERVER : lands_here(p) != p->j->is_moving;
}

static void send_watched(struct party *p)
{
	static _Thread_local uint8_t image[LONGEST];
	const struct job *j = p->j;

	for (uint32_t m = 1; m <= j->messages; m++) {
		if (m > SLOTS)
			complete_next(p);
		job_image(j, (uint16_t)m, image);
		list_put(&j->from, p->memory, SLOT(m), image);
		if (j->op == IBV_WR_RDMA_READ)
			write_slot(p, (uint16_t)m, SLOT(m));
		request(p, (uint16_t)m, SLOT(m));
	}
	while (p->completed < j->messages)
		complete_next(p);
}

static void watched(struct party *p)
{
	if (p->number == CLIENT)
		send_watched(p);
	else
		serve(p, p->j->messages);
	ctl_barrier(p->ctl, 3);
	if (lands_here(p) && p->j->is_in_order)
		judge_landing(p, (uint16_t)p->j->messages);
}

static void moving(struct party *p)
{
	for (uint32_t m = 1; m <= p->j->messages; m++) {
		if (p->number == CLIENT) {
			request(p, (uint16_t)m, SLOT(0));
			complete_next(p);
		} else {
			serve(p, m);
		}
		ctl_barrier(p->ctl, 100 + m);
		if (lands_here(p) && p->j->is_in_order)
			judge_landing(p, 0);
		ctl_barrier(p->ctl, 1000 + m);
	}
}

/* Before a moving job: its bytes but the words, which are of the generation 0 at first. */
static void fill_sources(struct party *p)
{
	static _Thread_local uint8_t image[LONGEST];

	job_image(p->j, 0, image);
	for (uint32_t s = 0; s < SLOTS; s++)
		list_put(&p->j->from, p->memory, SLOT(s), image);
}

static uint64_t atomic_result(struct party *p)
{
	uint64_t value = 0;

	list_get(&p->j->to, p->memory, LANDING, false, (uint8_t *)&value);
	return value;
}

static void one_atomic(struct party *p, uint32_t m, uint64_t *sum)
{
	const struct job *j = p->j;
	const bool reads = !(m % 4), swaps = j->op == IBV_WR_ATOMIC_CMP_AND_SWP;
	struct ibv_sge sge[ELEMENTS];
	struct ibv_send_wr wr = { .wr_id = m,
				  .opcode = reads ? IBV_WR_RDMA_READ : j->op,
				  .sg_list = sge,
				  .num_sge = sges(p, &j->to, LANDING, sge) };
	const uint64_t addr = p->peer.base + LANDING + j->from.e[0].at, before = p->value;

	if (reads) {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = p->peer.rkey;
	} else {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = p->peer.rkey;
		wr.wr.atomic.compare_add = swaps ? before : 3;
		wr.wr.atomic.swap = before + 8;
	}
	post(p, &wr);
	judge_send(p, reads ? IBV_WC_RDMA_READ : opcode_of(j), m);
	if (list_is_null(&j->to, 0, WORD)) {
		*sum += reads ? 0 : 3;
		return;
	}
	p->value = atomic_result(p);
	if (!swaps) {
		need(p, p->value >= before, "%lu after %lu", (unsigned long)p->value,
		     (unsigned long)before);
		if (!reads) {
			*sum += 3;
			p->value += 3;
		}
	} else if (!reads && p->value == before) {
		*sum += 8;
		p->value += 8;
	}
}

static void atomics(struct party *p)
{
	uint64_t sum = 0, theirs, word;

	if (p->number == CLIENT)
		for (uint32_t m = 1; m <= p->j->messages; m++)
			one_atomic(p, m, &sum);
	else
		serve(p, 0);
	ctl_barrier(p->ctl, 4);
	ctl_swap(p->ctl, &sum, &theirs, sizeof(sum));
	if (p->number == SERVER) {
		watch_end();
		memcpy(&word, p->memory + LANDING + p->j->from.e[0].at, WORD);
		need(p, word == theirs + watch_added(), "%lu, not %lu + %lu", (unsigned long)word,
		     (unsigned long)theirs, (unsigned long)watch_added());
	}
}

static void run(struct party *p)
{
	const struct job *j = p->j;
	const char *fault = NULL;

	memset(p->memory, POISON, MEMORY);
	if (job_is_atomic(j))
		memset(p->memory + LANDING + j->from.e[0].at, 0, WORD);
	else if (j->is_moving)
		fill_sources(p);
	for (uint32_t i = 0; !j->is_moving && i < j->num_words; i++)
		memset(p->memory + LANDING + j->words[i].at, 0, WORD);
	make(p);
	for (uint32_t m = 1; p->number == SERVER && job_takes_receives(j) && m <= j->messages; m++)
		receive(p, m);
	if (watches_here(p))
		watch_begin(j, p->memory);
	ctl_barrier(p->ctl, 2);
	if (job_is_atomic(j))
		atomics(p);
	else if (j->is_moving)
		moving(p);
	else
		watched(p);
	if (watches_here(p) && !job_is_atomic(j))
		fault = watch_end();
	need(p, !fault, "%s", fault);
	if (!job_is_atomic(j) && lands_here(p)) {
		judge_gaps(p);
		if (loses && j->is_in_order)
			judge_late(p);
	}
	ctl_barrier(p->ctl, 5);
	unmake(p);
}

static void *party_main(void *arg)
{
	struct party *p = arg;

	p->ctx = open_device(device);
	p->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(p->memory != MAP_FAILED, "mmap: %s", strerror(errno));
	must((p->pd = ibv_alloc_pd(p->ctx)), "ibv_alloc_pd: %s", strerror(errno));
	must((p->null = ibv_alloc_null_mr(p->pd)), "ibv_alloc_null_mr: %s", strerror(errno));
	must((p->j = malloc(sizeof(*p->j))), "malloc");
	if (!is_loop)
		p->ctl = ctl_open(host, PORT);
	for (uint32_t i = 0; i < jobs; i++) {
		if (only >= 0 && (uint32_t)only != i)
			continue;
		job_draw(p->j, seed, i, limit);
		p->j->is_in_order = !loses || job_is_reliable(p->j);
		run(p);
	}
	free(p->j);
	must(!ibv_dereg_mr(p->null) && !ibv_dealloc_pd(p->pd) && !ibv_close_device(p->ctx),
	     "cannot close");
	return NULL;
}

int main(int argc, char **argv)
{
	struct party server = { .number = SERVER }, client = { .number = CLIENT };
	uint64_t looks, halves;
	pthread_t thread;
	int opt;

	while ((opt = getopt(argc, argv, "d:g:s:n:j:m:Ltl")) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			gid_index = atoi(optarg);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			jobs = (uint32_t)atoi(optarg);
			break;
		case 'j':
			only = atoi(optarg);
			break;
		case 'm':
			limit = (uint32_t)atoi(optarg);
			break;
		case 'L':
			is_loop = true;
			break;
		case 't':
			steps = false;
			break;
		case 'l':
			loses = true;
			break;
		default:
			return 2;
		}
	}
	host = argv[optind];
	watch_install(steps);
	if (is_loop) {
		int pair[2];

		must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair: %s", strerror(errno));
		client.ctl = pair[0];
		server.ctl = pair[1];
		must(!pthread_create(&thread, NULL, party_main, &server), "pthread_create");
	}
	party_main(is_loop || host ? &client : &server);
	if (is_loop)
		pthread_join(thread, NULL);
	watch_counts(&looks, &halves);
	printf("words: %u jobs, %lu bytes right, looked %lu times, %lu at half a message\n", jobs,
	       (unsigned long)(server.bytes + client.bytes), (unsigned long)looks,
	       (unsigned long)halves);
	return 0;
}
