/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Information about other processes, from the kernel. */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../engine/types.h"

/*
 * Returns a process's name, "?" if it cannot be read. A process may choose any name: unprintable
 * characters become '?'.
 */
void process_name(pid_t pid, char *comm, size_t n);

/*
 * Returns whether a seccomp filter may refuse system calls of the calling thread, or kill it for
 * one; true if unknown.
 */
bool process_is_filtered(void);

/*
 * Returns whether a user ID from the kernel (SO_PEERCRED) is certainly this process's user. The
 * overflow uid stands for all users without a number in this user namespace, if there are such.
 */
bool process_is_own_uid(uid_t uid);

/* Returns whether the uid stands for users without a number here, and for no other. */
bool process_is_outside_uid(uid_t uid);

/* Returns whether the process's mountinfo contains a word; false if it cannot be read. */
bool process_has_mount(pid_t pid, const char *word);

/*
 * Returns whether a process is in the namespace with this inode. which: a name in /proc/PID/ns.
 * True if /proc cannot be read; processes that may not be inspected do not count.
 */
bool process_in_namespace(const char *which, u64 inode);

/*
 * As process_in_namespace(), for a mount namespace whose mountinfo contains a word, as the number
 * of a namespace is soon reused.
 */
bool process_sees_mount(u64 inode, const char *word);

#endif
