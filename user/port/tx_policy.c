/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which way frames leave. There are three:
 *
 *   AF_XDP       through the socket. Always works; two skbs a frame in copy mode, none where the driver has zero-copy
 *   TAP          written to a TAP device and redirected by XDP, up to 16 small frames in one write: no skb
 *   live frames  a page of the kernel's for each, filled and redirected by XDP: no skb, many in one call
 *
 * A socket with zero-copy is used alone. Else the others are, whenever the interface takes redirected frames (on veth: while its peer has native XDP
 * or GRO) and no frame of the batch is too long; the batch goes by what it costs, see is_many(). XROCE_TX=xsk, tap or live takes the choice away,
 * but for batches that cannot go that way.
 *
 * Redirected frames that the interface has no room for are lost without a word, so its counters are read now and then: when they tell of losses, frames
 * are let out in portions, which halve while there are losses and grow again when there are none. Losses that do not end so are not of our making:
 * then AF_XDP has its turn, which waits for a frame to leave before it takes another. Forced ways stay.
 */
#include <stdlib.h>

#include "port_state.h"
#include "tx_redirect.h"
#include "tx_watch.h"

#define LOOK_NS	      (100 * NSEC_PER_MSEC)
#define LOOK_SOON_NS  (5 * NSEC_PER_MSEC)	/* while frames cannot be redirected, or are being lost */
#define PORTION_NS    (50 * NSEC_PER_USEC)
#define PORTION_MIN   16u			/* so few that AF_XDP, which is told of room, is better */
#define PORTION_MAX   XROCE_TX_FRAMES		/* more than can leave in that time: no limit */

struct tx_policy {
	struct tx tx;
	struct tx *xsk;
	struct tx_redirect redirect;
	struct tx_watch watch;
	struct xroce_engine_stats *stats;
	enum tx_choice choice;
	bool usable;		/* the interface takes redirected frames, and has not been losing them for long */
	bool redirected;	/* any, since the last look */
	u32 queued;		/* in redirect.ring->batch */
	u32 bytes, longest;	/* of those */
	bool xsk_busy;		/* frames are left in the socket's ring */
	u32 free[XROCE_TX_FRAMES];
	u32 free_count;
	u64 look_ns;		/* when to look at the interface again */
	u64 dropped;		/* the interface's counter, when last looked at */
	u32 portion, left;	/* frames in PORTION_NS; of these still to go */
	u64 portion_ns;		/* when the next one begins */
};

static struct tx_policy *self(struct tx *tx)
{
	return container_of(tx, struct tx_policy, tx);
}

/*
 * Whether a batch is cheaper as live frames. They cost 12 us a call and 0.3 to 0.4 us a frame; a write to the TAP 1.3 us, and 0.7 us for each
 * further frame in it (measured on veth; the ratios matter).
 */
static bool is_many(const struct tx_policy *t)
{
	const bool small = t->bytes / t->queued * TX_PIECES_MAX <= t->redirect.write_max;

	if (t->choice == TX_TAP)
		return false;
	return t->choice == TX_LIVE || t->queued >= (small ? 44 : 20);
}

/* ---- the interface: does it take frames, does it lose them ---- */

/* What is lost while we send nothing is nothing to us. */
static void adjust_portion(struct tx_policy *t, u64 dropped)
{
	if (dropped <= t->dropped) {
		t->portion = min_u32(t->portion + t->portion / 4 + 1, PORTION_MAX);
	} else if (t->redirected && t->portion > PORTION_MIN) {
		t->portion = t->portion / 2 > PORTION_MIN ? t->portion / 2 : PORTION_MIN;
		t->stats->tx_slowed++;
	}
	t->dropped = dropped;
	t->redirected = false;
	t->stats->tx_portion = t->portion;
}

static void look(struct tx_policy *t, u64 now_ns)
{
	struct tx_sight sight;
	bool ok = tx_watch_look(&t->watch, &sight);

	if (ok) {
		t->redirect.write_max = min_u32(sight.frame_max, TX_TAP_BYTES);
		adjust_portion(t, sight.dropped);
	}
	t->usable = ok && sight.takes_redirected && (t->choice != TX_AUTO || t->portion > PORTION_MIN);
	t->look_ns = now_ns + (t->usable && t->portion == PORTION_MAX ? LOOK_NS : LOOK_SOON_NS);
}

/* ---- struct tx_ops ---- */

static u32 room(struct tx *tx, u64 now_ns)
{
	struct tx_policy *t = self(tx);
	u32 xsk = tx_room(t->xsk, now_ns);

	if (now_ns >= t->look_ns)
		look(t, now_ns);
	if (!t->usable)
		return xsk;
	if (now_ns >= t->portion_ns) {
		t->left = t->portion;
		t->portion_ns = now_ns + PORTION_NS;
	}
	/* the batch may have to go there after all */
	xsk = min_u32(xsk, t->free_count);
	return t->portion == PORTION_MAX ? xsk : min_u32(xsk, t->left);
}

static u8 *frame(struct tx *tx)
{
	struct tx_policy *t = self(tx);

	if (!t->usable)
		return tx_frame(t->xsk);
	return t->free_count ? t->redirect.frame[t->free[--t->free_count]].bytes : NULL;
}

static bool is_ours(const struct tx_policy *t, const u8 *buf)
{
	return buf >= t->redirect.frame[0].bytes && buf < t->redirect.frame[XROCE_TX_FRAMES].bytes;
}

static u32 key_of(const struct tx_policy *t, const u8 *buf)
{
	return (u32)((const struct xroce_tx_frame *)buf - t->redirect.frame);
}

static void give_back(struct tx *tx, u8 *buf)
{
	struct tx_policy *t = self(tx);

	if (is_ours(t, buf))
		t->free[t->free_count++] = key_of(t, buf);
	else
		tx_give_back(t->xsk, buf);
}

static void commit(struct tx *tx, u8 *buf, u32 len)
{
	struct tx_policy *t = self(tx);

	if (!is_ours(t, buf)) {
		tx_commit(t->xsk, buf, len);
		return;
	}
	t->redirect.ring->batch[t->queued++] = (struct xroce_tx_entry){ .frame = key_of(t, buf), .len = len };
	t->bytes += len;
	t->longest = len > t->longest ? len : t->longest;
}

/* All that is queued, by way of the socket. */
static void send_xsk(struct tx_policy *t)
{
	for (u32 i = 0; i < t->queued; i++) {
		const struct xroce_tx_entry *entry = &t->redirect.ring->batch[i];
		u8 *buf = tx_frame(t->xsk);

		if (!buf) {
			t->stats->tx_lost++; /* room() has seen to it that this does not happen */
			continue;
		}
		memcpy(buf, t->redirect.frame[entry->frame].bytes, entry->len);
		tx_commit(t->xsk, buf, entry->len);
	}
}

static void send_redirected(struct tx_policy *t)
{
	u32 lost;

	if (is_many(t)) {
		lost = tx_redirect_live(&t->redirect, 0, t->queued);
		t->stats->tx_live += t->queued - lost;
		t->stats->tx_live_runs++;
	} else {
		lost = tx_redirect_tap(&t->redirect, 0, t->queued, &t->stats->tx_tap_writes);
		t->stats->tx_tap += t->queued - lost;
	}
	t->stats->tx_lost += lost;
	t->left -= min_u32(t->left, t->queued);
	t->redirected = true;
}

/* A batch goes one way, and none passes another on a faster way: unreliable QPs count on the order. */
static bool flush(struct tx *tx)
{
	struct tx_policy *t = self(tx);

	if (t->queued && (t->longest > XROCE_TX_LIVE_BYTES || t->xsk_busy))
		send_xsk(t);
	else if (t->queued)
		send_redirected(t);
	while (t->queued)
		t->free[t->free_count++] = t->redirect.ring->batch[--t->queued].frame;
	t->bytes = t->longest = 0;
	t->xsk_busy = !tx_flush(t->xsk);
	return !t->xsk_busy;
}

static void close_tx(struct tx *tx)
{
	struct tx_policy *t = self(tx);

	tx_close(t->xsk);
	tx_watch_close(&t->watch);
	tx_redirect_close(&t->redirect);
	free(t);
}

static const struct tx_ops ops = {
	.room = room,
	.frame = frame,
	.give_back = give_back,
	.commit = commit,
	.flush = flush,
	.close = close_tx,
};

static int open_ways(struct tx_policy *t, const struct netdev *dev, const char **why)
{
	int err;

	*why = "watching the interface";
	err = tx_watch_open(&t->watch, dev->ifindex);
	if (err)
		return err;
	err = tx_redirect_open(&t->redirect, dev->ifindex, why);
	if (err)
		tx_watch_close(&t->watch);
	return err;
}

struct tx *tx_policy_open(const struct netdev *dev, struct tx *xsk, bool zero_copy, struct xroce_engine_stats *stats)
{
	enum tx_choice choice = options_tx();
	struct tx_policy *t;
	const char *why;
	int err;

	if (!xsk || choice == TX_XSK || (zero_copy && choice == TX_AUTO))
		return xsk;
	t = calloc(1, sizeof(*t));
	if (!t)
		return xsk;
	err = open_ways(t, dev, &why);
	if (err) {
		if (!getenv("XROCE_QUIET"))
			fprintf(stderr, "xroce: %s: sending through AF_XDP alone, which is slower: %s: %s\n", dev->name, why, strerror(-err));
		free(t);
		return xsk;
	}
	t->tx.ops = &ops;
	t->xsk = xsk;
	t->stats = stats;
	t->choice = choice;
	t->portion = PORTION_MAX;
	t->stats->tx_portion = t->portion;
	for (u32 i = XROCE_TX_FRAMES; i-- > 0;)
		t->free[t->free_count++] = i;
	return &t->tx;
}
