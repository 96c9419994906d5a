/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Connections that stay half open, at each step; the lengths of private data; rdma_migrate_id(3)
 * with several events, and each order in which rdma_destroy_id(3) may be called while events are
 * handled.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <sys/epoll.h>

#include "man.h"

#define REQ_BYTES	56
#define REP_BYTES	196
#define REJ_BYTES	148
#define CONSUMER_REJECT 28
#define ECE_REJECT	35 /* "vendor option not supported" */

static uint8_t bytes[256];

/* ---- rdma_migrate_id(3), rdma_destroy_id(3) ---- */

/* Gets the next edge-triggered event of the epoll set. */
static bool edge(int set)
{
	struct epoll_event event;

	MUST_EQ(epoll_wait(set, &event, 1, WAIT_MS), 1);
	return true;
}

/* "moves any pending events": all events of the id, in their order, and no other id's. */
static bool several_events_move_body(struct link *l, int family)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct rdma_event_channel *to = rdma_create_event_channel();
	const int set = epoll_create1(EPOLL_CLOEXEC);
	struct rdma_cm_id *other;
	struct rdma_cm_event *e;

	MUST(to && set >= 0);
	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL) && link_accept(l, NULL));
	MUST(take(l->ch[0], l->id[0], RDMA_CM_EVENT_ESTABLISHED));
	MUST(readable(l->ch[1]->fd, WAIT_MS));
	MUST(!epoll_ctl(set, EPOLL_CTL_ADD, l->ch[1]->fd, &event) && edge(set));
	/* ESTABLISHED, another id's request, DISCONNECTED */
	MUST(other = resolved(l->ch[0], RDMA_PS_TCP,
			      own(family, ntohs(rdma_get_src_port(l->listen)))));
	MUST(!create_qp(other) && !rdma_connect(other, NULL) && edge(set));
	MUST(!rdma_disconnect(l->id[0]) && edge(set));
	MUST_EQ(rdma_migrate_id(l->id[1], to), 0);
	MUST(take(to, l->id[1], RDMA_CM_EVENT_ESTABLISHED));
	MUST(take(to, l->id[1], RDMA_CM_EVENT_DISCONNECTED));
	MUST((e = next_event(l->ch[1])) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	MUST(no_event(l->ch[1]));
	/* destroy the request's id before acknowledging its event, which is the listener's */
	MUST_EQ(rdma_destroy_id(e->id), 0);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(take_status(l->ch[0], other, RDMA_CM_EVENT_REJECTED, CONSUMER_REJECT));
	MUST_EQ(rdma_disconnect(l->id[1]), 0);
	MUST(take(to, l->id[1], RDMA_CM_EVENT_TIMEWAIT_EXIT));
	rdma_destroy_qp(other);
	MUST_EQ(rdma_destroy_id(other), 0);
	MUST(link_drop(l, 1) && !close(set));
	rdma_destroy_event_channel(to);
	return true;
}
ON_LINK(several_events_move, several_events_move_body)

static void *get_event(void *channel)
{
	struct rdma_cm_event *e;

	return rdma_get_cm_event(channel, &e) ? NULL : e;
}

/* A thread that sleeps on the new channel gets an event that is moved there. */
static bool sleeper_of_the_new_channel_body(struct link *l, int family)
{
	struct rdma_event_channel *to = rdma_create_event_channel();
	pthread_t thread;
	void *got;

	MUST(to && link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL));
	MUST(link_accept(l, NULL) && take(l->ch[0], l->id[0], RDMA_CM_EVENT_ESTABLISHED));
	MUST(readable(l->ch[1]->fd, WAIT_MS));
	MUST_EQ(pthread_create(&thread, NULL, get_event, to), 0);
	usleep(20000);
	MUST_EQ(rdma_migrate_id(l->id[1], to), 0);
	MUST_EQ(pthread_join(thread, &got), 0);
	MUST(got && ((struct rdma_cm_event *)got)->event == RDMA_CM_EVENT_ESTABLISHED);
	MUST(((struct rdma_cm_event *)got)->id == l->id[1]);
	MUST_EQ(rdma_ack_cm_event(got), 0);
	MUST(link_drop(l, 1));
	rdma_destroy_event_channel(to);
	return true;
}
ON_LINK(sleeper_of_the_new_channel, sleeper_of_the_new_channel_body)

/* "Destruction of an rdma_cm_id will block until related events": not for events of other ids. */
static bool orders_body(struct link *l, int family)
{
	struct rdma_cm_event *e[2];
	struct rdma_cm_id *held;
	uint16_t port;

	MUST(link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL) && link_accept(l, NULL));
	port = ntohs(rdma_get_src_port(l->listen));
	/* destroy the active end before the passive end's ESTABLISHED is acknowledged */
	MUST(take(l->ch[0], l->id[0], RDMA_CM_EVENT_ESTABLISHED));
	MUST((e[0] = next_event(l->ch[1])) && e[0]->event == RDMA_CM_EVENT_ESTABLISHED);
	MUST(link_drop(l, 0));
	MUST((e[1] = next_event(l->ch[1])) && e[1]->event == RDMA_CM_EVENT_DISCONNECTED);
	held = l->id[1];
	l->id[1] = NULL;
	MUST(held == e[0]->id && held == e[1]->id);
	/* destroy its QP before the acknowledgements, and both ends of another connection */
	rdma_destroy_qp(held);
	MUST(l->id[0] = resolved(l->ch[0], RDMA_PS_TCP, own(family, port)));
	MUST(!create_qp(l->id[0]) && link_request(l, NULL) && link_accept(l, NULL));
	MUST(link_established(l) && link_drop(l, 0));
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_DISCONNECTED) && link_drop(l, 1));
	/* and the listener, which has no unacknowledged event */
	MUST_EQ(rdma_destroy_id(l->listen), 0);
	l->listen = NULL;
	MUST(!rdma_ack_cm_event(e[0]) && !rdma_ack_cm_event(e[1]));
	MUST_EQ(rdma_destroy_id(held), 0);
	return true;
}
ON_LINK(orders_of_destruction, orders_body)

/* The library handles a synchronous id's events: destruction waits for no acknowledgement. */
static bool synchronous_id_goes_with_its_event(void)
{
	union address to = own(AF_INET, 7471);
	struct rdma_cm_id *id;

	for (int i = 0; i < 50; i++) {
		MUST_EQ(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
		MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
		MUST(id->event);
		if (i % 2)
			rdma_destroy_ep(id);
		else
			MUST_EQ(rdma_destroy_id(id), 0);
	}
	return true;
}

/* Threads with a channel each, to which an id moves in the middle of its use. */
#define THREADS 4
#define ROUNDS	20

static bool moves(struct link *l, int end)
{
	struct rdma_event_channel *to = rdma_create_event_channel();

	MUST(to);
	if (end == 1)
		MUST_EQ(rdma_migrate_id(l->listen, to), 0);
	if (l->id[end])
		MUST_EQ(rdma_migrate_id(l->id[end], to), 0);
	rdma_destroy_event_channel(l->ch[end]);
	l->ch[end] = to;
	return true;
}

static bool moving_body(struct link *l, int family)
{
	MUST(link_open(l, family, RDMA_PS_TCP) && moves(l, 0) && moves(l, 1));
	MUST(link_request(l, NULL));
	MUST(moves(l, 0) && link_accept(l, NULL));
	MUST(moves(l, 1) && moves(l, 0) && link_established(l));
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	MUST(moves(l, 1) && take(l->ch[1], l->id[1], RDMA_CM_EVENT_DISCONNECTED));
	MUST_EQ(rdma_disconnect(l->id[1]), 0);
	MUST(moves(l, 0) && take(l->ch[0], l->id[0], RDMA_CM_EVENT_DISCONNECTED));
	return true;
}

static void *moving(void *arg)
{
	bool good = true;

	for (int i = 0; i < ROUNDS && good; i++) {
		struct link l = { 0 };

		good = moving_body(&l, i % 2 ? AF_INET6 : AF_INET);
		good = link_close(&l) && good;
	}
	return good ? arg : NULL;
}

static bool threads_with_channels_of_their_own(void)
{
	pthread_t thread[THREADS];
	bool good = true;
	void *done;

	for (int i = 0; i < THREADS; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, moving, bytes), 0);
	for (int i = 0; i < THREADS; i++) {
		MUST_EQ(pthread_join(thread[i], &done), 0);
		good &= done != NULL;
	}
	return good;
}

/* ---- private data ---- */

/* Checks for n bytes of the pattern, followed by zeros up to `room`. */
static bool data_is(const struct rdma_conn_param *c, int n, int room)
{
	MUST_EQ(c->private_data_len, room);
	MUST(!memcmp(c->private_data, bytes, (size_t)n));
	for (int i = n; i < room; i++)
		MUST_EQ(((const uint8_t *)c->private_data)[i], 0);
	return true;
}

/* The next client sends a request with n bytes. */
static bool client_asks(struct link *l, int family, int n)
{
	struct rdma_conn_param param = some_param(bytes, (uint8_t)n);

	param.qp_num = fresh_qpn();
	MUST(l->id[0] = resolved(l->ch[0], RDMA_PS_TCP,
				 own(family, ntohs(rdma_get_src_port(l->listen)))));
	MUST(link_request(l, &param) && data_is(&l->request->param.conn, n, REQ_BYTES));
	MUST_EQ(rdma_ack_cm_event(l->request), 0);
	l->request = NULL;
	return true;
}

/* The client receives the REJ or REP of n bytes, and both ends are destroyed. */
static bool client_hears(struct link *l, enum rdma_cm_event_type type, int status, int n, int room)
{
	struct rdma_cm_event *e;

	MUST((e = next_event(l->ch[0])) && e->event == type && e->id == l->id[0]);
	MUST_EQ(e->status, status);
	MUST(data_is(&e->param.conn, n, room));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	return link_drop(l, 0) && link_drop(l, 1);
}

static bool each_length_body(struct link *l, int family)
{
	struct rdma_conn_param param = some_param(bytes, 0);

	for (int i = 0; i < 256; i++)
		bytes[i] = (uint8_t)(i * 7 + 3);
	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_TCP) && link_drop(l, 0));
	for (int n = 0; n <= REJ_BYTES; n++) {
		MUST(client_asks(l, family, n % (REQ_BYTES + 1)));
		if (n == REJ_BYTES)
			MUST_ERR(rdma_reject(l->id[1], bytes, REJ_BYTES + 1), EINVAL);
		MUST_EQ(rdma_reject(l->id[1], bytes, (uint8_t)n), 0);
		MUST(client_hears(l, RDMA_CM_EVENT_REJECTED, CONSUMER_REJECT, n, REJ_BYTES));
	}
	for (int n = 0; n <= REP_BYTES; n++) {
		MUST(client_asks(l, family, REQ_BYTES - n % (REQ_BYTES + 1)));
		param.private_data_len = (uint8_t)n;
		param.qp_num = fresh_qpn();
		MUST_EQ(rdma_accept(l->id[1], &param), 0);
		MUST(client_hears(l, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, n, REP_BYTES));
	}
	return true;
}
ON_LINK(each_length, each_length_body)

/* <rdma/rdma_cma.h>: "Called to reject a connection request with ECE rejected reason" */
static bool reject_ece_body(struct link *l, int family)
{
	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_TCP) && link_drop(l, 0));
	MUST_ERR(rdma_reject_ece(l->listen, NULL, 0), EINVAL);
	for (int n = 0; n <= REJ_BYTES; n += REJ_BYTES / 4) {
		MUST(client_asks(l, family, 0));
		MUST_ERR(rdma_reject_ece(l->id[1], bytes, REJ_BYTES + 1), EINVAL);
		MUST_EQ(rdma_reject_ece(l->id[1], bytes, (uint8_t)n), 0);
		MUST_ERR(rdma_reject_ece(l->id[1], bytes, 0), EINVAL);
		MUST_ERR(rdma_reject(l->id[1], bytes, 0), EINVAL);
		MUST(client_hears(l, RDMA_CM_EVENT_REJECTED, ECE_REJECT, n, REJ_BYTES));
	}
	return true;
}
ON_LINK(reject_ece, reject_ece_body)

/* ---- half open ---- */

/* The last step of a client before it stays silent for ever. */
enum step { REQUEST_LEFT, REQUEST_TAKEN, RESPONSE_LEFT, RESPONSE_TAKEN, STEPS };
#define SILENT_PEERS 40

struct silent {
	struct rdma_cm_id *id[2];
};

/* Connects a client, whose id is resolved, up to the given step. */
static bool silent_begins(struct silent *s, struct link *l, enum step step)
{
	struct rdma_conn_param param = some_param(NULL, 0);

	param.qp_num = fresh_qpn();
	MUST_EQ(rdma_connect(s->id[0], &param), 0);
	if (step == REQUEST_LEFT)
		return true;
	MUST((l->request = next_event(l->ch[1])) &&
	     l->request->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	s->id[1] = l->request->id;
	MUST_EQ(rdma_ack_cm_event(l->request), 0);
	l->request = NULL;
	if (step == REQUEST_TAKEN)
		return true;
	param.qp_num = fresh_qpn();
	MUST_EQ(rdma_accept(s->id[1], &param), 0);
	if (step == RESPONSE_TAKEN)
		MUST(take(l->ch[0], s->id[0], RDMA_CM_EVENT_CONNECT_RESPONSE));
	return true;
}

/* Checks the results of rdma_notify() and rdma_disconnect() for a half-open id. */
static bool silent_calls(struct silent *s, struct link *l, enum step step)
{
	MUST_ERR(rdma_notify(s->id[0], IBV_EVENT_COMM_EST), EINVAL);
	if (step == REQUEST_TAKEN)
		MUST_ERR(rdma_notify(s->id[1], IBV_EVENT_COMM_EST), EINVAL);
	if (step != RESPONSE_TAKEN)
		return true;
	MUST_EQ(rdma_notify(s->id[1], IBV_EVENT_COMM_EST), 0);
	MUST(take(l->ch[1], s->id[1], RDMA_CM_EVENT_ESTABLISHED));
	MUST_ERR(rdma_notify(s->id[1], IBV_EVENT_COMM_EST), EISCONN);
	MUST_EQ(rdma_disconnect(s->id[1]), 0);
	MUST_EQ(rdma_disconnect(s->id[1]), 0);
	MUST_ERR(rdma_notify(s->id[1], IBV_EVENT_COMM_EST), EINVAL);
	MUST(take(l->ch[0], s->id[0], RDMA_CM_EVENT_DISCONNECTED));
	MUST_ERR(rdma_establish(s->id[0]), EINVAL);
	MUST_EQ(rdma_disconnect(s->id[0]), 0);
	MUST(take(l->ch[1], s->id[1], RDMA_CM_EVENT_DISCONNECTED));
	return true;
}

/* Another client connects to the same listener and exchanges data. */
static bool others_connect(struct link *l, int family)
{
	static char buf[8];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	MUST(l->id[0] = resolved(l->ch[0], RDMA_PS_TCP,
				 own(family, ntohs(rdma_get_src_port(l->listen)))));
	MUST(!create_qp(l->id[0]) && link_request(l, NULL));
	MUST_EQ(create_qp(l->id[1]), 0);
	MUST(mr = rdma_reg_msgs(l->id[1], buf, sizeof(buf)));
	MUST_EQ(rdma_post_recv(l->id[1], buf, buf, sizeof(buf), mr), 0);
	l->own_qp = true;
	MUST(link_accept(l, NULL) && link_established(l));
	MUST_EQ(rdma_post_send(l->id[0], NULL, "7", 1, NULL, IBV_SEND_INLINE), 0);
	MUST(wait_wc(l->id[1]->recv_cq, &wc) && wc.status == IBV_WC_SUCCESS && buf[0] == '7');
	MUST_EQ(rdma_dereg_mr(mr), 0);
	return true;
}

/* The channels are not drained: other cases use new ones. */
static bool silent_step(struct rdma_event_channel *ch[4], int family, enum step step)
{
	struct silent s[SILENT_PEERS] = { 0 };
	struct link at = { .ch = { ch[0], ch[1] } }, other = { .ch = { ch[2], ch[1] } };
	struct rdma_cm_event *e;

	MUST(at.listen = listener(ch[1], RDMA_PS_TCP, own(family, 0), SILENT_PEERS));
	other.listen = at.listen;
	if (step == REQUEST_LEFT) {
		other.ch[1] = ch[3];
		MUST(other.listen = listener(ch[3], RDMA_PS_TCP, own(family, 0), 4));
	}
	for (int i = 0; i < SILENT_PEERS; i++)
		MUST(s[i].id[0] = resolved(ch[0], RDMA_PS_TCP,
					   own(family, ntohs(rdma_get_src_port(at.listen)))));
	for (int i = 0; i < SILENT_PEERS; i++)
		MUST(silent_begins(&s[i], &at, step));
	MUST(others_connect(&other, family) && link_drop(&other, 0));
	MUST(take(other.ch[1], other.id[1], RDMA_CM_EVENT_DISCONNECTED) && link_drop(&other, 1));
	if (step == REQUEST_LEFT)
		MUST_EQ(rdma_destroy_id(other.listen), 0);
	/* some send a message now; the others disappear silently */
	for (int i = 0; (step == REQUEST_TAKEN || step == RESPONSE_TAKEN) && i < SILENT_PEERS;
	     i += 2)
		MUST(silent_calls(&s[i], &at, step));
	for (int i = 0; step == REQUEST_LEFT && i < SILENT_PEERS; i++) {
		MUST((e = next_event(ch[1])) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
		MUST(!rdma_destroy_id(e->id) && !rdma_ack_cm_event(e));
	}
	for (int i = 0; i < SILENT_PEERS; i++) {
		MUST_EQ(rdma_destroy_id(s[i].id[0]), 0);
		MUST(!s[i].id[1] || !rdma_destroy_id(s[i].id[1]));
	}
	MUST_EQ(rdma_destroy_id(at.listen), 0);
	return true;
}

static bool silent_peers(int family)
{
	struct rdma_event_channel *ch[4];
	int before = 0;

	for (int i = 0; i < 4; i++)
		MUST(ch[i] = rdma_create_event_channel());
	for (int round = 0; round < 2; round++) {
		for (int step = 0; step < STEPS; step++) {
			if (silent_step(ch, family, step))
				continue;
			printf("# at step %d\n", step);
			return false;
		}
		if (round == 0)
			before = open_fds();
	}
	for (int i = 0; i < 4; i++) {
		MUST(no_event(ch[i]));
		rdma_destroy_event_channel(ch[i]);
	}
	MUST_EQ(open_fds(), before - 4);
	return true;
}
BOTH(silent_peers)

/* Peers of an rsocket stay silent after their request: another peer is still accepted. */
static bool silent_streams(int family)
{
	static const uint8_t hello[40] = { [0] = 1, [3] = 16, [23] = 2, [38] = 4 };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	const socklen_t len =
		family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	struct rdma_conn_param param = some_param(hello, sizeof(hello));
	struct rdma_cm_id *silent[8];
	int listen, client, taken = 0, server[9];
	bool sent = false, heard = false;
	union address at = own(family, 0);
	socklen_t n = sizeof(at);
	struct pollfd p[11];
	char byte = 0;

	MUST(ch && (listen = rsocket(family, SOCK_STREAM, 0)) >= 0);
	MUST(!rbind(listen, &at.sa, len) && !rlisten(listen, 16));
	MUST_EQ(rgetsockname(listen, &at.sa, &n), 0);
	for (int i = 0; i < 8; i++)
		MUST(silent[i] = resolved(ch, RDMA_PS_TCP, at));
	for (int i = 0; i < 8; i++) {
		param.qp_num = fresh_qpn();
		MUST_EQ(rdma_connect(silent[i], &param), 0);
	}
	MUST((client = rsocket(family, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
	MUST(!rconnect(client, &at.sa, len) || errno == EINPROGRESS);
	/* silent peers may be accepted or not; the peer that sends must be */
	while (!heard) {
		p[0] = (struct pollfd){ .fd = taken < 9 ? listen : -1, .events = POLLIN };
		p[1] = (struct pollfd){ .fd = sent ? -1 : client, .events = POLLOUT };
		for (int i = 0; i < taken; i++)
			p[2 + i] = (struct pollfd){ .fd = server[i], .events = POLLIN };
		MUST(rpoll(p, (nfds_t)(2 + taken), WAIT_MS) >= 1);
		for (int i = 0; i < taken; i++)
			heard |= p[2 + i].revents & POLLIN && rrecv(server[i], &byte, 1, 0) == 1;
		if (p[0].revents)
			MUST((server[taken++] = raccept(listen, NULL, NULL)) >= 0);
		if (p[1].revents)
			MUST(sent = rsend(client, "7", 1, 0) == 1);
	}
	MUST_EQ(byte, '7');
	for (int i = 0; i < 8; i++)
		MUST_EQ(rdma_destroy_id(silent[i]), 0);
	MUST_EQ(rclose(client), 0);
	for (int i = 0; i < taken; i++)
		MUST(!rclose(server[i]) || errno == ECONNRESET || errno == ETIMEDOUT);
	MUST_EQ(rclose(listen), 0);
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(silent_streams)

const struct test_case man_cases[] = {
	CASE(several_events_move_v4),
	CASE(several_events_move_v6),
	CASE(sleeper_of_the_new_channel_v4),
	CASE(sleeper_of_the_new_channel_v6),
	CASE(orders_of_destruction_v4),
	CASE(orders_of_destruction_v6),
	CASE(synchronous_id_goes_with_its_event),
	CASE(threads_with_channels_of_their_own),
	CASE(each_length_v4),
	CASE(each_length_v6),
	CASE(reject_ece_v4),
	CASE(reject_ece_v6),
	CASE(silent_peers_v4),
	CASE(silent_peers_v6),
	CASE(silent_streams_v4),
	CASE(silent_streams_v6),
	{ 0 },
};
