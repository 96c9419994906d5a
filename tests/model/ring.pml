/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet in a ring buffer, which wakes those who poll it only if XDP asks for that when it
 * commits the packet: a worker in WATCH, and a thread that sleeps on a channel.
 *
 *   user/run/worker.c       worker_sleep, worker_sleeper_enter, worker_set_asleep
 *   bpf/deliver.h           deliver
 *   bpf/wake.h              wake_engine
 *
 *   XDP                                      worker                sleeper
 *   reserve: move the producer (release)     set asleep            watched + 1
 *   count (full barrier)                     fence                 fence
 *   look at watched                          ppoll(): look at      ppoll(): look at the producer,
 *   commit (full barrier); watched: wake       the producer,         sleep on the ring
 *     those who poll the ring                  sleep on the ring
 *   else asleep? take it, write the record     and for a record
 *
 * Property: at the end every packet has been through the engine.
 * Mutations: 1 no full barrier before the look at watched; 2 watched is looked at before the place
 * is reserved, as before a packet is redirected to a socket; 3 no fence behind asleep; 4 asleep is
 * not set, as it need not be with sockets; 5 asleep is looked at before the packet is committed,
 * and then no barrier is behind the reservation; 6 no fence behind watched.
 */
#define THREADS	  2
#define LOCATIONS 3
#define PRODUCER  0
#define WATCHED	  1
#define ASLEEP	  2
#include "memory.pml"

#define XDP	0
#define READER	1
#define PACKETS 2

byte committed, done;
bit record, polls, woken;

inline look_at_asleep()
{
	load(XDP, ASLEEP, x);
	if
	:: x ->
		rmw(XDP, ASLEEP, x, 0);
		if
		:: x -> record = 1
		:: else
		fi
	:: else
	fi
}

proctype xdp()
{
	byte n, x, watched;

	do
	:: n < PACKETS ->
		n++;
#ifdef MUTATION_2
		load(XDP, WATCHED, watched);
#endif
		store(XDP, PRODUCER, n, RELEASE);
#if !defined(MUTATION_1) && !defined(MUTATION_2) && !defined(MUTATION_5)
		fence(XDP);
#endif
#ifndef MUTATION_2
		load(XDP, WATCHED, watched);
#endif
#ifdef MUTATION_5
		look_at_asleep();
#endif
		fence(XDP);
		committed = n;
		if
		:: watched -> woken = polls
		:: else ->
#ifndef MUTATION_5
			look_at_asleep()
#else
			skip
#endif
		fi
	:: else -> break
	od
}

/* In the kernel: on the list of those who wait, then the look. */
inline ppoll()
{
	polls = 1;
	load(READER, PRODUCER, x);
	if
	:: x != done
	:: x == done -> woken || record
	fi;
	atomic { polls = 0; woken = 0; record = 0 }
	done = committed
}

proctype service()
{
	byte x;

	do
	:: done < PACKETS ->
#ifndef MUTATION_4
		store(READER, ASLEEP, 1, RELAXED);
#endif
#ifndef MUTATION_3
		fence(READER);
#endif
		ppoll()
	:: else -> break
	od
}

proctype sleeper()
{
	byte x;

	rmw(READER, WATCHED, x, x + 1);
#ifndef MUTATION_6
	fence(READER);
#endif
	do
	:: done < PACKETS -> ppoll()
	:: else -> break
	od
}

init {
	atomic {
		run xdp();
		if
		:: run service()
		:: run sleeper()
		fi
	}
	timeout;
	assert(done == PACKETS)
}
