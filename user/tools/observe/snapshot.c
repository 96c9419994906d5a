/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A reading of a port: counters, queue pairs joined from two maps by QPN, and objects. */
#include <stdlib.h>

#include "observe_maps.h"

#define SNAPSHOT_ELEMENTS 65536u /* of a list; a hostile process might have more maps of a name */

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

#define SUMS_WORDS(s) (sizeof(s) / sizeof(u64))

static void snapshot_read_counters(struct snapshot *s, const struct observed *p)
{
	struct sums *sums = &s->sums;

	observed_sum(p, XROCE_MAP_ENGINE_STAT, (u64 *)&sums->engine, SUMS_WORDS(sums->engine));
	observed_sum(p, XROCE_MAP_RX, (u64 *)&sums->rx, SUMS_WORDS(sums->rx));
	observed_sum(p, XROCE_MAP_SOCK, (u64 *)&sums->sock, SUMS_WORDS(sums->sock));
	observed_sum(p, XROCE_MAP_DROP, (u64 *)&sums->xdp, SUMS_WORDS(sums->xdp));
	observed_sum(p, XROCE_MAP_ENGINE_DROP, (u64 *)&sums->refused, SUMS_WORDS(sums->refused));
	observed_each(p, XROCE_MAP_VECTOR, sizeof(struct xroce_vector), counters_take_vector, s);
	observed_each(p, XROCE_MAP_SOCK, sizeof(struct xroce_sock), counters_take_socket, s);
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

	observed_each(p, XROCE_MAP_QP_STAT, sizeof(struct xroce_qp_stat), views_take_stat, &all);
	s->stats_used = all.num;
	for (const struct observed_map *m = NULL; (m = observed_map(p, XROCE_MAP_QP_STAT, m));)
		s->stats_num += m->max_entries;
	observed_each(p, XROCE_MAP_QP, sizeof(struct xroce_qp), views_take_steer, &all);
	views_join(&all);
	s->qps = all.v;
	s->num_qps = all.num;
	return all.is_full ? -ENOMEM : 0;
}

/* ---- objects with a map each ---- */

static const struct snapshot_list snapshot_lists[SNAPSHOT_KINDS] = {
	[SNAPSHOT_CQ] = { .map = XROCE_MAP_CQ_STAT, .size = sizeof(struct xroce_cq_stat) },
	[SNAPSHOT_SRQ] = { .map = XROCE_MAP_SRQ_STAT, .size = sizeof(struct xroce_srq_stat) },
	[SNAPSHOT_MR] = { .map = XROCE_MAP_MR_STAT, .size = sizeof(struct xroce_mr_stat) },
};

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

static int snapshot_read_list(struct snapshot_list *l, const struct observed *p)
{
	u32 room = 0;

	for (const struct observed_map *m = NULL; (m = observed_map(p, l->map, m));)
		room = counter_plus(room, m->max_entries);
	if (!room || room > SNAPSHOT_ELEMENTS)
		return 0;
	l->elements = calloc(room, l->size);
	if (!l->elements)
		return -ENOMEM;
	observed_each(p, l->map, l->size, list_take, l);
	return 0;
}

const void *snapshot_object(const struct snapshot *s, enum snapshot_kind kind, u32 nth)
{
	const struct snapshot_list *l = &s->lists[kind];
	const u8 *element = l->elements ? (u8 *)l->elements + (size_t)nth * l->size : NULL;

	return nth < l->num && element_pid(element) ? element : NULL;
}

/* ---- all of it ---- */

int snapshot_read(struct snapshot *s, const struct observed *p, u32 parts)
{
	int err = 0;

	*s = (struct snapshot){ 0 };
	if (parts & SNAPSHOT_COUNTERS)
		snapshot_read_counters(s, p);
	if (parts & SNAPSHOT_QPS)
		err = snapshot_read_qps(s, p);
	for (u32 i = 0; i < SNAPSHOT_KINDS; i++) {
		s->lists[i] = snapshot_lists[i];
		if (!err && parts & 1u << i)
			err = snapshot_read_list(&s->lists[i], p);
	}
	return err;
}

void snapshot_end(struct snapshot *s)
{
	for (u32 i = 0; i < SNAPSHOT_KINDS; i++)
		free(s->lists[i].elements);
	free(s->qps);
	*s = (struct snapshot){ 0 };
}
