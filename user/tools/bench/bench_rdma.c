/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both ends of a verbs test: a queue pair of one test and its memory, requests, and waiting for
 * completions. Latency: one message there and one back, or one READ. Bandwidth: depth outstanding
 * requests from client to server, or READs by the client.
 */
#define _GNU_SOURCE /* ppoll() */
#include "bench.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>

#include "../../os/clock.h"

#define PORT	   1
#define QKEY	   0x58524245u
#define READS	   16   /* outstanding READs; the device's limit */
#define TIMEOUT	   14   /* 67 ms; the engine's adaptive time-out is shorter */
#define POLLS	   1024 /* between two readings of the clock */
#define RNR_TIMER  1	/* 10 us */
#define PSN_MASK   0xffffffu
#define BATCH	   16   /* completions of a poll */
#define GRH	   40u  /* bytes in front of a received datagram */
#define ACCESS                                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct bench_rdma {
	const struct bench_end *end;
	struct bench_test test;
	struct ibv_comp_channel *channel; /* NULL: polling */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	/* one message, sent or accessed by the peer; then depth receive slots */
	u8 *memory;
	u32 slot_bytes;
	u32 remote_qpn, rkey;
	u64 va;
	u32 polls; /* since the last check of the clock and the control connection */
	/* notification requested and its event not yet received */
	bool armed;
};

static bool bench_rdma_is_ud(const struct bench_rdma *r)
{
	return r->test.way == BENCH_UD;
}

/* ---- making ---- */

static int bench_rdma_make_memory(struct bench_rdma *r)
{
	size_t bytes;

	r->slot_bytes = r->test.size + (bench_rdma_is_ud(r) ? GRH : 0);
	bytes = (size_t)r->slot_bytes * (r->test.depth + 1);
	r->memory = calloc(1, bytes);
	if (!r->memory)
		return -ENOMEM;
	r->mr = verbs.reg_mr(r->end->dev->pd, r->memory, bytes, ACCESS);
	return r->mr ? 0 : -errno;
}

static int bench_rdma_make_queues(struct bench_rdma *r)
{
	struct ibv_qp_init_attr init = {
		.qp_type = bench_rdma_is_ud(r) ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = { .max_send_wr = r->test.depth, .max_recv_wr = r->test.depth,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};

	if (r->test.events) {
		r->channel = verbs.create_comp_channel(r->end->dev->ctx);
		if (!r->channel || fcntl(r->channel->fd, F_SETFL, O_NONBLOCK))
			return -errno;
	}
	r->cq = verbs.create_cq(r->end->dev->ctx, (int)(2 * r->test.depth), NULL, r->channel, 0);
	if (!r->cq)
		return -errno;
	init.send_cq = init.recv_cq = r->cq;
	r->qp = verbs.create_qp(r->end->dev->pd, &init);
	return r->qp ? 0 : -errno;
}

static int bench_rdma_to_init(struct bench_rdma *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT, .qkey = QKEY,
				    .qp_access_flags = ACCESS };

	return -verbs.modify_qp(r->qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					(bench_rdma_is_ud(r) ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

/* Posts receive slot number slot. Returns 0 or -errno. */
static int bench_rdma_receive(struct bench_rdma *r, u32 slot)
{
	struct ibv_sge sge = { (uintptr_t)r->memory + (size_t)r->slot_bytes * (slot + 1),
			       r->slot_bytes, r->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return -ibv_post_recv(r->qp, &wr, &bad);
}

int bench_rdma_make(const struct bench_end *end, const struct bench_test *test,
		    struct bench_rdma **out, struct bench_message *own)
{
	struct bench_rdma *r = calloc(1, sizeof(*r));
	int err;

	*out = r;
	if (!r)
		return -ENOMEM;
	r->end = end;
	r->test = *test;
	err = bench_rdma_make_memory(r);
	if (!err)
		err = bench_rdma_make_queues(r);
	if (!err)
		err = bench_rdma_to_init(r);
	for (u32 i = 0; !err && i < test->depth; i++)
		err = bench_rdma_receive(r, i);
	if (err)
		return err;
	own->qpn = r->qp->qp_num;
	if (getrandom(&own->psn, sizeof(own->psn), 0) != sizeof(own->psn))
		return -errno;
	own->psn &= PSN_MASK;
	own->va = (uintptr_t)r->memory;
	own->rkey = r->mr->rkey;
	return 0;
}

void bench_rdma_free(struct bench_rdma *r)
{
	if (!r)
		return;
	if (r->qp)
		verbs.destroy_qp(r->qp);
	if (r->cq)
		verbs.destroy_cq(r->cq);
	if (r->channel)
		verbs.destroy_comp_channel(r->channel);
	if (r->ah)
		verbs.destroy_ah(r->ah);
	if (r->mr)
		verbs.dereg_mr(r->mr);
	free(r->memory);
	free(r);
}

/* ---- connecting ---- */

static enum ibv_mtu bench_rdma_mtu(u32 bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 128u << mtu < bytes)
		mtu++;
	return mtu;
}

static int bench_rdma_connect_rc(struct bench_rdma *r, const struct bench_message *peer, u32 psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = bench_rdma_mtu(r->test.path_mtu),
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = READS,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = device_ah_attr(r->end->dev, &r->end->peer),
	};
	int err = -verbs.modify_qp(r->qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER);

	if (err)
		return err;
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .sq_psn = psn, .timeout = TIMEOUT,
				     .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = READS };
	return -verbs.modify_qp(r->qp, &attr,
				IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int bench_rdma_connect_ud(struct bench_rdma *r, u32 psn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .sq_psn = psn };
	int err = -verbs.modify_qp(r->qp, &attr, IBV_QP_STATE);

	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = -verbs.modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (err)
		return err;
	r->ah = device_create_ah(r->end->dev, &r->end->peer);
	return r->ah ? 0 : -errno;
}

int bench_rdma_connect(struct bench_rdma *r, const struct bench_message *own,
		       const struct bench_message *peer)
{
	r->remote_qpn = peer->qpn;
	r->rkey = peer->rkey;
	r->va = peer->va;
	return bench_rdma_is_ud(r) ? bench_rdma_connect_ud(r, own->psn) :
				     bench_rdma_connect_rc(r, peer, own->psn);
}

/* ---- requests ---- */

/* Posts one request of the test's size. imm: sent with SEND, UD and the WRITE of a latency test. */
static int bench_rdma_post(struct bench_rdma *r, u32 imm)
{
	struct ibv_sge sge = { (uintptr_t)r->memory, r->test.size, r->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .imm_data = htobe32(imm) }, *bad;

	switch (r->test.way) {
	case BENCH_WRITE:
		/* latency needs a completion at the other end; bandwidth does not */
		wr.opcode = r->test.measure == BENCH_LATENCY ? IBV_WR_RDMA_WRITE_WITH_IMM :
							       IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = r->va;
		wr.wr.rdma.rkey = r->rkey;
		break;
	case BENCH_READ:
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = r->va;
		wr.wr.rdma.rkey = r->rkey;
		break;
	case BENCH_UD:
		wr.wr.ud.ah = r->ah;
		wr.wr.ud.remote_qpn = r->remote_qpn;
		wr.wr.ud.remote_qkey = QKEY;
		/* fall through */
	default:
		wr.opcode = IBV_WR_SEND_WITH_IMM;
	}
	return -ibv_post_send(r->qp, &wr, &bad);
}

/* ---- completions ---- */

static bool bench_rdma_control_speaks(const struct bench_rdma *r)
{
	struct pollfd p = { .fd = r->end->control, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Sleeps until an event, data on the control connection, or the time-out. */
static void bench_rdma_sleep(struct bench_rdma *r, u64 timeout_ns)
{
	const struct timespec t = { .tv_sec = (time_t)(timeout_ns / NSEC_PER_SEC),
				    .tv_nsec = (long)(timeout_ns % NSEC_PER_SEC) };
	struct pollfd p[] = { { .fd = r->channel->fd, .events = POLLIN },
			      { .fd = r->end->control, .events = POLLIN } };
	struct ibv_cq *cq;
	void *context;

	ppoll(p, ARRAY_SIZE(p), &t, NULL);
	if (verbs.get_cq_event(r->channel, &cq, &context))
		return;
	verbs.ack_cq_events(cq, 1);
	r->armed = false;
}

static int bench_rdma_judge(const struct ibv_wc *wc, int n)
{
	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "xroce bench: a work request failed: %s\n",
				verbs.wc_status_str(wc[i].status));
			return -EIO;
		}
	return n < 0 ? -EIO : n;
}

/*
 * Returns at most `most` completions. Waits for the first, by polling or asleep as the test says,
 * until deadline_ns. Returns their number; 0: timed out, stop requested, or the control connection
 * has data; -EIO: one has an error, whose status has been printed.
 */
static int bench_rdma_next(struct bench_rdma *r, struct ibv_wc *wc, int most, u64 deadline_ns)
{
	u64 now_ns;
	int n;

	while (!(n = ibv_poll_cq(r->cq, most, wc))) {
		if (r->channel && !r->armed) {
			/* the next poll finds earlier completions; later ones raise an event */
			ibv_req_notify_cq(r->cq, 0);
			r->armed = true;
			continue;
		}
		if (!r->channel && ++r->polls < POLLS)
			continue;
		r->polls = 0;
		now_ns = clock_now_ns();
		if (now_ns >= deadline_ns || stop_requested() || bench_rdma_control_speaks(r))
			return 0;
		if (r->channel)
			bench_rdma_sleep(r, deadline_ns - now_ns);
	}
	return bench_rdma_judge(wc, n);
}

/* ---- a test ---- */

static u64 bench_rdma_deadline(const struct bench_rdma *r)
{
	return clock_now_ns() + r->test.duration_ns + BENCH_PATIENCE_NS;
}

/* Returns why a wait ended; before the deadline, -EPIPE means that the other end has exited. */
static int bench_rdma_ended(u64 deadline_ns)
{
	return stop_requested() ? -EINTR : clock_now_ns() >= deadline_ns ? -ETIMEDOUT : -EPIPE;
}

static bool is_receive(const struct ibv_wc *wc)
{
	return wc->opcode & IBV_WC_RECV;
}

/* ---- latency ---- */

struct bench_trip {
	u32 seq;
	bool back, sent; /* back: the answer has arrived; sent: the request has completed */
};

/*
 * Processes a completion; seq identifies late answers to earlier datagrams, which are ignored.
 * Returns 0 or -errno.
 */
static int bench_rdma_trip_wc(struct bench_rdma *r, struct bench_trip *t, const struct ibv_wc *wc)
{
	if (!is_receive(wc)) {
		t->sent = true;
		t->back |= r->test.way == BENCH_READ;
		return 0;
	}
	t->back |= be32toh(wc->imm_data) == t->seq;
	return bench_rdma_receive(r, (u32)wc->wr_id);
}

/* Makes a round trip. Returns 1; 0: a datagram was lost; or -errno. */
static int bench_rdma_trip(struct bench_rdma *r, u32 seq, u64 deadline_ns)
{
	const bool may_lose = r->test.way == BENCH_UD;
	const u64 end_ns = may_lose ? clock_now_ns() + BENCH_LOST_NS : deadline_ns;
	struct bench_trip t = { .seq = seq };
	struct ibv_wc wc[BATCH];
	int n, err = bench_rdma_post(r, seq);

	while (!err && !(t.back && t.sent)) {
		n = bench_rdma_next(r, wc, BATCH, end_ns);
		if (!n && may_lose && t.sent && clock_now_ns() >= end_ns)
			return 0;
		if (n <= 0)
			return n ? n : bench_rdma_ended(end_ns);
		for (int i = 0; i < n && !err; i++)
			err = bench_rdma_trip_wc(r, &t, &wc[i]);
	}
	return err ? err : 1;
}

static int bench_rdma_latency(struct bench_rdma *r, struct bench_outcome *out)
{
	const u64 begun_ns = clock_now_ns(), deadline_ns = bench_rdma_deadline(r);
	u64 before_ns = begun_ns, now_ns;
	u32 seq = 0;
	int n;

	do {
		n = bench_rdma_trip(r, seq++, deadline_ns);
		now_ns = clock_now_ns();
		if (n > 0) {
			histogram_add(&out->rtt, now_ns - before_ns);
			out->messages++;
			out->bytes += r->test.size;
		} else if (!n) {
			out->lost++;
		}
		before_ns = now_ns;
	} while (n >= 0 && now_ns - begun_ns < r->test.duration_ns && !stop_requested());
	out->elapsed_ns = now_ns - begun_ns;
	return n < 0 ? n : 0;
}

/* Returns each message to the client until the control connection has data. */
static int bench_rdma_echo(struct bench_rdma *r, struct bench_outcome *out)
{
	const u64 deadline_ns = bench_rdma_deadline(r);
	struct ibv_wc wc[BATCH];
	int n, err = 0;

	while (!err && (n = bench_rdma_next(r, wc, BATCH, deadline_ns)) > 0)
		for (int i = 0; i < n && !err; i++) {
			if (!is_receive(&wc[i]))
				continue;
			out->messages++;
			out->bytes += r->test.size;
			err = bench_rdma_receive(r, (u32)wc[i].wr_id);
			if (!err)
				err = bench_rdma_post(r, be32toh(wc[i].imm_data));
		}
	return err ? err : n;
}

/* ---- bandwidth ---- */

static int bench_rdma_stream(struct bench_rdma *r, struct bench_outcome *out)
{
	const u64 begun_ns = clock_now_ns(), deadline_ns = bench_rdma_deadline(r);
	u32 under_way = 0, seq = 0;
	bool over = false;
	struct ibv_wc wc[BATCH];
	int n, err = 0;

	while (!err && (!over || under_way)) {
		for (; !over && !err && under_way < r->test.depth; under_way++)
			err = bench_rdma_post(r, seq++);
		if (err)
			break;
		n = bench_rdma_next(r, wc, BATCH, deadline_ns);
		if (n <= 0)
			return n ? n : bench_rdma_ended(deadline_ns);
		under_way -= (u32)n;
		out->messages += (u32)n;
		over = over || stop_requested() ||
		       clock_now_ns() - begun_ns >= r->test.duration_ns;
	}
	out->elapsed_ns = clock_now_ns() - begun_ns;
	out->bytes = out->messages * r->test.size;
	return err;
}

/* Counts messages; bytes and time exclude the first batch. */
static int bench_rdma_sink(struct bench_rdma *r, struct bench_outcome *out)
{
	const u64 deadline_ns = bench_rdma_deadline(r);
	u64 first_ns = 0, last_ns = 0;
	struct ibv_wc wc[BATCH];
	int n, err = 0;

	while (!err && (n = bench_rdma_next(r, wc, BATCH, deadline_ns)) > 0) {
		last_ns = clock_now_ns();
		if (first_ns)
			out->bytes += (u64)n * r->test.size;
		else
			first_ns = last_ns;
		for (int i = 0; i < n && !err; i++)
			err = bench_rdma_receive(r, (u32)wc[i].wr_id);
		out->messages += (u32)n;
	}
	out->elapsed_ns = last_ns - first_ns;
	return err ? err : n;
}

int bench_rdma_client(struct bench_rdma *r, struct bench_outcome *out)
{
	return r->test.measure == BENCH_LATENCY ? bench_rdma_latency(r, out) :
						  bench_rdma_stream(r, out);
}

int bench_rdma_server(struct bench_rdma *r, struct bench_outcome *out)
{
	return r->test.measure == BENCH_LATENCY ? bench_rdma_echo(r, out) :
						  bench_rdma_sink(r, out);
}
