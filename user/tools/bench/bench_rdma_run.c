/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both ends of a verbs test. Latency: one message there and one back, or one READ. Bandwidth: depth
 * outstanding requests from client to server, or READs by the client.
 */
#include "../../os/clock.h"
#include "bench_rdma.h"

#define BATCH 16

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
