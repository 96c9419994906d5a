/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tx_portion.h"

#define LOOK_NS	      (100 * NSEC_PER_MSEC)
#define LOOK_SOON_NS  (5 * NSEC_PER_MSEC)	/* while frames cannot be redirected, or are being lost */
#define PORTION_NS    (50 * NSEC_PER_USEC)
#define PORTION_MIN   16u			/* so few that AF_XDP, which is told of room, is better */
#define PORTION_MAX   XROCE_TX_FRAMES		/* more than can leave in that time: no limit */

int tx_portion_open(struct tx_portion *p, u32 ifindex, struct xroce_engine_stats *stats)
{
	*p = (struct tx_portion){ .stats = stats, .size = PORTION_MAX };
	stats->tx_portion = p->size;
	return tx_watch_open(&p->watch, ifindex);
}

void tx_portion_close(struct tx_portion *p)
{
	tx_watch_close(&p->watch);
}

/* What is lost while we send nothing is nothing to us. */
static void adjust(struct tx_portion *p, u64 dropped)
{
	if (dropped <= p->dropped) {
		p->size = min_u32(p->size + p->size / 4 + 1, PORTION_MAX);
	} else if (p->at_risk && p->size > PORTION_MIN) {
		p->size = p->size / 2 > PORTION_MIN ? p->size / 2 : PORTION_MIN;
		p->stats->tx_slowed++;
	}
	p->dropped = dropped;
	p->at_risk = false;
	p->stats->tx_portion = p->size;
}

void tx_portion_look(struct tx_portion *p, u64 now_ns)
{
	struct tx_sight sight;
	bool ok;

	if (now_ns < p->look_ns)
		return;
	ok = tx_watch_look(&p->watch, &sight);
	if (ok) {
		p->frame_max = sight.frame_max;
		adjust(p, sight.dropped);
	}
	p->takes_redirected = ok && sight.takes_redirected;
	p->look_ns = now_ns + (p->takes_redirected && p->size == PORTION_MAX ? LOOK_NS : LOOK_SOON_NS);
}

bool tx_portion_is_smallest(const struct tx_portion *p)
{
	return p->size == PORTION_MIN;
}

u32 tx_portion_room(struct tx_portion *p, u64 now_ns)
{
	if (p->size == PORTION_MAX)
		return UINT32_MAX;
	if (now_ns >= p->next_ns) {
		p->left = p->size;
		p->next_ns = now_ns + PORTION_NS;
	}
	return p->left;
}

void tx_portion_sent(struct tx_portion *p, u32 frames)
{
	p->left -= min_u32(p->left, frames);
	p->at_risk = true;
}
