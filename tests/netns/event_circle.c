/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_get_cq_event(3), "a completion channel with many CQs": 8 CQs on one channel, each with a QP
 * over which one message circulates. CQs are polled only after an event, by the steps of the page
 * (get, acknowledge, arm, empty the CQ), so that one lost event stops its message for good.
 *
 *	event_circle -d DEVICE [-g GID-INDEX] [-w block|poll|edge|signal] [-s] [-n MESSAGES] [HOST]
 *
 *	-s	messages are solicited, and only solicited events are armed
 *	-n	that come to each side, over all CQs
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define PORT	"18661"
#define CQS	8u
#define DEPTH	8
#define SEND_ID UINT64_MAX

enum way { BLOCK, WAIT_POLL, WAIT_EDGE, WAIT_SIGNAL };

struct lane {
	struct ibv_cq *send_cq, *cq;
	struct ibv_qp *qp;
	struct rc_address own, peer;
	uint64_t left; /* messages to come */
};

static struct lane lanes[CQS];
static struct ibv_comp_channel *channel;
static enum way way;
static bool solicited;
static int epoll_fd;
static unsigned int open_lanes = CQS;
static unsigned long received, events, empty, again;

static void lane_open(struct lane *l, struct ibv_context *ctx, struct ibv_pd *pd, uint8_t gid_index)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 } };

	l->cq = ibv_create_cq(ctx, DEPTH, l, channel, 0);
	l->send_cq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	must(l->cq && l->send_cq, "ibv_create_cq: %s", strerror(errno));
	init.send_cq = l->send_cq;
	init.recv_cq = l->cq;
	must((l->qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!ibv_query_gid(ctx, 1, gid_index, &l->own.gid), "ibv_query_gid");
	l->own.qpn = l->qp->qp_num;
}

static void receive_post(struct lane *l)
{
	struct ibv_recv_wr wr = { .wr_id = l->left }, *bad;

	must(!ibv_post_recv(l->qp, &wr, &bad), "ibv_post_recv");
}

static void sends_take(struct lane *l)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(l->send_cq, 1, &wc) == 1)
		must(wc.wr_id == SEND_ID && !wc.status, "a send ended with %d", wc.status);
}

static void message_send(struct lane *l)
{
	struct ibv_send_wr wr = { .wr_id = SEND_ID,
				  .opcode = IBV_WR_SEND,
				  .send_flags = solicited ? IBV_SEND_SOLICITED : 0 },
			   *bad;
	uint64_t end = now_ms() + WAIT_MS;

	/* The peer's answer may be here before its acknowledgement has been seen. */
	do {
		sends_take(l);
		errno = ibv_post_send(l->qp, &wr, &bad);
	} while (errno == ENOMEM && now_ms() < end);
	must(!errno, "ibv_post_send: %s", strerror(errno));
}

static void arm(struct lane *l)
{
	must(!ibv_req_notify_cq(l->cq, solicited), "ibv_req_notify_cq");
}

/* Returns how many there were. */
static unsigned int cq_empty(struct lane *l, bool answers_last)
{
	unsigned int n = 0;
	struct ibv_wc wc;
	int k;

	while ((k = ibv_poll_cq(l->cq, 1, &wc)) == 1) {
		must(!wc.status && wc.wr_id == l->left, "receive %llu of %llu: status %d",
		     (unsigned long long)wc.wr_id, (unsigned long long)l->left, wc.status);
		n++;
		if (--l->left)
			receive_post(l);
		else
			open_lanes--;
		if (l->left || answers_last)
			message_send(l);
	}
	must(k == 0, "ibv_poll_cq: %d", k);
	return n;
}

/* False: readable, and no event there. */
static bool event_handle(bool answers_last)
{
	struct ibv_cq *cq;
	struct lane *l;
	void *context;
	unsigned int n;

	if (ibv_get_cq_event(channel, &cq, &context)) {
		must(errno == EAGAIN && way != BLOCK, "ibv_get_cq_event: %s", strerror(errno));
		return false;
	}
	l = context;
	must(l >= lanes && l < lanes + CQS && l->cq == cq, "the event of no CQ of these");
	ibv_ack_cq_events(cq, 1);
	arm(l);
	n = cq_empty(l, answers_last);
	received += n;
	events++;
	empty += !n;
	return true;
}

static sigset_t signals; /* O_ASYNC's */

static void ask_for_signals(void)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGIO);
	must(!pthread_sigmask(SIG_BLOCK, &signals, NULL) &&
		     !fcntl(channel->fd, F_SETOWN, getpid()) &&
		     !fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_ASYNC),
	     "fcntl: %s", strerror(errno));
}

static void events_await(void)
{
	const struct timespec most = { WAIT_MS / 1000, 0 };
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct epoll_event ev;

	if (way == WAIT_POLL)
		must(poll(&pfd, 1, WAIT_MS) == 1, "event lost after %lu messages: poll", received);
	else if (way == WAIT_EDGE)
		must(epoll_wait(epoll_fd, &ev, 1, WAIT_MS) == 1,
		     "event lost after %lu messages: epoll", received);
	else if (way == WAIT_SIGNAL)
		must(sigtimedwait(&signals, NULL, &most) == SIGIO,
		     "event lost after %lu messages: signal", received);
}

static void circle_run(bool answers_last)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	must(epoll_fd >= 0 && !epoll_ctl(epoll_fd, EPOLL_CTL_ADD, channel->fd, &ev), "epoll: %s",
	     strerror(errno));
	if (way != BLOCK)
		must(!fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK),
		     "fcntl: %s", strerror(errno));
	while (open_lanes) {
		bool any;

		events_await();
		any = event_handle(answers_last);
		/* the signal of an event that was taken with the one before is none too many */
		again += !any && way != WAIT_SIGNAL;
		/* An edge is reported once: all events after it are taken. So is a signal. */
		while (way >= WAIT_EDGE && any && open_lanes)
			any = event_handle(answers_last);
	}
	close(epoll_fd);
	must(events <= received + empty && empty <= received, "%lu events for %lu messages",
	     events, received);
}

static enum way way_of(const char *name)
{
	static const char *const names[] = { "block", "poll", "edge", "signal" };

	for (int i = 0; i < 4; i++)
		if (!strcmp(name, names[i]))
			return (enum way)i;
	die("event_circle: no way '%s'", name);
}

int main(int argc, char **argv)
{
	struct rc_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	const char *device = NULL;
	uint64_t messages = 10000;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	int c, ctl;

	while ((c = getopt(argc, argv, "d:g:w:sn:")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'g': o.gid_index = (uint8_t)atoi(optarg); break;
		case 'w': way = way_of(optarg); break;
		case 's': solicited = true; break;
		case 'n': messages = strtoull(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	must(device && messages >= CQS, "event_circle -d DEVICE [-g GID-INDEX] [-n MESSAGES] ...");
	ctx = open_device(device);
	must((channel = ibv_create_comp_channel(ctx)) && (pd = ibv_alloc_pd(ctx)), "%s",
	     strerror(errno));
	if (way == WAIT_SIGNAL)
		ask_for_signals();
	ctl = ctl_open(argv[optind], PORT);
	for (struct lane *l = lanes; l < lanes + CQS; l++) {
		lane_open(l, ctx, pd, o.gid_index);
		ctl_swap(ctl, &l->own, &l->peer, sizeof(l->own));
		rc_connect(l->qp, &l->own, &l->peer, &o);
		l->left = messages / CQS;
		receive_post(l);
		arm(l);
	}
	ctl_barrier(ctl, 1);
	for (struct lane *l = lanes; argv[optind] && l < lanes + CQS; l++)
		message_send(l);
	circle_run(!argv[optind]);
	ctl_barrier(ctl, 2);
	for (struct lane *l = lanes; l < lanes + CQS; l++)
		must(!ibv_destroy_qp(l->qp) && !ibv_destroy_cq(l->cq) &&
			     !ibv_destroy_cq(l->send_cq),
		     "taking down");
	must(!ibv_destroy_comp_channel(channel) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
	     "taking down");
	ctl_barrier(ctl, 3);
	printf("event_circle: %lu messages, %lu events, %lu empty, %lu readable without event\n",
	       received, events, empty, again);
	return 0;
}
