/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the engine alone costs: two engines in one process, no kernel, no loss. Frames go from one
 * to the other in batches through a small set of buffers, as they would through rings; ICRCs are
 * made and checked, payload is copied from and to the user's buffers. Never part of a test: it
 * prints figures and fails only when a completion is missing or wrong.
 *
 *   engine [-m] [-s] [-t seconds | -n messages] [-d depth] WORKLOAD...
 *   WORKLOAD: OPERATION:SIZE[:QPS], OPERATION one of send, write, read
 *
 * Whatever the number of QPs, each has rings of depth WQEs, depth messages are posted before
 * packets move, and each 16th message of a QP is signaled. With one QP they are posted 16 at a
 * time; with several, each message goes to the next QP. All QPs of an end read from or write to one
 * buffer. With -m a line has the memory of an idle QP.
 *
 * A line a workload, separated by tabs: workload, messages/s with both ends on this core, Gbit/s of
 * payload, nanoseconds a message of the requester's and of the responder's end, messages/s and
 * Gbit/s if each end had its own core (the slower end's).
 *
 * With -s both ends have two engines (shards), which share memory and numbers but no CQ, and the
 * line is: workload, messages/s of one thread that runs the first engine of each end, messages/s of
 * two threads, the second of which runs the others, and how many times as much that is.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../user/engine/engine.h"

#define BATCH	    32	    /* frames handed over at a time, as the pump does */
#define FRAME_ROOM  8192
#define PSN	    0xfff000
#define TIMEOUT	    14
/* messages of a QP a completion of the requester; and posted at a time where there is one QP */
#define SIGNAL_EACH 16
#define DEPTH_MAX   1024

struct end {
	struct engine *engine;
	struct xroce_engine_stats stats;
	struct xroce_drops drops;
	struct cq cq;
	struct xroce_cq_stat cq_stat;
	struct mr *mr;
	u8 *memory;
	struct qp **qp;
	struct gid gid;
	u8 mac[6];
	u64 spent_ns;
};

struct bench {
	struct end end[2];
	u32 qps, depth, size;
	u8 opcode;	/* enum wr_opcode */
	u32 *out;	/* messages of each QP that are posted and not known to be done */
	u32 *posted;	/* messages of each QP ever posted */
	u32 turn;
	u64 done;
	u64 end_messages; /* stop posting there */
	u64 started;
	u64 received;
};

static _Thread_local u8 frames[BATCH][FRAME_ROOM] __attribute__((aligned(4096)));

static void die(const char *what)
{
	fprintf(stderr, "engine: %s\n", what);
	exit(1);
}

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

static u64 roundup(u64 n, u64 to)
{
	return (n + to - 1) / to * to;
}

static u64 next_random(void *arg)
{
	static u64 x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* first: the end that this one is another engine of, or NULL. */
static void end_open(struct end *end, u32 index, u32 size, const struct end *first)
{
	const struct engine_config config = { .random = next_random,
					      .stats = &end->stats,
					      .drops = &end->drops,
					      .sibling = first ? first->engine : NULL,
					      .number = first != NULL };

	memset(end, 0, sizeof(*end));
	end->gid = (struct gid){ { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = (u8)(index + 1) } };
	memcpy(end->mac, (u8[]){ 2, 0, 0, 0, 0, (u8)(index + 1) }, sizeof(end->mac));
	if (engine_create(&config, &end->engine) || cq_init(&end->cq, 1 << 17))
		die("no memory");
	end->cq.stat = &end->cq_stat;
	if (first) {
		end->memory = first->memory;
		end->mr = first->mr;
		return;
	}
	end->memory = aligned_alloc(4096, (size + 4095) & ~4095u);
	if (!end->memory)
		die("no memory");
	memset(end->memory, (int)index, size);
	if (mr_add(engine_mr_table(end->engine), 1, end->memory, size, (u64)(uintptr_t)end->memory,
		   MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ, &end->mr))
		die("mr_add");
}

static void end_qps(struct end *end, u32 qps, u32 depth)
{
	const struct qp_init init = {
		.transport = XROCE_RC,
		.max_send_wr = depth,
		.max_recv_wr = depth,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.send_cq = &end->cq,
		.recv_cq = &end->cq,
		.pd = 1,
	};

	end->qp = calloc(qps, sizeof(*end->qp));
	for (u32 i = 0; i < qps; i++)
		if (!end->qp || qp_create(end->engine, &init, &end->qp[i]))
			die("qp_create");
}

/* Its QPs are gone; the first engine of an end comes last. */
static void end_close(struct end *end)
{
	if (engine_number(end->engine) == 0) {
		mr_remove(engine_mr_table(end->engine), end->mr);
		free(end->memory);
	}
	engine_destroy(end->engine);
	cq_free(&end->cq);
	free(end->qp);
}

static void connect_qp(struct end *a, struct end *b, u32 i)
{
	struct qp_attr attr = {
		.state = QPS_INIT,
		.port = 1,
		.access = MR_REMOTE_WRITE | MR_REMOTE_READ,
		.path_mtu = 4096,
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.dest_qpn = b->qp[i]->qpn,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.path = { .hop_limit = 64,
			  .udp_sport = path_udp_sport(0, a->qp[i]->qpn, b->qp[i]->qpn),
			  .local = a->gid,
			  .peer = b->gid },
	};
	static const u32 masks[] = {
		[QPS_INIT] =
			QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
		[QPS_RTR] = QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
			    QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
		[QPS_RTS] = QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
			    QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC,
	};

	memcpy(attr.path.dmac, b->mac, 6);
	memcpy(attr.path.smac, a->mac, 6);
	for (; attr.state <= QPS_RTS; attr.state++)
		if (qp_modify(a->engine, a->qp[i], &attr, masks[attr.state], now()))
			die("qp_modify");
}

/* wr_id of a send and of a receive: the QP's index. */
static void post_receive(struct bench *b, u32 i)
{
	struct end *end = &b->end[1];
	struct rq *rq = &end->qp[i]->rq;
	struct recv_wqe *wqe = rq_slot(rq, 0);

	if (!wqe)
		die("no room for a receive");
	wqe->wr_id = i;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct sge){ .addr = (u64)(uintptr_t)end->memory,
				    .length = b->size,
				    .lkey = end->mr->key };
	rq_publish(rq, 1);
}

/* Post n messages on a QP, one doorbell. */
static void post(struct bench *b, u32 i, u32 n)
{
	struct end *a = &b->end[0], *peer = &b->end[1];
	struct qp *qp = a->qp[i];

	sq_begin(&qp->sq);
	for (u32 k = 0; k < n; k++) {
		struct send_wqe *wqe = sq_slot(&qp->sq, k);

		if (!wqe)
			die("no room for a send");
		wqe->wr_id = i;
		wqe->opcode = b->opcode;
		wqe->flags = ++b->posted[i] % SIGNAL_EACH == 0 ? WR_SIGNALED : 0;
		wqe->num_sge = 1;
		wqe->length = b->size;
		wqe->imm = 0;
		wqe->inv_rkey = 0;
		wqe->remote_addr = (u64)(uintptr_t)peer->memory;
		wqe->rkey = peer->mr->key;
		wqe->sge[0] = (struct sge){ .addr = (u64)(uintptr_t)a->memory,
					    .length = b->size,
					    .lkey = a->mr->key };
		if (send_wqe_check(qp, wqe))
			die("send_wqe_check");
	}
	sq_publish(&qp->sq, n);
	engine_posted(a->engine, qp);
	b->out[i] += n;
	b->started += n;
}

/* Take the completions of an end. */
static void poll(struct bench *b, u32 index)
{
	const struct cqe *e;

	while ((e = cq_peek(&b->end[index].cq))) {
		u32 i = (u32)e->wr_id;

		if (e->status != CQE_SUCCESS || e->byte_len != b->size)
			die("a completion that is wrong");
		if (index == 0) {
			b->out[i] -= SIGNAL_EACH;
			b->done += SIGNAL_EACH;
		} else {
			b->received++;
			post_receive(b, i);
		}
		cq_pop(&b->end[index].cq);
	}
}

static void drain_events(struct engine *e)
{
	struct engine_event event;

	while (engine_next_event(e, &event))
		if (event.type == EVENT_QP_FATAL || event.type == EVENT_CQ_ERR ||
		    event.type == EVENT_QP_STATE)
			die("a QP or CQ failed");
}

/* A batch from one end to the other; charges each its time. False if there was none. */
static bool carry(struct bench *b, u32 from, u64 *clock)
{
	struct engine *tx = b->end[from].engine, *rx = b->end[!from].engine;
	struct engine_frame batch[BATCH];
	u32 len[BATCH], n = 0;
	u64 t = *clock, t1;

	while (n < BATCH && (len[n] = engine_output(tx, frames[n], FRAME_ROOM, t)))
		n++;
	if (!n)
		return false;
	t1 = now();
	b->end[from].spent_ns += t1 - t;
	for (u32 i = 0; i < n; i++)
		batch[i] = (struct engine_frame){ .frame = { .data = frames[i], .len = len[i] } };
	if (engine_input_batch(rx, batch, n, t1, NULL))
		die("a packet was dropped");
	*clock = now();
	b->end[!from].spent_ns += *clock - t1;
	return true;
}

static void post_turn(struct bench *b)
{
	u32 list = b->qps == 1 ? SIGNAL_EACH : 1;

	for (u32 k = 0;
	     k < b->depth && b->out[b->turn] + list <= b->depth && b->started < b->end_messages;
	     k += list) {
		post(b, b->turn, list);
		b->turn = b->turn + 1 == b->qps ? 0 : b->turn + 1;
	}
}

static void run(struct bench *b, u64 until_ns)
{
	u64 t = now(), t1;

	while (b->done < b->end_messages) {
		/* not before the last message of each QP is a signaled one */
		if (t >= until_ns && b->end_messages > b->started)
			b->end_messages = roundup(b->started, b->qps * SIGNAL_EACH);
		post_turn(b);
		t1 = now();
		b->end[0].spent_ns += t1 - t;
		t = t1;
		while (carry(b, 0, &t)) {
			poll(b, 1);
			t1 = now();
			b->end[1].spent_ns += t1 - t;
			t = t1;
		}
		while (carry(b, 1, &t))
			;
		poll(b, 0);
		for (u32 i = 0; i < 2; i++) {
			if (t >= engine_deadline_ns(b->end[i].engine))
				engine_expire(b->end[i].engine, t);
			drain_events(b->end[i].engine);
		}
		t1 = now();
		b->end[0].spent_ns += t1 - t;
		t = t1;
	}
}

static u8 operation(const char *name)
{
	if (!strcmp(name, "send"))
		return WR_SEND;
	if (!strcmp(name, "write"))
		return WR_WRITE;
	if (!strcmp(name, "read"))
		return WR_READ;
	die("unknown operation");
	return 0;
}

/* Both ends with all they need, connected; of another engine each if there is a first. */
static struct bench *bench_open(const char *text, u32 depth, const struct bench *first)
{
	struct bench *b = aligned_alloc(CACHE_LINE,
					(sizeof(*b) + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
	char name[16] = "";

	if (!b)
		die("no memory");
	memset(b, 0, sizeof(*b));
	b->qps = 1;
	if (sscanf(text, "%15[a-z]:%u:%u", name, &b->size, &b->qps) < 2 || !b->qps ||
	    b->qps > XROCE_MAX_QP)
		die("a workload is OPERATION:SIZE[:QPS]");
	b->opcode = operation(name);
	b->depth = depth;
	b->out = calloc(b->qps, sizeof(*b->out));
	b->posted = calloc(b->qps, sizeof(*b->posted));
	for (u32 i = 0; i < 2; i++) {
		end_open(&b->end[i], i, b->size, first ? &first->end[i] : NULL);
		end_qps(&b->end[i], b->qps, b->depth);
	}
	for (u32 i = 0; i < b->qps; i++) {
		connect_qp(&b->end[0], &b->end[1], i);
		connect_qp(&b->end[1], &b->end[0], i);
		for (u32 k = 0; b->opcode == WR_SEND && k < b->depth; k++)
			post_receive(b, i);
	}
	/* everything touched once before the clock starts */
	b->end_messages = (u64)b->qps * SIGNAL_EACH;
	run(b, UINT64_MAX);
	return b;
}

static void bench_close(struct bench *b)
{
	for (u32 i = 0; i < 2; i++) {
		for (u32 k = 0; k < b->qps; k++)
			qp_destroy(b->end[i].engine, b->end[i].qp[k]);
		end_close(&b->end[i]);
	}
	free(b->out);
	free(b->posted);
	free(b);
}

/* Runs `messages` messages, or if 0 for `seconds`. Returns the time taken. */
static u64 bench_run(struct bench *b, u64 messages, double seconds)
{
	u64 t, elapsed;

	b->done = b->started = b->received = b->end[0].spent_ns = b->end[1].spent_ns = 0;
	b->end_messages = messages ? roundup(messages, b->qps * SIGNAL_EACH) : UINT64_MAX / 2;
	t = now();
	run(b, messages ? UINT64_MAX : t + (u64)(seconds * 1e9));
	elapsed = now() - t;
	if (b->opcode == WR_SEND && b->received != b->done)
		die("received is not what was sent");
	return elapsed;
}

struct task {
	struct bench *b;
	u64 messages;
	double seconds, rate;
};

static void *task_run(void *arg)
{
	struct task *t = arg;
	u64 elapsed = bench_run(t->b, t->messages, t->seconds);

	t->rate = (double)t->b->done * 1e9 / (double)elapsed;
	return NULL;
}

static void shards(const char *text, u64 messages, double seconds, u32 depth)
{
	struct task task[2] = { { .messages = messages, .seconds = seconds },
				{ .messages = messages, .seconds = seconds } };
	pthread_t thread[2];
	double one;

	task[0].b = bench_open(text, depth, NULL);
	task[1].b = bench_open(text, depth, task[0].b);
	task_run(&task[0]);
	one = task[0].rate;
	for (u32 i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, task_run, &task[i]))
			die("pthread_create");
	for (u32 i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("%s\t%.0f\t%.0f\t%.2f\n", text, one, task[0].rate + task[1].rate,
	       (task[0].rate + task[1].rate) / one);
	fflush(stdout);
	bench_close(task[1].b);
	bench_close(task[0].b);
}

static void workload(const char *text, u64 messages, double seconds, u32 depth)
{
	struct bench *b = bench_open(text, depth, NULL);
	u64 elapsed = bench_run(b, messages, seconds);
	double n = (double)b->done, slower;

	slower = (double)(b->end[0].spent_ns > b->end[1].spent_ns ? b->end[0].spent_ns :
								    b->end[1].spent_ns);
	printf("%s\t%.0f\t%.3f\t%.1f\t%.1f\t%.0f\t%.3f\n", text, n * 1e9 / (double)elapsed,
	       n * b->size * 8 / (double)elapsed, (double)b->end[0].spent_ns / n,
	       (double)b->end[1].spent_ns / n, n * 1e9 / slower, n * b->size * 8 / slower);
	fflush(stdout);
	bench_close(b);
}

static u64 allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* What idle QPs take of the heap, their rings taken off. */
static void print_memory(void)
{
	static struct end end;
	const u32 qps = 1000;
	u64 before, bytes;

	end_open(&end, 0, 64, NULL);
	before = allocated();
	end_qps(&end, qps, 64);
	bytes = allocated() - before - qps * sizeof(*end.qp);
	for (u32 i = 0; i < qps; i++) {
		const struct qp *qp = end.qp[i];

		bytes -= (u64)(qp->sq.mask + 1) * qp->sq.stride +
			 (u64)(qp->rq.mask + 1) * qp->rq.stride;
	}
	printf("bytes a QP without its rings\t%.0f\n", (double)bytes / qps);
	for (u32 i = 0; i < qps; i++)
		qp_destroy(end.engine, end.qp[i]);
	end_close(&end);
}

int main(int argc, char **argv)
{
	double seconds = 1;
	u64 messages = 0;
	void (*measure)(const char *text, u64 messages, double seconds, u32 depth) = workload;
	u32 depth = 64;
	int c;

	while ((c = getopt(argc, argv, "t:n:d:ms")) != -1)
		switch (c) {
		case 't':
			seconds = atof(optarg);
			break;
		case 'n':
			messages = strtoull(optarg, NULL, 10);
			break;
		case 'd':
			depth = (u32)atoi(optarg);
			break;
		case 'm':
			print_memory();
			break;
		case 's':
			measure = shards;
			break;
		default:
			return 2;
		}
	if (depth < SIGNAL_EACH || depth > DEPTH_MAX || depth & (depth - 1))
		die("-d: a power of two, 16 to 1024");
	for (int i = optind; i < argc; i++)
		measure(argv[i], messages, seconds, depth);
	return 0;
}
