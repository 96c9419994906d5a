/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Address handles of peers: a set-associative table of a few hundred. */
#include "peers.h"

#include <stdlib.h>
#include <time.h>

#include "../base/clock.h"
#include "device.h"
#include "qp1.h"

#define WAITING_MAX 1024u
#define MAKING_MAX  64u
/* After that a handle is made anew while it is used: a neighbour may have another MAC. */
#define REFRESH_NS (2 * NSEC_PER_SEC)
#define FLUSH_NS   (100 * NSEC_PER_MSEC)
#define FLUSH_MAX  16u

struct peers_waiting {
	struct peers_waiting *next;
	struct peer *peer;
	struct cm_send send;
};

struct peers_work {
	struct loop_work work;
	struct peers *peers;
	struct peer *peer;
	struct cm_path path;
	struct ibv_ah *ah;
};

void peers_init(struct peers *p, struct rdmacm_device *dev, struct ibv_pd *pd)
{
	p->dev = dev;
	p->pd = pd;
	p->ready_tail = &p->ready;
	pthread_cond_init(&p->made, NULL);
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
	while (p->making)
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

/* Unused, or the one used the longest ago. NULL: all are being made. */
static struct peer *peers_place(struct peer *set)
{
	struct peer *best = NULL;

	for (u32 i = 0; i < PEER_WAYS; i++) {
		if (set[i].making)
			continue;
		if (!set[i].used)
			return &set[i];
		if (!best || set[i].used_ns < best->used_ns)
			best = &set[i];
	}
	return best;
}

/* ---- making a handle ---- */

static void peers_make_ah(struct loop_work *work)
{
	struct peers_work *w = container_of(work, struct peers_work, work);
	int index = device_gid_index(w->peers->dev, &w->path.local);
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = RDMACM_PORT,
		.sl = w->path.sl,
		.grh = { .sgid_index = (u8)index,
			 .hop_limit = w->path.hop_limit,
			 .traffic_class = w->path.traffic_class },
	};

	memcpy(attr.grh.dgid.raw, w->path.remote.raw, sizeof(attr.grh.dgid.raw));
	w->ah = index < 0 ? NULL : ibv_create_ah(w->peers->pd, &attr);
}

/* What waits for that peer is ready to go, or is dropped. */
static void peers_release_waiting(struct peers *p, const struct peer *peer)
{
	struct peers_waiting **at = &p->waiting, *w;

	while ((w = *at)) {
		if (w->peer != peer) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = NULL;
		if (peer->ah) {
			*p->ready_tail = w;
			p->ready_tail = &w->next;
		} else {
			p->num_waiting--;
			free(w);
		}
	}
}

static void peers_made_ah(struct loop_work *work)
{
	struct peers_work *w = container_of(work, struct peers_work, work);
	struct peers *p = w->peers;
	struct peer *peer = w->peer;

	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	peer->ah = w->ah;
	peer->used = w->ah != NULL;
	peer->making = false;
	peer->made_ns = clock_now_ns();
	peers_release_waiting(p, peer);
	free(w);
	if (!p->dev->gone)
		qp1_send(p->dev->qp1);
	p->making--;
	pthread_cond_broadcast(&p->made);
}

/* False: too many are being made, or there is no memory. */
static bool peers_make(struct peers *p, struct peer *peer)
{
	struct peers_work *w;

	if (p->making >= MAKING_MAX)
		return false;
	w = calloc(1, sizeof(*w));
	if (!w)
		return false;
	w->work = (struct loop_work){ .do_work = peers_make_ah, .done = peers_made_ah };
	w->peers = p;
	w->peer = peer;
	w->path = peer->path;
	if (loop_work(&w->work)) {
		free(w);
		return false;
	}
	peer->making = true;
	p->making++;
	return true;
}

static struct peer *peers_add(struct peers *p, struct peer *set, const struct cm_path *path)
{
	struct peer *peer = peers_place(set);

	if (!peer)
		return NULL;
	if (peer->ah) {
		ibv_destroy_ah(peer->ah);
		peer->ah = NULL;
	}
	peer->path = *path;
	peer->used = peers_make(p, peer);
	return peer->used ? peer : NULL;
}

static void peers_wait(struct peers *p, struct peer *peer, const struct cm_send *send)
{
	struct peers_waiting *w;

	if (p->num_waiting >= WAITING_MAX)
		return;
	w = malloc(sizeof(*w));
	if (!w)
		return;
	*w = (struct peers_waiting){ .next = p->waiting, .peer = peer, .send = *send };
	p->waiting = w;
	p->num_waiting++;
}

void peers_flush(struct peers *p)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)FLUSH_NS;
	if ((u64)until.tv_nsec >= NSEC_PER_SEC) {
		until.tv_nsec -= NSEC_PER_SEC;
		until.tv_sec++;
	}
	while (p->making && p->num_waiting && p->num_waiting <= FLUSH_MAX)
		if (pthread_cond_timedwait(&p->made, &rdmacm_lock, &until))
			return;
}

struct ibv_ah *peers_find(struct peers *p, const struct cm_send *send)
{
	struct peer *set = peers_set(p, &send->path), *peer = NULL;
	const u64 now_ns = clock_now_ns();

	for (u32 i = 0; !peer && i < PEER_WAYS; i++)
		if (peer_is(&set[i], &send->path))
			peer = &set[i];
	if (!peer)
		peer = peers_add(p, set, &send->path);
	if (!peer)
		return NULL;
	peer->used_ns = now_ns;
	if (!peer->ah)
		peers_wait(p, peer, send);
	else if (now_ns - peer->made_ns > REFRESH_NS && !peer->making)
		peers_make(p, peer);
	return peer->ah;
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
	*send = w->send;
	*ah = w->peer->used && peer_is(w->peer, &w->send.path) ? w->peer->ah : NULL;
	free(w);
	return true;
}
