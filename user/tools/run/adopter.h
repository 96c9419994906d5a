/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first process of a PID namespace, which adopts orphans. An init waits for each. In a
 * container it may be any program, which does not, and then a process that outlives the command
 * stays as a zombie until the namespace ends. No process says which it is:
 * adopter_reaps() goes by what /proc/1 shows.
 */
#ifndef RUN_ADOPTER_H
#define RUN_ADOPTER_H

#include <stdbool.h>

/* So many of ours that are dead and not waited for: the first process waits for none. */
#define ADOPTER_DEAD_MAX 64

/*
 * What /proc/1/status and the second half of /proc/1/stat (from the state on) say: that SIGCHLD is
 * ignored, by which the kernel takes the dead away; or blocked, to be waited for as an init does;
 * or that the process has waited for a child before. False: nothing of that can be read there.
 */
bool adopter_status_reaps(const char *status);
bool adopter_stat_reaps(const char *stat);

/* Of this process's PID namespace. False also if it cannot be seen, or has ADOPTER_DEAD_MAX. */
bool adopter_reaps(void);

#endif
