/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How frames leave: one small interface with several makers. tx_xsk.c sends through an AF_XDP
 * socket; tx_policy.c chooses between that, XDP redirection (tx_redirect.c) and super-packets
 * (tx_gso.c); tx_shared.c sends through a TAP device that the broker has made. Others join by
 * filling in these functions.
 *
 * The pump asks for the room, takes frames, has the engine write them, and commits each or gives it
 * back; tx_flush() ends the batch. Under the lock of the shard that it is of.
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
	/* NULL: commit leaves frames as they are, always */
	void (*commit_as_is)(struct tx *tx, u8 *frame, u32 len);
	bool (*flush)(struct tx *tx);
	void (*close)(struct tx *tx);
};

struct tx {
	const struct tx_ops *ops;
};

/*
 * Frames that can be taken and committed now, after looking for those that have left: what is in
 * flight is bounded.
 */
static inline u32 tx_room(struct tx *tx, u64 now_ns)
{
	return tx->ops->room(tx, now_ns);
}

/*
 * A frame of at least PACKET_FRAME_MAX bytes to write into, or NULL when there is no room. Commit
 * it or give it back.
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
 * The frame is to be sent: it is the way's from now on, and leaves with a tx_flush(), the next one
 * if the way has room.
 */
static inline void tx_commit(struct tx *tx, u8 *frame, u32 len)
{
	tx->ops->commit(tx, frame, len);
}

/*
 * The same with a frame of any kind, which is to leave alone and unchanged; those of RoCEv2 may be
 * joined to super-packets.
 */
static inline void tx_commit_as_is(struct tx *tx, u8 *frame, u32 len)
{
	if (tx->ops->commit_as_is)
		tx->ops->commit_as_is(tx, frame, len);
	else
		tx_commit(tx, frame, len);
}

/*
 * Start what was committed, and what an earlier flush could not: it does not wait for an interface
 * that takes nothing. False if frames are left that nothing but another flush will start.
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

/* The maker that sends through the first socket of a set. NULL: no memory. */
struct tx *tx_xsk_open(struct xsk_set *s, struct xroce_engine_stats *stats);

struct netdev;
/*
 * The maker that chooses among all ways that the interface and the kernel have (tx_policy.c), of
 * which xsk is one. Owns xsk from here on; returns xsk itself where there is no other, and says why
 * on standard error, unless quiet, if that is a surprise. NULL only for NULL. queue is the one that
 * xsk sends by, where the interface has several; -1 where it has one.
 */
struct tx *tx_policy_open(const struct netdev *dev, struct tx *xsk, int queue, bool zero_copy,
			  bool quiet, struct xroce_engine_stats *stats);

/*
 * The maker for a process that shares the interface (tx_shared.c): through TAP devices, behind
 * which the broker's programs check each frame. tap_fd is a descriptor with IFF_TAP | IFF_NO_PI |
 * IFF_VNET_HDR; single_fd is one of the device for single frames, with the first two, or -1: there
 * is none. They do not block; tx_close() closes them. In the interface's network namespace; needs
 * no privilege. NULL: no memory, or no such descriptor, and both stay open.
 */
struct tx *tx_shared_open(const struct netdev *dev, int tap_fd, int single_fd, bool quiet,
			  struct xroce_engine_stats *stats);
/*
 * The same, by one device, for frames to other processes of the interface alone: none leaves by the
 * interface, whose counters are not looked at. It starts no job (os/link_watch.h).
 */
struct tx *tx_local_open(const struct netdev *dev, int tap_fd, struct xroce_engine_stats *stats);

#endif
