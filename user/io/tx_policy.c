/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which way frames leave. There are four:
 *
 *   AF_XDP       through the socket. Always works; two skbs a frame in copy mode, none where the
 *                driver has zero-copy
 *   TAP          written to a TAP device and redirected by XDP, up to 16 small frames in one write:
 *                no skb
 *   live frames  a page of the kernel's for each, filled and redirected by XDP: no skb, many in one
 *                call
 *   GSO          through a packet socket, up to 64 packets between two QPs in one skb, which stays
 *                one where nobody has to cut it
 *
 * A socket with zero-copy is used alone. Else choose_way() has the rule, a batch at a time:
 * redirection whenever the interface takes redirected frames (on veth: while its peer has native
 * XDP or GRO) and no frame of the batch is too long, as TAP or live frames by what it costs, see
 * is_many(); otherwise GSO if enough frames of it join others, see is_worth_gso(), and AF_XDP if
 * not. XROCE_TX=xsk, tap, live or gso takes the choice away; tap and live but for batches that
 * cannot go that way, which go by AF_XDP.
 *
 * What tx_pacer.c says of losses holds for redirected frames, and for super-packets to an
 * interface that takes those. When small portions do not end them, AF_XDP has its turn, which waits
 * for a frame to leave before it takes another. Forced ways stay.
 *
 * A batch with frames that are to leave as they are, of raw packet QPs, does not go as GSO, nor in
 * another order. Where that way is forced, each of its frames is sent alone.
 *
 * An interface may drop super-packets (tx_gso.h). Then frames leave through AF_XDP, or one by one
 * through the packet socket if that is the forced way. If it refuses them, all frames of the
 * batches that are not redirected leave one by one through the packet socket, where they meet the
 * rules of the host: one may be what refuses. One line on standard error says so, once.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>

#include "../os/options.h"
#include "../os/privilege.h"
#include "../os/netdev.h"
#include "tx.h"
#include "tx_gso.h"
#include "tx_probe.h"
#include "tx_pacer.h"
#include "tx_pool.h"
#include "tx_redirect.h"

#define XSK_AGAIN_NS NSEC_PER_SEC
/* frames at a time: they are still in the cache when the socket copies them */
#define GSO_BATCH    64u

struct tx_policy {
	struct tx tx;
	struct tx *xsk;
	struct tx_redirect redirect;
	/* of what is redirected; the interface takes nothing while there is no redirection */
	struct tx_pacer pacer;
	struct tx_gso gso;
	u32 looks;		/* of the pacer's, by which super-packets have been judged */
	bool can_redirect, can_gso, can_watch; /* these have been made; can_watch: the pacer */
	bool quiet;		/* of what cannot be made, another has told */
	char name[IF_NAMESIZE];	/* the interface's */
	struct xroce_engine_stats *stats;
	enum tx_choice choice;
	bool pooled;		/* frames are taken from the pool; else from the AF_XDP socket */
	struct tx_pool pool;	/* its frames are those that are redirected, if any can be */
	bool ordered;		/* some of the queue must not be overtaken */
	bool as_is;		/* some of it is to leave as it is */
	int xsk_queue;		/* the one that the AF_XDP socket sends by; -1: there is no other */
	bool xsk_busy;		/* frames are left in the AF_XDP socket's ring */
	u32 xsk_room;		/* of it when it has nothing to do */
	/* when frames that join no others may go by it again: choose_socket() */
	u64 xsk_again_ns;
	u64 now_ns;		/* of the last policy_room() */
	/* frames may be on their way from the packet socket to the interface */
	bool gso_busy;
};

static struct tx_policy *policy_of(struct tx *tx)
{
	return container_of(tx, struct tx_policy, tx);
}

/* ---- which way ---- */

enum way { BY_XSK, BY_REDIRECTION, BY_GSO, NOT_YET };

/*
 * Whether a batch is cheaper as live frames. They cost 12 us a call and 0.3 to 0.4 us a frame; a
 * write to the TAP 1.3 us, and 0.7 us for each further frame in it (measured on veth; the ratios
 * matter).
 */
static bool is_many(const struct tx_policy *t)
{
	const bool small = t->pool.bytes / t->pool.queued * TX_PIECES_MAX <= t->redirect.write_max;

	if (t->choice == TX_TAP)
		return false;
	return t->choice == TX_LIVE || t->pool.queued >= (small ? 44 : 20);
}

static bool takes_redirected(const struct tx_policy *t)
{
	return t->can_redirect && t->pacer.takes_redirected;
}

/* The interface has been losing redirected frames for long. */
static bool is_losing(const struct tx_policy *t)
{
	return t->choice == TX_AUTO && tx_pacer_is_smallest(&t->pacer);
}

/*
 * A frame that joins no other is cheaper through the AF_XDP socket: 0.9 us after 0.3 us for the
 * call, against 1.2 us after 0.2 us through the packet socket, to which those that join another add
 * 0.1 us (measured on veth; the ratios matter).
 */
static bool is_worth_gso(const struct tx_policy *t)
{
	const struct tx_pool *p = &t->pool;
	u32 sends = 0;

	for (u32 i = 0; i < p->queued; sends++)
		i += gso_count(&p->queue[i], p->queued - i);
	return !t->gso.refused && !t->gso.is_off && 3 * sends <= 2 * p->queued;
}

static bool gso_is_idle(struct tx_policy *t)
{
	t->gso_busy = t->gso_busy && !tx_gso_is_idle(&t->gso);
	return !t->gso_busy;
}

/*
 * Between the two sockets, none of whose frames may pass the other's. On veth both are done with a
 * frame when their call returns; a NIC is not, and then all frames go through the packet socket,
 * for as long as we do not care to try again.
 */
static enum way choose_socket(struct tx_policy *t)
{
	if (tx_room(t->xsk, t->now_ns) < t->xsk_room) {
		t->xsk_again_ns = t->now_ns + XSK_AGAIN_NS;
		return NOT_YET;
	}
	/* a rule is met there, and by no frame of the AF_XDP socket */
	if (tx_gso_is_doubted(&t->gso))
		return BY_GSO;
	/* the packet socket is no refuge then */
	if (t->gso.is_off)
		return gso_is_idle(t) ? BY_XSK : BY_GSO;
	return is_worth_gso(t) || t->now_ns < t->xsk_again_ns || !gso_is_idle(t) ? BY_GSO : BY_XSK;
}

/*
 * Redirected frames leave by the queue of the CPU. Those that have to keep their order may do so
 * where that is the AF_XDP socket's; else they leave by that socket, and so by one queue always. (A
 * veth's peer has as many receive queues as this end sends by, or more: so nothing is known of a
 * CPU beyond them.)
 */
static bool has_one_queue(const struct tx_policy *t)
{
	return !t->ordered || sched_getcpu() == t->xsk_queue;
}

/*
 * Of all that is queued: none passes another on a faster way, as unreliable QPs count on the order.
 */
static enum way choose_way(struct tx_policy *t)
{
	if (t->xsk_busy)
		return BY_XSK;
	if (takes_redirected(t) && !is_losing(t) && t->pool.longest <= XROCE_TX_LIVE_BYTES &&
	    gso_is_idle(t))
		return has_one_queue(t) ? BY_REDIRECTION : BY_XSK;
	if (unlikely(t->as_is))
		return t->choice == TX_GSO || !gso_is_idle(t) ? BY_GSO : BY_XSK;
	/* the packet socket's frames leave by the queue that the kernel chooses */
	if (t->ordered && t->choice != TX_GSO)
		return BY_XSK;
	if (t->can_gso)
		tx_pool_order(&t->pool);
	if (t->choice == TX_GSO)
		return BY_GSO;
	if (t->can_gso && !is_losing(t))
		return choose_socket(t);
	return gso_is_idle(t) ? BY_XSK : BY_GSO;
}

/*
 * Unless the next batch will go by AF_XDP whatever is in it: then frames are the socket's from the
 * beginning.
 */
static bool is_pooled(const struct tx_policy *t)
{
	return t->pool.queued || t->gso_busy || t->choice == TX_GSO ||
	       (takes_redirected(t) ? !is_losing(t) :
				      t->can_gso && (!t->gso.is_off || tx_gso_is_doubted(&t->gso)));
}

/* ---- whether super-packets arrive ---- */

/*
 * What the counters say. Where frames are redirected they are tx_pacer.c's to judge; and a veth
 * that takes redirected frames drops some when it is full, for which the forced way is not left.
 */
static void look_at_gso(struct tx_policy *t)
{
	tx_gso_try_again(&t->gso, t->now_ns);
	if (t->looks == t->pacer.looks)
		return;
	t->looks = t->pacer.looks;
	if (!takes_redirected(t) && !(t->choice == TX_GSO && t->pacer.takes_redirected))
		tx_gso_look(&t->gso, t->pacer.dropped, t->now_ns, t->stats);
}

/* ---- struct tx_ops ---- */

static u32 policy_room(struct tx *tx, u64 now_ns)
{
	struct tx_policy *t = policy_of(tx);
	u32 xsk = tx_room(t->xsk, now_ns);

	t->now_ns = now_ns;
	if (t->can_watch)
		tx_pacer_look(&t->pacer, now_ns);
	if (t->can_gso)
		look_at_gso(t);
	t->pooled = is_pooled(t);
	if (!t->pooled)
		return xsk;
	return min_u32(t->pool.free_count,
		       takes_redirected(t) ? tx_pacer_room(&t->pacer, now_ns) : GSO_BATCH);
}

static u8 *policy_frame(struct tx *tx)
{
	struct tx_policy *t = policy_of(tx);

	if (!t->pooled)
		return tx_frame(t->xsk);
	return tx_pool_take(&t->pool);
}

static void policy_give_back(struct tx *tx, u8 *buf)
{
	struct tx_policy *t = policy_of(tx);

	if (tx_pool_has(&t->pool, buf))
		tx_pool_give_back(&t->pool, buf);
	else
		tx_give_back(t->xsk, buf);
}

static void policy_commit(struct tx *tx, u8 *buf, u32 len)
{
	struct tx_policy *t = policy_of(tx);

	if (!tx_pool_has(&t->pool, buf)) {
		tx_commit(t->xsk, buf, len);
		return;
	}
	tx_pool_commit(&t->pool, buf, len);
	t->ordered |= t->xsk_queue >= 0 && tx_order_matters(buf);
}

static void policy_commit_as_is(struct tx *tx, u8 *buf, u32 len)
{
	struct tx_policy *t = policy_of(tx);

	if (!tx_pool_has(&t->pool, buf)) {
		tx_commit_as_is(t->xsk, buf, len);
		return;
	}
	tx_pool_commit(&t->pool, buf, len);
	t->as_is = true;
	t->ordered |= t->xsk_queue >= 0;
}

/*
 * Of all that is queued, as many as it has room for. These functions return how many frames are
 * done with.
 */
static u32 send_xsk(struct tx_policy *t)
{
	const struct tx_pool *p = &t->pool;

	for (u32 i = 0; i < p->queued; i++) {
		u8 *buf = tx_frame(t->xsk);

		if (!buf)
			return i;
		memcpy(buf, p->queue[i].bytes, p->queue[i].len);
		tx_commit(t->xsk, buf, p->queue[i].len);
	}
	return p->queued;
}

static u32 send_redirected(struct tx_policy *t)
{
	const struct tx_pool *p = &t->pool;
	u32 lost = 0, done;

	t->redirect.write_max = min_u32(t->pacer.frame_max, TX_TAP_BYTES);
	for (u32 i = 0; i < p->queued; i++)
		t->redirect.ring->batch[i] =
			(struct xroce_tx_entry){ .frame = tx_pool_key(p, p->queue[i].bytes),
						 .len = p->queue[i].len };
	tx_redirect_by(&t->redirect, t->ordered ? t->xsk_queue : -1);
	if (is_many(t)) {
		done = tx_redirect_live(&t->redirect, p->queued, &lost);
		t->stats->tx_live += done - lost;
		t->stats->tx_live_runs++;
	} else {
		done = tx_redirect_tap(&t->redirect, p->queued, &lost, &t->stats->tx_tap_writes);
		t->stats->tx_tap += done - lost;
	}
	t->stats->tx_lost += lost;
	tx_pacer_sent(&t->pacer, done);
	return done;
}

static u32 send_gso(struct tx_policy *t)
{
	u32 done;

	if (unlikely(t->now_ns < t->gso.again_ns))
		return 0;
	t->gso_busy = true;
	t->gso.is_alone = t->as_is;
	if (takes_redirected(t))
		tx_pacer_sent(&t->pacer, t->pool.queued);
	done = tx_gso_send(&t->gso, t->pool.queue, t->pool.queued, t->stats);
	if (unlikely(t->gso.was_refused) && tx_gso_is_idle(&t->gso))
		tx_gso_refused(&t->gso, t->now_ns, t->stats);
	if (unlikely(t->gso.was_full) && tx_gso_is_idle(&t->gso)) {
		tx_gso_dropped(&t->gso, t->stats);
		done++;
	}
	return done;
}

static void policy_dequeue(struct tx_policy *t, u32 n)
{
	tx_pool_dequeue(&t->pool, n);
	t->ordered = t->ordered && t->pool.queued;
	t->as_is = t->as_is && t->pool.queued;
}

static bool policy_flush(struct tx *tx)
{
	struct tx_policy *t = policy_of(tx);
	u32 done = 0;

	if (t->pool.queued) {
		switch (choose_way(t)) {
		case BY_XSK: done = send_xsk(t); break;
		case BY_REDIRECTION:
			done = send_redirected(t);
			if (likely(done == t->pool.queued))
				break;
			/* the thread has changed CPUs */
			policy_dequeue(t, done);
			done = send_xsk(t);
			break;
		case BY_GSO: done = send_gso(t); break;
		case NOT_YET: break;
		}
		policy_dequeue(t, done);
	}
	t->xsk_busy = !tx_flush(t->xsk);
	return !t->xsk_busy && !t->pool.queued;
}

static void close_ways(struct tx_policy *t)
{
	if (t->can_gso)
		tx_gso_close(&t->gso);
	if (t->can_watch)
		tx_pacer_close(&t->pacer);
	if (t->can_redirect)
		tx_redirect_close(&t->redirect);
	else
		free(t->pool.frame);
}

static void policy_close(struct tx *tx)
{
	struct tx_policy *t = policy_of(tx);

	tx_close(t->xsk);
	close_ways(t);
	free(t);
}

static const struct tx_ops ops = {
	.room = policy_room,
	.frame = policy_frame,
	.give_back = policy_give_back,
	.commit = policy_commit,
	.commit_as_is = policy_commit_as_is,
	.flush = policy_flush,
	.close = policy_close,
};

/* A way that cannot be had. remedy: what helps, or NULL. Returns false. */
static bool policy_miss(const struct tx_policy *t, const struct netdev *dev, const char *way,
			const char *why, int err, const char *remedy)
{
	if (!t->quiet && !options_is_set(OPTION_QUIET))
		fprintf(stderr, "xroce: %s: sending without %s, which is slower: %s: %s%s%s\n",
			dev->name, way, why, strerror(-err), remedy ? "; " : "",
			remedy ? remedy : "");
	return false;
}

static bool open_redirection(struct tx_policy *t, const struct netdev *dev, int watch_err)
{
	const char *why = "watching the interface";
	int err = watch_err ? watch_err : tx_redirect_open(&t->redirect, dev->ifindex, &why);

	return err ? policy_miss(t, dev, "XDP redirection", why, err,
				 tx_redirect_remedy(why, privilege_caps())) :
		     true;
}

static bool open_gso(struct tx_policy *t, const struct netdev *dev)
{
	const char *why;
	int err = tx_gso_open(&t->gso, dev->ifindex, &why);

	t->gso.tell = t->quiet || options_is_set(OPTION_QUIET) ? NULL : t->name;
	return err ? policy_miss(t, dev, "UDP segmentation offload", why, err, NULL) : true;
}

static bool get_frames(struct tx_policy *t, const struct netdev *dev)
{
	struct xroce_tx_frame *frame = t->can_redirect ? t->redirect.frame :
							 calloc(XROCE_TX_FRAMES, sizeof(*frame));

	if (!frame)
		return policy_miss(t, dev, "UDP segmentation offload", "getting memory", -ENOMEM,
				   NULL);
	tx_pool_init(&t->pool, frame);
	return true;
}

/* False: there is only AF_XDP, and nothing is left behind. */
static bool open_ways(struct tx_policy *t, const struct netdev *dev)
{
	const int err = tx_pacer_open(&t->pacer, dev->ifindex, t->stats);

	t->can_watch = !err;
	t->can_redirect = t->choice != TX_GSO && open_redirection(t, dev, err);
	t->can_gso = tx_may_gso(dev) && open_gso(t, dev);
	if ((t->can_redirect || t->can_gso) && get_frames(t, dev))
		return true;
	close_ways(t);
	return false;
}

struct tx *tx_policy_open(const struct netdev *dev, struct tx *xsk, int queue, bool zero_copy,
			  bool quiet, struct xroce_engine_stats *stats)
{
	enum tx_choice choice = options_tx();
	struct tx_policy *t;

	if (!xsk || choice == TX_XSK || (zero_copy && choice == TX_AUTO))
		return xsk;
	t = calloc(1, sizeof(*t));
	if (!t)
		return xsk;
	t->tx.ops = &ops;
	t->xsk = xsk;
	t->stats = stats;
	t->choice = choice;
	t->xsk_queue = queue;
	t->quiet = quiet;
	memcpy(t->name, dev->name, sizeof(t->name));
	if (!open_ways(t, dev)) {
		free(t);
		return xsk;
	}
	t->xsk_room = tx_room(xsk, 0);
	return &t->tx;
}
