/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "stock.h"
#include "tap.h"

/* The end of a process that is killed closes its descriptors, and so ends the device, by then. */
#define REAP_NS	 (20 * NSEC_PER_MSEC)
#define RETRY_NS NSEC_PER_SEC
/* Whoever has taken one has more to ask at once: the number of its first QP. */
#define TAKEN_NS (20 * NSEC_PER_MSEC)

void stock_init(struct stock *s, const struct instance_plan *plan)
{
	memset(s, 0, sizeof(*s));
	s->plan = *plan;
}

void stock_empty(struct stock *s)
{
	u32 tap[INSTANCE_TAPS * STOCK_SPARES], num_taps = 0;
	const u32 n = s->spares;

	for (u32 i = 0; i < n; i++) {
		tap[num_taps++] = s->spare[i].tap;
		tap[num_taps++] = s->spare[i].single;
	}
	if (n)
		tap_delete(tap, num_taps);
	if (s->num_doomed)
		tap_delete(s->doomed, s->num_doomed);
	for (u32 i = 0; i < n; i++)
		instance_close(&s->spare[i]);
	s->spares = s->num_doomed = 0;
}

int stock_take(struct stock *s, u64 now_ns, struct instance *out, const char **step)
{
	s->fill_ns = max_u64(s->fill_ns, now_ns + TAKEN_NS);
	if (!s->spares)
		return instance_make(out, &s->plan, step);
	*out = s->spare[--s->spares];
	return 0;
}

void stock_return(struct stock *s, struct instance *i)
{
	if (s->spares < STOCK_SPARES)
		s->spare[s->spares++] = *i;
	else
		instance_close(i);
}

bool stock_is_short(const struct stock *s, u64 now_ns)
{
	return s->spares < STOCK_SPARES && now_ns >= s->fill_ns;
}

void stock_fill(struct stock *s, u64 now_ns)
{
	const char *step;

	if (instance_make(&s->spare[s->spares], &s->plan, &step))
		s->fill_ns = now_ns + RETRY_NS;
	else
		s->spares++;
}

void stock_doom(struct stock *s, const u32 tap[INSTANCE_TAPS], u64 now_ns)
{
	if (s->num_doomed == ARRAY_SIZE(s->doomed))
		stock_reap(s, s->reap_ns);
	if (!s->num_doomed)
		s->reap_ns = now_ns + REAP_NS;
	for (u32 i = 0; i < INSTANCE_TAPS; i++)
		s->doomed[s->num_doomed++] = tap[i];
}

void stock_reap(struct stock *s, u64 now_ns)
{
	if (!s->num_doomed || now_ns < s->reap_ns)
		return;
	tap_delete(s->doomed, s->num_doomed);
	s->num_doomed = 0;
}

u64 stock_next_ns(const struct stock *s)
{
	const u64 fill_ns = s->spares < STOCK_SPARES ? s->fill_ns : NSEC_NEVER;

	return s->num_doomed ? min_u64(s->reap_ns, fill_ns) : fill_ns;
}
