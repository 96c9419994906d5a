/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The service thread: it works on the port while the application does not, so that ACKs, READ responses and retransmissions leave
 * while the application computes or sleeps. It is completion vector 0's; those of other vectors (vector.c) follow its state. It uses no CPU while nothing happens.
 *
 *   WATCH    nobody drives the port. It sleeps on the sockets, and until the port's next deadline; then it serves.
 *   STANDBY  the application drives. It sleeps without the sockets, so that no packet wakes it:
 *            - while threads poll or post, for one tick; no sign of them in a whole tick: WATCH. The first tick is short, since a thread that
 *              came by to post once is gone again; ticks double while it stays.
 *            - while threads sleep in port_channel_wait(), for a long tick: they watch the sockets themselves.
 *
 * Who tells whom, so that nothing is left lying:
 *
 *   driven          moved by every call that drives the port; looked at here once a wake-up.
 *   sleepers        counted by port_channel_wait(). When the last one leaves, it sets asleep (below) and then runs the port once more.
 *   asleep          in xroce_vector, of each queue: stored by sleepers, cleared here, taken by XDP, which then writes to a ring. It covers the time between
 *                   the last sleeper's leaving and the end of the long tick.
 *   sleep_until_ns  stored here, full fence, then the deadline is read again. Who has run the port (and so moved the deadline) passes a full
 *                   fence and reads it: if the deadline is sooner, it wakes this thread by control_fd. One of the two sees the other.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "port_state.h"

#define TICK_MIN_NS	    (50 * NSEC_PER_USEC)
#define TICK_MAX_NS	    (1 * NSEC_PER_MSEC)
#define LONG_TICK_NS	    (100 * NSEC_PER_MSEC)
#define SLEEPERS_SLACK_NS   (1 * NSEC_PER_MSEC) /* sleepers come first for a deadline that they knew of */
/* calls without letting down what waited for them, before anything does: doubled by each time it was let down, one less for each time it was not */
#define TRUST_MIN	    8
#define TRUST_MAX	    4096
#define SPIN_DEFAULT_US	    100
#define SPIN_LIMIT_US	    1000000

/* ---- what others call ---- */

void service_driven(struct port *port)
{
	struct service *s = &port->service;
	u32 trust = atomic_load_explicit(&s->trust, memory_order_relaxed);

	/* Two threads may store the same value: it has moved all the same. */
	atomic_store_explicit(&s->driven, atomic_load_explicit(&s->driven, memory_order_relaxed) + 1, memory_order_relaxed);
	if (trust < TRUST_MAX)
		atomic_store_explicit(&s->trust, trust + 1, memory_order_relaxed);
}

bool service_may_wait(struct port *port)
{
	struct service *s = &port->service;
	u32 needed = atomic_load_explicit(&s->trust_needed, memory_order_relaxed);

	if (atomic_load_explicit(&s->trust, memory_order_relaxed) < needed || atomic_load_explicit(&s->sleepers, memory_order_relaxed))
		return false;
	/* in STANDBY without sleepers it is 0, and the next tick looks at resume_ns */
	if (atomic_load(&s->sleep_until_ns) && atomic_exchange(&s->sleep_until_ns, 0))
		vector_kick(&s->vector[0]);
	return true;
}

/* When this thread must see to the port at the latest. */
static u64 due_ns(const struct port *port)
{
	u64 deadline_ns = port_deadline_ns(port);
	bool slack = atomic_load(&port->service.sleepers) > 0 && deadline_ns < NSEC_NEVER - SLEEPERS_SLACK_NS;

	return deadline_ns + (slack ? SLEEPERS_SLACK_NS : 0);
}

void service_nudge(struct port *port)
{
	struct service *s = &port->service;
	u64 until_ns = atomic_load(&s->sleep_until_ns);

	/* The exchange lets one of several be the one that pays for the system call. */
	if (until_ns && due_ns(port) < until_ns && atomic_compare_exchange_strong(&s->sleep_until_ns, &until_ns, 0))
		vector_kick(&s->vector[0]);
}

static void set_asleep(struct port *port)
{
	for (u32 i = 0; i < port->made.info.queues; i++)
		__atomic_store_n(&port->made.vector[i].asleep, 1, __ATOMIC_SEQ_CST);
}

static void clear_asleep(struct port *port)
{
	for (u32 i = 0; i < port->made.info.queues; i++)
		if (__atomic_load_n(&port->made.vector[i].asleep, __ATOMIC_RELAXED))
			__atomic_store_n(&port->made.vector[i].asleep, 0, __ATOMIC_SEQ_CST);
}

void service_sleeper_enter(struct port *port)
{
	if (atomic_fetch_add(&port->service.sleepers, 1) == 0)
		clear_asleep(port);
}

void service_sleeper_leave(struct port *port)
{
	service_driven(port);
	if (atomic_fetch_sub(&port->service.sleepers, 1) == 1)
		set_asleep(port);
}

/* ---- the thread ---- */

bool service_serve(struct port *port, struct vector *v, u64 driven)
{
	struct service *s = &port->service;
	u64 idle_since_ns = 0;
	bool moved;

	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		u64 now_ns;

		if (atomic_load_explicit(&s->driven, memory_order_relaxed) != driven)
			return false;
		port_lock(port);
		moved = pump_run(port);
		port_unlock_for(port, v->number);
		if (moved) {
			idle_since_ns = 0;
			continue;
		}
		now_ns = port_now_ns();
		if (!idle_since_ns)
			idle_since_ns = now_ns;
		if (now_ns - idle_since_ns >= v->spin_ns)
			break;
	}
	return true;
}

static struct timespec until(u64 then_ns)
{
	u64 now_ns = port_now_ns();
	u64 left_ns = then_ns > now_ns ? then_ns - now_ns : 0;

	return (struct timespec){ .tv_sec = (time_t)(left_ns / NSEC_PER_SEC), .tv_nsec = (long)(left_ns % NSEC_PER_SEC) };
}

/* Sleep as the state at the head of this file says; then take in what came. */
static void doze(struct port *port, bool standby, u64 tick_ns)
{
	struct service *s = &port->service;
	struct vector *v = &s->vector[0];
	struct pollfd fds[VECTOR_FDS + XROCE_MAX_QUEUE];
	const bool sleepers = standby && atomic_load(&s->sleepers) > 0;
	const u64 since_ns = port_now_ns();
	u64 until_ns = standby ? since_ns + (sleepers ? LONG_TICK_NS : tick_ns) : NSEC_NEVER;
	struct timespec timeout;
	nfds_t n = VECTOR_FDS;
	bool woken;

	vector_sleep_on(v, fds);
	if (!sleepers)
		clear_asleep(port);
	if (!standby || sleepers) {
		until_ns = min_u64(until_ns, due_ns(port));
		atomic_store(&s->sleep_until_ns, until_ns);
		atomic_thread_fence(memory_order_seq_cst);
		/* Published: look again at what it was made of. */
		if (due_ns(port) < until_ns || (sleepers && !atomic_load(&s->sleepers)))
			goto awake;
	}
	if (!standby && !atomic_load(&port->gone))
		for (u32 i = 0; i < port->made.xsks.count; i++)
			if (i == 0 || !atomic_load(&s->vector[i].started))
				fds[n++] = (struct pollfd){ .fd = port->made.xsks.xsk[i].fd, .events = POLLIN };
	timeout = until(until_ns);
	woken = ppoll(fds, n, until_ns == NSEC_NEVER ? NULL : &timeout, NULL) > 0;
	if (!standby)
		vector_slept(v, port_now_ns() - since_ns);
	if (!woken)
		goto awake;

	vector_take_wakeup(v, fds);
awake:
	atomic_store(&s->sleep_until_ns, 0);
}

/* The threads of the other vectors watch their sockets when this one does. */
static void watch(struct port *port, bool watching, u64 driven)
{
	struct service *s = &port->service;

	atomic_store(&s->watch_driven, driven);
	if (atomic_exchange(&s->watching, watching) != watching && watching)
		vectors_kick(port, 1);
}

/* Nobody has driven the port since the last look, nor is at it now. Who has left work to a next call that did not come is not trusted with that. */
static bool is_deserted(struct port *port)
{
	struct service *s = &port->service;

	if (pthread_mutex_trylock(&port->lock))
		return false;
	if (port->owes || atomic_load_explicit(&port->put_off, memory_order_relaxed)) {
		atomic_store_explicit(&s->trust, 0, memory_order_relaxed);
		atomic_store_explicit(&s->trust_needed, min_u32(2 * s->trust_needed, TRUST_MAX), memory_order_relaxed);
	}
	port_unlock_for(port, 0);
	return true;
}

static void *service_main(void *arg)
{
	struct vector *v = arg;
	struct port *port = v->port;
	struct service *s = &port->service;
	bool look_soon = false;
	u64 last_driven = 0;
	char name[16];

	snprintf(name, sizeof(name), "xroce/%.9s", port->dev.name);
	vector_enter(v, name);
	while (!atomic_load(&s->stop)) {
		u64 driven = atomic_load_explicit(&s->driven, memory_order_relaxed);
		bool sleepers = atomic_load(&s->sleepers) > 0;
		bool standby = driven != last_driven || sleepers || !is_deserted(port);

		if (look_soon && standby && s->trust_needed > TRUST_MIN)
			atomic_store_explicit(&s->trust_needed, s->trust_needed - 1, memory_order_relaxed);

		last_driven = driven;
		watch(port, !standby, driven);
		if (!standby) {
			s->tick_ns = TICK_MIN_NS;
			service_serve(port, v, driven);
		} else if (due_ns(port) <= port_now_ns() && sleepers) {
			pthread_mutex_lock(&port->lock); /* not port_lock(), which may run it as well */
			pump_run(port);
			port_unlock_for(port, 0);
		}
		/* something waits for the application's next call: see soon whether that comes */
		look_soon = standby && !sleepers && !look_soon && due_ns(port) <= port_now_ns();
		doze(port, standby, look_soon ? TICK_MIN_NS : s->tick_ns);
		if (standby && !look_soon)
			s->tick_ns = min_u64(2 * s->tick_ns, TICK_MAX_NS);
	}
	return NULL;
}

/* ---- beginning and end ---- */

static u64 spin_from_environment(void)
{
	const char *text = getenv("XROCE_SPIN_US");
	char *end;
	unsigned long us;

	if (!text || !*text)
		return SPIN_DEFAULT_US * NSEC_PER_USEC;
	us = strtoul(text, &end, 10);
	if (*end || *text == '-' || us > SPIN_LIMIT_US) {
		fprintf(stderr, "xroce: XROCE_SPIN_US=%s is not a number of microseconds up to %d; using %d\n", text, SPIN_LIMIT_US,
			SPIN_DEFAULT_US);
		us = SPIN_DEFAULT_US;
	}
	return us * NSEC_PER_USEC;
}

int service_start(struct port *port)
{
	struct service *s = &port->service;

	s->spin_max_ns = spin_from_environment();
	atomic_store(&s->trust_needed, TRUST_MIN);
	s->tick_ns = TICK_MIN_NS;
	return vector_start(port, 0, service_main);
}

void service_stop(struct port *port)
{
	atomic_store(&port->service.stop, true);
	vectors_kick(port, 0);
	vectors_end(port, true);
}

void service_abandon(struct port *port)
{
	vectors_end(port, false);
}
