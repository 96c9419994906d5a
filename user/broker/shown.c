/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>

#include "../base/shown_maps.h"
#include "shown.h"

#define SHOWN_IDS 1024 /* maps of a program; more are not looked at */

/* Of the program's maps; returns how many, or -errno. */
static int shown_ids(u32 prog_id, u32 ids[SHOWN_IDS])
{
	struct bpf_prog_info prog = { .nr_map_ids = SHOWN_IDS, .map_ids = (uintptr_t)ids };
	u32 len = sizeof(prog);
	int fd = bpf_prog_get_fd_by_id(prog_id), err;

	if (fd < 0)
		return fd;
	err = bpf_obj_get_info_by_fd(fd, &prog, &len);
	close(fd);
	return err ? err : (int)(prog.nr_map_ids < SHOWN_IDS ? prog.nr_map_ids : SHOWN_IDS);
}

/* -ENOENT: it is none of those that are shown. */
static int shown_open_one(u32 id)
{
	LIBBPF_OPTS(bpf_get_fd_by_id_opts, opts, .open_flags = BPF_F_RDONLY);
	struct bpf_map_info map = { 0 };
	u32 len = sizeof(map);
	const int fd = bpf_map_get_fd_by_id_opts(id, &opts);

	if (fd < 0)
		return fd;
	if (!bpf_obj_get_info_by_fd(fd, &map, &len) && shown_map_is(map.name))
		return fd;
	close(fd);
	return -ENOENT;
}

int shown_open(u32 prog_id, u32 first, int fd[ASK_FDS])
{
	u32 ids[SHOWN_IDS], skipped = 0;
	const int all = shown_ids(prog_id, ids);
	int n = 0, one;

	for (int i = 0; i < all && n < ASK_FDS; i++) {
		one = shown_open_one(ids[i]);
		if (one == -EMFILE || one == -ENFILE || one == -ENOMEM) {
			shown_close(fd, n);
			return one;
		}
		if (one < 0)
			continue;
		if (skipped++ < first)
			close(one);
		else
			fd[n++] = one;
	}
	return all < 0 ? all : n;
}

void shown_close(const int *fd, int n)
{
	for (int i = 0; i < n; i++)
		close(fd[i]);
}
