/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_req_notify_cq(3): one request makes one event, for "any new completion entry" or, if
 * solicited, for a solicited receive or an error. Checked for each operation, for each way that it
 * completes, at both ends, for both ways of arming, and for each way to wait for the event on the
 * channel's descriptor, including the signal of O_ASYNC:
 *
 *	event_matrix -d DEVICE [-g GID-INDEX] [-L | HOST]	-L: both ends in this process
 *
 * After each combination one more message whose event is due on both sides: whatever came too much
 * before it is there by then, so an absent event is never waited for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define PORT	  "18660"
#define DEPTH	  16
#define BYTES	  4096u
#define LEN	  16u
#define HALF	  (BYTES / 2) /* the peer's WRITEs and READs target the area after it */
#define REQUEST	  7u	      /* wr_id */
#define RECEIVE	  9u
#define LAST	  11u
#define BAD_KEY	  0x5500u
#define ARRAY(a)  (sizeof(a) / sizeof((a)[0]))

static const struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool takes_receive, can_inline;
} operations[] = {
	{ "SEND", IBV_WR_SEND, true, true },
	{ "SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, true, true },
	{ "RDMA_WRITE", IBV_WR_RDMA_WRITE, false, true },
	{ "RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, true, true },
	{ "RDMA_READ", IBV_WR_RDMA_READ, false, false },
	{ "ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, false, false },
};

static const struct style {
	const char *name;
	unsigned int flags;
	bool fails;
} styles[] = {
	{ "signaled", IBV_SEND_SIGNALED, false },
	{ "unsignaled", 0, false },
	{ "inline", IBV_SEND_SIGNALED | IBV_SEND_INLINE, false },
	{ "failing", IBV_SEND_SIGNALED, true },
	{ "failing, unsignaled", 0, true },
};

enum way { BLOCKING, POLL, EPOLL, EPOLL_EDGE, SIGNAL, WAYS };
static const char *const ways[] = { "ibv_get_cq_event", "poll", "epoll", "epoll, edge", "signal" };

struct channel {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	int epoll_fd;
};

struct end {
	bool requests; /* the other one responds */
	int ctl;
	struct rc_options options;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct channel send, receive;
	struct rc_address own, peer;
	uint32_t step; /* of the barriers */
	char bytes[BYTES] __attribute__((aligned(8)));
	unsigned long events, again; /* taken; readable without one */
};

struct combination {
	const struct operation *op;
	const struct style *style;
	enum way way;
	bool solicited_only, solicited;
	char name[128];
};

static char doing[128]; /* for the alarm */

static void on_alarm(int sig)
{
	static const char text[] = "event_matrix: an event is missing: ";

	if (write(2, text, sizeof(text) - 1) < 0 || write(2, doing, strlen(doing)) < 0 ||
	    write(2, "\n", 1) < 0)
		_exit(2);
	_exit(1);
}

static void barrier(struct end *e)
{
	ctl_barrier(e->ctl, ++e->step);
}

/* ---- making ---- */

static void channel_open(struct channel *ch, struct ibv_context *ctx)
{
	ch->channel = ibv_create_comp_channel(ctx);
	must(ch->channel, "ibv_create_comp_channel: %s", strerror(errno));
	ch->cq = ibv_create_cq(ctx, DEPTH, ch, ch->channel, 0);
	must(ch->cq, "ibv_create_cq: %s", strerror(errno));
}

static void end_connect(struct end *e)
{
	e->own.psn += 1000;
	ctl_swap(e->ctl, &e->own, &e->peer, sizeof(e->own));
	rc_connect(e->qp, &e->own, &e->peer, &e->options);
	barrier(e);
}

static void end_open(struct end *e, const char *device)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { DEPTH, DEPTH, 1, 1, LEN } };

	e->ctx = open_device(device);
	channel_open(&e->send, e->ctx);
	channel_open(&e->receive, e->ctx);
	must((e->pd = ibv_alloc_pd(e->ctx)), "ibv_alloc_pd: %s", strerror(errno));
	e->mr = ibv_reg_mr(e->pd, e->bytes, BYTES, IBV_ACCESS_LOCAL_WRITE | RC_ACCESS);
	must(e->mr, "ibv_reg_mr: %s", strerror(errno));
	init.send_cq = e->send.cq;
	init.recv_cq = e->receive.cq;
	must((e->qp = ibv_create_qp(e->pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!ibv_query_gid(e->ctx, 1, e->options.gid_index, &e->own.gid), "ibv_query_gid");
	e->own.qpn = e->qp->qp_num;
	e->own.rkey = e->mr->rkey;
	e->own.addr = (uintptr_t)e->bytes + HALF;
	end_connect(e);
}

static void end_close(struct end *e)
{
	struct channel *ch[] = { &e->send, &e->receive };

	must(!ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	for (int i = 0; i < 2; i++)
		must(!ibv_destroy_cq(ch[i]->cq) && !ibv_destroy_comp_channel(ch[i]->channel),
		     "a CQ or its channel refuses to go");
	must(!ibv_dereg_mr(e->mr) && !ibv_dealloc_pd(e->pd) && !ibv_close_device(e->ctx),
	     "taking down");
}

/* ---- waiting ---- */

/* Of each event, to this thread, which sleeps until one comes. */
static void ask_for_signals(int fd)
{
	const struct f_owner_ex me = { F_OWNER_TID, (pid_t)syscall(SYS_gettid) };

	must(!fcntl(fd, F_SETOWN_EX, &me) && !fcntl(fd, F_SETSIG, SIGRTMIN) &&
		     !fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC),
	     "fcntl: %s", strerror(errno));
}

static bool signal_comes(siginfo_t *info, int within_ms)
{
	const struct timespec t = { within_ms / 1000, within_ms % 1000 * 1000000l };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	return sigtimedwait(&set, info, &t) == SIGRTMIN;
}

static void await_signal(const struct channel *ch, const struct combination *c)
{
	siginfo_t info;

	must(signal_comes(&info, WAIT_MS), "%s: no signal", c->name);
	must(info.si_code == POLL_IN && info.si_fd == ch->channel->fd,
	     "%s: the signal of %d, code %d", c->name, info.si_fd, info.si_code);
}

/* The channel is waited on in this way from now on. */
static void channel_set_way(struct channel *ch, enum way way)
{
	struct epoll_event ev = { .events = EPOLLIN | (way == EPOLL_EDGE ? EPOLLET : 0u) };
	int flags = fcntl(ch->channel->fd, F_GETFL) & ~O_NONBLOCK;

	must(!fcntl(ch->channel->fd, F_SETFL, way == BLOCKING ? flags : flags | O_NONBLOCK),
	     "fcntl: %s", strerror(errno));
	if (way == SIGNAL)
		ask_for_signals(ch->channel->fd);
	ch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	must(ch->epoll_fd >= 0 && !epoll_ctl(ch->epoll_fd, EPOLL_CTL_ADD, ch->channel->fd, &ev),
	     "epoll: %s", strerror(errno));
}

static void await_readable(const struct channel *ch, const struct combination *c)
{
	struct pollfd pfd = { .fd = ch->channel->fd, .events = POLLIN };
	struct epoll_event ev;

	if (c->way == SIGNAL)
		await_signal(ch, c);
	else if (c->way == POLL)
		must(poll(&pfd, 1, WAIT_MS) == 1, "%s: not readable", c->name);
	else if (c->way != BLOCKING)
		must(epoll_wait(ch->epoll_fd, &ev, 1, WAIT_MS) == 1, "%s: not readable", c->name);
}

/* The event that is due: taken and acknowledged. */
static void event_take(struct end *e, struct channel *ch, const struct combination *c)
{
	struct ibv_cq *cq;
	void *context;

	await_readable(ch, c);
	while (ibv_get_cq_event(ch->channel, &cq, &context)) {
		must(errno == EAGAIN && c->way != BLOCKING, "%s: ibv_get_cq_event: %s", c->name,
		     strerror(errno));
		e->again++;
		await_readable(ch, c);
	}
	must(cq == ch->cq && context == ch, "%s: the event of another CQ", c->name);
	ibv_ack_cq_events(cq, 1);
	e->events++;
}

static void must_have_no_event(struct channel *ch, const struct combination *c)
{
	int flags = fcntl(ch->channel->fd, F_GETFL);
	struct ibv_cq *cq;
	siginfo_t info;
	void *context;

	fcntl(ch->channel->fd, F_SETFL, flags | O_NONBLOCK);
	must(ibv_get_cq_event(ch->channel, &cq, &context) && errno == EAGAIN,
	     "%s: an event too many", c->name);
	must(c->way != SIGNAL || !signal_comes(&info, 0), "%s: a signal too many", c->name);
	fcntl(ch->channel->fd, F_SETFL, flags);
}

static void arm(struct channel *ch, bool solicited_only)
{
	must(!ibv_req_notify_cq(ch->cq, solicited_only), "ibv_req_notify_cq");
}

/* The completion: at once if its event has been taken. */
static struct ibv_wc completion_take(struct channel *ch, bool at_once, const struct combination *c)
{
	struct ibv_wc wc;

	if (!at_once)
		return rc_wait(ch->cq, c->name);
	must(ibv_poll_cq(ch->cq, 1, &wc) == 1, "%s: an event without its completion", c->name);
	return wc;
}

/* ---- posting ---- */

static void receive_post(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->bytes, 64, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(e->qp, &wr, &bad), "ibv_post_recv");
}

static void request_post(struct end *e, const struct combination *c)
{
	const enum ibv_wr_opcode opcode = c->op->opcode;
	const bool is_send = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
	const bool is_atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	const uint32_t bad_key = c->style->fails ? BAD_KEY : 0;
	struct ibv_sge sge = { (uintptr_t)e->bytes, is_atomic ? 8 : LEN, e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = REQUEST,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = c->style->flags |
						(c->solicited ? IBV_SEND_SOLICITED : 0u) },
			   *bad;

	if (is_send) {
		sge.lkey ^= bad_key;
	} else if (is_atomic) {
		wr.wr.atomic.remote_addr = e->peer.addr;
		wr.wr.atomic.rkey = e->peer.rkey ^ bad_key;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = e->peer.addr;
		wr.wr.rdma.rkey = e->peer.rkey ^ bad_key;
	}
	errno = ibv_post_send(e->qp, &wr, &bad);
	must(!errno, "%s: ibv_post_send: %s", c->name, strerror(errno));
}

/* ---- one combination ---- */

static void requester_run(struct end *e, const struct combination *c)
{
	const bool completes = c->style->fails || c->style->flags & IBV_SEND_SIGNALED;
	const bool due = c->style->fails || (completes && !c->solicited_only);
	struct ibv_wc wc;

	arm(&e->send, c->solicited_only);
	barrier(e); /* the responder is armed */
	request_post(e, c);
	if (due)
		event_take(e, &e->send, c);
	if (completes) {
		wc = completion_take(&e->send, due, c);
		must(wc.wr_id == REQUEST && !wc.status == !c->style->fails,
		     "%s: wr_id %llu, status %d", c->name, (unsigned long long)wc.wr_id, wc.status);
	}
}

static void responder_run(struct end *e, const struct combination *c)
{
	/* A WRITE that is refused takes the QP to error, and its receive with it; a SEND that
	 * fails at its sender's is never sent. */
	const bool is_flushed = c->style->fails && c->op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	const bool completes = is_flushed || (c->op->takes_receive && !c->style->fails);
	const bool due = completes && (is_flushed || !c->solicited_only || c->solicited);
	struct ibv_wc wc;

	if (c->op->takes_receive)
		receive_post(e);
	arm(&e->receive, c->solicited_only);
	barrier(e);
	if (due)
		event_take(e, &e->receive, c);
	if (completes) {
		wc = completion_take(&e->receive, due, c);
		must(wc.wr_id == RECEIVE && !wc.status == !is_flushed, "%s: receive: status %d",
		     c->name, wc.status);
	}
}

/* A message whose event is due on both sides. */
static void last_message(struct end *e, const struct combination *c)
{
	static const struct style plain = { "last", IBV_SEND_SIGNALED, false };
	struct combination last = *c;
	struct channel *mine = e->requests ? &e->send : &e->receive;

	last.op = &operations[0];
	last.style = &plain;
	last.solicited = false;
	if (!e->requests)
		receive_post(e);
	arm(mine, false);
	barrier(e);
	if (e->requests)
		request_post(e, &last);
	event_take(e, mine, &last);
	must(!completion_take(mine, true, &last).status, "%s: the message after it", c->name);
	must_have_no_event(&e->send, c);
	must_have_no_event(&e->receive, c);
}

static void combination_run(struct end *e, struct combination *c)
{
	snprintf(c->name, sizeof(c->name), "%s, %s%s, %s, armed for %s: %s", c->op->name,
		 c->style->name, c->solicited ? ", solicited" : "", ways[c->way],
		 c->solicited_only ? "solicited" : "any", e->requests ? "requester" : "responder");
	if (e->requests)
		memcpy(doing, c->name, sizeof(doing));
	alarm(WAIT_MS / 1000);
	(e->requests ? requester_run : responder_run)(e, c);
	barrier(e);
	if (c->style->fails) {
		rc_reset(e->qp);
		end_connect(e);
	}
	last_message(e, c);
	barrier(e);
}

static unsigned int operation_run(struct end *e, struct combination *c)
{
	unsigned int n = 0;

	for (size_t s = 0; s < ARRAY(styles); s++) {
		c->style = &styles[s];
		if (c->style->flags & IBV_SEND_INLINE && !c->op->can_inline)
			continue;
		for (int i = 0; i < 4; i++) {
			c->solicited_only = i & 1;
			c->solicited = i >> 1;
			if (c->solicited && (!c->op->takes_receive || c->style->fails))
				continue;
			combination_run(e, c);
			n++;
		}
	}
	return n;
}

static void end_run(struct end *e)
{
	unsigned int n = 0;

	for (enum way way = BLOCKING; way < WAYS; way++) {
		struct combination c = { .way = way };

		channel_set_way(&e->send, way);
		channel_set_way(&e->receive, way);
		for (size_t i = 0; i < ARRAY(operations); i++) {
			c.op = &operations[i];
			n += operation_run(e, &c);
		}
		close(e->send.epoll_fd);
		close(e->receive.epoll_fd);
	}
	printf("event_matrix: %u combinations, %lu events, %lu readable without event\n", n,
	       e->events, e->again);
}

static const char *device;

static void *end_live(void *arg)
{
	struct end *e = arg;

	end_open(e, device);
	end_run(e);
	end_close(e);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct end e[2];
	bool loopback = false;
	pthread_t thread;
	sigset_t set;
	int c, ctl[2];

	e[0].options = (struct rc_options){ .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	while ((c = getopt(argc, argv, "d:g:L")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'g': e[0].options.gid_index = (uint8_t)atoi(optarg); break;
		case 'L': loopback = true; break;
		default: die("event_matrix -d DEVICE [-g GID-INDEX] [-L | HOST]");
		}
	}
	must(device, "event_matrix -d DEVICE [-g GID-INDEX] [-L | HOST]");
	signal(SIGALRM, on_alarm);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	e[0].requests = loopback || argv[optind];
	if (!loopback) {
		e[0].ctl = ctl_open(argv[optind], PORT);
		end_live(&e[0]);
		return 0;
	}
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ctl), "socketpair: %s", strerror(errno));
	e[1].options = e[0].options;
	e[0].ctl = ctl[0];
	e[1].ctl = ctl[1];
	must(!pthread_create(&thread, NULL, end_live, &e[1]), "pthread_create");
	end_live(&e[0]);
	must(!pthread_join(thread, NULL), "pthread_join");
	return 0;
}
