/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "orphans.h"

#include <stdlib.h>

#include "../os/clock.h"

#define ORPHANS_AT_ONCE 64u /* told in a turn: clients ask meanwhile */
#define ORPHANS_FIRST	16u
/* All that there may be, of however many clients. */
#define ORPHANS_MAX (XROCE_MAX_CONN + XROCE_MAX_ASKED)

/* From one time that all are told to the next. A broker that is not used lives for a second. */
static const u64 round_ns[] = { 100 * NSEC_PER_MSEC, 200 * NSEC_PER_MSEC, 400 * NSEC_PER_MSEC };

/* Of one client. */
struct orphans {
	struct orphans *next;
	u32 place, room, num;
	u32 told; /* in this round */
	u32 round;
	u64 due_ns;
	struct mux_orphan *of;
};

static u32 orphans_count(const struct broker *b)
{
	u32 n = 0;

	for (const struct orphans *o = b->orphans; o; o = o->next)
		n += o->num;
	return n;
}

static void orphans_remove(struct broker *b, struct orphans *gone)
{
	struct orphans **at = &b->orphans;

	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	free(gone->of);
	free(gone);
}

static void orphans_add(void *arg, const struct mux_orphan *orphan)
{
	struct orphans *o = arg;
	struct mux_orphan *more;

	if (o->num == o->room) {
		const u32 room = o->room ? 2 * o->room : ORPHANS_FIRST;

		more = room > ORPHANS_MAX ? NULL : reallocarray(o->of, room, sizeof(*o->of));
		if (!more)
			return; /* this peer learns of it when it sends */
		o->of = more;
		o->room = room;
	}
	o->of[o->num++] = *orphan;
}

void orphans_take(struct broker *b, u32 place, u64 serial)
{
	struct orphans *o = calloc(1, sizeof(*o));

	if (!o)
		return;
	o->place = place;
	o->due_ns = clock_now_ns();
	o->next = b->orphans;
	b->orphans = o;
	mux_take_orphans(&b->mux, serial, orphans_add, o);
	if (!o->num || orphans_count(b) > ORPHANS_MAX)
		orphans_remove(b, o);
}

u64 orphans_next_ns(const struct broker *b)
{
	u64 next_ns = NSEC_NEVER;

	for (const struct orphans *o = b->orphans; o; o = o->next)
		next_ns = min_u64(next_ns, o->due_ns);
	return next_ns;
}

static struct orphans *orphans_due(const struct broker *b, u64 now_ns)
{
	struct orphans *o = b->orphans;

	while (o && o->due_ns > now_ns)
		o = o->next;
	return o;
}

void orphans_tell(struct broker *b, u64 now_ns)
{
	struct orphans *o = orphans_due(b, now_ns);
	u32 end;

	if (!o)
		return;
	/* another client has the place: its ids may be those of the one before */
	if (mux_has_place(&b->mux, o->place)) {
		orphans_remove(b, o);
		return;
	}
	end = o->told + min_u32(o->num - o->told, ORPHANS_AT_ONCE);
	for (; o->told < end; o->told++)
		speaker_tell(&b->speaker, o->place, &o->of[o->told]);
	if (o->told < o->num)
		return;
	if (o->round == ARRAY_SIZE(round_ns)) {
		orphans_remove(b, o);
		return;
	}
	o->told = 0;
	o->due_ns = now_ns + round_ns[o->round++];
}

void orphans_free(struct broker *b)
{
	while (b->orphans)
		orphans_remove(b, b->orphans);
}
