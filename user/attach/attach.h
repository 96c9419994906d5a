/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching to an interface: all that takes privileges, once. Using what it makes needs none: all
 * of it is descriptors and mappings. Where the interface has a broker (base/ask.h) they come from
 * that one, and nothing here takes privileges either.
 */
#ifndef ATTACH_ATTACH_H
#define ATTACH_ATTACH_H

#include "../base/xdp_maps.h"
#include "../netdev/netdev.h"
#include "../shard/shard_io.h"
#include "ask.h"
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
	/* info.shared: the broker, and what it gave; -1: another's by now */
	struct asker asker;
	int fd[ASK_FDS];
};

/*
 * Returns 0 or -errno after a line on standard error; nothing is left behind then. GIDs are not
 * published yet.
 */
int attach_make(const struct netdev *dev, struct attachment *out);
void attach_unmake(struct attachment *m);
/* XDP redirects nothing more; all else stays. */
void attach_detach(struct attachment *m);
/*
 * A QP's number is this process's: before anybody is told it, and after nobody uses it any more.
 * Returns 0; -EEXIST: it is another process's; -ENOSPC: this user has as many as it may have; -EIO:
 * the broker has ended; another -errno. No lock of a shard held, as the broker answers, or not.
 */
int attach_claim(struct attachment *m, u32 qpn);
void attach_release(struct attachment *m, u32 qpn);
/* Of a shared port: a ring buffer for wake-up records, or -errno as above. */
int attach_ring(struct attachment *m);
/* Hangs up when a shared port is lost; -1: the port is no other's. */
static inline int attach_lifeline(const struct attachment *m)
{
	return m->info.shared ? m->asker.fd : -1;
}
/* The interface's hook has another program than before: ours stays a descriptor of this process. */
void attach_follow(struct attachment *m);
/*
 * In a forked child: let go of everything without touching the parent's; the mappings are replaced
 * by private memory.
 */
void attach_abandon(struct attachment *m);

#endif
