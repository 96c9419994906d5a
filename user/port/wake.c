/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arm words and completion channels: how a thread that sleeps on a CQ is woken, by XDP or by our own threads.
 *
 * A CQ is armed twice. cq->armed is the truth: the engine takes it when it pushes a completion, and reports the event. The word in
 * xroce_cq is for XDP, which takes it when a packet will complete work, and writes a record that wakes the channel: a hint that makes
 * somebody run the engine, no more.
 *
 *   application                 XDP                          engine, under a shard's lock
 *   store cq->armed             take the word, non-zero:     take cq->armed, non-zero: report the event;
 *   store the word (full        write the record, wake       wake_taken(): clear the word, then look at cq->armed again:
 *   barriers both)                                           armed anew meanwhile: set the word again
 *
 * XDP may take the word for a packet that the engine then refuses, or before the packet can be seen. So who consumes a record looks at
 * cq->armed after running the engine: still armed, the word is set again and the engine is run once more. And who sleeps on a channel sleeps on
 * the sockets too, so that nothing depends on a record alone.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "port_state.h"

_Static_assert((u32)XROCE_CQ_ARMED_ANY == (u32)CQ_ARMED_ANY && (u32)XROCE_CQ_ARMED_SOLICITED == (u32)CQ_ARMED_SOLICITED,
	       "the two words have the same values");

/* A ring's worth: 16 bytes a record with its header. */
#define RECORDS_MAX (XROCE_RING_BYTES / 16)

/* From a record to its packet's descriptor: one poll of the kernel's, at most 64 packets. */
#define PUBLISH_MAX_NS (200 * NSEC_PER_USEC)
/* What takes longer, on a CPU that the hypervisor has taken away, is looked for once more. */
#define GIVEN_UP_NS    NSEC_PER_MSEC

struct port_channel {
	int epoll_fd;	/* what the application polls: event_fd and, once joined, the ring */
	int event_fd;
	/* under lock */
	pthread_mutex_t lock;
	struct port *port; /* whose CQs are on it; NULL: none is */
	u32 cqs;
	u32 slot;	/* in xroce_channel */
	int ring_fd;
	struct ring_buffer *ring;
	/* what ring_buffer__consume() found */
	u32 record[RECORDS_MAX];
	u32 records;
};

void wake_init(struct port *port)
{
	pthread_mutex_init(&port->cqs.lock, NULL);
}

void wake_destroy(struct port *port)
{
	pthread_mutex_destroy(&port->cqs.lock);
}

int wake_make_ring(void)
{
	/* libbpf makes map descriptors close-on-exec; bpf_map_create() gives -errno. */
	return bpf_map_create(BPF_MAP_TYPE_RINGBUF, "xroce_ring", 0, 0, XROCE_RING_BYTES, NULL);
}

/* ---- arming ---- */

static u32 *word_of(const struct port *port, const struct cq *cq)
{
	return &port->made.cq[cq->index].armed;
}

/* An arm for any completion is not narrowed to solicited ones: ibv_req_notify_cq(3) adds, it does not replace. */
static void arm_word(u32 *word, u32 want)
{
	u32 disarmed = XROCE_CQ_DISARMED;

	if (want == XROCE_CQ_ARMED_ANY)
		__atomic_store_n(word, want, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(word, &disarmed, want, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/*
 * Set the word that XDP takes. A moderated CQ has none: XDP would wake the channel for each completion. Its events come from whoever runs the
 * engine: a sleeper in port_channel_wait(), which watches the sockets, or the service thread.
 */
static void arm_shared(const struct port *port, const struct cq *cq, u32 want)
{
	if (!atomic_load(&((struct cq *)cq)->moderate_count))
		arm_word(word_of(port, cq), want);
}

/* One by one: of each shard whose engine may have pushed to the CQ. */
static void let_turns_end(struct port *port, const struct cq *cq)
{
	for (u32 shards = cq_engines(cq) | !cq_engines(cq); shards; shards &= shards - 1) {
		struct shard *s = &port->shard[__builtin_ctz(shards)];

		shard_lock(s);
		shard_unlock(s, REPORT_ANY);
	}
}

void port_cq_arm(struct port *port, struct cq *cq, bool solicited_only)
{
	u32 disarmed = CQ_DISARMED;

	/*
	 * Completions have come since the last arming, and their event may be on its way still: whoever runs the engine takes the word once for all that
	 * a call pushes, and reports a CQ's event once for all calls of its turn. It is due whatever is armed now: let that turn end.
	 */
	if (cq_next_index(cq) != atomic_load_explicit(&cq->armed_at, memory_order_relaxed))
		let_turns_end(port, cq);
	atomic_store_explicit(&cq->armed_at, cq_next_index(cq), memory_order_relaxed);
	if (solicited_only)
		atomic_compare_exchange_strong(&cq->armed, &disarmed, CQ_ARMED_SOLICITED);
	else
		atomic_store(&cq->armed, CQ_ARMED_ANY);
	if (port->made.cq[cq->index].channel)
		arm_shared(port, cq, solicited_only ? XROCE_CQ_ARMED_SOLICITED : XROCE_CQ_ARMED_ANY);
}

void wake_taken(struct port *port, struct cq *cq)
{
	u32 armed;

	__atomic_store_n(word_of(port, cq), XROCE_CQ_DISARMED, __ATOMIC_SEQ_CST);
	/* pairs with port_cq_arm(): it stores cq->armed first, so one of us sets the word */
	armed = atomic_load(&cq->armed);
	if (armed)
		arm_shared(port, cq, armed);
}

void port_cq_moderate(struct port *port, struct cq *cq, u32 count, u64 period_ns)
{
	port_lock(port);
	engine_cq_moderate(port_engine(port), cq, count, period_ns);
	if (port->made.cq[cq->index].channel)
		wake_taken(port, cq);
	port_unlock(port);
}

/* ---- CQs ---- */

static int take_index(struct port *port, struct cq *cq, struct port_channel *ch, u32 vector)
{
	struct cq_table *t = &port->cqs;
	int err = -ENOSPC;

	pthread_mutex_lock(&t->lock);
	for (u32 i = 0; i < XROCE_MAX_CQ && err; i++) {
		u32 index = (t->next + i) % XROCE_MAX_CQ;

		if (t->cq[index])
			continue;
		t->cq[index] = cq;
		t->channel_of[index] = ch;
		t->vector_of[index] = (u8)vector;
		t->next = index + 1;
		cq->index = index;
		err = 0;
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

static int take_slot(struct port *port, u32 *slot)
{
	struct cq_table *t = &port->cqs;
	int err = -ENOSPC;

	pthread_mutex_lock(&t->lock);
	for (u32 i = XROCE_MAX_QUEUE; i < XROCE_MAX_CHANNEL && err; i++) { /* those before are the vectors' */
		if (t->channel[i])
			continue;
		t->channel[i] = true;
		*slot = i;
		err = 0;
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

static void release_slot(struct port *port, u32 slot)
{
	pthread_mutex_lock(&port->cqs.lock);
	port->cqs.channel[slot] = false;
	pthread_mutex_unlock(&port->cqs.lock);
}

static int on_record(void *arg, void *data, size_t len)
{
	struct port_channel *ch = arg;
	struct xroce_wakeup w;

	if (len < sizeof(w))
		return 0;
	memcpy(&w, data, sizeof(w));
	if (w.cq < XROCE_MAX_CQ && ch->records < RECORDS_MAX)
		ch->record[ch->records++] = w.cq;
	return 0;
}

static void close_ring(struct port_channel *ch)
{
	if (ch->ring)
		ring_buffer__free(ch->ring);
	ch->ring = NULL;
	if (ch->ring_fd >= 0)
		close(ch->ring_fd); /* leaves the epoll set with its last descriptor */
	ch->ring_fd = -1;
}

/* The first CQ of a port joins: the channel gets its ring. Channel locked. */
static int join(struct port_channel *ch, struct port *port)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err = take_slot(port, &ch->slot);

	if (err)
		return err;
	ch->ring_fd = wake_make_ring();
	if (ch->ring_fd < 0) {
		err = ch->ring_fd;
		goto fail;
	}
	ch->ring = ring_buffer__new(ch->ring_fd, on_record, ch, NULL);
	if (!ch->ring || epoll_ctl(ch->epoll_fd, EPOLL_CTL_ADD, ch->ring_fd, &event)) {
		err = -errno;
		goto fail;
	}
	err = bpf_map_update_elem(port->made.channel_map_fd, &ch->slot, &ch->ring_fd, BPF_ANY);
	if (err)
		goto fail;
	ch->port = port;
	return 0;
fail:
	close_ring(ch);
	release_slot(port, ch->slot);
	return err;
}

/* The last CQ left. Channel locked. */
static void leave(struct port_channel *ch)
{
	struct port *port = ch->port;

	if (!port->dead) {
		epoll_ctl(ch->epoll_fd, EPOLL_CTL_DEL, ch->ring_fd, NULL);
		bpf_map_delete_elem(port->made.channel_map_fd, &ch->slot);
	}
	close_ring(ch);
	release_slot(port, ch->slot);
	ch->port = NULL;
	ch->records = 0;
}

static int join_channel(struct port_channel *ch, struct port *port)
{
	int err;

	pthread_mutex_lock(&ch->lock);
	/* A channel belongs to one device, ibv_create_comp_channel(3). */
	err = !ch->port ? join(ch, port) : ch->port != port ? -EINVAL : 0;
	ch->cqs += !err;
	pthread_mutex_unlock(&ch->lock);
	return err;
}

static void leave_channel(struct port_channel *ch)
{
	pthread_mutex_lock(&ch->lock);
	if (--ch->cqs == 0)
		leave(ch);
	pthread_mutex_unlock(&ch->lock);
}

int port_cq_add(struct port *port, struct cq *cq, struct port_channel *ch, u32 vector)
{
	struct xroce_cq *shared;
	int err;

	/* The interface may have fewer queues now than when it was listed. */
	vector %= port->made.info.queues;
	if (ch) {
		err = join_channel(ch, port);
		if (err)
			return err;
	}
	err = take_index(port, cq, ch, vector);
	if (err) {
		if (ch)
			leave_channel(ch);
		return err;
	}
	shared = &port->made.cq[cq->index];
	__atomic_store_n(&shared->armed, XROCE_CQ_DISARMED, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->wakeups, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->vector, vector, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->channel, ch ? ch->slot : 0, __ATOMIC_RELEASE);
	return 0;
}

void port_cq_remove(struct port *port, struct cq *cq)
{
	struct xroce_cq *shared = &port->made.cq[cq->index];
	struct port_channel *ch;

	port_lock(port);
	engine_cq_forget(port_engine(port), cq);
	port_unlock(port);
	__atomic_store_n(&shared->armed, XROCE_CQ_DISARMED, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->channel, 0, __ATOMIC_RELEASE);
	pthread_mutex_lock(&port->cqs.lock);
	ch = port->cqs.channel_of[cq->index];
	port->cqs.channel_of[cq->index] = NULL;
	port->cqs.cq[cq->index] = NULL;
	pthread_mutex_unlock(&port->cqs.lock);
	if (ch)
		leave_channel(ch);
}

/* ---- channels ---- */

int port_channel_create(struct port_channel **out)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct port_channel *ch = calloc(1, sizeof(*ch));
	int err;

	if (!ch)
		return -ENOMEM;
	ch->ring_fd = -1;
	pthread_mutex_init(&ch->lock, NULL);
	ch->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ch->event_fd < 0 || ch->epoll_fd < 0 || epoll_ctl(ch->epoll_fd, EPOLL_CTL_ADD, ch->event_fd, &event)) {
		err = -errno;
		port_channel_destroy(ch);
		return err;
	}
	*out = ch;
	return 0;
}

void port_channel_destroy(struct port_channel *ch)
{
	if (ch->event_fd >= 0)
		close(ch->event_fd);
	if (ch->epoll_fd >= 0)
		close(ch->epoll_fd);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
}

int port_channel_fd(const struct port_channel *ch)
{
	return ch->epoll_fd;
}

/* syscall() in these two: write() and read() would be cancellation points, and callers hold locks. */
void port_channel_raise(struct port_channel *ch)
{
	const u64 one = 1;

	syscall(SYS_write, ch->event_fd, &one, sizeof(one));
}

void port_channel_clear(struct port_channel *ch)
{
	u64 count;

	syscall(SYS_read, ch->event_fd, &count, sizeof(count));
}

/* Records in the ring, each CQ once or more; copied out so that the engine can be run without the channel's lock. */
static u32 consume(struct port_channel *ch, u32 record[RECORDS_MAX])
{
	u32 n;

	pthread_mutex_lock(&ch->lock);
	if (ch->ring)
		ring_buffer__consume(ch->ring);
	n = ch->records;
	memcpy(record, ch->record, n * sizeof(*record));
	ch->records = 0;
	pthread_mutex_unlock(&ch->lock);
	return n;
}

/* XDP took these words; of CQs that are armed still, set them again. True if any was. */
static bool rearm(struct port *port, const u32 *record, u32 n)
{
	bool any = false;

	pthread_mutex_lock(&port->cqs.lock);
	for (u32 i = 0; i < n; i++) {
		struct cq *cq = port->cqs.cq[record[i]];
		u32 armed = cq ? atomic_load(&cq->armed) : CQ_DISARMED;

		if (armed) {
			arm_shared(port, cq, armed);
			any = true;
		}
	}
	pthread_mutex_unlock(&port->cqs.lock);
	return any;
}

/* A packet may have come by any queue. */
static void run_shards(struct port *port)
{
	for (u32 i = 0; i < port->num_shards; i++)
		shard_run(&port->shard[i]);
}

/*
 * Take the records and run the engine, waiting for the lock: whoever holds it may have looked before the packet came. Returns true if the
 * caller should look for events before it sleeps.
 */
static bool run(struct port_channel *ch, struct port *port)
{
	u32 record[RECORDS_MAX];
	u32 n = consume(ch, record);

	run_shards(port);
	if (n && rearm(port, record, n))
		run_shards(port);
	return n > 0;
}

/* What to sleep on for packets; nothing once none can come. */
static nfds_t add_sockets(const struct port *port, struct pollfd *fds)
{
	nfds_t n = 0;

	if (atomic_load(&((struct port *)port)->gone))
		return 0;
	for (u32 i = 0; i < port->num_shards; i++) {
		const struct xsk_set *set = &port->made.shard[i].xsks;

		for (u32 j = 0; j < set->count; j++)
			fds[n++] = (struct pollfd){ .fd = set->xsk[j].fd, .events = POLLIN };
	}
	return n;
}

/*
 * The same, for a caller who will not sleep on the sockets: a record whose CQ is armed still may have come before its packet, which the kernel
 * publishes at the end of its poll. The descriptor was readable because of it, so it is waited for, but not for long: it may have been refused.
 */
static void run_for_records(struct port_channel *ch, struct port *port, bool always)
{
	const struct timespec moment = { .tv_nsec = PUBLISH_MAX_NS };
	struct pollfd fds[XROCE_MAX_QUEUE];
	u32 record[RECORDS_MAX];
	u32 n = consume(ch, record);
	bool early = false;

	if (!n && !always)
		return;
	run_shards(port);
	if (n && rearm(port, record, n)) {
		run_shards(port);
		early = rearm(port, record, n);
	}
	if (!early)
		return;
	/* by syscall(): no cancellation point, the caller may have an event in hand */
	syscall(SYS_ppoll, fds, add_sockets(port, fds), &moment, NULL, 0);
	run_shards(port);
}

static struct port *port_of(struct port_channel *ch)
{
	struct port *port;

	pthread_mutex_lock(&ch->lock);
	port = ch->port && !ch->port->dead ? ch->port : NULL;
	if (port)
		port_hold(port);
	pthread_mutex_unlock(&ch->lock);
	return port;
}

/* A thread is cancelled while it sleeps: nobody looks for what has come. The service threads do. */
static void sleeper_cancelled(void *arg)
{
	struct port *port = arg;

	if (!port)
		return;
	service_sleeper_leave(port);
	for (u32 i = 0; i < port->num_shards; i++)
		service_kick(&port->shard[i]);
}

/* Packets of a queue that XDP announced to nobody and that have not come yet. Less than none: one came after it had been given up. */
static s64 unannounced(const struct port *port, const struct xsk_set *set, u32 i)
{
	return (s64)(__atomic_load_n(&port->made.vector[xsk_queue(set, i)].unannounced, __ATOMIC_SEQ_CST) -
		     atomic_load_explicit(&set->xsk[i].unannounced, memory_order_relaxed));
}

static bool any_unannounced(const struct port *port)
{
	for (u32 i = 0; i < port->num_shards; i++)
		for (u32 j = 0; j < port->made.shard[i].xsks.count; j++)
			if (unannounced(port, &port->made.shard[i].xsks, j))
				return true;
	return false;
}

/* They are late, or the kernel dropped them at a full ring and they will never come: the service threads look once more. */
static void give_up_unannounced(struct port *port)
{
	port_lock(port);
	for (u32 i = 0; i < port->num_shards; i++) {
		struct xsk_set *set = &port->made.shard[i].xsks;

		for (u32 j = 0; j < set->count; j++) {
			s64 missing = unannounced(port, set, j);

			if (missing)
				atomic_fetch_add_explicit(&set->xsk[j].unannounced, (u64)missing, memory_order_relaxed);
			if (missing > 0)
				atomic_store(&port->shard[i].resume_ns, port_now_ns() + GIVEN_UP_NS);
		}
	}
	port_unlock(port);
}

static void drop_port(void *arg)
{
	if (arg)
		port_put(arg);
}

static struct timespec time_left(const struct port *port)
{
	u64 deadline_ns = port_deadline_ns(port), now_ns = port_now_ns();
	u64 left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

	return (struct timespec){ .tv_sec = (time_t)(left_ns / NSEC_PER_SEC), .tv_nsec = (long)(left_ns % NSEC_PER_SEC) };
}

static int poll_all(const struct port_channel *ch, const struct port *port, const struct timespec *timeout)
{
	struct pollfd fds[1 + XROCE_MAX_QUEUE] = { { .fd = ch->epoll_fd, .events = POLLIN } };

	return ppoll(fds, 1 + (port ? add_sockets(port, fds + 1) : 0), timeout, NULL) < 0 && errno == EINTR ? -EINTR : 0;
}

/*
 * The last sleeper has left, and the shards have been run: what XDP saw before, and so announced to nobody, comes at the end of the kernel's poll. Whoever sleeps next on
 * the sockets sees to it as well.
 */
static void await_unannounced(struct port *port)
{
	u64 until_ns = 0, now_ns;

	while (unlikely(any_unannounced(port)) && !atomic_load(&port->sleepers) && !atomic_load(&port->gone)) {
		struct timespec left = { 0 };
		struct pollfd fds[XROCE_MAX_QUEUE];

		now_ns = port_now_ns();
		until_ns = until_ns ? until_ns : now_ns + PUBLISH_MAX_NS;
		if (now_ns >= until_ns) {
			give_up_unannounced(port);
			return;
		}
		left.tv_nsec = (long)(until_ns - now_ns);
		/* by syscall(): no cancellation point */
		syscall(SYS_ppoll, fds, add_sockets(port, fds), &left, NULL, 0);
		run_shards(port);
	}
}

/* Sleep on the channel and on its port's sockets. A thread may be cancelled here, and only here. Returns 0 or -EINTR. */
static int sleep_on(struct port_channel *ch, struct port *port)
{
	struct timespec timeout;
	int err;

	if (port) {
		service_sleeper_enter(port);
		timeout = time_left(port);
	}
	pthread_cleanup_push(sleeper_cancelled, port);
	err = poll_all(ch, port, port ? &timeout : NULL);
	pthread_cleanup_pop(0);
	if (port)
		service_sleeper_leave(port);
	return err;
}

int port_channel_wait(struct port_channel *ch, bool block)
{
	struct port *port = port_of(ch);
	int err = 0;

	pthread_cleanup_push(drop_port, port);
	/* Before the first sleep too: whoever drives the engine by nothing but this call may have packets waiting. */
	if (!block) {
		if (port)
			run_for_records(ch, port, true);
	} else if (!port || !run(ch, port)) {
		err = sleep_on(ch, port);
		/* After a signal as well: between the sleeper's leaving and this, nobody looked at the sockets. */
		if (port) {
			run(ch, port);
			await_unannounced(port);
		}
	}
	pthread_cleanup_pop(1);
	return err;
}

void port_channel_settle(struct port_channel *ch)
{
	struct port *port = port_of(ch);

	if (!port)
		return;
	run_for_records(ch, port, false);
	port_put(port);
}
