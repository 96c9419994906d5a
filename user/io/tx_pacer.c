/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tx_pacer.h"

#define LOOK_NS	      (100 * NSEC_PER_MSEC)
/* while frames cannot be redirected, or are being lost */
#define LOOK_SOON_NS  (5 * NSEC_PER_MSEC)
#define STALE_NS      (2 * LOOK_NS)
#define PORTION_NS    (50 * NSEC_PER_USEC)
/* so few that AF_XDP, which is told of room, is better */
#define PORTION_MIN   16u
#define PORTION_MAX   XROCE_TX_FRAMES		/* more than can leave in that time: no limit */

int tx_pacer_open(struct tx_pacer *p, u32 ifindex, struct xroce_engine_stats *stats)
{
	*p = (struct tx_pacer){ .stats = stats, .size = PORTION_MAX };
	stats->tx_pacer = p->size;
	return tx_counters_open(&p->watch, ifindex);
}

void tx_pacer_close(struct tx_pacer *p)
{
	tx_counters_close(&p->watch);
}

/* What is lost while we send nothing is nothing to us. */
static void pacer_adjust(struct tx_pacer *p, u64 dropped)
{
	if (dropped <= p->dropped) {
		p->size = min_u32(p->size + p->size / 4 + 1, PORTION_MAX);
	} else if (p->at_risk && p->size > PORTION_MIN) {
		p->size = p->size / 2 > PORTION_MIN ? p->size / 2 : PORTION_MIN;
		p->stats->tx_slowed++;
	}
	p->dropped = dropped;
	p->at_risk = false;
	p->stats->tx_pacer = p->size;
}

static void pacer_take_reading(struct tx_pacer *p, const struct tx_reading *reading, u64 now_ns)
{
	if (reading->is_known) {
		p->frame_max = reading->frame_max;
		p->looks++;
		pacer_adjust(p, reading->dropped);
	}
	p->takes_redirected = reading->takes_redirected;
	p->look_ns =
		now_ns + (p->takes_redirected && p->size == PORTION_MAX ? LOOK_NS : LOOK_SOON_NS);
	p->taken_ns = now_ns;
}

void tx_pacer_look(struct tx_pacer *p, u64 now_ns)
{
	struct tx_reading reading;

	if (now_ns < p->look_ns)
		return;
	if (p->is_asked && tx_counters_answer(&p->watch, &reading)) {
		p->is_asked = false;
		/* An answer is at most as old as its question. */
		if (now_ns - p->asked_ns < STALE_NS) {
			pacer_take_reading(p, &reading, now_ns);
			return;
		}
	}
	if (now_ns - p->taken_ns >= STALE_NS)
		p->takes_redirected = false;
	if (!p->is_asked) {
		p->is_asked = true;
		p->asked_ns = now_ns;
		tx_counters_ask(&p->watch);
	}
}

bool tx_pacer_is_smallest(const struct tx_pacer *p)
{
	return p->size == PORTION_MIN;
}

u32 tx_pacer_room(struct tx_pacer *p, u64 now_ns)
{
	if (p->size == PORTION_MAX)
		return UINT32_MAX;
	if (now_ns >= p->next_ns) {
		p->left = p->size;
		p->next_ns = now_ns + PORTION_NS;
	}
	return p->left;
}

void tx_pacer_sent(struct tx_pacer *p, u32 frames)
{
	p->left -= min_u32(p->left, frames);
	p->at_risk = true;
}
