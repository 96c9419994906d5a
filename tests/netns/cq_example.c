/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two examples of ibv_get_cq_event(3) as the page has them, each around a peer that sends one
 * message at a time:
 *
 *	cq_example blocking|nonblocking DEVICE GID-INDEX ROUNDS [HOST]
 *
 * The server runs the example, the client with HOST sends. An example that returns 1, as on its own
 * error paths, fails the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

static struct ibv_context *ctx;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq, *ev_cq;
static struct ibv_qp *qp;
static void *ev_ctx;
static unsigned long messages;

static void post_receive(void)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* ---- the page's code ---- */

static int prepare(void)
{
	cq = ibv_create_cq(ctx, 1, ev_ctx, channel, 0);
	if (!cq) {
		fprintf(stderr, "Failed to create CQ\n");
		return 1;
	}

	/* Request notification before any completion can be created */
	if (ibv_req_notify_cq(cq, 0)) {
		fprintf(stderr, "Couldn't request CQ notification\n");
		return 1;
	}
	return 0;
}

static int handle(void)
{
	struct ibv_wc wc;
	int ne;

	/* Wait for the completion event */
	if (ibv_get_cq_event(channel, &ev_cq, &ev_ctx)) {
		fprintf(stderr, "Failed to get cq_event\n");
		return 1;
	}

	/* Ack the event */
	ibv_ack_cq_events(ev_cq, 1);

	/* Request notification upon the next completion event */
	if (ibv_req_notify_cq(ev_cq, 0)) {
		fprintf(stderr, "Couldn't request CQ notification\n");
		return 1;
	}

	/* Empty the CQ: poll all of the completions from the CQ (if any exist) */
	do {
		ne = ibv_poll_cq(cq, 1, &wc);
		if (ne < 0) {
			fprintf(stderr, "Failed to poll completions from the CQ\n");
			return 1;
		}

		/* there may be an extra event with no completion in the CQ */
		if (ne == 0)
			continue;

		if (wc.status != IBV_WC_SUCCESS) {
			fprintf(stderr, "Completion with status 0x%x was found\n", wc.status);
			return 1;
		}
		messages++; /* ours */
		post_receive();
	} while (ne);
	return 0;
}

static int wait_readable(int ms_timeout)
{
	struct pollfd my_pollfd;
	int flags, rc;

	/* change the blocking mode of the completion channel */
	flags = fcntl(channel->fd, F_GETFL);
	rc = fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK);
	if (rc < 0) {
		fprintf(stderr, "Failed to change file descriptor of completion event channel\n");
		return 1;
	}

	/*
	 * poll the channel until it has an event and sleep ms_timeout
	 * milliseconds between any iteration
	 */
	my_pollfd.fd = channel->fd;
	my_pollfd.events = POLLIN;
	my_pollfd.revents = 0;

	do {
		rc = poll(&my_pollfd, 1, ms_timeout);
	} while (rc == 0);
	if (rc < 0) {
		fprintf(stderr, "poll failed\n");
		return 1;
	}
	ev_cq = cq;
	return 0;
}

/* ---- around it ---- */

static void serve(bool blocking, unsigned long rounds, int ctl)
{
	for (unsigned long n = 1; n <= rounds; n++) {
		ctl_barrier(ctl, (uint32_t)n);
		while (messages < n) {
			must(blocking || !wait_readable(10), "the example failed");
			must(!handle(), "the example failed in round %lu", n);
		}
		must(messages == n, "%lu messages after %lu rounds", messages, n);
	}
}

static void send_all(struct ibv_cq *sends, unsigned long rounds, int ctl)
{
	for (unsigned long n = 1; n <= rounds; n++) {
		struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED },
				   *bad;
		uint64_t end = now_ms() + WAIT_MS;
		struct ibv_wc wc;
		int ne = 0;

		ctl_barrier(ctl, (uint32_t)n);
		must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
		while (!(ne = ibv_poll_cq(sends, 1, &wc)) && now_ms() < end)
			;
		must(ne == 1 && wc.status == IBV_WC_SUCCESS, "send %lu: %d", n, ne);
	}
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 2, 2, 1, 1, 0 } };
	struct rc_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	struct rc_address own = { 0 }, peer;
	struct ibv_cq *sends;
	struct ibv_pd *pd;
	unsigned long rounds;
	int ctl;

	must(argc == 5 || argc == 6,
	     "cq_example blocking|nonblocking DEVICE GID-INDEX ROUNDS [HOST]");
	rounds = strtoul(argv[4], NULL, 0);
	ctx = open_device(argv[2]);
	must((channel = ibv_create_comp_channel(ctx)) && (pd = ibv_alloc_pd(ctx)), "%s",
	     strerror(errno));
	must(!prepare(), "the example failed");
	must((sends = ibv_create_cq(ctx, 2, NULL, NULL, 0)), "ibv_create_cq: %s", strerror(errno));
	init.send_cq = sends;
	init.recv_cq = cq;
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!ibv_query_gid(ctx, 1, atoi(argv[3]), &own.gid), "ibv_query_gid");
	own.qpn = qp->qp_num;
	ctl = ctl_open(argv[5], "18621");
	ctl_swap(ctl, &own, &peer, sizeof(own));
	o.gid_index = (uint8_t)atoi(argv[3]);
	rc_connect(qp, &own, &peer, &o);
	post_receive();
	ctl_barrier(ctl, 0xffff);
	if (argc == 6)
		send_all(sends, rounds, ctl);
	else
		serve(!strcmp(argv[1], "blocking"), rounds, ctl);
	ctl_barrier(ctl, 0xfffe);
	must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_destroy_cq(sends) &&
		     !ibv_destroy_comp_channel(channel) && !ibv_dealloc_pd(pd) &&
		     !ibv_close_device(ctx),
	     "taking down");
	printf("cq_example: %lu messages\n", argc == 6 ? rounds : messages);
	return 0;
}
