/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ports of this process, one for each interface in use; the lock around each engine, and what is done on the way out of it: events are
 * reported, doorbells that rang meanwhile are answered.
 *
 *   ringer (any thread)                        holder of the lock
 *   doorbell: push onto the engine's stack     run the engine (takes the stack)
 *   full fence                                 unlock
 *   trylock: taken, so leave it                full fence
 *                                              doorbells? then trylock and run again
 *
 * One of the two sees the other: a doorbell is never left lying.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "port_state.h"
#include "tx_outlook.h"

#define POSTS_PUT_OFF  127	/* with the one that ends it: a batch */
#define BURST_LOOK     8	/* posts between two looks at the clock */
#define BURST_POST_NS  500	/* in a burst, a post follows the one before it within that */
#define IDLE_POLLS     16	/* polls that find nothing, for one that looks at the clock and takes the lock all the same */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct port *ports;
static _Atomic(port_event_fn *) event_handler;

u64 port_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

void port_set_event_handler(port_event_fn *fn)
{
	atomic_store(&event_handler, fn);
}

/* ---- the lock ---- */

static void report_events(struct port *port, u32 reporter)
{
	port_event_fn *handler = atomic_load_explicit(&event_handler, memory_order_relaxed);
	struct engine_event event;
	struct cq *cq;

	while (handler && (cq = vector_take_handed(port, reporter)))
		handler(&(struct engine_event){ .type = EVENT_COMPLETION, .cq = cq });
	while (engine_next_event(port->engine, &event)) {
		if (event.type == EVENT_QP_STATE) {
			port_steer(port, event.qp);
			continue;
		}
		if (event.type == EVENT_COMPLETION) {
			wake_taken(port, event.cq);
			if (!vector_may_report(port, event.cq, reporter))
				continue;
		}
		if (handler)
			handler(&event);
	}
}

/* What was put off for the caller's next call (port_post(), port_poll_cq()) leaves before anything else is done. Lock held. */
static void settle(struct port *port)
{
	if (port->owes || atomic_load_explicit(&port->put_off, memory_order_relaxed))
		pump_run(port);
}

void port_lock(struct port *port)
{
	pthread_mutex_lock(&port->lock);
	/* a QP may be about to go, and its peer would wait for the last ACK in vain */
	settle(port);
}

/* A program that ends with its QPs open may have polled the completion of a message whose ACK is owed. */
__attribute__((destructor)) static void settle_at_exit(void)
{
	if (pthread_mutex_trylock(&list_lock))
		return;
	for (struct port *port = ports; port; port = port->next)
		if (!pthread_mutex_trylock(&port->lock)) {
			settle(port);
			pthread_mutex_unlock(&port->lock);
		}
	pthread_mutex_unlock(&list_lock);
}

/* Without room to send, doorbells stay where they are, and resume_ns says when to look again. */
static bool left_undone(struct port *port, bool blocked)
{
	atomic_thread_fence(memory_order_seq_cst);
	return !blocked && engine_has_doorbells(port->engine);
}

static void unlock(struct port *port, u32 reporter)
{
	bool blocked;

	for (;;) {
		report_events(port, reporter);
		blocked = port->dead || port->blocked_ns;
		pthread_mutex_unlock(&port->lock);
		if (!left_undone(port, blocked) || pthread_mutex_trylock(&port->lock))
			return;
		pump_run(port);
	}
}

void port_unlock(struct port *port)
{
	unlock(port, VECTOR_ANY);
	service_nudge(port);
}

void port_unlock_for(struct port *port, u32 vector)
{
	unlock(port, vector);
	service_nudge(port);
}

void port_poll(struct port *port)
{
	service_driven(port);
	atomic_thread_fence(memory_order_seq_cst);
	if (pthread_mutex_trylock(&port->lock))
		return;
	pump_run(port);
	port_unlock(port);
}

/* What a poll is for, seen without the lock; a hint. Time-outs are not among it: for those, every so many polls is a whole one. */
static bool has_work(struct port *port)
{
	u32 idle;

	if (xsk_has_input(&port->made.xsks) || atomic_load_explicit(&port->put_off, memory_order_relaxed) ||
	    atomic_load_explicit(&port->resume_ns, memory_order_relaxed) != NSEC_NEVER || engine_has_doorbells(port->engine))
		return true;
	idle = atomic_load_explicit(&port->idle_polls, memory_order_relaxed) + 1;
	atomic_store_explicit(&port->idle_polls, idle, memory_order_relaxed);
	return idle % IDLE_POLLS == 0;
}

void port_poll_cq(struct port *port, const struct cq *cq)
{
	service_driven(port);
	if (!has_work(port))
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (pthread_mutex_trylock(&port->lock))
		return;
	pump_poll(port, cq);
	port_unlock(port);
}

/*
 * A system call sends one frame or many at much the same cost. So of posts in quick succession, the first leaves at once and the others
 * together: when there are enough of them, or when the caller polls. Who has armed a CQ is about to sleep, and is not made to wait. Nor does anything
 * wait for one who posts at leisure: the clock is read at the first post that is put off and now and then after it.
 */
static bool may_put_off(struct port *port, const struct qp *qp, u32 put_off)
{
	if (put_off >= POSTS_PUT_OFF || (qp->send_cq && cq_is_armed(qp->send_cq)) || (qp->recv_cq && cq_is_armed(qp->recv_cq)))
		return false;
	return put_off % BURST_LOOK ||
	       port_now_ns() < atomic_load_explicit(&port->burst_until_ns, memory_order_relaxed) + put_off * BURST_POST_NS;
}

void port_post(struct port *port, struct qp *qp)
{
	u32 put_off = atomic_load_explicit(&port->put_off, memory_order_relaxed);
	bool wait = may_put_off(port, qp, put_off);

	/* Who gets the lock needs no doorbell. */
	if (!wait && !pthread_mutex_trylock(&port->lock)) {
		service_driven(port);
		engine_posted(port->engine, qp);
		pump_run(port);
		port_unlock(port);
		return;
	}
	engine_doorbell(qp);
	if (wait) {
		atomic_store_explicit(&port->put_off, put_off + 1, memory_order_relaxed);
		/* Said before asking whether the service thread will come by: it publishes its sleep before it looks at this. */
		atomic_store(&port->resume_ns, 0);
		service_driven(port);
		if (service_may_wait(port))
			return;
	}
	port_poll(port);
}

void port_run_locked(struct port *port)
{
	service_driven(port);
	pump_run(port);
}

u64 port_deadline_ns(const struct port *port)
{
	u64 resume_ns = atomic_load_explicit(&((struct port *)port)->resume_ns, memory_order_relaxed);

	return min_u64(resume_ns, engine_deadline_ns(port->engine));
}

u32 port_preferred_mtu(const struct netdev *dev, u32 path_mtu)
{
	return tx_preferred_path_mtu(dev, path_mtu);
}

const struct port_info *port_info(const struct port *port)
{
	return &port->made.info;
}

struct engine *port_engine(struct port *port)
{
	return port->engine;
}

/* ---- making and ending ---- */

/* The engine's source of keys and QPNs, under the port's lock: the kernel's, fetched many at a time. */
static u64 random_u64(void *arg)
{
	struct port *port = arg;

	if (port->random_left == 0) {
		/* up to 256 bytes are never cut short once the kernel's generator is seeded, which it waits for */
		while (getrandom(port->random, sizeof(port->random), 0) != sizeof(port->random))
			;
		port->random_left = ARRAY_SIZE(port->random);
	}
	return port->random[--port->random_left];
}

static void init_lock(struct port *port)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&port->lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static void free_port(struct port *port)
{
	if (port->engine)
		engine_destroy(port->engine);
	wake_destroy(port);
	pthread_mutex_destroy(&port->lock);
	free(port);
}

static int make_engine(struct port *port)
{
	struct engine_config config = {
		.random = random_u64,
		.random_arg = port,
		.stats = port->made.stats,
		.drops = port->made.drops,
	};

	options_read(&port->dev, &config);
	return engine_create(&config, &port->engine);
}

/* The caller's view of the interface may be old; what is told later comes by the service thread. */
static int look(const struct netdev *dev, struct netdev *now)
{
	int err;

	*now = *dev;
	err = netdev_refresh(now);
	if (err)
		fprintf(stderr, "xroce: %s: %s; `ip link` lists the interfaces\n", dev->name,
			err == -ENODEV ? "no such interface any more" : strerror(-err));
	return err;
}

static int start(struct port *port, const struct netdev *dev)
{
	int err = make_engine(port);

	if (err)
		return err;
	err = follow_start(port, dev);
	return err ? err : service_start(port);
}

static int create(const struct netdev *dev, u64 netns, struct port **out)
{
	struct port *port = aligned_alloc(CACHE_LINE, (sizeof(*port) + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
	struct netdev now;
	int err;

	if (!port)
		return -ENOMEM;
	memset(port, 0, sizeof(*port));
	port->ifindex = dev->ifindex;
	port->netns = netns;
	atomic_store(&port->refs, 1);
	atomic_store(&port->resume_ns, NSEC_NEVER);
	init_lock(port);
	wake_init(port);

	err = look(dev, &now);
	if (!err)
		err = port_make(&now, &port->made);
	if (err)
		goto fail;
	err = start(port, &now);
	if (err)
		goto unmake;
	*out = port;
	return 0;

unmake:
	fprintf(stderr, "xroce: %s: cannot start: %s; run `xroce doctor %s`\n", dev->name, strerror(-err), dev->name);
	follow_stop(port);
	port_unmake(&port->made);
fail:
	free_port(port);
	return err;
}

static void destroy(struct port *port)
{
	follow_stop(port);
	if (!port->dead) {
		service_stop(port);
		port_unmake(&port->made);
	}
	/* a dead port's private mappings stay: the engine still counts there */
	free_port(port);
}

/*
 * In the child of a fork() there is no service thread, and the descriptors are copies of the parent's that would keep the interface
 * attached after the parent's end. So the child lets go of them; its objects stay valid memory that does nothing.
 */
static void before_fork(void)
{
	pthread_mutex_lock(&list_lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&list_lock);
}

static void after_fork_child(void)
{
	for (struct port *port = ports; port; port = port->next) {
		port->dead = true;
		service_abandon(port);
		port_abandon(&port->made);
		init_lock(port);
		wake_init(port);
	}
	ports = NULL;
	pthread_mutex_init(&list_lock, NULL);
}

static void register_fork(void)
{
	watch_register_fork(); /* its lock is taken within ours */
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

int port_get(const struct netdev *dev, struct port **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	u64 netns = netdev_netns();
	struct port *port;
	int err = 0, cancel;

	pthread_once(&once, register_fork);
	/* A thread that is cancelled half-way would leave the interface attached to nobody. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&list_lock);
	for (port = ports; port; port = port->next)
		if (port->ifindex == dev->ifindex && port->netns == netns && !atomic_load(&port->gone))
			break;
	if (port) {
		port_hold(port);
	} else {
		err = create(dev, netns, &port);
		if (!err) {
			port->next = ports;
			ports = port;
		}
	}
	pthread_mutex_unlock(&list_lock);
	pthread_setcancelstate(cancel, NULL);
	if (!err)
		*out = port;
	return err;
}

void port_hold(struct port *port)
{
	atomic_fetch_add(&port->refs, 1);
}

static void forget(struct port *port)
{
	for (struct port **p = &ports; *p; p = &(*p)->next)
		if (*p == port) {
			*p = port->next;
			return;
		}
}

void port_put(struct port *port)
{
	u32 refs = atomic_load(&port->refs);
	int cancel;

	/* Not the last: no need of the list. */
	while (refs > 1)
		if (atomic_compare_exchange_weak(&port->refs, &refs, refs - 1))
			return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	/* Held to the end, so that a port_get() of the same interface finds it free. */
	pthread_mutex_lock(&list_lock);
	if (atomic_fetch_sub(&port->refs, 1) == 1) {
		forget(port);
		destroy(port);
	}
	pthread_mutex_unlock(&list_lock);
	pthread_setcancelstate(cancel, NULL);
}
