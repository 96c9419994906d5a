/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shard: an engine, what it receives from and sends to, the lock under which both are run, and
 * what runs it when the application does not. struct shards: those of a port, and what they share.
 *
 * A thread that runs an engine holds its shard's lock; one that makes, changes or ends an object
 * holds the locks of all, in order (shards_lock()): so what only they change may be read under any
 * one of them. A thread that holds one lock does not wait for another.
 *
 * Locks, outermost first: the list of ports (port/port.c), the watches' (os/link_watch.c), a
 * channel's (port_channel.c), the shards', the CQ table's (cq_notify.c). A port's `numbers`
 * (port/port_object.h) is taken before the shards'.
 */
#ifndef RUN_SHARD_H
#define RUN_SHARD_H

#include <pthread.h>

#include "../engine/engine.h"
#include "../engine/raw.h"
#include "../engine/gso.h"
#include "cq_notify.h"
#include "defer.h"
#include "handover.h"
#include "migration.h"
#include "shard_io.h"

struct ring_reader;

/* A frame to ourselves between the engine's output and its input. */
struct loop_frame {
	u8 *frame;
	u32 len;
	enum raw_copy copy; /* or RAW_COPY_NONE: the frame itself */
};

/*
 * A shard's thread; worker.c draws who writes what. It is that of the completion vectors whose
 * number, modulo the shards', is the shard's.
 */
struct worker {
	bool started;
	pthread_t thread;
	int control_fd;
	struct ring_reader *ring;
	/* the thread's: CQs, each once or more, whose words XDP took for this ring's records */
	u32 record[RECORDS_MAX];
	u32 records;
	u64 spin_ns;
	u64 spin_max_ns;
	u64 tick_ns;
	bool settled; /* asleep was set before XDP looked at any packet that is still to come */
	_Atomic bool stop;
	/* moves whenever the application drives the shard */
	_Atomic u64 app_progress cache_aligned;
	/* threads in port_channel_wait() that watch the shard's sockets */
	_Atomic u32 sleepers;
	_Atomic u64 sleep_until_ns;	  /* 0: awake, or so soon that nobody need wake it */
};

struct shard {
	struct shards *all;
	u32 number;
	struct shard_io *io;
	struct engine *engine;

	/* under its lock */
	pthread_mutex_t lock cache_aligned;
	struct loop_frame loop[XSK_TX_SLOTS];
	u32 loop_count;
	/* how long to wait for room in the transmit ring; 0 = there was room */
	u64 blocked_ns;
	/* the pump has work left for then; NSEC_NEVER. Any thread reads it */
	_Atomic u64 resume_ns;
	bool due_seen;		/* time-outs wait for what lay in the rings then: xsk_mark() */
	/* when to read the sockets' statistics again; NSEC_NEVER: nothing has come since */
	_Atomic u64 account_ns;
	_Atomic u32 idle_polls;	/* polls that found nothing to do */
	u64 random[32];
	u32 random_left;
	/* shards with something to do for this one's doing: the thread that unlocks sees to it */
	u32 to_run;
	struct migration migration;
	struct segments segments; /* of the super-packet that is being cut */
	struct trace_tx *telling; /* NULL: nobody looks (trace_tx.h) */

	struct defer defer cache_aligned;
	struct handover handover;
	struct worker service;
};

/* The shards of a port, and what they share. */
struct shards {
	struct shard *shard; /* num of them */
	u32 num;
	u32 queues;	     /* receive queues of the interface */
	const struct xdp_maps *maps;
	bool dead;	     /* in a forked child: memory only */
	bool shared;	     /* other processes use the interface, too; under all locks */
	bool loopback;	     /* it is lo: what leaves by it comes back */
	_Atomic bool gone;   /* the interface is: set once. Any thread reads it */
	u32 ifindex;
	char name[16];	     /* the interface's */
	u8 mac[6];	     /* its own, as last published; under all locks */
	u32 mtu;	     /* of the interface, likewise; counts when flows change */
	struct moves moves;  /* migration.c */
	/* the port's: shards_hold(), shards_put() */
	_Atomic u32 refs;
	void (*last_put)(struct shards *all);
	struct cq_notify wake;
};

/* The shard that an engine is of, and a QP's owner; without a lock, a hint. */
static inline struct shard *shard_of(struct shards *all, const struct engine *e)
{
	return &all->shard[engine_number(e)];
}
static inline struct shard *shard_owner(struct shards *all, const struct qp *qp)
{
	return shard_of(all, qp_engine(qp));
}

/*
 * The shards whose engines complete to a CQ, a bit each; the first where none does, so that who
 * polls or arms it drives some. Without a lock, a hint.
 */
static inline u32 shards_of_cq(const struct shards *all, const struct cq *cq)
{
	u32 shards = all->num == 1 ? 1 : cq_engines(cq);

	return shards ? shards : 1;
}

/* One more reference to the port, by a caller who knows that there is one. */
static inline void shards_hold(struct shards *all)
{
	atomic_fetch_add_explicit(&all->refs, 1, memory_order_relaxed);
}
/* One less, the last of which ends the port. No lock held. */
static inline void shards_put(struct shards *all)
{
	u32 refs = atomic_load_explicit(&all->refs, memory_order_relaxed);

	/* release: pairs with the acq_rel in port_last_put() */
	while (refs > 1)
		if (atomic_compare_exchange_weak_explicit(&all->refs, &refs, refs - 1,
							  memory_order_release,
							  memory_order_relaxed))
			return;
	all->last_put(all);
}

/* ---- shard.c ---- */
void shard_init_lock(struct shard *s);
void shard_lock(struct shard *s);
/* Report its events, unlock, and see to what came up meanwhile and in other shards. */
void shard_unlock(struct shard *s);
/* An event without a completion. Under the lock of a shard, which keeps the CQ. */
void shard_raise(struct cq *cq);
/* When it must be run at the latest if nothing happens. [any thread] as a hint */
u64 shard_deadline_ns(const struct shard *s);
/* Receive, run the engine, send, waiting for the lock. */
void shard_run(struct shard *s);
/* Exclusive: of all shards, in order, for a thread of the application or of a shard. */
void shards_lock(struct shards *all);
void shards_unlock(struct shards *all);
/* Called as port_event_fn in port.h says. */
void shards_set_event_handler(void (*fn)(const struct engine_event *event));
/* What port_poll(), port_poll_cq(), port_post() and others of port.h do. */
void shards_poll(struct shards *all);
void shards_poll_cq(struct shards *all, struct cq *cq);
void shards_post(struct shards *all, struct qp *qp);
void shards_run_locked(struct shards *all);
void shards_catch_up(struct shards *all);

/*
 * A turn of the lock's holder: reads the clock, behind the lock so that no engine's time goes back,
 * and runs the pump. True if anything moved.
 */
bool shard_turn(struct shard *s);

/* Turns in which all that the rings hold has been taken. */
#define SETTLE_ROUNDS 256

/* ---- pump.c: under the shard's lock, at a time that was read behind it ---- */
/* Once round; true if anything moved. */
bool pump_run(struct shard *s, u64 now_ns);
/* Once round, but if that fills cq, which was empty, the sending may be left to the next run. */
void pump_poll(struct shard *s, const struct cq *cq, u64 now_ns);
/*
 * Nothing more comes: take what is there, send what is owed, and read what the sockets have
 * counted.
 */
void pump_settle(struct shard *s, u64 now_ns);
/*
 * Only what other shards have handed over. True if there was any: what that calls for has not been
 * sent.
 */
bool pump_take_handed(struct shard *s, u64 now_ns);

/* ---- steer.c: exclusive ---- */
/* Publish what XDP must know of a QP; shards_unsteer(): it is no more. Returns 0 or -errno. */
int shards_steer(struct shards *all, const struct qp *qp);
void shards_unsteer(struct shards *all, u32 qpn);
/* Publish whether a multicast group has members. Returns 0 or -errno. */
int shards_steer_group(struct shards *all, const struct gid *address);
/* Publish the flows of all raw packet QPs, after any change. Returns 0 or -errno. */
int shards_steer_flows(struct shards *all);

/* ---- worker_hints.c: what others tell a shard's service thread ---- */
void worker_kick(struct shard *s);
/*
 * After work on the shard, lock not held, behind a full fence: make its thread see a deadline that
 * is sooner than its sleep.
 */
void worker_nudge(struct shard *s);
/* The application is at it. */
void worker_app_came(struct shard *s);
/*
 * May something wait for the application's next call? If that does not come, the service thread,
 * awake by now, sees to it within two ticks.
 */
bool worker_may_wait(struct shard *s);
/* A thread is about to sleep on the shard's sockets itself, or has done so. */
void worker_sleeper_enter(struct shard *s);
void worker_sleeper_leave(struct shard *s);
/* When the thread must see to the shard at the latest. */
u64 worker_due_ns(const struct shard *s);
static inline bool worker_has_sleepers(const struct shard *s)
{
	/* pairs with the subtraction in worker_sleeper_leave() */
	return atomic_load_explicit(&((struct shard *)s)->service.sleepers, memory_order_seq_cst);
}
/* For all queues of the shard, the words of struct xroce_vector. */
void worker_set_asleep(struct shard *s, u32 asleep);
bool worker_is_asleep(const struct shard *s);

#endif
