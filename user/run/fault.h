/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Faults of the engine's accesses to application memory (engine/guard.h): the handler of SIGSEGV
 * and SIGBUS that ends the access and not the process, in front of whatever handlers the program
 * has.
 */
#ifndef RUN_FAULT_H
#define RUN_FAULT_H

#include "../engine/types.h"

/*
 * When the calling thread must look again whether the handler would be called; 0 in a new thread.
 */
extern _Thread_local u64 fault_due_ns;
void fault_look(u64 now_ns);

/* An engine is about to run in this thread. Every millisecond that costs three system calls. */
static inline void fault_watch(u64 now_ns)
{
	if (unlikely(now_ns >= fault_due_ns))
		fault_look(now_ns);
}

/* In the child of a fork(): no other thread is in here. */
void fault_after_fork(void);

#endif
