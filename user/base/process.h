/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel tells of another process. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * The name of a process; "?" if it cannot be read. Any process may choose its name: what is not
 * printable becomes '?'.
 */
void process_name(pid_t pid, char *comm, size_t n);

#endif
