/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet in WATCH: the socket is level-triggered. And how the worker comes back to WATCH
 * when the application stops driving the shard.
 *
 *   user/run/worker.c       worker_main, worker_serve, worker_sleep, worker_is_deserted,
 *                           worker_app_came
 *   user/run/shard.c        shard_try_to_run
 *
 *   worker                                     application
 *   app_progress has moved: STANDBY, one tick        move app_progress (relaxed)
 *   not in a whole tick: serve until idle,     trylock; run the shard
 *     then WATCH: sleep on the sockets
 *
 * Ticks end, whatever happens; the sleep in WATCH ends for a packet only.
 *
 * Property: at the end every packet has been through the engine.
 * Mutations: 1 the socket wakes for a packet that comes while somebody sleeps on it only (edges); 2
 * STANDBY sleeps without a tick.
 */
byte socket, done, progress;
bit taken, asleep, edge;

#define PACKETS 2
#define POLLS	2

inline run_shard() { d_step { done = done + socket; socket = 0 } }

active proctype kernel()
{
	byte n;

	do
	:: n < PACKETS -> atomic { n++; socket++; edge = asleep }
	:: else -> break
	od
}

active proctype application()
{
	byte n;

	do
	:: n < POLLS ->
		n++;
		progress++;
		if
		:: atomic { !taken; taken = 1 }
			run_shard();
			taken = 0
		:: taken
		fi
	:: break
	:: n == POLLS -> break
	od
}

active proctype service()
{
	byte last, now;
	bit standby;

end:	do
	:: now = progress;
		standby = (now != last);
		last = now;
		if
		:: standby ->
			/* a tick */
#ifdef MUTATION_2
end_standby:		false
#else
			skip
#endif
		:: else ->
			atomic { !taken; taken = 1 }
			run_shard();
			taken = 0;
			if
			:: progress != last
			:: else ->
				asleep = 1;
#ifdef MUTATION_1
end_edge:			atomic { edge; edge = 0 }
#else
end_watch:			socket;
#endif
				asleep = 0;
			fi
		fi
	od
}

active proctype judge()
{
	timeout;
	assert(done == PACKETS)
}
