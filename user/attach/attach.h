/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching to an interface: all that takes privileges, once. Using what it makes needs none: all
 * of it is descriptors and mappings, which could come from another process.
 */
#ifndef ATTACH_ATTACH_H
#define ATTACH_ATTACH_H

#include "../base/xdp_maps.h"
#include "../netdev/netdev.h"
#include "../shard/shard_io.h"
#include "port_info.h"

struct xroce_bpf;

struct attachment {
	struct port_info info;
	u32 ifindex;
	int holder_fd;
	_Atomic int link_fd; /* what holds the program to the interface */
	bool in_dispatcher; /* beside other programs (dispatcher.h), else alone */
	struct xroce_bpf *bpf;
	struct xdp_maps maps;
	struct shard_io io[XROCE_MAX_SHARD]; /* info.shards of them */
};

/*
 * Returns 0 or -errno after a line on standard error; nothing is left behind then. GIDs are not
 * published yet.
 */
int attach_make(const struct netdev *dev, struct attachment *out);
void attach_unmake(struct attachment *m);
/* XDP redirects nothing more; all else stays. */
void attach_detach(struct attachment *m);
/* The interface's hook has another program than before: ours stays a descriptor of this process. */
void attach_follow(struct attachment *m);
/*
 * In a forked child: let go of everything without touching the parent's; the mappings are replaced
 * by private memory.
 */
void attach_abandon(struct attachment *m);

#endif
