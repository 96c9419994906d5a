/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bpf_room.h"

#define ROOM_MOST 128 /* descriptors tried */
#define ROOM_ASK  8   /* for libbpf's probes and BTF, at the same time */

int bpf_room(const struct bpf_object *obj)
{
	int fd[ROOM_MOST], want = ROOM_ASK, n, err = 0;
	struct bpf_program *program;
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj) want++;
	bpf_object__for_each_program(program, obj) want++;
	for (n = 0; n < want && n < ROOM_MOST; n++) {
		fd[n] = eventfd(0, EFD_CLOEXEC);
		if (fd[n] < 0) {
			err = -errno;
			break;
		}
	}
	while (n)
		close(fd[--n]);
	return err;
}

int bpf_load(struct bpf_object_skeleton *skeleton)
{
	const int err = bpf_room(*skeleton->obj);

	return err ? err : bpf_object__load_skeleton(skeleton);
}
