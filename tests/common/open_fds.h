/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_COMMON_OPEN_FDS_H
#define TESTS_COMMON_OPEN_FDS_H

#include <dirent.h>
#include <stdlib.h>

/* Returns the number of entries of a directory of /proc. Aborts if it cannot be read. */
static inline int entries_of(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		abort();
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Returns a number that grows by one for each descriptor of this process. */
static inline int open_fds(void)
{
	return entries_of("/proc/self/fd");
}

#endif
