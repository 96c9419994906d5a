/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* tier: long tsan */
/* rdma_disconnect(3), rdma_reject(3), and rdma_destroy_id(3) in each state of a connection. */
#include "man.h"

#define CONSUMER_REJECT 28

/* "an RDMA_CM_EVENT_DISCONNECTED event will be generated on both sides", then TIMEWAIT_EXIT */
static bool disconnect_end(int family, int end)
{
	struct link l = { 0 };
	bool good;

	good = link_up(&l, family) && !rdma_disconnect(l.id[end]) &&
	       take(l.ch[!end], l.id[!end], RDMA_CM_EVENT_DISCONNECTED) &&
	       !rdma_disconnect(l.id[!end]) &&
	       take(l.ch[end], l.id[end], RDMA_CM_EVENT_DISCONNECTED);
	for (int i = 0; i < 2 && good; i++) {
		good = qp_state_now(l.id[i]->qp) == IBV_QPS_ERR &&
		       take(l.ch[i], l.id[i], RDMA_CM_EVENT_TIMEWAIT_EXIT) && no_event(l.ch[i]);
	}
	return link_close(&l) && good;
}

static bool disconnect_active(int family)
{
	return disconnect_end(family, 0);
}
BOTH(disconnect_active)

static bool disconnect_passive(int family)
{
	return disconnect_end(family, 1);
}
BOTH(disconnect_passive)

/* Both at once. (If the requests cross, neither end of the kernel's leaves for time-wait.) */
static bool both_body(struct link *l, int family)
{
	MUST(link_up(l, family));
	for (int i = 0; i < 2; i++)
		MUST_EQ(rdma_disconnect(l->id[i]), 0);
	for (int i = 0; i < 2; i++)
		MUST(take(l->ch[i], l->id[i], RDMA_CM_EVENT_DISCONNECTED));
	return true;
}
ON_LINK(disconnect_both, both_body)

/* "transitions any associated QP to the error state, which will flush any posted work requests" */
static bool flush_body(struct link *l, int family)
{
	static char buf[16];
	struct ibv_mr *mr[2];
	struct ibv_wc wc;

	MUST(link_up(l, family));
	for (int i = 0; i < 2; i++) {
		MUST(mr[i] = rdma_reg_msgs(l->id[i], buf, 16));
		for (uintptr_t k = 0; k < 3; k++)
			MUST_EQ(rdma_post_recv(l->id[i], (void *)k, buf, 16, mr[i]), 0);
		MUST_EQ(qp_state_now(l->id[i]->qp), IBV_QPS_RTS);
	}
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	MUST_EQ(qp_state_now(l->id[0]->qp), IBV_QPS_ERR);
	/* The other end's is its own to move. */
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_DISCONNECTED));
	MUST_EQ(qp_state_now(l->id[1]->qp), IBV_QPS_RTS);
	MUST_EQ(rdma_disconnect(l->id[1]), 0);
	for (int i = 0; i < 2; i++) {
		for (unsigned int k = 0; k < 3; k++) {
			MUST(wait_wc(l->id[i]->recv_cq, &wc));
			MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
			MUST_EQ(wc.wr_id, k);
		}
		MUST_EQ(rdma_dereg_mr(mr[i]), 0);
	}
	return true;
}
ON_LINK(disconnect_flushes, flush_body)

/*
 * A message that is acknowledged is in the receiver's CQ by then, so that the sender's disconnect
 * cannot overtake it. It stays there while the QP goes to the error state, before the work requests
 * that are flushed.
 */
static bool keeps_body(struct link *l, int family)
{
	enum { SENT = 3, FLUSHED = 2 };
	static char buf[2][SENT * 16];
	struct ibv_mr *mr[2];
	struct ibv_wc wc;

	MUST(link_up(l, family));
	for (int i = 0; i < 2; i++)
		MUST(mr[i] = rdma_reg_msgs(l->id[i], buf[i], sizeof(buf[i])));
	for (uintptr_t k = 0; k < SENT + FLUSHED; k++)
		MUST_EQ(rdma_post_recv(l->id[1], (void *)(k + 1), buf[1] + k % SENT * 16, 16,
				       mr[1]),
			0);
	for (unsigned int k = 0; k < SENT; k++) {
		memset(buf[0], (int)k + 'a', 16);
		MUST_EQ(rdma_post_send(l->id[0], NULL, buf[0], k + 4, mr[0], IBV_SEND_SIGNALED), 0);
		MUST(wait_wc(l->id[0]->send_cq, &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
	}
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_DISCONNECTED));
	for (unsigned int k = 0; k < SENT + FLUSHED; k++) {
		/* without the engine, which a poll of an empty CQ runs */
		MUST_EQ(ibv_poll_cq(l->id[1]->recv_cq, 1, &wc), 1);
		MUST_EQ(wc.wr_id, k + 1);
		MUST_EQ(wc.status, k < SENT ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
		if (k < SENT) {
			MUST_EQ(wc.byte_len, k + 4);
			MUST_EQ(buf[1][k * 16 + 3], (int)k + 'a');
		}
		if (k == 0)
			MUST_EQ(rdma_disconnect(l->id[1]), 0);
	}
	MUST_EQ(ibv_poll_cq(l->id[1]->recv_cq, 1, &wc), 0);
	for (int i = 0; i < 2; i++)
		MUST_EQ(rdma_dereg_mr(mr[i]), 0);
	return true;
}
ON_LINK(disconnect_keeps_messages, keeps_body)

/* Again, and on ids that have no connection. */
static bool again_body(struct link *l, int family)
{
	MUST(link_up(l, family));
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_DISCONNECTED));
	MUST_EQ(rdma_disconnect(l->id[1]), 0);
	MUST_EQ(rdma_disconnect(l->id[1]), 0);
	MUST(take(l->ch[0], l->id[0], RDMA_CM_EVENT_DISCONNECTED));
	MUST(take(l->ch[0], l->id[0], RDMA_CM_EVENT_TIMEWAIT_EXIT));
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	return no_event(l->ch[0]);
}
ON_LINK(disconnect_again, again_body)

/* ---- rdma_reject(3) ---- */

static uint8_t bytes[256];

static bool reject_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(NULL, 0);
	struct rdma_cm_event *e;

	for (int i = 0; i < 256; i++)
		bytes[i] = (uint8_t)(i * 5 + 1);
	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	MUST_ERR(rdma_reject(l->id[1], bytes, 149), EINVAL);
	MUST_EQ(rdma_reject(l->id[1], bytes, 99), 0);
	MUST(e = next_event(l->ch[0]));
	MUST_EQ(e->event, RDMA_CM_EVENT_REJECTED);
	MUST(e->id == l->id[0]);
	MUST_EQ(e->status, CONSUMER_REJECT);
	MUST_EQ(e->param.conn.private_data_len, 148);
	MUST(!memcmp(e->param.conn.private_data, bytes, 99));
	for (int i = 99; i < 148; i++)
		MUST_EQ(((const uint8_t *)e->param.conn.private_data)[i], 0);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(no_event(l->ch[0]) && no_event(l->ch[1]));
	MUST_ERR(rdma_accept(l->id[1], &param), EINVAL);
	return true;
}
ON_LINK(reject, reject_body)

static bool reject_full_body(struct link *l, int family)
{
	struct rdma_cm_event *e;

	memset(bytes, 0x5a, sizeof(bytes));
	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	MUST_EQ(rdma_reject(l->id[1], bytes, 148), 0);
	MUST(e = next_event(l->ch[0]));
	MUST_EQ(e->event, RDMA_CM_EVENT_REJECTED);
	MUST(!memcmp(e->param.conn.private_data, bytes, 148));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	return true;
}
ON_LINK(reject_with_full_length, reject_full_body)

static bool reject_without_body(struct link *l, int family)
{
	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	MUST_EQ(rdma_reject(l->id[1], NULL, 0), 0);
	return take_status(l->ch[0], l->id[0], RDMA_CM_EVENT_REJECTED, CONSUMER_REJECT);
}
ON_LINK(reject_without_data, reject_without_body)

/* The QP of the refused id goes to the error state: its receives are flushed. */
static bool reject_flushes_body(struct link *l, int family)
{
	struct rdma_cm_event *e;
	static char buf[16];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	MUST(link_open(l, family, RDMA_PS_TCP));
	MUST(mr = rdma_reg_msgs(l->id[0], buf, 16));
	MUST_EQ(rdma_post_recv(l->id[0], buf, buf, 16, mr), 0);
	MUST(link_request(l, NULL));
	MUST_EQ(rdma_reject(l->id[1], NULL, 0), 0);
	MUST(e = next_event(l->ch[0]));
	MUST_EQ(e->event, RDMA_CM_EVENT_REJECTED);
	MUST_EQ(qp_state_now(l->id[0]->qp), IBV_QPS_ERR);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(wait_wc(l->id[0]->recv_cq, &wc));
	MUST_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
	MUST(wc.wr_id == (uintptr_t)buf);
	MUST_EQ(rdma_dereg_mr(mr), 0);
	return true;
}
ON_LINK(reject_flushes, reject_flushes_body)

/* A connection cannot be rejected. */
static bool reject_late_body(struct link *l, int family)
{
	MUST(link_up(l, family));
	MUST_ERR(rdma_reject(l->id[1], NULL, 0), EINVAL);
	MUST_ERR(rdma_reject(l->id[0], NULL, 0), EINVAL);
	MUST_ERR(rdma_reject(l->listen, NULL, 0), EINVAL);
	return true;
}
ON_LINK(reject_too_late, reject_late_body)

/* An id that was refused does not connect again; another does. */
static bool retry_body(struct link *l, int family)
{
	uint16_t port;

	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	MUST_EQ(rdma_reject(l->id[1], NULL, 0), 0);
	MUST_EQ(rdma_ack_cm_event(l->request), 0);
	l->request = NULL;
	MUST(link_drop(l, 1));
	MUST(take_status(l->ch[0], l->id[0], RDMA_CM_EVENT_REJECTED, CONSUMER_REJECT));
	MUST_ERR(rdma_connect(l->id[0], NULL), EINVAL);
	MUST(link_drop(l, 0));
	port = ntohs(rdma_get_src_port(l->listen));
	MUST(l->id[0] = resolved(l->ch[0], RDMA_PS_TCP, own(family, port)));
	MUST_EQ(create_qp(l->id[0]), 0);
	MUST(link_request(l, NULL) && link_accept(l, NULL));
	return link_established(l);
}
ON_LINK(connect_after_a_reject, retry_body)

/* ---- rdma_destroy_id(3): "cancels any outstanding asynchronous operation" ---- */

/* The passive id before it is accepted: the peer is rejected. */
static bool request_dropped_body(struct link *l, int family)
{
	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	MUST_EQ(rdma_ack_cm_event(l->request), 0);
	l->request = NULL;
	MUST(link_drop(l, 1));
	return take_status(l->ch[0], l->id[0], RDMA_CM_EVENT_REJECTED, CONSUMER_REJECT);
}
ON_LINK(destroy_request, request_dropped_body)

/*
 * The active id before the answer. The kernel reports nothing before the passive id is accepted,
 * which fails then. Another request shows that the message has arrived.
 */
static bool asking_dropped_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(NULL, 0);
	struct rdma_cm_id *next;
	uint16_t port;

	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	next = l->id[1];
	MUST_EQ(rdma_ack_cm_event(l->request), 0);
	l->request = NULL;
	MUST(link_drop(l, 0));
	port = ntohs(rdma_get_src_port(l->listen));
	MUST(l->id[0] = resolved(l->ch[0], RDMA_PS_TCP, own(family, port)));
	MUST_EQ(create_qp(l->id[0]), 0);
	MUST(link_request(l, NULL));
	if (!create_qp(next)) { /* the kernel's fails already */
		MUST_ERR(rdma_accept(next, &param), EINVAL);
		rdma_destroy_qp(next);
	}
	MUST_EQ(rdma_destroy_id(next), 0);
	MUST(no_event(l->ch[1]));
	return link_accept(l, NULL) && link_established(l);
}
ON_LINK(destroy_asking, asking_dropped_body)

static bool connected_dropped(int family, int end)
{
	struct link l = { 0 };
	bool good = link_up(&l, family) && link_drop(&l, end) &&
		    take(l.ch[!end], l.id[!end], RDMA_CM_EVENT_DISCONNECTED) &&
		    !rdma_disconnect(l.id[!end]) &&
		    take(l.ch[!end], l.id[!end], RDMA_CM_EVENT_TIMEWAIT_EXIT);

	return link_close(&l) && good;
}

static bool destroy_connected_active(int family)
{
	return connected_dropped(family, 0);
}
BOTH(destroy_connected_active)

static bool destroy_connected_passive(int family)
{
	return connected_dropped(family, 1);
}
BOTH(destroy_connected_passive)

/* The listener: its connections stay, and requests not yet taken are rejected. */
static bool listener_dropped_body(struct link *l, int family)
{
	struct rdma_cm_id *late;
	uint16_t port;

	MUST(link_up(l, family));
	port = ntohs(rdma_get_src_port(l->listen));
	MUST(late = resolved(l->ch[0], RDMA_PS_TCP, own(family, port)));
	MUST_EQ(create_qp(late), 0);
	MUST_EQ(rdma_connect(late, NULL), 0);
	MUST(readable(l->ch[1]->fd, WAIT_MS)); /* not got */
	MUST_EQ(rdma_destroy_id(l->listen), 0);
	l->listen = NULL;
	MUST(take_status(l->ch[0], late, RDMA_CM_EVENT_REJECTED, CONSUMER_REJECT));
	MUST(no_event(l->ch[1]));
	rdma_destroy_qp(late);
	MUST_EQ(rdma_destroy_id(late), 0);
	/* the connection is as it was */
	MUST_EQ(qp_state_now(l->id[0]->qp), IBV_QPS_RTS);
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_DISCONNECTED));
	return true;
}
ON_LINK(destroy_listener, listener_dropped_body)

/* An id with an unread event is destroyed with the event. */
static bool destroy_with_event(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	union address to = own(family, 7471);
	struct rdma_cm_id *id;

	MUST(ch);
	for (int i = 0; i < 20; i++) {
		MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
		MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
		if (i & 1)
			MUST(readable(ch->fd, WAIT_MS));
		MUST_EQ(rdma_destroy_id(id), 0);
		MUST(no_event(ch));
	}
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(destroy_with_event)

/* A resolution that would take long ends at once. */
static bool destroy_resolving(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	union address to = other(family, ABSENT, 7471);
	struct rdma_cm_id *id;

	MUST(ch);
	for (int i = 0; i < 3; i++) {
		MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
		MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, 100000), 0);
		MUST_EQ(rdma_destroy_id(id), 0);
	}
	MUST(no_event(ch));
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(destroy_resolving)

/* "Destruction of an rdma_cm_id will block until related events have been acknowledged." */
static bool destroy_waits_for(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	union address to = own(family, 7471);
	struct rdma_cm_event *e;
	struct destruction d;
	struct rdma_cm_id *id;

	MUST(ch);
	MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
	MUST(e = next_event(ch));
	MUST(destroy_begins(&d, destroy_id, id));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(destroy_ends(&d));
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(destroy_waits_for)

/* A request that was got counts for its listener, until it is acknowledged. */
static bool listener_waits_body(struct link *l, int family)
{
	struct destruction d;

	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	MUST(destroy_begins(&d, destroy_id, l->listen));
	MUST_EQ(rdma_ack_cm_event(l->request), 0);
	l->request = NULL;
	MUST(destroy_ends(&d));
	l->listen = NULL;
	return true;
}
ON_LINK(destroy_of_a_listener_waits, listener_waits_body)

const struct test_case man_cases[] = {
	CASE(disconnect_active_v4),
	CASE(disconnect_active_v6),
	CASE(disconnect_passive_v4),
	CASE(disconnect_passive_v6),
	CASE(disconnect_both_v4),
	CASE(disconnect_both_v6),
	CASE(disconnect_flushes_v4),
	CASE(disconnect_flushes_v6),
	CASE(disconnect_keeps_messages_v4),
	CASE(disconnect_keeps_messages_v6),
	CASE(disconnect_again_v4),
	CASE(disconnect_again_v6),
	CASE(reject_v4),
	CASE(reject_v6),
	CASE(reject_with_full_length_v4),
	CASE(reject_with_full_length_v6),
	CASE(reject_without_data_v4),
	CASE(reject_without_data_v6),
	CASE(reject_flushes_v4),
	CASE(reject_flushes_v6),
	CASE(reject_too_late_v4),
	CASE(reject_too_late_v6),
	CASE(connect_after_a_reject_v4),
	CASE(connect_after_a_reject_v6),
	CASE(destroy_request_v4),
	CASE(destroy_request_v6),
	CASE(destroy_asking_v4),
	CASE(destroy_asking_v6),
	CASE(destroy_connected_active_v4),
	CASE(destroy_connected_active_v6),
	CASE(destroy_connected_passive_v4),
	CASE(destroy_connected_passive_v6),
	CASE(destroy_listener_v4),
	CASE(destroy_listener_v6),
	CASE(destroy_with_event_v4),
	CASE(destroy_with_event_v6),
	CASE(destroy_resolving_v4),
	CASE(destroy_resolving_v6),
	CASE(destroy_waits_for_v4),
	CASE(destroy_waits_for_v6),
	CASE(destroy_of_a_listener_waits_v4),
	CASE(destroy_of_a_listener_waits_v6),
	{ 0 },
};
