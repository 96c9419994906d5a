/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rights between two hosts: every combination of access flags of a region (ibv_reg_mr(3); plain, on
 * demand, with relaxed ordering), of a memory window of both types (ibv_bind_mw(3)), and of a QP
 * (ibv_modify_qp(3)), against every RDMA operation of the other end. Both ends derive the expected
 * result from the man pages.
 *
 *	rights DEVICE GID-INDEX [HOST]
 *
 * With HOST it is the requester, else the responder. Prints "rights: N tried, N allowed" for
 * regions, and "windows: N tried, N allowed".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define PORT	"18650"
#define WORD	8
#define WAS	0x1111111111111111ull
#define NEW	0x2222222222222222ull
#define REMOTES	16 /* subsets of remote rights */
#define WINDOWS	8  /* of a window's rights */
#define ASK_ID	5
#define RECV_ID	6
#define BIND_ID	7
#define IMM	0x1234

/*
 * FLUSH is in rdma-core 45 and later, and the header may be older. Its values, and its place after
 * the last member of rdma-core 44, are part of the ABI.
 */
#define ACCESS_FLUSH_GLOBAL (1 << 8)
#define QP_EX_WITH_FLUSH    ((uint64_t)1 << 11)
#define FLUSH_TYPE_GLOBAL   1
#define FLUSH_LEVEL_RANGE   0
typedef void wr_flush_fn(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			 uint8_t type, uint8_t level);

/* Windows use the first WINDOWS subsets: ibv_bind_mw(3) has no flag that allows FLUSH. */
static const int remote[4] = { IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
			       IBV_ACCESS_REMOTE_ATOMIC, ACCESS_FLUSH_GLOBAL };
static const int kinds[] = { 0, IBV_ACCESS_ON_DEMAND, IBV_ACCESS_RELAXED_ORDERING };

enum op { WRITE, WRITE_IMM, ATOMIC_WRITE, READ, CMP_SWP, FETCH_ADD, FLUSH, OPS };

static const struct {
	const char *name;
	int needs;
	bool fetches, changes;
} ops[OPS] = {
	[WRITE] = { "WRITE", IBV_ACCESS_REMOTE_WRITE, false, true },
	[WRITE_IMM] = { "WRITE with immediate", IBV_ACCESS_REMOTE_WRITE, false, true },
	[ATOMIC_WRITE] = { "ATOMIC WRITE", IBV_ACCESS_REMOTE_WRITE, false, true },
	[READ] = { "READ", IBV_ACCESS_REMOTE_READ, true, false },
	[CMP_SWP] = { "compare and swap", IBV_ACCESS_REMOTE_ATOMIC, true, true },
	[FETCH_ADD] = { "fetch and add", IBV_ACCESS_REMOTE_ATOMIC, true, true },
	[FLUSH] = { "FLUSH", ACCESS_FLUSH_GLOBAL, false, false },
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_qp_ex *ex;
static struct ibv_mr *own_mr;
static struct rc_address own, peer;
static struct rc_options options;
static int ctl;
static bool asks;
static uint64_t word __attribute__((aligned(8)));
static uint64_t target[512] __attribute__((aligned(4096)));
static unsigned int tried, allowed;

static int subset(unsigned int bits)
{
	int flags = 0;

	for (unsigned int i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
		flags |= bits >> i & 1 ? remote[i] : 0;
	return flags;
}

static void reconnect(void)
{
	rc_reset(qp);
	own.psn = (own.psn + 77) & 0xffffff;
	ctl_swap(ctl, &own, &peer, sizeof(own));
	rc_connect(qp, &own, &peer, &options);
	ctl_barrier(ctl, 1);
}

/* Builds the operation with the key and address from the peer. */
static void build(enum op op)
{
	const uint64_t new = NEW;
	wr_flush_fn *flush;

	switch (op) {
	case WRITE: ibv_wr_rdma_write(ex, peer.rkey, peer.addr); break;
	case WRITE_IMM: ibv_wr_rdma_write_imm(ex, peer.rkey, peer.addr, htonl(IMM)); break;
	case ATOMIC_WRITE: ibv_wr_atomic_write(ex, peer.rkey, peer.addr, &new); break;
	case READ: ibv_wr_rdma_read(ex, peer.rkey, peer.addr); break;
	case CMP_SWP: ibv_wr_atomic_cmp_swp(ex, peer.rkey, peer.addr, WAS, NEW); break;
	case FETCH_ADD: ibv_wr_atomic_fetch_add(ex, peer.rkey, peer.addr, NEW - WAS); break;
	case FLUSH:
		memcpy(&flush, &ex->wr_atomic_write + 1, sizeof(flush));
		flush(ex, peer.rkey, peer.addr, WORD, FLUSH_TYPE_GLOBAL, FLUSH_LEVEL_RANGE);
		break;
	default: die("no operation %d", op);
	}
	if (op != ATOMIC_WRITE && op != FLUSH)
		ibv_wr_set_sge(ex, own_mr->lkey, (uintptr_t)&word, WORD);
}

static void ask(enum op op, int status)
{
	struct ibv_wc wc;

	word = NEW;
	ibv_wr_start(ex);
	ex->wr_id = ASK_ID;
	ex->wr_flags = IBV_SEND_SIGNALED;
	build(op);
	must(!ibv_wr_complete(ex), "ibv_wr_complete of %s", ops[op].name);
	wc = rc_wait(cq, "an operation");
	must(wc.wr_id == ASK_ID && (int)wc.status == status, "%s: status %d, not %d",
	     ops[op].name, wc.status, status);
	must(word == (status || !ops[op].fetches ? NEW : WAS), "%s: fetched %llx", ops[op].name,
	     (unsigned long long)word);
}

/* Returns the status: invalid request if the QP forbids it, access error if the key does. */
static int expected(enum op op, int key_flags, int qp_flags)
{
	if (!(qp_flags & ops[op].needs))
		return IBV_WC_REM_INV_REQ_ERR;
	return key_flags & ops[op].needs ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

/*
 * Checks the receive of a WRITE with immediate. ibv_poll_cq(3): LOC_ACCESS_ERR if the WRITE's key
 * is refused, else flushed with the QP.
 */
static void receives(int status)
{
	const int want = !status ? IBV_WC_SUCCESS
			 : status == IBV_WC_REM_ACCESS_ERR ? IBV_WC_LOC_ACCESS_ERR
							   : IBV_WC_WR_FLUSH_ERR;
	struct ibv_wc wc = rc_wait(cq, "a receive");

	must(wc.wr_id == RECV_ID && (int)wc.status == want, "a receive: status %d, not %d",
	     wc.status, want);
	must(status || (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == WORD &&
			wc.imm_data == htonl(IMM)),
	     "a receive: opcode %d, %u bytes, %#x", wc.opcode, wc.byte_len, ntohl(wc.imm_data));
}

/* Tries one operation with the key's and one QP's flags. */
static void try(enum op op, int key_flags, int qp_flags)
{
	struct ibv_qp_attr a = { .qp_access_flags = (unsigned int)qp_flags };
	const int status = expected(op, key_flags, qp_flags);
	struct ibv_recv_wr recv = { .wr_id = RECV_ID }, *bad;

	if (!asks)
		must(!ibv_modify_qp(qp, &a, IBV_QP_ACCESS_FLAGS), "ibv_modify_qp");
	if (!asks && op == WRITE_IMM)
		must(!ibv_post_recv(qp, &recv, &bad), "ibv_post_recv");
	target[0] = WAS;
	ctl_barrier(ctl, 2);
	if (asks)
		ask(op, status);
	ctl_barrier(ctl, 3);
	if (!asks && op == WRITE_IMM)
		receives(status);
	must(asks || target[0] == (status || !ops[op].changes ? WAS : NEW), "%s left %llx",
	     ops[op].name, (unsigned long long)target[0]);
	tried++;
	allowed += !status;
	if (status)
		reconnect();
}

/* Tries every operation and every QP with a key of the responder. */
static void each_operation(uint32_t rkey, int key_flags)
{
	own.addr = (uintptr_t)target;
	own.rkey = rkey;
	ctl_swap(ctl, &own, &peer, sizeof(own));
	for (unsigned int q = 0; q < REMOTES; q++)
		for (enum op op = 0; op < OPS; op++)
			try(op, key_flags, subset(q));
}

/* Tests a region with these flags; remote writes and atomics are refused without local write. */
static void region(int flags)
{
	const bool may = !(flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) ||
			 flags & IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *mr = asks ? NULL : ibv_reg_mr(pd, target, sizeof(target), flags);

	must(asks || !mr == !may, "ibv_reg_mr %#x: %s", (unsigned int)flags, strerror(errno));
	if (!may)
		return;
	each_operation(mr ? mr->rkey : 0, flags);
	must(!mr || !ibv_dereg_mr(mr), "ibv_dereg_mr");
}

/* Binds the window to the first words, and returns its key. */
static uint32_t bind_window(struct ibv_mw *mw, struct ibv_mr *mr, int flags)
{
	struct ibv_mw_bind_info info = { mr, (uintptr_t)target, WORD, (unsigned int)flags };
	struct ibv_mw_bind one = { .wr_id = BIND_ID, .send_flags = IBV_SEND_SIGNALED,
				   .bind_info = info };
	struct ibv_send_wr two = { .wr_id = BIND_ID, .send_flags = IBV_SEND_SIGNALED,
				   .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_wc wc;

	two.bind_mw.mw = mw;
	two.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	two.bind_mw.bind_info = info;
	if (mw->type == IBV_MW_TYPE_1)
		must(!ibv_bind_mw(qp, mw, &one), "ibv_bind_mw");
	else
		must(!ibv_post_send(qp, &two, &bad), "ibv_post_send of a bind");
	wc = rc_wait(cq, "a bind");
	must(wc.wr_id == BIND_ID && !wc.status, "a bind: status %d", wc.status);
	return mw->type == IBV_MW_TYPE_1 ? mw->rkey : two.bind_mw.rkey;
}

/*
 * A window has exactly the rights of its flags, whatever its region's remote rights. The region
 * "must have been registered with IBV_ACCESS_MW_BIND", and with local write for writes and atomics.
 */
static void window(enum ibv_mw_type type, int flags, int region_flags)
{
	struct ibv_mr *mr = NULL;
	struct ibv_mw *mw = NULL;

	if (!asks) {
		mr = ibv_reg_mr(pd, target, sizeof(target),
				region_flags | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		mw = ibv_alloc_mw(pd, type);
		must(mr && mw, "ibv_reg_mr or ibv_alloc_mw: %s", strerror(errno));
	}
	each_operation(mw ? bind_window(mw, mr, flags) : 0, flags);
	must(!mw || !ibv_dealloc_mw(mw), "ibv_dealloc_mw");
	must(!mr || !ibv_dereg_mr(mr), "ibv_dereg_mr");
}

static void counted(const char *what)
{
	printf("%s: %u tried, %u allowed\n", what, tried, allowed);
	tried = allowed = 0;
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				  IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_BIND_MW |
				  QP_EX_WITH_FLUSH,
	};

	must(argc == 3 || argc == 4, "rights DEVICE GID-INDEX [HOST]");
	asks = argc == 4;
	options = (struct rc_options){ .gid_index = (uint8_t)atoi(argv[2]),
				       .timeout = 18, .retry_cnt = 7, .rnr_retry = 7 };
	ctx = open_device(argv[1]);
	must((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)), "no PD, CQ");
	must((own_mr = ibv_reg_mr(pd, &word, WORD, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
	init.send_cq = init.recv_cq = cq;
	init.pd = pd;
	must((qp = ibv_create_qp_ex(ctx, &init)), "ibv_create_qp_ex: %s", strerror(errno));
	ex = ibv_qp_to_qp_ex(qp);
	must(!ibv_query_gid(ctx, 1, options.gid_index, &own.gid), "ibv_query_gid");
	own.qpn = qp->qp_num;
	ctl = ctl_open(asks ? argv[3] : NULL, PORT);
	reconnect();
	for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (unsigned int r = 0; r < REMOTES; r++)
			for (int local = 0; local < 2; local++)
				region(kinds[k] | subset(r) | (local ? IBV_ACCESS_LOCAL_WRITE : 0));
	counted("rights");
	for (enum ibv_mw_type type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++)
		for (unsigned int w = 0; w < WINDOWS; w++)
			for (unsigned int all = 0; all < 2; all++)
				window(type, subset(w), all ? subset(REMOTES - 1) : 0);
	counted("windows");
	return 0;
}
