/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A reading of a port: counters, queue pairs joined from two maps by QPN, and objects. */
#include <stdlib.h>

#include "observe_maps.h"

#define SNAPSHOT_ELEMENTS 65536u /* of a list; a hostile process might have more maps of a name */

/* ---- the maps ---- */

enum snapshot_map {
	MAP_LISTS = SNAPSHOT_SUMS, /* first the maps of struct sums, then of snapshot.lists */
	MAP_QP_STAT = MAP_LISTS + SNAPSHOT_KINDS,
	MAP_QP,
	MAP_VECTOR,
	MAP_ENGINE,
	SNAPSHOT_MAPS
};

static const struct {
	const char *name;
	u32 parts;	  /* of the reading that it is for */
	u32 offset, size; /* in struct sums; or size of an element */
} snapshot_maps[SNAPSHOT_MAPS] = {
#define SUM(map, field) \
	{ map, SNAPSHOT_COUNTERS, offsetof(struct sums, field), sizeof(((struct sums *)0)->field) }
#define MAP(map, part, type) { map, part, 0, sizeof(struct type) }
	[SUM_ENGINE] = SUM(XROCE_MAP_ENGINE_STAT, engine),
	[SUM_RX] = SUM(XROCE_MAP_RX, rx),
	[SUM_SOCK] = SUM(XROCE_MAP_SOCK, sock),
	[SUM_XDP] = SUM(XROCE_MAP_DROP, xdp),
	[SUM_REFUSED] = SUM(XROCE_MAP_ENGINE_DROP, refused),
	[MAP_LISTS + SNAPSHOT_CQ] = MAP(XROCE_MAP_CQ_STAT, SNAPSHOT_CQS, xroce_cq_stat),
	[MAP_LISTS + SNAPSHOT_SRQ] = MAP(XROCE_MAP_SRQ_STAT, SNAPSHOT_SRQS, xroce_srq_stat),
	[MAP_LISTS + SNAPSHOT_MR] = MAP(XROCE_MAP_MR_STAT, SNAPSHOT_MRS, xroce_mr_stat),
	[MAP_QP_STAT] = MAP(XROCE_MAP_QP_STAT, SNAPSHOT_QPS, xroce_qp_stat),
	[MAP_QP] = MAP(XROCE_MAP_QP, SNAPSHOT_QPS, xroce_qp),
	[MAP_VECTOR] = MAP(XROCE_MAP_VECTOR, SNAPSHOT_WAKEUPS, xroce_vector),
	[MAP_ENGINE] = MAP(XROCE_MAP_ENGINE, SNAPSHOT_ENGINE, xroce_engine),
#undef SUM
#undef MAP
};

/* Returns 0, also if the maps cannot be read, or -ENOMEM. */
static int snapshot_each(const struct observed *p, u32 map, observed_fn *fn, void *arg)
{
	const int n = observed_each(p, snapshot_maps[map].name, snapshot_maps[map].size, fn, arg);

	return n == -ENOMEM ? n : 0;
}

/* Returns the number of elements that the port's maps of that name have. */
static u32 snapshot_room(const struct observed *p, enum snapshot_map map)
{
	const struct observed_map *m = NULL;
	u32 room = 0;

	while ((m = observed_map(p, snapshot_maps[map].name, m)))
		room += m->max_entries;
	return room;
}

static bool snapshot_needs(const char *name, u32 parts)
{
	for (u32 i = 0; i < SNAPSHOT_MAPS; i++)
		if (!strncmp(name, snapshot_maps[i].name, OBSERVED_NAME_MAX))
			return snapshot_maps[i].parts & parts;
	return false;
}

void snapshot_keep(struct observed *p, u32 parts)
{
	u32 n = 0;

	for (u32 i = 0; i < p->num_maps; i++) {
		if (snapshot_needs(p->maps[i].name, parts))
			p->maps[n++] = p->maps[i];
		else
			observed_close_map(&p->maps[i]);
	}
	p->num_maps = n;
}

u32 snapshot_sum_id(const struct observed *p, enum snapshot_sum sum)
{
	const struct observed_map *m = observed_map(p, snapshot_maps[sum].name, NULL);

	return m ? m->id : 0;
}

static u64 *sums_part(struct sums *s, enum snapshot_sum sum)
{
	return (u64 *)((u8 *)s + snapshot_maps[sum].offset);
}

void snapshot_sum_clear(struct sums *s, enum snapshot_sum sum)
{
	memset(sums_part(s, sum), 0, snapshot_maps[sum].size);
}

/* ---- counters ---- */

static void counters_take_vector(void *arg, const struct observed *p, const void *key,
				 const void *value)
{
	const struct xroce_vector *v = value;
	struct snapshot *s = arg;

	s->wakeups = counter_plus(s->wakeups, v->wakeups);
	s->unannounced = counter_plus(s->unannounced, v->unannounced);
}

static void counters_take_socket(void *arg, const struct observed *p, const void *key,
				 const void *value)
{
	const struct xroce_sock *sock = value;

	((struct snapshot *)arg)->queues += sock->rx_frames || sock->rx_ring_full;
}

static void snapshot_read_counters(struct snapshot *s, const struct observed *p)
{
	for (u32 i = 0; i < SNAPSHOT_SUMS; i++)
		if (!observed_sum(p, snapshot_maps[i].name, sums_part(&s->sums, i),
				  snapshot_maps[i].size / sizeof(u64)))
			s->has |= 1u << i;
}

/* ---- queue pairs ---- */

struct qp_views {
	struct qp_view *v;
	u32 num, room;
	bool is_full; /* out of memory: some QPs are missing */
};

static struct qp_view *views_add(struct qp_views *all)
{
	struct qp_view *v;

	if (all->num == all->room) {
		const u32 room = all->room ? 2 * all->room : 64;

		v = reallocarray(all->v, room, sizeof(*v));
		if (!v) {
			all->is_full = true;
			return NULL;
		}
		all->v = v;
		all->room = room;
	}
	v = &all->v[all->num++];
	memset(v, 0, sizeof(*v));
	return v;
}

static void views_take_stat(void *arg, const struct observed *p, const void *key, const void *value)
{
	const struct xroce_qp_stat *stat = value;
	struct qp_view *v = stat->pid && stat->qpn <= 0xffffff ? views_add(arg) : NULL;

	if (!v)
		return;
	v->stat = *stat;
	v->has_stat = true;
	v->qpn = stat->qpn;
}

static void views_take_steer(void *arg, const struct observed *p, const void *key,
			     const void *value)
{
	const struct xroce_qp *steer = value;
	struct qp_view *v = steer->qpn && steer->qpn <= 0xffffff ? views_add(arg) : NULL;

	if (!v)
		return;
	v->steer = *steer;
	v->has_steer = true;
	v->qpn = steer->qpn;
}

static int view_compare(const void *a, const void *b)
{
	const struct qp_view *x = a, *y = b;

	if (x->qpn != y->qpn)
		return x->qpn < y->qpn ? -1 : 1;
	return (int)y->has_stat - (int)x->has_stat;
}

/* Merges the entries of both maps for the same QPN. */
static void views_join(struct qp_views *all)
{
	u32 n = 0;

	if (all->num)
		qsort(all->v, all->num, sizeof(*all->v), view_compare);
	for (u32 i = 0; i < all->num; i++) {
		struct qp_view *last = n ? &all->v[n - 1] : NULL;

		if (last && last->qpn == all->v[i].qpn) {
			if (all->v[i].has_steer) {
				last->steer = all->v[i].steer;
				last->has_steer = true;
			}
		} else {
			all->v[n++] = all->v[i];
		}
	}
	all->num = n;
}

static int snapshot_read_qps(struct snapshot *s, const struct observed *p)
{
	struct qp_views all = { 0 };
	int err = snapshot_each(p, MAP_QP_STAT, views_take_stat, &all);

	s->stats_used = all.num;
	s->stats_num = snapshot_room(p, MAP_QP_STAT);
	if (!err)
		err = snapshot_each(p, MAP_QP, views_take_steer, &all);
	views_join(&all);
	s->qps = all.v;
	s->num_qps = all.num;
	return all.is_full ? -ENOMEM : err;
}

/* ---- objects with a map each ---- */

static u32 element_pid(const void *element)
{
	u32 pid;

	memcpy(&pid, element, sizeof(pid));
	return pid;
}

static void list_take(void *arg, const struct observed *p, const void *key, const void *value)
{
	struct snapshot_list *l = arg;

	memcpy((u8 *)l->elements + (size_t)l->num++ * l->size, value, l->size);
	l->used += element_pid(value) != 0;
}

static int snapshot_read_list(struct snapshot *s, const struct observed *p, enum snapshot_kind kind)
{
	const enum snapshot_map map = MAP_LISTS + kind;
	const u32 room = snapshot_room(p, map);
	struct snapshot_list *l = &s->lists[kind];

	if (!room || room > SNAPSHOT_ELEMENTS)
		return 0;
	l->size = snapshot_maps[map].size;
	l->elements = calloc(room, l->size);
	if (!l->elements)
		return -ENOMEM;
	return snapshot_each(p, map, list_take, l);
}

const void *snapshot_object(const struct snapshot *s, enum snapshot_kind kind, u32 nth)
{
	const struct snapshot_list *l = &s->lists[kind];
	const u8 *element = l->elements ? (u8 *)l->elements + (size_t)nth * l->size : NULL;

	return nth < l->num && element_pid(element) ? element : NULL;
}

/* ---- the engine ---- */

static int snapshot_read_engine(struct snapshot *s, const struct observed *p)
{
	struct xroce_engine *engine = malloc(sizeof(*engine));

	if (!engine)
		return -ENOMEM;
	if (observed_get(p, snapshot_maps[MAP_ENGINE].name, 0, engine, sizeof(*engine)))
		free(engine);
	else
		s->engine = engine;
	return 0;
}

/* ---- all of it ---- */

int snapshot_read(struct snapshot *s, const struct observed *p, u32 parts)
{
	int err = 0;

	*s = (struct snapshot){ 0 };
	if (parts & SNAPSHOT_COUNTERS)
		snapshot_read_counters(s, p);
	if (parts & SNAPSHOT_WAKEUPS)
		err = snapshot_each(p, MAP_VECTOR, counters_take_vector, s);
	if (!err && parts & SNAPSHOT_WAKEUPS)
		err = snapshot_each(p, SUM_SOCK, counters_take_socket, s);
	if (!err && parts & SNAPSHOT_QPS)
		err = snapshot_read_qps(s, p);
	for (u32 i = 0; i < SNAPSHOT_KINDS; i++)
		if (!err && parts & 1u << i)
			err = snapshot_read_list(s, p, i);
	if (!err && parts & SNAPSHOT_ENGINE)
		err = snapshot_read_engine(s, p);
	return err;
}

static int snapshot_read_closed(struct snapshot *s, struct observed *p, u32 parts)
{
	int err = observed_open(p);

	*s = (struct snapshot){ 0 };
	if (!err)
		err = snapshot_read(s, p, parts);
	observed_close(p);
	return err;
}

int snapshot_read_program(struct snapshot *s, u32 prog_id, u32 parts)
{
	struct observed_iface nowhere = { .name = "" };
	struct observed p = { .iface = &nowhere, .prog_id = prog_id };

	return snapshot_read_closed(s, &p, parts);
}

int snapshot_read_client(struct snapshot *s, struct asker *asker, const struct ask_client *c,
			 u32 parts)
{
	struct observed_iface iface = { .asks = c->prog_id & ASK_NO_PROGRAM, .asker = asker };
	struct observed p = {
		.iface = &iface, .client = c->client, .prog_id = c->prog_id, .pid = c->pid
	};

	return snapshot_read_closed(s, &p, parts);
}

void snapshot_end(struct snapshot *s)
{
	free(s->engine);
	for (u32 i = 0; i < SNAPSHOT_KINDS; i++)
		free(s->lists[i].elements);
	free(s->qps);
	*s = (struct snapshot){ 0 };
}
