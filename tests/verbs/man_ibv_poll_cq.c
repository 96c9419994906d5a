/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/* ibv_poll_cq(3) */
#include <arpa/inet.h>

#include "man.h"

/* docs/completions.md */
enum { VERR_FLUSHED = 1, VERR_NAK_REMOTE_ACCESS = 7, VERR_RECV_TOO_SHORT = 10 };

static int send_numbered(struct pair *p, uint64_t wr_id, uint32_t length)
{
	return post_recv(p, 100 + wr_id, 0, 1000) ||
	       post_send(p, wr_id, 0, length, IBV_SEND_SIGNALED);
}

/* Everything posted so far has arrived. */
static bool settle(struct pair *p, int sends)
{
	struct ibv_wc wc;

	for (int i = 0; i < sends; i++)
		MUST(wait_wc(p->cq[0], &wc));
	return true;
}

static bool number_body(struct pair *p)
{
	struct ibv_wc wc[10];

	/* "equal to the number of completions found" */
	MUST_EQ(ibv_poll_cq(p->cq[1], 4, wc), 0);
	for (uint64_t i = 0; i < 6; i++)
		MUST_EQ(send_numbered(p, i, (uint32_t)i), 0);
	MUST(settle(p, 6));
	MUST_EQ(ibv_poll_cq(p->cq[1], 0, wc), 0);
	/*
	 * "the first num_entries (or all available completions if the CQ contains fewer than this
	 * number)"; nothing is written after them
	 */
	memset(wc, 0xee, sizeof(wc));
	MUST_EQ(ibv_poll_cq(p->cq[1], 4, wc), 4);
	for (uint64_t i = 0; i < 4; i++)
		MUST_EQ(wc[i].wr_id, 100 + i);
	MUST_EQ(wc[4].wr_id, (long long)0xeeeeeeeeeeeeeeee);
	MUST_EQ(ibv_poll_cq(p->cq[1], 10, wc), 2);
	MUST_EQ(wc[0].wr_id, 104);
	MUST_EQ(wc[1].wr_id, 105);
	/* "Each polled completion is removed from the CQ" */
	MUST_EQ(ibv_poll_cq(p->cq[1], 10, wc), 0);
	/* "On failure, a negative value is returned." */
	MUST(ibv_poll_cq(p->cq[1], -1, wc) < 0);
	return true;
}

ON_PAIR(returns_what_it_found, number_body)

/*
 * Each field of both completions, for SENDs of several lengths with and without immediate data,
 * WRITEs with, and READs.
 */
static bool fields_body(struct pair *p)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		enum ibv_wc_opcode send, recv;
		bool receives, imm;
	} kinds[] = {
		{ IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, true, false },
		{ IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true, true },
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0, false, false },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, true,
		  true },
		{ IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0, false, false },
	};
	static const uint32_t lengths[] = { 0, 1, 1023, 1024, 1025, 5000 };
	struct ibv_wc wc;

	for (int k = 0; k < 5; k++)
		for (uint32_t i = 0; i < 6; i++) {
			struct ibv_sge sge = sge_of(p, 0, 0, lengths[i]);
			uint64_t id = 0xabcdef0000000000 + k * 16 + i;
			struct ibv_send_wr wr = { .wr_id = id,
						  .sg_list = &sge,
						  .num_sge = 1,
						  .opcode = kinds[k].opcode,
						  .send_flags = IBV_SEND_SIGNALED,
						  .imm_data = htonl(0x01020304 + i),
						  .wr.rdma = { (uintptr_t)p->buf[1],
							       p->mr[1]->rkey } },
					   *bad;

			MUST_EQ(post_recv(p, ~id, 0, 6000), 0);
			MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
			MUST(wait_wc(p->cq[0], &wc));
			MUST_EQ(wc.wr_id, id);
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
			MUST_EQ(wc.opcode, kinds[k].send);
			MUST_EQ(wc.qp_num, p->qp[0]->qp_num);
			MUST_EQ(wc.vendor_err, 0);
			MUST_EQ(wc.wc_flags, 0);
			if (kinds[k].opcode == IBV_WR_RDMA_READ)
				MUST_EQ(wc.byte_len, lengths[i]);
			if (!kinds[k].receives) {
				MUST(cq_is_empty(p->cq[1]));
				/* uses the receive up */
				MUST_EQ(post_send(p, 7, 0, 1, IBV_SEND_SIGNALED), 0);
				MUST(wait_wc(p->cq[1], &wc) && wait_wc(p->cq[0], &wc));
				continue;
			}
			MUST(wait_wc(p->cq[1], &wc));
			MUST_EQ(wc.wr_id, (long long)~id);
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
			MUST_EQ(wc.opcode, kinds[k].recv);
			MUST_EQ(wc.byte_len, lengths[i]);
			MUST_EQ(wc.qp_num, p->qp[1]->qp_num);
			/* GRH: "valid only for UD QPs" */
			MUST_EQ(wc.wc_flags, kinds[k].imm ? IBV_WC_WITH_IMM : 0);
			if (kinds[k].imm)
				MUST_EQ(ntohl(wc.imm_data), 0x01020304 + i);
		}
	return true;
}

ON_PAIR(fields_of_a_completion, fields_body)

/*
 * "IBV_WC_WITH_INV Invalidated RKey data value is valid (cannot be combined with IBV_WC_WITH_IMM)"
 */
static bool invalidate_body(struct pair *p)
{
	struct ibv_wc wc;
	uint32_t rkey;

	MUST(send_invalidating(p, &rkey));
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.wr_id, 33);
	MUST_EQ(wc.opcode, IBV_WC_RECV);
	MUST_EQ(wc.byte_len, 7);
	MUST_EQ(wc.wc_flags, IBV_WC_WITH_INV);
	MUST_EQ(wc.invalidated_rkey, rkey);
	return true;
}

ON_PAIR(invalidated_rkey, invalidate_body)

static bool ud_body(struct pair *p)
{
	struct ibv_ah_attr to = own_address();
	struct ibv_ah *ah = ibv_create_ah(p->pd, &to);
	struct ibv_sge sge = sge_of(p, 0, 0, 20);
	struct ibv_send_wr wr = { .wr_id = 4,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htonl(99),
				  .wr.ud = { .ah = ah,
					     .remote_qpn = p->qp[1]->qp_num,
					     .remote_qkey = UD_QKEY } },
			   *bad;
	struct ibv_wc wc;

	MUST(ah);
	MUST_EQ(post_recv(p, 5, 0, 100), 0);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.wr_id, 5);
	MUST_EQ(wc.opcode, IBV_WC_RECV);
	/* "Source QP number (remote QP number) of completed WR (valid only for UD QPs)" */
	MUST_EQ(wc.src_qp, p->qp[0]->qp_num);
	MUST_EQ(wc.qp_num, p->qp[1]->qp_num);
	MUST_EQ(wc.byte_len, 60);
	MUST_EQ(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	MUST_EQ(ntohl(wc.imm_data), 99);
	MUST_EQ(wc.pkey_index, 0);
	MUST_EQ(wc.slid, 0);
	/*
	 * "sl: Service Level": over RoCEv2 the header that the addresses are in, as adapters say it
	 */
	MUST_EQ(wc.sl, 2);
	MUST_EQ(wc.dlid_path_bits, 0);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	return true;
}

ON_PAIR(fields_of_a_datagram, ud_body, .type = IBV_QPT_UD)

static bool error_body(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 8);
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { (uintptr_t)p->buf[1], p->mr[1]->rkey + 0x10000 } },
			   *bad;
	struct ibv_wc wc;

	/*
	 * "only the following attributes are valid: wr_id, status, qp_num, and vendor_err"; an
	 * error completes an unsignalled WR as well
	 */
	MUST_EQ(post_recv(p, 31, 0, 100), 0);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST_EQ(post_send(p, 2, 0, 8, 0), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.wr_id, 1);
	MUST_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	MUST_EQ(wc.qp_num, p->qp[0]->qp_num);
	MUST_EQ(wc.vendor_err, VERR_NAK_REMOTE_ACCESS);
	/* Later requests are flushed, in order, and so is the peer's receive. */
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.wr_id, 2);
	MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	MUST_EQ(wc.qp_num, p->qp[0]->qp_num);
	MUST_EQ(wc.vendor_err, VERR_FLUSHED);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.wr_id, 31);
	MUST(wc.status != IBV_WC_SUCCESS);
	MUST_EQ(wc.qp_num, p->qp[1]->qp_num);
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
	return true;
}

ON_PAIR(fields_of_an_error, error_body)

static bool short_body(struct pair *p)
{
	struct ibv_wc wc;

	MUST_EQ(post_recv(p, 41, 0, 5), 0);
	MUST_EQ(post_send(p, 40, 0, 6, 0), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.wr_id, 41);
	MUST_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
	MUST_EQ(wc.vendor_err, VERR_RECV_TOO_SHORT);
	MUST_EQ(wc.qp_num, p->qp[1]->qp_num);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.wr_id, 40);
	MUST_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
	MUST_EQ(p->buf[1][5], 0);
	return true;
}

ON_PAIR(receive_too_short, short_body)

/*
 * Room for two, more than that sent: "the async event IBV_EVENT_CQ_ERR will be triggered, and the
 * CQ cannot be used".
 */
static bool overrun_body(struct pair *p)
{
	struct ibv_async_event event;
	int cq_errors = 0, qp_fatal = 0;
	struct ibv_wc wc[4];
	int n;

	for (uint64_t i = 0; i < 4; i++)
		MUST_EQ(post_recv(p, i, 0, 100), 0);
	for (uint64_t i = 0; i < 4; i++)
		MUST_EQ(post_send(p, i, 0, 10, 0), 0);
	/* The receiver's: sends were not signalled. One for the CQ, one for its QP. */
	while (!cq_errors || !qp_fatal) {
		MUST(next_async(&event));
		if (event.event_type == IBV_EVENT_CQ_ERR) {
			MUST(event.element.cq == p->cq[1]);
			cq_errors++;
		} else {
			MUST_EQ(event.event_type, IBV_EVENT_QP_FATAL);
			MUST(event.element.qp == p->qp[1]);
			qp_fatal++;
		}
		ibv_ack_async_event(&event);
	}
	MUST(no_async_event());
	MUST_EQ(cq_errors, 1);
	MUST_EQ(qp_fatal, 1);
	MUST_EQ(qp_state_now(p->qp[1]), IBV_QPS_ERR);
	n = ibv_poll_cq(p->cq[1], 4, wc);
	MUST(n <= 2);
	MUST(ibv_poll_cq(p->cq[1], 4, wc) < 0);
	MUST(ibv_poll_cq(p->cq[1], 4, wc) < 0);
	return true;
}

ON_PAIR(overrun, overrun_body, .ex = &(struct ibv_cq_init_attr_ex){ .cqe = 2 })

static bool full_body(struct pair *p)
{
	struct ibv_wc wc[4];

	/* Exactly full is no overrun, and it keeps working. */
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 4; i++)
			MUST_EQ(send_numbered(p, i, 10), 0);
		MUST(settle(p, 4));
		MUST_EQ(ibv_poll_cq(p->cq[1], 4, wc), 4);
	}
	return no_async_event();
}

ON_PAIR(exactly_full_is_no_overrun, full_body, .ex = &(struct ibv_cq_init_attr_ex){ .cqe = 4 })

#define POLLERS	 3
#define MESSAGES 3000

static atomic_int polled;
static atomic_uchar seen[MESSAGES];

static void *poller(void *arg)
{
	struct pair *p = arg;
	struct ibv_wc wc[3];

	while (atomic_load(&polled) < MESSAGES) {
		int n = ibv_poll_cq(p->cq[1], 3, wc);

		for (int i = 0; i < n; i++)
			if (wc[i].wr_id < MESSAGES)
				atomic_fetch_add(&seen[wc[i].wr_id], 1);
		if (n < 0)
			return p;
		atomic_fetch_add(&polled, n);
	}
	return NULL;
}

static bool threads_body(struct pair *p)
{
	pthread_t thread[POLLERS];
	struct ibv_wc wc;
	void *failed;

	atomic_store(&polled, 0);
	for (int i = 0; i < POLLERS; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, poller, p), 0);
	for (uint64_t n = 0; n < MESSAGES; n++) {
		/* the pollers keep pace, so that nothing overruns */
		while ((int)n - atomic_load(&polled) >= QUEUE)
			sched_yield();
		MUST_EQ(post_recv(p, n, 0, 100), 0);
		MUST_EQ(post_send(p, n, 0, 1, IBV_SEND_SIGNALED), 0);
		MUST(wait_wc(p->cq[0], &wc));
	}
	for (int i = 0; i < POLLERS; i++) {
		MUST_EQ(pthread_join(thread[i], &failed), 0);
		MUST(!failed);
	}
	/* "cannot be returned to it", nor given out twice */
	for (int n = 0; n < MESSAGES; n++)
		MUST_EQ(seen[n], 1);
	return true;
}

ON_PAIR(each_once_with_several_threads, threads_body)

const struct test_case man_cases[] = {
	CASE(returns_what_it_found),
	CASE(fields_of_a_completion),
	CASE(invalidated_rkey),
	CASE(fields_of_a_datagram),
	CASE(fields_of_an_error),
	CASE(receive_too_short),
	CASE(overrun),
	CASE(exactly_full_is_no_overrun),
	CASE(each_once_with_several_threads),
	{ 0 },
};
