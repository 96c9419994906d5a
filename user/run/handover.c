/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames from one shard to another; the two sides and their ordering are drawn in handover.h. */
#include <stdlib.h>

#include "shard.h"

#define TAKE_MAX 64u /* frames passed to the engine at a time, within which it prefetches */

static int init_ring(struct handover_ring *r, u32 frames)
{
	r->size = roundup_pow2(frames);
	r->frame = calloc(r->size, sizeof(*r->frame));
	r->hint = calloc(r->size, sizeof(*r->hint));
	r->looped = calloc(r->size, sizeof(*r->looped));
	return r->frame && r->hint && r->looped ? 0 : -ENOMEM;
}

int handover_init(struct shard *s, u32 num_shards)
{
	int err = 0;

	for (u32 i = 0; !err && i < num_shards; i++)
		if (i != s->number)
			/* all of its receive frames, and all that it may have written to itself */
			err = init_ring(&s->handover.to[i],
					s->io->umem.rx_frames + SHARD_LOCAL_FRAMES + XSK_TX_SLOTS +
						XROCE_TX_FRAMES);
	return err;
}

void handover_free(struct shard *s)
{
	for (u32 i = 0; i < XROCE_MAX_SHARD; i++) {
		struct handover_ring *r = &s->handover.to[i];

		free(r->frame);
		free(r->hint);
		free(r->looped);
		*r = (struct handover_ring){ 0 };
	}
}

void handover_give(struct shard *from, struct shard *to, const struct rx_frame *frame,
		   const struct xroce_rx_cqe *hint, bool looped)
{
	struct handover_ring *r = &from->handover.to[to->number];
	const u32 put = atomic_load_explicit(&r->put, memory_order_relaxed),
		  at = put & (r->size - 1), bit = 1u << from->number;
	struct engine_frame *entry = &r->frame[at];

	*entry = (struct engine_frame){ .frame = *frame };
	if (hint) {
		r->hint[at] = *hint;
		entry->hint = &r->hint[at];
	}
	r->looped[at] = looped;
	from->handover.lent++;
	from->to_run |= 1u << to->number;
	/* release: pairs with the acquire in take_from() */
	atomic_store_explicit(&r->put, put + 1, memory_order_release);
	/*
	 * pairs with the exchange in handover_take(): either that is later and sees the frame, or
	 * it was earlier and the bit is set again
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (!(atomic_load_explicit(&to->handover.givers, memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&to->handover.givers, bit, memory_order_seq_cst);
}

static void free_entry(struct shard *from, struct handover_ring *r, u32 at)
{
	const struct rx_frame *frame = &r->frame[at].frame;
	const struct xsk_set *local = xsk_local(&from->io->xsks);

	if (r->looped[at]) {
		tx_give_back(from->io->tx, (u8 *)frame->data);
		return;
	}
	/* a ring buffer does not hand frames over */
	while (local && (xsk_is_ring(local) || !umem_has(local->umem, frame->data)))
		local = xsk_local(local);
	if (local)
		umem_rx_release_frame(local->umem, frame);
	else
		umem_rx_release_frame(&from->io->umem, frame);
}

void handover_take_back(struct shard *from)
{
	for (u32 i = 0; from->handover.lent && i < from->all->num; i++) {
		struct handover_ring *r = &from->handover.to[i];
		/* acquire: pairs with the release in handover_take(), after its last read */
		const u32 used = atomic_load_explicit(&r->used, memory_order_acquire);

		from->handover.lent -= used - r->taken_back;
		for (; r->taken_back != used; r->taken_back++)
			free_entry(from, r, r->taken_back & (r->size - 1));
	}
	xsk_refill(&from->io->xsks);
}

bool handover_is_short(const struct shard *from)
{
	/* a quarter of a queue's frames: a packet may have two buffers */
	return from->handover.lent > from->io->umem.rx_frames / from->io->xsks.count / 4;
}

static u32 take_from(struct handover_ring *r, handover_fn *fn, void *arg)
{
	/*
	 * acquire: pairs with handover_give(). seq_cst: not older than handover_take()'s exchange
	 */
	const u32 put = atomic_load_explicit(&r->put, memory_order_seq_cst);
	u32 used = atomic_load_explicit(&r->used, memory_order_relaxed), taken = put - used;

	while (used != put) {
		const u32 at = used & (r->size - 1);
		const u32 n = min_u32(min_u32(put - used, r->size - at), TAKE_MAX);

		fn(arg, &r->frame[at], n);
		used += n;
		/* release: pairs with the acquire in handover_take_back() */
		atomic_store_explicit(&r->used, used, memory_order_release);
	}
	return taken;
}

u32 handover_take(struct shard *to, handover_fn *fn, void *arg)
{
	u32 givers, taken = 0;

	if (likely(!handover_waits(&to->handover)))
		return 0;
	/* pairs with the fence in handover_give(): take_from() sees frames put before the bit */
	givers = atomic_exchange_explicit(&to->handover.givers, 0, memory_order_seq_cst);
	for (; givers; givers &= givers - 1)
		taken += take_from(&to->all->shard[__builtin_ctz(givers)].handover.to[to->number],
				   fn, arg);
	return taken;
}
