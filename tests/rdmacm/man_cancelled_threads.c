/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * pthread_cancel(3) of a thread in a call of the library: the thread holds no lock, loses no event
 * and no byte, and other threads continue with the same objects.
 */
#include <rdma/rsocket.h>

#include "../verbs/cancelled.h"
#include "man.h"

/* ---- events ---- */

static int get_event(void *channel)
{
	struct rdma_cm_event *event;

	return rdma_get_cm_event(channel, &event);
}

static bool an_event_waits(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;
	struct cancelled c;

	MUST(ch && (id = resolving(ch, AF_INET)));
	MUST(readable(ch->fd, WAIT_MS));
	MUST(cancelled_calls(&c, get_event, ch));
	MUST(!c.returned);
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST(no_event(ch));
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}

static bool no_event_comes(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	MUST(ch);
	MUST(cancelled_sleeps(get_event, ch));
	MUST(id = resolving(ch, AF_INET));
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}

struct migration {
	struct rdma_cm_id *id;
	struct rdma_event_channel *to;
};

static int migrate(void *arg)
{
	struct migration *m = arg;

	return rdma_migrate_id(m->id, m->to);
}

/* The call puts an event in a channel: it is no cancellation point. */
static bool an_event_is_moved(void)
{
	struct rdma_event_channel *from = rdma_create_event_channel();
	struct migration m = { .to = rdma_create_event_channel() };
	struct cancelled c;

	MUST(from && m.to && (m.id = resolving(from, AF_INET)));
	MUST(readable(from->fd, WAIT_MS));
	MUST(cancelled_calls(&c, migrate, &m));
	MUST(c.returned);
	MUST_EQ(c.rc, 0);
	MUST(no_event(from));
	MUST(take(m.to, m.id, RDMA_CM_EVENT_ADDR_RESOLVED));
	MUST_EQ(rdma_destroy_id(m.id), 0);
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(m.to);
	return true;
}

static int destroy_cancelled(void *id)
{
	pthread_cancel(pthread_self());
	return rdma_destroy_id(id);
}

/* A thread that ended half-way would leave an id that no thread can use or destroy. */
static bool destroy_id_waits(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct destruction d;
	struct rdma_cm_id *id;

	MUST(ch && (id = resolving(ch, AF_INET)));
	MUST(event = next_event(ch));
	MUST(destroy_begins(&d, destroy_cancelled, id));
	MUST_EQ(rdma_ack_cm_event(event), 0);
	MUST(destroy_ends(&d));
	rdma_destroy_event_channel(ch);
	return true;
}

static int get_request(void *listen)
{
	struct rdma_cm_id *id;

	return rdma_get_request(listen, &id);
}

static bool a_request_is_awaited(void)
{
	union address any = wild(AF_INET, 0);
	struct rdma_cm_id *listen;

	MUST_EQ(rdma_create_id(NULL, &listen, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_bind_addr(listen, &any.sa), 0);
	MUST_EQ(rdma_listen(listen, 1), 0);
	MUST(cancelled_sleeps(get_request, listen));
	return rdma_destroy_id(listen) == 0;
}

/* ---- rsockets ---- */

struct stream {
	int listen, end[2];
	struct pollfd poll;
};

static int stream_connect(void *arg)
{
	struct stream *s = arg;
	struct sockaddr_in to;
	socklen_t len = sizeof(to);

	return rgetsockname(s->listen, (struct sockaddr *)&to, &len) ||
	       rconnect(s->end[0], (struct sockaddr *)&to, len);
}

static void *stream_connects(void *arg)
{
	return stream_connect(arg) ? arg : NULL;
}

static bool stream_listen(struct stream *s)
{
	union address at = own(AF_INET, 0);

	MUST((s->listen = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	MUST_EQ(rbind(s->listen, &at.sa, sizeof(at.in)), 0);
	MUST_EQ(rlisten(s->listen, 1), 0);
	return true;
}

static bool stream_join(struct stream *s)
{
	pthread_t thread;
	void *failed;

	MUST((s->end[0] = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	MUST_EQ(pthread_create(&thread, NULL, stream_connects, s), 0);
	MUST((s->end[1] = raccept(s->listen, NULL, NULL)) >= 0);
	MUST_EQ(pthread_join(thread, &failed), 0);
	MUST(!failed);
	return true;
}

static bool stream_close(struct stream *s)
{
	return !rclose(s->end[0]) && !rclose(s->end[1]) && !rclose(s->listen);
}

static int stream_accepts(void *arg)
{
	return raccept(((struct stream *)arg)->listen, NULL, NULL);
}

static int stream_receives(void *arg)
{
	char byte;

	return (int)rrecv(((struct stream *)arg)->end[1], &byte, 1, 0);
}

static int stream_polls(void *arg)
{
	return rpoll(&((struct stream *)arg)->poll, 1, -1);
}

static bool stream_carries(struct stream *s)
{
	char byte = 0;

	MUST_EQ(rsend(s->end[0], "7", 1, 0), 1);
	MUST_EQ(rrecv(s->end[1], &byte, 1, 0), 1);
	MUST_EQ(byte, '7');
	return true;
}

static bool a_stream_is_awaited(void)
{
	struct stream s;

	MUST(stream_listen(&s));
	MUST(cancelled_sleeps(stream_accepts, &s));
	MUST(stream_join(&s) && stream_carries(&s));
	return stream_close(&s);
}

static bool a_byte_is_awaited(void)
{
	struct stream s;

	MUST(stream_listen(&s) && stream_join(&s));
	for (int i = 0; i < 3; i++) {
		MUST(cancelled_sleeps(stream_receives, &s));
		MUST(stream_carries(&s));
	}
	return stream_close(&s);
}

static bool a_poll_sleeps(void)
{
	struct stream s;

	MUST(stream_listen(&s) && stream_join(&s));
	s.poll = (struct pollfd){ .fd = s.end[1], .events = POLLIN };
	for (int i = 0; i < 3; i++) {
		MUST(cancelled_sleeps(stream_polls, &s));
		MUST(stream_carries(&s));
	}
	return stream_close(&s);
}

const struct test_case man_cases[] = {
	CASE(an_event_waits),
	CASE(no_event_comes),
	CASE(an_event_is_moved),
	CASE(destroy_id_waits),
	CASE(a_request_is_awaited),
	CASE(a_stream_is_awaited),
	CASE(a_byte_is_awaited),
	CASE(a_poll_sleeps),
	{ 0 },
};
