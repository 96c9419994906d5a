/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See plan.h. */
#include "plan.h"

#include <endian.h>
#include <string.h>

#define GAP 16	/* poison between two spans */

const char *const op_names[PLAN_OPS] = { "SEND", "SEND with immediate", "WRITE",
					 "WRITE with immediate", "READ" };

/* splitmix64 (public domain, Vigna): one step from a counter. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

struct dice {
	uint64_t state;
};

static uint32_t roll(struct dice *d, uint32_t bound)
{
	d->state = mix(d->state);
	return (uint32_t)(d->state >> 16) % bound;
}

/* Lengths where packets begin and end matter most, and any length. */
static uint32_t roll_len(struct dice *d, uint32_t max_len, uint32_t path_mtu)
{
	uint32_t len;

	switch (roll(d, 6)) {
	case 0:
		len = roll(d, 70);
		break;
	case 1:
		len = path_mtu * (1 + roll(d, 4));
		break;
	case 2:
		len = path_mtu * (1 + roll(d, 4)) + 1;
		break;
	case 3:
		len = path_mtu * (1 + roll(d, 4)) - 1 - roll(d, 3);
		break;
	case 4:
		len = roll(d, 3 * path_mtu);
		break;
	default:
		len = roll(d, max_len + 1);
		break;
	}
	return len > max_len ? max_len - len % 5 : len;
}

/* Spread len bytes over 1..PLAN_SGE_MAX spans with poison between them. */
static unsigned int roll_spans(struct dice *d, uint32_t start, uint32_t len, struct span *s)
{
	unsigned int n = 1 + roll(d, PLAN_SGE_MAX), i;
	uint32_t offset = start, left = len;

	for (i = 0; i < n; i++) {
		s[i].len = i == n - 1 ? left : roll(d, left + 1);
		s[i].offset = offset;
		offset += s[i].len + GAP;
		left -= s[i].len;
	}
	return n;
}

static enum plan_op roll_op(struct dice *d, enum plan_transport transport)
{
	switch (transport) {
	case PLAN_UD:
		return roll(d, 2) ? PLAN_SEND : PLAN_SEND_IMM;
	case PLAN_UC:
		return roll(d, PLAN_READ);
	default:
		return roll(d, PLAN_OPS);
	}
}

unsigned int plan_round(const struct plan *plan, uint32_t round, unsigned int side,
			struct message m[PLAN_MESSAGES])
{
	struct dice d = { mix(plan->seed) ^ mix((uint64_t)round << 1 | side) };
	unsigned int want = 1 + roll(&d, PLAN_MESSAGES), n;
	uint32_t packets = 0;

	for (n = 0; n < want; n++) {
		struct message *x = &m[n];
		uint32_t spare;

		memset(x, 0, sizeof(*x));
		x->op = roll_op(&d, plan->transport);
		x->len = roll_len(&d, plan->max_len, plan->path_mtu);
		packets += x->len / plan->path_mtu + 1;
		if (n && plan->max_packets && packets > plan->max_packets)
			break;
		x->imm = (uint32_t)mix(d.state);
		x->is_inline = x->op != PLAN_READ && x->len <= PLAN_INLINE && roll(&d, 2);
		x->is_signaled = roll(&d, 2);
		x->is_solicited = roll(&d, 2);
		x->num_local = roll_spans(&d, roll(&d, 64), x->len, x->local);
		spare = roll(&d, 2) ? roll(&d, 100) : 0;
		x->num_recv = roll_spans(
			&d, roll(&d, 64),
			x->len + spare + (plan->transport == PLAN_UD ? PLAN_GRH : 0), x->recv);
		x->remote_offset = roll(&d, 64);
		x->key = mix(d.state ^ side);
	}
	/* The last completion says that all are done. */
	m[n - 1].is_signaled = true;
	return n;
}

bool plan_is_late(const struct plan *plan, uint32_t round)
{
	return plan->transport == PLAN_RC && mix(plan->seed ^ mix(round)) % 4 == 0;
}

/* What a message of this key has from one offset on, len bytes of it: 8 of one draw. */
static void content(uint64_t key, uint32_t from, uint8_t *bytes, uint32_t len)
{
	while (len) {
		uint32_t at = from % 8, n = len < 8 - at ? len : 8 - at;
		uint64_t eight = htole64(mix(key + from / 8));

		memcpy(bytes, (const uint8_t *)&eight + at, n);
		bytes += n;
		from += n;
		len -= n;
	}
}

void slot_fill(uint8_t *slot, const struct span *spans, unsigned int n, uint32_t skip,
	       const struct message *m)
{
	uint32_t done = 0;

	for (; n; n--, spans++) {
		uint32_t past = skip < spans->len ? skip : spans->len, len = spans->len - past;

		skip -= past;
		if (len > m->len - done)
			len = m->len - done;
		content(m->key, done, slot + spans->offset + past, len);
		done += len;
	}
}

void slot_wipe(uint8_t *slot, const struct span *spans, unsigned int n)
{
	for (; n; n--, spans++)
		memset(slot + spans->offset, POISON, spans->len);
}

/*
 * Reads each byte once: arriving data may change between two reads, and memcmp(3) reads the first
 * byte that differs twice.
 */
static bool slots_are_equal(const uint8_t *a, const uint8_t *b)
{
	uint64_t differ = 0, x, y;
	uint32_t i;

	for (i = 0; i < SLOT_BYTES; i += sizeof(x)) {
		memcpy(&x, a + i, sizeof(x));
		memcpy(&y, b + i, sizeof(y));
		differ |= x ^ y;
	}
	return !differ;
}

bool slot_is_right(const uint8_t *slot, const struct span *spans, unsigned int n, uint32_t skip,
		   const struct message *m, uint32_t *where)
{
	/* Poison between two calls: making it so each time would cost more than all the rest. */
	static uint8_t want[SLOT_BYTES] = { [0 ... SLOT_BYTES - 1] = POISON };
	uint32_t left = skip, i;
	unsigned int s;
	bool is_right;

	for (s = 0; s < n && left; s++)
		for (i = 0; i < spans[s].len && left; i++, left--)
			want[spans[s].offset + i] = slot[spans[s].offset + i];
	slot_fill(want, spans, n, skip, m);
	is_right = slots_are_equal(slot, want);
	if (!is_right) {
		/* arriving data may have become right since */
		for (i = 0; i < SLOT_BYTES - 1 && slot[i] == want[i]; i++)
			;
		*where = i;
	}
	slot_wipe(want, spans, n);
	return is_right;
}
