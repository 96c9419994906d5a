/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The privileges of this process, and libbpf's messages where they are missing. */
#ifndef OS_PRIVILEGE_H
#define OS_PRIVILEGE_H

#include <bpf/libbpf.h>
#include <linux/capability.h>

#include "../engine/types.h"

/* Returns the calling thread's effective capabilities as a bitmap; 0 if they cannot be read. */
u64 privilege_caps(void);
static inline bool privilege_has(u64 caps, int cap)
{
	return caps >> cap & 1;
}

/*
 * Returns whether this is the initial user namespace; capabilities in others do not count for BPF,
 * AF_XDP and XDP. True if unknown.
 */
bool privilege_in_first_user_namespace(void);

/* Returns false if the kernel is sure to refuse an XDP program of the calling thread. */
bool privilege_may_attach(void);

/*
 * Returns whether the verifier skips the speculative paths of this thread's BPF programs. Else it
 * takes seconds for a program of thousands of instructions, or refuses it with E2BIG.
 */
bool privilege_verifies_fast(void);

/*
 * Makes libbpf print only with XROCE_DEBUG: it prints the verifier's whole log when a program does
 * not load. Returns the previous print function, for libbpf_set_print() after the load, as the
 * application shares the library.
 */
libbpf_print_fn_t privilege_hush_libbpf(void);

/*
 * Enters a new user namespace, which has this user and group alone, by the numbers uid and gid; the
 * caller's other groups stay in force. Returns 0 or -errno.
 */
int privilege_make_user_namespace(uid_t uid, gid_t gid);

/* Directories that processes of root, or of one user, change in turn; fd is open on one. */

/*
 * Returns 0 if it belongs to root or this user and no one else can write to it, else -EPERM;
 * -ESTALE if it has been removed; or -errno.
 */
int directory_check(int fd);
/* Locks it (flock(2)), waiting at most ms. Returns 0, -EBUSY if it stays locked, or -errno. */
int directory_lock(int fd, u32 ms);

#endif
