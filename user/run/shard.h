/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A shard: an engine, its input and output, the lock under which they run, and the thread that runs
 * it when the application does not. struct shards: the shards of a port and their common state.
 *
 * A thread that runs an engine holds its shard's lock. A thread that makes, changes or destroys an
 * object holds the locks of all shards, in order (shards_lock()). So data that only such threads
 * change may be read under any shard's lock. A thread with one lock does not wait for another.
 *
 * Locks, outermost first: the list of ports (port/port.c), the watches' (os/link_watch.c), a
 * port's `numbers` (port/port_object.h), the shards', a channel's (port_channel.c), the CQ table's
 * (cq_notify.c). docs/ownership.md, "Locks", has all.
 */
#ifndef RUN_SHARD_H
#define RUN_SHARD_H

#include <pthread.h>

#include "../engine/engine.h"
#include "../engine/gso.h"
#include "../engine/raw.h"
#include "cq_notify.h"
#include "defer.h"
#include "migration.h"
#include "shard_io.h"
#include "shards.h"

struct ring_reader;
struct trace_tx;

/* A frame from the engine's output that returns to its input. */
struct loop_frame {
	u8 *frame;
	u32 len;
	enum raw_copy copy; /* RAW_COPY_NONE: the frame itself */
};

/*
 * A shard's worker; worker.c draws who writes which field. It serves the completion vectors
 * whose number, modulo the number of shards, is the shard's.
 */
struct worker {
	bool started;
	pthread_t thread;
	int control_fd;
	struct ring_reader *ring;
	/* private to the thread: CQs of this ring's records, possibly repeated */
	u32 record[RECORDS_MAX];
	u32 records;
	u64 spin_ns;
	u64 spin_max_ns;
	u64 tick_ns;
	bool settled; /* XDP read `asleep` as set for every packet still to come */
	_Atomic bool stop;
	/* changes whenever the application drives the shard */
	_Atomic u64 app_progress cache_aligned;
	/* threads in port_channel_wait() that watch the shard's sockets */
	_Atomic u32 sleepers;
	_Atomic u64 sleep_until_ns;	  /* 0: awake, or no wake-up is needed */
};

struct shard {
	struct shards *all;
	u32 number;
	struct shard_io *io;
	struct engine *engine;

	/* under its lock */
	pthread_mutex_t lock cache_aligned;
	_Atomic u32 wanted;	/* threads in shards_lock(), which others give way to */
	struct loop_frame loop[XSK_TX_SLOTS];
	u32 loop_count;
	/* current wait for room in the transmit ring; 0: there was room */
	u64 blocked_ns;
	/* when the pump has work left, or NSEC_NEVER. Any thread reads it; 0, by any thread: now */
	_Atomic u64 resume_ns;
	bool due_seen;		/* a time-out waits for the ring content of that time: xsk_mark() */
	/* when to read the sockets' statistics; NSEC_NEVER: no packet came since the last time */
	_Atomic u64 account_ns;
	_Atomic u32 idle_polls;	/* polls without work; any thread may reset it */
	u64 random[32];
	u32 random_left;
	/* bitmap of shards that this one gave work to, for the thread that unlocks */
	u32 to_run;
	struct migration migration;
	struct segments segments; /* of the super-packet being cut */
	struct trace_tx *trace_tx; /* NULL: no observer (trace_tx.c) */

	struct defer defer cache_aligned;
	struct handover handover;
	struct worker worker;
};

/* The shards of a port and their common state. */
struct shards {
	struct shard *shard; /* `num` of them */
	u32 num;
	u32 queues;	     /* receive queues of the interface */
	const struct xdp_maps *maps;
	bool dead;	     /* in a forked child: memory only */
	bool shared;	     /* other processes share the interface; under all locks */
	bool loopback;	     /* the interface is lo: frames sent return */
	_Atomic bool gone;   /* the interface is gone; set once. Any thread reads it */
	u32 ifindex;
	char name[16];	     /* of the interface */
	u8 mac[6];	     /* the interface's MAC, as last published; under all locks */
	u32 mtu;	     /* the interface's MTU, under all locks; used when flows change */
	struct moves moves;  /* migration.c */
	/* references to the port: shards_hold(), shards_put() */
	_Atomic u32 refs;
	void (*last_put)(struct shards *all);
	struct cq_notify cq_notify;
};

/* Return the shard of an engine, and the shard that owns a QP. A hint without a lock. */
static inline struct shard *shard_of(struct shards *all, const struct engine *e)
{
	return &all->shard[engine_number(e)];
}
static inline struct shard *shard_owner(struct shards *all, const struct qp *qp)
{
	return shard_of(all, qp_engine(qp));
}

/*
 * Returns a bitmap of the shards whose engines complete to a CQ. If there is none, returns the
 * first shard, so that polling or arming the CQ drives some shard. A hint without a lock.
 */
static inline u32 shards_of_cq(const struct shards *all, const struct cq *cq)
{
	u32 shards = all->num == 1 ? 1 : cq_engines(cq);

	return shards ? shards : 1;
}

/* Takes a reference to the port; the caller knows that another one exists. */
static inline void shards_hold(struct shards *all)
{
	atomic_fetch_add_explicit(&all->refs, 1, memory_order_relaxed);
}

/* ---- shard.c; for all shards of a port: shards.h ---- */
void shard_init_lock(struct shard *s);
void shard_lock(struct shard *s);
/* Reports the engine's events, unlocks, and does the work that arose for this and other shards. */
void shard_unlock(struct shard *s);
/* Raises an event without a completion. Under the lock of a shard, which keeps the CQ alive. */
void shard_raise(struct cq *cq);
/* Returns when the shard must run at the latest without input; a hint. [any thread] */
u64 shard_deadline_ns(const struct shard *s);
/* Receives, runs the engine and sends; waits for the lock. */
void shard_run(struct shard *s);

/*
 * Runs the pump once with the current time; the caller holds the lock. The clock is read under the
 * lock, so that no engine's time goes back. Returns whether anything moved.
 */
bool shard_turn(struct shard *s);

/* Most turns to empty the receive rings. */
#define SETTLE_ROUNDS 256

/* ---- pump.c: under the shard's lock, at a time that was read under it ---- */
/* Runs one round. Returns whether anything moved. */
bool pump_run(struct shard *s, u64 now_ns);
/* Runs one round; if it fills cq, which was empty, sending may be left to the next run. */
void pump_poll(struct shard *s, const struct cq *cq, u64 now_ns);
/* Runs to the end: takes remaining input, sends due frames, and reads the sockets' statistics. */
void pump_settle(struct shard *s, u64 now_ns);
/* Takes only frames from other shards. Returns whether there were any; sends nothing. */
bool pump_take_handed(struct shard *s, u64 now_ns);

/* ---- steer.c: exclusive ---- */
/* Undoes shards_steer(). */
void shards_unsteer(struct shards *all, u32 qpn);
/* Publishes whether a multicast group has members. Returns 0 or -errno. */
int shards_steer_group(struct shards *all, const struct gid *address);
/* Publishes the flows of all raw packet QPs, after any change. Returns 0 or -errno. */
int shards_steer_flows(struct shards *all);

/* ---- worker.c: what others signal to a shard's worker (worker.h) ---- */
void worker_kick(struct shard *s);
/*
 * Wakes the worker if a deadline is now sooner than the end of its sleep. Call it after
 * work on the shard, after a full fence, without the lock.
 */
void worker_nudge(struct shard *s);
/* Records that the application drives the shard. */
void worker_app_came(struct shard *s);
/*
 * Returns whether work may wait for the application's next call. If there is no call, the worker,
 * now awake, does the work within two ticks.
 */
bool worker_may_wait(struct shard *s);
/* Mark the start and end of a thread's sleep on the shard's sockets. */
void worker_sleeper_enter(struct shard *s);
void worker_sleeper_leave(struct shard *s);
/* Returns when the worker must run the shard at the latest. */
u64 worker_due_ns(const struct shard *s);
static inline bool worker_has_sleepers(const struct shard *s)
{
	/* pairs with the subtraction in worker_sleeper_leave() */
	return atomic_load_explicit(&((struct shard *)s)->worker.sleepers, memory_order_seq_cst);
}
/* Set and read `asleep` in struct xroce_vector, for all queues of the shard. */
void worker_set_asleep(struct shard *s, u32 asleep);
bool worker_is_asleep(const struct shard *s);

/*
 * ---- trace_tx.c ----
 * Reports a shard's packets and events to observers (xroce/trace.h): packets sent by any way, and
 * notes of its engine. They are collected for a batch, and put into the observers' rings by running
 * xroce_trace_tx, which returns whether an observer is left; or by the broker, which runs it.
 * Without observers nothing is allocated, and a batch costs one load. Under the shard's lock.
 */

/* Updates s->trace_tx: NULL, or the state for reporting. */
void trace_tx_look(struct shard *s);
/* Reports a packet that the engine has written; looped: it returns to this process. */
void trace_tx_sent(struct shard *s, const u8 *frame, u32 len, bool looped);
/* Passes everything collected to the observers. */
void trace_tx_all(struct shard *s);
/* Ends reporting, with the shard or its observers. */
void trace_tx_end(struct shard *s);

/* Returns flags: XROCE_TRACED is set if there may be an observer. Relaxed: a hint. */
static inline u32 trace_tx_traced(const struct shard *s)
{
	return atomic_load_explicit(shared_word(&s->all->maps->engine->traced),
				    memory_order_relaxed);
}

/* Called at the start of a turn. */
static inline void trace_tx_begin(struct shard *s)
{
	if (unlikely(trace_tx_traced(s) & XROCE_TRACED || s->trace_tx))
		trace_tx_look(s);
}

#endif
