/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A frame for another shard: lent by the giver, taken by whoever runs the taker, taken back.
 *
 *   user/run/migration.c handover_give, handover_take, take_from, handover_take_back
 *   user/run/shard.c     shards_run_others, shard_unlock_once, shard_left_undone
 *
 *   giver                                      whoever holds the taker's lock
 *   write the entry                            givers: any? (relaxed)
 *   store put (release)                        exchange givers for 0 (seq_cst)
 *   full fence                                 load put (seq_cst)
 *   its bit in givers? (relaxed) else set it   hand the entries to the engine
 *   full fence                                 store used (release)
 *   trylock; taken: leave it                   unlock (release)
 *   load used (acquire): free those            full fence
 *                                              givers: any? trylock, and again
 *
 * Two frames, so a ring of two entries is never full: three packets use one of them again.
 *
 * Property: each packet is taken once, in order, from a frame that nobody else writes to; at the
 * end no packet lies in the ring.
 * Mutations: 1 the giver's fence behind put; 2 put is relaxed; 3 the holder does not look after
 * unlocking; 4 used is stored before the entries are read; 5 put is loaded with acquire only.
 */
#define THREADS	  2
#define LOCATIONS 6
#define LOCK	  0	/* the taker's */
#define PUT	  1
#define USED	  2
#define GIVERS	  3
#define ENTRY(n)  (4 + (n) % 2)
#include "memory.pml"

#define PACKETS 3

byte taken;	/* packets that the taker's engine has seen; under LOCK */
byte frame[2];	/* the packet in it, written by the kernel; 0: it is free */

inline take(t)
{
	load(t, GIVERS, x);
	if
	:: x ->
		rmw(t, GIVERS, x, 0);
#ifdef MUTATION_5
		load(t, PUT, put);
#else
		load_seq_cst(t, PUT, put);
#endif
		load(t, USED, used);
#ifdef MUTATION_4
		store(t, USED, put, RELEASE);
#endif
		do
		:: used != put ->
			load(t, ENTRY(used), x);
			assert(x == taken + 1 && frame[used % 2] == x);
			taken++;
			used++
		:: else -> break
		od;
#ifndef MUTATION_4
		store(t, USED, used, RELEASE)
#endif
	:: else
	fi;
	x = 0; put = 0; used = 0
}

inline take_and_unlock(t)
{
	do
	:: take(t);
		unlock(t, LOCK);
		fence(t);
#ifdef MUTATION_3
		break;
#endif
		load(t, GIVERS, x);
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

active proctype giver()
{
	byte x, put, used, packet, back, given;
	bit done;

	do
	:: packet < PACKETS ->
		/* no frame to receive into until some are back */
		given - back < 2 || mem[USED] != back;
		load(0, USED, x);
		do
		:: back != x -> frame[back % 2] = 0; back++
		:: else -> break
		od;
		packet++;
		assert(!frame[given % 2]);
		frame[given % 2] = packet;
		store(0, ENTRY(given), packet, RELAXED);
		given++;
#ifdef MUTATION_2
		store(0, PUT, given, RELAXED);
#else
		store(0, PUT, given, RELEASE);
#endif
#ifndef MUTATION_1
		fence(0);
#endif
		load(0, GIVERS, x);
		if
		:: !x -> rmw(0, GIVERS, x, 1)
		:: else
		fi;
		if
		:: true ->	/* unlocks: shards_run_others() */
			fence(0);
			trylock(0, LOCK, done);
			if
			:: done -> take_and_unlock(0)
			:: else
			fi
		:: packet < PACKETS && given - back < 2 /* another frame first */
		fi
	:: else -> break
	od
}

active proctype taker()
{
	byte x, put, used, turns;
	bit done;

	do
	:: turns < 2 ->
		turns++;
		trylock(1, LOCK, done);
		if
		:: done -> take_and_unlock(1)
		:: else
		fi
	:: else -> break
	od
}

active proctype judge()
{
	timeout;
	assert(taken == PACKETS)
}
