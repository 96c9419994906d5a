/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared parts of this directory's programs: the device, the pair of QPs, and the printed results:
 * `ok NAME` or `not ok NAME` a case, after its errors in lines with `# `.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "contract.h"

struct ibv_context *ctx;

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

struct ibv_ah_attr own_address(void)
{
	struct ibv_ah_attr a = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };

	ibv_query_gid(ctx, 1, 0, &a.grh.dgid);
	return a;
}

int qp_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = UD_QKEY,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC };

	return ibv_modify_qp(
		qp, &a,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

/* An XRC QP gets both halves' attributes: the other half's are ignored. */
static bool is_reliable(const struct ibv_qp *qp)
{
	return qp->qp_type != IBV_QPT_UC && qp->qp_type != IBV_QPT_UD;
}

int qp_to_rtr(struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = dest_qpn,
				 .rq_psn = 7,
				 .max_dest_rd_atomic = 4,
				 .min_rnr_timer = 1,
				 .ah_attr = own_address() };
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (is_reliable(qp))
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &a, mask);
}

int qp_to_rts(struct ibv_qp *qp, uint32_t dest_qpn, int rnr_retry)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .sq_psn = 7,
				 .max_rd_atomic = 4,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = (uint8_t)rnr_retry };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN, err;

	if (is_reliable(qp))
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	err = qp_to_rtr(qp, dest_qpn);
	return err ? err : ibv_modify_qp(qp, &a, mask);
}

static struct ibv_qp *pair_qp(struct pair *p, int end, const struct pair_options *o)
{
	struct ibv_qp_init_attr_ex a = {
		.send_cq = p->cq[end],
		.recv_cq = p->cq[end],
		.srq = end ? p->srq : NULL,
		.qp_type = o->type,
		.cap = { .max_send_wr = QUEUE,
			 .max_recv_wr = QUEUE,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = 64 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = p->pd,
	};

	if (o->ops && !end) {
		a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		a.send_ops_flags = o->ops;
	}
	return ibv_create_qp_ex(ctx, &a);
}

static struct ibv_cq *pair_cq(struct pair *p, int end, const struct pair_options *o)
{
	struct ibv_cq_init_attr_ex ex;

	if (!end || !o->ex)
		return ibv_create_cq(ctx, o->cqe ? o->cqe : 4 * QUEUE, p, end ? p->channel : NULL,
				     0);
	ex = *o->ex;
	ex.cq_context = p;
	ex.channel = p->channel;
	return (struct ibv_cq *)ibv_create_cq_ex(ctx, &ex);
}

bool pair_open(struct pair *p, struct pair_options o)
{
	memset(p, 0, sizeof(*p));
	o.type = o.type ? o.type : IBV_QPT_RC;
	MUST(p->pd = ibv_alloc_pd(ctx));
	if (o.channel)
		MUST(p->channel = ibv_create_comp_channel(ctx));
	if (o.srq) {
		struct ibv_srq_init_attr a = { .attr = { .max_wr = QUEUE, .max_sge = 2 } };

		MUST(p->srq = ibv_create_srq(p->pd, &a));
	}
	for (int i = 0; i < 2; i++) {
		MUST(p->buf[i] = calloc(1, BUF_BYTES));
		MUST(p->mr[i] =
			     ibv_reg_mr(p->pd, p->buf[i], BUF_BYTES,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
		MUST(p->cq[i] = pair_cq(p, i, &o));
		MUST(p->qp[i] = pair_qp(p, i, &o));
		MUST_EQ(qp_to_init(p->qp[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		MUST_EQ(qp_to_rts(p->qp[i], p->qp[!i]->qp_num, o.rnr_retry ? o.rnr_retry : 7), 0);
	return true;
}

bool pair_close(struct pair *p)
{
	bool good = true;

	for (int i = 0; i < 2; i++)
		good &= !p->qp[i] || !ibv_destroy_qp(p->qp[i]);
	good &= !p->srq || !ibv_destroy_srq(p->srq);
	for (int i = 0; i < 2; i++) {
		good &= !p->cq[i] || !ibv_destroy_cq(p->cq[i]);
		good &= !p->mr[i] || !ibv_dereg_mr(p->mr[i]);
		free(p->buf[i]);
	}
	good &= !p->channel || !ibv_destroy_comp_channel(p->channel);
	good &= !p->pd || !ibv_dealloc_pd(p->pd);
	memset(p, 0, sizeof(*p));
	if (!good)
		printf("# something refused to be destroyed\n");
	return good;
}

bool wait_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	const long long begin = now_ms();
	long long took;
	int n;

	memset(wc, 0xee, sizeof(*wc));
	while (!(n = ibv_poll_cq(cq, 1, wc)) && now_ms() < begin + WAIT_MS)
		;
	took = now_ms() - begin;
	if (n != 1)
		printf("# no completion: %d\n", n);
	else if (took > SLOW_MS)
		printf("slow completion after %lld ms\n", took); /* the check lists such lines */
	return n == 1;
}

bool cq_is_empty(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	return ibv_poll_cq(cq, 1, &wc) == 0;
}

struct ibv_sge sge_of(const struct pair *p, int end, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){ .addr = (uintptr_t)p->buf[end] + offset,
				 .length = length,
				 .lkey = p->mr[end]->lkey };
}

int post_recv(struct pair *p, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_of(p, 1, offset, length);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return p->srq ? ibv_post_srq_recv(p->srq, &wr, &bad) : ibv_post_recv(p->qp[1], &wr, &bad);
}

int post_send(struct pair *p, uint64_t wr_id, uint32_t offset, uint32_t length, unsigned int flags)
{
	struct ibv_sge sge = sge_of(p, 0, offset, length);
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = flags },
			   *bad;

	return ibv_post_send(p->qp[0], &wr, &bad);
}

bool set_nonblocking(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

bool readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

/* True if no event is pending, by a non-blocking read. */
bool no_cq_event(struct ibv_comp_channel *ch)
{
	struct ibv_cq *cq;
	void *context;
	bool none;

	if (!set_nonblocking(ch->fd, true))
		return false;
	none = ibv_get_cq_event(ch, &cq, &context) == -1;
	if (none)
		none = errno == EAGAIN;
	else
		ibv_ack_cq_events(cq, 1); /* or it could not be destroyed */
	return set_nonblocking(ch->fd, false) && none;
}

/* One message and its completion, polled for; the event, if any, is left. */
bool message(struct pair *p, unsigned int flags)
{
	struct ibv_wc wc;

	MUST_EQ(post_recv(p, 1, 0, 100), 0);
	MUST_EQ(post_send(p, 1, 0, 10, flags | IBV_SEND_SIGNALED), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST(wait_wc(p->cq[0], &wc));
	return true;
}

bool no_async_event(void)
{
	struct ibv_async_event event;
	bool none;

	if (!set_nonblocking(ctx->async_fd, true))
		return false;
	none = ibv_get_async_event(ctx, &event) == -1;
	if (none) {
		none = errno == EAGAIN;
	} else {
		printf("# async event %d\n", event.event_type);
		ibv_ack_async_event(&event); /* or nothing could be destroyed */
	}
	return set_nonblocking(ctx->async_fd, false) && none;
}

static void *destroyer(void *arg)
{
	struct destruction *d = arg;
	long err = d->destroy(d->object);

	atomic_store(&d->done, true);
	return (void *)err;
}

bool destroy_begins(struct destruction *d, int (*destroy)(void *object), void *object)
{
	d->destroy = destroy;
	d->object = object;
	atomic_init(&d->done, false);
	MUST_EQ(pthread_create(&d->thread, NULL, destroyer, d), 0);
	return destroy_waits(d);
}

bool destroy_waits(struct destruction *d)
{
	usleep(20000); /* can only miss the bug, never make one */
	MUST(!atomic_load(&d->done));
	return true;
}

bool destroy_ends(struct destruction *d)
{
	void *err;

	MUST_EQ(pthread_join(d->thread, &err), 0);
	MUST_EQ((long)err, 0);
	return true;
}

int destroy_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = NULL;

	for (struct ibv_device **d = list; d && *d && !c; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			c = ibv_open_device(*d);
	if (list)
		ibv_free_device_list(list);
	return c;
}

bool run_all(const struct test_case *c)
{
	bool good = true;

	for (; c->name; c++) {
		bool ok = c->run();

		printf("%s %s\n", ok ? "ok" : "not ok", c->name);
		fflush(stdout);
		good &= ok;
	}
	return good;
}

static void on_signal(int number)
{
	(void)number;
}

bool catch_usr1(int flags)
{
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = flags };

	return !sigaction(SIGUSR1, &act, NULL);
}

bool count_becomes(int (*count)(void), int want)
{
	int now = count();

	for (int i = 0; i < WAIT_MS / 10 && now != want; i++) {
		usleep(10000);
		now = count();
	}
	MUST_EQ(now, want);
	return true;
}
