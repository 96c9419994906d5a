/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How frames leave: one interface, struct tx, with several implementations. xsk.c sends through
 * an AF_XDP socket. tx_policy.c chooses between that, XDP redirection (tx_redirect.c) and
 * super-packets (tx_gso.c). tx_shared.c sends through TAP devices that the broker has made, and
 * tx_udp.c through UDP sockets.
 *
 * The pump asks for room, takes frames, has the engine fill them, and commits or returns each one;
 * tx_flush() ends the batch. Everything here runs under the lock of the shard that owns the struct
 * tx.
 */
#ifndef IO_TX_H
#define IO_TX_H

#include "../engine/types.h"

struct tx;

struct tx_ops {
	u32 (*room)(struct tx *tx, u64 now_ns);
	u8 *(*frame)(struct tx *tx);
	void (*give_back)(struct tx *tx, u8 *frame);
	void (*commit)(struct tx *tx, u8 *frame, u32 len);
	/* NULL: commit() never changes a frame */
	void (*commit_as_is)(struct tx *tx, u8 *frame, u32 len);
	bool (*flush)(struct tx *tx);
	void (*close)(struct tx *tx);
};

struct tx {
	const struct tx_ops *ops;
};

/*
 * Returns how many frames can be taken and committed now, after collecting completed ones. The
 * number of frames in flight is bounded.
 */
static inline u32 tx_room(struct tx *tx, u64 now_ns)
{
	return tx->ops->room(tx, now_ns);
}

/*
 * Returns a frame with room for at least PACKET_FRAME_MAX bytes, or NULL if there is no room. The
 * caller commits it or gives it back.
 */
static inline u8 *tx_frame(struct tx *tx)
{
	return tx->ops->frame(tx);
}

static inline void tx_give_back(struct tx *tx, u8 *frame)
{
	tx->ops->give_back(tx, frame);
}

/*
 * Queues the frame, which the caller no longer owns. It leaves with the next tx_flush(), or with a
 * later one if there is no room.
 */
static inline void tx_commit(struct tx *tx, u8 *frame, u32 len)
{
	tx->ops->commit(tx, frame, len);
}

/*
 * As tx_commit(), for a frame of any kind, which leaves alone and unchanged; tx_commit() may join
 * RoCEv2 frames to super-packets.
 */
static inline void tx_commit_as_is(struct tx *tx, u8 *frame, u32 len)
{
	if (tx->ops->commit_as_is)
		tx->ops->commit_as_is(tx, frame, len);
	else
		tx_commit(tx, frame, len);
}

/*
 * Starts sending the committed frames and frames left by an earlier flush. Does not wait for an
 * interface that takes nothing. Returns false if frames are left that only another flush will
 * start.
 */
static inline bool tx_flush(struct tx *tx)
{
	return tx->ops->flush(tx);
}

static inline void tx_close(struct tx *tx)
{
	tx->ops->close(tx);
}

struct xroce_engine_stats;
struct xsk_set;

/* Returns a sender through the first socket of a set, or NULL if there is no memory. */
struct tx *tx_xsk_open(struct xsk_set *s, struct xroce_engine_stats *stats);

struct netdev;
/*
 * Returns a sender that chooses among the ways out that the interface and the kernel have
 * (tx_policy.c), xsk included. Takes ownership of xsk. Returns xsk itself if there is no other way
 * and, unless quiet, says why on standard error if that is unexpected. Returns NULL only if xsk is
 * NULL. queue is the queue that xsk sends by if the interface has several, else -1.
 */
struct tx *tx_policy_open(const struct netdev *dev, struct tx *xsk, int queue, bool zero_copy,
			  bool quiet, struct xroce_engine_stats *stats);

/*
 * Returns a sender for a process that shares the interface (tx_shared.c), through TAP devices on
 * which the broker's programs check each frame. tap_fd is open with IFF_TAP | IFF_NO_PI |
 * IFF_VNET_HDR; single_fd, the device for single frames, with the first two, or -1 if there is
 * none. Both are non-blocking; tx_close() closes them. Call it in the interface's network
 * namespace; it needs no privilege. Returns NULL if there is no memory or a descriptor is unfit;
 * both then stay open.
 */
struct tx *tx_shared_open(const struct netdev *dev, int tap_fd, int single_fd, bool quiet,
			  struct xroce_engine_stats *stats);
/*
 * As tx_shared_open(), through one device, for frames to other processes on the interface. None
 * leaves by the interface, so its counters are not read and no job is started (os/link_watch.h).
 */
struct tx *tx_local_open(const struct netdev *dev, int tap_fd, struct xroce_engine_stats *stats);

/*
 * Finds out which way frames would leave an interface if this process opened it, without opening
 * anything: the choice that tx_policy_open() will make. Privileges are not checked; probe.h tests
 * them.
 */

#define TX_TUN_DEVICE "/dev/net/tun"

enum tx_probe {
	TX_PROBE_REDIRECT,  /* by XDP redirection, except frames that are too long for it */
	/* by XDP redirection when the interface takes redirected frames; it does not now */
	TX_PROBE_NOT_NOW,
	TX_PROBE_FORCED_GSO, /* through a packet socket alone: XROCE_TX asks for it */
	TX_PROBE_FORCED_XSK, /* through AF_XDP alone: XROCE_TX asks for it */
	TX_PROBE_ZERO_COPY, /* through AF_XDP alone: the driver has zero-copy */
	/* the others use these two sockets, or AF_XDP alone where tx_may_gso() is false */
	TX_PROBE_NO_NATIVE, /* the driver has no native XDP */
	/* the kernel does not report what the interface takes (before 6.3) */
	TX_PROBE_UNTOLD,
	/* TX_TUN_DEVICE is missing or not accessible; errno says which */
	TX_PROBE_NO_TUN,
};

enum tx_probe tx_probe(u32 ifindex);
/*
 * Returns whether frames that cannot be redirected may leave as UDP super-packets. XROCE_TX decides
 * first. By default they may not on kernels where generic XDP needs each in one piece and may drop
 * it. Nor may they on hardware, as the packet numbering of NICs is untested. Nor on stacked
 * interfaces: a VLAN refused all of them, others are untested.
 */
bool tx_may_gso(const struct netdev *dev);

#endif
