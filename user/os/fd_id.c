/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fd_id.h"

#include <errno.h>
#include <sys/stat.h>

struct fd_id fd_id_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? (struct fd_id){ 0 } : (struct fd_id){ st.st_dev, st.st_ino };
}

bool fd_id_is(int fd, struct fd_id id)
{
	struct stat st;

	/* a seccomp filter may refuse the call */
	if (fstat(fd, &st))
		return errno != EBADF;
	return !id.ino || (st.st_ino == id.ino && st.st_dev == id.dev);
}
