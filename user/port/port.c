/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ports of this process, one for each interface in use: created with the first reference,
 * destroyed with the last, abandoned in a forked child.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "../client/attach_error.h"
#include "../os/complain.h"
#include "../os/kernel.h"
#include "../os/options.h"
#include "../os/process.h"
#include "../os/thread.h"
#include "../run/worker.h"
#include "../run/fault.h"
#include "../run/shard.h"
#include "../engine/types.h"
#include "port_object.h"

#define SETTLE_TRIES 1000

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct port *ports;

/* Tries to lock: the holder may be this thread itself, if a signal handler called exit(). */
static bool try_hard(pthread_mutex_t *lock)
{
	for (u32 i = 0; i < SETTLE_TRIES; i++) {
		if (!pthread_mutex_trylock(lock))
			return true;
		kernel_yield();
	}
	return false;
}

/*
 * Sends owed ACKs, if the program exits with open QPs, and counts each frame that XDP has
 * redirected, as counters may outlive the program. Two rounds, as shards hand frames to each other.
 */
__attribute__((destructor)) static void settle_at_exit(void)
{
	if (!process_is_owner() || pthread_mutex_trylock(&list_lock))
		return;
	for (struct port *port = ports; port; port = port->next) {
		attach_detach(&port->made);
		for (u32 i = 0; i < 2 * port->shards.num; i++) {
			struct shard *s = &port->shards.shard[i % port->shards.num];

			if (!try_hard(&s->lock))
				continue;
			pump_settle(s, clock_now_ns());
			pthread_mutex_unlock(&s->lock);
		}
	}
	pthread_mutex_unlock(&list_lock);
}

const struct port_info *port_info(const struct port *port)
{
	return &port->made.info;
}

/* Returns the port of an interface in the network namespace, or NULL. Caller holds list_lock. */
static struct port *port_find(u32 ifindex, u64 netns)
{
	struct port *port = ports;

	while (port && (port->ifindex != ifindex || port->netns != netns ||
			atomic_load_explicit(&port->shards.gone, memory_order_relaxed)))
		port = port->next;
	return port;
}

/* Returns false if this process has no port of the interface, or one is made or destroyed now. */
static bool port_own_kind(const struct netdev *dev, u64 netns, struct ask_kind *kind)
{
	const struct port *port;

	if (pthread_mutex_trylock(&list_lock))
		return false;
	port = port_find(dev->ifindex, netns);
	if (port)
		*kind = (struct ask_kind){ .pkeys = port->made.info.pkeys,
					   .udp = port->made.info.udp_frames != 0,
					   .sole = !port->made.info.shared };
	pthread_mutex_unlock(&list_lock);
	return port;
}

void port_ask_kind(const struct netdev *dev, struct ask_kind *kind)
{
	const u64 netns = netdev_netns();

	*kind = (struct ask_kind){ .pkeys = options_pkeys() };
	if (port_own_kind(dev, netns, kind))
		return;
	if (options_share() == SHARE_NEVER || !ask_kind_of(netns, dev->ifindex, kind)) {
		kind->udp = attach_would_use_udp();
		kind->sole = !kind->udp;
	}
	kind->sole &= attach_would_be_sole();
}

struct engine *port_engine(struct port *port)
{
	return port->shards.shard[0].engine;
}

struct engine *port_engine_for(struct port *port, u32 vector)
{
	return port->shards.shard[vector % port->shards.num].engine;
}

/* ---- making and ending ---- */

/*
 * Returns a random number of the kernel, for an engine's keys and QPNs. Under the shard's lock;
 * fetches several at a time.
 */
static u64 random_u64(void *arg)
{
	struct shard *s = arg;

	if (s->random_left == 0) {
		kernel_random_renew(s->random, ARRAY_SIZE(s->random));
		s->random_left = ARRAY_SIZE(s->random);
	}
	return s->random[--s->random_left];
}

static void port_free(struct port *port)
{
	migration_free(&port->shards);
	for (u32 i = 0; i < port->shards.num; i++) {
		struct shard *s = &port->shards.shard[i];

		handover_free(s);
		trace_tx_end(s);
		if (s->engine)
			engine_destroy(s->engine);
		pthread_mutex_destroy(&s->lock);
	}
	cq_notify_destroy(&port->shards.cq_notify);
	pthread_mutex_destroy(&port->numbers);
	pthread_mutex_destroy(&port->listeners);
	free(port->services.at);
	free(port->shards.shard);
	free(port);
}

/* How many frames with the largest payload can wait for the shard. */
static u32 port_receive_frames(const struct port *port, const struct shard *s)
{
	const u32 frames = xsk_receive_frames(&s->io->xsks), udp = port->made.info.udp_frames;

	return udp ? min_u32(udp, frames) : frames;
}

#define PORT_WINDOW_MIN 8u /* packets, with a small socket buffer */

/*
 * Returns the packets that a QP may have in flight; 0: the default. A socket's buffer may be small,
 * and the peer's is probably like this one: half of it, as answers arrive there, too.
 */
static u32 port_window(const struct port *port)
{
	const u32 half = port->made.info.udp_frames / 2;

	return !half || half >= ENGINE_WINDOW ? 0 : half < PORT_WINDOW_MIN ? PORT_WINDOW_MIN : half;
}

static const struct engine_faults *port_faults;

void port_set_faults(const struct engine_faults *faults)
{
	port_faults = faults;
}

static int port_make_shard(struct port *port, struct shard *s, const struct netdev *dev)
{
	struct engine_config config = {
		.random = random_u64,
		.random_arg = s,
		.stats = s->io->stats,
		.drops = s->io->drops,
		.expect = s->all->maps->expect,
		.line_rate = dev->speed_mbps * 1000ull * 1000 / 8,
		.receive_frames = port_receive_frames(port, s),
		.window_packets = port_window(port),
		.sibling = s->all->shard[0].engine,
		.number = s->number,
		.pkeys = &port->made.info.pkeys,
		.unknown_ids = port->made.info.udp_frames,
		.faults = port_faults,
	};
	int err = kernel_random(s->random, sizeof(s->random));

	if (err)
		return attach_failed_random(dev, err);
	s->random_left = ARRAY_SIZE(s->random);
	options_engine(&config);
	err = engine_create(&config, &s->engine);
	return err ? err : handover_init(s, s->all->num);
}

/* Gets a ring from the broker, as a broker's client may not create maps. */
static int port_ask_ring(void *arg, struct ring_slot *out)
{
	struct port *port = arg;

	return attach_ring(&port->made, out);
}

static int port_make_shards(struct port *port, const struct netdev *dev)
{
	struct shards *all = &port->shards;
	const u32 n = port->made.info.shards;
	int err = 0;

	all->maps = all->cq_notify.maps = &port->made.maps;
	all->queues = all->cq_notify.num_vectors = port->made.info.queues;
	all->shared = port->made.info.shared;
	all->loopback = dev->is_loopback;
	all->mtu = dev->mtu;
	all->cq_notify.rings.make = port_ask_ring;
	all->cq_notify.rings.make_arg = port;
	all->shard = aligned_zero(n * sizeof(*all->shard));
	if (!all->shard)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++) {
		struct shard *s = &all->shard[i];

		s->all = all;
		s->number = i;
		s->io = &port->made.io[i];
		s->worker.control_fd = -1;
		atomic_store_explicit(&s->resume_ns, NSEC_NEVER, memory_order_relaxed);
		atomic_store_explicit(&s->account_ns, NSEC_NEVER, memory_order_relaxed);
		shard_init_lock(s);
	}
	all->num = n;
	for (u32 i = 0; !err && i < n; i++)
		err = port_make_shard(port, &all->shard[i], dev);
	if (!err)
		mr_table_show(engine_mr_table(all->shard[0].engine), port->made.maps.mr_stat,
			      (u32)getpid());
	return err ? err : migration_init(all);
}

/* Gets the current state of an interface, as dev may be old. The watch thread reports changes. */
static int port_refresh(const struct netdev *dev, struct netdev *now)
{
	int err;

	*now = *dev;
	err = netdev_refresh(now);
	if (err)
		complain("%s: %s; `ip link` lists the interfaces", dev->name,
			 err == -ENODEV ? "the interface was removed" : strerror(-err));
	return err;
}

static int port_start(struct port *port, const struct netdev *dev)
{
	int err = port_make_shards(port, dev);

	if (!err)
		err = follow_start(port, dev);
	if (!err)
		err = worker_start(&port->shards);
	return err ? err : others_start(port);
}

/*
 * The numbers may be the program's files now, and threads sleep on ours, which nothing can wake:
 * closes and frees nothing.
 */
static void port_leave(const struct port *port)
{
	complain("%s: this program has closed descriptors of libibverbs, as closefrom(3) does; the "
		 "device's threads and memory stay until it exits",
		 port->shards.name);
}

static void port_destroy(struct port *port)
{
	if (!port->shards.dead && !attach_is_whole(&port->made)) {
		port_leave(port);
		return;
	}
	follow_stop(port);
	if (!port->shards.dead) {
		worker_stop(&port->shards);
		/* take and count frames that shards handed to each other: no thread is left */
		for (u32 i = 0; i < port->shards.num; i++)
			pump_take_handed(&port->shards.shard[i], clock_now_ns());
		port_say_counters(port);
		attach_unmake(&port->made);
		port_close_copies(port);
		port_close_groups(port);
		port_close_macs(port);
	}
	/* a dead port keeps its private mappings, as the engine still counts there */
	port_free(port);
}

static void port_forget(struct port *port)
{
	for (struct port **p = &ports; *p; p = &(*p)->next)
		if (*p == port) {
			*p = port->next;
			return;
		}
}

/* Until list_lock is held, port_get() may take another reference. */
static void port_last_put(struct shards *all)
{
	struct port *port = container_of(all, struct port, shards);
	const int cancel = thread_disable_cancel();

	/* held until the interface is free for a port_get() of another thread */
	pthread_mutex_lock(&list_lock);
	/* acq_rel: pairs with the release in shards_put(), before which others used the port */
	if (atomic_fetch_sub_explicit(&all->refs, 1, memory_order_acq_rel) == 1) {
		port_forget(port);
		port_destroy(port);
	}
	pthread_mutex_unlock(&list_lock);
	thread_restore_cancel(cancel);
}

static int port_create(const struct netdev *dev, u64 netns, struct port **out)
{
	struct port *port = aligned_zero(sizeof(*port));
	struct netdev now;
	int err;

	if (!port)
		return -ENOMEM;
	port->ifindex = port->shards.ifindex = dev->ifindex;
	memcpy(port->shards.name, dev->name, sizeof(port->shards.name));
	port->shards.last_put = port_last_put;
	port->netns = netns;
	atomic_store_explicit(&port->shards.refs, 1, memory_order_relaxed);
	port->macs_fd = -1;
	cq_notify_init(&port->shards.cq_notify);
	pthread_mutex_init(&port->numbers, NULL);
	pthread_mutex_init(&port->listeners, NULL);

	err = port_refresh(dev, &now);
	if (!err)
		err = attach_make(&now, &port->made);
	if (err)
		goto fail;
	err = port_start(port, &now);
	if (err)
		goto unmake;
	*out = port;
	return 0;

unmake:
	complain("%s: cannot start: %s; run `xroce doctor %s`", dev->name, strerror(-err),
		 dev->name);
	follow_stop(port);
	worker_stop(&port->shards);
	attach_unmake(&port->made);
fail:
	port_free(port);
	return err;
}

/*
 * A forked child has no worker. Its copies of the parent's descriptors would keep the
 * interface attached after the parent's exit, so the child closes them. Its objects stay valid
 * memory that does nothing. All shards are locked during fork(), so that the child's copy of each
 * engine is consistent.
 */
static void port_before_fork(void)
{
	pthread_mutex_lock(&list_lock);
	link_watch_before_fork();
	for (struct port *port = ports; port; port = port->next)
		shards_lock(&port->shards);
}

static void port_after_fork_parent(void)
{
	for (struct port *port = ports; port; port = port->next)
		shards_unlock(&port->shards);
	link_watch_after_fork_parent();
	pthread_mutex_unlock(&list_lock);
}

static void port_after_fork_child(void)
{
	link_watch_after_fork_child();
	for (struct port *port = ports; port; port = port->next) {
		port->shards.dead = true;
		worker_abandon(&port->shards);
		attach_abandon(&port->made);
		port_close_copies(port);
		port_close_groups(port);
		port_close_macs(port);
		channel_rings_close(&port->shards.cq_notify.rings);
		for (u32 i = 0; i < port->shards.num; i++)
			shard_init_lock(&port->shards.shard[i]);
		cq_notify_init(&port->shards.cq_notify);
		pthread_mutex_init(&port->numbers, NULL);
		pthread_mutex_init(&port->listeners, NULL);
	}
	ports = NULL;
	process_after_fork_child();
	fault_after_fork();
	pthread_mutex_init(&list_lock, NULL);
}

__attribute__((constructor)) static void port_register_fork(void)
{
	pthread_atfork(port_before_fork, port_after_fork_parent, NULL);
}

/*
 * Runs first of the library's constructors. A child runs handlers in the order of registration, and
 * later ones write to objects whose memory is shared with the parent until this one has run.
 */
__attribute__((constructor(101))) static void port_register_fork_child(void)
{
	pthread_atfork(NULL, NULL, port_after_fork_child);
}

/*
 * Prints the counters of a process that exits with its device open; nothing if another thread makes
 * or destroys a port at that time.
 */
__attribute__((destructor)) static void port_say_all(void)
{
	if (!process_is_owner() || !options_is_set(OPTION_COUNTERS) ||
	    pthread_mutex_trylock(&list_lock))
		return;
	for (struct port *port = ports; port; port = port->next)
		port_say_counters(port);
	pthread_mutex_unlock(&list_lock);
}

int port_get(const struct netdev *dev, struct port **out)
{
	u64 netns = netdev_netns();
	struct port *port;
	/* a cancelled thread would leave the interface attached without an owner */
	const int cancel = thread_disable_cancel();
	int err = 0;

	process_own();
	pthread_mutex_lock(&list_lock);
	port = port_find(dev->ifindex, netns);
	if (port) {
		shards_hold(&port->shards);
	} else {
		err = port_create(dev, netns, &port);
		if (!err) {
			port->next = ports;
			ports = port;
		}
	}
	pthread_mutex_unlock(&list_lock);
	thread_restore_cancel(cancel);
	if (!err)
		*out = port;
	return err;
}

/* ---- using a port ---- */

void port_lock(struct port *port)
{
	/* a program that installs a fault handler creates or changes objects next */
	if (!port->shards.dead)
		fault_look(clock_now_ns());
	shards_lock(&port->shards);
}

void port_wait_arrived(struct port *port, const struct qp *qp)
{
	const enum qp_state state = qp_state(qp);

	if (!port->shards.dead && state >= QPS_RTR && state != QPS_ERR)
		attach_wait_arrived(&port->made);
}

bool port_has_left(const struct port *port)
{
	/* relaxed: the broker's hang-up follows the store */
	return atomic_load_explicit(&((struct port *)port)->made.has_left, memory_order_relaxed);
}
