/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "trace_slot.h"
#include "../os/clock.h"
#include "client_trace.h"
#include "held.h"

#define RENEW_NS (500 * NSEC_PER_MSEC)

struct client_trace {
	struct client_trace *next;
	struct client *of; /* NULL: it has ended, and its ring can still be read */
	u32 prog_id;
	u32 pieces;
	struct held_ids ring;  /* which the observer has a descriptor of */
	u64 lost, lost_before; /* the slot's counter after the last record, and at the start */
	struct trace_slot slot;
	struct host_ring memory; /* with UDP sockets: the ring */
};

/*
 * Returns the size of a ring: a power of two, at least one, and at most a quarter of the user's
 * remaining quota, so that it can observe several processes.
 */
static u32 client_trace_pieces(const struct client *c, u32 ring_bytes)
{
	const struct quota *q = &c->broker->quota;
	const u32 left = min_u32(quota_left(q, c->user, QUOTA_TRACES),
				 quota_left(q, c->user, QUOTA_MEMORY) / CLIENT_TRACE_KIB);
	u32 pieces = 1;

	while (pieces < CLIENT_TRACE_OF_ALL / 4 && 2 * pieces * CLIENT_TRACE_PIECE <= ring_bytes &&
	       4 * 2 * pieces <= left)
		pieces *= 2;
	return pieces;
}

/* Returns 0, -EDQUOT or -ENOSPC. */
static int client_trace_take_room(const struct client *c, u32 pieces)
{
	struct quota *q = &c->broker->quota;
	int err = quota_take_some(q, c->user, QUOTA_TRACES, pieces);

	if (err)
		return err;
	err = quota_take_some(q, c->user, QUOTA_MEMORY, pieces * CLIENT_TRACE_KIB);
	if (err)
		quota_give(q, c->user, QUOTA_TRACES, pieces);
	return err;
}

static void client_trace_give_room(const struct client *c, u32 pieces)
{
	struct quota *q = &c->broker->quota;

	quota_give(q, c->user, QUOTA_TRACES, pieces);
	quota_give(q, c->user, QUOTA_MEMORY, pieces * CLIENT_TRACE_KIB);
}

static bool client_trace_is_possible(const struct ask_trace *want)
{
	const u32 all =
		XROCE_TRACE_RECEIVED | XROCE_TRACE_DROPPED | XROCE_TRACE_SENT | XROCE_TRACE_EVENTS;

	return want->what && !(want->what & ~all) && want->has_peer <= 1;
}

static struct client_trace **client_trace_find(struct client *c, u32 prog_id)
{
	struct client_trace **at = &c->traces;

	while (*at && (*at)->prog_id != prog_id)
		at = &(*at)->next;
	return at;
}

/* Makes the ring. Returns a descriptor for the observer, which is the caller's, or -errno. */
static int client_trace_make_ring(struct client_trace *t)
{
	const u32 bytes = t->pieces * CLIENT_TRACE_PIECE;
	int err, fd;

	if (!t->of->host)
		return trace_slot_make_ring(bytes);
	err = host_ring_make(&t->memory, "xroce_trace", bytes, false);
	if (err)
		return err;
	fd = t->memory.fd;
	t->memory.fd = -1;
	return fd;
}

static int client_trace_use(struct client_trace *t)
{
	const struct readonly_maps *shown = &t->of->readonly_maps;

	return shown->err  ? shown->err :
	       t->of->host ? trace_slot_use_host(&t->slot, &shown->slot, t->of->host->tracer,
						 &t->memory) :
			     trace_slot_use(&t->slot, &shown->slot);
}

/* Takes a trace slot, puts a ring into it, and makes the observer's descriptors. */
static int client_trace_open(struct client_trace *t, const struct ask_trace *want,
			     const struct client *c, int fd[ASK_TRACE_FDS])
{
	/* the top bit, which no pid has, marks a broker's */
	const u32 owner = 1u << 31 | ++c->broker->trace_serial;
	int err = client_trace_use(t);

	fd[ASK_TRACE_RING] = fd[ASK_TRACE_PAGE] = -1;
	if (err)
		return err;
	err = trace_slot_take(&t->slot, owner, !c->rights.admin, ASK_LEASE);
	if (err)
		return err;
	t->lost_before = t->slot.lost_before;
	fd[ASK_TRACE_RING] = client_trace_make_ring(t);
	if (fd[ASK_TRACE_RING] < 0)
		return fd[ASK_TRACE_RING];
	err = held_reserve(&t->ring, 1);
	if (err)
		return err;
	held_note(c->broker, c->user, &t->ring, fd[ASK_TRACE_RING]);
	fd[ASK_TRACE_PAGE] = fcntl(t->of->readonly_maps.slot.page_fd, F_DUPFD_CLOEXEC, 0);
	if (fd[ASK_TRACE_PAGE] < 0)
		return -errno;
	return trace_slot_begin(&t->slot, want, fd[ASK_TRACE_RING], ASK_LEASE);
}

static void client_trace_free(struct client_trace *t)
{
	trace_slot_leave(&t->slot);
	host_ring_free(&t->memory);
	free(t);
}

int client_trace_begin(struct client *c, struct client *other, const struct ask_trace *want,
		       struct ask_traced *traced, int fd[ASK_TRACE_FDS])
{
	struct broker *b = c->broker;
	struct client_trace *t;
	u32 pieces;
	int err;

	if (!client_trace_is_possible(want))
		return -EINVAL;
	if (*client_trace_find(c, other->prog_id))
		return -EALREADY;
	pieces = client_trace_pieces(c, want->ring_bytes);
	err = client_trace_take_room(c, pieces);
	if (err)
		return err;
	t = malloc(sizeof(*t));
	if (t) {
		*t = (struct client_trace){ .next = c->traces,
					    .of = other,
					    .prog_id = other->prog_id,
					    .pieces = pieces,
					    .slot = trace_slot_none,
					    .memory = HOST_RING_NONE };
		err = client_trace_open(t, want, c, fd);
	}
	if (!t || err) {
		for (u32 i = 0; t && i < ASK_TRACE_FDS; i++)
			if (fd[i] >= 0)
				close(fd[i]);
		if (t) {
			held_forget(&t->ring);
			client_trace_free(t);
		}
		client_trace_give_room(c, pieces);
		return err ? err : -ENOMEM;
	}
	traced->place = t->slot.number;
	traced->lost = t->lost_before;
	c->traces = t;
	if (!b->traces++)
		b->trace_ns = clock_now_ns() + RENEW_NS;
	return 0;
}

/* Stops recording; the slot is freed later. The observer can still read the ring. */
static void client_trace_stop(struct broker *b, struct client_trace *t)
{
	if (!t->of)
		return;
	trace_slot_stop(&t->slot);
	t->lost = t->lost_before + trace_slot_lost(&t->slot);
	t->of = NULL;
	b->traces--;
}

static struct client_trace *client_trace_take_out(struct client *c, struct client_trace **at)
{
	struct client_trace *t = *at;

	*at = t->next;
	held_begin(c->broker, c->user, &t->ring, t->pieces * CLIENT_TRACE_KIB, t->pieces);
	return t;
}

int client_trace_end(struct client *c, u32 prog_id, struct ask_traced *traced)
{
	struct client_trace **at = client_trace_find(c, prog_id), *t;

	if (!*at)
		return -ENOENT;
	t = client_trace_take_out(c, at);
	if (t->of) {
		client_trace_stop(c->broker, t);
		t->lost = t->lost_before + trace_slot_leave(&t->slot);
	}
	traced->lost = t->lost;
	client_trace_free(t);
	return 0;
}

void client_trace_dismiss(struct client *c)
{
	struct broker *b = c->broker;

	while (c->traces) {
		struct client_trace *t = client_trace_take_out(c, &c->traces);

		client_trace_stop(b, t);
		t->next = b->dead_traces;
		b->dead_traces = t;
	}
	for (struct client *asker = b->traces ? b->clients : NULL; asker; asker = asker->next)
		for (struct client_trace *t = asker->traces; t; t = t->next)
			if (t->of == c)
				client_trace_stop(b, t);
}

bool client_trace_bury(struct broker *b)
{
	struct client_trace *t = b->dead_traces;

	if (!t)
		return false;
	b->dead_traces = t->next;
	client_trace_free(t);
	return true;
}

void client_trace_renew(struct broker *b, u64 now_ns)
{
	if (!b->traces || now_ns < b->trace_ns)
		return;
	b->trace_ns = now_ns + RENEW_NS;
	for (struct client *c = b->clients; c; c = c->next)
		for (struct client_trace *t = c->traces; t; t = t->next)
			if (t->of)
				trace_slot_renew(&t->slot, ASK_LEASE);
}

u64 client_trace_next_ns(const struct broker *b)
{
	return b->traces ? b->trace_ns : NSEC_NEVER;
}
