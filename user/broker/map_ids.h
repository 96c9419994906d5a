/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The numbers of the kernel's BPF maps, which show whether a map still exists after the broker has
 * closed it. Read by a BPF iterator, as BPF_MAP_GET_NEXT_ID needs CAP_SYS_ADMIN. The kernel does
 * not reuse a number soon.
 */
#ifndef BROKER_MAP_IDS_H
#define BROKER_MAP_IDS_H

#include "../engine/types.h"

struct xroce_held_bpf;
struct bpf_link;

struct map_ids {
	struct xroce_held_bpf *bpf; /* the iterator; NULL: not loaded */
	struct bpf_link *link;
	int err; /* of the load, which is not tried again; 0: none */
	u32 *id; /* sorted; the first num of room are valid */
	u32 num, room;
};

/* Returns the number of a map, or 0 if it cannot be read. */
u32 map_ids_of(int map_fd);
/* Reads the numbers of all maps. The first call loads the iterator. Returns 0 or -errno. */
int map_ids_read(struct map_ids *m);
/* Returns whether the map existed at the last map_ids_read(). */
bool map_ids_has(const struct map_ids *m, u32 id);
void map_ids_free(struct map_ids *m);

#endif
