/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching to an interface: all that takes privileges, once. Using what it makes needs none: all
 * of it is descriptors and mappings. Where the interface has a broker (os/ask.h) they come from
 * that one, and nothing here takes privileges either.
 */
#ifndef ATTACH_H
#define ATTACH_H

#include "../os/xdp_maps.h"
#include "../os/netdev.h"
#include "../run/shard_io.h"
#include "../run/channel_rings.h"
#include "ask.h"
#include "first.h"
#include "pin.h"
#include "port_info.h"

struct xroce_bpf;

struct attachment {
	struct port_info info;
	u32 ifindex;
	int holder_fd;
	_Atomic int link_fd; /* what holds the program to the interface */
	/* beside other programs (dispatcher.h), else alone; relaxed: hook_is_in_dispatcher() */
	_Atomic bool in_dispatcher;
	struct xroce_bpf *bpf;	/* NULL once the port is made */
	/* our program, its xroce_xsk and xroce_engine; -1: in bpf, or there is none */
	int prog_fd, xsk_fd, engine_fd;
	struct xdp_maps maps;
	struct shard_io io[XROCE_MAX_SHARD]; /* info.shards of them */
	/* for completion channels, in xroce_channel, until attach_give_rings(); -1: none */
	int ring_fd[CHANNEL_RINGS_AHEAD];
	/* the broker, if it is asked: info.shared, or when others have come (first.joined) */
	struct asker asker;
	int fd[ASK_FDS]; /* info.shared: what it gave; -1: another's by now */
	struct first first;
	struct pins pins; /* of a port alone */
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
 * A number for a QP, which is this process's from here until nobody uses it any more; *qpn 0: the
 * port is no other's, and any number will do. Returns 0; -EDQUOT: this user has as many as it may
 * have, -ENOSPC: there are no more; -EIO: the broker has ended; another -errno. No lock of a shard
 * held, as the broker answers, or not.
 */
int attach_draw(struct attachment *m, u32 *qpn);
/*
 * That number, if the port is shared: of XROCE_CM_QPN each process may have its own. Returns 0 or
 * -errno as above; -EALREADY: it is this process's; -EPERM: a number that is not for its choice.
 */
int attach_claim(struct attachment *m, u32 qpn);
void attach_release(struct attachment *m, u32 qpn);
/*
 * The broker, if there is one, sends requests for the service to this process; no longer. Returns
 * 0; -EADDRINUSE: another has it; -EDQUOT, -ENOSPC, -EIO as above; another -errno.
 */
int attach_bind(struct attachment *m, const struct ask_service *service);
void attach_unbind(struct attachment *m, const struct ask_service *service);
/*
 * The broker, if there is one, has packets to the multicast group come to this process as well; no
 * longer. Returns 0; -ENOSPC: as many processes as can have it; -EDQUOT, -EIO as above; another
 * -errno.
 */
int attach_group(struct attachment *m, const struct gid *group);
void attach_leave_group(struct attachment *m, const struct gid *group);
/*
 * The i-th shard sends to other processes by the device that the broker gave; no longer. With all
 * shards' locks. Returns 0 or -errno.
 */
int attach_open_local(const struct netdev *dev, struct attachment *m, u32 i);
void attach_close_local(struct attachment *m, u32 i);
/* Those that were made beforehand: the process may give up its privileges. Once. */
void attach_give_rings(struct attachment *m, struct channel_rings *rings);
/* Of a shared port: a ring buffer for wake-up records, or -errno as above. */
int attach_ring(struct attachment *m);
/* Hangs up when a shared port is lost; -1: the port is no other's. */
static inline int attach_lifeline(const struct attachment *m)
{
	return m->info.shared ? m->asker.fd : -1;
}
/*
 * What the port's XDP program has dropped, on all CPUs, by reason. Zeros in a forked child, and
 * where it cannot be read: without /sys nobody knows how many CPUs there are. Any thread's.
 */
void attach_drops(const struct attachment *m, struct xroce_drops *sum);
/* The interface's hook has another program than before: ours stays a descriptor of this process. */
void attach_follow(struct attachment *m);
/*
 * Releases the XDP hook and the name of an interface that has disappeared. An interface that moved
 * to another network namespace can then be used there, and here when it returns. Does nothing for a
 * shared port, since its broker does this. Called by the watch thread, before attach_unmake().
 */
void attach_lose(struct attachment *m);
/*
 * In a forked child: let go of everything without touching the parent's; the mappings are replaced
 * by private memory.
 */
void attach_abandon(struct attachment *m);

#endif
