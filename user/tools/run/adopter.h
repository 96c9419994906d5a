/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first process of a PID namespace, which adopts orphans. An init waits for each. In a
 * container it may be a program that does not. A process that outlives the command then remains a
 * zombie until the namespace ends. adopter_reaps() judges by /proc/1, as no other interface tells.
 */
#ifndef RUN_ADOPTER_H
#define RUN_ADOPTER_H

#include <stdbool.h>

/* This number of our zombies proves that the first process does not wait for children. */
#define ADOPTER_DEAD_MAX 64

/*
 * Judge by /proc/1/status, and by /proc/1/stat from the state on. True if SIGCHLD is ignored, so
 * that the kernel reaps children; if it is blocked, as by an init with sigwait; or if the process
 * has waited for a child before. False if unknown.
 */
bool adopter_status_reaps(const char *status);
bool adopter_stat_reaps(const char *stat);

/* For this PID namespace. False also if /proc/1 is not visible, or at ADOPTER_DEAD_MAX. */
bool adopter_reaps(void);

#endif
