/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several threads an end, each with queue pairs of its own, that share completion queues, shared
 * receive queues and completion channels, or share none: what is moved arrives once and as it was
 * sent, and how fast.
 *
 *	threads -d DEVICE [-g GID-INDEX] [OPTION...] [HOST]	the end with HOST sends; with -b
 *both do. The options are the same at both ends
 *
 *	-o OP		send, write, read, add (fetch and add, of all QPs on one counter), uc or ud
 *(sends) -T THREADS, -q QPS (a thread), -s BYTES, -n MESSAGES (a QP), -w DEPTH (messages under way
 *a QP) -C		one CQ for all QPs; each thread polls it -R		one SRQ for all QPs
 *	-e		threads sleep in ibv_get_cq_event(3), with a channel each; -E: with one for
 *all -c		check every byte -p CPU,...	thread i runs on CPU i of the list -m
 *MESSAGES and goes on to the list's next one after so many -F COUNT	the process forks so many
 *times meanwhile
 *
 * What a QP of a reliable service sent is received once, in its order where one thread takes it.
 * WRITEs are looked at in the end, what READs fetch at once. The values that fetch-and-add returns
 * are all different, and grow on each QP. UC and UD may lose, but nothing comes twice. Prints for
 * an end that sends
 *
 *	threads: thread 0: 1200000 messages/s
 *	threads: send of 64 bytes, 2 threads, 2 QPs: 2400000 messages/s, 1.229 Gbit/s
 *
 * and for one that receives: threads: received 800000 of 800000 messages
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define THREADS_MAX 16
#define QPS_MAX	    64
#define BATCH	    16 /* work requests posted, and completions polled, at a time */
#define GRH	    40
#define QKEY	    0x11111111
#define SEND_ID	    (1ull << 63)
#define MEGABYTE    (1u << 20)

enum op { OP_SEND, OP_WRITE, OP_READ, OP_ADD, OP_UC, OP_UD, OPS };

static const struct {
	const char *name, *text;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	bool receives; /* completions at the other end */
	bool may_lose;
} ops[OPS] = {
	[OP_SEND] = { "send", "send", IBV_QPT_RC, IBV_WR_SEND, true, false },
	[OP_WRITE] = { "write", "write", IBV_QPT_RC, IBV_WR_RDMA_WRITE, false, false },
	[OP_READ] = { "read", "read", IBV_QPT_RC, IBV_WR_RDMA_READ, false, false },
	[OP_ADD] = { "add", "fetch and add", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, false,
		     false },
	[OP_UC] = { "uc", "UC send", IBV_QPT_UC, IBV_WR_SEND, true, true },
	[OP_UD] = { "ud", "UD send", IBV_QPT_UD, IBV_WR_SEND, true, true },
};

/* The same at both ends. */
struct config {
	uint32_t op, threads, qps, bytes, depth;
	uint64_t messages;
	uint32_t both, check;
};

struct address {
	struct config config;
	union ibv_gid gid;
	enum ibv_mtu mtu;
	uint64_t base;
	uint32_t rkey;
	uint32_t qpn[QPS_MAX];
};

struct queue {
	struct ibv_qp *qp;
	uint64_t posted;	     /* by its thread alone */
	_Atomic uint64_t completed;  /* by who polls */
	_Atomic uint64_t received;
	_Atomic uint64_t last_added; /* what fetch-and-add returned last, and one */
	_Atomic uint8_t *seen;	     /* a bit a message */
	_Atomic uint8_t *busy;	     /* a slot each: posted, and not yet looked at */
};

struct worker {
	pthread_t thread;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	unsigned int index, cpu;
	uint64_t moved_at, end_ns;
};

static struct config config = { .threads = 2, .qps = 1, .bytes = 64, .messages = 10000 };
static bool one_cq, one_srq, sleeps, one_channel;
static unsigned int cpus[64], num_cpus, forks, num_qps, receives; /* receives: posted a QP */
static uint64_t change_every;
static int gid_index;

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static struct queue queue[QPS_MAX];
static struct worker worker[THREADS_MAX];
static struct address own, peer;
static bool is_client, sends, is_target; /* this end */
/*
 * send slots, receive slots, what the peer writes to, what it reads from, the counter; an area a QP
 * each
 */
static uint8_t *memory, *send_area, *recv_area, *write_area, *read_area;
static uint64_t *counter;
static _Atomic uint8_t *added; /* a bit for each value that fetch-and-add returned */
static _Atomic uint64_t progress;
static _Atomic bool stop;
static uint64_t begin_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- what a message holds ---- */

static uint64_t stamp(bool from_client, unsigned int q, uint64_t k)
{
	return (uint64_t)from_client << 63 | (uint64_t)q << 40 | k;
}

static uint64_t word(uint64_t first, uint32_t i)
{
	return i ? (first + i) * 0x9e3779b97f4a7c15ull ^ first >> 7 : first;
}

static void fill(uint8_t *p, uint64_t first)
{
	for (uint32_t at = 0; at < config.bytes; at += 8) {
		uint64_t w = word(first, at / 8);

		memcpy(p + at, &w, config.bytes - at < 8 ? config.bytes - at : 8);
	}
}

static void check_bytes(const uint8_t *p, uint64_t first, const char *where)
{
	for (uint32_t at = 0; at < config.bytes; at += 8) {
		uint64_t w = word(first, at / 8);

		must(!memcmp(p + at, &w, config.bytes - at < 8 ? config.bytes - at : 8),
		     "%s: byte %u or behind is wrong in message %llu of QP %llu", where, at,
		     (unsigned long long)(first & 0xffffffffff),
		     (unsigned long long)(first >> 40 & 0xffff));
	}
}

/* Marks bit k; it must not have been. */
static void mark(_Atomic uint8_t *bits, uint64_t k, const char *what, unsigned int q)
{
	must(!(atomic_fetch_or(&bits[k / 8], (uint8_t)(1 << k % 8)) & 1 << k % 8),
	     "%s %llu came twice (QP %u)", what, (unsigned long long)k, q);
}

/*
 * Where nothing is received, or some of it may be lost, only the other end knows when it is over.
 */
static bool other_end_knows(void)
{
	return is_target && (!ops[config.op].receives || ops[config.op].may_lose);
}

/*
 * A sleeper's last event may be another's, or never come: it looks now and then whether all is
 * over.
 */
static bool looks_up(void)
{
	return one_cq || one_channel || other_end_knows();
}

/* ---- making ---- */

static uint8_t *take(uint8_t **next, size_t bytes)
{
	uint8_t *p = *next;

	*next += (bytes + 63) & ~(size_t)63;
	return p;
}

static void make_memory(void)
{
	const size_t slots = (size_t)num_qps * config.depth * config.bytes,
		     recv = (size_t)num_qps * receives * (config.bytes + GRH);
	const size_t size = 3 * slots + recv + 5 * 64;
	uint8_t *next = memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must(memory != MAP_FAILED, "%zu bytes of memory: %s", size, strerror(errno));
	counter = (uint64_t *)take(&next, 8);
	send_area = take(&next, slots);
	recv_area = take(&next, recv);
	write_area = take(&next, slots);
	read_area = take(&next, slots);
	for (unsigned int q = 0; q < num_qps && config.op == OP_READ; q++)
		for (uint32_t i = 0; i < config.depth; i++)
			fill(read_area + (size_t)(q * config.depth + i) * config.bytes,
			     stamp(is_client, q, i));
	mr = ibv_reg_mr(pd, memory, size,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	must(mr, "ibv_reg_mr: %s", strerror(errno));
	must((added = calloc(1, num_qps * config.messages / 8 + 1)), "no memory");
	own.base = (uintptr_t)memory;
	own.rkey = mr->rkey;
}

static void make_cqs(void)
{
	for (unsigned int t = 0; t < config.threads; t++) {
		struct worker *w = &worker[t];
		const unsigned int qps = one_cq ? num_qps : config.qps;
		/* one QP may take all of an SRQ's receives */
		const unsigned int entries =
			qps * config.depth + (one_srq ? num_qps : qps) * receives;

		w->index = t;
		if (sleeps)
			w->channel = t && (one_channel || one_cq) ? worker[0].channel :
								    ibv_create_comp_channel(ctx);
		must(!sleeps || w->channel, "ibv_create_comp_channel: %s", strerror(errno));
		w->cq = t && one_cq ? worker[0].cq :
				      ibv_create_cq(ctx, (int)entries, w, w->channel,
						    (int)t % ctx->num_comp_vectors);
		must(w->cq, "ibv_create_cq: %s", strerror(errno));
	}
	for (unsigned int t = 0; t < config.threads && sleeps && looks_up(); t++)
		fcntl(worker[t].channel->fd, F_SETFL,
		      fcntl(worker[t].channel->fd, F_GETFL) | O_NONBLOCK);
}

static void make_qp(unsigned int q)
{
	struct ibv_cq *cq = worker[q / config.qps].cq;
	struct ibv_qp_init_attr init = { .qp_type = ops[config.op].type,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .srq = srq,
					 .sq_sig_all = 0,
					 .cap = { config.depth, srq ? 0 : receives, 1, 1, 0 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = QKEY,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		   (init.qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

	if (init.qp_type == IBV_QPT_UC)
		a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	must((queue[q].qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!(errno = ibv_modify_qp(queue[q].qp, &a, mask)), "ibv_modify_qp to INIT: %s",
	     strerror(errno));
	must((queue[q].seen = calloc(1, config.messages / 8 + 1)) &&
		     (queue[q].busy = calloc(1, config.depth)),
	     "no memory");
	own.qpn[q] = queue[q].qp->qp_num;
}

/* One slot more to receive to. */
static void post_receive(unsigned int slot, unsigned int count)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	for (unsigned int i = 0; i < count; i++) {
		sge[i] = (struct ibv_sge){ (uintptr_t)recv_area +
						   (size_t)(slot + i) * (config.bytes + GRH),
					   config.bytes + GRH, mr->lkey };
		wr[i] = (struct ibv_recv_wr){ .wr_id = slot + i,
					      .sg_list = &sge[i],
					      .num_sge = 1,
					      .next = i + 1 < count ? &wr[i + 1] : NULL };
	}
	errno = srq ? ibv_post_srq_recv(srq, wr, &bad) :
		      ibv_post_recv(queue[slot / receives].qp, wr, &bad);
	must(!errno, "posting a receive: %s", strerror(errno));
}

static void make(const char *device)
{
	struct ibv_port_attr port;

	ctx = open_device(device);
	must(!ibv_query_port(ctx, 1, &port), "ibv_query_port");
	own.mtu = port.active_mtu;
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd: %s", strerror(errno));
	must(!ibv_query_gid(ctx, 1, gid_index, &own.gid), "ibv_query_gid(%d)", gid_index);
	make_memory();
	make_cqs();
	if (one_srq) {
		struct ibv_srq_init_attr attr = { .attr = { .max_wr = num_qps * receives,
							    .max_sge = 1 } };

		must((srq = ibv_create_srq(pd, &attr)), "ibv_create_srq: %s", strerror(errno));
	}
	for (unsigned int q = 0; q < num_qps; q++)
		make_qp(q);
	own.config = config;
}

static void connect_qp(unsigned int q)
{
	const bool rc = ops[config.op].type == IBV_QPT_RC, ud = ops[config.op].type == IBV_QPT_UD;
	struct ibv_ah_attr path = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = peer.gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64 }
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = own.mtu < peer.mtu ? own.mtu : peer.mtu,
				 .dest_qp_num = peer.qpn[q],
				 .max_dest_rd_atomic = 16,
				 .min_rnr_timer = 5,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 16,
				 .ah_attr = path };

	errno = ibv_modify_qp(
		queue[q].qp, &a,
		ud ? IBV_QP_STATE :
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				(rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	must(!errno, "ibv_modify_qp to RTR: %s", strerror(errno));
	a.qp_state = IBV_QPS_RTS;
	errno = ibv_modify_qp(queue[q].qp, &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN |
				      (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						       IBV_QP_MAX_QP_RD_ATOMIC :
					    0));
	must(!errno, "ibv_modify_qp to RTS: %s", strerror(errno));
	if (ud && !ah)
		must((ah = ibv_create_ah(pd, &path)), "ibv_create_ah: %s", strerror(errno));
}

static void connect_all(void)
{
	for (unsigned int q = 0; q < num_qps; q++) {
		connect_qp(q);
		for (unsigned int i = 0; ops[config.op].receives && is_target && i < receives;
		     i += BATCH)
			post_receive(q * receives + i, receives - i < BATCH ? receives - i : BATCH);
	}
}

static void unmake(void)
{
	for (unsigned int q = 0; q < num_qps; q++)
		must(!ibv_destroy_qp(queue[q].qp), "ibv_destroy_qp");
	for (unsigned int t = 0; t < config.threads; t++)
		must((one_cq && t) || !ibv_destroy_cq(worker[t].cq), "ibv_destroy_cq");
	for (unsigned int t = 0; t < config.threads && sleeps; t++)
		must(((one_cq || one_channel) && t) || !ibv_destroy_comp_channel(worker[t].channel),
		     "ibv_destroy_comp_channel");
	must(!srq || !ibv_destroy_srq(srq), "ibv_destroy_srq");
	must(!ah || !ibv_destroy_ah(ah), "ibv_destroy_ah");
	must(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx), "closing");
}

/* ---- sending ---- */

static uint8_t *send_slot(unsigned int q, uint64_t k)
{
	return send_area + (size_t)(q * config.depth + k % config.depth) * config.bytes;
}

static void prepare(struct ibv_send_wr *wr, struct ibv_sge *sge, unsigned int q, uint64_t k,
		    bool signal)
{
	/* the peer's areas lie as ours do */
	const uint64_t there = peer.base + (uint64_t)(send_slot(q, k) - send_area);

	*sge = (struct ibv_sge){ (uintptr_t)send_slot(q, k), config.bytes, mr->lkey };
	*wr = (struct ibv_send_wr){ .wr_id = SEND_ID | stamp(0, q, k),
				    .sg_list = sge,
				    .num_sge = 1,
				    .opcode = ops[config.op].opcode,
				    .send_flags = signal ? IBV_SEND_SIGNALED : 0 };
	switch (config.op) {
	case OP_WRITE:
		wr->wr.rdma.remote_addr = there + (uint64_t)(write_area - memory);
		wr->wr.rdma.rkey = peer.rkey;
		break;
	case OP_READ:
		wr->wr.rdma.remote_addr = there + (uint64_t)(read_area - memory);
		wr->wr.rdma.rkey = peer.rkey;
		break;
	case OP_ADD:
		wr->wr.atomic.remote_addr = peer.base + (uint64_t)((uint8_t *)counter - memory);
		wr->wr.atomic.compare_add = 1;
		wr->wr.atomic.rkey = peer.rkey;
		break;
	case OP_UD:
		wr->wr.ud.ah = ah;
		wr->wr.ud.remote_qpn = peer.qpn[q];
		wr->wr.ud.remote_qkey = QKEY;
		break;
	}
	if (config.op == OP_READ && config.check)
		memset(send_slot(q, k), 0xee, config.bytes);
	else if (config.check && config.op != OP_ADD)
		fill(send_slot(q, k), stamp(is_client, q, k));
}

/* What is looked at when it completes has a completion of its own. */
static bool looks_at_each(void)
{
	return config.op == OP_ADD || (config.op == OP_READ && config.check);
}

/*
 * Messages of this QP that may be posted: a whole batch, or the last ones, or 0 while there is no
 * room for them.
 */
static uint32_t room(const struct queue *u)
{
	const uint32_t batch = config.depth < 2 * BATCH ? (config.depth + 1) / 2 : BATCH;
	const uint32_t n = config.messages - u->posted < batch ?
				   (uint32_t)(config.messages - u->posted) :
				   batch;

	if (config.depth - (u->posted - atomic_load_explicit(&u->completed, memory_order_acquire)) <
	    n)
		return 0;
	/* a later one's completion may have been taken by a thread that was quicker */
	for (uint32_t i = 0; looks_at_each() && i < n; i++)
		if (atomic_load_explicit(&u->busy[(u->posted + i) % config.depth],
					 memory_order_acquire))
			return 0;
	return n;
}

static void post_sends(unsigned int q)
{
	struct queue *u = &queue[q];
	uint32_t n;

	while ((n = room(u))) {
		struct ibv_send_wr wr[BATCH], *bad;
		struct ibv_sge sge[BATCH];

		for (uint32_t i = 0; i < n; i++) {
			prepare(&wr[i], &sge[i], q, u->posted + i, looks_at_each() || i + 1 == n);
			atomic_store_explicit(&u->busy[(u->posted + i) % config.depth], 1,
					      memory_order_relaxed);
			wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		}
		errno = ibv_post_send(u->qp, wr, &bad);
		must(!errno, "ibv_post_send: %s", strerror(errno));
		u->posted += n;
	}
}

static void on_sent(unsigned int q, uint64_t k)
{
	struct queue *u = &queue[q];
	uint64_t before;

	must(q < num_qps && k < config.messages, "a send completion of nothing that was sent");
	if (config.op == OP_READ && config.check)
		check_bytes(send_slot(q, k), stamp(!is_client, q, k % config.depth), "READ");
	if (config.op == OP_ADD) {
		uint64_t value;

		memcpy(&value, send_slot(q, k), 8);
		must(value < num_qps * config.messages, "fetch and add gave %llu",
		     (unsigned long long)value);
		mark(added, value, "the sum", q);
		if (!one_cq && !one_channel)
			must(atomic_exchange(&u->last_added, value + 1) <= value,
			     "QP %u: the sum goes back to %llu", q, (unsigned long long)value);
	}
	atomic_store_explicit(&u->busy[k % config.depth], 0, memory_order_release);
	/* two threads may have taken completions of one QP */
	before = atomic_load(&u->completed);
	while (before < k + 1 &&
	       !atomic_compare_exchange_weak_explicit(&u->completed, &before, k + 1,
						      memory_order_release, memory_order_relaxed))
		;
}

/* ---- receiving ---- */

static unsigned int queue_of(uint32_t qpn)
{
	for (unsigned int q = 0; q < num_qps; q++)
		if (own.qpn[q] == qpn)
			return q;
	die("a completion of QP %#x, which is not ours", qpn);
}

static void on_received(const struct ibv_wc *wc)
{
	const unsigned int slot = (unsigned int)wc->wr_id,
			   q = srq ? queue_of(wc->qp_num) : slot / receives;
	const uint32_t grh = config.op == OP_UD ? GRH : 0;
	const uint8_t *p = recv_area + (size_t)slot * (config.bytes + GRH) + grh;
	struct queue *u = &queue[q];
	uint64_t first, n;

	must(slot < num_qps * receives && wc->qp_num == own.qpn[q],
	     "a receive completion with wr_id %llu, QP %#x", (unsigned long long)wc->wr_id,
	     wc->qp_num);
	must(wc->byte_len == config.bytes + grh, "%u bytes received, not %u", wc->byte_len,
	     config.bytes + grh);
	n = atomic_fetch_add_explicit(&u->received, 1, memory_order_relaxed);
	if (!config.check)
		return;
	memcpy(&first, p, 8);
	must((first >> 40 & 0xffff) == q && (first & 0xffffffffff) < config.messages,
	     "QP %u received %#llx", q, (unsigned long long)first);
	must(first >> 63 == !is_client, "QP %u received what it sent", q);
	mark(u->seen, first & 0xffffffffff, "message", q);
	must(one_cq || one_channel || ops[config.op].may_lose || (first & 0xffffffffff) == n,
	     "QP %u: message %llu came as number %llu", q,
	     (unsigned long long)(first & 0xffffffffff), (unsigned long long)n);
	check_bytes(p, first, "receive");
}

static bool has_sent(unsigned int q)
{
	return !sends ||
	       atomic_load_explicit(&queue[q].completed, memory_order_relaxed) == config.messages;
}

static bool has_received(unsigned int q)
{
	return !is_target || other_end_knows() ||
	       atomic_load_explicit(&queue[q].received, memory_order_relaxed) == config.messages;
}

/* Returns how many there were. */
static int poll_cq(struct ibv_cq *cq)
{
	struct ibv_wc wc[BATCH];
	unsigned int run = 0, slot = 0;
	int n = ibv_poll_cq(cq, BATCH, wc);

	must(n >= 0, "ibv_poll_cq: %d", n);
	for (int i = 0; i < n; i++) {
		must(wc[i].status == IBV_WC_SUCCESS,
		     "wr_id %#llx ended with status %d (%s), vendor_err %u",
		     (unsigned long long)wc[i].wr_id, wc[i].status, ibv_wc_status_str(wc[i].status),
		     wc[i].vendor_err);
		if (wc[i].wr_id & SEND_ID) {
			on_sent((unsigned int)(wc[i].wr_id >> 40 & 0xffff),
				wc[i].wr_id & 0xffffffffff);
			continue;
		}
		on_received(&wc[i]);
		/* neighbours that follow each other are posted again together */
		if (run && (slot + run != wc[i].wr_id || (!srq && wc[i].wr_id % receives == 0))) {
			post_receive(slot, run);
			run = 0;
		}
		if (!run)
			slot = (unsigned int)wc[i].wr_id;
		run++;
	}
	if (run)
		post_receive(slot, run);
	if (n)
		atomic_fetch_add_explicit(&progress, (uint64_t)n, memory_order_relaxed);
	return n;
}

/* ---- a thread ---- */

static void go_to(struct worker *w, unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpus[cpu % num_cpus], &set);
	w->cpu = cpu;
	errno = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	must(!errno, "CPU %u: %s", cpus[cpu % num_cpus], strerror(errno));
}

static void change_cpu(struct worker *w)
{
	const struct queue *u = &queue[w->index * config.qps];
	const uint64_t moved = u->posted + atomic_load_explicit(&u->received, memory_order_relaxed);

	if (!change_every || moved - w->moved_at < change_every)
		return;
	w->moved_at = moved;
	go_to(w, w->cpu + 1);
}

static bool are_done(unsigned int first, unsigned int n, bool (*is_done)(unsigned int q))
{
	for (unsigned int q = first; q < first + n; q++)
		if (!is_done(q))
			return false;
	return true;
}

/* Its own QPs, or all if threads take each other's completions. */
static bool is_over(const struct worker *w)
{
	const bool shared = one_cq || one_channel;
	const unsigned int first = shared ? 0 : w->index * config.qps,
			   n = shared ? num_qps : config.qps;

	return !other_end_knows() && are_done(first, n, has_sent) &&
	       are_done(first, n, has_received);
}

/*
 * Until there is an event, or for a moment if others may have taken it. Then its CQ has been armed
 * again and emptied.
 */
static void sleep_for_event(struct worker *w)
{
	struct pollfd fd = { .fd = w->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (looks_up() && !poll(&fd, 1, 20))
		return;
	if (ibv_get_cq_event(w->channel, &cq, &context)) {
		must(errno == EAGAIN && looks_up(), "ibv_get_cq_event: %s", strerror(errno));
		return;
	}
	ibv_ack_cq_events(cq, 1);
	must(!(errno = ibv_req_notify_cq(cq, 0)), "ibv_req_notify_cq: %s", strerror(errno));
	while (poll_cq(cq))
		;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	const unsigned int first = w->index * config.qps;

	if (num_cpus)
		go_to(w, w->index);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		for (unsigned int q = first; sends && q < first + config.qps; q++)
			post_sends(q);
		if (!w->end_ns && are_done(first, config.qps, has_sent))
			w->end_ns = now_ns();
		if (is_over(w) && w->end_ns)
			break;
		if (sleeps)
			sleep_for_event(w);
		else
			poll_cq(w->cq);
		change_cpu(w);
	}
	if (!w->end_ns)
		w->end_ns = now_ns(); /* another thread has taken its last completion */
	return NULL;
}

/* ---- the whole ---- */

/*
 * The child, which has a copy of all that is going on, ends at once; what it was given must not be
 * missing here.
 */
static void fork_once(void)
{
	int status;
	pid_t child = fork();

	must(child >= 0, "fork: %s", strerror(errno));
	if (!child)
		_exit(0);
	must(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status),
	     "the child ended with %#x", status);
}

/* Until this end and the other have said that they are done. */
static void watch(int ctl)
{
	uint64_t last = 0, last_ms = now_ms();
	bool said = false, heard = false;

	while (!said || !heard) {
		struct pollfd fd = { .fd = ctl, .events = POLLIN };
		uint64_t moved = atomic_load(&progress);
		uint8_t byte = 0;

		if (forks && moved != last) {
			fork_once();
			forks--;
		}
		if (moved != last || said)
			last_ms = now_ms();
		last = moved;
		must(now_ms() < last_ms + WAIT_MS, "nothing moves");
		if (!said && are_done(0, num_qps, has_sent) && are_done(0, num_qps, has_received)) {
			must(send(ctl, &byte, 1, MSG_NOSIGNAL) == 1, "control connection: %s",
			     strerror(errno));
			said = true;
		}
		if (poll(&fd, heard ? 0 : 1, 5) == 1) {
			must(recv(ctl, &byte, 1, 0) == 1, "the other side has gone");
			heard = true;
		}
	}
	/* what may be lost is on its way, or is not */
	if (is_target && ops[config.op].may_lose) {
		uint64_t before;

		do {
			before = atomic_load(&progress);
			poll(NULL, 0, 100);
		} while (before != atomic_load(&progress));
	}
}

/*
 * The other end has said that all has come, over TCP, where ThreadSanitizer sees no order: it would
 * report each word that is looked at, for minutes. The locks that registering takes were held by
 * whoever wrote here.
 */
static void order_memory(void)
{
	struct ibv_mr *again = ibv_reg_mr(pd, memory, 1, 0);

	must(again && !ibv_dereg_mr(again), "ibv_reg_mr: %s", strerror(errno));
}

static void check_memory(void)
{
	order_memory();
	if (config.op == OP_ADD)
		must(*counter == num_qps * config.messages, "the sum is %llu, not %llu",
		     (unsigned long long)*counter, (unsigned long long)(num_qps * config.messages));
	for (unsigned int q = 0; config.op == OP_WRITE && config.check && q < num_qps; q++)
		for (uint64_t k = config.messages > config.depth ? config.messages - config.depth :
								   0;
		     k < config.messages; k++) {
			const uint8_t *p =
				write_area +
				(size_t)(q * config.depth + k % config.depth) * config.bytes;

			check_bytes(p, stamp(!is_client, q, k), "WRITE");
		}
}

static void report(void)
{
	uint64_t end_ns = 0, received = 0;
	double seconds, rate;

	for (unsigned int t = 0; sends && t < config.threads; t++) {
		end_ns = worker[t].end_ns > end_ns ? worker[t].end_ns : end_ns;
		printf("threads: thread %u: %.0f messages/s\n", t,
		       (double)(config.qps * config.messages) /
			       (double)(worker[t].end_ns - begin_ns) * 1e9);
	}
	if (sends) {
		seconds = (double)(end_ns - begin_ns) / 1e9;
		rate = (double)(num_qps * config.messages) / seconds;
		printf("threads: %s of %u bytes, %u threads, %u QPs: %.0f messages/s, %.3f "
		       "Gbit/s\n",
		       ops[config.op].text, config.bytes, config.threads, num_qps, rate,
		       rate * config.bytes * 8 / 1e9);
	}
	for (unsigned int q = 0; q < num_qps; q++)
		received += atomic_load(&queue[q].received);
	if (is_target && ops[config.op].receives)
		printf("threads: received %llu of %llu messages\n", (unsigned long long)received,
		       (unsigned long long)(num_qps * config.messages));
	if (is_target && !ops[config.op].receives)
		printf("threads: was the target of %llu messages\n",
		       (unsigned long long)(num_qps * config.messages));
}

static void usage(void)
{
	die("threads -d DEVICE [-g GID-INDEX] [-o send|write|read|add|uc|ud] [-T THREADS] [-q QPS] "
	    "[-s BYTES] [-n MESSAGES] [-w DEPTH] [-C] [-R] [-e | -E] [-c] [-b] "
	    "[-p CPU,...] [-m MESSAGES] [-F COUNT] [HOST]");
}

static void read_cpus(char *list)
{
	for (char *one = strtok(list, ","); one && num_cpus < 64; one = strtok(NULL, ","))
		cpus[num_cpus++] = (unsigned int)atoi(one);
}

static const char *read_options(int argc, char **argv)
{
	const char *device = NULL;
	int c;

	while ((c = getopt(argc, argv, "d:g:o:T:q:s:n:w:CReEcbp:m:F:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'o':
			for (config.op = 0; config.op < OPS && strcmp(optarg, ops[config.op].name);
			     config.op++)
				;
			break;
		case 'T': config.threads = (uint32_t)atoi(optarg); break;
		case 'q': config.qps = (uint32_t)atoi(optarg); break;
		case 's': config.bytes = (uint32_t)atoi(optarg); break;
		case 'n': config.messages = strtoull(optarg, NULL, 0); break;
		case 'w': config.depth = (uint32_t)atoi(optarg); break;
		case 'C': one_cq = true; break;
		case 'R': one_srq = true; break;
		case 'e': sleeps = true; break;
		case 'E': sleeps = one_channel = true; break;
		case 'c': config.check = 1; break;
		case 'b': config.both = 1; break;
		case 'p': read_cpus(optarg); break;
		case 'm': change_every = strtoull(optarg, NULL, 0); break;
		case 'F': forks = (unsigned int)atoi(optarg); break;
		default: usage();
		}
	}
	num_qps = config.threads * config.qps;
	if (!device || config.op == OPS || !num_qps || config.threads > THREADS_MAX ||
	    num_qps > QPS_MAX || !config.bytes || config.bytes > MEGABYTE || !config.messages ||
	    config.messages > 1ull << 30 || (config.check && config.bytes < 8) ||
	    (change_every && !num_cpus))
		usage();
	if (config.op == OP_ADD)
		config.bytes = 8;
	if (!config.depth)
		config.depth = MEGABYTE / config.bytes < 2   ? 2 :
			       MEGABYTE / config.bytes > 128 ? 128 :
							       MEGABYTE / config.bytes;
	must(config.depth <= 1024, "-w: at most 1024");
	receives = 2 * config.depth;
	return device;
}

int main(int argc, char **argv)
{
	const char *device = read_options(argc, argv);
	int ctl;

	is_client = argv[optind];
	sends = is_client || config.both;
	is_target = !is_client || config.both;
	make(device);
	ctl = ctl_open(argv[optind], "18640");
	ctl_swap(ctl, &own, &peer, sizeof(own));
	must(!memcmp(&own.config, &peer.config, sizeof(own.config)),
	     "the ends have different options");
	connect_all();
	for (unsigned int t = 0; sleeps && t < config.threads; t++)
		must(!ibv_req_notify_cq(worker[t].cq, 0), "ibv_req_notify_cq");
	ctl_barrier(ctl, 1);
	begin_ns = now_ns();
	for (unsigned int t = 0; t < config.threads; t++)
		must(!pthread_create(&worker[t].thread, NULL, work, &worker[t]), "pthread_create");
	watch(ctl);
	atomic_store(&stop, true);
	for (unsigned int t = 0; t < config.threads; t++)
		must(!pthread_join(worker[t].thread, NULL), "pthread_join");
	if (is_target)
		check_memory();
	report();
	ctl_barrier(ctl, 2);
	unmake();
	return 0;
}
