/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * A thread that sleeps in a call of rdma_cm(7) or rsocket(7): signals as in signal(7), where each
 * call of rdma-core's is a write(2); the object stays usable, or can be destroyed. Duplicates of an
 * event channel's descriptor (dup(2)).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>

#include "man.h"

#define FAR_FD 900

/* ---- duplicates ---- */

#define WAYS 5
static int duplicate(int fd, int way)
{
	switch (way) {
	case 0:
		return dup(fd);
	case 1:
		return dup2(fd, FAR_FD);
	case 2:
		return dup3(fd, FAR_FD + 1, O_CLOEXEC);
	case 3:
		return fcntl(fd, F_DUPFD, FAR_FD);
	default:
		return fcntl(fd, F_DUPFD_CLOEXEC, FAR_FD);
	}
}

/* Gets the readiness of fd; poll(2), select(2) and epoll(7) must agree. */
static bool is_ready(int fd, int set, bool *ready)
{
	struct timeval now = { 0 };
	struct epoll_event event;
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	*ready = readable(fd, 0);
	MUST_EQ(select(fd + 1, &in, NULL, NULL, &now), *ready);
	MUST_EQ(epoll_wait(set, &event, 1, 0), *ready);
	return true;
}

static bool duplicates_of_a_channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	bool ready;

	MUST(ch);
	for (int way = 0; way < WAYS; way++) {
		struct epoll_event event = { .events = EPOLLIN };
		const int set = epoll_create1(EPOLL_CLOEXEC), copy = duplicate(ch->fd, way);

		MUST(copy >= 0 && set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, copy, &event));
		MUST_EQ(!!(fcntl(copy, F_GETFD) & FD_CLOEXEC), way == 2 || way == 4);
		MUST(is_ready(copy, set, &ready) && !ready);
		MUST((id = resolving(ch, AF_INET)) && readable(copy, WAIT_MS));
		MUST(is_ready(copy, set, &ready) && ready);
		MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
		MUST(is_ready(copy, set, &ready) && !ready);
		MUST(set_nonblocking(copy, true) && fcntl(ch->fd, F_GETFL) & O_NONBLOCK);
		MUST_ERR(rdma_get_cm_event(ch, &e), EAGAIN);
		MUST(set_nonblocking(copy, false) && !(fcntl(ch->fd, F_GETFL) & O_NONBLOCK));
		MUST(!close(copy) && !close(set));
		MUST_EQ(rdma_destroy_id(id), 0);
	}
	rdma_destroy_event_channel(ch);
	return true;
}

/* A duplicate that outlives its channel gets no event of later channels. */
static bool duplicate_outlives_its_channel(void)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	const int before = open_fds();
	int copy, fd;

	for (int i = 0; i < 20; i++) {
		MUST(ch = rdma_create_event_channel());
		MUST((id = resolving(ch, AF_INET)) && take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
		MUST((copy = dup(ch->fd)) >= 0 && !rdma_destroy_id(id));
		fd = ch->fd;
		rdma_destroy_event_channel(ch);
		MUST(fcntl(fd, F_GETFD) == -1 && fcntl(copy, F_GETFD) == 0);
		MUST((ch = rdma_create_event_channel()) && (id = resolving(ch, AF_INET)));
		MUST(readable(ch->fd, WAIT_MS) && !readable(copy, 0));
		MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED) && !close(copy));
		MUST(!rdma_destroy_id(id));
		rdma_destroy_event_channel(ch);
	}
	MUST_EQ(open_fds(), before);
	return true;
}

/* ---- a thread that sleeps in a call ---- */

struct sleeper {
	pthread_t thread;
	const struct kind *kind;
	struct rdma_event_channel *ch; /* of the asynchronous ids */
	struct rdma_cm_id *listen;
	struct rdma_cm_id *id;	 /* of the call */
	struct rdma_cm_id *peer; /* at the other end */
	struct link link;
	struct ibv_mr *mr;
	char buf[64];
	int s[3];      /* rsockets: a listener; of the call; at the other end */
	size_t filled; /* bytes in flight to s[2] */
	int rc, err;   /* of the call, once `done` */
	atomic_bool done;
};

/* A call that sleeps. */
struct kind {
	const char *name;
	bool (*prepare)(struct sleeper *s);
	int (*call)(struct sleeper *s);
	bool (*wake)(struct sleeper *s); /* makes the call return; NULL: nothing does */
	bool (*finish)(struct sleeper *s);
	bool never_restarts; /* signal(7): also with SA_RESTART it ends with EINTR */
};

/* rdma_get_cm_event(3) */

static bool event_prepare(struct sleeper *s)
{
	MUST(s->ch = rdma_create_event_channel());
	return true;
}

static int event_call(struct sleeper *s)
{
	struct rdma_cm_event *e;

	return rdma_get_cm_event(s->ch, &e) || rdma_ack_cm_event(e) ? -1 : 0;
}

static bool event_wake(struct sleeper *s)
{
	MUST(s->id = resolving(s->ch, AF_INET));
	return true;
}

static bool ids_finish(struct sleeper *s)
{
	struct rdma_cm_id *ids[] = { s->id, s->peer, s->listen };

	for (int i = 0; i < 3; i++) {
		if (ids[i] && ids[i]->qp)
			rdma_destroy_qp(ids[i]);
		MUST(!ids[i] || !rdma_destroy_id(ids[i]));
	}
	if (s->ch)
		rdma_destroy_event_channel(s->ch);
	return true;
}

/* rdma_resolve_addr(3) of an unused address */

static bool resolve_prepare(struct sleeper *s)
{
	MUST_EQ(rdma_create_id(NULL, &s->id, NULL, RDMA_PS_TCP), 0);
	return true;
}

/*
 * The kernel fails the neighbour entry after some seconds, before this time-out: the call sleeps
 * long enough.
 */
static int resolve_call(struct sleeper *s)
{
	union address to = other(AF_INET, ABSENT, 7471);

	return rdma_resolve_addr(s->id, NULL, &to.sa, 100000);
}

/* rdma_connect(3) to a host that is silent */

static bool connect_prepare(struct sleeper *s)
{
	union address to = other(AF_INET, SILENT, 7471);

	MUST_EQ(rdma_create_id(NULL, &s->id, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_resolve_addr(s->id, NULL, &to.sa, WAIT_MS), 0);
	MUST_EQ(rdma_resolve_route(s->id, WAIT_MS), 0);
	MUST_EQ(create_qp(s->id), 0);
	return true;
}

static int connect_call(struct sleeper *s)
{
	return rdma_connect(s->id, NULL);
}

/* rdma_get_request(3) */

static bool listener_prepare(struct sleeper *s)
{
	union address at = own(AF_INET, 0);

	MUST(s->ch = rdma_create_event_channel());
	MUST_EQ(rdma_create_id(NULL, &s->listen, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_bind_addr(s->listen, &at.sa), 0);
	MUST_EQ(rdma_listen(s->listen, 4), 0);
	return true;
}

static int request_call(struct sleeper *s)
{
	return rdma_get_request(s->listen, &s->id);
}

/* A client without a QP, so that the case itself calls rdma_establish(). */
static bool client_asks(struct sleeper *s)
{
	struct rdma_conn_param param = some_param(NULL, 0);

	param.qp_num = fresh_qpn();
	MUST(s->peer = resolved(s->ch, RDMA_PS_TCP,
				own(AF_INET, ntohs(rdma_get_src_port(s->listen)))));
	MUST_EQ(rdma_connect(s->peer, &param), 0);
	return true;
}

/* rdma_accept(3) of a client that does not confirm the connection */

static bool accept_prepare(struct sleeper *s)
{
	MUST(listener_prepare(s) && client_asks(s));
	MUST_EQ(rdma_get_request(s->listen, &s->id), 0);
	return true;
}

static int accept_call(struct sleeper *s)
{
	struct rdma_conn_param param = some_param(NULL, 0);

	param.qp_num = fresh_qpn();
	return rdma_accept(s->id, &param);
}

/* After a REP the call cannot accept again; the awaited event still arrives. */
static int established_call(struct sleeper *s)
{
	struct rdma_cm_event *e;

	if (rdma_get_cm_event(s->id->channel, &e))
		return -1;
	return e->event != RDMA_CM_EVENT_ESTABLISHED || e->id != s->id || rdma_ack_cm_event(e);
}

static bool accept_wake(struct sleeper *s)
{
	MUST(take(s->ch, s->peer, RDMA_CM_EVENT_CONNECT_RESPONSE));
	MUST_EQ(rdma_establish(s->peer), 0);
	return true;
}

/* rdma_get_recv_comp(3), rdma_get_send_comp(3) */

static bool comp_prepare(struct sleeper *s)
{
	MUST(link_up(&s->link, AF_INET));
	MUST(s->mr = rdma_reg_msgs(s->link.id[0], s->buf, sizeof(s->buf)));
	return true;
}

static int recv_comp_call(struct sleeper *s)
{
	struct ibv_wc wc;

	return rdma_get_recv_comp(s->link.id[0], &wc) == 1 && wc.wr_id == 5 ? 0 : -1;
}

static bool recv_comp_wake(struct sleeper *s)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	MUST_EQ(rdma_post_recv(s->link.id[0], (void *)5, s->buf, 16, s->mr), 0);
	MUST_EQ(ibv_post_send(s->link.id[1]->qp, &wr, &bad), 0);
	return true;
}

static int send_comp_call(struct sleeper *s)
{
	struct ibv_wc wc;

	return rdma_get_send_comp(s->link.id[0], &wc) == 1 && wc.wr_id == 6 ? 0 : -1;
}

static bool send_comp_wake(struct sleeper *s)
{
	struct ibv_recv_wr wr = { .wr_id = 7 }, *bad;

	MUST_EQ(ibv_post_recv(s->link.id[1]->qp, &wr, &bad), 0);
	MUST_EQ(rdma_post_send(s->link.id[0], (void *)6, s->buf, 0, s->mr, IBV_SEND_SIGNALED), 0);
	return true;
}

static bool comp_finish(struct sleeper *s)
{
	return !rdma_dereg_mr(s->mr) && link_close(&s->link);
}

/* rsocket(7) */

static bool stream_listens(struct sleeper *s)
{
	union address at = own(AF_INET, 0);

	MUST((s->s[0] = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	MUST_EQ(rbind(s->s[0], &at.sa, sizeof(at.in)), 0);
	MUST_EQ(rlisten(s->s[0], 4), 0);
	return true;
}

static bool stream_asks(struct sleeper *s)
{
	socklen_t len = sizeof(union address);
	union address to;

	MUST_EQ(rgetsockname(s->s[0], &to.sa, &len), 0);
	MUST((s->s[2] = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0);
	MUST(!rconnect(s->s[2], &to.sa, len) || errno == EINPROGRESS);
	return true;
}

static int raccept_call(struct sleeper *s)
{
	s->s[1] = raccept(s->s[0], NULL, NULL);
	return s->s[1] >= 0 ? 0 : -1;
}

static bool stream_prepare(struct sleeper *s)
{
	struct pollfd p;

	MUST(stream_listens(s) && stream_asks(s) && !raccept_call(s));
	p = (struct pollfd){ .fd = s->s[2], .events = POLLOUT };
	MUST(rpoll(&p, 1, WAIT_MS) == 1 && p.revents == POLLOUT);
	MUST_EQ(rfcntl(s->s[2], F_SETFL, 0), 0);
	return true;
}

static bool streams_finish(struct sleeper *s)
{
	for (int i = 2; i >= 0; i--)
		MUST(s->s[i] < 0 || !rclose(s->s[i]));
	return true;
}

static int rconnect_call(struct sleeper *s)
{
	union address to = other(AF_INET, SILENT, 7471);

	return rconnect(s->s[1], &to.sa, sizeof(to.in));
}

static bool rconnect_prepare(struct sleeper *s)
{
	MUST((s->s[1] = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	return true;
}

static int rrecv_call(struct sleeper *s)
{
	char byte = 0;

	return rrecv(s->s[1], &byte, 1, 0) == 1 && byte == '7' ? 0 : -1;
}

static bool byte_comes(struct sleeper *s)
{
	MUST_EQ(rsend(s->s[2], "7", 1, 0), 1);
	return true;
}

static bool full_prepare(struct sleeper *s)
{
	static const char bytes[4096];
	ssize_t n;

	MUST(stream_prepare(s));
	while ((n = rsend(s->s[1], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		s->filled += (size_t)n;
	MUST_EQ(errno, EAGAIN);
	return true;
}

static int rsend_call(struct sleeper *s)
{
	return rsend(s->s[1], "7", 1, 0) == 1 ? 0 : -1;
}

static bool full_wake(struct sleeper *s)
{
	static char bytes[4096];

	while (s->filled) {
		const ssize_t n = rrecv(s->s[2], bytes,
					s->filled < sizeof(bytes) ? s->filled : sizeof(bytes), 0);

		MUST(n > 0);
		s->filled -= (size_t)n;
	}
	return true;
}

/* The byte arrives after the bytes that filled the buffer, once. */
static bool full_finish(struct sleeper *s)
{
	char byte = 0;

	if (!s->filled) {
		MUST_EQ(rrecv(s->s[2], &byte, 1, 0), 1);
		MUST_EQ(byte, '7');
		MUST_ERR((int)rrecv(s->s[2], &byte, 1, MSG_DONTWAIT), EAGAIN);
	}
	return streams_finish(s);
}

static int rpoll_call(struct sleeper *s)
{
	struct pollfd p = { .fd = s->s[1], .events = POLLIN };
	const int n = rpoll(&p, 1, -1);

	return n < 0 ? -1 : n != 1 || p.revents != POLLIN;
}

static int rselect_call(struct sleeper *s)
{
	fd_set in;
	int n;

	FD_ZERO(&in);
	FD_SET(s->s[1], &in);
	n = rselect(s->s[1] + 1, &in, NULL, NULL, NULL);
	return n < 0 ? -1 : n != 1 || !FD_ISSET(s->s[1], &in);
}

static const struct kind kinds[] = {
	{ "rdma_get_cm_event", event_prepare, event_call, event_wake, ids_finish, false },
	{ "rdma_resolve_addr", resolve_prepare, resolve_call, NULL, ids_finish, false },
	{ "rdma_connect", connect_prepare, connect_call, NULL, ids_finish, false },
	{ "rdma_get_request", listener_prepare, request_call, client_asks, ids_finish, false },
	{ "rdma_accept", accept_prepare, accept_call, accept_wake, ids_finish, false },
	{ "rdma_get_recv_comp", comp_prepare, recv_comp_call, recv_comp_wake, comp_finish, false },
	{ "rdma_get_send_comp", comp_prepare, send_comp_call, send_comp_wake, comp_finish, false },
	{ "raccept", stream_listens, raccept_call, stream_asks, streams_finish, false },
	{ "rconnect", rconnect_prepare, rconnect_call, NULL, streams_finish, false },
	{ "rrecv", stream_prepare, rrecv_call, byte_comes, streams_finish, false },
	{ "rsend", full_prepare, rsend_call, full_wake, full_finish, false },
	{ "rpoll", stream_prepare, rpoll_call, byte_comes, streams_finish, true },
	{ "rselect", stream_prepare, rselect_call, byte_comes, streams_finish, true },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void *sleeper_run(void *arg)
{
	struct sleeper *s = arg;

	s->rc = s->kind->call(s);
	s->err = errno;
	atomic_store(&s->done, true);
	return NULL;
}

/* Starts the call in a thread, which sleeps soon. */
static bool sleeper_begins(struct sleeper *s)
{
	atomic_store(&s->done, false);
	MUST_EQ(pthread_create(&s->thread, NULL, sleeper_run, s), 0);
	usleep(20000); /* can only miss a fault, never make one */
	MUST(!atomic_load(&s->done));
	return true;
}

static bool sleeper_prepare(struct sleeper *s, const struct kind *kind)
{
	*s = (struct sleeper){ .kind = kind, .s = { -1, -1, -1 } };
	MUST(kind->prepare(s));
	return sleeper_begins(s);
}

static void sleeper_signal(struct sleeper *s, int times)
{
	for (int i = 0; i < times && !atomic_load(&s->done); i++) {
		pthread_kill(s->thread, SIGUSR1);
		usleep(1000);
	}
}

static bool sleeper_is_cancelled(struct sleeper *s)
{
	void *how;

	MUST_EQ(pthread_cancel(s->thread), 0);
	MUST_EQ(pthread_join(s->thread, &how), 0);
	MUST(how == PTHREAD_CANCELED && !atomic_load(&s->done));
	return true;
}

static bool sleeper_was_interrupted(struct sleeper *s)
{
	MUST_EQ(pthread_join(s->thread, NULL), 0);
	MUST_EQ(s->rc, -1);
	MUST_EQ(s->err, EINTR);
	return true;
}

/* Wakes the thread that sleeps in the call. */
static bool sleeper_wakes(struct sleeper *s)
{
	MUST(s->kind->wake(s));
	MUST_EQ(pthread_join(s->thread, NULL), 0);
	MUST_EQ(s->rc, 0);
	return true;
}

/* The same object serves the next call, in the order of the earlier calls. */
static bool sleeper_again(struct sleeper *s)
{
	static const struct kind established = { .call = established_call, .wake = accept_wake };
	const struct kind *kind = s->kind;

	if (!kind->wake)
		return true;
	if (kind->call == accept_call)
		s->kind = &established;
	MUST(sleeper_begins(s) && sleeper_wakes(s));
	s->kind = kind;
	return true;
}

static bool each_kind(bool (*body)(struct sleeper *s))
{
	static struct sleeper s;
	bool good = true;

	for (size_t i = 0; i < KINDS; i++) {
		if (sleeper_prepare(&s, &kinds[i]) && body(&s) && kinds[i].finish(&s))
			continue;
		printf("# of %s\n", kinds[i].name);
		good = false;
	}
	return good;
}

static bool interrupt(struct sleeper *s)
{
	sleeper_signal(s, WAIT_MS);
	MUST(sleeper_was_interrupted(s));
	return sleeper_again(s);
}

/* "If a blocked call ... is interrupted by a signal handler": EINTR without SA_RESTART. */
static bool signals_end_calls(void)
{
	bool good;

	MUST(catch_usr1(0));
	good = each_kind(interrupt);
	signal(SIGUSR1, SIG_DFL);
	return good;
}

static bool restart(struct sleeper *s)
{
	if (s->kind->never_restarts)
		return interrupt(s);
	sleeper_signal(s, 30);
	MUST(!atomic_load(&s->done));
	return s->kind->wake ? sleeper_wakes(s) : sleeper_is_cancelled(s);
}

/*
 * A cancelled thread leaves the object as a call that was interrupted does: the next call works
 * (pthread_cancel(3), pthreads(7)).
 */
static bool cancel(struct sleeper *s)
{
	MUST(sleeper_is_cancelled(s));
	return sleeper_again(s);
}

static bool cancelled_calls_leave_the_object(void)
{
	return each_kind(cancel);
}

/* "the call is automatically restarted after the signal handler returns if the SA_RESTART flag" */
static bool signals_restart_calls(void)
{
	bool good;

	MUST(catch_usr1(SA_RESTART));
	good = each_kind(restart);
	signal(SIGUSR1, SIG_DFL);
	return good;
}

/* An interrupted rdma_connect() still establishes the connection. */
static bool interrupted_connect_goes_on(void)
{
	static const struct kind connects = { .call = connect_call };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sleeper s = { .kind = &connects, .s = { -1, -1, -1 } };
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	union address to;

	MUST(catch_usr1(0) && ch && (s.listen = listener(ch, RDMA_PS_TCP, own(AF_INET, 0), 4)));
	to = own(AF_INET, ntohs(rdma_get_src_port(s.listen)));
	MUST_EQ(rdma_create_id(NULL, &s.id, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_resolve_addr(s.id, NULL, &to.sa, WAIT_MS), 0);
	MUST_EQ(rdma_resolve_route(s.id, WAIT_MS), 0);
	MUST_EQ(create_qp(s.id), 0);
	MUST(sleeper_begins(&s));
	sleeper_signal(&s, WAIT_MS);
	MUST(sleeper_was_interrupted(&s));
	MUST((e = next_event(ch)) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	id = e->id;
	MUST(!create_qp(id) && !rdma_accept(id, NULL) && !rdma_ack_cm_event(e));
	MUST(take(s.id->channel, s.id, RDMA_CM_EVENT_ESTABLISHED));
	MUST(take(ch, id, RDMA_CM_EVENT_ESTABLISHED));
	MUST_EQ(qp_state_now(s.id->qp), IBV_QPS_RTS);
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);
	MUST(take(s.id->channel, s.id, RDMA_CM_EVENT_DISCONNECTED));
	signal(SIGUSR1, SIG_DFL);
	s.ch = ch;
	return ids_finish(&s);
}

/* No signal ends an rdma_destroy_id() that waits for an acknowledgement. */
static bool signals_do_not_end_a_destroy(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *e[2];
	struct destruction d[2];
	struct rdma_cm_id *id[2];

	MUST(catch_usr1(0) && ch);
	for (int i = 0; i < 2; i++)
		MUST((id[i] = resolving(ch, AF_INET)) && (e[i] = next_event(ch)) &&
		     e[i]->id == id[i]);
	for (int i = 0; i < 2; i++)
		MUST(destroy_begins(&d[i], destroy_id, id[i]));
	for (int k = 0; k < 20; k++) {
		for (int i = 0; i < 2; i++)
			pthread_kill(d[i].thread, SIGUSR1);
		usleep(1000);
	}
	/* acknowledge in reverse order */
	for (int i = 1; i >= 0; i--) {
		MUST(destroy_waits(&d[i]));
		MUST_EQ(rdma_ack_cm_event(e[i]), 0);
		MUST(destroy_ends(&d[i]));
	}
	rdma_destroy_event_channel(ch);
	signal(SIGUSR1, SIG_DFL);
	return true;
}

/* ---- execve(2) ---- */

static bool inherited[1024];

__attribute__((constructor)) static void note_inherited(void)
{
	for (int fd = 0; fd < 1024; fd++)
		inherited[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* All descriptors of rdma-core have FD_CLOEXEC; a descriptor from rsocket() may have it. */
static bool nothing_is_kept_over_exec(void)
{
	static const struct kind kind = { .name = "" };
	struct sleeper s = { .kind = &kind, .s = { -1, -1, -1 } };
	union address at = own(AF_INET, 0);
	struct rdma_cm_id *sync;
	struct link l = { 0 };
	int datagrams, kept = 0;

	MUST(link_up(&l, AF_INET) && stream_prepare(&s));
	MUST((datagrams = rsocket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	MUST_EQ(rbind(datagrams, &at.sa, sizeof(at.in)), 0);
	MUST_EQ(rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP), 0);
	for (int fd = 0; fd < 1024; fd++) {
		const int flags = fcntl(fd, F_GETFD);

		if (flags < 0 || flags & FD_CLOEXEC || inherited[fd] || fd == datagrams ||
		    fd == s.s[0] || fd == s.s[1] || fd == s.s[2])
			continue;
		printf("# descriptor %d\n", fd);
		kept++;
	}
	MUST_EQ(kept, 0);
	MUST(!rclose(datagrams) && streams_finish(&s) && !rdma_destroy_id(sync));
	return link_close(&l);
}

const struct test_case man_cases[] = {
	CASE(duplicates_of_a_channel),
	CASE(duplicate_outlives_its_channel),
	CASE(signals_end_calls),
	CASE(signals_restart_calls),
	CASE(cancelled_calls_leave_the_object),
	CASE(interrupted_connect_goes_on),
	CASE(signals_do_not_end_a_destroy),
	CASE(nothing_is_kept_over_exec),
	{ 0 },
};
