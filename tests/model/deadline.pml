/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sooner deadline: the worker sleeps until one, whoever runs the engine sets another.
 *
 *   user/run/worker.c       worker_sleep, worker_nudge, worker_due_ns
 *   user/run/shard.c        shard_unlock, shard_unlock_once, shard_left_undone
 *   user/engine/engine.c    timer_publish
 *
 *   worker                                     whoever has run the engine
 *   read the deadline                          store the deadline (relaxed, under the lock)
 *   publish sleep_until_ns (seq_cst)           unlock (release)
 *   full fence                                 full fence
 *   read the deadline again: sooner: awake     read sleep_until_ns; the deadline is sooner:
 *   sleep until then, or a kick                compare-and-exchange it for 0, kick
 *
 * Time does not pass here. That a sleep ends with its deadline is left out, so a thread that sleeps
 * at the end sleeps too long if the deadline is sooner than what it sleeps until.
 *
 * Property: nobody sleeps past a deadline.
 * Mutations: 1 the runner's fence; 2 the worker's fence; 3 its second look; 4 the runner
 * looks before it sets the deadline.
 */
#define THREADS	  3
#define LOCATIONS 3
#define LOCK	  0
#define DEADLINE  1
#define UNTIL	  2	/* sleep_until_ns */
#include "memory.pml"

/* points in time; AWAKE is sleep_until_ns' 0 */
#define AWAKE 0
#define SOON  1
#define LATE  2
#define NEVER 3

bit kicked, asleep;
byte until;	/* what ppoll() sleeps until */

/* shard_unlock(): the lock is held, now is its deadline */
inline nudge(t)
{
#ifndef MUTATION_1
	fence(t);
#endif
	load_seq_cst(t, UNTIL, x);
	if
	:: x != AWAKE ->
		load(t, DEADLINE, y);
		if
		:: y < x ->
			compare_exchange(t, UNTIL, x, AWAKE, done);
			if
			:: done -> kicked = 1
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	x = 0; y = 0; done = 0
}

proctype runner(byte me; byte first; byte second)
{
	byte x, y;
	bit done;

	lock(me, LOCK);
	store(me, DEADLINE, first, RELAXED);
	unlock(me, LOCK);
	nudge(me);
	if
	:: second ->
		lock(me, LOCK);
#ifdef MUTATION_4
		nudge(me);
		store(me, DEADLINE, second, RELAXED);
		unlock(me, LOCK)
#else
		store(me, DEADLINE, second, RELAXED);
		unlock(me, LOCK);
		nudge(me)
#endif
	:: else
	fi
}

active proctype service()
{
	byte x, y;

end:	do
	:: load(0, DEADLINE, x);
		store(0, UNTIL, x, SEQ_CST);
#ifndef MUTATION_2
		fence(0);
#endif
#ifndef MUTATION_3
		load(0, DEADLINE, y);
#else
		y = x;
#endif
		if
		:: y < x
		:: else ->
			atomic { until = x; asleep = 1 }
end_asleep:		atomic { kicked; asleep = 0; kicked = 0 }
		fi;
		store(0, UNTIL, AWAKE, SEQ_CST)
	od
}

init {
	atomic {
		mem[DEADLINE] = NEVER;
		if
		:: run runner(1, SOON, 0); run runner(2, LATE, 0)
		:: run runner(1, LATE, SOON); run runner(2, LATE, NEVER)
		fi
	}
	timeout;
	assert(asleep && mem[DEADLINE] >= until)
}
