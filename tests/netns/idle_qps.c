/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What idle queue pairs cost: two processes with N connected RC QPs each, which have all carried a
 * message, then sleep. Prints the share of a processor that the whole process took meanwhile (utime
 * and stime of all its threads), first with the application asleep outside the library, then with a
 * thread of it blocked in ibv_get_cq_event(3), the CQ armed:
 *
 *	idle_qps: 100 QPs: 0.0012 % asleep, 0.0105 % in ibv_get_cq_event
 *
 *	idle_qps -d DEVICE [-g GID-INDEX] [-q QPS] [-t SECONDS] [HOST]
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define QPS_MAX   4096
#define SETTLE_MS 500 /* the library's own spinning after work is no part of idling */

struct address {
	union ibv_gid gid;
	uint32_t qpn[QPS_MAX];
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp[QPS_MAX];
static struct address own, peer;
static unsigned int num_qps = 100;
static int gid_index;

static void make(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { 2, 2, 1, 1, 0 },
					 .sq_sig_all = 1 };

	must((pd = ibv_alloc_pd(ctx)) && (channel = ibv_create_comp_channel(ctx)),
	     "ibv_alloc_pd, ibv_create_comp_channel");
	must((cq = ibv_create_cq(ctx, (int)num_qps * 4, NULL, channel, 0)), "ibv_create_cq: %s",
	     strerror(errno));
	init.send_cq = init.recv_cq = cq;
	for (unsigned int i = 0; i < num_qps; i++) {
		must((qp[i] = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
		own.qpn[i] = qp[i]->qp_num;
	}
	must(!ibv_query_gid(ctx, 1, gid_index, &own.gid), "ibv_query_gid(%d)", gid_index);
}

static void connect_all(void)
{
	const struct rc_options o = { .gid_index = (uint8_t)gid_index,
				      .timeout = 14,
				      .retry_cnt = 7,
				      .rnr_retry = 7 };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	for (unsigned int i = 0; i < num_qps; i++) {
		const struct rc_address mine = { 0 };
		const struct rc_address its = { .gid = peer.gid, .qpn = peer.qpn[i] };

		rc_connect(qp[i], &mine, &its, &o);
		must(!ibv_post_recv(qp[i], &wr, &bad), "ibv_post_recv");
	}
}

/* A message each way on every QP, and its completions. */
static void talk(void)
{
	struct ibv_send_wr wr = { .wr_id = 2, .opcode = IBV_WR_SEND }, *bad;
	const uint64_t end = now_ms() + WAIT_MS;
	unsigned int done = 0;
	struct ibv_wc wc;

	for (unsigned int i = 0; i < num_qps; i++)
		must(!ibv_post_send(qp[i], &wr, &bad), "ibv_post_send");
	while (done < 2 * num_qps) {
		int n = ibv_poll_cq(cq, 1, &wc);

		must(n >= 0 && now_ms() < end, "%u of %u completions", done, 2 * num_qps);
		must(!n || wc.status == IBV_WC_SUCCESS, "a completion with status %d", wc.status);
		done += (unsigned int)n;
	}
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void sleep_for(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds,
			      .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

/* Of one processor, in per cent. */
static double share(double seconds)
{
	double before;

	sleep_for(SETTLE_MS / 1e3);
	before = cpu_seconds();
	sleep_for(seconds);
	return (cpu_seconds() - before) / seconds * 100;
}

static void *wait_for_event(void *arg)
{
	struct ibv_cq *of;
	void *context;

	while (!ibv_get_cq_event(channel, &of, &context))
		ibv_ack_cq_events(of, 1);
	die("ibv_get_cq_event: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	double seconds = 5, asleep, blocked;
	pthread_t thread;
	int ctl, c;

	while ((c = getopt(argc, argv, "d:g:q:t:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'q': num_qps = (unsigned int)atoi(optarg); break;
		case 't': seconds = atof(optarg); break;
		default: die("idle_qps -d DEVICE [-g GID-INDEX] [-q QPS] [-t SECONDS] [HOST]");
		}
	}
	must(device && num_qps && num_qps <= QPS_MAX && seconds > 0,
	     "idle_qps -d DEVICE [-g GID-INDEX] [-q QPS] [-t SECONDS] [HOST]");
	ctx = open_device(device);
	make();
	ctl = ctl_open(argv[optind], "18630");
	ctl_swap(ctl, &own, &peer, sizeof(own));
	connect_all();
	ctl_barrier(ctl, 1);
	talk();
	ctl_barrier(ctl, 2);
	asleep = share(seconds);
	must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	must(!pthread_create(&thread, NULL, wait_for_event, NULL), "pthread_create");
	blocked = share(seconds);
	ctl_barrier(ctl, 3);
	printf("idle_qps: %u QPs: %.4f %% asleep, %.4f %% in ibv_get_cq_event\n", num_qps, asleep,
	       blocked);
	/* The blocked thread ends with the process, and so do the QPs. */
	return 0;
}
