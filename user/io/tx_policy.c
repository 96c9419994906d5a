/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chooses the way by which frames leave. There are four:
 *
 *   AF_XDP       through the socket. Always works; two skbs a frame in copy mode, none where the
 *                driver has zero-copy
 *   TAP          written to a TAP device and redirected by XDP, up to 16 small frames in one write:
 *                no skb
 *   live frames  pages of the kernel that XDP fills and redirects: no skb, many in one call
 *   GSO          through a packet socket, up to 64 packets between two QPs in one skb, which stays
 *                one unless it has to be cut
 *
 * A socket with zero-copy is used alone. Otherwise choose_way() decides for each batch. It
 * redirects if the interface takes redirected frames (on veth: while its peer has native XDP or
 * GRO) and no frame of the batch is too long; by TAP or live frames depending on cost, see
 * is_many(). Otherwise it uses GSO if enough frames of the batch join others, see is_worth_gso(),
 * and AF_XDP if not. XROCE_TX=xsk, tap, live or gso forces a way; batches that cannot go by tap or
 * live go by AF_XDP.
 *
 * The pacer (tx_pacer.c) limits redirected frames, and super-packets to an interface that takes
 * redirected frames. If the smallest portions do not end the losses, AF_XDP is used, which waits
 * for a frame to leave before it takes another. Forced ways stay.
 *
 * A batch with frames that must leave as they are, from raw packet QPs, is neither sent as GSO nor
 * reordered. Where GSO is forced, each of its frames is sent alone.
 *
 * An interface may drop super-packets (tx_gso.h). Then frames leave through AF_XDP, or one by one
 * through the packet socket if GSO is forced. If it refuses them, all batches that are not
 * redirected leave one by one through the packet socket, where they meet the rules of the host: one
 * of these may be what refuses. One line on standard error reports it, once.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "../os/complain.h"
#include "../os/netdev.h"
#include "../os/options.h"
#include "../os/privilege.h"
#include "tx.h"
#include "tx_gso.h"
#include "tx_pacer.h"
#include "tx_policy.h"
#include "tx_pool.h"
#include "tx_redirect.h"

#define XSK_AGAIN_NS NSEC_PER_SEC
/* frames at a time: still in the cache when the socket copies them */
#define GSO_BATCH    64u

struct tx_policy {
	struct tx tx;
	struct tx *xsk;
	struct tx_redirect redirect;
	/* for redirected frames; without redirection the interface takes nothing */
	struct tx_pacer pacer;
	struct tx_gso gso;
	u32 looks;		/* the pacer look by which super-packets were judged last */
	bool can_redirect, can_gso, can_watch; /* opened ways; can_watch: the pacer */
	bool quiet;		/* another sender has reported missing ways */
	char name[IF_NAMESIZE];	/* of the interface */
	struct xroce_engine_stats *stats;
	enum tx_choice choice;
	bool pooled;		/* frames come from the pool, else from the AF_XDP socket */
	struct tx_pool pool;	/* shares the frames of redirection, if it is open */
	bool ordered;		/* the queue holds frames that must not be overtaken */
	bool as_is;		/* the queue holds frames that must leave as they are */
	int xsk_queue;		/* queue by which the AF_XDP socket sends; -1: the only one */
	bool xsk_busy;		/* frames are left in the AF_XDP socket's ring */
	u32 xsk_room;		/* its room when it is idle */
	/* when unjoined frames may use the AF_XDP socket again: choose_socket() */
	u64 xsk_again_ns;
	u64 now_ns;		/* time of the last policy_room() */
	/* frames may be in flight between the packet socket and the interface */
	bool gso_busy;
};

static struct tx_policy *policy_of(struct tx *tx)
{
	return container_of(tx, struct tx_policy, tx);
}

/* ---- which way ---- */

enum way { BY_XSK, BY_REDIRECTION, BY_GSO, NOT_YET };

/*
 * Returns whether a batch is cheaper as live frames. They cost 12 us a call and 0.3 to 0.4 us a
 * frame; a write to the TAP costs 1.3 us, and 0.7 us for each further frame in it (measured on
 * veth; the ratios matter).
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

/* Returns whether the interface drops redirected frames even in the smallest portions. */
static bool is_losing(const struct tx_policy *t)
{
	return t->choice == TX_AUTO && tx_pacer_is_smallest(&t->pacer);
}

/*
 * Returns whether enough frames join others. A frame that joins no other is cheaper through the
 * AF_XDP socket: 0.9 us plus 0.3 us for the call, against 1.2 us plus 0.2 us through the packet
 * socket. Frames that join another cost 0.1 us there (measured on veth; the ratios matter).
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
 * Chooses between the two sockets so that no frame of one passes a frame of the other. On veth both
 * are done with a frame when the call returns. A NIC is not: then all frames use the packet socket
 * until xsk_again_ns.
 */
static enum way choose_socket(struct tx_policy *t)
{
	if (tx_room(t->xsk, t->now_ns) < t->xsk_room) {
		t->xsk_again_ns = t->now_ns + XSK_AGAIN_NS;
		return NOT_YET;
	}
	/* the packet socket shows the host's rules at work; the AF_XDP socket would bypass them */
	if (tx_gso_is_doubted(&t->gso))
		return BY_GSO;
	/* super-packets are disabled: the packet socket has no advantage */
	if (t->gso.is_off)
		return gso_is_idle(t) ? BY_XSK : BY_GSO;
	return is_worth_gso(t) || t->now_ns < t->xsk_again_ns || !gso_is_idle(t) ? BY_GSO : BY_XSK;
}

/*
 * Returns whether the batch would leave by a single queue, if its frames must keep their order.
 * Redirected frames leave by the queue of the CPU, which must be the AF_XDP socket's; otherwise
 * that socket is used. A veth's peer has at least as many receive queues as this end has for
 * sending, so CPUs beyond them are unpredictable.
 */
static bool has_one_queue(const struct tx_policy *t)
{
	return !t->ordered || sched_getcpu() == t->xsk_queue;
}

/* Chooses one way for the whole queue, as unreliable QPs rely on the order of frames. */
static enum way choose_way(struct tx_policy *t)
{
	if (t->xsk_busy)
		return BY_XSK;
	if (takes_redirected(t) && !is_losing(t) && t->pool.longest <= XROCE_TX_LIVE_BYTES &&
	    gso_is_idle(t))
		return has_one_queue(t) ? BY_REDIRECTION : BY_XSK;
	if (unlikely(t->as_is))
		return t->choice == TX_GSO || !gso_is_idle(t) ? BY_GSO : BY_XSK;
	/* the kernel chooses the queue for the packet socket's frames */
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

/* Returns false if the next batch uses AF_XDP in any case, and so frames of its UMEM. */
static bool is_pooled(const struct tx_policy *t)
{
	return t->pool.queued || t->gso_busy || t->choice == TX_GSO ||
	       (takes_redirected(t) ? !is_losing(t) :
				      t->can_gso && (!t->gso.is_off || tx_gso_is_doubted(&t->gso)));
}

/* ---- whether super-packets arrive ---- */

/*
 * Judges super-packets by the interface's drop counter. Where frames are redirected, the pacer
 * judges the drops instead. A veth that takes redirected frames drops some when it is full, which
 * is no reason to leave the forced way.
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

/* Sends frames while the AF_XDP socket has room. These return how many frames are done with. */
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

/* Reports a way that cannot be opened. remedy: advice, or NULL. Returns false. */
static bool policy_miss(const struct tx_policy *t, const struct netdev *dev, const char *way,
			const char *why, int err, const char *remedy)
{
	if (!t->quiet && !options_is_set(OPTION_QUIET))
		complain("%s: sending without %s, which is slower: %s: %s%s%s", dev->name, way, why,
			 strerror(-err), remedy ? "; " : "", remedy ? remedy : "");
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
		return policy_miss(t, dev, "UDP segmentation offload", "allocating memory", -ENOMEM,
				   NULL);
	tx_pool_init(&t->pool, frame);
	return true;
}

/* Returns false if there is only AF_XDP; nothing stays open then. */
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

/* ---- the choice without a port ---- */

/* The largest path MTU whose frames can be redirected. */
#define REDIRECT_PATH_MTU 2048u

enum tx_probe tx_probe(u32 ifindex)
{
	enum tx_choice choice = options_tx();
	u64 features;

	if (choice == TX_XSK || choice == TX_GSO)
		return choice == TX_XSK ? TX_PROBE_FORCED_XSK : TX_PROBE_FORCED_GSO;
	if (netdev_xdp_features(ifindex, &features))
		return TX_PROBE_UNTOLD;
	if (features & NETDEV_XDP_XSK_ZEROCOPY && choice == TX_AUTO)
		return TX_PROBE_ZERO_COPY;
	if (!(features & (NETDEV_XDP_BASIC | NETDEV_XDP_NDO_XMIT)))
		return TX_PROBE_NO_NATIVE;
	if (access(TX_TUN_DEVICE, R_OK | W_OK))
		return TX_PROBE_NO_TUN;
	return features & NETDEV_XDP_NDO_XMIT ? TX_PROBE_REDIRECT : TX_PROBE_NOT_NOW;
}

bool tx_may_gso(const struct netdev *dev)
{
	enum tx_choice choice = options_tx();

	return choice == TX_GSO || (choice == TX_AUTO && !dev->is_hardware && !dev->is_stacked &&
				    netdev_kernel_generic_frags());
}

u32 tx_preferred_path_mtu(const struct netdev *dev, u32 path_mtu)
{
	enum tx_probe probe;

	if (path_mtu <= REDIRECT_PATH_MTU)
		return path_mtu;
	probe = tx_probe(dev->ifindex);
	/* a generic-mode interface that takes no redirected frames now is assumed to stay so */
	if (probe == TX_PROBE_NOT_NOW && tx_may_gso(dev) && xdp_mode(dev) == XDP_MODE_GENERIC)
		return path_mtu;
	return probe == TX_PROBE_REDIRECT || probe == TX_PROBE_NOT_NOW ? REDIRECT_PATH_MTU :
										 path_mtu;
}
