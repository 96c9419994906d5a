/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Address handles of peers: a set-associative table of a few hundred. */
#include "qp1.h"

#include <stdlib.h>
#include <time.h>

#include "../os/clock.h"
#include "../verbs/xroce_cm.h"
#include "addr.h"
#include "cm_device.h"

/* Limits of MADs waiting for a MAC: in total, for a peer in a look-up, for a pending peer. */
#define WAITING_MAX	    2048u
#define WAITING_LOOKUP_MAX  256u
#define WAITING_PENDING_MAX 4u
/* Concurrent look-ups. */
#define MAKING_MAX 64u
/* The kernel resolves a neighbour for three seconds. Its table has room for 1,024 by default. */
#define ASKED_NS  (3 * NSEC_PER_SEC)
#define ASKED_MAX 256u
/* The age after which a handle in use is replaced, as the neighbour may have another MAC. */
#define REFRESH_NS (2 * NSEC_PER_SEC)
#define FLUSH_NS   (100 * NSEC_PER_MSEC)
#define FLUSH_MAX  16u

/* A MAD to send, or a received MAD. */
struct peers_waiting {
	struct peers_waiting *next;
	struct peer *peer;
	bool came_in;
	struct cm_send mad;
};

struct peers_work {
	struct cm_work work;
	struct peers *peers;
	struct peer *peer;
	struct cm_path path;
	bool ask;
	struct ibv_ah *ah;
	u8 mac[6];
	int err;
};

static void peers_expired(struct cm_timer *timer);

void peers_init(struct peers *p, struct rdmacm_device *dev, struct ibv_pd *pd)
{
	pthread_condattr_t attr;

	p->dev = dev;
	p->pd = pd;
	p->waiting_tail = &p->waiting;
	p->ready_tail = &p->ready;
	p->expiry.fn = peers_expired;
	pthread_condattr_init(&attr);
	/* the wall clock may be set back while a thread waits */
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->made, &attr);
	pthread_condattr_destroy(&attr);
}

void peers_stop(struct peers *p)
{
	cm_timer_clear(&p->expiry);
}

static void peers_free_list(struct peers_waiting *w)
{
	while (w) {
		struct peers_waiting *next = w->next;

		free(w);
		w = next;
	}
}

void peers_free(struct peers *p)
{
	if (!p->dev)
		return;
	rdmacm_enter();
	/* other threads may all be busy and not get to these look-ups */
	while (p->making)
		if (!cm_work_here())
			pthread_cond_wait(&p->made, &rdmacm_lock);
	rdmacm_leave();
	for (u32 i = 0; i < PEER_SETS * PEER_WAYS; i++) {
		struct peer *peer = &p->peer[i / PEER_WAYS][i % PEER_WAYS];

		if (peer->ah)
			ibv_destroy_ah(peer->ah);
	}
	peers_free_list(p->waiting);
	peers_free_list(p->ready);
	pthread_cond_destroy(&p->made);
}

/* ---- the table: all connections with a peer share a handle, whatever their flow labels ---- */

static bool peer_is(const struct peer *peer, const struct cm_path *path)
{
	return peer->used && gid_equal(&peer->path.remote, &path->remote) &&
	       gid_equal(&peer->path.local, &path->local) &&
	       peer->path.traffic_class == path->traffic_class &&
	       peer->path.hop_limit == path->hop_limit && peer->path.sl == path->sl;
}

static struct peer *peers_set(struct peers *p, const struct cm_path *path)
{
	u32 hash = path->traffic_class;

	for (u32 i = 0; i < sizeof(path->remote.raw); i++)
		hash = hash * 31 + path->remote.raw[i];
	return p->peer[(hash ^ hash >> 8 ^ hash >> 16) % PEER_SETS];
}

/* ---- waiting MADs ---- */

static bool peers_wait(struct peers *p, struct peer *peer, const struct cm_path *path,
		       const u8 mad[CM_MAD_BYTES], bool came_in)
{
	const u32 most = peer->making ? WAITING_LOOKUP_MAX : WAITING_PENDING_MAX;
	struct peers_waiting *w;

	if (p->num_waiting >= WAITING_MAX || peer->waiting >= most)
		return false;
	w = malloc(sizeof(*w));
	if (!w)
		return false;
	*w = (struct peers_waiting){ .peer = peer, .came_in = came_in, .mad.path = *path };
	memcpy(w->mad.mad, mad, CM_MAD_BYTES);
	*p->waiting_tail = w;
	p->waiting_tail = &w->next;
	p->num_waiting++;
	p->num_sends += !came_in;
	peer->waiting++;
	return true;
}

/* Removes the MADs of a peer from the queue, except the first `keep`, and returns them. */
static struct peers_waiting *peers_take_waiting(struct peers *p, struct peer *peer, u32 keep)
{
	struct peers_waiting **at = &p->waiting, *taken = NULL, **tail = &taken, *w;

	while ((w = *at)) {
		if (w->peer != peer || (keep && keep--)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = NULL;
		*tail = w;
		tail = &w->next;
		p->num_sends -= !w->came_in;
		peer->waiting--;
	}
	p->waiting_tail = at;
	return taken;
}

static void peers_count_silent(struct peers *p)
{
	if (!p->dev->gone)
		xroce_cm_count(p->dev->own, XROCE_CM_SILENT);
}

static void peers_drop_waiting(struct peers *p, struct peer *peer, u32 keep)
{
	struct peers_waiting *w = peers_take_waiting(p, peer, keep), *next;

	for (; w; w = next) {
		next = w->next;
		if (w->came_in)
			peers_count_silent(p);
		p->num_waiting--;
		free(w);
	}
}

/* Sends the MADs waiting for this peer, or passes them to the CM, in order. */
static void peers_release_waiting(struct peers *p, struct peer *peer)
{
	struct peers_waiting *w = peers_take_waiting(p, peer, 0), *next;

	for (; w; w = next) {
		next = w->next;
		w->next = NULL;
		if (!w->came_in) {
			*p->ready_tail = w;
			p->ready_tail = &w->next;
			continue;
		}
		if (!p->dev->gone)
			qp1_input(p->dev->qp1, &w->mad.path, w->mad.mad, CM_MAD_BYTES);
		p->num_waiting--;
		free(w);
	}
}

/* ---- entries of the table ---- */

static bool peer_is_pending(const struct peer *peer)
{
	return peer->used && !peer->ah && !peer->making;
}

/*
 * Returns an unused entry, else the least recently used pending peer, else the least recently used
 * peer: a flood from silent addresses replaces silent addresses first. NULL: all are in a look-up.
 */
static struct peer *peers_place(struct peer *set)
{
	struct peer *best = NULL;

	for (u32 i = 0; i < PEER_WAYS; i++) {
		struct peer *peer = &set[i];

		if (peer->making)
			continue;
		if (!peer->used)
			return peer;
		if (!best || peer_is_pending(peer) > peer_is_pending(best) ||
		    (peer_is_pending(peer) == peer_is_pending(best) &&
		     peer->used_ns < best->used_ns))
			best = peer;
	}
	return best;
}

static void peers_remove(struct peers *p, struct peer *peer)
{
	peers_drop_waiting(p, peer, 0);
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	*peer = (struct peer){ 0 };
}

/* ---- creating a handle ---- */

static void peers_make_ah(struct cm_work *work)
{
	struct peers_work *w = container_of(work, struct peers_work, work);
	int index = cm_device_gid_index(w->peers->dev, &w->path.local);
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = RDMACM_PORT,
		.sl = w->path.sl,
		.grh = { .sgid_index = (u8)index,
			 .hop_limit = w->path.hop_limit,
			 .traffic_class = w->path.traffic_class },
	};

	if (index < 0) {
		w->err = index;
		return;
	}
	memcpy(attr.grh.dgid.raw, w->path.remote.raw, sizeof(attr.grh.dgid.raw));
	w->ah = xroce_cm_create_ah(w->peers->pd, &attr, w->ask, w->mac);
	w->err = w->ah ? 0 : -errno;
}

static bool peers_make(struct peers *p, struct peer *peer, bool ask);

/* Handles a look-up without a MAC. An older handle stays, as its MAC may be right. */
static void peers_failed(struct peers *p, struct peer *peer, const struct peers_work *w)
{
	if (peer->ah)
		return;
	if (w->err != -EHOSTUNREACH || p->dev->gone || (!w->ask && !peer->asked_ns)) {
		peers_remove(p, peer);
		return;
	}
	if (w->ask) {
		peer->asked_ns = clock_now_ns();
		p->asks++;
	}
	peers_drop_waiting(p, peer, WAITING_PENDING_MAX);
	if (!p->expiry.set)
		cm_timer_set(&p->expiry, peer->asked_ns + ASKED_NS);
	/* a neighbour has answered during the look-up, perhaps this peer */
	if (peer->changed)
		peers_make(p, peer, false);
}

static void peers_made_ah(struct cm_work *work)
{
	struct peers_work *w = container_of(work, struct peers_work, work);
	struct peers *p = w->peers;
	struct peer *peer = w->peer;

	peer->making = false;
	peer->made_ns = clock_now_ns();
	if (w->ah) {
		if (peer->ah)
			ibv_destroy_ah(peer->ah);
		peer->ah = w->ah;
		memcpy(peer->mac, w->mac, sizeof(peer->mac));
		peer->asked_ns = 0;
		peers_release_waiting(p, peer);
	} else {
		peers_failed(p, peer, w);
	}
	free(w);
	if (!p->dev->gone)
		qp1_send(p->dev->qp1);
	p->making--;
	pthread_cond_broadcast(&p->made);
}

/* At most about ASKED_MAX in ASKED_NS: all programs of the host share the kernel's table. */
static bool peers_may_ask(struct peers *p)
{
	const u64 now_ns = clock_now_ns();

	if (now_ns - p->asks_since_ns >= ASKED_NS) {
		p->asks_since_ns = now_ns;
		p->asks = 0;
	}
	return p->asks < ASKED_MAX;
}

/* Starts a look-up. Returns false if too many are running, or without memory. */
static bool peers_make(struct peers *p, struct peer *peer, bool ask)
{
	struct peers_work *w;

	if (p->making >= MAKING_MAX)
		return false;
	w = calloc(1, sizeof(*w));
	if (!w)
		return false;
	w->work = (struct cm_work){ .do_work = peers_make_ah, .done = peers_made_ah };
	w->peers = p;
	w->peer = peer;
	w->path = peer->path;
	/* subscribe to neighbour messages first, so that no answer is missed */
	w->ask = ask && peers_may_ask(p) && !neighbours_open();
	cm_work_add(&w->work);
	peer->making = true;
	peer->changed = false;
	p->making++;
	return true;
}

/* Removes no peer while too many look-ups are running. */
static struct peer *peers_add(struct peers *p, struct peer *set, const struct cm_path *path)
{
	struct peer *peer = p->making < MAKING_MAX ? peers_place(set) : NULL;

	if (!peer)
		return NULL;
	peers_remove(p, peer);
	peer->path = *path;
	peer->used = peers_make(p, peer, true);
	return peer->used ? peer : NULL;
}

/* ---- pending neighbours ---- */

void peers_hear(struct peers *p)
{
	for (u32 i = 0; i < PEER_SETS * PEER_WAYS; i++) {
		struct peer *peer = &p->peer[i / PEER_WAYS][i % PEER_WAYS];

		peer->changed = true;
		if (peer_is_pending(peer))
			peers_make(p, peer, false);
	}
}

static void peers_expired(struct cm_timer *timer)
{
	struct peers *p = container_of(timer, struct peers, expiry);
	const u64 now_ns = clock_now_ns();
	u64 next_ns = NSEC_NEVER;

	for (u32 i = 0; i < PEER_SETS * PEER_WAYS; i++) {
		struct peer *peer = &p->peer[i / PEER_WAYS][i % PEER_WAYS];

		if (!peer_is_pending(peer))
			continue;
		if (now_ns - peer->asked_ns >= ASKED_NS)
			peers_remove(p, peer);
		else
			next_ns = min_u64(next_ns, peer->asked_ns + ASKED_NS);
	}
	cm_timer_set(timer, next_ns);
}

/* ---- calls ---- */

void peers_flush(struct peers *p)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)FLUSH_NS;
	if ((u64)until.tv_nsec >= NSEC_PER_SEC) {
		until.tv_nsec -= NSEC_PER_SEC;
		until.tv_sec++;
	}
	while (p->making && p->num_sends && p->num_sends <= FLUSH_MAX)
		if (pthread_cond_timedwait(&p->made, &rdmacm_lock, &until))
			return;
}

static struct peer *peers_look(struct peers *p, const struct cm_path *path)
{
	struct peer *set = peers_set(p, path);

	for (u32 i = 0; i < PEER_WAYS; i++)
		if (peer_is(&set[i], path))
			return &set[i];
	return NULL;
}

bool peers_knows(struct peers *p, const struct cm_path *path)
{
	return peers_look(p, path);
}

static struct peer *peers_use(struct peers *p, const struct cm_path *path)
{
	struct peer *peer = peers_look(p, path);

	if (!peer)
		peer = peers_add(p, peers_set(p, path), path);
	if (peer)
		peer->used_ns = clock_now_ns();
	return peer;
}

struct ibv_ah *peers_find(struct peers *p, const struct cm_send *send)
{
	struct peer *peer = peers_use(p, &send->path);

	if (!peer)
		return NULL;
	if (!peer->ah)
		peers_wait(p, peer, &send->path, send->mad, false);
	else if (peer->used_ns - peer->made_ns > REFRESH_NS && !peer->making)
		peers_make(p, peer, true);
	return peer->ah;
}

bool peers_admit(struct peers *p, const struct cm_path *path, const u8 mad[CM_MAD_BYTES])
{
	struct peer *peer = peers_use(p, path);

	if (peer && peer->ah)
		return true;
	if (!peer || !peers_wait(p, peer, path, mad, true))
		peers_count_silent(p);
	return false;
}

void peers_mac(struct peers *p, const struct cm_path *path, u8 mac[6])
{
	const struct peer *peer = peers_look(p, path);

	if (peer)
		memcpy(mac, peer->mac, sizeof(peer->mac));
}

bool peers_next_waiting(struct peers *p, struct cm_send *send, struct ibv_ah **ah)
{
	struct peers_waiting *w = p->ready;

	if (!w)
		return false;
	p->ready = w->next;
	if (!p->ready)
		p->ready_tail = &p->ready;
	p->num_waiting--;
	*send = w->mad;
	*ah = peer_is(w->peer, &w->mad.path) ? w->peer->ah : NULL;
	free(w);
	return true;
}
