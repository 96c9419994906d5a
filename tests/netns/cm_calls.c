/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * librdmacm's events and calls, with both ends of each connection in this process: what an event
 * carries, in which order they come, and what a call refuses. cm_calls ADDRESS CASE
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cm.h"
#include "lib/ctl.h"

#define PORT 7471

static const char *address;

struct ends {
	struct rdma_event_channel *a, *b; /* active, passive */
	struct rdma_cm_id *listener, *active, *passive;
};

static void ends_ask(struct ends *e, const struct rdma_conn_param *param)
{
	struct rdma_conn_param p = *param;

	e->a = cm_channel();
	e->b = cm_channel();
	e->listener = cm_listener(e->b, address, PORT, RDMA_PS_TCP, 0);
	e->active = cm_resolved(e->a, address, PORT, RDMA_PS_TCP);
	cm_make_qp(e->active);
	must(!rdma_connect(e->active, &p), "rdma_connect: %s", strerror(errno));
}

static void ends_connect(struct ends *e)
{
	const struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_conn_param p = param;

	ends_ask(e, &param);
	e->passive = cm_pass(e->b, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_make_qp(e->passive);
	must(!rdma_accept(e->passive, &p), "rdma_accept: %s", strerror(errno));
	cm_pass(e->a, RDMA_CM_EVENT_ESTABLISHED);
	cm_pass(e->b, RDMA_CM_EVENT_ESTABLISHED);
}

static void ends_destroy(struct ends *e)
{
	cm_destroy_id(e->active);
	if (e->passive)
		cm_destroy_id(e->passive);
	cm_destroy_id(e->listener);
	rdma_destroy_event_channel(e->a);
	rdma_destroy_event_channel(e->b);
}

static int is_readable(struct rdma_event_channel *ch)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void must_be_padded(const struct rdma_conn_param *p, const char *data, unsigned int len)
{
	const unsigned char *bytes = p->private_data;

	must(p->private_data_len == len, "%u bytes of private data", p->private_data_len);
	must(!memcmp(bytes, data, strlen(data)), "other private data");
	for (unsigned int i = (unsigned int)strlen(data); i < len; i++)
		must(!bytes[i], "byte %u of the padding is %02x", i, bytes[i]);
}

/* ---- what events carry ---- */

static void fields(void)
{
	const struct rdma_conn_param param = { .private_data = "question",
					       .private_data_len = 8,
					       .responder_resources = 3,
					       .initiator_depth = 5,
					       .flow_control = 1,
					       .retry_count = 6,
					       .rnr_retry_count = 4 };
	struct rdma_conn_param answer = { .private_data = "answer",
					  .private_data_len = 6,
					  .responder_resources = 4,
					  .initiator_depth = 2,
					  .rnr_retry_count = 5 };
	struct rdma_cm_event *ev;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ends e;

	ends_ask(&e, &param);
	ev = cm_expect(e.b, CONNECT_REQUEST);
	must(ev->listen_id == e.listener && ev->id != e.listener, "ids of the request");
	must_be_padded(&ev->param.conn, "question", 56);
	must(ev->param.conn.responder_resources == 5 && ev->param.conn.initiator_depth == 3,
	     "depths %u %u", ev->param.conn.responder_resources, ev->param.conn.initiator_depth);
	must(ev->param.conn.flow_control == 1 && ev->param.conn.retry_count == 6 &&
		     ev->param.conn.rnr_retry_count == 4 && !ev->param.conn.srq &&
		     ev->param.conn.qp_num == e.active->qp->qp_num,
	     "fields of the request");
	e.passive = ev->id;
	must(e.passive->verbs && e.passive->pd && e.passive->port_num == 1 &&
		     e.passive->route.num_paths == 1,
	     "the new id's device and path");
	must(rdma_get_src_port(e.passive) == htons(PORT) &&
		     rdma_get_dst_port(e.passive) == rdma_get_src_port(e.active),
	     "the new id's ports");
	rdma_ack_cm_event(ev);
	cm_make_qp(e.passive);
	must(!rdma_accept(e.passive, &answer), "rdma_accept: %s", strerror(errno));
	ev = cm_expect(e.a, ESTABLISHED);
	must_be_padded(&ev->param.conn, "answer", 196);
	must(ev->param.conn.responder_resources == 2 && ev->param.conn.initiator_depth == 4 &&
		     ev->param.conn.rnr_retry_count == 5 && !ev->param.conn.retry_count &&
		     ev->param.conn.qp_num == e.passive->qp->qp_num,
	     "fields of the reply");
	rdma_ack_cm_event(ev);
	ev = cm_expect(e.b, ESTABLISHED);
	must(ev->id == e.passive && !ev->param.conn.private_data_len, "the RTU's event");
	rdma_ack_cm_event(ev);
	must(!ibv_query_qp(e.active->qp, &attr, -1, &init) && attr.qp_state == IBV_QPS_RTS &&
		     attr.max_rd_atomic == 4 && attr.max_dest_rd_atomic == 2 &&
		     attr.retry_cnt == 6 && attr.rnr_retry == 5,
	     "the active QP");
	must(!ibv_query_qp(e.passive->qp, &attr, -1, &init) && attr.qp_state == IBV_QPS_RTS &&
		     attr.max_rd_atomic == 2 && attr.max_dest_rd_atomic == 4 &&
		     attr.retry_cnt == 6 && attr.rnr_retry == 4,
	     "the passive QP");
	ends_destroy(&e);
}

static void rejected(void)
{
	const struct rdma_conn_param param = { 0 };
	struct rdma_cm_event *ev;
	struct ends e = { 0 };
	struct rdma_cm_id *id;

	ends_ask(&e, &param);
	id = cm_pass(e.b, RDMA_CM_EVENT_CONNECT_REQUEST);
	must(!rdma_reject(id, "no", 2), "rdma_reject: %s", strerror(errno));
	ev = cm_expect_status(e.a, RDMA_CM_EVENT_REJECTED, 28);
	must_be_padded(&ev->param.conn, "no", 148);
	rdma_ack_cm_event(ev);
	must(e.active->qp->state == IBV_QPS_ERR, "the QP is in state %d", e.active->qp->state);
	must(rdma_reject(id, NULL, 0) && errno == EINVAL, "rejected twice");
	cm_destroy_id(id);
	ends_destroy(&e);
}

static void nobody_listens(void)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_resolved(ch, address, PORT + 1, RDMA_PS_TCP);
	struct rdma_conn_param param = { 0 };

	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	rdma_ack_cm_event(cm_expect_status(ch, RDMA_CM_EVENT_REJECTED, 8));
	must(rdma_connect(id, &param) && errno == EINVAL, "connected again");
	cm_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* More at once than a peer has address handles, each with its own flow label. */
static void many_at_once(void)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_id *ids[600];
	const unsigned int n = sizeof(ids) / sizeof(ids[0]);

	for (unsigned int i = 0; i < n; i++)
		ids[i] = cm_resolved(ch, address, PORT + 1, RDMA_PS_TCP);
	for (unsigned int i = 0; i < n; i++)
		must(!rdma_connect(ids[i], &param), "rdma_connect: %s", strerror(errno));
	/* each first REQ was answered: a repetition comes after more than 4 s */
	for (unsigned int i = 0; i < n; i++)
		rdma_ack_cm_event(cm_expect_status(ch, RDMA_CM_EVENT_REJECTED, 8));
	for (unsigned int i = 0; i < n; i++)
		cm_destroy_id(ids[i]);
	rdma_destroy_event_channel(ch);
}

static void disconnected(void)
{
	struct ends e;

	ends_connect(&e);
	must(!rdma_disconnect(e.active), "rdma_disconnect: %s", strerror(errno));
	cm_pass(e.b, RDMA_CM_EVENT_DISCONNECTED);
	must(!rdma_disconnect(e.passive), "rdma_disconnect: %s", strerror(errno));
	cm_pass(e.a, RDMA_CM_EVENT_DISCONNECTED);
	must(e.active->qp->state == IBV_QPS_ERR && e.passive->qp->state == IBV_QPS_ERR, "states");
	must(cm_pass(e.a, RDMA_CM_EVENT_TIMEWAIT_EXIT) == e.active, "whose time-wait");
	must(cm_pass(e.b, RDMA_CM_EVENT_TIMEWAIT_EXIT) == e.passive, "whose time-wait");
	must(!rdma_disconnect(e.active), "disconnected twice: %s", strerror(errno));
	ends_destroy(&e);
}

static void without_qp(void)
{
	struct rdma_conn_param param = { .qp_num = 0x1234, .srq = 1, .responder_resources = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct rdma_event_channel *a = cm_channel(), *b = cm_channel();
	struct rdma_cm_id *listener = cm_listener(b, address, PORT, RDMA_PS_TCP, 0);
	struct rdma_cm_id *id = cm_resolved(a, address, PORT, RDMA_PS_TCP), *passive;
	struct rdma_cm_event *ev;
	int mask;

	must(rdma_init_qp_attr(id, &attr, &mask) && errno == EINVAL, "RTR of an idle id");
	rdma_destroy_qp(id); /* nothing; qperf does that */
	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	ev = cm_expect(b, CONNECT_REQUEST);
	must(ev->param.conn.qp_num == 0x1234 && ev->param.conn.srq == 1, "fields of the request");
	passive = ev->id;
	rdma_ack_cm_event(ev);
	param.qp_num = 0x4321;
	must(!rdma_accept(passive, &param), "rdma_accept: %s", strerror(errno));
	ev = cm_expect(a, CONNECT_RESPONSE);
	must(ev->param.conn.qp_num == 0x4321, "fields of the response");
	rdma_ack_cm_event(ev);
	must(!rdma_init_qp_attr(id, &attr, &mask), "rdma_init_qp_attr: %s", strerror(errno));
	must(attr.dest_qp_num == 0x4321 &&
		     mask == (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	     "attributes of RTR: %x", mask);
	must(!is_readable(b), "established before rdma_establish()");
	must(!rdma_establish(id), "rdma_establish: %s", strerror(errno));
	cm_pass(b, RDMA_CM_EVENT_ESTABLISHED);
	cm_destroy_id(id);
	cm_pass(b, RDMA_CM_EVENT_DISCONNECTED);
	cm_destroy_id(passive);
	cm_destroy_id(listener);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(b);
}

static void datagrams(void)
{
	struct rdma_conn_param param = { .private_data = "who",
					 .private_data_len = 3,
					 .qp_num = 9 };
	struct rdma_event_channel *a = cm_channel(), *b = cm_channel();
	struct rdma_cm_id *listener = cm_listener(b, address, PORT, RDMA_PS_UDP, 0);
	struct rdma_cm_id *id = cm_resolved(a, address, PORT, RDMA_PS_UDP), *passive;
	struct rdma_cm_event *ev;

	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	ev = cm_expect(b, CONNECT_REQUEST);
	must(ev->param.ud.private_data_len == 180 && !memcmp(ev->param.ud.private_data, "who", 4),
	     "data of the request: %u", ev->param.ud.private_data_len);
	passive = ev->id;
	rdma_ack_cm_event(ev);
	cm_make_qp(passive);
	must(!rdma_accept(passive, &param), "rdma_accept: %s", strerror(errno));
	ev = cm_expect(a, ESTABLISHED);
	must(ev->param.ud.qp_num == passive->qp->qp_num && ev->param.ud.qkey == RDMA_UDP_QKEY &&
		     ev->param.ud.private_data_len == 136 && ev->param.ud.ah_attr.is_global &&
		     ev->param.ud.ah_attr.port_num == 1,
	     "fields of the answer");
	rdma_ack_cm_event(ev);
	cm_destroy_id(passive);
	cm_destroy_id(id);
	id = cm_resolved(a, address, PORT, RDMA_PS_UDP);
	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	passive = cm_pass(b, RDMA_CM_EVENT_CONNECT_REQUEST);
	must(!rdma_reject(passive, NULL, 0), "rdma_reject: %s", strerror(errno));
	rdma_ack_cm_event(cm_expect_status(a, RDMA_CM_EVENT_UNREACHABLE, 2));
	cm_destroy_id(passive);
	cm_destroy_id(id);
	cm_destroy_id(listener);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(b);
}

/* ---- channels and ends ---- */

static void channels(void)
{
	struct rdma_event_channel *a = cm_channel(), *other = cm_channel();
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	fcntl(a->fd, F_SETFL, O_NONBLOCK);
	must(rdma_get_cm_event(a, &ev) && errno == EAGAIN, "an event of nothing");
	must(!rdma_create_id(a, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!is_readable(a), "readable without an event");
	must(!rdma_resolve_addr(id, NULL, cm_address(address, PORT), WAIT_MS), "rdma_resolve_addr");
	ev = cm_expect(a, ADDR_RESOLVED);
	must(!is_readable(a), "readable after its event was taken");
	rdma_ack_cm_event(ev);
	/* waiting requests move along */
	must(!rdma_resolve_route(id, WAIT_MS), "rdma_resolve_route");
	must(!rdma_migrate_id(id, other), "rdma_migrate_id: %s", strerror(errno));
	must(!is_readable(a) && id->channel == other, "the event did not go along");
	cm_pass(other, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cm_destroy_id(id);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(other);
}

struct late {
	struct rdma_cm_event *ev;
	volatile int acked;
};

static void *late_ack(void *arg)
{
	struct late *late = arg;

	usleep(50000);
	late->acked = 1;
	rdma_ack_cm_event(late->ev);
	return NULL;
}

static void destroy_waits(void)
{
	struct rdma_event_channel *a = cm_channel();
	struct late late = { 0 };
	struct rdma_cm_id *id;
	pthread_t thread;

	must(!rdma_create_id(a, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_resolve_addr(id, NULL, cm_address(address, PORT), WAIT_MS), "rdma_resolve_addr");
	late.ev = cm_expect(a, ADDR_RESOLVED);
	pthread_create(&thread, NULL, late_ack, &late);
	cm_destroy_id(id);
	must(late.acked, "destroyed before its event was acknowledged");
	pthread_join(thread, NULL);
	rdma_destroy_event_channel(a);
}

/* The listener is destroyed while requests wait: their senders are rejected. */
static void listener_goes(void)
{
	struct rdma_conn_param param = { 0 };
	struct rdma_event_channel *a = cm_channel(), *b = cm_channel();
	struct rdma_cm_id *listener = cm_listener(b, address, PORT, RDMA_PS_TCP, 0), *ids[20];
	const unsigned int n = sizeof(ids) / sizeof(ids[0]);

	for (unsigned int i = 0; i < n; i++) {
		ids[i] = cm_resolved(a, address, PORT, RDMA_PS_TCP);
		param.qp_num = i + 1;
		must(!rdma_connect(ids[i], &param), "rdma_connect");
	}
	rdma_ack_cm_event(cm_expect(b, CONNECT_REQUEST));
	cm_destroy_id(listener);
	must(!is_readable(b), "an event of a listener that is gone");
	/* the accepted one is the program's, all others are rejected */
	for (unsigned int i = 0; i + 1 < n; i++) {
		struct pollfd p = { .fd = a->fd, .events = POLLIN };
		struct rdma_cm_event *ev;

		must(poll(&p, 1, WAIT_MS) == 1 && !rdma_get_cm_event(a, &ev), "no REJ");
		must(ev->event == RDMA_CM_EVENT_REJECTED && (ev->status == 28 || ev->status == 8),
		     "%s with %d", rdma_event_str(ev->event), ev->status);
		rdma_ack_cm_event(ev);
	}
	for (unsigned int i = 0; i < n; i++)
		cm_destroy_id(ids[i]);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(b);
}

/* ---- a process that ends without a word: both are cases, in two processes ---- */

static void leaves(void)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_resolved(ch, address, PORT, RDMA_PS_TCP);
	struct rdma_conn_param param = { 0 };

	cm_make_qp(id);
	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_ESTABLISHED);
}

static void is_left(void)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *listener = cm_listener(ch, address, PORT, RDMA_PS_TCP, 0), *id;
	struct rdma_conn_param param = { 0 };

	printf("listening\n");
	fflush(stdout);
	id = cm_pass(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_make_qp(id);
	must(!rdma_accept(id, &param), "rdma_accept: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_ESTABLISHED);
	cm_pass(ch, RDMA_CM_EVENT_DISCONNECTED);
	cm_destroy_id(id);
	cm_destroy_id(listener);
	rdma_destroy_event_channel(ch);
}

/* A process that rejects and exits at once, without exit(3): the peer gets its reject. */
static void refuses(void)
{
	struct rdma_event_channel *ch = cm_channel();

	cm_listener(ch, address, PORT, RDMA_PS_TCP, 0);
	printf("listening\n");
	fflush(stdout);
	must(!rdma_reject(cm_pass(ch, RDMA_CM_EVENT_CONNECT_REQUEST), "no", 3), "rdma_reject: %s",
	     strerror(errno));
	_exit(0);
}

static void is_refused(void)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_resolved(ch, address, PORT, RDMA_PS_TCP);
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_event *ev;

	cm_make_qp(id);
	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	ev = cm_expect_status(ch, RDMA_CM_EVENT_REJECTED, 28);
	must(!strcmp(ev->param.conn.private_data, "no"), "another word");
	rdma_ack_cm_event(ev);
	cm_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* ---- synchronous ids ---- */

static void *sync_server(void *arg)
{
	struct rdma_cm_id *listener = arg, *id;

	must(!rdma_get_request(listener, &id), "rdma_get_request: %s", strerror(errno));
	cm_make_qp(id);
	must(!rdma_accept(id, NULL), "rdma_accept: %s", strerror(errno));
	must(!rdma_disconnect(id), "rdma_disconnect: %s", strerror(errno));
	cm_destroy_id(id);
	return NULL;
}

static void synchronous(void)
{
	struct rdma_cm_id *listener = cm_listener(NULL, address, PORT, RDMA_PS_TCP, 0), *id;
	pthread_t thread;

	must(rdma_migrate_id(listener, NULL) && errno == EINVAL, "migrated to nothing");
	pthread_create(&thread, NULL, sync_server, listener);
	must(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_resolve_addr(id, NULL, cm_address(address, PORT), WAIT_MS), "rdma_resolve_addr");
	must(!rdma_resolve_route(id, WAIT_MS), "rdma_resolve_route");
	cm_make_qp(id);
	must(!rdma_connect(id, NULL), "rdma_connect: %s", strerror(errno));
	must(!rdma_disconnect(id), "rdma_disconnect: %s", strerror(errno));
	pthread_join(thread, NULL);
	cm_destroy_id(id);
	must(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_resolve_addr(id, NULL, cm_address(address, PORT + 1), WAIT_MS), "resolve");
	must(!rdma_resolve_route(id, WAIT_MS), "rdma_resolve_route");
	cm_make_qp(id);
	must(rdma_connect(id, NULL) && errno == ECONNREFUSED, "nobody listens: %d", errno);
	cm_destroy_id(id);
	cm_destroy_id(listener);
}

/* ---- fork ---- */

static int forked_child(struct ends *e)
{
	struct rdma_cm_event *ev;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	must(rdma_get_cm_event(e->a, &ev) && errno == EIO, "an event of the parent's channel");
	must(rdma_connect(e->active, NULL) && errno == EIO, "connected the parent's id");
	must(rdma_disconnect(e->active) && errno == EIO, "disconnected the parent's id");
	must(rdma_init_qp_attr(e->active, &attr, &mask) && errno == EIO, "attributes");
	ends_destroy(e);
	rdma_destroy_event_channel(cm_channel());
	return 0;
}

static void forked(void)
{
	struct ends e;
	int status;
	pid_t pid;

	ends_connect(&e);
	pid = fork();
	if (!pid)
		_exit(forked_child(&e));
	must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
	     "the child failed");
	must(!is_readable(e.a) && !is_readable(e.b), "the child reached the parent's connection");
	must(!rdma_disconnect(e.passive), "rdma_disconnect: %s", strerror(errno));
	cm_pass(e.a, RDMA_CM_EVENT_DISCONNECTED);
	ends_destroy(&e);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} cases[] = {
		{ "fields", fields },		    { "rejected", rejected },
		{ "nobody_listens", nobody_listens }, { "disconnected", disconnected },
		{ "many_at_once", many_at_once },
		{ "without_qp", without_qp },	    { "datagrams", datagrams },
		{ "channels", channels },	    { "destroy_waits", destroy_waits },
		{ "listener_goes", listener_goes }, { "synchronous", synchronous },
		{ "forked", forked },
		{ "leaves", leaves },		    { "is_left", is_left },
		{ "refuses", refuses },		    { "is_refused", is_refused },
	};

	must(argc == 3, "usage: cm_calls ADDRESS CASE");
	address = argv[1];
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[2])) {
			cases[i].fn();
			return 0;
		}
	die("no case %s", argv[2]);
}
