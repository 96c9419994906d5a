/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "process.h"

void process_name(pid_t pid, char *comm, size_t n)
{
	char path[32];
	FILE *f;

	snprintf(comm, n, "?");
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = pid > 0 ? fopen(path, "re") : NULL;
	if (!f)
		return;
	if (fgets(comm, (int)n, f))
		comm[strcspn(comm, "\n")] = 0;
	fclose(f);
	for (char *c = comm; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}
