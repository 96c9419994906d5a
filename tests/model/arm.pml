/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A CQ is armed twice: cq->armed is the engine's, the word in xroce_cq is XDP's.
 *
 *   user/run/cq_notify.c     cq_notify_arm, cq_notify_taken, cq_notify_rearm
 *   user/run/channel_sleep.c port_channel_wait
 *   user/engine/cq.c         engine_take_arms_of_pushed
 *   bpf/wake.h               wake_cq
 *
 *   application                    XDP                         engine, under the lock
 *   store armed (seq_cst)          load the word: 0: done      push; fence; take armed
 *   store the word (seq_cst)       exchange it for 0 (fence)   it was set: an event; then
 *   full fence, look for           took it: write the record     store 0 to the word (seq_cst)
 *     completions, else sleep      (the packet comes later)      load armed (seq_cst): set again:
 *   a record: run the engine;                                      store the word
 *     armed still: store the word
 *
 * The engine is run by a worker whenever a packet has come (socket.pml). It may
 * refuse a packet, so the word may have been taken for nothing.
 *
 * Property: at the end, where the CQ is armed its word is, too, or a record is unread: so the next
 * packet wakes the application at once. It does not sleep while there are completions behind its
 * last look, unless there is an event.
 * Mutations: 1 the word is stored first; 2 the engine does not look at armed again; 3 whoever reads
 * a record does not set the word again; 4 the application's fence.
 */
#define THREADS	  2
#define LOCATIONS 3
#define PROD	  0
#define ARMED	  1
#define WORD	  2
#include "memory.pml"

#define APPLICATION 0
#define ENGINE	    1

#define PACKETS 2

byte socket, refused;
byte events;
bit record;

inline arm()
{
#ifdef MUTATION_1
	store(APPLICATION, WORD, 1, SEQ_CST);
	store(APPLICATION, ARMED, 1, SEQ_CST);
#else
	store(APPLICATION, ARMED, 1, SEQ_CST);
	store(APPLICATION, WORD, 1, SEQ_CST);
#endif
#ifndef MUTATION_4
	fence(APPLICATION)
#endif
}

active proctype application()
{
	byte x, seen, got;

	do
	:: arm();
		load(APPLICATION, PROD, x);
		if
		:: x > seen -> seen = x
		:: else ->
again:
end_asleep:		if
			:: events > got ->
				got++;
				if
				:: mem[ARMED] ->
					/* it has armed since: polls and sleeps */
					load(APPLICATION, PROD, seen);
					goto again
				:: true
				fi
			:: record ->
				record = 0;
				/* the engine has been run */
				load_seq_cst(APPLICATION, ARMED, x);
				if
#ifndef MUTATION_3
				:: x -> store(APPLICATION, WORD, 1, SEQ_CST)
#endif
				:: else
				fi;
				goto again
			fi;
			load(APPLICATION, PROD, seen)
		fi
	od
}

active proctype xdp()
{
	byte n;
	bit x;

	do
	:: n < PACKETS ->
		n++;
		if
		:: mem[WORD] ->
			atomic { !owned[WORD]; x = mem[WORD]; mem[WORD] = 0 }
			if
			:: x -> record = 1
			:: else
			fi
		:: else
		fi;
		socket++
	:: else -> break
	od
}

active proctype engine()
{
	byte x, prod;
	bit taken;

end:	do
	:: socket ->
		socket--;
		if
		:: true /* refused */
		:: prod++;
			store(ENGINE, PROD, prod, RELEASE);
			fence(ENGINE);
			compare_exchange(ENGINE, ARMED, 1, 0, taken);
			if
			:: taken ->
				store(ENGINE, WORD, 0, SEQ_CST);
#ifndef MUTATION_2
				load_seq_cst(ENGINE, ARMED, x);
				if
				:: x -> store(ENGINE, WORD, 1, SEQ_CST)
				:: else
				fi;
#endif
				events++
			:: else
			fi
		fi
	od
}

active proctype judge()
{
	timeout;
	assert(!mem[ARMED] || mem[WORD] || record);
	assert(application:seen == mem[PROD])
}
