/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many processes on one interface, of one program: each has QPs to the next ones in a ring, and
 * sends messages whose every byte the receiver checks.
 *
 *	crowded [-d DEVICE] [-g GID-INDEX] [-n PROCESSES] [-q QPS] [-m MESSAGES] [-i SECONDS]
 *	crowded ... -l		until the device is lost: each process must be told so, and have
 *				all of its work flushed
 *	crowded ... -s N	N processes one after the other, each from ibv_open_device(3) to its
 *				first completion, of a message to itself
 *
 * -i: then idles for that time, and prints the memory and the processor time of all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define PROCESSES_MAX 128
#define QPS_MAX	      32
#define MESSAGE	      2048 /* bytes */
#define DEPTH	      4	   /* messages under way on a QP */

/* What all processes share. */
static struct {
	struct rc_address at[PROCESSES_MAX][QPS_MAX];
	atomic_uint arrived[8]; /* at each barrier */
	atomic_uint failed;
	atomic_ullong messages, flushed;
	atomic_ullong rss_kb, rss_most_kb, idle_us;
	double ms[1 << 16];
} * all;

static const char *device;
static int gid_index;
static unsigned int processes = 4, num_qps = 4, messages = 100, idle_seconds, singles;
static bool until_lost;

static unsigned int me, single;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp[QPS_MAX];
static struct ibv_mr *mr;
static uint8_t *memory; /* of each QP: DEPTH messages to send, then DEPTH to receive */
static unsigned int sent[QPS_MAX], received[QPS_MAX], outstanding;

static void meet(unsigned int barrier)
{
	const uint64_t end = now_ms() + 3 * WAIT_MS;

	atomic_fetch_add(&all->arrived[barrier], 1);
	while (atomic_load(&all->arrived[barrier]) < processes) {
		must(now_ms() < end && !atomic_load(&all->failed), "%u: others have failed", me);
		poll(NULL, 0, 2);
	}
}

static uint8_t content(unsigned int from, unsigned int n, unsigned int i)
{
	const uint32_t x = (from * 0x9e3779b1u) ^ (n * 0x85ebca6bu) ^ i * 0xc2b2ae35u;

	return (uint8_t)(x >> 24 ^ x >> 11);
}

static uint8_t *place(unsigned int k, unsigned int slot, bool receives)
{
	return memory + ((size_t)k * 2 * DEPTH + (receives ? DEPTH : 0) + slot % DEPTH) * MESSAGE;
}

/* QP 2j of a process is connected to QP 2j + 1 of the (j + 1)th process after it. */
static void partner(unsigned int k, unsigned int *process, unsigned int *its)
{
	const unsigned int far = (k / 2 + 1) % processes;

	*process = (me + (k % 2 ? processes - far : far)) % processes;
	*its = k ^ 1;
}

static void make(unsigned int qps)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 },
					 .sq_sig_all = 1 };
	const size_t bytes = (size_t)qps * 2 * DEPTH * MESSAGE;

	memory = aligned_alloc(4096, bytes);
	must(memory, "no memory");
	memset(memory, 0, bytes);
	must((pd = ibv_alloc_pd(ctx)) && (channel = ibv_create_comp_channel(ctx)) &&
		     (cq = ibv_create_cq(ctx, (int)qps * 2 * DEPTH, NULL, channel, 0)) &&
		     (mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE)),
	     "%u: PD, CQ, MR: %s", me, strerror(errno));
	init.send_cq = init.recv_cq = cq;
	for (unsigned int k = 0; k < qps; k++) {
		must((qp[k] = ibv_create_qp(pd, &init)), "%u: ibv_create_qp: %s", me,
		     strerror(errno));
		all->at[me][k].qpn = qp[k]->qp_num;
		must(!ibv_query_gid(ctx, 1, gid_index, &all->at[me][k].gid), "ibv_query_gid");
	}
}

static void take_down(unsigned int qps)
{
	for (unsigned int k = 0; k < qps; k++)
		must(!ibv_destroy_qp(qp[k]), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel) && !ibv_dereg_mr(mr) &&
		     !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
	     "%u: not taken down", me);
}

static struct rc_options options(void)
{
	return (struct rc_options){
		.gid_index = (uint8_t)gid_index, .timeout = 17, .retry_cnt = 7, .rnr_retry = 7
	};
}

/* A device that is lost takes no more work. */
static bool posted_to(int err)
{
	must(!err || (until_lost && err == EIO), "%u: not posted: %s", me, strerror(err));
	return !err;
}

static void post_receive(unsigned int k)
{
	static unsigned int posted[QPS_MAX];
	struct ibv_sge sge = { (uintptr_t)place(k, posted[k]++, true), MESSAGE, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = k << 1 | 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (posted_to(ibv_post_recv(qp[k], &wr, &bad)))
		outstanding++;
}

static void post_send(unsigned int k)
{
	struct ibv_sge sge = { (uintptr_t)place(k, sent[k], false), MESSAGE, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = k << 1,
				  .opcode = IBV_WR_SEND,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	for (unsigned int i = 0; i < MESSAGE; i++)
		((uint8_t *)sge.addr)[i] = content(all->at[me][k].qpn, sent[k], i);
	if (posted_to(ibv_post_send(qp[k], &wr, &bad)))
		outstanding++;
	sent[k]++;
}

static void check(unsigned int k)
{
	unsigned int process, its;
	const uint8_t *at = place(k, received[k], true);

	partner(k, &process, &its);
	for (unsigned int i = 0; i < MESSAGE; i++)
		must(at[i] == content(all->at[process][its].qpn, received[k], i),
		     "%u: byte %u of message %u from %u is wrong", me, i, received[k], process);
	received[k]++;
}

/* Returns true if the event of a lost device has arrived. */
static bool device_is_lost(void)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&p, 1, 0) != 1)
		return false;
	must(!ibv_get_async_event(ctx, &event), "ibv_get_async_event");
	ibv_ack_async_event(&event);
	return event.event_type == IBV_EVENT_DEVICE_FATAL;
}

static void wait_event(void)
{
	struct pollfd p[2] = { { .fd = channel->fd, .events = POLLIN },
			       { .fd = ctx->async_fd, .events = POLLIN } };
	struct ibv_cq *of;
	void *context;

	must(poll(p, 2, 2 * WAIT_MS) > 0, "%u: nothing happens; %u requests are outstanding", me,
	     outstanding);
	if (p[0].revents && !ibv_get_cq_event(channel, &of, &context))
		ibv_ack_cq_events(of, 1);
}

/*
 * `messages` each way on every QP; or without an end, until work is flushed: then all that is
 * outstanding must be.
 */
static void talk(void)
{
	unsigned int left = until_lost ? 1 : 2 * num_qps * messages;
	bool flushes = false, lost = false;
	struct ibv_wc wc;

	for (unsigned int k = 0; k < num_qps; k++)
		for (unsigned int i = 0; i < DEPTH; i++)
			post_receive(k);
	meet(1);
	for (unsigned int k = 0; k < num_qps; k++)
		for (unsigned int i = 0; i < DEPTH && i < messages; i++)
			post_send(k);
	while (flushes ? outstanding || !lost : left) {
		const int n = ibv_poll_cq(cq, 1, &wc);
		unsigned int k;

		/* also what a lost device's CQ says, once it is empty */
		must(n >= 0 || (until_lost && !outstanding), "%u: ibv_poll_cq: %s; %u requests", me,
		     strerror(-n), outstanding);
		if (n < 0)
			flushes = true;
		if (n <= 0) {
			lost = lost || (until_lost && device_is_lost());
			if (flushes && !outstanding && lost)
				break;
			must(!ibv_req_notify_cq(cq, 0) || !outstanding, "%u: ibv_req_notify_cq",
			     me);
			if (ibv_poll_cq(cq, 1, &wc) != 1) {
				if (!lost || outstanding)
					wait_event();
				continue;
			}
		}
		k = (unsigned int)wc.wr_id >> 1;
		outstanding--;
		if (until_lost && wc.status == IBV_WC_WR_FLUSH_ERR) {
			flushes = true;
			atomic_fetch_add(&all->flushed, 1);
			continue;
		}
		must(wc.status == IBV_WC_SUCCESS && !flushes, "%u: a completion with status %d", me,
		     wc.status);
		left -= !until_lost;
		atomic_fetch_add(&all->messages, wc.wr_id & 1);
		if (wc.wr_id & 1) {
			check(k);
			post_receive(k);
		} else if (until_lost || sent[k] < messages) {
			post_send(k);
		}
	}
}

static unsigned long long cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000ull + u.ru_utime.tv_usec +
	       u.ru_stime.tv_usec;
}

/* Memory of this process alone, in KiB: rings are the broker's maps, and shared with the kernel.
 */
static unsigned long private_kb(void)
{
	unsigned long kb = 0, more;
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Private_Clean: %lu", &more) == 1 ||
		    sscanf(line, "Private_Dirty: %lu", &more) == 1)
			kb += more;
	if (f)
		fclose(f);
	return kb;
}

static void be_idle(void)
{
	const unsigned long kb = private_kb();
	unsigned long long before;
	unsigned long long most = atomic_load(&all->rss_most_kb);

	atomic_fetch_add(&all->rss_kb, kb);
	while (kb > most && !atomic_compare_exchange_weak(&all->rss_most_kb, &most, kb))
		;
	meet(3);
	poll(NULL, 0, 1000); /* the library's own spinning after work is no part of idling */
	before = cpu_us();
	poll(NULL, 0, (int)idle_seconds * 1000);
	atomic_fetch_add(&all->idle_us, cpu_us() - before);
	meet(4);
}

static void run(void)
{
	const struct rc_options o = options();

	ctx = open_device(device);
	must(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
	make(num_qps);
	meet(0);
	for (unsigned int k = 0; k < num_qps; k++) {
		unsigned int process, its;

		partner(k, &process, &its);
		rc_connect(qp[k], &all->at[me][k], &all->at[process][its], &o);
	}
	talk();
	meet(2);
	if (idle_seconds)
		be_idle();
	take_down(num_qps);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* To itself: the shortest program that there is. */
static void run_single(void)
{
	const struct rc_options o = options();
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	const double begun = now_us();
	struct ibv_wc wc;

	ctx = open_device(device);
	make(1);
	rc_connect(qp[0], &all->at[me][0], &all->at[me][0], &o);
	must(!ibv_post_recv(qp[0], &recv, &bad_recv) && !ibv_post_send(qp[0], &wr, &bad), "post");
	wc = rc_wait(cq, "the first");
	must(wc.status == IBV_WC_SUCCESS, "the first completion has status %d", wc.status);
	all->ms[single] = (now_us() - begun) / 1e3;
	must(rc_wait(cq, "the second").status == IBV_WC_SUCCESS, "the second completion");
	take_down(1);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static pid_t born(void (*task)(void))
{
	const pid_t parent = getpid(), pid = fork();

	must(pid >= 0, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	task();
	exit(0);
}

static bool buried(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		atomic_store(&all->failed, 1);
		return false;
	}
	return true;
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "d:g:n:q:m:i:s:l")) != -1) {
		switch (c) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			gid_index = atoi(optarg);
			break;
		case 'n':
			processes = (unsigned int)atoi(optarg);
			break;
		case 'q':
			num_qps = (unsigned int)atoi(optarg);
			break;
		case 'm':
			messages = (unsigned int)atoi(optarg);
			break;
		case 'i':
			idle_seconds = (unsigned int)atoi(optarg);
			break;
		case 's':
			singles = (unsigned int)atoi(optarg);
			break;
		case 'l':
			until_lost = true;
			break;
		default:
			die("usage: see the head of crowded.c");
		}
	}
	must(processes <= PROCESSES_MAX && num_qps <= QPS_MAX && num_qps % 2 == 0 && messages &&
		     singles < 1 << 16,
	     "crowded: out of range");
}

int main(int argc, char **argv)
{
	const double begun = now_us();
	pid_t pids[PROCESSES_MAX];
	bool ok = true;

	parse(argc, argv);
	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(all != MAP_FAILED, "mmap");
	for (single = 0; single < singles; single++)
		must(buried(born(run_single)), "process %u has failed", single);
	if (singles) {
		qsort(all->ms, singles, sizeof(all->ms[0]), compare);
		printf("crowded: %u one after the other: %.1f to %.1f ms, median %.1f, to the "
		       "first completion\n",
		       singles, all->ms[0], all->ms[singles - 1], all->ms[singles / 2]);
		return 0;
	}
	for (me = 0; me < processes; me++)
		pids[me] = born(run);
	if (until_lost) {
		while (atomic_load(&all->messages) < processes * 10ull &&
		       !atomic_load(&all->failed))
			poll(NULL, 0, 5);
		printf("crowded: talks\n");
		fflush(stdout);
	}
	for (unsigned int i = 0; i < processes; i++)
		ok &= buried(pids[i]);
	must(ok, "a process has failed");
	printf("crowded: %u processes, %u QPs each, %llu messages right, %llu requests flushed, "
	       "%.0f ms\n",
	       processes, num_qps, (unsigned long long)all->messages,
	       (unsigned long long)all->flushed, (now_us() - begun) / 1e3);
	if (idle_seconds)
		printf("crowded: %.1f MiB of a process's own, %.1f at most; idle: %.4f %% of a "
		       "core together\n",
		       (double)all->rss_kb / processes / 1024, (double)all->rss_most_kb / 1024,
		       (double)all->idle_us / 1e4 / idle_seconds);
	return 0;
}
