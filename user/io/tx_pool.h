/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transmit frames outside the UMEM, and the queue of committed ones. A frame is free, taken by the
 * pump, or queued. Sending copies it, so it is free when it leaves the queue. Under the shard's
 * lock.
 */
#ifndef IO_TX_POOL_H
#define IO_TX_POOL_H

#include <xroce/abi.h>

#include "../engine/gso.h"

struct tx_pool {
	struct xroce_tx_frame *frame; /* XROCE_TX_FRAMES of them, in the owner's memory */
	struct gso_frame queue[XROCE_TX_FRAMES]; /* committed, in order */
	u32 queued;
	u32 waited;	     /* the first of these, which an earlier flush had no room for */
	u32 bytes, longest;  /* sum and maximum of the queued lengths */
	u32 free[XROCE_TX_FRAMES];
	u32 free_count;
};

static inline void tx_pool_init(struct tx_pool *p, struct xroce_tx_frame *frame)
{
	p->frame = frame;
	for (u32 i = XROCE_TX_FRAMES; i-- > 0;)
		p->free[p->free_count++] = i;
}

/* Returns NULL if no frame is free. */
static inline u8 *tx_pool_take(struct tx_pool *p)
{
	return p->free_count ? p->frame[p->free[--p->free_count]].bytes : NULL;
}

/* Returns whether the frame belongs to the pool. */
static inline bool tx_pool_has(const struct tx_pool *p, const u8 *buf)
{
	return buf >= p->frame[0].bytes && buf < p->frame[XROCE_TX_FRAMES].bytes;
}

static inline u32 tx_pool_key(const struct tx_pool *p, const u8 *buf)
{
	return (u32)((const struct xroce_tx_frame *)buf - p->frame);
}

static inline void tx_pool_give_back(struct tx_pool *p, const u8 *buf)
{
	p->free[p->free_count++] = tx_pool_key(p, buf);
}

static inline void tx_pool_commit(struct tx_pool *p, u8 *buf, u32 len)
{
	p->queue[p->queued++] = (struct gso_frame){ buf, len };
	p->bytes += len;
	p->longest = len > p->longest ? len : p->longest;
}

/*
 * Calls gso_order() on the new frames. Frames that waited keep their place, so that an
 * acknowledgement among them is not passed at every flush.
 */
static inline void tx_pool_order(struct tx_pool *p)
{
	gso_order(p->queue + p->waited, p->queued - p->waited);
}

/* Frees the first n frames; they are reused first, while they are in the cache. */
static inline void tx_pool_dequeue(struct tx_pool *p, u32 n)
{
	for (u32 i = n; i-- > 0;) {
		tx_pool_give_back(p, p->queue[i].bytes);
		p->bytes -= p->queue[i].len;
	}
	p->queued -= n;
	p->waited = p->queued;
	if (p->queued)
		memmove(p->queue, p->queue + n, p->queued * sizeof(*p->queue));
	else
		p->longest = 0;
}

#endif
