/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "dead_peers.h"

#include <stdlib.h>

#include "../os/clock.h"

#define DEAD_PEERS_AT_ONCE 64u /* MADs a turn, so that clients are served in between */
#define DEAD_PEERS_FIRST   16u
/* Peers of all ended clients together. */
#define DEAD_PEERS_MAX (XROCE_MAX_CONN + XROCE_MAX_ASKED)

/*
 * Bounds for peers that the client did not confirm, whose addresses may be forged: the most that
 * are notified, and that are notified again; and the time between 64 MADs and the next.
 */
#define DEAD_PEERS_UNCONFIRMED 4096u
#define DEAD_PEERS_AGAIN       256u
#define DEAD_PEERS_PAUSE_NS    (10 * NSEC_PER_MSEC)

/* Times between rounds; their sum is below UNUSED_NS of broker.c. */
static const u64 round_ns[] = { 100 * NSEC_PER_MSEC, 200 * NSEC_PER_MSEC, 400 * NSEC_PER_MSEC };

/* The peers of one client. */
struct dead_peers {
	struct dead_peers *next;
	u32 place, room, num;
	bool is_unconfirmed;
	u32 told; /* notified in this round */
	u32 round;
	u64 due_ns;
	struct mux_dead_peer *of;
};

static u32 dead_peers_count(const struct broker *b)
{
	u32 n = 0;

	for (const struct dead_peers *o = b->dead_peers; o; o = o->next)
		n += o->num;
	return n;
}

static void dead_peers_remove(struct broker *b, struct dead_peers *gone)
{
	struct dead_peers **at = &b->dead_peers;

	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	free(gone->of);
	free(gone);
}

static u32 dead_peers_most(const struct dead_peers *o)
{
	return o->is_unconfirmed ? DEAD_PEERS_UNCONFIRMED : DEAD_PEERS_MAX;
}

static void dead_peers_add(void *arg, const struct mux_dead_peer *peer)
{
	struct dead_peers *o = arg;
	struct mux_dead_peer *more;

	if (o->num == o->room) {
		const u32 room = o->room ? 2 * o->room : DEAD_PEERS_FIRST;

		more = room > dead_peers_most(o) ? NULL :
						   reallocarray(o->of, room, sizeof(*o->of));
		if (!more)
			return; /* this peer gets no MAD, and notices when it sends */
		o->of = more;
		o->room = room;
	}
	o->of[o->num++] = *peer;
}

void dead_peers_take(struct broker *b, u32 place, u64 serial, bool is_unconfirmed)
{
	struct dead_peers *o = calloc(1, sizeof(*o));

	if (!o)
		return;
	o->place = place;
	o->is_unconfirmed = is_unconfirmed;
	o->due_ns = clock_now_ns();
	o->next = b->dead_peers;
	b->dead_peers = o;
	mux_take_dead_peers(&b->mux, serial, dead_peers_add, o);
	if (!o->num || dead_peers_count(b) > DEAD_PEERS_MAX)
		dead_peers_remove(b, o);
}

u64 dead_peers_next_ns(const struct broker *b)
{
	u64 next_ns = NSEC_NEVER;

	for (const struct dead_peers *o = b->dead_peers; o; o = o->next)
		next_ns = min_u64(next_ns, o->due_ns);
	return next_ns;
}

static struct dead_peers *dead_peers_due(const struct broker *b, u64 now_ns)
{
	struct dead_peers *o = b->dead_peers;

	while (o && o->due_ns > now_ns)
		o = o->next;
	return o;
}

void dead_peers_tell(struct broker *b, u64 now_ns)
{
	struct dead_peers *o = dead_peers_due(b, now_ns);
	u32 num, end;

	if (!o)
		return;
	num = o->is_unconfirmed && o->round ? min_u32(o->num, DEAD_PEERS_AGAIN) : o->num;
	/* another client has the place, and may use the same ids */
	if (mux_has_place(&b->mux, o->place)) {
		dead_peers_remove(b, o);
		return;
	}
	end = o->told + min_u32(num - o->told, DEAD_PEERS_AT_ONCE);
	for (; o->told < end; o->told++)
		mad_sender_tell(&b->mad_sender, o->place, &o->of[o->told]);
	if (o->told < num) {
		o->due_ns = o->is_unconfirmed ? now_ns + DEAD_PEERS_PAUSE_NS : o->due_ns;
		return;
	}
	if (o->round == ARRAY_SIZE(round_ns)) {
		dead_peers_remove(b, o);
		return;
	}
	o->told = 0;
	o->due_ns = now_ns + round_ns[o->round++];
}

void dead_peers_free(struct broker *b)
{
	while (b->dead_peers)
		dead_peers_remove(b, b->dead_peers);
}
