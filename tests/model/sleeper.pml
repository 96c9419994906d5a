/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The last sleeper leaves: while threads sleep in port_channel_wait() they watch the shard's
 * sockets themselves, XDP wakes nobody, and the worker is in its long tick.
 *
 *   user/run/channel_sleep.c channel_sleep_wait, channel_sleep_on,
 *                            channel_sleep_await_unannounced, channel_sleep_give_up
 *   user/run/worker.c        worker_sleep, worker_main, worker_sleeper_enter,
 *                            worker_sleeper_leave
 *   bpf/xroce.bpf.c          xroce_xdp
 *   bpf/wake.h               is_watched, count_unannounced, wake_engine
 *
 *   sleeper                        XDP, for a packet               worker
 *   sleepers + 1, watched + 1      watched? mark it                sleepers:
 *   sleep on the sockets           (its descriptor comes later,      set asleep, fence
 *   sleepers - 1, watched - 1,      at the end of the poll)          still sleepers: sleep; the
 *     fence                        marked: unannounced + 1            first tick is a short one
 *                                    (fence); still watched: done    else clear asleep; short
 *   run the shard                  asleep? take it (fence), and       ticks, then the sockets
 *   counted in unannounced, not      write the record
 *     come: wait, or give up
 *
 * XDP sees what it sees in the order of its loads. The long tick has no end here, so nothing may
 * depend on that. The short one ends when XDP's poll has: 1 ms against tens of us.
 *
 * Property: at the end every packet has been through the engine, though no thread of the
 * application is in the port any more; a queue is watched while a thread sleeps, and not at the
 * end.
 * Mutations: 1 the worker's first tick is a long one, though XDP may have looked before it;
 * 2 watched is not read again behind the count; 3 the last one does not wait for what is counted; 4
 * what is given up is left to nobody; 5 there is no fence behind watched; 6 as it once was:
 * sleepers, not the worker, set asleep, when the last one leaves and behind watched; 7 as
 * it once was: the first one sets watched and the last one clears it.
 */
#define THREADS	  2
#define LOCATIONS 4
#define SLEEPERS  0
#define WATCHED	  1
#define ASLEEP	  2
#define ANNOUNCED 3	/* unannounced */
#include "memory.pml"

/*
 * XDP's exchange and its counting are full barriers and the worker's store is followed by a
 * fence, so only the sleepers have buffers.
 */
#define PACKETS 1

byte polled, marked;	/* packets that XDP has seen and not published; marked ones */
bit polling;		/* from XDP's first look on: it has a packet that is not published */
bit old;		/* of such a packet it is not known that XDP sees asleep set */
byte socket, socket_marked;
byte done;		/* packets that have been through the engine */
byte came;		/* marked ones */
bit record, kick;

/* shard_run(). The lock is no fence. */
inline run_shard()
{
	d_step {
		done = done + socket; came = came + socket_marked;
		socket = 0; socket_marked = 0
	}
}

proctype sleeper(byte me)
{
	byte x;

	rmw(me, SLEEPERS, x, x + 1);
#if defined(MUTATION_6) || defined(MUTATION_7)
	if
	:: !x ->
#ifdef MUTATION_6
		store(me, ASLEEP, 0, RELAXED)
#else
		store(me, WATCHED, 1, RELAXED)
#endif
	:: else
	fi;
#endif
#ifndef MUTATION_7
	rmw(me, WATCHED, x, x + 1);
#endif
	atomic { see(me, WATCHED, x); assert(x) }
	if
	:: socket
	:: true /* an event, a signal */
	fi;
	rmw(me, SLEEPERS, x, x - 1);
#ifdef MUTATION_7
	if
	:: x == 1 -> store(me, WATCHED, 0, RELAXED)
	:: else
	fi;
#else
	rmw(me, WATCHED, x, x - 1);
#endif
#ifdef MUTATION_6
	if
	:: x == 1 ->
		fence(me);
		store(me, ASLEEP, 1, RELAXED)
	:: else
	fi;
#endif
#ifndef MUTATION_5
	fence(me);
#endif
	run_shard();
#ifndef MUTATION_3
	do
	:: load(me, ANNOUNCED, x);
		if
		:: x == came || mem[SLEEPERS] -> break
		:: else
		fi;
		if
		:: socket -> run_shard()
		:: true ->
			/* not within 200 us: channel_sleep_give_up() nudges the worker */
			came = x;
#ifndef MUTATION_4
			kick = 1;
#endif
			break
		fi
	od
#endif
}

inline packet_seen()
{
	atomic { polling = 1; packets++; w = mem[WATCHED] != 0; m = w }
	if
	:: m ->
		mem[ANNOUNCED] = mem[ANNOUNCED] + 1;
#ifdef MUTATION_2
		w = 1
#else
		w = mem[WATCHED] != 0
#endif
	:: else
	fi;
	if
	:: !w ->
		x = mem[ASLEEP];
		if
		:: x ->
			atomic { x = mem[ASLEEP]; mem[ASLEEP] = 0 }
			if
			:: x -> record = 1
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	atomic { polled++; marked = marked + m; m = 0; w = 0; x = 0 }
}

active proctype xdp()
{
	byte x, packets;
	bit w, m;

	do
	:: packets < PACKETS -> packet_seen()
	:: polled ->
		atomic {
			socket = socket + polled;
			socket_marked = socket_marked + marked;
			polled = 0; marked = 0; polling = 0; old = 0
		}
	:: packets == PACKETS && !polled -> break
	od
}

active proctype service()
{
	byte x;
	bit settled;	/* XDP has asleep set before it for all packets that are not published */

end:	do
	:: x = mem[SLEEPERS];
		if
		:: x ->
#ifndef MUTATION_6
			if
			:: !settled -> mem[ASLEEP] = 1
			:: else
			fi;
#endif
			atomic { old = polling; x = mem[SLEEPERS] }
#if defined(MUTATION_1) || defined(MUTATION_6)
			settled = 1;
#endif
			if
			:: x ->
				/* ppoll(), without the sockets */
end_long:			if
				:: atomic { record || kick; record = 0; kick = 0; settled = 0 }
				:: atomic { !settled && !old; settled = 1 }
				fi
			:: else -> settled = 0
			fi;
			old = 0
		:: else ->
			mem[ASLEEP] = 0;
			/* a short tick, or the sockets */
end_short:		if
			:: mem[SLEEPERS]
			:: socket || kick || record ->
				run_shard();
				atomic { record = 0; kick = 0 }
			fi;
			settled = 0
		fi
	od
}

init {
	atomic { run sleeper(0); run sleeper(1) }
	timeout;
	assert(done == PACKETS && !mem[WATCHED])
}
