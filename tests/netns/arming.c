/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an arming is used up by, and what a readable channel gives, over a real path:
 *
 *	arming unsignaled blocking|nonblocking DEVICE GID-INDEX ROUNDS [HOST]
 *		The server's send CQ is armed, and acknowledgements of unsignaled SENDs come: no
 *event. Then one of a signaled SEND: its event, by the same arming. arming stray
 *blocking|nonblocking DEVICE GID-INDEX PEER-ADDRESS PEER-QPN The receive CQ is armed, and the
 *script sends a duplicate, which completes nothing: the channel, once readable, has an event. Then
 *the next message: its event, by the same arming.
 *
 * A wait is a poll(2), which tells XDP to wake it, and then takes the event in the way
 * that its channel's flags say. An alarm ends a program that sleeps in ibv_get_cq_event() though
 * the channel was readable.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define PORT	  "18622"
#define DEPTH	  4
#define BURST	  3	/* unsignaled SENDs before a signaled one */
#define QUIET_MS  30	/* in which a wake-up that must not be would have been */
#define FIRST_PSN 10

static struct ibv_context *ctx;
static struct ibv_comp_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *sends, *receives;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char buffer[64];

/* The CQs of the side that sleeps are on the channel. */
static void open_qp(const char *device, bool sleeps_for_sends)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { DEPTH, DEPTH, 1, 1, 0 } };

	ctx = open_device(device);
	must((channel = ibv_create_comp_channel(ctx)) && (pd = ibv_alloc_pd(ctx)), "%s",
	     strerror(errno));
	must((mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
	must((sends = ibv_create_cq(ctx, DEPTH, NULL, sleeps_for_sends ? channel : NULL, 0)) &&
		     (receives = ibv_create_cq(ctx, DEPTH, NULL, sleeps_for_sends ? NULL : channel,
					       0)),
	     "ibv_create_cq: %s", strerror(errno));
	init.send_cq = sends;
	init.recv_cq = receives;
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
}

static void connect_qp(const struct rc_address *peer, int gid_index)
{
	const struct rc_options o = { .gid_index = (uint8_t)gid_index,
				      .timeout = 18,
				      .retry_cnt = 7,
				      .rnr_retry = 7 };
	const struct rc_address own = { .psn = FIRST_PSN };

	rc_connect(qp, &own, peer, &o);
}

static void close_qp(void)
{
	must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(sends) && !ibv_destroy_cq(receives) &&
		     !ibv_destroy_comp_channel(channel) && !ibv_dereg_mr(mr) &&
		     !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
	     "taking down");
}

static void post_receive(uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffer,
			       .length = sizeof(buffer),
			       .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void post_empty_send(uint64_t wr_id, unsigned int flags)
{
	struct ibv_send_wr wr = { .wr_id = wr_id, .opcode = IBV_WR_SEND, .send_flags = flags },
			   *bad;

	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void take_completion(struct ibv_cq *cq, uint64_t wr_id)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int n = 0;

	while (!(n = ibv_poll_cq(cq, 1, &wc)) && now_ms() < end)
		;
	must(n == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == wr_id, "completion %llu: %d",
	     (unsigned long long)wr_id, n);
}

static bool is_readable(int ms)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };

	return poll(&fd, 1, ms) == 1 && fd.revents & POLLIN;
}

/* It was readable, and so there is one. */
static void take_event(struct ibv_cq *want)
{
	struct ibv_cq *cq = NULL;
	void *context;

	alarm(WAIT_MS / 2000);
	must(!ibv_get_cq_event(channel, &cq, &context), "readable, but ibv_get_cq_event says %s",
	     strerror(errno));
	alarm(0);
	must(cq == want, "another CQ's event");
	ibv_ack_cq_events(cq, 1);
}

/* ---- unsignaled ---- */

static void sleep_for_sends(int ctl, uint32_t rounds)
{
	for (uint32_t n = 1; n <= rounds; n++) {
		must(!ibv_req_notify_cq(sends, 0), "ibv_req_notify_cq");
		for (int i = 0; i < BURST; i++) {
			post_empty_send(0, 0);
			ctl_barrier(ctl, n);
		}
		must(!is_readable(QUIET_MS), "round %u: readable after unsignaled SENDs", n);
		post_empty_send(n, IBV_SEND_SIGNALED);
		must(is_readable(WAIT_MS), "round %u: no event after the signaled SEND", n);
		take_event(sends);
		take_completion(sends, n);
		ctl_barrier(ctl, n);
		must(!is_readable(0), "round %u: readable with nothing armed", n);
	}
}

static void take_all(int ctl, uint32_t rounds)
{
	for (uint32_t n = 1; n <= rounds; n++)
		for (int i = 0; i < BURST + 1; i++) {
			take_completion(receives, 1);
			post_receive(1);
			ctl_barrier(ctl, n);
		}
}

static void unsignaled(int gid_index, uint32_t rounds, const char *host)
{
	struct rc_address own = { .qpn = qp->qp_num, .psn = FIRST_PSN }, peer;
	int ctl;

	must(!ibv_query_gid(ctx, 1, gid_index, &own.gid), "ibv_query_gid");
	ctl = ctl_open(host, PORT);
	ctl_swap(ctl, &own, &peer, sizeof(own));
	connect_qp(&peer, gid_index);
	for (int i = 0; i < DEPTH; i++)
		post_receive(1);
	ctl_barrier(ctl, 0xffff);
	if (host)
		take_all(ctl, rounds);
	else
		sleep_for_sends(ctl, rounds);
	ctl_barrier(ctl, 0xfffe);
	printf("arming: %u rounds\n", rounds);
}

/* ---- stray ---- */

static void stray(int gid_index, const char *address, const char *qpn)
{
	struct rc_address peer = { .gid = { .raw = { [10] = 0xff, 0xff } },
				   .qpn = (uint32_t)strtoul(qpn, NULL, 0),
				   .psn = FIRST_PSN };
	struct ibv_wc wc;

	must(inet_pton(AF_INET, address, peer.gid.raw + 12) == 1, "%s is no address", address);
	connect_qp(&peer, gid_index);
	post_receive(7);
	must(!ibv_req_notify_cq(receives, 0), "ibv_req_notify_cq");
	printf("qpn 0x%x\n", qp->qp_num);
	fflush(stdout);
	must(is_readable(WAIT_MS), "nobody was told of the duplicate");
	take_event(receives);
	must(ibv_poll_cq(receives, 1, &wc) == 0, "the duplicate was received");
	must(!is_readable(QUIET_MS), "readable again");
	printf("extra event\n");
	fflush(stdout);
	must(is_readable(WAIT_MS), "nobody was told of the message");
	take_event(receives);
	take_completion(receives, 7);
	must(!is_readable(0), "readable with nothing armed");
	printf("message\n");
}

int main(int argc, char **argv)
{
	bool is_stray = argc > 1 && !strcmp(argv[1], "stray");

	must(argc >= 6 && argc <= 7 && (!is_stray || argc == 7),
	     "arming unsignaled|stray blocking|nonblocking DEVICE GID-INDEX ...");
	open_qp(argv[3], !is_stray);
	if (!strcmp(argv[2], "nonblocking"))
		must(!fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK),
		     "fcntl");
	if (is_stray)
		stray(atoi(argv[4]), argv[5], argv[6]);
	else
		unsignaled(atoi(argv[4]), (uint32_t)strtoul(argv[5], NULL, 0), argv[6]);
	close_qp();
	return 0;
}
