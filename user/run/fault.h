/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Handles faults of the engine's accesses to application memory (engine/guard.h). The handler of
 * SIGSEGV and SIGBUS fails the access instead of ending the process; it runs before the program's
 * own handlers.
 */
#ifndef RUN_FAULT_H
#define RUN_FAULT_H

#include "../engine/types.h"

/* When the calling thread must check its handlers again; 0 in a new thread. */
extern _Thread_local u64 fault_due_ns;
void fault_look(u64 now_ns);

/*
 * Checks the handlers if it is time. Call it before an engine runs in this thread. Costs three
 * system calls each millisecond.
 */
static inline void fault_watch(u64 now_ns)
{
	if (unlikely(now_ns >= fault_due_ns))
		fault_look(now_ns);
}

/* Resets the state in the child of a fork(), which has no other thread. */
void fault_after_fork(void);

#endif
