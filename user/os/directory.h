/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Directories that processes of root's, or of one user, change in turn. By an open descriptor. */
#ifndef BASE_DIRECTORY_H
#define BASE_DIRECTORY_H

#include "../engine/types.h"

/*
 * Is it root's or this user's, and nobody else's to write to? 0, -EPERM: it is not; -ESTALE: it has
 * been removed; or -errno.
 */
int directory_check(int fd);
/* Waits so long at most for the lock (flock(2)). Returns 0, -EBUSY: another has it; or -errno. */
int directory_lock(int fd, u32 ms);

#endif
