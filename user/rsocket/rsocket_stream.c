/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A stream's queue pair, buffers and completions. */
#define _GNU_SOURCE
#include "rsocket_stream.h"

#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 16 };

struct stream *stream_alloc(int domain)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	rsocket_init(&s->rs, domain, SOCK_STREAM);
	s->waiting.end = &s->waiting.first;
	s->answered.end = &s->answered.first;
	s->ready.end = &s->ready.first;
	return s;
}

/* ---- creation ---- */

/* Posts receives, initially or to replace completed ones. */
static int stream_post_receives(struct stream *s, u32 n)
{
	struct ibv_recv_wr wrs[BATCH], *bad;
	int err;

	while (n) {
		u32 i, now = min_u32(n, BATCH);

		for (i = 0; i < now; i++)
			wrs[i] = (struct ibv_recv_wr){
				.wr_id = stream_wr_id(STREAM_RECEIVE, 0),
				.next = i + 1 < now ? &wrs[i + 1] : NULL,
			};
		err = ibv_post_recv(s->id->qp, wrs, &bad);
		if (err)
			return -err;
		n -= now;
	}
	return 0;
}

static int stream_make_qp(struct stream *s)
{
	struct rsocket *rs = &s->rs;
	struct ibv_qp_init_attr attr;
	struct ibv_device_attr device;
	u32 most;
	int err;

	if (ibv_query_device(s->id->verbs, &device))
		return -EIO;
	most = min_u32(min_u32((u32)device.max_qp_wr, (u32)device.max_cqe / 2),
		       RSOCKET_MOST_REQUESTS);
	rs->requests = min_u32(rs->requests, most);
	rs->receives = min_u32(rs->receives, most);
	s->channel = ibv_create_comp_channel(s->id->verbs);
	if (!s->channel)
		return -errno;
	if (fcntl(s->channel->fd, F_SETFL, fcntl(s->channel->fd, F_GETFL) | O_NONBLOCK))
		return -errno;
	s->cq = ibv_create_cq(s->id->verbs, (int)(rs->requests + rs->receives), s, s->channel, 0);
	if (!s->cq)
		return -errno;
	attr = (struct ibv_qp_init_attr){
		.qp_context = s,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = rs->requests,
			.max_recv_wr = rs->receives,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = rs->inlined,
		},
	};
	err = rdma_create_qp(s->id, NULL, &attr);
	if (err && rs->inlined) {
		/* More than the device supports: retry without. */
		attr.cap.max_inline_data = 0;
		err = rdma_create_qp(s->id, NULL, &attr);
	}
	if (err)
		return -errno;
	s->inlined = attr.cap.max_inline_data;
	rs->inlined = s->inlined;
	s->requests = rs->requests - STREAM_CONTROLS;
	return 0;
}

static struct ibv_mr *stream_register(struct stream *s, void *pages, size_t n, int access)
{
	return ibv_reg_mr(s->id->pd, pages, n, IBV_ACCESS_LOCAL_WRITE | access);
}

static int stream_make_buffers(struct stream *s)
{
	struct rsocket *rs = &s->rs;

	rs->receive_bytes &= ~1u;
	s->table_size = rs->iomap_size;
	s->receive_bytes = rs->receive_bytes;
	/* Followed by an update's entry that cannot be posted inline, one for each half. */
	s->send_bytes = rs->send_bytes + 2 * sizeof(struct wire_sge);
	s->list_bytes = WIRE_SLOTS * sizeof(struct wire_sge) +
			s->table_size * sizeof(struct wire_iomap);
	s->receive = pages_get(s->receive_bytes);
	s->send = pages_get(s->send_bytes);
	s->list = pages_get(s->list_bytes);
	s->table = calloc(s->table_size + 1, sizeof(*s->table));
	if (!s->receive || !s->send || !s->list || !s->table)
		return -ENOMEM;
	s->receive_mr = stream_register(s, s->receive, s->receive_bytes, IBV_ACCESS_REMOTE_WRITE);
	s->list_mr = stream_register(s, s->list, s->list_bytes, IBV_ACCESS_REMOTE_WRITE);
	s->send_mr = stream_register(s, s->send, s->send_bytes, 0);
	return s->receive_mr && s->list_mr && s->send_mr ? 0 : -errno;
}

int stream_make(struct stream *s)
{
	int err = stream_make_qp(s);

	if (!err)
		err = stream_make_buffers(s);
	if (err)
		return err;
	stream_credit_init(&s->credit, &(struct credit_config){
		.receive_bytes = s->rs.receive_bytes,
		.buffer = (uintptr_t)s->receive,
		.buffer_key = s->receive_mr->rkey,
		.send_bytes = s->rs.send_bytes,
		.receives = s->rs.receives,
		.requests = s->requests,
		.slots = s->list,
	});
	return stream_post_receives(s, s->rs.receives);
}

void stream_tell(const struct stream *s, u8 bytes[WIRE_CONN_BYTES])
{
	wire_put_conn(bytes, &(struct wire_conn){
		.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
		.iomap = true,
		.credits = (u16)s->rs.receives,
		.iomap_size = s->table_size,
		.list = { (uintptr_t)s->list, s->list_mr->rkey, WIRE_SLOTS },
		.buffer = { (uintptr_t)s->receive, s->receive_mr->rkey, s->rs.receive_bytes / 2 },
	});
}

void stream_begin(struct stream *s, const struct wire_conn *peer)
{
	stream_credit_connect(&s->credit, peer);
	s->peer_table_size = peer->iomap_size;
	s->reads = s->writes = true;
}

/* ---- destruction ---- */

static void stream_unregister(struct ibv_mr *mr)
{
	if (mr)
		ibv_dereg_mr(mr);
}

void stream_unmake(struct stream *s)
{
	if (s->id && s->id->qp) {
		iomap_free(s);
		rdma_destroy_qp(s->id);
	}
	stream_unregister(s->receive_mr);
	stream_unregister(s->send_mr);
	stream_unregister(s->list_mr);
	if (s->cq)
		ibv_destroy_cq(s->cq);
	if (s->channel)
		ibv_destroy_comp_channel(s->channel);
	pages_put(s->receive, s->receive_bytes);
	pages_put(s->send, s->send_bytes);
	pages_put(s->list, s->list_bytes);
	free(s->table);
	free(s->peer_used);
	s->receive_mr = s->send_mr = s->list_mr = NULL;
	s->cq = NULL;
	s->channel = NULL;
	s->receive = s->send = NULL;
	s->list = NULL;
	s->table = NULL;
	s->peer_used = NULL;
	s->armed = false;
	s->rs.standin.channel = -1;
}

void stream_destroy(struct stream *s)
{
	if (s->id && s->id->qp && s->state >= STREAM_CONNECTED)
		rdma_disconnect(s->id);
	stream_unmake(s);
	if (s->id)
		rdma_destroy_id(s->id);
	free(s->route);
	free(s->shares);
	if (s->listener)
		rsocket_put(&s->listener->rs);
	pthread_mutex_destroy(&s->rs.lock);
	pthread_mutex_destroy(&s->rs.sending);
	pthread_mutex_destroy(&s->rs.receiving);
	free(s);
}

void stream_finish(struct stream *s, int error)
{
	if (s->state != STREAM_CONNECTED)
		return;
	s->state = STREAM_ENDED;
	s->reads = s->writes = false;
	s->peer_ended = true;
	s->rs.error = error;
	waiters_wake(&s->rs);
}

void stream_fail(struct stream *s, int error)
{
	s->state = STREAM_FAILED;
	s->rs.error = error;
	waiters_wake(&s->rs);
}

int stream_error(struct stream *s, int otherwise)
{
	int error = s->rs.error;

	s->rs.error = 0;
	return error ? -error : otherwise;
}

/* ---- completions ---- */

static void stream_received(struct stream *s, const struct ibv_wc *wc)
{
	u32 message = be32toh(wc->imm_data);

	if (!(wc->wc_flags & IBV_WC_WITH_IMM)) {
		stream_finish(s, ECONNRESET);
		return;
	}
	switch (stream_credit_receive(&s->credit, message)) {
	case MESSAGE_IOMAP:
		if (!iomap_changed(s, wire_number(message)))
			stream_finish(s, ECONNRESET);
		break;
	case MESSAGE_SHUTDOWN:
		/* stream_announce() finishes the stream if its own end was announced. */
		s->peer_ended = true;
		s->reads = false;
		break;
	case MESSAGE_DISCONNECT:
		stream_finish(s, 0);
		break;
	case MESSAGE_DATA:
		s->rs.standin.arrived = true;
		break;
	case MESSAGE_VIOLATION:
		stream_finish(s, ECONNRESET);
		break;
	case MESSAGE_NOTHING:
	case MESSAGE_CREDIT:
		break;
	}
}

static void stream_sent(struct stream *s, const struct ibv_wc *wc)
{
	u32 kind = (u32)(wc->wr_id >> 32);

	if (kind == STREAM_SEND)
		stream_credit_done(&s->credit, (u32)wc->wr_id);
	else
		stream_credit_control_done(&s->credit);
	if (wc->status != IBV_WC_SUCCESS)
		stream_finish(s, wc->status == IBV_WC_RETRY_EXC_ERR ? ETIMEDOUT : ECONNRESET);
	else if (kind == STREAM_GOODBYE)
		stream_finish(s, 0);
}

/* Posts a request. Returns false if the queue pair rejects it; the connection is then over. */
bool stream_post(struct stream *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (!ibv_post_send(s->id->qp, wr, &bad))
		return true;
	stream_finish(s, ECONNRESET);
	return false;
}

static void stream_update(struct stream *s)
{
	struct credit_update update;

	while (s->state == STREAM_CONNECTED && stream_credit_update(&s->credit, &update)) {
		struct ibv_send_wr wr = {
			.wr_id = stream_wr_id(STREAM_CONTROL, 0),
			.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.imm_data = htobe32(update.message),
		};
		struct ibv_sge sge = { .length = sizeof(update.sge) };

		if (update.with_sge) {
			sge.addr = (uintptr_t)&update.sge;
			wr.send_flags = IBV_SEND_INLINE;
			if (s->inlined < sizeof(update.sge)) {
				u8 *copy = s->send + s->rs.send_bytes;

				/* This half was filled since, so its last update has arrived. */
				copy += s->credit.publish_at ? sizeof(update.sge) : 0;
				memcpy(copy, &update.sge, sizeof(update.sge));
				sge.addr = (uintptr_t)copy;
				sge.lkey = s->send_mr->lkey;
				wr.send_flags = 0;
			}
			wr.sg_list = &sge;
			wr.num_sge = 1;
			wr.wr.rdma.remote_addr = update.address;
			wr.wr.rdma.rkey = update.key;
		}
		stream_post(s, &wr);
	}
}

bool stream_progress(struct stream *s)
{
	struct ibv_wc wcs[BATCH];
	u32 receives = 0;
	bool any = false;
	int i, n;

	if (!s->cq || s->state < STREAM_CONNECTED)
		return false;
	do {
		n = ibv_poll_cq(s->cq, BATCH, wcs);
		for (i = 0; i < n; i++) {
			any = true;
			if (wcs[i].wr_id >> 32 != STREAM_RECEIVE) {
				stream_sent(s, &wcs[i]);
			} else if (wcs[i].status == IBV_WC_SUCCESS) {
				receives++;
				stream_received(s, &wcs[i]);
			}
		}
	} while (n == BATCH);
	if (n < 0)
		stream_finish(s, EIO);
	if (s->state == STREAM_CONNECTED && receives && stream_post_receives(s, receives))
		stream_finish(s, EIO);
	stream_announce(s);
	stream_update(s);
	if (any)
		waiters_wake(&s->rs);
	return any;
}

int stream_arm(struct stream *s)
{
	if (!s->cq || s->state < STREAM_CONNECTED)
		return -1;
	if (!s->armed && !ibv_req_notify_cq(s->cq, 0))
		s->armed = true;
	return s->channel->fd;
}

void stream_disarm(struct stream *s)
{
	struct ibv_cq *cq;
	void *context;

	if (!s->channel)
		return;
	while (!ibv_get_cq_event(s->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		s->armed = false;
	}
	/* Other threads that sleep on it arm it again. */
	waiters_wake(&s->rs);
}

/* ---- poll() ---- */

short stream_events(struct stream *s, short wanted)
{
	short events = 0;
	bool ended;

	switch (s->state) {
	case STREAM_NEW:
		return (wanted & (POLLOUT | POLLWRNORM)) | POLLHUP;
	case STREAM_LISTENING:
		if (s->ready.first || s->listen_shut)
			events |= POLLIN | POLLRDNORM;
		return events & wanted;
	case STREAM_FAILED:
		events = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM | POLLRDHUP;
		return (events & wanted) | POLLERR | POLLHUP;
	case STREAM_CONNECTED:
	case STREAM_ENDED:
		break;
	default:
		return 0;
	}
	if (s->credit.unread || !s->reads)
		events |= POLLIN | POLLRDNORM;
	if (!s->writes || stream_credit_room(&s->credit, 0))
		events |= POLLOUT | POLLWRNORM;
	/* After rshutdown(SHUT_RDWR) the same as after the end, which comes with the peer's ACK. */
	ended = s->state == STREAM_ENDED || (!s->reads && !s->writes);
	if (s->peer_ended || ended)
		events |= POLLRDHUP;
	events &= wanted;
	/* Unread data can be read first, as after the FIN of TCP. */
	if (ended && !s->credit.unread)
		events |= POLLHUP;
	return s->rs.error ? events | POLLERR : events;
}
