/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Invariants that hold when no thread has work, before time jumps to the next deadline: each
 * sleeper will be woken for present work and for work that may arrive. Also the invariants at the
 * end. A violation ends the run.
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
