/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arming a CQ again: of the completion that the application has seen, the event may be on its way
 * still, and the next one would be one with it.
 *
 *   user/port/port_cq.c  port_cq_arm, cq_let_turns_end
 *   user/run/cq_notify.c cq_notify_arm
 *   user/engine/cq.c     cq_push, engine_take_arms_of_pushed, engine_cq_event
 *   user/run/shard.c     shard_unlock_once
 *
 *   application                                holder of the lock, a turn
 *   load prod (acquire), take completions      store prod (release), fence, armed? take it
 *   prod has moved since the last arming:      (once for each call of the engine; an event that is
 *     take the lock once                        due already stays one)
 *   store armed, full fence, look again        report the event, unlock (release)
 *
 * Property: when a CQ is armed, no event is on its way whose completion the caller has seen. At the
 * end, completions that were pushed behind an arming have had an event, or are seen.
 * Mutations: 1 the lock is not taken; 2 events are reported after unlocking; 3 the engine's fence
 * between the completion and the look at armed; 4 the application does not look once
 * more; 5 its fence before that.
 */
#define THREADS	  2
#define LOCATIONS 3
#define LOCK	  0
#define PROD	  1
#define ARMED	  2
#include "memory.pml"

#define PUSHES 3

byte events;	/* reported */
bit due;	/* an event that is not reported yet */
byte due_for;	/* the completion that it is for */

active proctype engine()
{
	byte x, pushed;
	bit got;

	do
	:: pushed < PUSHES ->
		lock(0, LOCK);
		do
		:: pushed < PUSHES ->
			pushed++;
			store(0, PROD, pushed, RELEASE);
#ifndef MUTATION_3
			fence(0);
#endif
			load_seq_cst(0, ARMED, x);
			if
			:: x ->
				compare_exchange(0, ARMED, 1, 0, got);
				if
				:: got && !due -> atomic { due = 1; due_for = pushed }
				:: else
				fi
			:: else
			fi
		:: true -> break
		od;
#ifdef MUTATION_2
		unlock(0, LOCK);
		fence(0);
#endif
		atomic {
			events = events + due;
			due = 0;
			due_for = 0
		}
#ifndef MUTATION_2
		unlock(0, LOCK)
#endif
	:: else -> break
	od
}

active proctype application()
{
	byte x, seen, armed_at, got;

	do
	:: load(1, PROD, x);
#ifndef MUTATION_1
		if
		:: x != armed_at ->
			lock(1, LOCK);
			unlock(1, LOCK)
		:: else
		fi;
#endif
		assert(!due || due_for > seen);
		armed_at = x;
		store(1, ARMED, 1, SEQ_CST);
#ifndef MUTATION_5
		fence(1);
#endif
#ifndef MUTATION_4
		load(1, PROD, seen);
#endif
		if
		:: seen < PUSHES ->
end_asleep:		events > got;
			got++;
			load(1, PROD, seen)
		:: seen > armed_at /* goes on without the event, and arms again */
		:: else
		fi;
		if
		:: seen == PUSHES -> break
		:: else
		fi
	od
}

active proctype judge()
{
	timeout;
	assert(mem[PROD] == PUSHES);
	assert(application:seen == PUSHES)
}
