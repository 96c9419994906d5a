/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See link.h. */
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl.h"
#include "device.h"
#include "rc.h"

#define QKEY	0x0511beefu
#define GRH	40
#define BEGINS	4    /* messages on a stream that each side has sent before it received one */
#define ROOM	9216 /* bytes of a slot */
#define CQ_SIZE 4096

enum { WORD_HELLO = 1, WORD_READY, WORD_STOPPED, WORD_DONE };

static const char *const names[] = { "RC", "UC", "UD" };
static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
/* Longest messages; a packet has 1024 bytes. */
static const uint32_t longest[] = { 9000, 5000, 900 };

/* What each message begins with. */
struct head {
	uint64_t sequence;
	uint32_t from, len;
};

static uint32_t mixed(uint32_t qpn, uint64_t sequence)
{
	uint64_t x = (sequence + 1) * 0x9e3779b97f4a7c15ull ^ (uint64_t)qpn * 0xff51afd7ed558ccdull;

	return (uint32_t)(x >> 32 ^ x >> 13);
}

static uint32_t message_len(unsigned int s, uint32_t qpn, uint64_t sequence)
{
	return sizeof(struct head) +
	       mixed(qpn, sequence) % (longest[s] - (uint32_t)sizeof(struct head) + 1);
}

static uint8_t message_byte(uint32_t mix, uint32_t i)
{
	return (uint8_t)((mix ^ i * 0x85ebca6bu) >> 16);
}

static uint8_t *slot(const struct link *l, unsigned int s, bool receives, uint64_t n)
{
	return l->memory +
	       ((s * 2 + receives) * LINK_SLOTS + n % LINK_SLOTS) * (size_t)ROOM;
}

static uint64_t wr_id(const struct link *l, unsigned int s, bool receives)
{
	return (uint64_t)l->number << 16 | s << 1 | receives;
}

/* A device that is lost says EIO to all; nothing else may be refused. */
static bool worked(struct link_port *p, int err, const char *what)
{
	if (err == EIO)
		p->lost = true;
	must(!err || p->lost, "%s: %s", what, strerror(err));
	return !err;
}

/* ---- messages ---- */

static void post_receive(struct link *l, unsigned int s, uint64_t n)
{
	struct ibv_sge sge = { (uintptr_t)slot(l, s, true, n), ROOM, l->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id(l, s, true), .sg_list = &sge, .num_sge = 1 }, *bad;

	worked(l->port, ibv_post_recv(l->stream[s].qp, &wr, &bad), "ibv_post_recv");
}

static void send_message(struct link *l, unsigned int s)
{
	struct link_stream *t = &l->stream[s];
	const uint32_t own = t->qp->qp_num, mix = mixed(own, t->sent);
	uint8_t *at = slot(l, s, false, t->sent);
	const struct head head = { t->sent, own, message_len(s, own, t->sent) };
	struct ibv_sge sge = { (uintptr_t)at, head.len, l->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id(l, s, false),
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	memcpy(at, &head, sizeof(head));
	for (uint32_t i = sizeof(head); i < head.len; i++)
		at[i] = message_byte(mix, i);
	if (s == LINK_UD) {
		wr.wr.ud.ah = l->ah;
		wr.wr.ud.remote_qpn = t->peer_qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	if (worked(l->port, ibv_post_send(t->qp, &wr, &bad), "ibv_post_send"))
		t->sent++;
}

static void say(struct link *l, uint32_t type)
{
	struct link_word w = { .type = type, .gid = l->port->gid };

	for (unsigned int s = 0; s < LINK_STREAMS; s++) {
		w.qpn[s] = l->stream[s].qp->qp_num;
		w.sent[s] = l->stream[s].sent;
	}
	/* some ten words in a link's life fit the socket; reading notices that the partner
	 * exited */
	if (send(l->fd, &w, sizeof(w), MSG_NOSIGNAL) < 0)
		must(errno == EPIPE || errno == ECONNRESET, "control connection: %s",
		     strerror(errno));
}

static void send_owed(struct link *l, unsigned int s)
{
	struct link_stream *t = &l->stream[s];

	while (t->owed && !l->stopping && !l->broken && !l->port->lost &&
	       t->sent - t->completed < LINK_SLOTS) {
		send_message(l, s);
		t->owed--;
	}
}

/* Checks whether all messages of both sides have arrived. */
static void look_for_the_end(struct link *l)
{
	if (!l->stopping || !l->partner_stopped || l->done)
		return;
	for (unsigned int s = 0; s < LINK_STREAMS; s++)
		if (l->stream[s].received != l->stream[s].last ||
		    l->stream[s].completed != l->stream[s].sent)
			return;
	l->done = true;
	say(l, WORD_DONE);
}

void link_stop(struct link *l)
{
	if (l->stopping || !l->connected)
		return;
	l->stopping = true;
	say(l, WORD_STOPPED);
	look_for_the_end(l);
}

static void check_message(struct link *l, unsigned int s, const struct ibv_wc *wc)
{
	struct link_stream *t = &l->stream[s];
	const uint32_t grh = s == LINK_UD ? GRH : 0, mix = mixed(t->peer_qpn, t->received);
	const uint8_t *at = slot(l, s, true, t->received) + grh;
	const uint32_t len = message_len(s, t->peer_qpn, t->received);
	struct head head;

	must(wc->opcode == IBV_WC_RECV && wc->qp_num == t->qp->qp_num,
	     "%s: a receive of opcode %d, QPN %#x", names[s], wc->opcode, wc->qp_num);
	must(s != LINK_UD || (wc->src_qp == t->peer_qpn && wc->wc_flags & IBV_WC_GRH),
	     "UD: from QPN %#x, not %#x", wc->src_qp, t->peer_qpn);
	memcpy(&head, at, sizeof(head));
	must(head.from == t->peer_qpn && head.sequence == t->received,
	     "%s: message %llu of QPN %#x came in place of message %llu of QPN %#x", names[s],
	     (unsigned long long)head.sequence, head.from, (unsigned long long)t->received,
	     t->peer_qpn);
	must(head.len == len && wc->byte_len == len + grh, "%s: message %llu has %u bytes, not %u",
	     names[s], (unsigned long long)t->received, wc->byte_len, len + grh);
	for (uint32_t i = sizeof(head); i < len; i++)
		must(at[i] == message_byte(mix, i), "%s: byte %u of message %llu is wrong",
		     names[s], i, (unsigned long long)t->received);
	l->port->messages++;
	l->port->bytes += len;
}

static bool has_all_of_limit(const struct link *l)
{
	for (unsigned int s = 0; s < LINK_STREAMS; s++)
		if (l->stream[s].received < l->limit)
			return false;
	return l->limit;
}

void link_complete(struct link *l, const struct ibv_wc *wc)
{
	const unsigned int s = wc->wr_id >> 1 & 3;
	struct link_stream *t = &l->stream[s];

	if (wc->status != IBV_WC_SUCCESS) {
		l->broken = ibv_wc_status_str(wc->status);
		return;
	}
	if (!(wc->wr_id & 1)) {
		t->completed++;
	} else {
		check_message(l, s, wc);
		post_receive(l, s, t->received++);
		t->owed++;
		if (has_all_of_limit(l))
			link_stop(l);
	}
	send_owed(l, s);
	look_for_the_end(l);
}

/* ---- the partner ---- */

static bool connect_ud(struct link *l, const union ibv_gid *peer)
{
	struct ibv_qp *qp = l->stream[LINK_UD].qp;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_ah_attr ah = { .is_global = 1,
				  .port_num = 1,
				  .grh = { .dgid = *peer,
					   .sgid_index = (uint8_t)l->port->gid_index,
					   .hop_limit = 64 } };
	int err = ibv_modify_qp(qp, &a,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	a.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(qp, &a, IBV_QP_STATE);
	a.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return worked(l->port, err, "connect UD") &&
	       worked(l->port, (l->ah = ibv_create_ah(l->port->pd, &ah)) ? 0 : errno,
		      "ibv_create_ah");
}

/* False: the device is lost. */
static bool connect_all(struct link *l, const struct link_word *w)
{
	/* a second: no peer is that late even on a busy machine, so nothing is resent */
	const struct rc_options o = { .gid_index = (uint8_t)l->port->gid_index,
				      .timeout = 18,
				      .retry_cnt = 7,
				      .rnr_retry = 7 };

	for (unsigned int s = 0; s < LINK_STREAMS; s++) {
		struct link_stream *t = &l->stream[s];
		const struct rc_address own = { .gid = l->port->gid,
						.qpn = t->qp->qp_num,
						.psn = t->qp->qp_num };
		const struct rc_address peer = { .gid = w->gid,
						 .qpn = w->qpn[s],
						 .psn = w->qpn[s] };

		t->peer_qpn = w->qpn[s];
		if (s == LINK_UD ? !connect_ud(l, &w->gid)
				 : !worked(l->port, rc_try_connect(t->qp, &own, &peer, &o),
					   "connect RC or UC"))
			return false;
		for (unsigned int i = 0; i < LINK_SLOTS; i++)
			post_receive(l, s, i);
	}
	return true;
}

static void heard(struct link *l, const struct link_word *w)
{
	switch (w->type) {
	case WORD_HELLO:
		if (!l->port->lost && connect_all(l, w))
			say(l, WORD_READY);
		break;
	case WORD_READY:
		l->connected = true;
		for (unsigned int s = 0; s < LINK_STREAMS; s++) {
			l->stream[s].owed += BEGINS;
			send_owed(l, s);
		}
		break;
	case WORD_STOPPED:
		l->partner_stopped = true;
		for (unsigned int s = 0; s < LINK_STREAMS; s++)
			l->stream[s].last = w->sent[s];
		link_stop(l);
		look_for_the_end(l);
		break;
	case WORD_DONE: l->partner_done = true; break;
	default: die("a word of type %u", w->type);
	}
}

bool link_read(struct link *l)
{
	for (;;) {
		ssize_t n = recv(l->fd, (uint8_t *)&l->word + l->word_bytes,
				 sizeof(l->word) - l->word_bytes, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n <= 0)
			return false;
		l->word_bytes += (uint32_t)n;
		if (l->word_bytes == sizeof(l->word)) {
			l->word_bytes = 0;
			heard(l, &l->word);
		}
	}
}

/* ---- begin and end ---- */

void link_port_open(struct link_port *p, const char *device, int gid_index)
{
	*p = (struct link_port){ .ctx = open_device(device), .gid_index = gid_index };
	must((p->pd = ibv_alloc_pd(p->ctx)) && (p->channel = ibv_create_comp_channel(p->ctx)) &&
		     (p->cq = ibv_create_cq(p->ctx, CQ_SIZE, NULL, p->channel, 0)),
	     "PD, channel, CQ: %s", strerror(errno));
	must(!ibv_query_gid(p->ctx, 1, gid_index, &p->gid), "ibv_query_gid: %s", strerror(errno));
	must(!fcntl(p->channel->fd, F_SETFL, O_NONBLOCK) &&
		     !fcntl(p->ctx->async_fd, F_SETFL, O_NONBLOCK),
	     "O_NONBLOCK");
	must(!ibv_req_notify_cq(p->cq, 0), "ibv_req_notify_cq");
}

void link_port_close(struct link_port *p)
{
	must(!ibv_destroy_cq(p->cq) && !ibv_destroy_comp_channel(p->channel) &&
		     !ibv_dealloc_pd(p->pd) && !ibv_close_device(p->ctx),
	     "CQ, channel, PD or device is in use");
}

void link_close(struct link *l)
{
	must(!l->ah || !ibv_destroy_ah(l->ah), "ibv_destroy_ah");
	for (unsigned int s = 0; s < LINK_STREAMS; s++)
		must(!l->stream[s].qp || !ibv_destroy_qp(l->stream[s].qp),
		     "ibv_destroy_qp (%s)", names[s]);
	must(!l->mr || !ibv_dereg_mr(l->mr), "ibv_dereg_mr");
	close(l->fd);
	free(l->memory);
	free(l);
}

/* False: the device is lost. */
static bool make_resources(struct link *l, size_t bytes)
{
	struct link_port *p = l->port;

	l->mr = ibv_reg_mr(p->pd, l->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!worked(p, l->mr ? 0 : errno, "ibv_reg_mr"))
		return false;
	for (unsigned int s = 0; s < LINK_STREAMS; s++) {
		struct ibv_qp_init_attr init = { .qp_type = types[s],
						 .send_cq = p->cq,
						 .recv_cq = p->cq,
						 .cap = { LINK_SLOTS, LINK_SLOTS, 1, 1, 0 } };

		l->stream[s].qp = ibv_create_qp(p->pd, &init);
		if (!worked(p, l->stream[s].qp ? 0 : errno, names[s]))
			return false;
	}
	return true;
}

struct link *link_open(struct link_port *p, int fd, uint64_t limit)
{
	static uint16_t number;
	const size_t bytes = (size_t)LINK_STREAMS * 2 * LINK_SLOTS * ROOM;
	struct link *l = calloc(1, sizeof(*l));

	must(l && (l->memory = calloc(1, bytes)), "no memory");
	l->port = p;
	l->number = number++;
	l->fd = fd;
	l->limit = limit;
	if (!make_resources(l, bytes)) {
		link_close(l);
		return NULL;
	}
	say(l, WORD_HELLO);
	return l;
}
