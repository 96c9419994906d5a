/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A wake-up record of XDP's while its CQ goes, and the ring's change of owner: a ring that a
 * channel leaves is the next one's at once, without the kernel's grace period, and an index is the
 * next CQ's. XDP may be anywhere in between.
 *
 *   bpf/wake.h               wake_cq, wake_once
 *   user/run/cq_notify.c     cq_notify_hide, cq_notify_add, cq_notify_arm, cq_notify_rearm,
 *                            cq_notify_on_channel
 *   user/run/port_channel.c  channel_give_ring, channel_take_ring, channel_consume, channel_extra
 *   user/run/channel_sleep.c port_channel_extra
 *   user/port/port_cq.c      port_cq_remove, cq_drop_records
 *
 *   XDP, for a packet                      CQ a, the last of channel A, goes
 *   armed?                                 armed = 0, channel = 0
 *   a channel?                             take the records that are there
 *   take the word; it was 0: done          the ring is spare: channel B has it, with CQ b
 *   the channel again: none: done          CQ c has a's index, and a ring of its own
 *   write the record to its ring
 *
 *   who finds B's descriptor readable
 *   take the records; of a CQ that is armed: set its word again, run the engines
 *   no event came of them: one without a completion, of the record's CQ if that is on B, else of
 *   another that is
 *
 * Property: B's descriptor is readable only if there is an event, or records that end in one. The
 * word of an armed CQ is set, or its channel has the record. XDP takes no word of a CQ that has
 * gone.
 * Mutations: 1 as it once was: an event comes for the record's CQ or not at all; 2 as it once was:
 * XDP looks for the channel before it takes the word and not again; 3 the CQ is not hidden.
 */
#define S 1	/* rings: A's, then B's */
#define T 2	/* C's */
#define PACKETS 2

byte word[2], channel[2];	/* by index: 0 is a's, then c's; 1 is b's */
bit armed[2];
byte record[3];			/* in a ring, for index record - 1; 0: none */
bit gone, b_there, c_there;
byte events;

active [2] proctype xdp()
{
	byte n, ring;
	bit late;

	do
	:: n < PACKETS ->
		n++;
		if
		:: !word[0] -> goto done
		:: else
		fi;
		ring = channel[0];
		if
		:: !ring -> goto done
		:: else
		fi;
		if
		:: d_step { word[0] -> word[0] = 0; late = gone && !c_there }
		:: else -> goto done
		fi;
		assert(!late);
#ifndef MUTATION_2
		ring = channel[0];
		if
		:: !ring -> goto done
		:: else
		fi;
#endif
		/* reserved, and then whole: its reader waits for that (channel_await_record) */
		record[ring] = 1;
done:		ring = 0
	:: else -> break
	od
}

/* A thread that has a's channel, and makes the next ones. */
active proctype owner()
{
	armed[0] = 1;
	channel[0] = S;
	word[0] = 1;
#ifndef MUTATION_3
	word[0] = 0;
	channel[0] = 0;
#endif
	armed[0] = 0;
	record[S] = 0;
	gone = 1;
	if
	:: true
	:: true ->	/* B: armed, and found by XDP; its packets are not of interest */
		channel[1] = S;
		armed[1] = 1;
		word[1] = 1;
		b_there = 1
	fi;
	if
	:: true
	:: true ->
		word[0] = 0;
		channel[0] = T;
		c_there = 1;
		armed[0] = 1;
		word[0] = 1
	fi
}

/* B's program sleeps on the descriptor, and does not block in ibv_get_cq_event(). */
active proctype reader()
{
	byte r;

end:	do
	:: atomic { b_there && record[S] -> r = record[S]; record[S] = 0 }
		if
		:: armed[r - 1] -> word[r - 1] = 1
		:: else
		fi;
#ifdef MUTATION_1
		assert(r - 1 == 1);
#endif
		events++;
		r = 0
	od
}

active proctype judge()
{
	timeout;
	assert(!c_there || !armed[0] || word[0] || record[T]);
	assert(!b_there || !record[S])
}
