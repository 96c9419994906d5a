/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of a stream: rshutdown(), rclose(), and the exit of the process.
 *
 * rshutdown() and rclose() do not wait for the peer, which may post no receives, or whose program
 * may make no call for minutes. rshutdown() announces the end of sending; if no slot for a control
 * message is free, stream_progress() posts the announcement later. rclose() leaves the stream to
 * the thread of rsocket_connect.c until the peer has received everything, at most END_NS. Exit
 * waits for these streams, and for the data of open ones, at most EXIT_NS. With SO_LINGER rclose()
 * waits itself.
 */
#define _GNU_SOURCE
#include "rsocket_stream.h"

#include <time.h>

#include "../os/kernel.h"
#include "../os/process.h"
#include "../os/thread.h"

#define END_NS	(60 * (s64)NSEC_PER_SEC)
#define EXIT_NS (5 * (s64)NSEC_PER_SEC)

/* Times between two looks at an ending stream; they double. */
#define LOOK_LEAST_NS (1 * (s64)NSEC_PER_MSEC)
#define LOOK_MOST_NS  (64 * (s64)NSEC_PER_MSEC)

/*
 * Limits of the streams that end: their buffers, QPs and descriptors stay. A stream beyond the
 * limits replaces the oldest one, of the same address if that has half of the limit. A stream that
 * ends for less than a second, as with any peer that answers, is not replaced.
 */
enum { MOST_ENDING = 256, DESCRIPTORS_PER_ENDING = 16 };
#define SAFE_NS (1 * (s64)NSEC_PER_SEC)

/*
 * The list has a reference to each stream, the oldest first. Only the thread removes streams. The
 * lock is taken last, also under the locks of rsockets. Per process.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t removed = PTHREAD_COND_INITIALIZER;
static struct stream *ending, **ending_end = &ending;

void ending_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&removed, NULL);
	ending = NULL;
	ending_end = &ending;
}

/* ---- announcements ---- */

static bool stream_data_is_sent(struct rsocket *rs)
{
	struct stream *s = stream_of(rs);

	return s->state != STREAM_CONNECTED || s->credit.requests == s->requests;
}

static bool stream_all_sent(struct rsocket *rs)
{
	struct stream *s = stream_of(rs);

	return s->state != STREAM_CONNECTED ||
	       (stream_data_is_sent(rs) && s->credit.controls == STREAM_CONTROLS && !s->announces);
}

void stream_announce(struct stream *s)
{
	const bool both = s->announced == WIRE_DISCONNECT;
	struct ibv_send_wr wr = {
		.wr_id = stream_wr_id(both ? STREAM_GOODBYE : STREAM_CONTROL, 0),
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(wire_message(WIRE_CTRL, s->announced)),
	};

	/* Both directions have ended, and the peer has received everything. */
	if (s->peer_ended && !s->writes && stream_all_sent(&s->rs))
		stream_finish(s, 0);
	if (!s->announces || s->state != STREAM_CONNECTED || !stream_credit_control(&s->credit))
		return;
	s->announces = false;
	stream_post(s, &wr);
}

/* Announces the end of sending, or of both directions: now, or when a slot is free. */
static void stream_say(struct stream *s, enum wire_ctrl what)
{
	s->announces = true;
	s->announced = what;
	stream_announce(s);
}

/* ---- streams that end ---- */

/* Gives up the oldest stream if there are too many. Caller holds the lock. */
static void ending_limit(const struct stream *newest, s64 now)
{
	const u32 most = min_u32(MOST_ENDING, kernel_descriptors_max() / DESCRIPTORS_PER_ENDING);
	const struct sockaddr *from = rdma_get_peer_addr(newest->id);
	struct stream *s, *oldest = NULL, *oldest_of_host = NULL;
	u32 all = 0, of_host = 0;

	for (s = ending; s; s = s->ending_next) {
		if (s->ends_at <= now)
			continue;
		all++;
		oldest = oldest ? oldest : s;
		if (!sockaddr_is_same_host(rdma_get_peer_addr(s->id), from))
			continue;
		of_host++;
		oldest_of_host = oldest_of_host ? oldest_of_host : s;
	}
	if (of_host > most / 2)
		oldest = oldest_of_host;
	else if (all <= most)
		return;
	if (now - oldest->began_at >= SAFE_NS)
		oldest->ends_at = oldest->look_at = now;
}

/* Has the thread end the stream, or post its announcement. */
static void ending_add(struct stream *s)
{
	const s64 now = rsocket_now();

	pthread_mutex_lock(&lock);
	if (!s->is_ending) {
		rsocket_keep(&s->rs);
		s->is_ending = true;
		s->ending_next = NULL;
		*ending_end = s;
		ending_end = &s->ending_next;
	}
	s->is_renewed = true;
	s->began_at = now;
	s->ends_at = now + END_NS;
	s->look_ns = LOOK_LEAST_NS;
	s->look_at = now + s->look_ns;
	ending_limit(s, now);
	pthread_mutex_unlock(&lock);
	connect_wake();
}

bool ending_has(const struct stream *s)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = s->is_ending;
	pthread_mutex_unlock(&lock);
	return has;
}

/* Caller holds the lock. */
static void ending_remove(struct stream **place)
{
	struct stream *s = *place;

	*place = s->ending_next;
	if (ending_end == &s->ending_next)
		ending_end = place;
	s->is_ending = false;
	pthread_cond_broadcast(&removed);
}

/* SO_LINGER of zero seconds: rclose() breaks the connection. */
static bool close_aborts(const struct stream *s)
{
	return s->rs.linger.l_onoff && s->rs.linger.l_linger <= 0;
}

/* Processes completions. Returns whether the stream needs the thread no longer. */
static bool ending_look(struct stream *s)
{
	bool done;

	pthread_mutex_lock(&s->rs.lock);
	stream_progress(s);
	done = s->state != STREAM_CONNECTED ||
	       (s->rs.closed ? close_aborts(s) || stream_all_sent(&s->rs) : !s->announces);
	rsocket_unlock(&s->rs);
	return done;
}

int ending_run(void)
{
	const s64 now = rsocket_now();
	struct stream **place = &ending, *s;
	s64 next = FOREVER;
	bool done;

	pthread_mutex_lock(&lock);
	while ((s = *place)) {
		if (s->look_at <= now) {
			/* Meanwhile streams are added at the end, and s may be renewed. */
			s->is_renewed = false;
			pthread_mutex_unlock(&lock);
			done = ending_look(s);
			pthread_mutex_lock(&lock);
			if (!s->is_renewed && (done || s->ends_at <= now)) {
				ending_remove(place);
				pthread_mutex_unlock(&lock);
				rsocket_put(&s->rs);
				pthread_mutex_lock(&lock);
				continue;
			}
			s->look_at = now + s->look_ns;
			s->look_ns = s->look_ns < LOOK_MOST_NS ? 2 * s->look_ns : LOOK_MOST_NS;
		}
		next = s->look_at < next ? s->look_at : next;
		place = &s->ending_next;
	}
	pthread_mutex_unlock(&lock);
	if (next == FOREVER)
		return -1;
	return next <= now ? 0 : (int)((next - now) / (s64)NSEC_PER_MSEC) + 1;
}

/* ---- rshutdown(), rclose() ---- */

int stream_shutdown(struct stream *s, int how)
{
	const bool was_reading = s->reads;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (s->state == STREAM_LISTENING) {
		s->listen_shut |= how != SHUT_WR;
		waiters_wake(&s->rs);
		return 0;
	}
	if (stream_is_opening(s)) {
		stream_fail(s, ECONNRESET);
		return 0;
	}
	if (s->state == STREAM_ENDED)
		return 0;
	if (s->state != STREAM_CONNECTED)
		return -ENOTCONN;
	if (how != SHUT_WR)
		s->reads = false;
	if (how != SHUT_RD && s->writes) {
		s->writes = false;
		s->shut_write = true;
	} else if (how == SHUT_WR || !was_reading || s->writes) {
		waiters_wake(&s->rs);
		return 0;
	}
	waiters_wake(&s->rs);
	stream_say(s, s->reads || s->writes ? WIRE_SHUTDOWN : WIRE_DISCONNECT);
	/* The program may make no further call for this stream. */
	if (s->announces)
		ending_add(s);
	return 0;
}

/* Returns the end of rclose()'s wait: 0, no wait, unless set by SO_LINGER. */
static s64 close_deadline(const struct stream *s)
{
	if (!s->rs.linger.l_onoff || close_aborts(s))
		return 0;
	return rsocket_deadline(&(struct timeval){ .tv_sec = s->rs.linger.l_linger });
}

void stream_close(struct stream *s)
{
	pthread_mutex_lock(&s->rs.lock);
	stream_progress(s);
	if (s->state == STREAM_CONNECTED) {
		s->reads = s->writes = false;
		s->shut_write = true;
		waiters_wake(&s->rs);
		stream_say(s, WIRE_DISCONNECT);
		rsocket_wait_on(&s->rs, stream_all_sent, close_deadline(s));
		if (!close_aborts(s) && !stream_all_sent(&s->rs))
			ending_add(s);
	}
	s->rs.closed = true;
	connect_keepalive(s, false);
	waiters_wake(&s->rs);
	rsocket_unlock(&s->rs);
	listen_end(s);
}

/* ---- exit(3) ---- */

/* Waits until the peer has received the data of an open stream. */
static void exit_wait_data(struct rsocket *rs, s64 until)
{
	/* A signal handler that interrupted the lock's holder may have called exit(3). */
	if (rs->type != SOCK_STREAM || thread_lock_until(&rs->lock, until))
		return;
	rsocket_wait_on(rs, stream_data_is_sent, until);
	rsocket_unlock(rs);
}

/* Waits until the thread has ended all streams that were closed. */
static void exit_wait_ending(s64 until)
{
	const struct timespec end = { .tv_sec = until / (s64)NSEC_PER_SEC,
				      .tv_nsec = until % (s64)NSEC_PER_SEC };
	struct stream *s;

	if (thread_lock_until(&lock, until))
		return;
	for (s = ending; s; s = s->ending_next) {
		s->look_at = 0;
		s->look_ns = LOOK_LEAST_NS;
	}
	connect_wake();
	while (ending && !pthread_cond_clockwait(&removed, &lock, CLOCK_MONOTONIC, &end))
		;
	pthread_mutex_unlock(&lock);
}

/*
 * After exit(3) nothing sends what the QPs still have. Before exit_close_all() of rdmacm/id.c,
 * which ends the connections.
 */
__attribute__((destructor)) static void exit_wait(void)
{
	const s64 until = rsocket_now() + EXIT_NS;
	int cancel;

	if (!process_is_owner())
		return;
	cancel = thread_disable_cancel();
	rsocket_each(exit_wait_data, until);
	exit_wait_ending(until);
	thread_restore_cancel(cancel);
}
