/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * QPs move to the shard where their packets arrive. Until then frames pass from one shard to
 * another. migration.h draws the two sides and their ordering.
 */
#include <stdlib.h>

#include "../os/clock.h"
#include "../os/kernel.h"
#include "shard.h"

/* misdirected packets; the QP moves if they are at least half of its packets in that time */
#define SEEN_MAX     64
#define STAY_MIN_NS  (10 * NSEC_PER_MSEC)
#define STAY_MAX_NS  NSEC_PER_SEC
/* a QP that has stayed this many times its stay_ns starts again at STAY_MIN_NS */
#define STAY_MEMORY  8

int migration_init(struct shards *all)
{
	if (all->num == 1)
		return 0;
	all->moves.of = calloc(XROCE_MAX_QP, sizeof(*all->moves.of));
	if (!all->moves.of)
		return -ENOMEM;
	for (u32 i = 0; i < all->num; i++) {
		all->shard[i].migration.misdirected =
			calloc(XROCE_MAX_QP, sizeof(*all->shard[i].migration.misdirected));
		if (!all->shard[i].migration.misdirected)
			return -ENOMEM;
	}
	return 0;
}

void migration_free(struct shards *all)
{
	for (u32 i = 0; i < all->num; i++)
		free(all->shard[i].migration.misdirected);
	free(all->moves.of);
}

/* Returns the packets for the QP on all queues, as XDP counts them. */
static u64 migration_packets_of(const struct shards *all, const struct qp *qp)
{
	return atomic_load_explicit(
		shared_word(&all->maps->qp[XROCE_QP_SLOT(qp->qpn)].rx_packets),
		memory_order_relaxed);
}

void migration_count(struct shard *s, const struct qp *qp, u64 now_ns)
{
	const u32 slot = qp->qpn % XROCE_MAX_QP;
	struct migration *h = &s->migration;
	struct misdirected *misdirected = &h->misdirected[slot];

	if (!engine_may_move(qp) ||
	    now_ns < atomic_load_explicit(&s->all->moves.of[slot].not_before_ns,
					  memory_order_relaxed))
		return;
	if (misdirected->qpn != qp->qpn || !misdirected->seen)
		*misdirected = (struct misdirected){ .qpn = qp->qpn,
						     .packets = migration_packets_of(s->all, qp) };
	if (++misdirected->seen < SEEN_MAX || h->num_wanted == MIGRATION_WANTED_MAX)
		return;
	misdirected->seen = 0;
	if (migration_packets_of(s->all, qp) - misdirected->packets > 2 * SEEN_MAX)
		return;
	h->wanted[h->num_wanted++] = qp->qpn;
}

/*
 * Returns whether packets that the QP has sent may still be in a ring of the peer, where later ones
 * would overtake them. Then it stays until the peer has taken them or some time has passed. All
 * shards locked.
 */
static bool migration_must_stay(struct shards *all, const struct qp *qp, u64 now_ns)
{
	const u32 slot = qp->qpn % XROCE_MAX_QP;
	const u64 untaken = engine_untaken(qp);

	if (!untaken || untaken == all->moves.of[slot].untaken)
		return false;
	all->moves.of[slot].untaken = untaken;
	atomic_store_explicit(&all->moves.of[slot].not_before_ns, now_ns + STAY_MIN_NS,
			      memory_order_relaxed);
	return true;
}

/* Moves a QP. All shards locked. */
static void migration_move_qp(struct shard *to, struct qp *qp, u64 now_ns)
{
	struct shards *all = to->all;
	const u32 slot = qp->qpn % XROCE_MAX_QP;
	u64 before_ns =
		atomic_load_explicit(&all->moves.of[slot].not_before_ns, memory_order_relaxed);
	u64 stay_ns = all->moves.of[slot].stay_ns;

	if (all->moves.of[slot].qpn == qp->qpn && now_ns < before_ns)
		return;
	if (migration_must_stay(all, qp, now_ns))
		return;
	if (all->moves.of[slot].qpn != qp->qpn || now_ns - before_ns > STAY_MEMORY * stay_ns)
		stay_ns = 0;
	stay_ns = stay_ns ? min_u64(2 * stay_ns, STAY_MAX_NS) : STAY_MIN_NS;
	all->moves.of[slot].qpn = qp->qpn;
	all->moves.of[slot].stay_ns = stay_ns;
	atomic_store_explicit(&all->moves.of[slot].not_before_ns, now_ns + stay_ns,
			      memory_order_relaxed);
	engine_move_qp(to->engine, qp, now_ns);
	to->io->stats->qps_moved++;
}

/*
 * Takes all frames handed over before any QP moves, so that no packet overtakes an earlier one.
 * Returns a bitmap for migration_end().
 */
static u32 migration_begin(struct shards *all, u64 now_ns)
{
	u32 took = 0;

	for (u32 i = 0; i < all->num; i++)
		took |= (u32)pump_take_handed(&all->shard[i], now_ns) << i;
	return took;
}

/* Runs the shards that took frames: the giver found the lock taken, and relies on its holder. */
static void migration_end(struct shards *all, u32 took, u64 now_ns)
{
	for (; took; took &= took - 1)
		pump_run(&all->shard[__builtin_ctz(took)], now_ns);
}

void migration_move(struct shard *s)
{
	struct shards *all = s->all;
	u64 now_ns;
	u32 took;

	shards_lock(all);
	/* the clock is read under the locks: no engine's time goes back */
	now_ns = clock_now_ns();
	took = migration_begin(all, now_ns);
	for (u32 i = 0; i < s->migration.num_wanted; i++) {
		struct qp *qp = engine_find_qp(s->engine, s->migration.wanted[i]);

		if (qp && qp_engine(qp) != s->engine)
			migration_move_qp(s, qp, now_ns);
	}
	s->migration.num_wanted = 0;
	migration_end(all, took, now_ns);
	shards_unlock(all);
}

int migration_attach(struct shards *all, struct qp *qp, const struct gid *group, u64 now_ns)
{
	u32 took = all->dead ? 0 : migration_begin(all, now_ns);
	int err = group_attach(qp_engine(qp), qp, group, now_ns);

	migration_end(all, took, now_ns);
	return err;
}

/* ---- frames for a QP of another shard ---- */

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
					s->io->umem.rx_frames + XSK_TX_SLOTS + XROCE_TX_FRAMES);
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

	if (r->looped[at]) {
		tx_give_back(from->io->tx, (u8 *)frame->data);
		return;
	}
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
