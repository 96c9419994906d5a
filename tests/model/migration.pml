/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A QP moves to the shard where its packets arrive, while a thread posts to it and frames for it
 * are on their way between the shards. What each store is seen after is looked at in doorbell.pml
 * and handover.pml: here they are seen at once.
 *
 *   user/run/migration.c migration_move, migration_move_qp, handover_give, handover_take
 *   user/engine/owner.c  engine_move_qp, owner_silence_doorbell, owner_take_doorbells,
 *                        engine_doorbell
 *   user/run/shard.c     shards_post, shard_post_and_run, shard_unlock_once, shards_run_others
 *
 *   poster                        mover                            receiver, shard 0 held
 *   WQE, whose QP is it?          all locks, in order              whose QP is it?
 *   trylock: ours, and still      take what was handed over        this shard's: input
 *     that shard's: run it        silence the doorbell             else: put into the owner's ring
 *   else: whose QP is it?         the QP is shard 0's              unlock, look
 *     doorbell 0 -> 1: push on    it rang, or was ready: ring      trylock the owner's: run it; it
 *       that one's stack          run those that took frames         is taken: leave it
 *     trylock: run it             unlock each, look
 *
 * The owner changes with all locks held. A doorbell that lies on the stack of a shard that is not
 * the owner any more is passed on by whoever takes it.
 *
 * Property: frames are taken by their owner, in the order in which they came; at the end all that
 * was posted has been sent, and all that came has been answered.
 * Mutations: 1 the poster does not look again whose it is behind the lock; 2 the mover leaves what
 * was handed over where it is; 3 shards that took frames are not run; 4 the new owner's doorbell is
 * not rung; 5 a doorbell of another's QP is not passed on; 6 the mover holds the new owner's lock
 * alone.
 */
#define POSTS	2
#define PACKETS 2

bit lock[2];
byte owner = 1;
bit doorbell, stack[2];
byte wqes, sent;
bit ready;		/* the QP has something to send, on its owner's list */
byte ring[2];		/* frames for the QP, from shard 0 to shard 1; [1]: for another QP there */
byte came, taken;	/* packets of the QP: at shard 0, in order, and in the engine */
bit due;		/* shard 1 has an answer for the other QP */
bit givers;

/* A frame of the QP in engine e. */
inline take_in(e)
{
	assert(owner == e);
	taken++;
	ready = 1
}

/* What was handed over to shard 1. */
inline take_handed()
{
	if
	:: givers ->
		givers = 0;
		do
		:: ring[0] -> ring[0]--; take_in(1)
		:: else -> break
		od;
		if
		:: ring[1] -> ring[1]--; due = 1
		:: else
		fi
	:: else
	fi
}

/* pump_run(). passed: the other has a doorbell by our doing. */
inline turn(e)
{
	if
	:: e == 1 -> take_handed()
	:: else
	fi;
	if
	:: stack[e] ->
		stack[e] = 0;
		if
		:: owner == e ->
			doorbell = 0;
			ready = 1
		:: else ->
#ifndef MUTATION_5
			stack[owner] = 1;
			passed = 1
#endif
		fi
	:: else
	fi;
	if
	:: ready && owner == e ->
		ready = 0;
		sent = wqes
	:: else
	fi;
	if
	:: e == 1 -> due = 0
	:: else
	fi
}

/* shard_unlock_once() */
inline unlock_once(e)
{
	do
	:: lock[e] = 0;
		if
		:: stack[e] || (e == 1 && givers) ->
			if
			:: d_step { !lock[e] -> lock[e] = 1 } -> turn(e)
			:: else -> break
			fi
		:: else -> break
		fi
	od
}

/* shard_unlock(): then the other shard, if it was given something. gave: a frame. */
inline unlock_and_run_other(e)
{
	unlock_once(e);
	o = e;
	do
	:: passed || gave ->
		passed = 0;
		gave = 0;
		o = 1 - o;
		if
		:: d_step { !lock[o] -> lock[o] = 1 } -> turn(o); unlock_once(o)
		:: else
		fi
	:: else -> break
	od;
	o = 0
}

active proctype poster()
{
	byte n, e, o;
	bit passed, gave, rang;

	do
	:: n < POSTS ->
		n++;
		wqes++;
		e = owner;
		if
		:: d_step { !lock[e] -> lock[e] = 1 } ->
#ifndef MUTATION_1
			if
			:: owner != e ->
				unlock_and_run_other(e);
				goto ring_it
			:: else
			fi;
#endif
			if
			:: owner == e -> ready = 1	/* engine_posted() */
			:: else
			fi;
			turn(e);
			unlock_and_run_other(e);
			goto posted
		:: else
		fi;
ring_it:	e = owner;
		d_step { rang = doorbell; doorbell = 1 };
		if
		:: !rang -> stack[e] = 1
		:: else
		fi;
		if
		:: d_step { !lock[e] -> lock[e] = 1 } -> turn(e); unlock_and_run_other(e)
		:: else
		fi;
posted:		e = 0;
		rang = 0
	:: else -> break
	od
}

active proctype receiver()
{
	byte o;
	bit passed, gave;

	do
	:: came < PACKETS ->
		d_step { !lock[0] -> lock[0] = 1 };
		if
		:: owner == 0 ->
			assert(taken == came);	/* none overtakes another */
			take_in(0)
		:: else ->
			ring[0]++;
			givers = 1;
			gave = 1
		fi;
		came++;
		if
		:: !ring[1] && !due -> ring[1] = 1; givers = 1; gave = 1
		:: true
		fi;
		turn(0);
		unlock_and_run_other(0)
	:: else -> break
	od
}

active proctype mover()
{
	byte o;
	bit passed, gave, rang, took;

	d_step { !lock[0] -> lock[0] = 1 };
#ifndef MUTATION_6
	d_step { !lock[1] -> lock[1] = 1 };
#endif
#ifndef MUTATION_2
	took = givers;
	take_handed();
#endif
	if
	:: stack[0] || stack[1] ->
		stack[0] = 0;
		stack[1] = 0;
		doorbell = 0;
		rang = 1
	:: else
	fi;
	owner = 0;
	rang = rang || ready;
	ready = 0;
#ifndef MUTATION_4
	if
	:: rang ->
		if
		:: !doorbell -> doorbell = 1; stack[0] = 1
		:: else
		fi
	:: else
	fi;
#endif
#ifndef MUTATION_3
	if
	:: took -> turn(1)
	:: else
	fi;
#endif
#ifndef MUTATION_6
	unlock_once(1);
#endif
	unlock_once(0);
	/* shards_unlock(): those that were given something */
	gave = passed;
	passed = 0;
	if
	:: gave ->
		gave = 0;
		if
		:: d_step { !lock[1] -> lock[1] = 1 } -> turn(1); unlock_and_run_other(1)
		:: else
		fi
	:: else
	fi
}

active proctype judge()
{
	timeout;
	assert(sent == wqes && wqes == POSTS);
	assert(taken == PACKETS && !ready && !due && !ring[0] && !ring[1] && !doorbell)
}
