/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists the numbers of all BPF maps of the kernel, for a broker without CAP_SYS_ADMIN, which
 * BPF_MAP_GET_NEXT_ID requires (user/broker/map_ids.h).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* The kernel's types: libbpf finds the fields by their names. */
struct bpf_map {
	__u32 id;
} __attribute__((preserve_access_index));

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__bpf_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
} __attribute__((preserve_access_index));

/* Called for each map, in the order of the numbers, and at the end with none. */
SEC("iter/bpf_map")
int xroce_held(struct bpf_iter__bpf_map *ctx)
{
	struct bpf_map *map = ctx->map;
	__u32 id;

	if (!map)
		return 0;
	id = map->id;
	bpf_seq_write(ctx->meta->seq, &id, sizeof(id));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
