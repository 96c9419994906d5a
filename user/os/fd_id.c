/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fd_id.h"

#include <sys/stat.h>

struct fd_id fd_id_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? (struct fd_id){ 0 } : (struct fd_id){ st.st_dev, st.st_ino };
}

bool fd_id_is(int fd, struct fd_id id)
{
	const struct fd_id now = fd_id_of(fd);

	return now.ino && now.ino == id.ino && now.dev == id.dev;
}
