/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching to an interface: the steps that take privileges, done once. Their results are
 * descriptors and mappings, whose use takes none. If the interface has a broker (os/ask.h), the
 * broker gives the descriptors, and attaching takes no privileges either.
 */
#ifndef ATTACH_H
#define ATTACH_H

#include "../os/xdp_maps.h"
#include "../os/netdev.h"
#include "../run/shard_io.h"
#include "../run/cq_notify.h"
#include "ask.h"
#include "first.h"
#include "pin.h"
#include "port_info.h"

struct xroce_bpf;

struct attachment {
	struct port_info info;
	u32 ifindex;
	int holder_fd;	     /* the interface's name (netdev_hold()); -1: none */
	_Atomic int link_fd; /* attaches the program to the interface */
	/* attached with other programs (dispatcher.h); relaxed: hook_is_in_dispatcher() */
	_Atomic bool in_dispatcher;
	struct xroce_bpf *bpf;	/* NULL once the port is made */
	/* our program, its xroce_xsk and xroce_engine; -1: still bpf's, or a shared port */
	int prog_fd, xsk_fd, engine_fd;
	struct xdp_maps maps;
	struct shard_io io[XROCE_MAX_SHARD]; /* info.shards of them */
	/* rings for completion channels, in xroce_channel, until attach_give_rings(); -1: none */
	int ring_fd[CHANNEL_RINGS_AHEAD];
	/* the broker, if info.shared or first.joined */
	struct asker asker;
	int fd[ASK_FDS]; /* info.shared: the broker's answer; -1: moved to another owner */
	struct first first;
	struct pins pins; /* unless info.shared */
};

/*
 * Makes a port, and does not publish its GIDs. Returns 0, or -errno after a line on standard error,
 * with everything undone.
 */
int attach_make(const struct netdev *dev, struct attachment *out);
void attach_unmake(struct attachment *m);
/* Detaches XDP, admits no more processes, removes the pins. Does nothing to a shared port. */
void attach_detach(struct attachment *m);
/*
 * Draws a QP number, which is this process's until attach_release(). *qpn 0: there is no broker,
 * and any number will do. Returns 0; -EDQUOT: the user's limit; -ENOSPC: no number is left; -EIO:
 * the broker has ended; another -errno. The caller holds no shard's lock: the broker may be slow.
 */
int attach_draw(struct attachment *m, u32 *qpn);
/*
 * Claims a QP number from the broker, if there is one. Each process may claim XROCE_CM_QPN. Returns
 * 0 or -errno as above; -EALREADY: it is this process's; -EPERM: the process may not choose it.
 */
int attach_claim(struct attachment *m, u32 qpn);
void attach_release(struct attachment *m, u32 qpn);
/*
 * Has the broker, if there is one, direct requests for the service to this process, until
 * attach_unbind(). Returns 0; -EADDRINUSE: another process has it; or -errno as above.
 */
int attach_bind(struct attachment *m, const struct ask_service *service);
void attach_unbind(struct attachment *m, const struct ask_service *service);
/*
 * Has the broker, if there is one, direct packets to the multicast group to this process as well,
 * until attach_leave_group(). Returns 0; -ENOSPC: the group has the most processes possible; or
 * -errno as above.
 */
int attach_group(struct attachment *m, const struct gid *group);
void attach_leave_group(struct attachment *m, const struct gid *group);
/*
 * Has shard i send to other processes through the broker's TAP device, until attach_close_local().
 * The caller holds all shards' locks. Returns 0 or -errno.
 */
int attach_open_local(const struct netdev *dev, struct attachment *m, u32 i);
void attach_close_local(struct attachment *m, u32 i);
/* Moves the rings that were made while the process had its privileges to *rings. Called once. */
void attach_give_rings(struct attachment *m, struct channel_rings *rings);
/*
 * Gets from the broker of a shared port a ring buffer for wake-up records, and its key in
 * xroce_channel, where it is already. Returns 0 or -errno as above.
 */
int attach_ring(struct attachment *m, struct ring_slot *out);
/* Returns a descriptor that hangs up when a shared port is lost; -1: the port is not shared. */
static inline int attach_lifeline(const struct attachment *m)
{
	return m->info.shared ? m->asker.fd : -1;
}
/* Takes our link again from a new dispatcher, after the program on the XDP hook has changed. */
void attach_follow(struct attachment *m);
/*
 * Releases the XDP hook and the name of an interface that has disappeared. An interface that moved
 * to another network namespace can then be used there, and here when it returns. Does nothing for a
 * shared port, since its broker does this. Called by the watch thread, before attach_unmake().
 */
void attach_lose(struct attachment *m);
/*
 * In a forked child: closes its copies without effect on the parent, and replaces the mappings by
 * private memory.
 */
void attach_abandon(struct attachment *m);

#endif
