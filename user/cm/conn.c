/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections: their memory and ids, lookup by name, counts, deadlines and events. Only this file
 * changes these.
 */
#include <stdlib.h>

#include "internal.h"

/* States of the passive side that wait for the peer or the owner. */
static const bool is_half_open[CM_STATE_END] = {
	[CM_REQ_RCVD] = true,
	[CM_REP_SENT] = true,
	[CM_SIDR_RCVD] = true,
};
/* States in which the peer's QP is in use, or was recently. */
static const bool holds_qpn[CM_STATE_END] = {
	[CM_REP_RCVD] = true,	 [CM_REQ_RCVD] = true,	[CM_REP_SENT] = true,
	[CM_ESTABLISHED] = true, [CM_DREQ_SENT] = true, [CM_DREQ_RCVD] = true,
	[CM_TIMEWAIT] = true,
};

/* ---- deadlines ---- */

static void conn_stop_timer(struct cm *cm, const struct cm_conn *c)
{
	const u32 place = cm->timers.place[c - cm->conn];

	if (place)
		timer_heap_remove(&cm->timers, place - 1);
}

void conn_set_timer(struct cm *cm, struct cm_conn *c, u64 deadline_ns)
{
	conn_stop_timer(cm, c);
	timer_heap_add(&cm->timers,
		 (struct timer){ .at_ns = deadline_ns, .slot = (u32)(c - cm->conn) });
}

/* ---- ids ---- */

void ids_make(struct ids *ids, u32 first, u32 count, u64 (*random)(void *arg), void *arg)
{
	*ids = (struct ids){ .first = first, .count = count, .half_bits = 1 };
	while (ids->half_bits < 16 && count > 1u << 2 * ids->half_bits)
		ids->half_bits++;
	for (u32 i = 0; i < IDS_ROUNDS; i++)
		ids->key[i] = random(arg);
}

/* The upper bits depend on every bit of key and half. */
static u32 round_of(u64 key, u32 half)
{
	u64 h = (key ^ half) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 32 ^ key >> 16) * 0xd6e8feb86659fd93ull;
	return (u32)(h >> 32);
}

/* A permutation of the domain: each round is invertible, for any round_of(). */
static u32 encipher(const struct ids *ids, u32 n)
{
	const u32 mask = (1u << ids->half_bits) - 1;
	u32 left = n >> ids->half_bits, right = n & mask;

	for (u32 i = 0; i < IDS_ROUNDS; i++) {
		const u32 next = left ^ (round_of(ids->key[i], right) & mask);

		left = right;
		right = next;
	}
	return left << ids->half_bits | right;
}

/*
 * Encrypts again while the number is outside the range, which gives a permutation of the range. The
 * domain is at most four times the range, except for the smallest.
 */
u32 ids_next(struct ids *ids)
{
	u32 n = ids->drawn;

	do {
		n = encipher(ids, n);
	} while (n >= ids->count);
	ids->drawn = ids->drawn + 1 < ids->count ? ids->drawn + 1 : 0;
	return ids->first + n;
}

/* ---- names ---- */

int names_make(struct cm_names_table *t, u32 names, u64 seed)
{
	t->buckets = roundup_pow2(names);
	t->seed = seed;
	t->bucket = calloc(t->buckets, sizeof(*t->bucket));
	return t->bucket ? 0 : -ENOMEM;
}

void names_unmake(struct cm_names_table *t)
{
	free(t->bucket);
	t->bucket = NULL;
}

static u64 mix(u64 h, u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static struct cm_name **names_bucket(const struct cm_names_table *t, const struct cm_name *n)
{
	u64 half[2];
	u64 h = t->seed;

	memcpy(half, n->gid.raw, sizeof(half));
	h = mix(h, half[0]);
	h = mix(h, half[1]);
	h = mix(h, (u64)n->interface << 32 | n->number);
	h = mix(h, t->seed ^ n->space);
	return &t->bucket[(h >> 16) & (t->buckets - 1)];
}

static bool name_equal(const struct cm_name *a, const struct cm_name *b)
{
	return a->number == b->number && a->space == b->space && a->interface == b->interface &&
	       gid_equal(&a->gid, &b->gid);
}

static void names_add(struct cm_names_table *t, struct cm_name *n)
{
	struct cm_name **at = names_bucket(t, n);

	n->next = *at;
	*at = n;
}

/* Does nothing if n is not in the table. */
static void names_remove(struct cm_names_table *t, struct cm_name *n)
{
	struct cm_name **at;

	if (n->space == NAME_NONE)
		return;
	for (at = names_bucket(t, n); *at != n; at = &(*at)->next)
		;
	*at = n->next;
	n->space = NAME_NONE;
}

/* Returns the name equal to key, or NULL. */
static struct cm_name *names_find(const struct cm_names_table *t, const struct cm_name *key)
{
	struct cm_name *n = *names_bucket(t, key);

	while (n && !name_equal(n, key))
		n = n->next;
	return n;
}

/* ---- lookup ---- */

static struct cm_name peer_name(const struct cm_path *path, enum cm_name_space space, u32 number)
{
	return (struct cm_name){ .gid = path->remote,
				 .interface = path->interface,
				 .number = number,
				 .space = space };
}

struct cm_conn *conn_by_id(const struct cm *cm, u32 id)
{
	const struct cm_name key = { .number = id, .space = NAME_ID };
	struct cm_name *n = names_find(&cm->names, &key);

	return n ? container_of(n, struct cm_conn, id) : NULL;
}

struct cm_conn *conn_by_remote(const struct cm *cm, const struct cm_path *path,
			       enum cm_name_space space, u32 number)
{
	const struct cm_name key = peer_name(path, space, number);
	struct cm_name *n = names_find(&cm->names, &key);

	if (!n)
		return NULL;
	return space == NAME_QPN ? container_of(n, struct cm_conn, remote_qpn) :
				   container_of(n, struct cm_conn, remote);
}

void conn_set_remote(struct cm *cm, struct cm_conn *c, enum cm_name_space space, u32 number)
{
	c->remote_id = number;
	c->remote = peer_name(&c->path, space, number);
	names_add(&cm->names, &c->remote);
}

void conn_set_remote_qpn(struct cm *cm, struct cm_conn *c, u32 qpn)
{
	c->remote_qpn = peer_name(&c->path, NAME_QPN, qpn);
	names_add(&cm->names, &c->remote_qpn);
}

bool conn_has_path(const struct cm_conn *c, const struct cm_path *path)
{
	return c->path.interface == path->interface && gid_equal(&c->path.remote, &path->remote) &&
	       gid_equal(&c->path.local, &path->local);
}

/* ---- half-open connections, by peer ---- */

static struct cm_peer *peer_find(const struct cm *cm, const struct cm_path *path)
{
	const struct cm_name key = peer_name(path, NAME_PEER, 0);
	struct cm_name *n = names_find(&cm->names, &key);

	return n ? container_of(n, struct cm_peer, name) : NULL;
}

/* Never fails: there are as many peers as connections. */
static struct cm_peer *peer_get(struct cm *cm, const struct cm_path *path)
{
	struct cm_peer *p = peer_find(cm, path);

	if (p)
		return p;
	p = cm->free_peer;
	if (p)
		cm->free_peer = p->next_free;
	else
		p = &cm->peer[cm->num_peers++];
	*p = (struct cm_peer){ .name = peer_name(path, NAME_PEER, 0) };
	names_add(&cm->names, &p->name);
	cm->stats.peers++;
	return p;
}

static void peer_put(struct cm *cm, struct cm_peer *p)
{
	if (--p->half_open)
		return;
	names_remove(&cm->names, &p->name);
	cm->stats.peers--;
	p->next_free = cm->free_peer;
	cm->free_peer = p;
}

/*
 * Returns whether the connection counts against its address's limit: half open, or a request that
 * the owner has not taken, even if its peer has left.
 */
static bool conn_burdens(const struct cm_conn *c)
{
	return c->passive && (is_half_open[c->state] || c->listener);
}

static void conn_count_half_open(struct cm *cm, struct cm_conn *c, bool now)
{
	if (c->half_open == now)
		return;
	c->half_open = now;
	if (now) {
		c->peer = peer_get(cm, &c->path);
		c->peer->half_open++;
		cm->stats.half_open++;
	} else {
		peer_put(cm, c->peer);
		c->peer = NULL;
		cm->stats.half_open--;
	}
}

/* ---- ended connections yield to new ones, the oldest first ---- */

static bool conn_is_spare(const struct cm_conn *c)
{
	return c->closed && (c->state == CM_REFUSED || c->state == CM_TIMEWAIT);
}

static void spare_put(struct cm *cm, struct cm_conn *c)
{
	struct cm_spares *s = &cm->spares[c->passive];

	c->after = NULL;
	c->before = s->newest;
	if (c->before)
		c->before->after = c;
	else
		s->oldest = c;
	s->newest = c;
}

static void spare_remove(struct cm *cm, struct cm_conn *c)
{
	struct cm_spares *s = &cm->spares[c->passive];

	if (c->before)
		c->before->after = c->after;
	else
		s->oldest = c->after;
	if (c->after)
		c->after->before = c->before;
	else
		s->newest = c->before;
}

static bool conn_make_room(struct cm *cm, bool passive)
{
	struct cm_conn *c = cm->spares[passive].oldest;

	if (!c)
		return false;
	cm->stats.made_room++;
	conn_enter(cm, c, CM_IDLE);
	return true;
}

bool conn_peer_is_full(const struct cm *cm, const struct cm_path *path)
{
	const struct cm_peer *p = peer_find(cm, path);

	return p && p->half_open >= cm->options.half_open;
}

bool conn_admits(struct cm *cm)
{
	return cm->stats.incoming < cm->options.incoming || conn_make_room(cm, true);
}

/* ---- creation and end ---- */

/* Returns an unused id: at most half of the range is in use. */
static u32 id_draw(struct cm *cm)
{
	u32 id;

	do {
		id = ids_next(&cm->ids);
	} while (conn_by_id(cm, id));
	return id;
}

struct cm_conn *conn_new(struct cm *cm, const struct cm_path *path, bool passive)
{
	struct cm_conn *c;

	if (cm->stats.in_use == cm->options.capacity && !conn_make_room(cm, true) &&
	    !conn_make_room(cm, false))
		return NULL;
	c = cm->free;
	if (c)
		cm->free = c->after;
	else
		c = &cm->conn[cm->num_conns++];
	*c = (struct cm_conn){ .state = CM_IDLE, .passive = passive, .path = *path };
	c->id = (struct cm_name){ .number = id_draw(cm), .space = NAME_ID };
	names_add(&cm->names, &c->id);
	cm->stats.in_use++;
	cm->stats.incoming += passive;
	return c;
}

static void conn_free(struct cm *cm, struct cm_conn *c)
{
	conn_send_forget(cm, c);
	names_remove(&cm->names, &c->id);
	cm->stats.in_use--;
	cm->stats.closed--;
	cm->stats.incoming -= c->passive;
	c->after = cm->free;
	cm->free = c;
}

void conn_enter(struct cm *cm, struct cm_conn *c, enum cm_state state)
{
	const bool was_spare = conn_is_spare(c);

	c->state = state;
	conn_stop_timer(cm, c);
	conn_count_half_open(cm, c, conn_burdens(c));
	if (!holds_qpn[state])
		names_remove(&cm->names, &c->remote_qpn);
	if (state == CM_IDLE)
		names_remove(&cm->names, &c->remote);
	if (was_spare)
		spare_remove(cm, c);
	if (conn_is_spare(c))
		spare_put(cm, c);
	if (state == CM_IDLE && c->closed)
		conn_free(cm, c);
}

void conn_taken(struct cm *cm, struct cm_conn *c)
{
	if (c->listener)
		c->listener->waiting--;
	c->listener = NULL;
	conn_count_half_open(cm, c, conn_burdens(c));
}

/* The queue of events. While it is full, MADs that could cause an event are not handled. */

bool event_has_room(const struct cm *cm)
{
	return cm->events_put - cm->events_got < CM_EVENTS;
}

struct cm_event *event_put(struct cm *cm, enum cm_event_kind kind, struct cm_conn *c,
			   const struct cm_mad *m)
{
	struct cm_event *e = &cm->event[cm->events_put % CM_EVENTS];

	if (c->closed)
		return NULL;
	cm->events_put++;
	c->events++;
	memset(e, 0, sizeof(*e));
	e->kind = kind;
	e->conn = c;
	e->context = c->context;
	e->path = c->path;
	if (m)
		e->mad = *m;
	return e;
}

static void event_forget(struct cm *cm, struct cm_conn *c)
{
	for (u32 i = cm->events_got; c->events && i != cm->events_put; i++) {
		struct cm_event *e = &cm->event[i % CM_EVENTS];

		if (e->conn != c)
			continue;
		e->conn = NULL;
		c->events--;
	}
}

void cm_close(struct cm *cm, struct cm_conn *c, u64 now_ns)
{
	event_forget(cm, c);
	conn_taken(cm, c);
	c->closed = true;
	c->context = NULL;
	cm->stats.closed++;
	if (conn_is_spare(c))
		spare_put(cm, c);
	conn_part(cm, c, now_ns);
}

bool cm_next_event(struct cm *cm, struct cm_event *event)
{
	while (cm->events_got != cm->events_put) {
		const struct cm_event *e = &cm->event[cm->events_got++ % CM_EVENTS];

		if (!e->conn)
			continue;
		e->conn->events--;
		*event = *e;
		return true;
	}
	return false;
}
