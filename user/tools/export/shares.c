/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../counters.h"
#include "shares.h"

#define SHARES_ROOM	64u
#define SHARES_KEEPS	2.0 /* activity ratio at which another share takes a place */

void counters_grow(u64 *total, const u64 *before, const u64 *now, size_t words)
{
	for (size_t i = 0; i < words; i++)
		if (now[i] > before[i])
			total[i] = counter_plus(total[i], now[i] - before[i]);
}

/* ---- lists ---- */

void shares_begin(struct shares *s, u32 words, u32 most)
{
	*s = (struct shares){ .words = words, .most = most };
}

static void list_end(struct share_list *l)
{
	free(l->items);
	free(l->values);
	*l = (struct share_list){ 0 };
}

void shares_end(struct shares *s)
{
	list_end(&s->now);
	list_end(&s->before);
	for (u32 i = 0; i < s->num_rests; i++)
		free(s->rests[i].values);
	free(s->rests);
	s->rests = NULL;
	s->num_rests = 0;
}

void shares_round(struct shares *s)
{
	const struct share_list other = s->before;

	s->before = s->now;
	s->now = other;
	s->now.num = 0;
}

/* Values are one array; an item's index finds them until shares_settle(). */
static int list_make_room(struct share_list *l, u32 words)
{
	const u32 room = l->room ? 2 * l->room : SHARES_ROOM;
	struct share *items;
	u64 *values;

	if (l->num < l->room)
		return 0;
	items = reallocarray(l->items, room, sizeof(*items));
	if (!items)
		return -ENOMEM;
	l->items = items;
	values = reallocarray(l->values, room, (size_t)words * sizeof(*values));
	if (!values)
		return -ENOMEM;
	l->values = values;
	l->room = room;
	return 0;
}

int shares_put(struct shares *s, const struct share_key *key, u32 nth, const u64 *values,
	       u64 activity)
{
	struct share_list *l = &s->now;

	if (list_make_room(l, s->words))
		return -ENOMEM;
	l->items[l->num] = (struct share){ .key = *key, .nth = nth, .activity = activity };
	memcpy(l->values + (size_t)l->num * s->words, values, s->words * sizeof(*values));
	l->num++;
	return 0;
}

/* ---- orders ---- */

static int key_compare(const struct share_key *a, const struct share_key *b)
{
	if (a->ifindex != b->ifindex)
		return a->ifindex < b->ifindex ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->qpn != b->qpn)
		return a->qpn < b->qpn ? -1 : 1;
	return memcmp(a->command, b->command, sizeof(a->command));
}

static int share_by_key(const void *a, const void *b)
{
	const struct share *x = a, *y = b;
	const int order = key_compare(&x->key, &y->key);

	/* items of the same key in the order of shares_put() */
	return order ? order : x->nth < y->nth ? -1 : x->nth > y->nth;
}

/* Shown items weigh more, so one stays unless another is far busier. */
static double share_weight(const struct share *s)
{
	return s->is_shown ? SHARES_KEEPS * s->score : s->score;
}

static int share_by_weight(const void *a, const void *b)
{
	const struct share *const *x = a, *const *y = b;
	const double v = share_weight(*x), w = share_weight(*y);

	if (v != w)
		return v > w ? -1 : 1;
	if ((*x)->is_shown != (*y)->is_shown)
		return (*x)->is_shown ? -1 : 1;
	return key_compare(&(*x)->key, &(*y)->key);
}

/* ---- rests ---- */

const struct share_rest *shares_rest(const struct shares *s, u32 ifindex)
{
	for (u32 i = 0; i < s->num_rests; i++)
		if (s->rests[i].ifindex == ifindex && s->rests[i].is_used)
			return &s->rests[i];
	return NULL;
}

static struct share_rest *shares_make_rest(struct shares *s, u32 ifindex)
{
	struct share_rest *rests;
	u64 *values;

	for (u32 i = 0; i < s->num_rests; i++)
		if (s->rests[i].ifindex == ifindex)
			return &s->rests[i];
	values = calloc(s->words, sizeof(*values));
	rests = values ? reallocarray(s->rests, s->num_rests + 1, sizeof(*rests)) : NULL;
	if (!rests) {
		free(values);
		return NULL;
	}
	s->rests = rests;
	rests[s->num_rests] = (struct share_rest){ .ifindex = ifindex, .values = values };
	return &rests[s->num_rests++];
}

void shares_forget(struct shares *s, u32 ifindex)
{
	for (u32 i = 0; i < s->num_rests; i++)
		if (s->rests[i].ifindex == ifindex) {
			free(s->rests[i].values);
			s->rests[i] = s->rests[--s->num_rests];
			return;
		}
}

/* ---- completing a round ---- */

/* Merges items of the same key into the first, sums their values, and sets values. */
static void shares_merge(struct shares *s)
{
	struct share_list *l = &s->now;
	u32 n = 0;

	for (u32 i = 0; i < l->num; i++)
		l->items[i].values = l->values + (size_t)i * s->words;
	if (l->num)
		qsort(l->items, l->num, sizeof(*l->items), share_by_key);
	for (u32 i = 0; i < l->num; i++) {
		struct share *last = n ? &l->items[n - 1] : NULL;

		if (!last || key_compare(&last->key, &l->items[i].key)) {
			l->items[n++] = l->items[i];
			continue;
		}
		last->activity = counter_plus(last->activity, l->items[i].activity);
		for (u32 k = 0; k < s->words; k++)
			last->values[k] = counter_plus(last->values[k], l->items[i].values[k]);
	}
	l->num = n;
}

/* Computes the score: the growth since the last round plus the faded earlier score. */
static void share_score(struct share *now, const struct share *before, double seconds)
{
	const u64 had = before ? before->activity : 0;

	now->score = now->activity > had ? (double)(now->activity - had) : 0;
	if (before) {
		now->score += before->score * exp2(-seconds / SHARES_FADE_S);
		now->is_shown = before->is_shown;
	}
}

static int shares_choose(struct shares *s)
{
	struct share_list *l = &s->now;
	struct share **order;

	if (l->num <= s->most) {
		for (u32 i = 0; i < l->num; i++)
			l->items[i].is_shown = true;
		return 0;
	}
	order = calloc(l->num, sizeof(struct share *));
	if (!order)
		return -ENOMEM;
	for (u32 i = 0; i < l->num; i++)
		order[i] = &l->items[i];
	qsort(order, l->num, sizeof(struct share *), share_by_weight);
	for (u32 i = 0; i < l->num; i++)
		order[i]->is_shown = i < s->most;
	free(order);
	return 0;
}

/* Calls fn for each item of this round with its item of the last round, or NULL. */
static int shares_each(struct shares *s, int (*fn)(struct shares *s, struct share *now,
						   const struct share *before, double seconds),
		       double seconds)
{
	u32 b = 0;
	int err = 0;

	for (u32 i = 0; !err && i < s->now.num; i++) {
		struct share *now = &s->now.items[i];

		while (b < s->before.num && key_compare(&s->before.items[b].key, &now->key) < 0)
			b++;
		err = fn(s, now,
			 b < s->before.num && !key_compare(&s->before.items[b].key, &now->key) ?
				 &s->before.items[b] :
				 NULL,
			 seconds);
	}
	return err;
}

static int shares_score_one(struct shares *s, struct share *now, const struct share *before,
			    double seconds)
{
	share_score(now, before, seconds);
	return 0;
}

static int shares_rest_one(struct shares *s, struct share *now, const struct share *before,
			   double seconds)
{
	struct share_rest *rest = now->is_shown ? NULL : shares_make_rest(s, now->key.ifindex);

	if (now->is_shown)
		return 0;
	if (!rest)
		return -ENOMEM;
	rest->is_used = true;
	rest->others++;
	for (u32 k = 0; k < s->words; k++) {
		const u64 had = before ? before->values[k] : 0;

		if (now->values[k] > had)
			rest->values[k] = counter_plus(rest->values[k], now->values[k] - had);
	}
	return 0;
}

int shares_settle(struct shares *s, double seconds)
{
	int err;

	for (u32 i = 0; i < s->num_rests; i++)
		s->rests[i].others = 0;
	shares_merge(s);
	shares_each(s, shares_score_one, seconds);
	err = shares_choose(s);
	return err ? err : shares_each(s, shares_rest_one, seconds);
}
