/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Incoming connections of a listener, in three queues: waiting (a REQ, which costs an id), answered
 * (with buffers and a queue pair), ready for raccept(). The backlog limits answered and ready
 * connections together, and backlog + LEAST_WAITING the waiting ones. Further requests are
 * rejected.
 *
 * A peer may request many connections and never complete them. So the last quarter of the backlog
 * is for addresses with few answered connections, and a full queue of waiting requests loses the
 * newest one of the address with the most. Addresses may be forged, though: while a request waits
 * for a place, the oldest answered connection gives its place up after CONFIRM_NS, as TCP drops
 * the oldest half-open connections.
 */
#include "rsocket_stream.h"

#include <stdlib.h>

#include "../os/kernel.h"

enum { LEAST_WAITING = 128, MOST_BACKLOG = 4096, SHARES = 1024 };
/* Parts of the backlog: reserved, and the most of an address there. */
enum { RESERVED = 4, FEW = 16 };

#define CONFIRM_NS (1 * (s64)NSEC_PER_SEC)

/*
 * Listeners with waiting requests, without references. The lock is taken last, also under the
 * locks of rsockets. Per process.
 */
static pthread_mutex_t crowded_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *crowded;

/*
 * Numbers of connections by the hash of their peer's address. The key is random, so that no peer
 * can choose an address with the same hash as another's. Under the listener's lock.
 */
struct listen_shares {
	u64 key;
	u16 waiting[SHARES], answered[SHARES];
};
_Static_assert(MOST_BACKLOG + LEAST_WAITING <= UINT16_MAX, "counts of struct listen_shares");

static u32 shares_hash(const struct listen_shares *shares, const struct sockaddr *peer)
{
	size_t n, i;
	const u8 *host = sockaddr_host(peer, &n);
	u64 h = shares->key;

	for (i = 0; i < n; i++) {
		h = (h ^ host[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	return (u32)(h >> 32) % SHARES;
}

/* Returns the hash with the largest number. */
static u32 shares_largest(const u16 *numbers)
{
	u32 i, largest = 0;

	for (i = 1; i < SHARES; i++)
		if (numbers[i] > numbers[largest])
			largest = i;
	return largest;
}

/* ---- queues; under the listener's lock ---- */

static void queue_add(struct stream_queue *queue, struct stream *s)
{
	s->next = NULL;
	s->queue = queue;
	*queue->end = s;
	queue->end = &s->next;
	queue->count++;
	if (queue->numbers)
		queue->numbers[s->share]++;
}

static void queue_remove(struct stream *s)
{
	struct stream_queue *queue = s->queue;
	struct stream **place = &queue->first;

	while (*place != s)
		place = &(*place)->next;
	*place = s->next;
	if (!s->next)
		queue->end = place;
	queue->count--;
	if (queue->numbers)
		queue->numbers[s->share]--;
	s->queue = NULL;
}

/* Returns n divided by `by`, at least 1. */
static u32 listen_part(u32 n, u32 by)
{
	return n < 2 * by ? 1 : n / by;
}

/* Returns whether a request of an address with this hash may be answered. */
static bool listen_may_answer(const struct stream *l, u32 share)
{
	const u32 all = l->backlog + 1, used = l->answered.count + l->ready.count;

	if (used + listen_part(all, RESERVED) < all)
		return true;
	return used < all && l->shares->answered[share] < listen_part(all, FEW);
}

/*
 * Makes room for a request of an address with this hash, if another has more in the full queue of
 * waiting ones. Returns the removed request, which the caller refuses; NULL: no room.
 */
static struct stream *listen_make_room(struct stream *l, u32 share)
{
	const u16 *numbers = l->shares->waiting;
	const u32 largest = shares_largest(numbers);
	struct stream *s, *newest = NULL;

	if (numbers[largest] <= numbers[share] + 1)
		return NULL;
	for (s = l->waiting.first; s; s = s->next)
		if (s->share == largest)
			newest = s;
	queue_remove(newest);
	return newest;
}

/* Ends a request or a connection that was removed from its queue. Not under a lock. */
static void listen_drop(struct stream *s)
{
	pthread_mutex_lock(&s->rs.lock);
	/* The event thread treats it as closed. */
	s->rs.closed = true;
	if (s->state == STREAM_ASKED)
		rdma_reject(s->id, NULL, 0);
	rsocket_unlock(&s->rs);
	rsocket_put(&s->rs);
}

/* ---- connections that are not confirmed ---- */

void listen_fork(void)
{
	pthread_mutex_init(&crowded_lock, NULL);
	crowded = NULL;
}

/* In the thread of rsocket_connect.c, which looks at the listener before it sleeps. */
static void crowded_add(struct stream *l)
{
	pthread_mutex_lock(&crowded_lock);
	if (!l->is_crowded) {
		l->is_crowded = true;
		l->crowded_next = crowded;
		crowded = l;
	}
	pthread_mutex_unlock(&crowded_lock);
}

static void crowded_remove(struct stream *l)
{
	struct stream **place = &crowded;

	pthread_mutex_lock(&crowded_lock);
	if (l->is_crowded) {
		while (*place != l)
			place = &(*place)->crowded_next;
		*place = l->crowded_next;
		l->is_crowded = false;
	}
	pthread_mutex_unlock(&crowded_lock);
}

/* Returns a listener of the list with a reference, the first one or that after l; NULL: none. */
static struct stream *crowded_after(struct stream *l)
{
	struct stream *next;

	pthread_mutex_lock(&crowded_lock);
	next = !l ? crowded : l->is_crowded ? l->crowded_next : NULL;
	if (next)
		rsocket_keep(&next->rs);
	pthread_mutex_unlock(&crowded_lock);
	return next;
}

/*
 * Removes the oldest answered connection from its queue if a request waits for its place and its
 * time is over. Returns the connection, which the caller drops, or NULL and the time of the next
 * look in *next.
 */
static struct stream *listen_overdue(struct stream *l, s64 now, s64 *next)
{
	struct stream *s;

	*next = FOREVER;
	pthread_mutex_lock(&l->rs.lock);
	s = l->answered.first;
	if (!l->waiting.first) {
		crowded_remove(l);
		s = NULL;
	} else if (!s) {
		*next = now + CONFIRM_NS;
	} else if (s->answered_at + CONFIRM_NS > now) {
		*next = s->answered_at + CONFIRM_NS;
		s = NULL;
	} else {
		queue_remove(s);
	}
	rsocket_unlock(&l->rs);
	return s;
}

int listen_run(void)
{
	const s64 now = rsocket_now();
	struct stream *l = crowded_after(NULL), *s, *after;
	s64 first = FOREVER, next;

	while (l) {
		while ((s = listen_overdue(l, now, &next))) {
			listen_drop(s);
			listen_next(l);
		}
		first = next < first ? next : first;
		after = crowded_after(l);
		rsocket_put(&l->rs);
		l = after;
	}
	return first == FOREVER ? -1 : (int)((first - now) / (s64)NSEC_PER_MSEC) + 1;
}

/* ---- rlisten() ---- */

static int listen_make_shares(struct stream *s)
{
	int err;

	if (s->shares)
		return 0;
	s->shares = calloc(1, sizeof(*s->shares));
	if (!s->shares)
		return -ENOMEM;
	err = kernel_random(&s->shares->key, sizeof(s->shares->key));
	if (err) {
		free(s->shares);
		s->shares = NULL;
		return err;
	}
	s->waiting.numbers = s->shares->waiting;
	s->answered.numbers = s->shares->answered;
	return 0;
}

/* Caller holds the lock. Returns 0 or -errno. */
static int listen_begin(struct stream *s)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)s->rs.domain };
	int err = listen_make_shares(s);

	if (err)
		return err;
	/* An id without an address would listen on IPv4 only. */
	if (!s->bound.ss_family && !rdma_bind_addr(s->id, (struct sockaddr *)&any))
		s->bound = any;
	/* Before the first REQ can come. */
	s->state = STREAM_LISTENING;
	if (!rdma_listen(s->id, (int)s->backlog + LEAST_WAITING))
		return 0;
	err = -errno;
	s->state = STREAM_NEW;
	return err;
}

int listen_start(struct stream *s, int backlog)
{
	int err = rsocket_lock(&s->rs);

	/* As listen(2) does, takes a negative backlog for a large one. */
	s->backlog = backlog < 0 || backlog > MOST_BACKLOG ? MOST_BACKLOG :
		     backlog				   ? (u32)backlog :
							     1;
	if (!err && s->state == STREAM_NEW)
		err = listen_begin(s);
	else if (!err && s->state != STREAM_LISTENING)
		err = -EINVAL;
	s->listen_shut = false;
	rsocket_unlock(&s->rs);
	return err;
}

/* ---- requests ---- */

/* Accepts the peer's request. Caller holds only the lock of s. Returns 0 or -errno. */
static int listen_answer(struct stream *s)
{
	u8 data[WIRE_CONN_BYTES];
	struct rdma_conn_param param = s->asked_param;
	int err = stream_make(s);

	if (err)
		return err;
	stream_begin(s, &s->asked);
	stream_tell(s, data);
	param.private_data = data;
	param.private_data_len = sizeof(data);
	s->state = STREAM_ANSWERED;
	return rdma_accept(s->id, &param) ? -errno : 0;
}

/* Creates a stream with the listener's options but its own state. NULL: no memory. */
static struct stream *listen_child(struct stream *l, struct rdma_cm_event *e)
{
	struct stream *s = stream_alloc(l->rs.domain);

	if (!s)
		return NULL;
	s->rs.send_bytes = l->rs.send_bytes;
	s->rs.receive_bytes = l->rs.receive_bytes;
	s->rs.requests = l->rs.requests;
	s->rs.receives = l->rs.receives;
	s->rs.inlined = l->rs.inlined;
	s->rs.iomap_size = l->rs.iomap_size;
	s->rs.no_delay = l->rs.no_delay;
	s->rs.oob_inline = l->rs.oob_inline;
	s->rs.linger = l->rs.linger;
	s->rs.tos = l->rs.tos;
	s->rs.keepalive_s = l->rs.keepalive_s;
	s->rs.reuse_address = l->rs.reuse_address;
	s->told = true;
	s->state = STREAM_ASKED;
	s->id = e->id;
	s->id->context = s;
	s->asked_param = (struct rdma_conn_param){
		.flow_control = 1,
		.rnr_retry_count = 7,
	};
	s->listener = l;
	rsocket_keep(&l->rs);
	return s;
}

struct stream *listen_asked(struct stream *l, struct rdma_cm_event *e)
{
	const struct rdma_conn_param *param = &e->param.conn;
	struct stream *s = NULL, *dropped = NULL;
	struct wire_conn asked;
	bool answer = false, room, gone = false;
	u32 share;

	e->id->context = NULL;
	if (!wire_get_conn(&asked, param->private_data, param->private_data_len)) {
		rdma_reject(e->id, NULL, 0);
		return NULL;
	}
	pthread_mutex_lock(&l->rs.lock);
	room = !l->rs.closed && !l->listen_shut;
	if (room) {
		share = shares_hash(l->shares, rdma_get_peer_addr(e->id));
		answer = listen_may_answer(l, share);
		if (!answer && l->waiting.count >= l->backlog + LEAST_WAITING) {
			dropped = listen_make_room(l, share);
			room = dropped;
		}
	}
	if (room)
		s = listen_child(l, e);
	if (s) {
		/* No other thread knows s yet, so this cannot block. */
		pthread_mutex_lock(&s->rs.lock);
		s->asked = asked;
		s->share = share;
		s->answered_at = rsocket_now();
		queue_add(answer ? &l->answered : &l->waiting, s);
		if (!answer)
			crowded_add(l);
	}
	rsocket_unlock(&l->rs);
	if (dropped)
		listen_drop(dropped);
	if (!s) {
		rdma_reject(e->id, NULL, 0);
		return NULL;
	}
	if (answer && listen_answer(s)) {
		rdma_reject(s->id, NULL, 0);
		gone = listen_failed(s);
	}
	rsocket_unlock(&s->rs);
	return gone ? s : NULL;
}

void listen_established(struct stream *s)
{
	struct stream *l = s->listener;

	s->state = STREAM_CONNECTED;
	pthread_mutex_lock(&l->rs.lock);
	if (s->queue) {
		queue_remove(s);
		queue_add(&l->ready, s);
		l->rs.standin.arrived = true;
		waiters_wake(&l->rs);
	}
	rsocket_unlock(&l->rs);
}

void listen_device_gone(struct stream *l)
{
	l->listen_shut = true;
	l->rs.error = ENODEV;
	waiters_wake(&l->rs);
}

bool listen_failed(struct stream *s)
{
	struct stream *l = s->listener;
	bool mine;

	s->state = STREAM_FAILED;
	pthread_mutex_lock(&l->rs.lock);
	mine = s->queue;
	if (mine)
		queue_remove(s);
	rsocket_unlock(&l->rs);
	return mine;
}

void listen_end(struct stream *l)
{
	struct stream_queue *queues[] = { &l->waiting, &l->answered, &l->ready };
	u32 i;

	crowded_remove(l);
	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		for (;;) {
			struct stream *s;

			pthread_mutex_lock(&l->rs.lock);
			s = queues[i]->first;
			if (s)
				queue_remove(s);
			rsocket_unlock(&l->rs);
			if (!s)
				break;
			listen_drop(s);
		}
	}
}

/*
 * Moves the first waiting request that may be answered to the answered ones. Returns the request
 * with a reference, or NULL.
 */
static struct stream *listen_take_waiting(struct stream *l)
{
	struct stream *s;

	pthread_mutex_lock(&l->rs.lock);
	s = l->rs.closed ? NULL : l->waiting.first;
	while (s && !listen_may_answer(l, s->share))
		s = s->next;
	if (s) {
		queue_remove(s);
		s->answered_at = rsocket_now();
		queue_add(&l->answered, s);
		rsocket_keep(&s->rs);
	}
	rsocket_unlock(&l->rs);
	return s;
}

void listen_next(struct stream *l)
{
	struct stream *s;

	while ((s = listen_take_waiting(l))) {
		bool gone = false;

		pthread_mutex_lock(&s->rs.lock);
		if (!s->rs.closed && s->state == STREAM_ASKED && listen_answer(s)) {
			rdma_reject(s->id, NULL, 0);
			gone = listen_failed(s);
		}
		rsocket_unlock(&s->rs);
		if (gone)
			rsocket_put(&s->rs);
		rsocket_put(&s->rs);
	}
}

static bool listen_is_ready(struct rsocket *rs)
{
	struct stream *l = stream_of(rs);

	return l->ready.first || l->listen_shut;
}

int listen_accept(struct stream *l, struct stream **accepted)
{
	struct stream *s = NULL;
	s64 deadline;
	int err;

	pthread_mutex_lock(&l->rs.lock);
	deadline = rsocket_nonblocking(&l->rs, 0) ? 0 : rsocket_deadline(&l->rs.receive_timeout);
	err = l->state == STREAM_LISTENING ? rsocket_wait(&l->rs, listen_is_ready, deadline) :
					     -EINVAL;
	if (!err)
		s = l->ready.first;
	if (s) {
		/* without a free descriptor the connection stays for the next call (accept(2)) */
		err = rsocket_number(&s->rs);
		if (!err)
			queue_remove(s);
	} else if (!err) {
		err = stream_error(l, -EINVAL);
	}
	rsocket_unlock(&l->rs);
	if (err)
		return err;
	/* The event thread may still be using the queue. */
	pthread_mutex_lock(&s->rs.lock);
	s->listener = NULL;
	rsocket_unlock(&s->rs);
	rsocket_put(&l->rs);
	listen_next(l);
	*accepted = s;
	return 0;
}
