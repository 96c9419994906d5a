/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits until the kernel has freed maps, programs and links:
 *
 *	bpf_left SECONDS "map|prog|link ID"...
 *
 * Exit status 0 if all are freed in time; otherwise 1, and a line for each one left.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/ctl.h"

static bool is_left(const char *what)
{
	union bpf_attr attr = { 0 };
	unsigned int id;
	char kind[8];
	int command, fd;

	must(sscanf(what, "%7s %u", kind, &id) == 2, "bpf_left: '%s' is no kind and id", what);
	attr.map_id = id;
	if (!strcmp(kind, "map"))
		command = BPF_MAP_GET_FD_BY_ID;
	else if (!strcmp(kind, "prog"))
		command = BPF_PROG_GET_FD_BY_ID;
	else if (!strcmp(kind, "link"))
		command = BPF_LINK_GET_FD_BY_ID;
	else
		die("bpf_left: '%s' is no kind", kind);
	fd = (int)syscall(SYS_bpf, command, &attr, sizeof(attr));
	must(fd >= 0 || errno == ENOENT, "bpf_left: %s: %s", what, strerror(errno));
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int main(int argc, char **argv)
{
	int i = 2;
	uint64_t end;

	must(argc > 1, "usage: bpf_left SECONDS \"map|prog|link ID\"...");
	end = now_ms() + strtoull(argv[1], NULL, 10) * 1000;
	for (;;) {
		while (i < argc && !is_left(argv[i]))
			i++;
		if (i == argc)
			return 0;
		if (now_ms() >= end)
			break;
		poll(NULL, 0, 20);
	}
	for (; i < argc; i++)
		if (is_left(argv[i]))
			puts(argv[i]);
	return 1;
}
