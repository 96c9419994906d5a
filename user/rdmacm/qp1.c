/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* QP 1: receiving and sending MADs by ordinary verbs. */
#include "qp1.h"

#include <fcntl.h>
#include <stdlib.h>

#include "../os/clock.h"
#include "../verbs/xroce_cm.h"
#include "cm_device.h"

#define RECEIVES 2048u
#define SENDS	 1024u
#define GRH_BYTES 40u
#define RECEIVE_BYTES (GRH_BYTES + CM_MAD_BYTES)
/* MADs posted with one call. */
#define SEND_BATCH 32u
#define POLL_BATCH 32
/* One work request in SIGNAL_EVERY is signaled; its completion covers the earlier ones. */
#define SIGNAL_EVERY 64u

struct qp1 {
	struct rdmacm_device *dev;
	struct ibv_comp_channel *channel;
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	u8 (*receives)[RECEIVE_BYTES];
	u8 (*sends)[CM_MAD_BYTES];
	u32 send_next;	   /* counts sends; never wraps to the slots */
	u32 send_done;
	struct peers peers;
	struct source input;
	struct cm_timer retry; /* set when the send queue was full */
	bool stopped;
};

/* ---- receiving ---- */

static int qp1_post_receives(struct qp1 *q, const u32 *slots, u32 n)
{
	struct ibv_recv_wr wr[POLL_BATCH], *bad;
	struct ibv_sge sge[POLL_BATCH];

	for (u32 i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)q->receives[slots[i]],
					   .length = RECEIVE_BYTES,
					   .lkey = q->mr->lkey };
		wr[i] = (struct ibv_recv_wr){ .wr_id = slots[i],
					      .next = i + 1 < n ? &wr[i + 1] : NULL,
					      .sg_list = &sge[i],
					      .num_sge = 1 };
	}
	return n ? -ibv_post_recv(q->qp, wr, &bad) : 0;
}

static void qp1_gid_of_ipv4(struct gid *gid, const u8 *address)
{
	*gid = (struct gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	memcpy(gid->raw + 12, address, 4);
}

/*
 * Reads the addresses from the IPv6 header before the MAD, or the IPv4 header in its last 20 bytes.
 */
static bool qp1_path_of(const u8 *grh, struct cm_path *path)
{
	*path = (struct cm_path){ .hop_limit = 64 };
	if (grh[20] >> 4 == 4 && grh[0] >> 4 != 6) {
		qp1_gid_of_ipv4(&path->remote, grh + 32);
		qp1_gid_of_ipv4(&path->local, grh + 36);
		path->traffic_class = grh[21];
		return true;
	}
	if (grh[0] >> 4 != 6)
		return false;
	memcpy(path->remote.raw, grh + 8, sizeof(path->remote.raw));
	memcpy(path->local.raw, grh + 24, sizeof(path->local.raw));
	path->traffic_class = (u8)(grh[0] << 4 | grh[1] >> 4);
	return true;
}

/* Passes in a MAD whose answer can be sent. */
static void qp1_hand_in(struct qp1 *q, const struct cm_path *path, const u8 *mad, u32 len,
			u64 now_ns)
{
	if (cm_input(q->dev->cm, path, mad, len, now_ns) == CM_DROP_half_open)
		xroce_cm_count(q->dev->own, XROCE_CM_HALF_OPEN);
}

void qp1_input(struct qp1 *q, const struct cm_path *path, const u8 *mad, u32 len)
{
	qp1_hand_in(q, path, mad, len, clock_now_ns());
	cm_device_turn(q->dev);
}

void qp1_mac(struct qp1 *q, const struct cm_path *path, u8 mac[6])
{
	peers_mac(&q->peers, path, mac);
}

void qp1_hear(struct qp1 *q)
{
	peers_hear(&q->peers);
}

static void qp1_take(struct qp1 *q, const struct ibv_wc *wc, u64 now_ns)
{
	const u8 *packet = q->receives[wc->wr_id];
	struct cm_path path;

	if (wc->status || wc->byte_len < GRH_BYTES || wc->src_qp != 1 ||
	    !qp1_path_of(packet, &path))
		return;
	path.life = RDMACM_PACKET_LIFE;
	/* the core drops MADs of another length without an answer */
	if (wc->byte_len != RECEIVE_BYTES || peers_admit(&q->peers, &path, packet + GRH_BYTES))
		qp1_hand_in(q, &path, packet + GRH_BYTES, wc->byte_len - GRH_BYTES, now_ns);
}

/* Handles a batch; false: none. Passes events on in between, to leave room for the next ones. */
static bool qp1_poll(struct qp1 *q)
{
	struct ibv_wc wc[POLL_BATCH];
	u32 slots[POLL_BATCH];
	int n = ibv_poll_cq(q->recv_cq, POLL_BATCH, wc);
	const u64 now_ns = clock_now_ns();

	for (int i = 0; i < n; i++) {
		qp1_take(q, &wc[i], now_ns);
		slots[i] = (u32)wc[i].wr_id;
		if (i % 8 == 7)
			cm_device_turn(q->dev);
	}
	if (n <= 0)
		return false;
	cm_device_turn(q->dev);
	return !q->stopped && !qp1_post_receives(q, slots, (u32)n);
}

static void qp1_readable(struct source *s, u32 events)
{
	struct qp1 *q = container_of(s, struct qp1, input);
	struct ibv_cq *cq;
	void *context;
	u32 n = 0;

	while (!ibv_get_cq_event(q->channel, &cq, &context))
		n++;
	ibv_ack_cq_events(q->recv_cq, n);
	ibv_req_notify_cq(q->recv_cq, 0);
	while (qp1_poll(q))
		;
}

/* ---- sending ---- */

static void qp1_reap(struct qp1 *q)
{
	struct ibv_wc wc[POLL_BATCH];
	int n;

	while ((n = ibv_poll_cq(q->send_cq, POLL_BATCH, wc)) > 0)
		q->send_done = (u32)wc[n - 1].wr_id + 1;
}

struct qp1_batch {
	struct ibv_send_wr wr[SEND_BATCH];
	struct ibv_sge sge[SEND_BATCH];
	u32 n;
};

static void qp1_flush(struct qp1 *q, struct qp1_batch *b)
{
	struct ibv_send_wr *bad;

	if (!b->n)
		return;
	b->wr[b->n - 1].next = NULL;
	/* fails when the device is gone; both sides retransmit */
	if (ibv_post_send(q->qp, b->wr, &bad))
		q->send_next = (u32)bad->wr_id;
	b->n = 0;
}

static void qp1_put(struct qp1 *q, struct qp1_batch *b, struct ibv_ah *ah,
		    const u8 mad[CM_MAD_BYTES])
{
	const u32 slot = q->send_next % SENDS;
	struct ibv_send_wr *wr = &b->wr[b->n];

	memcpy(q->sends[slot], mad, CM_MAD_BYTES);
	b->sge[b->n] = (struct ibv_sge){ .addr = (uintptr_t)q->sends[slot],
					 .length = CM_MAD_BYTES,
					 .lkey = q->mr->lkey };
	*wr = (struct ibv_send_wr){
		.wr_id = q->send_next,
		.next = wr + 1,
		.sg_list = &b->sge[b->n],
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = (q->send_next + 1) % SIGNAL_EVERY ? 0 : IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = 1, .remote_qkey = XROCE_CM_QKEY },
	};
	q->send_next++;
	if (++b->n == SEND_BATCH)
		qp1_flush(q, b);
}

static bool qp1_has_room(struct qp1 *q)
{
	if (q->send_next - q->send_done >= SENDS)
		qp1_reap(q);
	return q->send_next - q->send_done < SENDS;
}

void qp1_send(struct qp1 *q)
{
	struct qp1_batch b = { .n = 0 };
	struct cm_send send;
	struct ibv_ah *ah;

	while (!q->stopped) {
		if (!qp1_has_room(q)) {
			cm_timer_set(&q->retry, clock_now_ns() + NSEC_PER_MSEC);
			break;
		}
		if (!peers_next_waiting(&q->peers, &send, &ah)) {
			if (!cm_output(q->dev->cm, &send))
				break;
			/* a new peer may replace one whose handle is in the batch */
			if (!peers_knows(&q->peers, &send.path))
				qp1_flush(q, &b);
			ah = peers_find(&q->peers, &send);
		}
		if (ah)
			qp1_put(q, &b, ah, send.mad);
	}
	qp1_flush(q, &b);
}

void qp1_flush_sends(struct qp1 *q)
{
	peers_flush(&q->peers);
}

static void qp1_retry(struct cm_timer *timer)
{
	qp1_send(container_of(timer, struct qp1, retry));
}

/* ---- creation and destruction ---- */

static int qp1_move(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = RDMACM_PORT,
				    .qkey = XROCE_CM_QKEY };
	int err = -ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = -ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = -ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return err;
}

static int qp1_make_objects(struct qp1 *q)
{
	struct ibv_context *ctx = q->dev->own;
	const size_t bytes = RECEIVES * sizeof(*q->receives) + SENDS * sizeof(*q->sends);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = SENDS,
			 .max_recv_wr = RECEIVES,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	q->receives = calloc(1, bytes);
	if (!q->receives)
		return -ENOMEM;
	q->sends = (void *)(q->receives + RECEIVES);
	q->pd = ibv_alloc_pd(ctx);
	if (!q->pd)
		return -errno;
	q->mr = ibv_reg_mr(q->pd, q->receives, bytes, IBV_ACCESS_LOCAL_WRITE);
	q->channel = ibv_create_comp_channel(ctx);
	if (!q->mr || !q->channel || fcntl(q->channel->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	q->recv_cq = ibv_create_cq(ctx, RECEIVES, q, q->channel, 0);
	q->send_cq = ibv_create_cq(ctx, SENDS, q, NULL, 0);
	if (!q->recv_cq || !q->send_cq)
		return -errno;
	attr.recv_cq = q->recv_cq;
	attr.send_cq = q->send_cq;
	q->qp = xroce_create_qp1(q->pd, &attr);
	return q->qp ? qp1_move(q->qp) : -errno;
}

int qp1_make(struct rdmacm_device *dev, struct qp1 **out)
{
	struct qp1 *q = calloc(1, sizeof(*q));
	u32 slots[POLL_BATCH];
	int err;

	if (!q)
		return -ENOMEM;
	q->dev = dev;
	err = qp1_make_objects(q);
	for (u32 first = 0; !err && first < RECEIVES; first += POLL_BATCH) {
		for (u32 i = 0; i < POLL_BATCH; i++)
			slots[i] = first + i;
		err = qp1_post_receives(q, slots, POLL_BATCH);
	}
	if (err) {
		qp1_free(q);
		return err;
	}
	q->retry.fn = qp1_retry;
	peers_init(&q->peers, dev, q->pd);
	*out = q;
	return 0;
}

int qp1_start(struct qp1 *q)
{
	int err;

	q->input.ready = qp1_readable;
	q->input.fd = q->channel->fd;
	err = loop_add(&cm_loop, &q->input);
	if (err)
		return err;
	if (ibv_req_notify_cq(q->recv_cq, 0)) {
		loop_remove(&cm_loop, &q->input);
		return -EIO;
	}
	return 0;
}

void qp1_stop(struct qp1 *q)
{
	q->stopped = true;
	peers_stop(&q->peers);
	loop_remove(&cm_loop, &q->input);
	cm_timer_clear(&q->retry);
}

void qp1_free(struct qp1 *q)
{
	peers_free(&q->peers);
	if (q->qp)
		ibv_destroy_qp(q->qp);
	if (q->recv_cq)
		ibv_destroy_cq(q->recv_cq);
	if (q->send_cq)
		ibv_destroy_cq(q->send_cq);
	if (q->channel)
		ibv_destroy_comp_channel(q->channel);
	if (q->mr)
		ibv_dereg_mr(q->mr);
	if (q->pd)
		ibv_dealloc_pd(q->pd);
	free(q->receives);
	free(q);
}
