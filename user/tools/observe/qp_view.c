/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "qp_view.h"

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
	struct qp_view *v = views_add(arg);

	if (!v)
		return;
	v->steer = *(const struct xroce_qp *)value;
	v->has_steer = true;
	v->qpn = *(const u32 *)key & 0xffffff;
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

static bool view_is_wanted(const struct observe_options *l, const struct qp_view *v)
{
	const u8 *peer = v->has_stat ? v->stat.peer : v->steer.peer;

	return (!l->has_qpn || v->qpn == l->qpn) &&
	       (!l->has_peer || !memcmp(peer, l->peer.raw, sizeof(l->peer.raw))) &&
	       (!l->has_state || (v->has_stat && v->stat.state == l->state));
}

struct qp_view *qp_views(const struct observe_options *l, const struct observed *p, u32 *num,
			 u32 *stats)
{
	struct qp_views all = { 0 };
	u32 n = 0;

	*num = 0;
	observed_each(p, XROCE_MAP_QP_STAT, sizeof(struct xroce_qp_stat), views_take_stat, &all);
	if (stats)
		*stats = all.num;
	observed_each(p, XROCE_MAP_QP, sizeof(struct xroce_qp), views_take_steer, &all);
	if (!all.num)
		return NULL;
	views_join(&all);
	for (u32 i = 0; i < all.num; i++)
		if (view_is_wanted(l, &all.v[i]))
			all.v[n++] = all.v[i];
	*num = n;
	return all.v;
}
