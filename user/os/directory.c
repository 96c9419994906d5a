/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"

int directory_check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!st.st_nlink)
		return -ESTALE;
	return (!st.st_uid || st.st_uid == geteuid()) && !(st.st_mode & (S_IWGRP | S_IWOTH)) ?
		       0 :
		       -EPERM;
}

int directory_lock(int fd, u32 ms)
{
	for (u32 waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (waited >= ms)
			return -EBUSY;
		poll(NULL, 0, 1);
	}
	return 0;
}
