/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Information about processes, from the kernel; the process that owns the library's objects. */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../engine/types.h"

/*
 * The process that made the library's first object owns them. A child that was made without the
 * handlers of fork(), by _Fork(3) or clone(2), has copies of the objects, or has its memory in
 * common with the owner: its exit(3) must change nothing that belongs to the owner. Destructors
 * return at once unless process_is_owner().
 */
/* Called whenever an object is made; only the first call has an effect. */
void process_own(void);
/* Returns whether the caller's process made the library's objects; false if there are none. */
bool process_is_owner(void);
/* A handler for pthread_atfork(): the child owns the objects that it makes. */
void process_after_fork_child(void);

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

/* Returns whether dir is root's (also without a number here) and not writable by others. */
bool process_is_roots_dir(const char *dir);

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
