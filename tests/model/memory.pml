/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared memory as C11 orders it, for the models beside this file: each thread's stores wait in a
 * buffer before others see them. A model defines THREADS and LOCATIONS, then includes this.
 *
 *   RELAXED   may overtake all stores of its thread but those to its own location
 *   RELEASE   overtakes none
 *   SEQ_CST   overtakes none, and no seq_cst load of its thread overtakes it; other loads do
 *
 * A read-modify-write is seq_cst and waits for what its thread has stored before, but it is no
 * fence: its own store is buffered, too, and nobody else writes to the location meanwhile. Loads
 * are in program order. This is weaker than x86, where only plain stores are buffered, in order,
 * and than ARM; it leaves out what loads that are not in order would show (there, acquire).
 */
#define RELAXED 0
#define RELEASE 1
#define SEQ_CST 2
#define DEPTH	3

typedef buffer {
	byte n;
	byte loc[DEPTH];
	byte val[DEPTH];
	byte order[DEPTH]
};
byte mem[LOCATIONS];
bit owned[LOCATIONS];	/* a read-modify-write is not visible yet: of nobody else's stores any is */
byte owner[LOCATIONS];
buffer sb[THREADS];

#define holds_at(t, i, l) (sb[t].n > i && sb[t].loc[i] == l)
#define holds(t, l)	  (holds_at(t, 0, l) || holds_at(t, 1, l) || holds_at(t, 2, l))
#define strict_at(t, i)	  (sb[t].n > i && sb[t].order[i] == SEQ_CST)
#define is_strict(t)	  (strict_at(t, 0) || strict_at(t, 1) || strict_at(t, 2))

inline push(t, l, v, o)
{
	sb[t].loc[sb[t].n] = l;
	sb[t].val[sb[t].n] = v;
	sb[t].order[sb[t].n] = o;
	sb[t].n++
}

inline see(t, l, x)
{
	x = mem[l];
	if
	:: holds_at(t, 0, l) -> x = sb[t].val[0]
	:: else
	fi;
	if
	:: holds_at(t, 1, l) -> x = sb[t].val[1]
	:: else
	fi;
	if
	:: holds_at(t, 2, l) -> x = sb[t].val[2]
	:: else
	fi
}

inline store(t, l, v, o) { atomic { sb[t].n < DEPTH; push(t, l, v, o) } }
inline load(t, l, x) { atomic { see(t, l, x) } }
inline load_seq_cst(t, l, x) { atomic { !is_strict(t); see(t, l, x) } }
/* atomic_thread_fence(memory_order_seq_cst) */
inline fence(t) { sb[t].n == 0 }

/* x: the value before; v may be made of it. */
inline rmw(t, l, x, v)
{
	atomic {
		sb[t].n == 0 && !owned[l];
		x = mem[l];
		owned[l] = 1;
		owner[l] = t;
		push(t, l, v, SEQ_CST)
	}
}

/* done: l held want and now has v */
inline compare_exchange(t, l, want, v, done)
{
	atomic {
		sb[t].n == 0 && !owned[l];
		done = (mem[l] == want);
		if
		:: done ->
			owned[l] = 1;
			owner[l] = t;
			push(t, l, v, SEQ_CST)
		:: else
		fi
	}
}

/* A mutex: acquire and release, no more. 0: free. */
inline lock(t, l) { atomic { !holds(t, l) && mem[l] == 0; mem[l] = 1 } }
inline trylock(t, l, done)
{
	atomic {
		!holds(t, l);
		done = (mem[l] == 0);
		mem[l] = 1
	}
}
inline unlock(t, l) { store(t, l, 0, RELEASE) }

#define may_leave(t, i) (!owned[sb[t].loc[i]] || owner[sb[t].loc[i]] == t)

inline leave(t, i)
{
	mem[sb[t].loc[i]] = sb[t].val[i];
	owned[sb[t].loc[i]] = 0;
	owner[sb[t].loc[i]] = 0;
	if
	:: i < 1 && sb[t].n > 1 ->
		sb[t].loc[0] = sb[t].loc[1];
		sb[t].val[0] = sb[t].val[1];
		sb[t].order[0] = sb[t].order[1]
	:: else
	fi;
	if
	:: i < 2 && sb[t].n > 2 ->
		sb[t].loc[1] = sb[t].loc[2];
		sb[t].val[1] = sb[t].val[2];
		sb[t].order[1] = sb[t].order[2]
	:: else
	fi;
	sb[t].n--;
	sb[t].loc[sb[t].n] = 0;
	sb[t].val[sb[t].n] = 0;
	sb[t].order[sb[t].n] = 0
}

/* The first processes: their numbers are the threads'. */
active [THREADS] proctype memory()
{
end:	do
	:: atomic { sb[_pid].n > 0 && may_leave(_pid, 0); leave(_pid, 0) }
	:: atomic {
		sb[_pid].n > 1 && sb[_pid].order[1] == RELAXED && may_leave(_pid, 1) &&
			sb[_pid].loc[1] != sb[_pid].loc[0];
		leave(_pid, 1)
	   }
	:: atomic {
		sb[_pid].n > 2 && sb[_pid].order[2] == RELAXED && may_leave(_pid, 2) &&
			sb[_pid].loc[2] != sb[_pid].loc[0] && sb[_pid].loc[2] != sb[_pid].loc[1];
		leave(_pid, 2)
	   }
	od
}
