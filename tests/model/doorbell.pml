/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A doorbell at a taken lock: the ringer leaves the work to the lock's holder.
 *
 *   user/engine/owner.c engine_doorbell, owner_push_doorbell, owner_take_doorbells
 *   user/run/shard.c    shard_try_to_run, shard_unlock_once, shard_left_undone
 *
 *   ringer                                     holder
 *   publish the WQE (release)                  take the stack (exchange)
 *   bell: exchange for 1 (seq_cst)             bell: exchange for 0 (seq_cst)
 *   it was 0: push onto the stack (seq_cst)    look at the queue (acquire)
 *   full fence                                 unlock (release)
 *   trylock; taken: leave it                   full fence
 *                                              the stack is not empty: trylock, and again
 *
 * A round without room to send takes no bell and says in resume_ns when to come back; then the
 * holder does not look. The worker comes (deadline.pml).
 *
 * Property: when all threads are done, the engine has looked at the queue after the last post.
 * Mutations: 1 the ringer's fence; 2 the holder's fence; 3 the holder's look; 4 the bell is cleared
 * by a store; 5 it is cleared behind the look at the queue; 6 nobody comes
 * back for a round without room.
 */
#define THREADS	  3
#define LOCATIONS 4
#define LOCK	  0
#define QUEUE	  1
#define BELL	  2
#define STACK	  3
#include "memory.pml"

#define POSTS 2

byte seen;		/* under LOCK: what the engine knows of the queue */
bit blocked, resume;	/* under LOCK */
bit was_blocked;	/* once is enough */

/* pump_run(), user/run/pump.c */
inline pump(t)
{
	load(t, STACK, x);
	if
	:: x && !was_blocked -> was_blocked = 1; blocked = 1; resume = 1
	:: x -> blocked = 0;
		rmw(t, STACK, x, 0);
#if defined(MUTATION_4)
		store(t, BELL, 0, SEQ_CST);
		load(t, QUEUE, x);
#elif defined(MUTATION_5)
		load(t, QUEUE, x);
		rmw(t, BELL, y, 0);
#else
		rmw(t, BELL, y, 0);
		load(t, QUEUE, x);
#endif
		seen = x
	:: !x -> blocked = 0
	fi
}

/* shard_unlock_once(), with the lock held */
inline run_and_unlock(t)
{
	do
	:: pump(t);
		y = blocked;
		unlock(t, LOCK);
#ifndef MUTATION_2
		fence(t);
#endif
#ifdef MUTATION_3
		break;
#endif
		load_seq_cst(t, STACK, x);
		if
		:: y || !x -> break
		:: else
		fi;
		trylock(t, LOCK, taken);
		if
		:: !taken -> break
		:: else
		fi
	od;
	x = 0; y = 0
}

inline try_to_run(t)
{
	trylock(t, LOCK, taken);
	if
	:: taken -> run_and_unlock(t)
	:: else
	fi;
	taken = 0
}

active proctype ringer()
{
	byte x, y, posted;
	bit taken;

	do
	:: posted < POSTS ->
		posted++;
		store(0, QUEUE, posted, RELEASE);
		rmw(0, BELL, x, 1);
		if
		:: !x -> rmw(0, STACK, x, 1)
		:: else
		fi;
		x = 0;
#ifndef MUTATION_1
		fence(0);
#endif
		try_to_run(0)
	:: else -> break
	od
}

active proctype poller()
{
	byte x, y;
	bit taken;

	try_to_run(1)
}

active proctype service()
{
	byte x, y;
	bit taken;

end:	do
#ifndef MUTATION_6
	:: resume ->
		lock(2, LOCK);
		resume = 0;
		run_and_unlock(2)
#else
	:: false
#endif
	od
}

active proctype judge()
{
	timeout;
	assert(seen == POSTS)
}
