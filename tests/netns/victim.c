/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connects to a peer that breaks a rule of the protocol (rogue.c), a new QP for each rule: requests
 * end with the rule's status of ibv_poll_cq(3), or the QP survives. Memory that the peer may not
 * write is unchanged, and two other QPs are not disturbed.
 *
 *	victim -d DEVICE [-g GID-INDEX]
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "rogue.h"

#define DEPTH	   8
#define CQ_ENTRIES 256
#define PATTERN	   0x5a

struct victim {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *region_mr, *local_mr;
	struct ibv_qp *qp, *beside[2];
	struct ibv_cq *beside_cq;
	struct rc_options options;
	struct rc_address own, peer, beside_own[2];
	unsigned int sends, good_sends, receives;
	enum ibv_wc_status failed; /* the first that failed, not counting flushed ones */
};

static struct victim v;
static uint8_t region[ROGUE_REGION] __attribute__((aligned(8)));
static uint8_t local[ROGUE_RECEIVES][ROGUE_RECV_BYTES + ROGUE_MTU] __attribute__((aligned(8)));

static struct ibv_qp *qp_make(struct ibv_cq *send_cq, struct ibv_cq *recv_cq)
{
	struct ibv_qp_init_attr init = { .send_cq = send_cq,
					 .recv_cq = recv_cq,
					 .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { DEPTH, ROGUE_RECEIVES, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(v.pd, &init);

	must(qp, "ibv_create_qp: %s", strerror(errno));
	return qp;
}

static void victim_open(const char *device)
{
	v.ctx = open_device(device);
	must((v.pd = ibv_alloc_pd(v.ctx)), "ibv_alloc_pd: %s", strerror(errno));
	v.send_cq = ibv_create_cq(v.ctx, CQ_ENTRIES, NULL, NULL, 0);
	v.recv_cq = ibv_create_cq(v.ctx, CQ_ENTRIES, NULL, NULL, 0);
	v.beside_cq = ibv_create_cq(v.ctx, CQ_ENTRIES, NULL, NULL, 0);
	must(v.send_cq && v.recv_cq && v.beside_cq, "ibv_create_cq: %s", strerror(errno));
	v.region_mr = ibv_reg_mr(v.pd, region, sizeof(region), IBV_ACCESS_LOCAL_WRITE | RC_ACCESS);
	v.local_mr = ibv_reg_mr(v.pd, local, sizeof(local), IBV_ACCESS_LOCAL_WRITE);
	must(v.region_mr && v.local_mr, "ibv_reg_mr: %s", strerror(errno));
	must(!ibv_query_gid(v.ctx, 1, v.options.gid_index, &v.own.gid), "ibv_query_gid");
	for (int i = 0; i < 2; i++) {
		v.beside[i] = qp_make(v.beside_cq, v.beside_cq);
		v.beside_own[i] = v.own;
		v.beside_own[i].qpn = v.beside[i]->qp_num;
	}
	for (int i = 0; i < 2; i++)
		rc_connect(v.beside[i], &v.beside_own[i], &v.beside_own[!i],
			   &(struct rc_options){ .gid_index = v.options.gid_index,
						 .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 });
}

/* A message between the two other QPs. */
static void ping_beside(const char *kind)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rr = { .wr_id = 1 }, *bad_rr;

	must(!ibv_post_recv(v.beside[1], &rr, &bad_rr) && !ibv_post_send(v.beside[0], &wr, &bad),
	     "%s: posting beside it", kind);
	for (int i = 0; i < 2; i++)
		must(!rc_wait(v.beside_cq, kind).status, "%s: the QPs beside it fail", kind);
}

/* ---- the connection with the peer ---- */

static void receives_post(void)
{
	for (int i = 0; i < ROGUE_RECEIVES; i++) {
		struct ibv_sge sge = { (uintptr_t)local[i], ROGUE_RECV_BYTES, v.local_mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1 };
		struct ibv_recv_wr *bad;

		must(!ibv_post_recv(v.qp, &wr, &bad), "ibv_post_recv");
	}
}

static void requests_post(const struct rogue_row *row)
{
	static const enum ibv_wr_opcode opcodes[] = { [SEND] = IBV_WR_SEND,
						      [READ] = IBV_WR_RDMA_READ,
						      [ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD };

	for (int i = 0; i < DEPTH; i++) {
		struct ibv_sge sge = { (uintptr_t)local[i], row->bytes, v.local_mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
					  .opcode = opcodes[row->request] }, *bad;

		if (row->request == ADD) {
			wr.wr.atomic.remote_addr = v.peer.addr;
			wr.wr.atomic.rkey = v.peer.rkey;
		} else {
			wr.wr.rdma.remote_addr = v.peer.addr;
			wr.wr.rdma.rkey = v.peer.rkey;
		}
		must(!ibv_post_send(v.qp, &wr, &bad), "%s: ibv_post_send", row->name);
	}
}

static void completions_take(const struct rogue_row *row)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(v.send_cq, 1, &wc) == 1) {
		v.sends++;
		v.good_sends += !wc.status;
		if (wc.status && wc.status != IBV_WC_WR_FLUSH_ERR && !v.failed)
			v.failed = wc.status;
	}
	while (ibv_poll_cq(v.recv_cq, 1, &wc) == 1) {
		v.receives += !wc.status;
		must(wc.status || wc.byte_len <= ROGUE_RECV_BYTES, "%s: %u bytes received",
		     row->name, wc.byte_len);
	}
}

static enum ibv_qp_state qp_state(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	must(!ibv_query_qp(v.qp, &a, IBV_QP_STATE, &init), "ibv_query_qp");
	return a.qp_state;
}

/* ---- judging ---- */

static void judge_requests(const struct rogue_row *row)
{
	const unsigned int good = row->statuses & S(SUCCESS) ? DEPTH : 0;

	if (!row->request)
		return;
	must(v.good_sends == good, "%s: %u of %u requests succeeded", row->name, v.good_sends,
	     DEPTH);
	must(good || row->statuses & 1u << v.failed, "%s: the request ended with '%s'", row->name,
	     ibv_wc_status_str(v.failed));
}

/* Only what the peer may write is written: the word of the atomics, the proof that the QP lives. */
static void judge_region(const struct rogue_row *row)
{
	uint64_t word, atomics = 0;

	memcpy(&word, region, 8);
	memset(&atomics, PATTERN, 8);
	if (row == &rogue_rows[KIND_atomic_duplicates])
		must(word - atomics == ROGUE_ROUNDS, "%s: %llu added", row->name,
		     (unsigned long long)(word - atomics));
	else
		must(word == atomics, "%s: the first word was written", row->name);
	for (uint32_t i = 8; i < ROGUE_PROOF; i++)
		must(region[i] == PATTERN, "%s: byte %u of the region was written", row->name, i);
	must((region[ROGUE_PROOF] == 'z') == row->lives, "%s: the QP's state and its data differ",
	     row->name);
}

static void judge_state(const struct rogue_row *row)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (!row->lives && qp_state() != IBV_QPS_ERR) {
		must(now_ms() < end, "%s: the QP lives on", row->name);
		completions_take(row);
	}
	must((qp_state() == IBV_QPS_RTS) == row->lives, "%s: the QP is in state %d", row->name,
	     qp_state());
	must(row->receives == ANY || v.receives == (unsigned int)row->receives,
	     "%s: %u messages were received", row->name, v.receives);
}

/* The peer has said that it is done with this kind. */
static bool peer_is_done(int ctl)
{
	struct pollfd pfd = { .fd = ctl, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void kind_run(enum rogue_kind kind, int ctl)
{
	const struct rogue_row *row = &rogue_rows[kind];
	const unsigned int requests = row->request ? DEPTH : 0;
	uint64_t end;

	memset(region, PATTERN, sizeof(region));
	v.sends = v.good_sends = v.receives = 0;
	v.failed = IBV_WC_SUCCESS;
	v.qp = qp_make(v.send_cq, v.recv_cq);
	v.own.qpn = v.qp->qp_num;
	v.own.psn = 0xfffff8; /* the sequence passes 0 */
	v.own.rkey = v.region_mr->rkey;
	v.own.addr = (uintptr_t)region;
	v.own.bytes = sizeof(region);
	ctl_swap(ctl, &v.own, &v.peer, sizeof(v.own));
	rc_connect(v.qp, &v.own, &v.peer, &v.options);
	receives_post();
	ctl_barrier(ctl, kind);
	if (requests)
		requests_post(row);
	end = now_ms() + WAIT_MS;
	while (requests ? v.sends < requests : !peer_is_done(ctl)) {
		completions_take(row);
		ping_beside(row->name);
		must(now_ms() < end, "%s: %u of %u requests completed", row->name, v.sends,
		     requests);
	}
	ctl_barrier(ctl, kind);
	completions_take(row);
	judge_requests(row);
	judge_state(row);
	judge_region(row);
	ping_beside(row->name);
	must(!ibv_destroy_qp(v.qp), "%s: ibv_destroy_qp", row->name);
	printf("victim: %s\n", row->name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	int c, ctl;

	/* Short: of many peers that never answer, each is waited for. */
	v.options = (struct rc_options){ .timeout = 10, .retry_cnt = 2, .rnr_retry = 2 };
	while ((c = getopt(argc, argv, "d:g:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'g': v.options.gid_index = (uint8_t)atoi(optarg); break;
		default: die("victim -d DEVICE [-g GID-INDEX]");
		}
	}
	victim_open(device);
	ctl = ctl_open(NULL, ROGUE_PORT);
	for (enum rogue_kind kind = 0; kind < ROGUE_NUM_KINDS; kind++)
		kind_run(kind, ctl);
	must(!ibv_destroy_qp(v.beside[0]) && !ibv_destroy_qp(v.beside[1]) &&
		     !ibv_destroy_cq(v.beside_cq) && !ibv_destroy_cq(v.send_cq) &&
		     !ibv_destroy_cq(v.recv_cq) && !ibv_dereg_mr(v.region_mr) &&
		     !ibv_dereg_mr(v.local_mr) && !ibv_dealloc_pd(v.pd) && !ibv_close_device(v.ctx),
	     "taking down");
	printf("victim: %d kinds\n", ROGUE_NUM_KINDS);
	return 0;
}
