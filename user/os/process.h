/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel tells of another process. */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../engine/types.h"

/*
 * The name of a process; "?" if it cannot be read. Any process may choose its name: what is not
 * printable becomes '?'.
 */
void process_name(pid_t pid, char *comm, size_t n);

/*
 * Is a user that the kernel named (SO_PEERCRED) surely this process's own? The overflow uid is
 * whoever has no number in this user namespace, and so is nobody's for certain.
 */
bool process_is_own_uid(uid_t uid);

/* Is it the number of a user who has none in this user namespace, and so no other's? */
bool process_is_outside_uid(uid_t uid);

/* Is a word in the process's list of mounts? Not if that may not be read. */
bool process_has_mount(pid_t pid, const char *word);

/*
 * Is a process in that namespace, by its inode? which: a name in /proc/PID/ns. True if it cannot be
 * told, as /proc is not to be read; of a process that may not be looked into nothing is known.
 */
bool process_in_namespace(const char *which, u64 inode);

/*
 * The same of a mount namespace where the list of mounts has that word in it. The number of one
 * that has gone is soon another's, which has not.
 */
bool process_sees_mount(u64 inode, const char *word);

#endif
