/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion vectors: vector N is receive queue N, with a service thread and a ring buffer of its own. Vector 0's thread is the service thread of
 * service.c, which alone keeps the time. That of another vector starts with the first CQ that chooses it, and until then the queue is vector 0's.
 *
 * The thread of vector N
 *	- receives from queue N's socket and runs the engine, while vector 0 says that nobody drives the port (watching);
 *	- is woken by XDP, through ring N, for packets of queue N that come when nobody watches the sockets;
 *	- raises the events of its CQs. Threads of the application that run the engine raise what they find, of all vectors: an event of another
 *	  vector's CQ is handed over by service threads only, and the next who reports events, if it may, finds it.
 *
 *   handed      written under the port's lock: by who hands over, before it kicks the vector's thread; taken by that thread or an application's.
 *   watching    set by vector 0's thread, which then kicks the others; cleared by it, or by one that sees the application at work, which then
 *               kicks vector 0's. So whoever sleeps without its socket has been seen by vector 0's thread, which comes back to it.
 */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "port_state.h"

void vector_kick(struct vector *v)
{
	const u64 one = 1;

	/* syscall(): write() would be a cancellation point in any verb */
	syscall(SYS_write, v->control_fd, &one, sizeof(one));
}

void vector_enter(struct vector *v, const char *name)
{
	pthread_setname_np(pthread_self(), name);
	v->port->made.vector[v->number].tid = (u32)syscall(SYS_gettid);
}

void vector_sleep_on(const struct vector *v, struct pollfd fds[VECTOR_FDS])
{
	fds[0] = (struct pollfd){ .fd = v->control_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = ring_buffer__epoll_fd(v->ring), .events = POLLIN };
}

void vector_take_wakeup(struct vector *v, const struct pollfd fds[VECTOR_FDS])
{
	u64 count;

	if (fds[0].revents & POLLNVAL)
		atomic_store(&v->port->service.stop, true); /* the application closed descriptors that are not its own: better still than spinning */
	else if (fds[0].revents)
		(void)!read(v->control_fd, &count, sizeof(count));
	if (fds[1].revents & POLLIN)
		ring_buffer__consume(v->ring);
}

/* ---- events ---- */

bool vector_may_report(struct port *port, const struct cq *cq, u32 reporter)
{
	struct cq_table *t = &port->cqs;
	const u32 vector = t->vector_of[cq->index];

	if (reporter == VECTOR_ANY || !t->channel_of[cq->index])
		return true;
	if (vector == reporter) {
		port->made.vector[vector].events++;
		return true;
	}
	t->handed[cq->index]++;
	t->handed_total++;
	vector_kick(&port->service.vector[vector]);
	return false;
}

struct cq *vector_take_handed(struct port *port, u32 reporter)
{
	struct cq_table *t = &port->cqs;

	for (u32 i = 0; t->handed_total && i < XROCE_MAX_CQ; i++) {
		if (!t->handed[i] || (reporter != VECTOR_ANY && t->vector_of[i] != reporter))
			continue;
		t->handed[i]--;
		t->handed_total--;
		if (reporter != VECTOR_ANY)
			port->made.vector[reporter].events++;
		return t->cq[i];
	}
	return NULL;
}

/* ---- the thread of a vector above 0 ---- */

void vector_slept(struct vector *v, u64 slept_ns)
{
	const u64 max_ns = v->port->service.spin_max_ns;

	/* a sleep that was shorter than the longest spin would better have been a spin; a longer one, and the spin before it was for nothing */
	v->spin_ns = slept_ns < max_ns ? min_u64(2 * v->spin_ns + slept_ns, max_ns) : v->spin_ns / 2;
}

/* True if a packet came, or XDP says that one is about to. */
static bool doze(struct vector *v)
{
	struct port *port = v->port;
	struct service *s = &port->service;
	struct pollfd fds[VECTOR_FDS + 1] = { [VECTOR_FDS] = { .fd = port->made.xsks.xsk[v->number].fd, .events = POLLIN } };
	const bool sockets = atomic_load(&s->watching) && !atomic_load(&port->gone);
	const u64 since_ns = port_now_ns();

	vector_sleep_on(v, fds);
	if (poll(fds, VECTOR_FDS + sockets, -1) <= 0)
		return false;
	if (sockets)
		vector_slept(v, port_now_ns() - since_ns);
	vector_take_wakeup(v, fds);
	return fds[1].revents || fds[VECTOR_FDS].revents;
}

static void *vector_main(void *arg)
{
	struct vector *v = arg;
	struct service *s = &v->port->service;
	char name[16];

	snprintf(name, sizeof(name), "xroce/%.6s/%u", v->port->dev.name, v->number % 100);
	vector_enter(v, name);
	while (!atomic_load(&s->stop)) {
		const bool came = doze(v);

		if (came && atomic_load(&s->watching) && service_serve(v->port, v, atomic_load(&s->watch_driven)))
			continue;
		if (came) {
			/* The application is at it, or was a moment ago: vector 0 must come by when it has gone. */
			atomic_store(&s->watching, false);
			vector_kick(&s->vector[0]);
		}
		pthread_mutex_lock(&v->port->lock);
		if (came)
			pump_run(v->port);
		/* what was handed over, too */
		port_unlock_for(v->port, v->number);
	}
	return NULL;
}

/* ---- beginning and end ---- */

/* XROCE_VECTOR_CPUS is a list of CPUs, by vector; else the CPU of the queue's interrupts, on interfaces with several queues. -1: any. */
static int cpu_of(const struct port *port, u32 number)
{
	const char *text = getenv("XROCE_VECTOR_CPUS");
	char *end;
	long cpu = -1;

	if (!text || !*text)
		return port->made.info.queues > 1 ? netdev_queue_cpu(port->ifindex, number) : -1;
	for (u32 i = 0; i <= number; i++, text = end + (*end == ',')) {
		cpu = strtol(text, &end, 10);
		if (end == text || (*end && *end != ',') || cpu < 0 || cpu >= CPU_SETSIZE) {
			if (*text)
				fprintf(stderr, "xroce: XROCE_VECTOR_CPUS=%s is not a list of CPUs, by vector\n", getenv("XROCE_VECTOR_CPUS"));
			return -1;
		}
	}
	return (int)cpu;
}

/* Where the thread may not run there, it runs anywhere. */
static void pin(const struct vector *v)
{
	int cpu = cpu_of(v->port, v->number);
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(v->thread, sizeof(set), &set);
}

static int ignore_record(void *arg, void *data, size_t len)
{
	return 0;
}

static void close_vector(struct vector *v)
{
	if (v->ring)
		ring_buffer__free(v->ring);
	if (v->control_fd >= 0)
		close(v->control_fd);
	v->ring = NULL;
	v->control_fd = -1;
}

/* The application's signals are for its own threads. */
static int start_thread(struct vector *v, void *(*run)(void *vector))
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = -pthread_create(&v->thread, NULL, run, v);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int vector_start(struct port *port, u32 number, void *(*run)(void *vector))
{
	struct vector *v = &port->service.vector[number];
	int err;

	v->port = port;
	v->number = number;
	v->spin_ns = port->service.spin_max_ns;
	v->control_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	v->ring = ring_buffer__new(port->made.vector_ring_fd[number], ignore_record, NULL, NULL);
	err = v->control_fd < 0 || !v->ring ? -errno : start_thread(v, run);
	if (err) {
		close_vector(v);
		return err;
	}
	pin(v);
	atomic_store(&v->started, true);
	/* until now it was vector 0's to be woken for the queue */
	__atomic_store_n(&port->made.vector[number].ring, number, __ATOMIC_RELAXED);
	return 0;
}

int vector_use(struct port *port, u32 number)
{
	struct service *s = &port->service;
	int err = 0;

	if (atomic_load(&s->vector[number].started))
		return 0;
	pthread_mutex_lock(&port->cqs.lock);
	if (!atomic_load(&s->vector[number].started))
		err = vector_start(port, number, vector_main);
	pthread_mutex_unlock(&port->cqs.lock);
	/* It leaves this queue to its own thread. */
	if (!err)
		vector_kick(&s->vector[0]);
	return err;
}

void vectors_kick(struct port *port, u32 from)
{
	for (u32 i = from; i < port->made.info.queues; i++)
		if (atomic_load(&port->service.vector[i].started))
			vector_kick(&port->service.vector[i]);
}

void vectors_end(struct port *port, bool join)
{
	for (u32 i = 0; i < port->made.info.queues; i++) {
		struct vector *v = &port->service.vector[i];

		if (!atomic_load(&v->started))
			continue;
		if (join)
			pthread_join(v->thread, NULL);
		atomic_store(&v->started, false);
	}
	/* None kicks another any more. */
	for (u32 i = 0; i < port->made.info.queues; i++)
		if (port->service.vector[i].ring)
			close_vector(&port->service.vector[i]);
}
