/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An event that another vector's thread is to raise: it is handed, and taken once; a CQ that goes
 * takes its events with it.
 *
 *   user/wake/vector.c      vector_may_report, vector_hand, vector_take_handed, vector_waits
 *   user/wake/wake.c        wake_remove (the CQ off the table)
 *   user/service/service.c  service_main
 *
 *   finder, its own shard held         raiser                        remover
 *   table lock: handed + 1,            kicked: handed_total?         all shards' locks;
 *     handed_total + 1                   its shard's lock,           table lock: handed = 0
 *   kick the raiser                      table lock: handed - 1;     then the CQ is gone
 *                                        report, unlock
 *
 * A thread of the application may take it too, under the finder's shard's lock.
 *
 * Property: each event is reported once, or was the CQ's when it went; none of a CQ that has gone.
 * Mutations: 1 the kick comes before the event is handed; 2 the remover leaves handed as it is; 3
 * it holds one shard only; 4 whoever takes one looks at handed before it has the table.
 */
bit shard[2], table;
byte handed;
byte reported, found, dropped;
bit kicked, gone;

inline take()
{
#ifdef MUTATION_4
	x = handed;
	atomic { !table; table = 1 }
#else
	atomic { !table; table = 1 }
	x = handed;
#endif
	if
	:: x -> handed = x - 1
	:: else
	fi;
	table = 0;
	if
	:: x ->
		assert(!gone);
		reported++
	:: else
	fi;
	x = 0
}

active proctype finder()
{
	byte n;

	do
	:: n < 2 && !gone ->
		n++;
		atomic { !shard[0]; shard[0] = 1 }
		if
		:: !gone ->
#ifdef MUTATION_1
			kicked = 1;
#endif
			atomic { !table; table = 1 }
			handed++;
			found++;
			table = 0;
#ifndef MUTATION_1
			kicked = 1
#endif
		:: else
		fi;
		shard[0] = 0
	:: else -> break
	od
}

active proctype raiser()
{
	byte x;

end:	do
	:: atomic { kicked; kicked = 0 }
		do
		:: handed ->
			atomic { !shard[1]; shard[1] = 1 }
			take();
			shard[1] = 0
		:: else -> break
		od
	od
}

active proctype application()
{
	byte x;

	if
	:: atomic { !shard[0]; shard[0] = 1 }
		take();
		shard[0] = 0
	:: true
	fi
}

active proctype remover()
{
	if
	:: true
	:: atomic { !shard[0]; shard[0] = 1 }
#ifndef MUTATION_3
		atomic { !shard[1]; shard[1] = 1 }
#endif
		atomic { !table; table = 1 }
#ifndef MUTATION_2
		dropped = handed;
		handed = 0;
#endif
		table = 0;
		gone = 1;
#ifndef MUTATION_3
		shard[1] = 0;
#endif
		shard[0] = 0
	fi
}

active proctype judge()
{
	timeout;
	assert(!handed && reported + dropped == found)
}
