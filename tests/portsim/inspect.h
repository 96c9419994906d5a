/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must hold whenever no thread has anything to do, before time jumps to the next deadline:
 * whoever sleeps will be woken for what there is, and for what may come. And what must hold at the
 * end. What does not ends the run.
 */
#ifndef PORTSIM_INSPECT_H
#define PORTSIM_INSPECT_H

#include "app.h"

struct app_thread;
void inspect_begin(struct app_thread *const *threads, u32 n);
/* To be called by the scheduler: sched_options.idle. */
void inspect_idle(u64 now_ns, u64 next_ns);
/* All threads of the application are done: nothing is left undone in this port. */
void inspect_end(struct port *port, u32 number);

#endif
