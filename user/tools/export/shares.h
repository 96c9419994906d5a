/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Limits the number of series. Of the items with counters (processes, queue pairs) the busiest are
 * shown separately; the others of a device are summed in its rest. Pure.
 *
 * A rest never falls: it has what items counted while they were not shown. An item that becomes
 * shown, or ends, takes nothing out of it. Counts from before an item was first seen are in the
 * rest if the item is not shown.
 *
 * The score is recent activity, halved every SHARES_FADE_S. A shown item stays until another has
 * twice its score, so that series are stable.
 */
#ifndef EXPORT_SHARES_H
#define EXPORT_SHARES_H

#include <stdbool.h>

#include "../../engine/types.h"

#define SHARES_FADE_S 60.0

/* Order of items: grouped by device, then unique. */
struct share_key {
	u32 ifindex;
	u32 pid;
	u32 qpn;	  /* 0 for processes */
	char command[64]; /* zero-padded */
};

struct share {
	struct share_key key;
	u32 nth;	  /* the caller's index, of the first item with this key in the round */
	bool is_shown;
	double score;
	u64 activity;	  /* total that the score is computed from */
	u64 *values;	  /* shares.words counters */
};

struct share_rest {
	u32 ifindex;
	u32 others;	  /* items in it in this round */
	bool is_used;	  /* had an item in some round */
	u64 *values;
};

struct share_list {
	struct share *items;
	u64 *values;
	u32 num, room;
};

struct shares {
	u32 words; /* counters per item */
	u32 most;  /* number of shown items */
	struct share_list now, before;
	struct share_rest *rests;
	u32 num_rests;
};

void shares_begin(struct shares *s, u32 words, u32 most);
void shares_end(struct shares *s);

/* Begins a round and keeps the last one: shares_put() of each item, then shares_settle(). */
void shares_round(struct shares *s);
/*
 * Adds an item. values: s->words counters; activity: total since its start. Items with the same
 * key, for example ports of one process, are merged. Returns 0, or -ENOMEM and leaves it out.
 */
int shares_put(struct shares *s, const struct share_key *key, u32 nth, const u64 *values,
	       u64 activity);
/* Completes the round and sorts now.items by key. seconds: its length. Returns 0 or -ENOMEM. */
int shares_settle(struct shares *s, double seconds);
/* Returns the device's rest, or NULL. */
const struct share_rest *shares_rest(const struct shares *s, u32 ifindex);
/* Frees the rest of a removed device. */
void shares_forget(struct shares *s, u32 ifindex);

/* Adds max(now[i] - before[i], 0) to total[i], saturating. */
void counters_grow(u64 *total, const u64 *before, const u64 *now, size_t words);

#endif
