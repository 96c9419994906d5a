/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that shares an interface with others, through its broker:
 *
 *	sharer lost DEVICE	the broker is killed when it prints `ready`; it prints `again` when
 *				a new broker runs, and it has a port
 *	sharer fork DEVICE	children open the device for themselves and talk to their parent
 *	sharer numbers DEVICE	makes QPs and destroys some; prints `ready` and sleeps
 *	sharer full DEVICE	the broker gives no numbers: ENOMEM
 *	sharer garbage DEVICE	or an invalid answer: EIO, and the device is lost
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define BYTES	 3000 /* three packets of path MTU 1024 */
#define MESSAGES 200
#define CHILDREN 3
#define QPS	 20

static const char *device;

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

/* ---- one end of a connection ---- */

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	unsigned char buf[2][BYTES]; /* to send, received */
};

static struct ibv_qp *end_make_qp(struct end *e)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = e->cq, .recv_cq = e->cq,
					 .cap = { 4, 4, 1, 1, 0 } };

	return ibv_create_qp(e->pd, &init);
}

/* Opens objects that do not need the interface. */
static void end_begin(struct end *e, struct ibv_context *ctx)
{
	*e = (struct end){ .ctx = ctx };
	must((e->pd = ibv_alloc_pd(ctx)) && (e->channel = ibv_create_comp_channel(ctx)) &&
		     (e->cq = ibv_create_cq(ctx, 16, NULL, e->channel, 0)),
	     "PD, channel, CQ: %s", strerror(errno));
}

/* Opens the rest. Returns false if there is no port. */
static bool end_finish(struct end *e)
{
	e->mr = ibv_reg_mr(e->pd, e->buf, sizeof(e->buf), IBV_ACCESS_LOCAL_WRITE);
	if (!e->mr)
		return false;
	must((e->qp = end_make_qp(e)), "ibv_create_qp: %s", strerror(errno));
	return true;
}

static void end_open(struct end *e)
{
	end_begin(e, open_device(device));
	must(end_finish(e), "ibv_reg_mr: %s", strerror(errno));
}

/* Closes everything except the context. */
static void end_close(struct end *e)
{
	must(!e->qp || !ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	must(!e->mr || !ibv_dereg_mr(e->mr), "ibv_dereg_mr");
	must(!ibv_destroy_cq(e->cq) && !ibv_destroy_comp_channel(e->channel) &&
		     !ibv_dealloc_pd(e->pd),
	     "CQ, channel, PD");
}

static struct rc_address end_address(struct end *e)
{
	struct rc_address a = { .qpn = e->qp->qp_num };

	must(!ibv_query_gid(e->ctx, 1, 0, &a.gid), "ibv_query_gid: %s", strerror(errno));
	return a;
}

static void end_connect(struct end *e, const struct rc_address *peer)
{
	const struct rc_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	const struct rc_address own = end_address(e);

	rc_connect(e->qp, &own, peer, &o);
}

static void end_receive(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buf[1], BYTES, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	int err = ibv_post_recv(e->qp, &wr, &bad);

	must(!err, "ibv_post_recv: %s", strerror(err));
}

static void end_send(struct end *e, unsigned char fill)
{
	struct ibv_sge sge = { (uintptr_t)e->buf[0], BYTES, e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	int err;

	for (int i = 0; i < BYTES; i++)
		e->buf[0][i] = (unsigned char)(fill + i);
	err = ibv_post_send(e->qp, &wr, &bad);
	must(!err, "ibv_post_send: %s", strerror(err));
}

/* Takes one completion of each, in either order; the received message must equal the sent one. */
static void end_complete(struct end *e, unsigned char fill)
{
	unsigned int seen = 0;

	while (seen != 3) {
		const struct ibv_wc wc = rc_wait(e->cq, "a message");

		must(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		must(wc.wr_id == 2 || wc.byte_len == BYTES, "%u bytes", wc.byte_len);
		seen |= (unsigned int)wc.wr_id;
	}
	for (int i = 0; i < BYTES; i++)
		must(e->buf[1][i] == (unsigned char)(fill + i), "byte %d is %u, not %u", i,
		     e->buf[1][i], (unsigned char)(fill + i));
}

static void end_talk_to_itself(struct end *e)
{
	const struct rc_address self = end_address(e);

	end_connect(e, &self);
	end_receive(e);
	end_send(e, 7);
	end_complete(e, 7);
}

/* ---- the broker is lost ---- */

static void *wait_for_events(void *arg)
{
	struct end *e = arg;
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(e->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	return (void *)(intptr_t)errno;
}

static void expect_fatal(struct ibv_context *ctx)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	must(poll(&p, 1, WAIT_MS) == 1, "no event");
	must(!ibv_get_async_event(ctx, &event), "ibv_get_async_event: %s", strerror(errno));
	must(event.event_type == IBV_EVENT_DEVICE_FATAL, "%s",
	     ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	must(ibv_get_async_event(ctx, &event) == -1 && errno == EIO, "another event");
}

/* Opens the device again: by a context that has used nothing yet, or a new one. */
static void end_open_again(struct end *e, struct ibv_context *ctx)
{
	const uint64_t until = now_ms() + WAIT_MS;

	end_begin(e, ctx);
	while (!end_finish(e)) {
		must(now_ms() < until, "no new port: %s", strerror(errno));
		poll(NULL, 0, 10);
	}
	end_talk_to_itself(e);
}

static void lost(void)
{
	static struct end used, again, late;
	struct ibv_qp_init_attr init;
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_context *idle = open_device(device);
	struct ibv_device_attr attr;
	struct ibv_qp_attr a;
	pthread_t waiter;
	struct ibv_wc wc;
	void *err;

	end_open(&used);
	end_talk_to_itself(&used);
	must(!ibv_req_notify_cq(used.cq, 0), "ibv_req_notify_cq");
	end_receive(&used);
	end_receive(&used);
	must(!pthread_create(&waiter, NULL, wait_for_events, &used), "pthread_create");
	say("ready");

	expect_fatal(used.ctx);
	must(!pthread_join(waiter, &err) && (intptr_t)err == EIO, "ibv_get_cq_event: %s",
	     strerror((int)(intptr_t)err));
	must(!ibv_query_qp(used.qp, &a, IBV_QP_STATE, &init) && a.qp_state == IBV_QPS_ERR,
	     "the QP is in state %d", a.qp_state);
	for (int i = 0; i < 2; i++) {
		wc = rc_wait(used.cq, "a flushed receive");
		must(wc.status == IBV_WC_WR_FLUSH_ERR, "%s", ibv_wc_status_str(wc.status));
	}
	must(ibv_poll_cq(used.cq, 1, &wc) < 0, "an empty CQ can still be polled");
	must(ibv_post_recv(used.qp, &wr, &bad) == EIO, "ibv_post_recv");
	must(!end_make_qp(&used) && errno == EIO, "ibv_create_qp: %s", strerror(errno));
	/* an unused device has lost nothing */
	must(!ibv_query_device(idle, &attr), "the idle context is lost");
	say("lost");

	end_open_again(&again, open_device(device));
	end_open_again(&late, idle);
	say("again");
	end_close(&used);
	end_close(&again);
	end_close(&late);
	must(!ibv_close_device(used.ctx) && !ibv_close_device(again.ctx) &&
		     !ibv_close_device(idle),
	     "ibv_close_device");
}

/* ---- a child opens the device for itself ---- */

/* Exchanges parameters as two processes do, over a socket pair. */
static void exchange(struct end *e, int ctl, unsigned char mine, unsigned char theirs)
{
	struct rc_address own = end_address(e), peer;

	ctl_swap(ctl, &own, &peer, sizeof(own));
	end_connect(e, &peer);
	end_receive(e);
	ctl_barrier(ctl, 1);
	for (int i = 0; i < MESSAGES; i++) {
		end_send(e, (unsigned char)(mine + i));
		end_complete(e, (unsigned char)(theirs + i));
		if (i + 1 < MESSAGES)
			end_receive(e);
		ctl_barrier(ctl, (uint32_t)i);
	}
}

static void child(const struct end *inherited, int ctl)
{
	static struct end e;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;

	must(ibv_post_send(inherited->qp, &wr, &bad) == EIO, "a post on the parent's QP");
	must(ibv_poll_cq(inherited->cq, 1, &wc) < 0, "a poll of the parent's CQ");
	end_open(&e);
	exchange(&e, ctl, 10, 50);
	end_close(&e);
	must(!ibv_close_device(e.ctx), "ibv_close_device");
}

static void forks(void)
{
	static struct end e;

	end_open(&e);
	for (int i = 0; i < CHILDREN; i++) {
		int ctl[2], status;
		pid_t pid;

		must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ctl), "socketpair");
		fflush(NULL);
		pid = fork();
		must(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			close(ctl[0]);
			child(&e, ctl[1]);
			_exit(0);
		}
		close(ctl[1]);
		exchange(&e, ctl[0], 50, 10);
		must(waitpid(pid, &status, 0) == pid && !status, "the child ended with %#x",
		     status);
		close(ctl[0]);
		rc_reset(e.qp);
	}
	end_talk_to_itself(&e);
	end_close(&e);
	must(!ibv_close_device(e.ctx), "ibv_close_device");
}

/* ---- numbers ---- */

static void numbers(void)
{
	static struct end e;
	struct ibv_qp *qp[QPS];

	end_open(&e);
	for (int i = 0; i < QPS; i++)
		must((qp[i] = end_make_qp(&e)), "ibv_create_qp: %s", strerror(errno));
	for (int i = 0; i < QPS; i += 2)
		must(!ibv_destroy_qp(qp[i]), "ibv_destroy_qp");
	say("ready");
	pause();
}

static void refused(int want)
{
	static struct end e;

	end_begin(&e, open_device(device));
	must((e.mr = ibv_reg_mr(e.pd, e.buf, sizeof(e.buf), 0)), "ibv_reg_mr: %s",
	     strerror(errno));
	for (int i = 0; i < 2; i++)
		must(!end_make_qp(&e) && errno == want, "ibv_create_qp: %s, not %s",
		     strerror(errno), strerror(want));
	if (want == EIO)
		expect_fatal(e.ctx);
	end_close(&e);
	must(!ibv_close_device(e.ctx), "ibv_close_device");
}

int main(int argc, char **argv)
{
	must(argc == 3, "usage: sharer lost|fork|numbers|full|garbage DEVICE");
	device = argv[2];
	if (!strcmp(argv[1], "lost"))
		lost();
	else if (!strcmp(argv[1], "fork"))
		forks();
	else if (!strcmp(argv[1], "numbers"))
		numbers();
	else if (!strcmp(argv[1], "full"))
		refused(ENOMEM);
	else if (!strcmp(argv[1], "garbage"))
		refused(EIO);
	else
		die("%s: no such case", argv[1]);
	printf("sharer: %s\n", argv[1]);
	return 0;
}
