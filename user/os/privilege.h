/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this process may do, and what libbpf says where it may not. */
#ifndef OS_PRIVILEGE_H
#define OS_PRIVILEGE_H

#include <bpf/libbpf.h>
#include <linux/capability.h>

#include "../engine/types.h"

/*
 * The effective capabilities of the calling thread, a bit each (capabilities(7)); 0 if they cannot
 * be read.
 */
u64 privilege_caps(void);
static inline bool privilege_has(u64 caps, int cap)
{
	return caps >> cap & 1;
}

/*
 * Capabilities of a user namespace other than the first do not count for BPF, AF_XDP and XDP. True
 * if it cannot be told.
 */
bool privilege_in_first_user_namespace(void);

/* False: the kernel is sure to refuse an XDP program of the calling thread. */
bool privilege_may_attach(void);

/*
 * libbpf prints the verifier's whole log when a program does not load: that is for XROCE_DEBUG.
 * Returns what printed before, for libbpf_set_print() after the load: the library is shared with
 * the application.
 */
libbpf_print_fn_t privilege_hush_libbpf(void);

/* Directories that processes of root's, or of one user, change in turn. By an open descriptor. */

/*
 * Is it root's or this user's, and nobody else's to write to? 0, -EPERM: it is not; -ESTALE: it has
 * been removed; or -errno.
 */
int directory_check(int fd);
/* Waits so long at most for the lock (flock(2)). Returns 0, -EBUSY: another has it; or -errno. */
int directory_lock(int fd, u32 ms);

#endif
