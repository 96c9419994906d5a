/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Actors and time. An actor is a thread of the simulated machine: one of the application's, a
 * worker, or the kernel's poll of a receive queue. All of them run in one real thread, each
 * with its own stack, one at a time: the scheduler takes the processor away only at points
 * (sched_point()), of which every atomic operation, lock and call to the kernel is one (atomics.c,
 * posix.c, machine.c). Which actor runs next is drawn from the seed, so a seed is a replay.
 *
 * Time is virtual: each point takes a few nanoseconds; where no actor can run it jumps to the next
 * deadline. A state in which no actor can run and no deadline is left is a stall.
 *
 * Stores are buffered as a processor does it: an atomic store that is not sequentially consistent
 * becomes visible some time later, in order, and before anything after a fence, a read-modify-write
 * or a system call. So a missing full fence shows. Loads are never late.
 */
#ifndef PORTSIM_SCHEDULER_H
#define PORTSIM_SCHEDULER_H

#include "../sim/rng.h"

#define ACTORS_MAX 64

struct actor;
typedef void actor_fn(void *arg);

/* How the next actor is chosen. */
enum sched_policy {
	SCHED_RANDOM,	/* any that can run, every few points */
	SCHED_PRIORITY,	/* the highest priority, with a few changes at random points: deep races */
	SCHED_POLICIES
};

struct sched_options {
	u64 seed;
	enum sched_policy policy;
	u32 mean_points;  /* between two draws, about */
	/* chance in 65536 of a switch where two actors access one word */
	u32 meet_rate;
	u32 freeze_rate;  /* chance in 2^24 a point that the actor gets no processor for a while */
	u64 freeze_max_ns;
	/* chance in 65536 a point that a buffered store is seen; 65535: at once */
	u32 store_rate;
	u64 max_ns;	  /* the run's bound in virtual time, */
	u64 max_points;	  /* and in points: beyond it is a stall */
	bool trace;
	/* called where no actor can run and none is kept from it, before time jumps */
	void (*idle)(u64 now_ns, u64 next_ns);
};

/* Runs main as the first actor, and all that it spawns, until main returns. */
void sched_run(const struct sched_options *o, actor_fn *main, void *arg);

/* ---- within a run ---- */

/* name must stay. */
struct actor *sched_spawn(const char *name, actor_fn *fn, void *arg);
/* Waits until the actor has returned. */
void sched_join(struct actor *a);
/* The caller ends here, as if its function had returned. */
void sched_exit(void) __attribute__((noreturn));
/* The running actor; NULL outside of a run. */
struct actor *sched_self(void);
const char *sched_name(const struct actor *a);
u32 sched_number(const struct actor *a);
/* The actor's slot for another file's use: machine.c keeps its wait there. */
void **sched_data(struct actor *a);
/* Calls fn for each actor that has not ended. */
void sched_each(void (*fn)(struct actor *a, void *arg), void *arg);

u64 sched_now_ns(void);
u64 sched_points(void);
/* A number that is the same after the same steps, and hardly otherwise. */
u64 sched_hash(void);
/* The run's random numbers. */
struct rng *sched_rng(void);

/* Marks a step: time passes, and another actor may run. `what` names the step in a trace. */
void sched_point(const char *what);
/* The same, before an access to a word of memory: where another has just been at it as well. */
void sched_access(const char *what, const volatile void *addr);
/* Forgets the accesses to memory that is freed, as it will be reused. */
void sched_forget(const void *begin, size_t bytes);
/* The running actor waits for another without saying for what: the others have their turns. */
void sched_give_way(const char *what);
/* The running actor waits: for sched_wake(), or until then. True if it was woken. */
bool sched_block(const char *what, u64 until_ns);
/* Sleeps for `ns`. */
void sched_sleep(const char *what, u64 ns);
/* Makes the actor ready `delay_ns` from now; no effect on an actor that does not wait. */
void sched_wake(struct actor *a, u64 delay_ns);
bool sched_is_blocked(const struct actor *a);
/* When it will run again without being woken; NSEC_NEVER. */
u64 sched_until_ns(const struct actor *a);
const char *sched_what(const struct actor *a);
/* While it is true, states that an operation passes through are not taken for quiet ones. */
bool sched_any_frozen(void);

/*
 * For a scripted run: the next actor other than the caller that reaches that point is held there
 * until it is released.
 */
void sched_hold_at(const char *what);
/* Returns true if an actor is held. */
bool sched_holds(void);
void sched_let_go(void);

/* ---- store buffers: atomics.c ---- */
void sched_store(volatile void *addr, u32 size, u64 value);
/* The newest store of the running actor to addr that others do not see yet. */
bool sched_stored(const volatile void *addr, u32 size, u64 *value);
/* All that the running actor has stored is seen: a full fence. */
void sched_drain(void);

/* ---- failing ---- */

/* The line that replays the run. */
void sched_label(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports a failed run: prints the reason, the line that replays it and each actor's position, and
 * exits. */
void sched_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* For a test of the tests: fail by this instead of ending the process. */
void sched_on_failure(void (*fn)(const char *text));
#define sim_check(condition) \
	((condition) ? (void)0 : sched_fail("%s:%d: %s", __FILE__, __LINE__, #condition))
/* A line of the trace. */
void sched_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool sched_tracing(void);

#endif
