/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Two processes: the view of the other's connects, ends and sudden death; ports between them;
 * rdma_cm in a child that was forked before the library was used, and after it.
 */
#define _GNU_SOURCE /* _Fork() */
#include <signal.h>
#include <sys/wait.h>

#include "man.h"

/* The other process: it reports its steps, and gets permission to continue, a byte each. */
struct peer {
	pid_t pid;
	int to, from;
};

static bool peer_start(struct peer *p, bool (*run)(int in, int out, int family), int family)
{
	int a[2], b[2];

	MUST(!pipe(a) && !pipe(b));
	p->pid = fork();
	MUST(p->pid >= 0);
	if (!p->pid) {
		close(a[1]);
		close(b[0]);
		_exit(run(a[0], b[1], family) ? 0 : 1);
	}
	close(a[0]);
	close(b[1]);
	p->to = a[1];
	p->from = b[0];
	return true;
}

static bool hear(int fd, uint16_t *what)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	MUST(poll(&p, 1, 3 * WAIT_MS) == 1);
	MUST_EQ(read(fd, what, sizeof(*what)), sizeof(*what));
	return true;
}

static bool say(int fd, uint16_t what)
{
	return write(fd, &what, sizeof(what)) == sizeof(what);
}

static bool peer_end(struct peer *p, bool killed)
{
	int status;

	if (killed)
		MUST_EQ(kill(p->pid, SIGKILL), 0);
	close(p->to);
	MUST_EQ(waitpid(p->pid, &status, 0), p->pid);
	close(p->from);
	MUST(killed ? WIFSIGNALED(status) : WIFEXITED(status));
	if (!killed)
		MUST_EQ(WEXITSTATUS(status), 0);
	return true;
}

/* A server: tells its port, accepts one connection, and waits for the peer's disconnect. */
static bool serve(int in, int out, int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listen, *id;
	struct rdma_cm_event *e;

	MUST(ch && (listen = listener(ch, RDMA_PS_TCP, own(family, 0), 4)));
	MUST(say(out, ntohs(rdma_get_src_port(listen))));
	MUST((e = next_event(ch)) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	id = e->id;
	MUST_EQ(create_qp(id), 0);
	MUST_EQ(rdma_accept(id, NULL), 0);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ESTABLISHED));
	MUST(say(out, 1));
	MUST(take(ch, id, RDMA_CM_EVENT_DISCONNECTED));
	MUST_EQ(rdma_disconnect(id), 0);
	MUST(say(out, 2));
	rdma_destroy_qp(id);
	MUST(!rdma_destroy_id(id) && !rdma_destroy_id(listen));
	rdma_destroy_event_channel(ch);
	return true;
}

/*
 * The peer was killed. The kernel disconnects for it; a library cannot, so an end that hears
 * nothing learns it when it sends.
 */
static bool notices(struct rdma_cm_id *id)
{
	static char buf[8];
	struct ibv_mr *mr = rdma_reg_msgs(id, buf, 8);
	struct ibv_wc wc;

	MUST(mr);
	MUST_EQ(rdma_post_send(id, NULL, buf, 8, mr, IBV_SEND_SIGNALED), 0);
	MUST(wait_wc(id->send_cq, &wc));
	MUST(wc.status != IBV_WC_SUCCESS);
	MUST_EQ(rdma_dereg_mr(mr), 0);
	return true;
}

/* Where the kernel disconnects for it, the event comes; nothing else does. */
static bool no_other_event(struct rdma_event_channel *ch, struct rdma_cm_id *id)
{
	return !readable(ch->fd, 0) || take(ch, id, RDMA_CM_EVENT_DISCONNECTED);
}

static bool client_connects(struct rdma_event_channel *ch, struct rdma_cm_id **id, int family,
			    uint16_t port)
{
	struct rdma_conn_param param = some_param(NULL, 0);

	MUST(*id = resolved(ch, RDMA_PS_TCP, own(family, port)));
	param.retry_count = 1;
	MUST_EQ(create_qp(*id), 0);
	MUST_EQ(rdma_connect(*id, &param), 0);
	return take(ch, *id, RDMA_CM_EVENT_ESTABLISHED);
}

static bool whole(int family)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct peer p;
	uint16_t port, said;

	MUST(peer_start(&p, serve, family) && hear(p.from, &port));
	MUST(ch = rdma_create_event_channel());
	MUST(client_connects(ch, &id, family, port));
	MUST(hear(p.from, &said) && said == 1);
	MUST_EQ(rdma_disconnect(id), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_DISCONNECTED));
	MUST(hear(p.from, &said) && said == 2);
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return peer_end(&p, false);
}
BOTH(whole)

/* The peer is killed while it is connected. */
static bool killed(int family)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id, *late;
	struct peer p;
	uint16_t port, said;

	MUST(peer_start(&p, serve, family) && hear(p.from, &port));
	MUST(ch = rdma_create_event_channel());
	MUST(client_connects(ch, &id, family, port));
	MUST(hear(p.from, &said) && said == 1);
	MUST(peer_end(&p, true));
	MUST(notices(id) && no_other_event(ch, id));
	/* its listener is gone as well */
	MUST(late = resolved(ch, RDMA_PS_TCP, own(family, port)));
	MUST_EQ(create_qp(late), 0);
	MUST_EQ(rdma_connect(late, NULL), 0);
	MUST(take_status(ch, late, RDMA_CM_EVENT_REJECTED, 8));
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_id *one = i ? late : id;

		rdma_destroy_qp(one);
		MUST_EQ(rdma_destroy_id(one), 0);
	}
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(killed)

/* A server that never answers, and is killed with the request before it. */
static bool stall(int in, int out, int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listen;
	struct rdma_cm_event *e;
	uint16_t what;

	MUST(ch && (listen = listener(ch, RDMA_PS_TCP, own(family, 0), 4)));
	MUST(say(out, ntohs(rdma_get_src_port(listen))));
	MUST((e = next_event(ch)) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	MUST(say(out, 1));
	hear(in, &what);
	return true;
}

static bool killed_asked(int family)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	struct peer p;
	uint16_t port, said;

	MUST(peer_start(&p, stall, family) && hear(p.from, &port));
	MUST(ch = rdma_create_event_channel());
	MUST(id = resolved(ch, RDMA_PS_TCP, own(family, port)));
	MUST_EQ(create_qp(id), 0);
	MUST_EQ(rdma_connect(id, NULL), 0);
	MUST(hear(p.from, &said) && said == 1);
	MUST(peer_end(&p, true));
	MUST(e = next_event(ch));
	MUST_EQ(e->event, RDMA_CM_EVENT_REJECTED);
	/* rejected by its end, as the kernel does it, or there is no such service any more */
	MUST(e->status == 28 || e->status == 8);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(killed_asked)

/* A client that connects and waits to be killed. */
static bool connect_and_wait(int in, int out, int family)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	uint16_t port;

	MUST(hear(in, &port));
	MUST((ch = rdma_create_event_channel()) && client_connects(ch, &id, family, port));
	MUST(say(out, 1));
	hear(in, &port);
	return true;
}

/* The active end is killed: the passive one hears of it. */
static bool killed_active(int family)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listen, *id;
	struct rdma_cm_event *e;
	struct peer p;
	uint16_t said;

	MUST(peer_start(&p, connect_and_wait, family));
	MUST((ch = rdma_create_event_channel()) &&
	     (listen = listener(ch, RDMA_PS_TCP, own(family, 0), 4)));
	MUST(say(p.to, ntohs(rdma_get_src_port(listen))));
	MUST((e = next_event(ch)) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	id = e->id;
	MUST_EQ(create_qp(id), 0);
	MUST_EQ(rdma_accept(id, NULL), 0);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ESTABLISHED));
	MUST(hear(p.from, &said) && said == 1);
	MUST(peer_end(&p, true));
	MUST(notices(id) && no_other_event(ch, id));
	rdma_destroy_qp(id);
	MUST(!rdma_destroy_id(id) && !rdma_destroy_id(listen));
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(killed_active)

/* A port that another process has is in use; it is free when that process is gone. */
static bool port_taken(int family)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	union address at;
	struct peer p;
	uint16_t port, said;

	MUST(peer_start(&p, stall, family) && hear(p.from, &port));
	at = own(family, port);
	MUST(ch = rdma_create_event_channel());
	MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	MUST_ERR(rdma_bind_addr(id, &at.sa), EADDRINUSE);
	MUST_EQ(rdma_destroy_id(id), 0);
	MUST(peer_end(&p, true));
	MUST(id = listener(ch, RDMA_PS_TCP, at, 1));
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	said = port;
	MUST(said);
	return true;
}
BOTH(port_taken)

/* Server and client in one process and another pair: no process gets another's events. */
static bool beside(int family)
{
	struct peer p;
	struct link l = { 0 };
	bool good;
	uint16_t port;

	MUST(peer_start(&p, stall, family) && hear(p.from, &port));
	good = link_up(&l, family) && !rdma_disconnect(l.id[0]) &&
	       take(l.ch[1], l.id[1], RDMA_CM_EVENT_DISCONNECTED);
	good &= link_close(&l);
	return peer_end(&p, true) && good;
}
BOTH(beside)

/* ---- fork after use ---- */

/* The child uses its own channel; the parent's connection is unchanged. */
static bool forked_body(struct link *l, int family)
{
	int status;
	pid_t pid;

	MUST(link_up(l, family));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		struct link own_link = { 0 };
		bool good = link_up(&own_link, family);

		_exit(good ? 0 : 1);
	}
	MUST_EQ(waitpid(pid, &status, 0), pid);
	MUST(WIFEXITED(status));
	MUST_EQ(WEXITSTATUS(status), 0);
	MUST_EQ(qp_state_now(l->id[0]->qp), IBV_QPS_RTS);
	MUST(no_event(l->ch[0]) && no_event(l->ch[1]));
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_DISCONNECTED));
	MUST_EQ(rdma_disconnect(l->id[1]), 0);
	return take(l->ch[0], l->id[0], RDMA_CM_EVENT_DISCONNECTED);
}
ON_LINK(forked, forked_body)

/* A child without the handlers of fork() calls exit(): the library's destructors run in it. */
static bool exits_body(struct link *l, int family)
{
	int status;
	pid_t pid;

	MUST(link_up(l, family));
	fflush(stdout);
	pid = _Fork();
	MUST(pid >= 0);
	if (!pid)
		exit(0);
	MUST_EQ(waitpid(pid, &status, 0), pid);
	MUST(WIFEXITED(status));
	MUST_EQ(qp_state_now(l->id[0]->qp), IBV_QPS_RTS);
	MUST(no_event(l->ch[0]) && no_event(l->ch[1]));
	MUST_EQ(rdma_disconnect(l->id[0]), 0);
	return take(l->ch[1], l->id[1], RDMA_CM_EVENT_DISCONNECTED);
}
ON_LINK(exits, exits_body)

const struct test_case man_cases[] = {
	CASE(whole_v4),		CASE(whole_v6),
	CASE(killed_v4),	CASE(killed_v6),
	CASE(killed_asked_v4),	CASE(killed_asked_v6),
	CASE(killed_active_v4), CASE(killed_active_v6),
	CASE(port_taken_v4),	CASE(port_taken_v6),
	CASE(beside_v4),	CASE(beside_v6),
	CASE(exits_v4),		CASE(exits_v6),
	CASE(forked_v4), /* the last: it uses the library before it forks */
	CASE(forked_v6),	{ 0 },
};
