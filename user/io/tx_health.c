/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tx_health.h"

/* A way that was given up before has had its chance: then one refusal, or one look, is enough. */
static bool was_given_up(const struct tx_health *h)
{
	return h->away_ns != 0;
}

static enum tx_verdict give_up(struct tx_health *h, enum tx_verdict why, u64 now_ns)
{
	h->away_ns = was_given_up(h) ? min_u64(2 * h->away_ns, TX_HEALTH_AWAY_MAX_NS)
				     : TX_HEALTH_AWAY_NS;
	h->until_ns = now_ns + h->away_ns;
	h->refusals = h->bad_looks = 0;
	h->bad_sends = h->sends = 0;
	return why;
}

void tx_health_sent(struct tx_health *h, u32 n)
{
	h->sends += n;
	if (n)
		h->refusals = 0;
}

enum tx_verdict tx_health_refused(struct tx_health *h, u64 now_ns)
{
	if (!h->refusals++)
		h->refused_ns = now_ns;
	if (was_given_up(h) ||
	    (h->refusals >= TX_HEALTH_REFUSALS && now_ns - h->refused_ns >= TX_HEALTH_REFUSED_NS))
		return give_up(h, TX_REFUSES, now_ns);
	return TX_HEALTHY;
}

enum tx_verdict tx_health_look(struct tx_health *h, u64 dropped, u64 now_ns)
{
	const u64 drops = dropped - h->dropped, sends = h->sends;
	const bool is_first = !h->has_looked;

	h->dropped = dropped;
	h->has_looked = true;
	h->sends = 0;
	if (is_first || !sends)
		return TX_HEALTHY;
	if (2 * drops < sends) {
		h->bad_looks = 0;
		h->bad_sends = 0;
		return TX_HEALTHY;
	}
	h->bad_looks++;
	h->bad_sends += sends;
	if (was_given_up(h) || (h->bad_looks >= TX_HEALTH_LOOKS && h->bad_sends >= TX_HEALTH_SENDS))
		return give_up(h, TX_DROPS, now_ns);
	return TX_HEALTHY;
}

bool tx_health_is_away(struct tx_health *h, u64 now_ns)
{
	if (h->until_ns && now_ns >= h->until_ns) {
		h->until_ns = 0;
		/* what was dropped meanwhile was not a super-packet of ours */
		h->has_looked = false;
	}
	return h->until_ns != 0;
}
