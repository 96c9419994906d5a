/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many datagrams, each of which must arrive: from one UD queue pair in bursts to several of another
 * process in turn, with a receive posted for each. Every length, byte and field is checked.
 *
 *	ud_bulk [OPTION...] DEVICE [HOST]
 *
 * With HOST it sends, else it receives. Both sides are given the same options:
 *
 *	-g INDEX	of our GID
 *	-n MESSAGES	to each queue pair (20000)
 *	-q NUMBER	of queue pairs that receive (1)
 *	-b BURST	messages to one of them before the next has its turn (64)
 *	-s BYTES	of a message (path MTU)
 *	-r		of each message another number, up to that
 *	-a		the sender arms its CQ for solicited completions, and polls it all the same
 *	-z TIMES	the receiver is stopped TIMES times, by a signal, for 30 ms each
 *	-k FILE		the same once more while FILE exists
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define PORT	 "18530"
#define QKEY	 0x11221122
#define QPS_MAX	 64
#define RECEIVES 1024 /* of each queue pair */
#define SENDS	 128
#define GRH	 40
#define LONGEST	 4096
#define QUIET_MS 30000 /* after that nothing more will come, also on a busy machine */

static struct {
	uint32_t messages, qps, burst, longest, stops;
	int gid_index;
	bool arms, drawn, sends;
	const char *keep;
} o = { .messages = 20000, .qps = 1, .burst = 64, .longest = LONGEST };

struct hello {
	union ibv_gid gid;
	uint32_t qpn[QPS_MAX];
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp[QPS_MAX];
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static uint8_t *memory;
static struct hello theirs;
static int ctl;

static uint32_t mix(uint32_t a, uint32_t b)
{
	uint32_t h = a * 0x9e3779b1u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu;

	h ^= h >> 15;
	h *= 0x2c1b3c6du;
	return h ^ h >> 13;
}

static uint8_t pattern[2 * LONGEST];

/* Message n to the receiver's queue pair q: its header, then bytes that follow from it. */
static uint32_t message_length(uint32_t q, uint32_t n)
{
	return o.drawn ? 12 + mix(q, n) % (o.longest - 11) : o.longest;
}

static void message_fill(uint8_t *at, uint32_t q, uint32_t n)
{
	const uint32_t len = message_length(q, n), head[3] = { q, n, len };
	memcpy(at, head, 12);
	memcpy(at + 12, pattern + mix(n, q) % LONGEST, len - 12);
}

/* ---- queue pairs ---- */

static uint8_t *slot(uint32_t q, uint32_t i)
{
	return memory + ((size_t)q * (o.sends ? SENDS : RECEIVES) + i) * (GRH + LONGEST);
}

static void post_receive(uint32_t q, uint32_t i)
{
	struct ibv_sge sge = { (uintptr_t)slot(q, i), GRH + LONGEST, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)q << 32 | i, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	must(!ibv_post_recv(qp[q], &wr, &bad), "ibv_post_recv");
}

static void make_qp(uint32_t q)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq,
					 .cap = { SENDS, RECEIVES, 1, 1, 0 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	qp[q] = ibv_create_qp(pd, &init);
	must(qp[q], "ibv_create_qp: %s", strerror(errno));
	must(!ibv_modify_qp(qp[q], &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT refused");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp[q], &a, IBV_QP_STATE), "RTR refused");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp[q], &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS refused");
	for (uint32_t i = 0; !o.sends && i < RECEIVES; i++)
		post_receive(q, i);
}

static void make(const char *device)
{
	const uint32_t qps = o.sends ? 1 : o.qps;
	const size_t bytes = (size_t)qps * (o.sends ? SENDS : RECEIVES) * (GRH + LONGEST);
	struct ibv_port_attr port;

	for (uint32_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)mix(i, 1);
	ctx = open_device(device);
	must(!ibv_query_port(ctx, 1, &port), "ibv_query_port");
	if (o.longest > 128u << port.active_mtu)
		o.longest = 128u << port.active_mtu;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(memory != MAP_FAILED, "mmap");
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	must((mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr: %s",
	     strerror(errno));
	must((channel = ibv_create_comp_channel(ctx)), "ibv_create_comp_channel");
	cq = ibv_create_cq(ctx, (int)(o.sends ? SENDS : RECEIVES * o.qps), NULL, channel, 0);
	must(cq, "ibv_create_cq: %s", strerror(errno));
	for (uint32_t q = 0; q < qps; q++)
		make_qp(q);
}

static void meet(const char *host)
{
	struct hello mine = { 0 };
	struct ibv_ah_attr a = { .is_global = 1, .port_num = 1 };

	must(!ibv_query_gid(ctx, 1, o.gid_index, &mine.gid), "no GID %d", o.gid_index);
	for (uint32_t q = 0; q < (o.sends ? 1 : o.qps); q++)
		mine.qpn[q] = qp[q]->qp_num;
	ctl = ctl_open(host, PORT);
	ctl_swap(ctl, &mine, &theirs, sizeof(mine));
	a.grh = (struct ibv_global_route){ .dgid = theirs.gid, .sgid_index = (uint8_t)o.gid_index,
					   .hop_limit = 64 };
	must((ah = ibv_create_ah(pd, &a)), "ibv_create_ah: %s", strerror(errno));
}

/* ---- sending ---- */

static void post_send(uint32_t i, uint32_t q, uint32_t n)
{
	struct ibv_sge sge = { (uintptr_t)slot(0, i), message_length(q, n), mr->lkey };
	struct ibv_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1, .imm_data = htobe32(n),
				  .opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	message_fill(slot(0, i), q, n);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = theirs.qpn[q];
	wr.wr.ud.remote_qkey = QKEY;
	must(!ibv_post_send(qp[0], &wr, &bad), "ibv_post_send");
}

static uint64_t sent, completed;

static void poll_sends(void)
{
	struct ibv_wc wc[16];
	const int n = ibv_poll_cq(cq, 16, wc);

	must(n >= 0, "ibv_poll_cq: %d", n);
	for (int i = 0; i < n; i++) {
		must(wc[i].status == IBV_WC_SUCCESS, "a send ends with %s",
		     ibv_wc_status_str(wc[i].status));
		must(wc[i].wr_id == completed % SENDS, "sends complete out of order");
		completed++;
	}
}

static void send_all(void)
{
	uint32_t next[QPS_MAX] = { 0 };
	const uint64_t total = sent + (uint64_t)o.messages * o.qps;

	if (o.arms)
		must(!ibv_req_notify_cq(cq, 1), "ibv_req_notify_cq");
	for (uint32_t q = 0; sent < total; q = (q + 1) % o.qps)
		for (uint32_t b = 0; b < o.burst && next[q] < o.messages; b++) {
			/* as a program that makes progress now and then, and when it must */
			while (sent - completed == SENDS)
				poll_sends();
			post_send((uint32_t)(sent % SENDS), q, next[q]++);
			sent++;
		}
	while (completed != total)
		poll_sends();
	ctl_barrier(ctl, 1);
}

/* ---- receiving ---- */

static uint32_t received[QPS_MAX];

static void check(const struct ibv_wc *wc)
{
	const uint32_t q = (uint32_t)(wc->wr_id >> 32), i = (uint32_t)wc->wr_id;
	const uint32_t n = be32toh(wc->imm_data);
	static uint8_t expected[LONGEST];

	must(wc->status == IBV_WC_SUCCESS, "a receive ends with %s", ibv_wc_status_str(wc->status));
	must(q < o.qps && n < o.messages && wc->qp_num == qp[q]->qp_num, "message %u to %u", n, q);
	must(n == received[q], "queue pair %u: message %u comes where %u was to", q, n,
	     received[q]);
	must(wc->opcode == IBV_WC_RECV && wc->wc_flags & IBV_WC_GRH &&
		     wc->wc_flags & IBV_WC_WITH_IMM && wc->src_qp == theirs.qpn[0],
	     "message %u: a field is wrong", n);
	must(wc->byte_len == GRH + message_length(q, n), "message %u has %u bytes", n,
	     wc->byte_len);
	message_fill(expected, q, n);
	must(!memcmp(slot(q, i) + GRH, expected, wc->byte_len - GRH), "message %u: wrong data", n);
	received[q]++;
	post_receive(q, i);
}

/* The process that continues this one when it has stopped: reports how many times it did. */
static volatile uint32_t *stopped;

static void stopper_start(void)
{
	const pid_t parent = getpid();

	stopped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(stopped != MAP_FAILED, "mmap");
	if (!o.stops || fork())
		return;
	for (uint32_t done = 0; getppid() == parent;) {
		nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
		/* again until it is seen to go on: a signal that comes before the stop is lost */
		if (stopped[0] != stopped[1])
			kill(parent, SIGCONT);
		else
			done = stopped[0];
		if (done == o.stops)
			break;
	}
	_exit(0);
}

static void stop_now_and_then(uint64_t total, uint64_t all)
{
	if (stopped[0] == o.stops || total < all / (o.stops + 1) * (stopped[0] + 1))
		return;
	stopped[0]++;
	raise(SIGSTOP);
	stopped[1]++;
}

static uint64_t received_in_all;

static void receive_all(void)
{
	const uint64_t all = (uint64_t)o.messages * o.qps;
	uint64_t total = 0, last_ms = now_ms();
	struct ibv_wc wc[32];

	memset(received, 0, sizeof(received));
	while (total < all) {
		const int n = ibv_poll_cq(cq, 32, wc);

		must(n >= 0, "ibv_poll_cq: %d", n);
		for (int i = 0; i < n; i++)
			check(&wc[i]);
		total += (uint64_t)n;
		if (n)
			last_ms = now_ms();
		must(n || now_ms() - last_ms < QUIET_MS, "%llu of %llu messages came",
		     (unsigned long long)total, (unsigned long long)all);
		stop_now_and_then(total, all);
	}
	received_in_all += total;
	ctl_barrier(ctl, 1);
}

/* Returns whether all is to be sent once more: either side may see the file go first. */
static bool has_round(void)
{
	uint32_t more = o.keep && access(o.keep, F_OK) == 0, peer_more;

	ctl_swap(ctl, &more, &peer_more, sizeof(more));
	return more || peer_more;
}

static void end(void)
{
	must(!ibv_destroy_ah(ah), "ibv_destroy_ah");
	for (uint32_t q = 0; q < (o.sends ? 1 : o.qps); q++)
		must(!ibv_destroy_qp(qp[q]), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel) && !ibv_dereg_mr(mr) &&
		     !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
	     "the end");
}

static uint32_t number(const char *text, uint32_t most)
{
	char *rest;
	const unsigned long n = strtoul(text, &rest, 10);

	must(*text && !*rest && n <= most, "not a number up to %u: %s", most, text);
	return (uint32_t)n;
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "g:n:q:b:s:raz:k:")) != -1) {
		switch (c) {
		case 'g': o.gid_index = (int)number(optarg, 255); break;
		case 'n': o.messages = number(optarg, 100000000); break;
		case 'q': o.qps = number(optarg, QPS_MAX); break;
		case 'b': o.burst = number(optarg, 100000000); break;
		case 's': o.longest = number(optarg, LONGEST); break;
		case 'r': o.drawn = true; break;
		case 'a': o.arms = true; break;
		case 'z': o.stops = number(optarg, 1000); break;
		case 'k': o.keep = optarg; break;
		default: return 1;
		}
	}
	must(argc - optind >= 1 && argc - optind <= 2 && o.qps && o.burst && o.longest >= 12,
	     "ud_bulk [OPTION...] DEVICE [HOST]");
	o.sends = argc - optind == 2;
	if (!o.sends)
		stopper_start();
	make(argv[optind]);
	meet(argv[optind + 1]);
	do {
		if (o.sends)
			send_all();
		else
			receive_all();
	} while (has_round());
	printf("%s %llu\n", o.sends ? "sent" : "received",
	       (unsigned long long)(o.sends ? sent : received_in_all));
	end();
	if (!o.sends && o.stops)
		wait(NULL);
	return 0;
}
