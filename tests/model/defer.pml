/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A post waits for the next call of the application, which may not come: the worker is
 * awake, or is woken.
 *
 *   user/run/shard.c        shards_post, shard_unlock_once
 *   user/run/pump.c         transmit
 *   user/run/worker.c       worker_may_wait, worker_app_came, worker_sleep, worker_main
 *
 *   poster                                     worker, in WATCH
 *   push the doorbell (seq_cst)                publish sleep_until_ns (seq_cst)
 *   resume_ns = now (seq_cst)                  full fence
 *   app_progress has moved (relaxed)           read resume_ns: due: awake
 *   sleep_until_ns is not 0 (seq_cst):         sleep on the sockets
 *     exchange it for 0, kick                in STANDBY: one tick, then look again
 *
 * Whoever runs the shard meanwhile sets resume_ns back (relaxed, under the lock), and looks for
 * doorbells behind the fence that follows its unlocking.
 *
 * Property: at the end what was posted has left. No packet comes, and nobody calls any more.
 * Mutations: 1 the poster asks before it sets resume_ns; 2 the worker does not read the
 * deadline again; 3 the other holder does not look for doorbells; 4 STANDBY has no tick.
 */
#define THREADS	  3
#define LOCATIONS 5
#define LOCK	  0
#define BELL	  1
#define RESUME	  2	/* 1: due */
#define UNTIL	  3
#define PROGRESS  4
#include "memory.pml"

#define POSTS 2

byte sent;	/* posts that have left */
bit kicked;

inline run_and_unlock(t)
{
	do
	:: load(t, BELL, x);
		if
		:: x ->
			rmw(t, BELL, x, 0);
			sent = sent + x
		:: else
		fi;
		store(t, RESUME, 0, RELAXED);
		unlock(t, LOCK);
		fence(t);
#ifdef MUTATION_3
		break;
#endif
		load_seq_cst(t, BELL, x);
		if
		:: !x -> break
		:: else
		fi;
		trylock(t, LOCK, done);
		if
		:: !done -> break
		:: else
		fi
	od;
	x = 0; done = 0
}

inline may_wait()
{
	load_seq_cst(0, UNTIL, x);
	if
	:: x ->
		rmw(0, UNTIL, x, 0);
		if
		:: x -> kicked = 1
		:: else
		fi
	:: else
	fi;
	x = 0
}

active proctype poster()
{
	byte x, n;

	do
	:: n < POSTS ->
		n++;
		rmw(0, BELL, x, x + 1);
#ifdef MUTATION_1
		may_wait();
		store(0, RESUME, 1, SEQ_CST);
		store(0, PROGRESS, n, RELAXED)
#else
		store(0, RESUME, 1, SEQ_CST);
		store(0, PROGRESS, n, RELAXED);
		may_wait()
#endif
	:: else -> break
	od
}

active proctype poller()
{
	byte x;
	bit done;

	trylock(1, LOCK, done);
	if
	:: done -> run_and_unlock(1)
	:: else
	fi
}

active proctype service()
{
	byte x, last, now;
	bit done;

end:	do
	:: load(2, PROGRESS, now);
		if
		:: now != last ->
			last = now;	/* STANDBY: a tick */
#ifdef MUTATION_4
end_standby:		atomic { kicked; kicked = 0 }
#endif
		:: else ->
			lock(2, LOCK);
			run_and_unlock(2);
			store(2, UNTIL, 1, SEQ_CST);
			fence(2);
#ifndef MUTATION_2
			load(2, RESUME, x);
#endif
			if
			:: x
			:: else ->
end_watch:			atomic { kicked; kicked = 0 }
			fi;
			x = 0;
			store(2, UNTIL, 0, SEQ_CST)
		fi
	od
}

active proctype judge()
{
	timeout;
	assert(sent == POSTS)
}
