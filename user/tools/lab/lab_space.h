/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The namespaces of a lab and the processes that hold them:
 *
 *   this process -- guard: makes the namespaces -- lab: the first process of its PID namespace
 *                                                   |- cable
 *                                                   `- programs of the hosts
 *
 * Each process is killed with its parent, and the PID namespace with its first process, so that
 * nothing remains when this process is killed.
 */
#ifndef LAB_SPACE_H
#define LAB_SPACE_H

#include "lab_run.h"

/* Makes the lab, runs its programs, and ends it. Returns the exit status, without the report's. */
int lab_space_run(struct lab *lab);
/* Returns whether a signal has asked this process to end. */
bool lab_space_interrupted(void);

#endif
