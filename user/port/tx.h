/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How frames leave: one small interface with several makers. tx_xsk.c sends through an AF_XDP socket; others join by filling in these functions.
 *
 * The pump asks for the room, takes frames, has the engine write them, and commits each or gives it back; tx_flush() ends the batch.
 * Under the port's lock.
 */
#ifndef PORT_TX_H
#define PORT_TX_H

#include "../transport/types.h"

struct tx;

struct tx_ops {
	u32 (*room)(struct tx *tx);
	u8 *(*frame)(struct tx *tx);
	void (*give_back)(struct tx *tx, u8 *frame);
	void (*commit)(struct tx *tx, u8 *frame, u32 len);
	bool (*flush)(struct tx *tx);
	u32 (*in_flight)(struct tx *tx);
	u64 (*dropped)(struct tx *tx);
	void (*close)(struct tx *tx);
};

struct tx {
	const struct tx_ops *ops;
};

/* Frames that can be taken and committed now, after looking for those that have left. */
static inline u32 tx_room(struct tx *tx)
{
	return tx->ops->room(tx);
}

/* A frame of at least PACKET_FRAME_MAX bytes to write into, or NULL when there is no room. Commit it or give it back. */
static inline u8 *tx_frame(struct tx *tx)
{
	return tx->ops->frame(tx);
}

static inline void tx_give_back(struct tx *tx, u8 *frame)
{
	tx->ops->give_back(tx, frame);
}

/* The frame is to be sent; it leaves with tx_flush() at the latest. */
static inline void tx_commit(struct tx *tx, u8 *frame, u32 len)
{
	tx->ops->commit(tx, frame, len);
}

/*
 * Start what was committed, and what an earlier flush could not: it does not wait for an interface that takes nothing. False if frames are left
 * that nothing but another flush will start.
 */
static inline bool tx_flush(struct tx *tx)
{
	return tx->ops->flush(tx);
}

/* Frames committed whose memory has not come back. */
static inline u32 tx_in_flight(struct tx *tx)
{
	return tx->ops->in_flight(tx);
}

/* Frames that the maker knows to have been lost on the way out. */
static inline u64 tx_dropped(struct tx *tx)
{
	return tx->ops->dropped(tx);
}

static inline void tx_close(struct tx *tx)
{
	tx->ops->close(tx);
}

struct xsk_set;

/* The maker that sends through the first socket of a set. NULL: no memory. */
struct tx *tx_xsk_open(struct xsk_set *s);

#endif
