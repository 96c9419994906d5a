/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors for a driver that may have gone to sleep: the need_wakeup flag of an AF_XDP ring, of
 * frames to send and of frames to receive into.
 *
 *   user/io/xsk.c  tx_xsk_flush, fill
 *
 *   producer, here                             driver (zero-copy)
 *   write descriptors, store prod (release)    set the flag
 *   full fence                                 full barrier
 *   the flag is set: a system call             look at prod once more; nothing: stop
 *
 * In copy mode the flag is always set, and there is nothing to miss. That a driver has its barrier
 * is taken for granted: without it nothing on this side would help.
 *
 * Property: no descriptor lies in the ring while the driver sleeps.
 * Mutations: 1 the producer's fence; 2 it looks at the flag before it stores prod; 3 a driver that
 * does not look once more.
 */
#define THREADS	  2
#define LOCATIONS 2
#define PROD	  0
#define AWAKE	  1	/* the flag is not set */
#include "memory.pml"

#define BATCHES 3

bit called;
byte taken;

active proctype producer()
{
	byte n;
	bit awake;

	do
	:: n < BATCHES ->
		n++;
#ifdef MUTATION_2
		load(0, AWAKE, awake);
		store(0, PROD, n, RELEASE);
#else
		store(0, PROD, n, RELEASE);
#ifndef MUTATION_1
		fence(0);
#endif
		load(0, AWAKE, awake);
#endif
		if
		:: !awake -> called = 1
		:: else
		fi
	:: else -> break
	od
}

active proctype driver()
{
	byte x;

end:	do
	:: atomic { called; called = 0 }
		do
		:: store(1, AWAKE, 1, RELAXED);
			load(1, PROD, taken);
			store(1, AWAKE, 0, RELAXED);
			fence(1);
#ifdef MUTATION_3
			break;
#endif
			load(1, PROD, x);
			if
			:: x == taken -> break
			:: else
			fi
		od
	od
}

active proctype judge()
{
	timeout;
	assert(taken == BATCHES)
}
