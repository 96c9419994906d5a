/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules of an endpoint in a lab: the libraries of a host's programs get them by the environment,
 * and report what they did. Each process makes a memfd for its results, and leaves it in the
 * backlog of a socket of its host's network namespace, where the lab takes it at the end.
 */
#ifndef LAB_ENDPOINT_H
#define LAB_ENDPOINT_H

#include "lab_run.h"

/* Returns whether the rules' text of a lab has a rule of an endpoint. */
bool lab_endpoint_any(const struct lab *lab);
/* Makes the sockets of hosts that have rules. Returns EXIT_OK, or EXIT_FAILED after a message. */
int lab_endpoint_open(struct lab *lab);
/* Sets the environment of a host's program, of a lab that began. number: the host's, from 1. */
void lab_endpoint_environment(const struct lab *lab, u32 number);
/* Adds the results of all processes to the lab's rules. The programs have ended. */
void lab_endpoint_collect(struct lab *lab);

#endif
