/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How many descriptors this process has. */
#ifndef TESTS_PORT_OPEN_FDS_H
#define TESTS_PORT_OPEN_FDS_H

#include <dirent.h>

static inline u32 open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	u32 n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#endif
