/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recognises a socket of this library by its number. A program that closes all descriptors
 * (closefrom(3)) closes the library's as well, and its own next files get their numbers.
 */
#ifndef OS_FD_ID_H
#define OS_FD_ID_H

#include "../engine/types.h"

struct fd_id {
	u64 dev, ino; /* ino 0: not known */
};

/* Returns the identity of a socket, which no other file has. */
struct fd_id fd_id_of(int fd);
/* Returns whether the number is still a descriptor of that socket, as far as fstat(2) tells. */
bool fd_id_is(int fd, struct fd_id id);

#endif
