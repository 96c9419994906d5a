/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <unistd.h>

#include "client_pool.h"
#include "tap.h"

/* Time for a killed process to close its descriptors, which deletes its devices. */
#define REAP_NS	     (20 * NSEC_PER_MSEC)
#define REAP_CLIENTS 16u
#define RETRY_NS     NSEC_PER_SEC
/* No slow work here: a client with a new port asks for its first QP's number at once. */
#define TAKEN_NS     (20 * NSEC_PER_MSEC)

void client_pool_init(struct client_pool *s, const struct instance_plan *plan)
{
	memset(s, 0, sizeof(*s));
	s->plan = *plan;
}

void client_pool_start(struct client_pool *s, int single_prog_fd)
{
	s->plan.tap_single_fd = single_prog_fd;
	s->is_on = true;
}

/* Deletes a few at a time, as other clients wait. */
void client_pool_reap(struct client_pool *s)
{
	const u32 n = min_u32(s->num_doomed, REAP_CLIENTS), first = s->num_doomed - n;

	tap_delete(s->doomed[first], n * INSTANCE_TAPS);
	/* after their devices: there is nothing left to detach */
	for (u32 i = first; i < first + n; i++)
		if (s->doomed_link_fd[i] >= 0)
			close(s->doomed_link_fd[i]);
	s->num_doomed = first;
}

void client_pool_empty(struct client_pool *s)
{
	u32 tap[INSTANCE_TAPS * CLIENT_POOL_SPARES], num_taps = 0;
	const u32 n = s->spares;

	for (u32 i = 0; i < n; i++) {
		tap[num_taps++] = s->spare[i].tap;
		tap[num_taps++] = s->spare[i].single;
	}
	if (n)
		tap_delete(tap, num_taps);
	while (s->num_doomed)
		client_pool_reap(s);
	for (u32 i = 0; i < n; i++)
		instance_close(&s->spare[i]);
	s->spares = 0;
}

int client_pool_take(struct client_pool *s, u64 now_ns, struct instance *out, const char **step)
{
	s->fill_ns = max_u64(s->fill_ns, now_ns + TAKEN_NS);
	if (!s->spares)
		return instance_make(out, &s->plan, step);
	*out = s->spare[--s->spares];
	return 0;
}

void client_pool_return(struct client_pool *s, struct instance *i)
{
	if (s->spares < CLIENT_POOL_SPARES)
		s->spare[s->spares++] = *i;
	else
		instance_close(i);
}

bool client_pool_is_short(const struct client_pool *s, u64 now_ns)
{
	return s->is_on && s->spares < CLIENT_POOL_SPARES && now_ns >= s->fill_ns;
}

void client_pool_fill(struct client_pool *s, u64 now_ns)
{
	const char *step;

	if (instance_make(&s->spare[s->spares], &s->plan, &step))
		s->fill_ns = now_ns + RETRY_NS;
	else
		s->spares++;
}

void client_pool_doom(struct client_pool *s, const u32 tap[INSTANCE_TAPS], int link_fd, u64 now_ns)
{
	if (s->num_doomed == XROCE_MAX_CLIENT)
		client_pool_reap(s);
	if (!s->num_doomed)
		s->reap_ns = now_ns + REAP_NS;
	memcpy(s->doomed[s->num_doomed], tap, sizeof(s->doomed[0]));
	s->doomed_link_fd[s->num_doomed++] = link_fd;
}

bool client_pool_is_due(const struct client_pool *s, u64 now_ns)
{
	return s->num_doomed && now_ns >= s->reap_ns;
}

u64 client_pool_next_ns(const struct client_pool *s)
{
	const u64 fill_ns = s->is_on && s->spares < CLIENT_POOL_SPARES ? s->fill_ns : NSEC_NEVER;

	return s->num_doomed ? min_u64(s->reap_ns, fill_ns) : fill_ns;
}
