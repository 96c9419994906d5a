/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that opens a device, makes a QP, becomes the user 65534 without any capability, and
 * then makes, uses and ends every kind of object:
 *
 *	cm_dropped DEVICE ADDRESS [late]
 *
 * late: it makes no QP before, and only one after. Prints "NAME 0" or "NAME ERRNO" for each step,
 * and exits with 0 after the last one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "lib/cm.h"
#include "lib/ctl.h"
#include "lib/device.h"

#define CHANNELS 40

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static const char *address;

static void say(const char *name, bool done)
{
	const int err = errno;

	printf("%s %s\n", name, done ? "0" : strerrorname_np(err));
	fflush(stdout);
}

static bool set_errno(int err)
{
	errno = err;
	return !err;
}

/* ---- QPs that send to themselves ---- */

struct loop {
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static bool loop_connect(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	union ibv_gid gid;

	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS) ||
	    ibv_query_gid(ctx, 1, 0, &gid))
		return false;
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = qp->qp_num,
				  .max_dest_rd_atomic = 1,
				  .min_rnr_timer = 12,
				  .ah_attr = { .is_global = 1,
					       .port_num = 1,
					       .grh = { .dgid = gid, .hop_limit = 64 } } };
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER))
		return false;
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				  .rnr_retry = 7, .max_rd_atomic = 1 };
	return !ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					      IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool loop_open(struct loop *l)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

	*l = (struct loop){ 0 };
	if (!(l->ch = ibv_create_comp_channel(ctx)) ||
	    !(l->cq = ibv_create_cq(ctx, 8, NULL, l->ch, 0)))
		return false;
	init.send_cq = init.recv_cq = l->cq;
	return (l->qp = ibv_create_qp(pd, &init)) && loop_connect(l->qp);
}

/* A message to itself; its event makes the descriptor readable. */
static bool loop_event(struct loop *l)
{
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct pollfd p = { .fd = l->ch->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;

	if (!l->qp)
		return set_errno(ENOENT);
	if (ibv_req_notify_cq(l->cq, 0) || ibv_post_recv(l->qp, &recv, &bad_recv) ||
	    ibv_post_send(l->qp, &send, &bad_send))
		return false;
	if (poll(&p, 1, WAIT_MS) != 1)
		return set_errno(ETIME);
	if (ibv_get_cq_event(l->ch, &cq, &arg))
		return false;
	ibv_ack_cq_events(cq, 1);
	return cq == l->cq && ibv_poll_cq(cq, 1, &wc) == 1 && !wc.status;
}

static bool loop_close(struct loop *l)
{
	return l->qp && !ibv_destroy_qp(l->qp) && !ibv_destroy_cq(l->cq) &&
	       !ibv_destroy_comp_channel(l->ch);
}

/* ---- the steps: true, or false with errno ---- */

static struct loop loops[CHANNELS];

static bool channels(void)
{
	for (int i = 0; i < CHANNELS; i++)
		if (!loop_open(&loops[i]))
			return false;
	return true;
}

static bool events(void)
{
	for (int i = 0; i < CHANNELS; i++)
		if (!loop_event(&loops[i]))
			return false;
	return true;
}

static bool channels_end(void)
{
	for (int i = 0; i < CHANNELS; i++)
		if (!loop_close(&loops[i]))
			return false;
	return true;
}

static bool channels_again(void)
{
	return channels() && events() && channels_end();
}

static bool memory(void)
{
	static char buf[4096];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_dm *dm = mr ? ibv_alloc_dm(ctx, &dm_attr) : NULL;
	struct ibv_mw *mw = dm ? ibv_alloc_mw(pd, IBV_MW_TYPE_1) : NULL;

	return mw && !ibv_dealloc_mw(mw) && !ibv_free_dm(dm) && !ibv_dereg_mr(mr);
}

static bool srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	return srq && !ibv_destroy_srq(srq);
}

static bool xrcd(void)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1, .oflags = 0100 };
	struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &init);

	return xrcd && !ibv_close_xrcd(xrcd);
}

static bool moderated(void)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { .cq_count = 2, .cq_period = 100 } };
	struct loop l;

	return loop_open(&l) && set_errno(ibv_modify_cq(l.cq, &attr)) &&
	       set_errno(ibv_resize_cq(l.cq, 32)) && loop_event(&l) && loop_close(&l);
}

static bool multicast(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq,
					 .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 224, 1, 2, 77 } };

	return qp && set_errno(ibv_attach_mcast(qp, &gid, 0)) &&
	       set_errno(ibv_detach_mcast(qp, &gid, 0)) && !ibv_destroy_qp(qp) &&
	       !ibv_destroy_cq(cq);
}

/* Frames of others: for a process that may have packet sockets. */
static bool raw_flow(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET, .send_cq = cq,
					 .recv_cq = cq, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_flow_attr attr = { .type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof(attr),
				      .port = 1 };
	struct ibv_flow *flow = qp ? ibv_create_flow(qp, &attr) : NULL;
	const int err = errno;

	if (flow)
		ibv_destroy_flow(flow);
	if (qp)
		ibv_destroy_qp(qp);
	if (cq)
		ibv_destroy_cq(cq);
	errno = err;
	return flow;
}

static bool second_context(void)
{
	struct ibv_context *first = ctx;
	struct ibv_pd *first_pd = pd;
	struct loop l;
	bool done = (ctx = ibv_open_device(first->device)) && (pd = ibv_alloc_pd(ctx)) &&
		    loop_open(&l) && loop_event(&l) && loop_close(&l) && !ibv_dealloc_pd(pd) &&
		    !ibv_close_device(ctx);

	ctx = first;
	pd = first_pd;
	return done;
}

/* What a child does is its own: EIO, and the parent's goes on. */
static bool forks(void)
{
	struct loop l;
	int status;
	pid_t child;

	if (!loop_open(&l))
		return false;
	child = fork();
	if (!child)
		_exit(!ibv_create_cq(ctx, 4, NULL, NULL, 0) && errno == EIO && loop_close(&l) ? 0 :
											       1);
	return child > 0 && waitpid(child, &status, 0) == child && !status && loop_event(&l) &&
	       loop_close(&l);
}

static struct rdma_cm_id *listener;

static void *accepts(void *arg)
{
	struct rdma_cm_id *id = NULL;

	return !rdma_get_request(listener, &id) && !rdma_accept(id, NULL) ? id : NULL;
}

static bool rdma_cm(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *active, *passive;
	struct rdma_cm_id *id;
	pthread_t thread;
	void *accepted;

	if (rdma_getaddrinfo(address, "7490", &hints, &active))
		return false;
	hints.ai_flags = RAI_PASSIVE;
	if (rdma_getaddrinfo(address, "7490", &hints, &passive) ||
	    rdma_create_ep(&listener, passive, NULL, &init) || rdma_listen(listener, 4) ||
	    pthread_create(&thread, NULL, accepts, NULL) ||
	    rdma_create_ep(&id, active, NULL, &init) || rdma_connect(id, NULL))
		return false;
	pthread_join(thread, &accepted);
	if (!accepted)
		return false;
	rdma_destroy_ep(id);
	rdma_destroy_ep(accepted);
	rdma_destroy_ep(listener);
	rdma_freeaddrinfo(active);
	rdma_freeaddrinfo(passive);
	return true;
}

static bool cm_multicast(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };
	struct sockaddr_in at = { .sin_family = AF_INET }, group = { .sin_family = AF_INET };
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	bool joined;

	inet_pton(AF_INET, address, &at.sin_addr);
	inet_pton(AF_INET, "224.1.2.78", &group.sin_addr);
	if (!ch || rdma_create_id(ch, &id, NULL, RDMA_PS_UDP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&at) || rdma_create_qp(id, NULL, &init) ||
	    rdma_join_multicast(id, (struct sockaddr *)&group, NULL) ||
	    rdma_get_cm_event(ch, &ev))
		return false;
	joined = ev->event == RDMA_CM_EVENT_MULTICAST_JOIN;
	errno = -ev->status;
	rdma_ack_cm_event(ev);
	if (!joined || rdma_leave_multicast(id, (struct sockaddr *)&group))
		return false;
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
	return true;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*step)(void);
	} steps[] = {
		{ "channels", channels },	{ "events", events },
		{ "channels_end", channels_end }, { "channels_again", channels_again },
		{ "memory", memory },		{ "srq", srq },
		{ "xrcd", xrcd },		{ "moderated", moderated },
		{ "multicast", multicast },	{ "raw_flow", raw_flow },
		{ "second_context", second_context }, { "forks", forks },
		{ "rdma_cm", rdma_cm },		{ "cm_multicast", cm_multicast },
	};
	struct loop before;

	must(argc == 3 || argc == 4, "usage: cm_dropped DEVICE ADDRESS [late]");
	address = argv[2];
	ctx = open_device(argv[1]);
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	must(argc == 4 || (loop_open(&before) && loop_event(&before)), "as root: %s",
	     strerror(errno));
	must(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) &&
		     !setresuid(65534, 65534, 65534),
	     "setresuid");
	if (argc == 4) {
		say("late", loop_open(&before));
		return 0;
	}
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		errno = 0;
		say(steps[i].name, steps[i].step());
	}
	say("before", loop_event(&before) && loop_close(&before));
	say("end", !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	return 0;
}
