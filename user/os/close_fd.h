/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef OS_CLOSE_FD_H
#define OS_CLOSE_FD_H

#include <unistd.h>

/* Closes a descriptor, unless it is -1, and sets it to -1. A cancellation point, as close(2). */
static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#endif
