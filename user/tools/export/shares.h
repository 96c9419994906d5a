/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bounded numbers of series: of the things that have counters (processes, queue pairs) the busiest
 * are shown, each by itself, and the others of a device as one, its rest. Pure.
 *
 * A rest never falls. It is what things counted while they were not shown: a thing that comes to be
 * shown takes nothing out of it, and one that ends neither. What a thing had counted before it was
 * first seen, and is not shown, is in the rest.
 *
 * Busy is what was counted lately: activity fades by half in SHARES_FADE_S. A thing that is shown
 * stays so until another has twice as much, so that series do not come and go.
 */
#ifndef EXPORT_SHARES_H
#define EXPORT_SHARES_H

#include <stdbool.h>

#include "../../engine/types.h"

#define SHARES_FADE_S 60.0

/* Both orders: by what a device's things are kept together, and what tells them apart. */
struct share_key {
	u32 ifindex;
	u32 pid;
	u32 qpn;	  /* 0: of processes */
	char command[64]; /* the rest is 0 */
};

struct share {
	struct share_key key;
	u32 nth;	  /* of the caller's, the first of that key in this round */
	bool is_shown;
	double score;
	u64 activity;	  /* what the score grows by */
	u64 *values;	  /* shares.words of them */
};

struct share_rest {
	u32 ifindex;
	u32 others;	  /* things that are in it now */
	bool is_used;	  /* something ever was */
	u64 *values;
};

struct share_list {
	struct share *items;
	u64 *values;
	u32 num, room;
};

struct shares {
	u32 words; /* counters of each */
	u32 most;  /* things that are shown */
	struct share_list now, before;
	struct share_rest *rests;
	u32 num_rests;
};

void shares_begin(struct shares *s, u32 words, u32 most);
void shares_end(struct shares *s);

/* A round: each thing that there is, then shares_settle(). Those of the round before are kept. */
void shares_round(struct shares *s);
/*
 * values are s->words counters, activity how busy all of its life was. Several of one key, as a
 * process may bring about, are one thing, with the sums. Returns 0 or -ENOMEM: it is left out.
 */
int shares_put(struct shares *s, const struct share_key *key, u32 nth, const u64 *values,
	       u64 activity);
/* The things are now.items, in the order of their keys. Returns 0 or -ENOMEM. */
int shares_settle(struct shares *s, double seconds);
/* NULL: that device has none. */
const struct share_rest *shares_rest(const struct shares *s, u32 ifindex);
/* The device has gone. */
void shares_forget(struct shares *s, u32 ifindex);

/* total[i] += what now[i] has more than before[i]; not beyond the largest number. */
void counters_grow(u64 *total, const u64 *before, const u64 *now, size_t words);
/* Both without an overflow. */
static inline u64 counter_plus(u64 a, u64 b)
{
	return a + b < a ? ~0ull : a + b;
}

#endif
