/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching to an interface: descriptors and mappings that the interface's broker gives (os/ask.h).
 * Their use takes no privileges, except that of a port with AF_XDP sockets.
 */
#ifndef CLIENT_ATTACH_H
#define CLIENT_ATTACH_H

#include "../os/xdp_maps.h"
#include "../os/netdev.h"
#include "../run/shard_io.h"
#include "../run/cq_notify.h"
#include "ask.h"
#include "port_info.h"

struct attachment {
	struct port_info info;
	u32 ifindex;
	struct xdp_maps maps;
	struct shard_io io[XROCE_MAX_SHARD]; /* info.shards of them */
	struct asker asker;
	u32 hello;		 /* bits of enum ask_hello */
	_Atomic bool has_left;	 /* attach_detach() was called */
	int fd[ASK_SOCKETS_FDS]; /* the broker's answer; -1: moved to another owner */
	/* unless info.shared: the TAP device to other processes; -1: none */
	int tap_fd;
	struct xsk_set local; /* its ring buffer for packets from them */
};

/*
 * Makes a port. Returns 0, or -errno after a line on standard error,
 * with everything undone.
 */
int attach_make(const struct netdev *dev, struct attachment *out);
void attach_unmake(struct attachment *m);
/*
 * Ends a port with sockets: when this returns, the broker has taken everything back. Does nothing
 * to a shared port, which ends with its connection.
 */
void attach_detach(struct attachment *m);
/*
 * Draws a QP number, which is this process's until attach_release(). Returns 0; -EDQUOT: the user's
 * limit; -ENOSPC: no number is left; -EIO: the broker has ended; another -errno. The caller holds
 * no shard's lock: the broker may be slow.
 */
int attach_draw(struct attachment *m, u32 *qpn);
/*
 * Claims a QP number from the broker. Each process may claim XROCE_CM_QPN. Returns
 * 0 or -errno as above; -EALREADY: it is this process's; -EPERM: the process may not choose it.
 */
int attach_claim(struct attachment *m, u32 qpn);
void attach_release(struct attachment *m, u32 qpn);
/*
 * Has the broker direct requests for the service to this process, until
 * attach_unbind(). Returns 0; -EADDRINUSE: another process has it; or -errno as above.
 */
int attach_bind(struct attachment *m, const struct ask_service *service);
void attach_unbind(struct attachment *m, const struct ask_service *service);
/*
 * Has the broker direct packets to the multicast group to this process as well,
 * until attach_leave_group(). Returns 0; -ENOSPC: the group has the most processes possible; or
 * -errno as above.
 */
int attach_group(struct attachment *m, const struct gid *group);
void attach_leave_group(struct attachment *m, const struct gid *group);
/*
 * For a port with sockets: returns a descriptor that is readable after other processes have opened
 * or left the interface; -1: not such a port.
 */
static inline int attach_others_fd(const struct attachment *m)
{
	return m->info.shared ? -1 : m->fd[ASK_FD_OTHERS];
}
/*
 * After that, asks the broker for the way to other processes. Returns 0, and attach_open_local()
 * can follow; -ENOENT: there are no others; or -errno. No lock held.
 */
int attach_meet_others(struct attachment *m);
/*
 * Has shard i send to other processes through the broker's TAP device, until attach_close_local().
 * The caller holds all shards' locks. Returns 0 or -errno.
 */
int attach_open_local(const struct netdev *dev, struct attachment *m, u32 i);
void attach_close_local(struct attachment *m, u32 i);
/*
 * Gets from the port's broker a ring buffer for wake-up records, and its key in
 * xroce_channel, where it is already. Returns 0 or -errno as above.
 */
int attach_ring(struct attachment *m, struct ring_slot *out);
/*
 * Returns once packets that have arrived at a broker with UDP sockets are in the ring; does nothing
 * on other ports.
 */
void attach_wait_arrived(struct attachment *m);
/* Returns whether a broker that this process starts now would receive by UDP sockets. */
bool attach_would_use_udp(void);
/* Returns whether a port by XDP of that broker would have sockets. */
bool attach_would_be_sole(void);
/* Returns false if the program has closed this library's descriptors (os/fd_id.h). */
bool attach_is_whole(const struct attachment *m);
/* Returns a descriptor that hangs up when the broker ends. */
static inline int attach_lifeline(const struct attachment *m)
{
	return m->asker.fd;
}
/* For attach_shared(): a port without a broker yet. */
void attach_init(const struct netdev *dev, struct attachment *m);
/*
 * Makes a port from the answer of the interface's broker, without privileges; or with sockets, if
 * this process has the privileges and is the only one. Returns 0; -ENOENT
 * without a line: there is no broker; else -errno after a line on standard error. After an error
 * *m owns everything that was made before.
 */
int attach_shared(const struct netdev *dev, struct attachment *m);
/*
 * In a forked child: closes its copies without effect on the parent, and replaces the mappings by
 * private memory.
 */
void attach_abandon(struct attachment *m);

#endif
