/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends frames through the transmit ring of the shard's first AF_XDP socket. A frame longer than a
 * chunk leaves as two descriptors of one slot, which is free after the second completion.
 */
#include <stdlib.h>

#include "../os/kernel.h"
#include "xsk.h"
#include "tx.h"

#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD 1
#endif

/*
 * Bounds the calls of one flush. Each call moves at least 32 descriptors; after twice the calls for
 * a full ring the interface takes nothing.
 */
#define FLUSH_CALLS_MAX (2 * XSK_TX_RING / 32)

struct tx_xsk {
	struct tx tx;
	struct xsk_set *set;
	struct xsk *x;
	struct xroce_engine_stats *stats;
	u32 unsubmitted; /* descriptors written, not yet visible to the kernel */
};

static struct tx_xsk *tx_xsk_of(struct tx *tx)
{
	return container_of(tx, struct tx_xsk, tx);
}

static void tx_xsk_reap(struct tx_xsk *t)
{
	u32 idx = 0, n = xsk_ring_cons__peek(&t->x->completion, XSK_TX_RING, &idx);

	for (u32 i = 0; i < n; i++)
		umem_tx_completed(t->set->umem,
				  *xsk_ring_cons__comp_addr(&t->x->completion, idx + i));
	if (n)
		xsk_ring_cons__release(&t->x->completion, n);
}

static u32 tx_xsk_room(struct tx *tx, u64 now_ns)
{
	struct tx_xsk *t = tx_xsk_of(tx);
	u32 descriptors;

	tx_xsk_reap(t);
	descriptors = xsk_prod_nb_free(&t->x->tx, XSK_TX_RING);
	return min_u32(t->set->umem->tx_free_count, descriptors / 2);
}

static u8 *tx_xsk_frame(struct tx *tx)
{
	return umem_tx_take(tx_xsk_of(tx)->set->umem);
}

static void tx_xsk_give_back(struct tx *tx, u8 *buf)
{
	umem_tx_release(tx_xsk_of(tx)->set->umem, buf);
}

static void tx_xsk_commit(struct tx *tx, u8 *buf, u32 len)
{
	struct tx_xsk *t = tx_xsk_of(tx);
	const bool two = len > UMEM_CHUNK;
	struct xdp_desc *desc;
	u32 idx;
	u64 addr;

	/* The ring has two descriptors for each slot, so this does not fail. */
	if (xsk_ring_prod__reserve(&t->x->tx, 1 + two, &idx) == 0) {
		umem_tx_release(t->set->umem, buf);
		return;
	}
	addr = umem_tx_send(t->set->umem, buf, 1 + two);
	desc = xsk_ring_prod__tx_desc(&t->x->tx, idx);
	*desc = (struct xdp_desc){ .addr = addr,
				   .len = two ? UMEM_CHUNK : len,
				   .options = two ? XDP_PKT_CONTD : 0 };
	if (two) {
		desc = xsk_ring_prod__tx_desc(&t->x->tx, idx + 1);
		*desc = (struct xdp_desc){ .addr = addr + UMEM_CHUNK, .len = len - UMEM_CHUNK };
	}
	t->unsubmitted += 1 + two;
	t->stats->tx_xsk++;
}

static bool ring_empty(const struct xsk_ring_prod *tx)
{
	/* acquire, here and below: pairs with the kernel's release (net/xdp/xsk_queue.h) */
	return atomic_load_explicit(shared_word(tx->consumer), memory_order_acquire) ==
	       *tx->producer;
}

/*
 * A call sends a budget of descriptors. It returns EAGAIN both if more are left and if memory is
 * short, so the ring shows the progress.
 */
static bool tx_xsk_flush(struct tx *tx)
{
	struct tx_xsk *t = tx_xsk_of(tx);
	struct xsk_ring_prod *ring = &t->x->tx;

	if (t->unsubmitted) {
		xsk_ring_prod__submit(ring, t->unsubmitted);
		t->unsubmitted = 0;
		xsk_before_need_wakeup(t->set);
	}
	for (u32 i = 0;
	     i < FLUSH_CALLS_MAX && !ring_empty(ring) && xsk_ring_prod__needs_wakeup(ring); i++) {
		u32 before =
			atomic_load_explicit(shared_word(ring->consumer), memory_order_relaxed);

		kernel_xsk_send(t->x->fd);
		if (atomic_load_explicit(shared_word(ring->consumer), memory_order_acquire) ==
		    before)
			break;
	}
	return ring_empty(ring) || !xsk_ring_prod__needs_wakeup(ring);
}

static void tx_xsk_close(struct tx *tx)
{
	free(tx_xsk_of(tx));
}

static const struct tx_ops ops = {
	.room = tx_xsk_room,
	.frame = tx_xsk_frame,
	.give_back = tx_xsk_give_back,
	.commit = tx_xsk_commit,
	.flush = tx_xsk_flush,
	.close = tx_xsk_close,
};

struct tx *tx_xsk_open(struct xsk_set *s, struct xroce_engine_stats *stats)
{
	struct tx_xsk *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->tx.ops = &ops;
	t->set = s;
	t->stats = stats;
	t->x = &s->xsk[0];
	return &t->tx;
}
