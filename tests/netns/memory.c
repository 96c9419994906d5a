/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registered memory that goes bad: each request on it fails at both ends as in docs/memory.md, the
 * processes live, and another queue pair keeps working, after each.
 *
 *	memory -d DEVICE [-g GID-INDEX] [-L] [-B] [-J WHEN] [-D] [HOST]
 *
 *	-L		both ends in this process, over the same GID
 *	-B		all signals are blocked in the threads of the program
 *	-J before|after	the program has its own SIGSEGV handler, which jumps, installed
 *before or after the device is used; it faults itself after each request, and must come back -D
 *in the end it faults itself, without a handler
 *
 * The end with HOST asks, the other one answers. It also is a shared object whose entry is
 * memory_main().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/spoil.h"
#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define PORT  "18650"
#define PAGES 2u
#define LONG  6000u /* from the first page into the second, which goes bad */
#define SHORT 8u    /* at the second page's start */
#define GRH   40u
#define QKEY  0x11111111
#define PSN   100
#define BYTES 3000u /* of the other pair */
#define ALL                                                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum where { LOCAL, TARGET, RECEIVE };

/* short, for a row a line */
enum { RC = IBV_QPT_RC, UC = IBV_QPT_UC, UD = IBV_QPT_UD };
enum {
	SEND = IBV_WR_SEND,
	WRITE = IBV_WR_RDMA_WRITE,
	READ = IBV_WR_RDMA_READ,
	FETCH_ADD = IBV_WR_ATOMIC_FETCH_AND_ADD,
	CMP_SWAP = IBV_WR_ATOMIC_CMP_AND_SWP,
};
enum {
	NONE = -1,
	GOOD = IBV_WC_SUCCESS,
	LOC_PROT = IBV_WC_LOC_PROT_ERR,
	REM_OP = IBV_WC_REM_OP_ERR,
	REM_ACCESS = IBV_WC_REM_ACCESS_ERR,
};

/* Status of the request and of its receive, if there is one. */
static const struct request {
	const char *name;
	int type, opcode;
	uint32_t len;
	enum where bad;
	bool reads, srq;
	int status, receive;
} requests[] = {
	{ "send_gathered", RC, SEND, LONG, LOCAL, true, false, LOC_PROT, NONE },
	{ "write_gathered", RC, WRITE, LONG, LOCAL, true, false, LOC_PROT, NONE },
	{ "read_scattered", RC, READ, LONG, LOCAL, false, false, LOC_PROT, NONE },
	{ "atomic_scattered", RC, FETCH_ADD, SHORT, LOCAL, false, false, LOC_PROT, NONE },
	{ "send_received", RC, SEND, LONG, RECEIVE, false, false, REM_OP, LOC_PROT },
	{ "send_received_from_srq", RC, SEND, LONG, RECEIVE, false, true, REM_OP, LOC_PROT },
	{ "write", RC, WRITE, LONG, TARGET, false, false, REM_ACCESS, NONE },
	{ "read", RC, READ, LONG, TARGET, true, false, REM_ACCESS, NONE },
	{ "fetch_and_add", RC, FETCH_ADD, SHORT, TARGET, false, false, REM_ACCESS, NONE },
	{ "compare_and_swap", RC, CMP_SWAP, SHORT, TARGET, false, false, REM_ACCESS, NONE },
	{ "uc_send_received", UC, SEND, LONG, RECEIVE, false, false, GOOD, LOC_PROT },
	{ "ud_send_gathered", UD, SEND, SHORT, LOCAL, true, false, LOC_PROT, NONE },
	{ "ud_send_received", UD, SEND, SHORT, RECEIVE, false, false, GOOD, LOC_PROT },
};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

/* One end of a pair, with what one case needs. */
struct end {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct rc_address own, peer;
};

/* One end of the test: all of a process, or one of its two threads. */
struct party {
	bool asks;
	int ctl;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct end beside;
	uint8_t bytes[BYTES];
	uint32_t requests;
};

static const char *device, *host, *jumps;
static int gid_index;
static bool is_loop, blocks, dies;
static _Thread_local sigjmp_buf back;

/* ---- the program's own faults ---- */

static void jump(int sig, siginfo_t *info, void *context)
{
	siglongjmp(back, 1);
}

static void install_jump(const char *when)
{
	struct sigaction action = { .sa_sigaction = jump, .sa_flags = SA_SIGINFO };

	if (jumps && !strcmp(jumps, when))
		sigaction(SIGSEGV, &action, NULL);
}

static void own_fault(void)
{
	static unsigned char *nothing;

	if (!nothing)
		nothing = mmap(NULL, SPOIL_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!sigsetjmp(back, 1)) {
		*(volatile unsigned char *)nothing = 1;
		die("a fault of the program's own was none");
	}
}

/* ---- a pair ---- */

static void end_make(struct party *p, struct end *e, enum ibv_qp_type type, bool srq, void *addr,
		     size_t len)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = type,
					 .cap = { 4, 4, 1, 1, 0 },
					 .sq_sig_all = 1 };

	*e = (struct end){ 0 };
	must((e->cq = init.send_cq = init.recv_cq = ibv_create_cq(p->ctx, 16, NULL, NULL, 0)),
	     "ibv_create_cq: %s", strerror(errno));
	if (srq)
		must((e->srq = init.srq = ibv_create_srq(p->pd, &srq_init)), "ibv_create_srq: %s",
		     strerror(errno));
	must((e->qp = ibv_create_qp(p->pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must((e->mr = ibv_reg_mr(p->pd, addr, len, ALL)), "ibv_reg_mr: %s", strerror(errno));
	must(!ibv_query_gid(p->ctx, 1, gid_index, &e->own.gid), "ibv_query_gid(%d)", gid_index);
	e->own.qpn = e->qp->qp_num;
	e->own.rkey = e->mr->rkey;
	e->own.psn = PSN;
	e->own.addr = (uintptr_t)addr;
}

static struct ibv_ah_attr end_path(const struct end *e)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = e->peer.gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64 }
	};
}

static void end_modify_ud(struct end *e, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr a = { .qp_state = state, .port_num = 1, .qkey = QKEY };

	must(!(errno = ibv_modify_qp(e->qp, &a, mask | IBV_QP_STATE)), "ibv_modify_qp to %d: %s",
	     (int)state, strerror(errno));
}

static void end_connect(struct party *p, struct end *e)
{
	const struct rc_options o = { .gid_index = (uint8_t)gid_index,
				      .timeout = 16,
				      .retry_cnt = 7,
				      .rnr_retry = 7 };

	ctl_swap(p->ctl, &e->own, &e->peer, sizeof(e->own));
	if (e->qp->qp_type != IBV_QPT_UD) {
		rc_connect(e->qp, &e->own, &e->peer, &o);
		return;
	}
	end_modify_ud(e, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	end_modify_ud(e, IBV_QPS_RTR, 0);
	end_modify_ud(e, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

static void end_free(struct end *e)
{
	must(!ibv_destroy_qp(e->qp) && (!e->srq || !ibv_destroy_srq(e->srq)) &&
		     !ibv_destroy_cq(e->cq) && !ibv_dereg_mr(e->mr),
	     "cannot destroy");
}

static void end_receive(struct end *e, uint64_t addr, uint32_t len)
{
	struct ibv_sge sge = { addr, len, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 50, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad);
	must(!errno, "posting a receive: %s", strerror(errno));
}

static void end_post(struct party *p, struct end *e, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
		     uint64_t va)
{
	struct ibv_send_wr wr = { .wr_id = 2, .opcode = opcode, .sg_list = sge, .num_sge = 1 },
			   *bad;
	struct ibv_ah_attr path = end_path(e);
	struct ibv_ah *ah = NULL;

	if (e->qp->qp_type == IBV_QPT_UD) {
		must((ah = ibv_create_ah(p->pd, &path)), "ibv_create_ah: %s", strerror(errno));
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = e->peer.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else if (sge->length == SHORT) {
		wr.wr.atomic.remote_addr = va;
		wr.wr.atomic.rkey = e->peer.rkey;
	} else {
		wr.wr.rdma.remote_addr = va;
		wr.wr.rdma.rkey = e->peer.rkey;
	}
	must(!(errno = ibv_post_send(e->qp, &wr, &bad)), "ibv_post_send: %s", strerror(errno));
	if (ah)
		ibv_destroy_ah(ah);
}

static struct ibv_wc end_wait(struct end *e, const char *what)
{
	const uint64_t until = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		must(now_ms() < until, "%s: no completion", what);
	must(n == 1, "%s: ibv_poll_cq: %d", what, n);
	return wc;
}

static enum ibv_qp_state end_state(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(!ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	return attr.qp_state;
}

/* ---- the other pair ---- */

static void beside_goes_on(struct party *p, uint32_t seed)
{
	struct end *e = &p->beside;
	struct ibv_sge sge = { (uintptr_t)p->bytes, BYTES, e->mr->lkey };
	struct ibv_wc wc;

	memset(p->bytes, p->asks ? (int)(seed & 0x7f) : 0xee, BYTES);
	if (!p->asks)
		end_receive(e, (uintptr_t)p->bytes, BYTES);
	ctl_barrier(p->ctl, seed);
	if (p->asks)
		end_post(p, e, IBV_WR_SEND, &sge, 0);
	wc = end_wait(e, "the pair beside");
	must(wc.status == IBV_WC_SUCCESS, "the pair beside: %s", ibv_wc_status_str(wc.status));
	for (uint32_t i = 0; i < BYTES; i++)
		must(p->bytes[i] == (seed & 0x7f), "the pair beside: byte %u is %#x", i,
		     p->bytes[i]);
}

/* ---- one request ---- */

static bool ends_here(const struct request *r, bool asks)
{
	return asks ? r->status != IBV_WC_SUCCESS : r->bad != LOCAL;
}

static void judge(struct party *p, struct end *e, const struct request *r, const char *name)
{
	const int want = p->asks ? r->status : r->receive;
	const bool is_sqe = p->asks && r->type != IBV_QPT_RC;
	struct ibv_wc wc;

	if (want >= 0) {
		wc = end_wait(e, name);
		must((int)wc.status == want, "%s: %s, not %s", name, ibv_wc_status_str(wc.status),
		     ibv_wc_status_str((enum ibv_wc_status)want));
		must(wc.wr_id == (p->asks ? 2 : 50), "%s: wr_id %lu", name,
		     (unsigned long)wc.wr_id);
		must(want != IBV_WC_LOC_PROT_ERR || wc.vendor_err == 17, "%s: vendor_err %u", name,
		     wc.vendor_err);
	}
	ctl_barrier(p->ctl, 1000 + p->requests);
	must(end_state(e) == (!ends_here(r, p->asks) ? IBV_QPS_RTS
			      : is_sqe		     ? IBV_QPS_SQE
						     : IBV_QPS_ERR),
	     "%s: state %d", name, (int)end_state(e));
	must(ibv_poll_cq(e->cq, 1, &wc) == 0, "%s: one completion too many", name);
}

static void run_request(struct party *p, const struct request *r, enum spoil how)
{
	const bool mine = (r->bad == LOCAL) == p->asks;
	const uint32_t grh = r->type == IBV_QPT_UD ? GRH : 0,
		       at = r->len == SHORT ? SPOIL_PAGE : SPOIL_PAGE / 2;
	struct spoiled memory;
	struct ibv_sge sge;
	struct end e;
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", r->name, spoil_names[how]);
	spoil_map(&memory, PAGES, how);
	end_make(p, &e, r->type, r->srq && !p->asks, memory.bytes, memory.len);
	end_connect(p, &e);
	if (!p->asks && r->opcode == IBV_WR_SEND)
		end_receive(&e, e.own.addr + at,
			    r->len == SHORT ? r->len + grh : SPOIL_PAGE + SPOIL_PAGE / 2);
	if (mine)
		spoil_from(&memory, 1);
	ctl_barrier(p->ctl, p->requests);
	sge = (struct ibv_sge){ e.own.addr + at,
				r->len == LONG ? SPOIL_PAGE + SPOIL_PAGE / 2 : r->len, e.mr->lkey };
	if (p->asks)
		end_post(p, &e, r->opcode, &sge, e.peer.addr + at);
	judge(p, &e, r, name);
	end_free(&e);
	spoil_free(&memory);
	if (jumps)
		own_fault();
	beside_goes_on(p, ++p->requests);
}

static void *party_main(void *arg)
{
	struct party *p = arg;

	if (blocks) {
		sigset_t all;

		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	}
	p->ctx = open_device(device);
	must((p->pd = ibv_alloc_pd(p->ctx)), "ibv_alloc_pd: %s", strerror(errno));
	if (!is_loop)
		p->ctl = ctl_open(host, PORT);
	end_make(p, &p->beside, IBV_QPT_RC, false, p->bytes, BYTES);
	end_connect(p, &p->beside);
	beside_goes_on(p, 99);
	install_jump("after");
	for (size_t i = 0; i < REQUESTS; i++)
		for (int how = 0; how < SPOILS; how++)
			if (!(requests[i].reads && how == SPOIL_READ_ONLY))
				run_request(p, &requests[i], (enum spoil)how);
	end_free(&p->beside);
	must(!ibv_dealloc_pd(p->pd) && !ibv_close_device(p->ctx), "cannot close");
	return NULL;
}

__attribute__((visibility("default"))) int memory_main(int argc, char **argv);
int memory_main(int argc, char **argv)
{
	struct party asks = { .asks = true }, answers = { .asks = false };
	pthread_t thread;
	int opt;

	optind = 1;
	while ((opt = getopt(argc, argv, "d:g:LBJ:D")) != -1) {
		switch (opt) {
		case 'd': device = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'L': is_loop = true; break;
		case 'B': blocks = true; break;
		case 'J': jumps = optarg; break;
		case 'D': dies = true; break;
		default: return 2;
		}
	}
	host = argv[optind];
	install_jump("before");
	if (is_loop) {
		int pair[2];

		must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair: %s", strerror(errno));
		asks.ctl = pair[0];
		answers.ctl = pair[1];
		must(!pthread_create(&thread, NULL, party_main, &answers), "pthread_create");
	}
	party_main(is_loop || host ? &asks : &answers);
	if (is_loop)
		pthread_join(thread, NULL);
	printf("memory: %u requests failed as they must\n",
	       is_loop || host ? asks.requests : answers.requests);
	fflush(stdout);
	if (dies)
		*(volatile unsigned char *)mmap(NULL, SPOIL_PAGE, PROT_NONE,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
	return 0;
}

int main(int argc, char **argv)
{
	return memory_main(argc, argv);
}
