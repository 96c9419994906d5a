/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of all streams' connections. One thread of the process handles them: it prepares the next
 * step of a connection and wakes waiters. The same thread sends the keepalives, ends the streams
 * that were closed (rsocket_close.c), and gives up connections that are never confirmed
 * (rsocket_listen.c).
 *
 * An event is acknowledged after it was handled: until then rdma_destroy_id(), and so the stream's
 * destruction, waits.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../os/kernel.h"
#include "../os/thread.h"
#include "rsocket_stream.h"

enum { RESOLVE_MS = 1000, RESOLVE_TRIES = 4 };

/* Per process; a forked child creates its own. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rdma_event_channel *channel;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static pthread_mutex_t keepalive_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *keepalives;
static int wake_fd = -1; /* readable: connect_wake() was called */

/* ---- the active side ---- */

static void connect_resolve(struct stream *s)
{
	int ms = RESOLVE_MS << s->tries++;

	s->state = STREAM_ADDRESS;
	if (rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&s->peer, ms))
		stream_fail(s, errno);
}

static void connect_route(struct stream *s)
{
	int ms = RESOLVE_MS << s->tries++;

	s->state = STREAM_ROUTE;
	/* A path given by the program causes the same event as a resolved one. */
	if (s->route ? rdma_set_option(s->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, s->route,
				       s->route_bytes) :
		       rdma_resolve_route(s->id, ms))
		stream_fail(s, errno);
}

static void connect_request(struct stream *s)
{
	u8 data[WIRE_CONN_BYTES];
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = sizeof(data),
		.flow_control = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	int err = stream_make(s);

	if (err) {
		stream_fail(s, -err);
		return;
	}
	s->state = STREAM_REQUESTED;
	stream_tell(s, data);
	if (rdma_connect(s->id, &param))
		stream_fail(s, errno);
}

static void connect_established(struct stream *s, const struct rdma_cm_event *e)
{
	struct wire_conn peer;

	if (!wire_get_conn(&peer, e->param.conn.private_data, e->param.conn.private_data_len)) {
		/* Not a stream, or another version. */
		rdma_disconnect(s->id);
		stream_fail(s, ENOTSUP);
		return;
	}
	stream_begin(s, &peer);
	s->state = STREAM_CONNECTED;
	waiters_wake(&s->rs);
}

static int connect_errno(const struct rdma_cm_event *e)
{
	if (e->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	return e->status < 0 ? -e->status : e->status ? EHOSTUNREACH : ECONNREFUSED;
}

/* Retries a failed resolution if it timed out. */
static void connect_unresolved(struct stream *s, const struct rdma_cm_event *e,
			       void (*again)(struct stream *s))
{
	if (e->status == -ETIMEDOUT && s->tries < RESOLVE_TRIES)
		again(s);
	else
		stream_fail(s, connect_errno(e));
}

/* Handles an event, under the lock. Returns true if no one owns the stream: the caller puts it. */
static bool connect_event(struct stream *s, const struct rdma_cm_event *e)
{
	bool passive = s->state == STREAM_ASKED || s->state == STREAM_ANSWERED;

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		s->tries = 0;
		if (s->state == STREAM_ADDRESS)
			connect_route(s);
		return false;
	case RDMA_CM_EVENT_ADDR_ERROR:
		if (s->state == STREAM_ADDRESS)
			connect_unresolved(s, e, connect_resolve);
		return false;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (s->state == STREAM_ROUTE)
			connect_request(s);
		return false;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		if (s->state == STREAM_ROUTE)
			connect_unresolved(s, e, connect_route);
		return false;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (s->state == STREAM_REQUESTED)
			connect_established(s, e);
		else if (s->state == STREAM_ANSWERED)
			listen_established(s);
		else if (s->state == STREAM_FAILED)
			rdma_disconnect(s->id); /* rshutdown() ended the wait */
		return false;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (passive)
			return listen_failed(s);
		if (s->state == STREAM_LISTENING) {
			listen_device_gone(s);
			return false;
		}
		if (stream_is_opening(s)) {
			stream_fail(s, connect_errno(e));
			return false;
		}
		/* Received data can still be read. */
		stream_progress(s);
		/* The peer waits for an answer, even if its messages announced the end. */
		if (s->state == STREAM_CONNECTED || s->state == STREAM_ENDED)
			rdma_disconnect(s->id);
		stream_finish(s, e->event == RDMA_CM_EVENT_DISCONNECTED ? 0 : ECONNRESET);
		return false;
	default:
		return false;
	}
}

/* ---- the thread ---- */

static void connect_handle(struct rdma_cm_event *e)
{
	struct rdma_cm_id *orphan = NULL;
	struct stream *s, *gone = NULL, *listener = NULL;

	if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		s = e->listen_id->context;
		gone = listen_asked(s, e);
		if (!e->id->context)
			orphan = e->id;
	} else {
		s = e->id->context;
		pthread_mutex_lock(&s->rs.lock);
		/* Events of its earlier ids are ignored, and once it is being destroyed. */
		if ((!s->rs.closed || ending_has(s)) && e->id == s->id && connect_event(s, e))
			gone = s;
		/* Its address has one answered connection less; raccept() may put the reference. */
		if (e->event == RDMA_CM_EVENT_ESTABLISHED && s->listener) {
			listener = s->listener;
			rsocket_keep(&listener->rs);
		}
		rsocket_unlock(&s->rs);
	}
	rdma_ack_cm_event(e);
	if (orphan)
		rdma_destroy_id(orphan);
	if (gone) {
		/* The stream still references its listener. */
		listen_next(gone->listener);
		rsocket_put(&gone->rs);
	}
	if (listener) {
		listen_next(listener);
		rsocket_put(&listener->rs);
	}
}

static int keepalive_run(void);

/* Returns the sooner of two times in milliseconds; -1: never. */
static int connect_sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void *connect_run(void *of)
{
	struct rdma_event_channel *from = of;
	struct rdma_cm_event *e;

	for (;;) {
		struct pollfd fds[2] = {
			{ .fd = from->fd, .events = POLLIN },
			{ .fd = wake_fd, .events = POLLIN },
		};
		int ms = connect_sooner(keepalive_run(), ending_run());
		u64 n;

		ms = connect_sooner(ms, listen_run());
		if (poll(fds, 2, ms) < 0 && errno != EINTR)
			return NULL;
		if (fds[1].revents && read(wake_fd, &n, sizeof(n)) < 0 && errno != EAGAIN &&
		    errno != EINTR)
			return NULL;
		while (!rdma_get_cm_event(from, &e))
			connect_handle(e);
		if (errno != EAGAIN && errno != EINTR)
			return NULL;
	}
}

/* A forked child has neither the thread nor its connections. */
static void connect_fork(void)
{
	channel = NULL;
	keepalives = NULL;
	wake_fd = -1;
	pthread_mutex_init(&start_lock, NULL);
	pthread_mutex_init(&keepalive_lock, NULL);
	ending_fork();
	listen_fork();
}

static void connect_once(void)
{
	pthread_atfork(NULL, NULL, connect_fork);
}

static int connect_thread(struct rdma_event_channel *from)
{
	pthread_t thread;
	const int err = thread_start(&thread, connect_run, from);

	if (!err) {
		pthread_setname_np(thread, "rsocket");
		pthread_detach(thread);
	}
	return err;
}

/* Caller holds start_lock. */
static int connect_start_thread(void)
{
	struct rdma_event_channel *new = rdma_create_event_channel();
	int err = 0, fd;

	if (!new)
		return -errno;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	wake_fd = fd;
	if (fd < 0 || fcntl(new->fd, F_SETFL, fcntl(new->fd, F_GETFL) | O_NONBLOCK))
		err = -errno;
	if (!err)
		err = connect_thread(new);
	if (!err) {
		channel = new;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	wake_fd = -1;
	rdma_destroy_event_channel(new);
	return err;
}

int connect_id(struct stream *s)
{
	int err = 0;

	pthread_once(&fork_once, connect_once);
	pthread_mutex_lock(&start_lock);
	if (!channel)
		err = connect_start_thread();
	pthread_mutex_unlock(&start_lock);
	if (err)
		return err;
	return rdma_create_id(channel, &s->id, s, RDMA_PS_TCP) ? -errno : 0;
}

void connect_wake(void)
{
	const int saved = errno;

	if (wake_fd >= 0)
		kernel_event_raise(wake_fd);
	errno = saved;
}

/* ---- rconnect() ---- */

static bool connect_is_over(struct rsocket *rs)
{
	return !stream_is_opening(stream_of(rs));
}

/* Sets an option of the new id unless it is the default. Returns 0 or -errno. */
static int connect_option(struct stream *s, int option, void *value, size_t bytes, bool set)
{
	return set && rdma_set_option(s->id, RDMA_OPTION_ID, option, value, bytes) ? -errno : 0;
}

/* Gives a new id the options and the address of the first one. Returns 0 or -errno. */
static int connect_restore(struct stream *s)
{
	u8 tos = (u8)s->rs.tos;
	int one = 1, err;

	err = connect_option(s, RDMA_OPTION_ID_TOS, &tos, sizeof(tos), tos);
	if (!err)
		err = connect_option(s, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one),
				     s->rs.reuse_address);
	if (!err)
		err = connect_option(s, RDMA_OPTION_ID_AFONLY, &one, sizeof(one), s->rs.v6_only);
	if (!err && s->bound.ss_family && rdma_bind_addr(s->id, (struct sockaddr *)&s->bound))
		err = -errno;
	return err;
}

/*
 * After a failed rconnect(): replaces the id by a new one, with the options and the address of the
 * first. Returns 0 or -errno; the socket then stays failed.
 */
static int connect_anew(struct stream *s)
{
	struct rdma_cm_id *old = s->id;
	int err;

	stream_unmake(s);
	err = connect_id(s);
	if (err) {
		s->id = old;
		return err;
	}
	rsocket_unlock(&s->rs);
	rdma_destroy_id(old);
	pthread_mutex_lock(&s->rs.lock);
	err = connect_restore(s);
	if (!err)
		s->state = STREAM_NEW;
	return err;
}

static int connect_now(struct stream *s, const struct sockaddr *address, socklen_t bytes)
{
	int err;

	switch (s->state) {
	case STREAM_NEW:
		break;
	case STREAM_FAILED:
		if (!s->told) {
			s->told = true;
			return stream_error(s, -ECONNREFUSED);
		}
		err = connect_anew(s);
		if (err)
			return err;
		break;
	case STREAM_CONNECTED:
		if (!s->told) {
			s->told = true;
			return 0;
		}
		return -EISCONN;
	case STREAM_LISTENING:
	case STREAM_ENDED:
		return -EISCONN;
	default:
		return -EALREADY;
	}
	err = sockaddr_check(address, bytes);
	if (err)
		return err;
	memset(&s->peer, 0, sizeof(s->peer));
	memcpy(&s->peer, address, sockaddr_bytes(address));
	s->tries = 0;
	s->told = false;
	s->rs.error = 0;
	connect_resolve(s);
	if (s->state == STREAM_FAILED) {
		s->told = true;
		return stream_error(s, -ECONNREFUSED);
	}
	return -EINPROGRESS;
}

int connect_start(struct stream *s, const struct sockaddr *address, socklen_t bytes)
{
	int err = rsocket_lock(&s->rs);

	if (!err)
		err = connect_now(s, address, bytes);
	if (err == -EINPROGRESS && !rsocket_nonblocking(&s->rs, 0)) {
		err = rsocket_wait(&s->rs, connect_is_over,
				   rsocket_deadline(&s->rs.send_timeout));
		if (err == -EAGAIN)
			err = -EINPROGRESS;
		if (!err) {
			s->told = true;
			if (s->state == STREAM_FAILED)
				err = stream_error(s, -ECONNREFUSED);
		}
	}
	rsocket_unlock(&s->rs);
	return err;
}

/* ---- keepalives: an RDMA WRITE of 0 bytes, which a dead peer does not acknowledge ---- */

static void keepalive_send(struct stream *s)
{
	struct ibv_send_wr wr = {
		.wr_id = stream_wr_id(STREAM_CONTROL, 0),
		.opcode = IBV_WR_RDMA_WRITE,
	};

	pthread_mutex_lock(&s->rs.lock);
	stream_progress(s);
	if (s->state == STREAM_CONNECTED && stream_credit_control(&s->credit))
		stream_post(s, &wr);
	rsocket_unlock(&s->rs);
}

/* Sends one due keepalive. Returns milliseconds until the next; -1: none. */
static int keepalive_run(void)
{
	s64 first = FOREVER, now = rsocket_now();
	struct stream *s;

	pthread_mutex_lock(&keepalive_lock);
	for (s = keepalives; s; s = s->keepalive_next)
		if (s->keepalive_at < first)
			first = s->keepalive_at;
	for (s = keepalives; s; s = s->keepalive_next)
		if (s->keepalive_at <= now)
			break;
	if (s) {
		s->keepalive_at = now + s->keepalive_ns;
		rsocket_keep(&s->rs);
	}
	pthread_mutex_unlock(&keepalive_lock);
	if (s) {
		keepalive_send(s);
		rsocket_put(&s->rs);
		return 0;
	}
	if (first == FOREVER)
		return -1;
	first = (first - now) / (s64)NSEC_PER_MSEC + 1;
	return first < INT32_MAX ? (int)first : INT32_MAX;
}

static u32 keepalive_default(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/tcp_keepalive_time", "re");
	u32 seconds = 7200;

	if (!f)
		return seconds;
	if (fscanf(f, "%u", &seconds) != 1 || !seconds)
		seconds = 7200;
	fclose(f);
	return seconds;
}

void connect_keepalive(struct stream *s, bool on)
{
	struct stream **place;

	if (on && !s->rs.keepalive_s)
		s->rs.keepalive_s = keepalive_default();
	pthread_mutex_lock(&keepalive_lock);
	for (place = &keepalives; *place && *place != s; place = &(*place)->keepalive_next)
		;
	if (*place)
		*place = s->keepalive_next;
	if (on) {
		s->keepalive_ns = s->rs.keepalive_s * (s64)NSEC_PER_SEC;
		s->keepalive_at = rsocket_now() + s->keepalive_ns;
		s->keepalive_next = keepalives;
		keepalives = s;
	}
	pthread_mutex_unlock(&keepalive_lock);
	if (on)
		connect_wake();
}
