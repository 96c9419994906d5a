/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends the frames of a process that shares the interface, through its own TAP devices, which the
 * broker has made. The kernel runs the broker's program on each frame as it is written. The program
 * passes permitted frames on to the interface, or to another process on it.
 *
 * Super-packets go to one device, where tx_may_gso() allows them and while they arrive (tx_gso.h).
 * Single frames go to the other device, if there is one, which redirects them to the interface
 * without an skb while the interface takes such frames. When write() returns, a frame is queued
 * after all earlier ones.
 *
 * A TAP does not report what became of a frame. So the interface's drop counter is read now and
 * then, and while it grows tx_pacer.c lets fewer frames leave at a time.
 */
#include <stdlib.h>

#include "../os/options.h"
#include "../os/netdev.h"
#include "tx.h"
#include "tx_gso.h"
#include "tx_pacer.h"
#include "tx_pool.h"
#include "tx_redirect.h"

/* frames at a time: still in the cache when the kernel copies them */
#define SHARED_BATCH 64u
/*
 * A redirected frame costs 0.9 us. A super-packet costs 2.4 us, and 0.7 us for each frame that the
 * kernel cuts for an interface that takes redirected frames (measured on veth; the ratios matter).
 */
#define SHARED_MANY  12u

struct tx_shared {
	struct tx tx;
	struct tx_gso gso;
	struct tx_pacer pacer;
	bool can_watch;		/* the pacer was opened */
	u32 looks;		/* the pacer look by which super-packets were judged last */
	struct tx_pool pool;
	bool may_direct;	/* single frames have their own device */
	bool has_queues;	/* the interface has several queues */
	bool ordered;		/* the queue holds frames that must not be overtaken */
	char name[IF_NAMESIZE];	/* of the interface */
	struct xroce_engine_stats *stats;
	u64 now_ns;		/* time of the last shared_room() */
};

static struct tx_shared *shared_of(struct tx *tx)
{
	return container_of(tx, struct tx_shared, tx);
}

/* ---- whether super-packets arrive ---- */

/*
 * Judges super-packets by the interface's drop counter. A veth that takes redirected frames gets
 * super-packets cut, and drops frames when it is full. The pacer ends these drops; if it cannot,
 * super-packets are the cause.
 */
static void shared_look(struct tx_shared *t)
{
	tx_pacer_look(&t->pacer, t->now_ns);
	tx_gso_try_again(&t->gso, t->now_ns);
	if (t->looks == t->pacer.looks)
		return;
	t->looks = t->pacer.looks;
	if (!t->pacer.takes_redirected || tx_pacer_is_smallest(&t->pacer))
		tx_gso_look(&t->gso, t->pacer.dropped, t->now_ns, t->stats);
}

/* ---- struct tx_ops ---- */

static u32 shared_room(struct tx *tx, u64 now_ns)
{
	struct tx_shared *t = shared_of(tx);
	const u32 room = min_u32(t->pool.free_count, SHARED_BATCH);

	t->now_ns = now_ns;
	if (!t->can_watch)
		return room;
	shared_look(t);
	return min_u32(room, tx_pacer_room(&t->pacer, now_ns));
}

static u8 *shared_frame(struct tx *tx)
{
	return tx_pool_take(&shared_of(tx)->pool);
}

static void shared_give_back(struct tx *tx, u8 *buf)
{
	tx_pool_give_back(&shared_of(tx)->pool, buf);
}

static void shared_commit(struct tx *tx, u8 *buf, u32 len)
{
	struct tx_shared *t = shared_of(tx);

	tx_pool_commit(&t->pool, buf, len);
	t->ordered |= t->has_queues && tx_order_matters(buf);
}

/*
 * Chooses the device and whether frames are joined. Redirected frames leave by the queue of the
 * CPU, all others by a queue that the kernel chooses. With several queues, frames that must keep
 * their order are not redirected.
 */
static void shared_choose(struct tx_shared *t)
{
	struct tx_gso *g = &t->gso;

	g->is_direct = t->may_direct && t->pacer.takes_redirected && !t->ordered;
	g->is_alone = g->is_direct && t->pool.queued < SHARED_MANY &&
		      t->pool.longest <= TX_TAP_BYTES;
}

static bool shared_flush(struct tx *tx)
{
	struct tx_shared *t = shared_of(tx);
	u32 done;

	if (!t->pool.queued)
		return true;
	tx_pool_order(&t->pool);
	shared_choose(t);
	done = tx_gso_send(&t->gso, t->pool.queue, t->pool.queued, t->stats);
	if (unlikely(t->gso.was_refused))
		tx_gso_refused(&t->gso, t->now_ns, t->stats);
	tx_pacer_sent(&t->pacer, done);
	tx_pool_dequeue(&t->pool, done);
	t->ordered = t->ordered && t->pool.queued;
	return !t->pool.queued;
}

static void shared_close(struct tx *tx)
{
	struct tx_shared *t = shared_of(tx);

	if (t->can_watch)
		tx_pacer_close(&t->pacer);
	tx_gso_close(&t->gso);
	free(t->pool.frame);
	free(t);
}

static const struct tx_ops ops = {
	.room = shared_room,
	.frame = shared_frame,
	.give_back = shared_give_back,
	.commit = shared_commit,
	.flush = shared_flush,
	.close = shared_close,
};

/* Makes the sender without the pacer. */
static struct tx_shared *shared_make(const struct netdev *dev, int tap_fd, int single_fd,
				     struct xroce_engine_stats *stats)
{
	struct xroce_tx_frame *frame = calloc(XROCE_TX_FRAMES, sizeof(*frame));
	struct tx_shared *t = calloc(1, sizeof(*t));

	if (!frame || !t || tx_gso_open_taps(&t->gso, tap_fd, single_fd)) {
		free(frame);
		free(t);
		return NULL;
	}
	t->tx.ops = &ops;
	t->stats = stats;
	memcpy(t->name, dev->name, sizeof(t->name));
	t->gso.refused = !tx_may_gso(dev);
	tx_pool_init(&t->pool, frame);
	return t;
}

struct tx *tx_shared_open(const struct netdev *dev, int tap_fd, int single_fd, bool quiet,
			  struct xroce_engine_stats *stats)
{
	struct tx_shared *t = shared_make(dev, tap_fd, single_fd, stats);

	if (!t)
		return NULL;
	t->gso.tell = quiet || options_is_set(OPTION_QUIET) ? NULL : t->name;
	/* without the pacer nothing is redirected, paced, or judged by drops */
	t->may_direct = single_fd >= 0;
	t->has_queues = dev->rx_queues > 1;
	t->can_watch = !tx_pacer_open(&t->pacer, dev->ifindex, stats);
	return &t->tx;
}

struct tx *tx_local_open(const struct netdev *dev, int tap_fd, struct xroce_engine_stats *stats)
{
	struct tx_shared *t = shared_make(dev, tap_fd, -1, stats);

	return t ? &t->tx : NULL;
}
