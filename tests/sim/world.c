/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The simulator's clock and nodes; world_link.c has the links, world_deliver.c a packet's arrival.
 * None looks into an engine: all they use is the contract.
 */
#include "world_internal.h"

#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#define GUARD_BYTES 64
#define GUARD_BYTE  0xa5
#define OUTPUT_MAX  1000000 /* frames in one go: more is an engine that does not stop */

void world_check(struct world *w, bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	print_error("%s\nreplay: %s (engines a node: %u, seed %llu, at %llu ns)\n", what, w->label,
		    w->node[0].num_engines, (unsigned long long)w->seed,
		    (unsigned long long)w->now_ns);
	_fail(file, line);
}

void world_check_u64(struct world *w, u64 got, u64 want, const char *what, const char *file,
		     int line)
{
	if (got == want)
		return;
	print_error("got %llu (0x%llx), not %llu (0x%llx)\n", (unsigned long long)got,
		    (unsigned long long)got, (unsigned long long)want, (unsigned long long)want);
	world_check(w, false, what, file, line);
}

void *world_grow(void *array, u32 n, u32 *room, size_t size)
{
	if (n < *room)
		return array;
	*room = *room ? *room * 2 : 64;
	array = realloc(array, *room * size);
	assert_non_null(array);
	return array;
}

static u64 world_random(void *arg)
{
	return rng_next(arg);
}

struct gid world_gid(u32 node, bool is_ipv6)
{
	struct gid g = { 0 };

	if (is_ipv6) {
		g.raw[0] = 0xfd;
		g.raw[3] = 0x09;
		g.raw[15] = (u8)(node + 1);
	} else {
		g.raw[10] = g.raw[11] = 0xff;
		g.raw[12] = 10;
		g.raw[13] = 9;
		g.raw[15] = (u8)(node + 1);
	}
	return g;
}

struct path world_path(const struct world *w, u32 from, u32 to, bool is_ipv6)
{
	struct path p = { .is_ipv6 = is_ipv6,
			  .hop_limit = 64,
			  .udp_sport = ROCE_UDP_SPORT_MIN + 17 };

	memcpy(p.smac, w->node[from].mac, 6);
	p.dmac[0] = 0x02;
	p.dmac[5] = (u8)(to + 1);
	p.local = world_gid(from, is_ipv6);
	p.peer = world_gid(to, is_ipv6);
	return p;
}

struct world *world_create(u32 num_nodes, u64 seed)
{
	return world_create_with(num_nodes, seed, &(struct world_options){ 0 });
}

struct world *world_create_with(u32 num_nodes, u64 seed, const struct world_options *o)
{
	struct world *w = aligned_alloc(CACHE_LINE,
					(sizeof(*w) + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
	const char *trace = getenv("XROCE_SIM_TRACE"), *engines = getenv("XROCE_SIM_ENGINES");
	u32 num_engines = o->num_engines ? o->num_engines : engines ? (u32)atoi(engines) : 1;

	assert_non_null(w);
	memset(w, 0, sizeof(*w));
	w->seed = seed;
	w->rng.state = seed;
	w->where.state = seed + 1;
	w->now_ns = 1 * NSEC_PER_SEC; /* not 0: a time is not a flag */
	w->latency_ns = WORLD_LATENCY_NS;
	w->split_bytes = WORLD_SPLIT_BYTES;
	w->rx_batch = 1;
	w->max_steps = 200000;
	w->keep_frames = true;
	w->trace = trace && *trace == '1';
	w->num_nodes = num_nodes;
	for (u32 i = 0; i < num_nodes; i++) {
		struct node *n = &w->node[i];
		struct engine_config config = { .random = world_random,
						.random_arg = &w->rng,
						.stats = &n->stats,
						.drops = &n->drops,
						.disable = o->disable[i],
						.ecn = o->ecn,
						.pkeys = o->pkeys[i],
						.faults = o->faults[i],
						.line_rate = o->line_rate,
						.unknown_ids = o->unknown_ids };

		config.expect = n->expect = calloc(XROCE_MAX_QP, sizeof(*n->expect));
		assert_non_null(n->expect);
		n->world = w;
		n->index = i;
		n->mac[0] = 0x02;
		n->mac[5] = (u8)(i + 1);
		n->gid4 = world_gid(i, false);
		n->gid6 = world_gid(i, true);
		n->num_engines = num_engines;
		for (u32 k = 0; k < num_engines; k++) {
			config.number = k;
			config.sibling = n->engines[0];
			assert_int_equal(engine_create(&config, &n->engines[k]), 0);
			check_eq(w, engine_number(n->engines[k]), k);
		}
		n->engine = n->engines[0];
	}
	return w;
}

void world_label(struct world *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->label, sizeof(w->label), format, args);
	va_end(args);
	if (w->trace)
		fprintf(stderr, "-- %s\n", w->label);
}

static void free_buffers(struct node *n)
{
	struct buffer *b, *next;

	for (b = n->buffers; b; b = next) {
		next = b->next;
		for (u32 i = 0; i < GUARD_BYTES; i++) {
			check(n->world, b->allocation[i] == GUARD_BYTE);
			check(n->world, b->bytes[b->len + i] == GUARD_BYTE);
		}
		if (b->mr)
			mr_remove(engine_mr_table(n->engine), b->mr);
		free(b->allocation);
		free(b);
	}
}

void world_destroy(struct world *w)
{
	world_drop_flights(w);
	world_forget_sent(w);
	for (u32 i = 0; i < w->num_nodes; i++) {
		struct node *n = &w->node[i];

		free_buffers(n);
		for (u32 k = 0; k < n->num_engines; k++)
			engine_destroy(n->engines[k]);
		while (n->cqs)
			world_cq_destroy(n, n->cqs);
		free(n->expect);
		free(n->events);
		free(n->qpns);
	}
	free(w->sent);
	free(w->flights);
	free(w);
}

void world_forget_sent(struct world *w)
{
	for (u32 i = 0; i < w->num_sent; i++)
		free(w->sent[i].data);
	w->num_sent = 0;
}

void world_drop_flights(struct world *w)
{
	for (u32 i = 0; i < w->num_flights; i++)
		free(w->flights[i].data);
	w->num_flights = 0;
}

/* ---- memory and CQs ---- */

void buffer_fill(u8 *bytes, u32 len, u32 seed)
{
	for (u32 i = 0; i < len; i++)
		bytes[i] = (u8)((i * 167 + (i >> 8) * 13 + seed * 59 + 1) % 251);
}

struct buffer *world_buffer_pd(struct node *n, u32 len, u32 access, u32 pd)
{
	struct buffer *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->allocation = aligned_alloc(GUARD_BYTES,
				      (len + 3 * GUARD_BYTES - 1) & ~(size_t)(GUARD_BYTES - 1));
	assert_non_null(b->allocation);
	b->bytes = b->allocation + GUARD_BYTES;
	b->len = len;
	b->node = n;
	memset(b->allocation, GUARD_BYTE, GUARD_BYTES);
	memset(b->bytes + len, GUARD_BYTE, GUARD_BYTES);
	buffer_fill(b->bytes, len, n->index);
	assert_int_equal(
		mr_add(engine_mr_table(n->engine), pd, b->bytes, len, buffer_va(b), access, &b->mr),
		0);
	b->next = n->buffers;
	n->buffers = b;
	return b;
}

struct buffer *world_buffer(struct node *n, u32 len, u32 access)
{
	return world_buffer_pd(n, len, access, 1);
}

struct watched_cq *world_cq(struct node *n, u32 capacity)
{
	struct watched_cq *c = aligned_alloc(CACHE_LINE, (sizeof(*c) + CACHE_LINE - 1) &
								 ~(size_t)(CACHE_LINE - 1));

	assert_non_null(c);
	memset(c, 0, sizeof(*c));
	assert_int_equal(cq_init(&c->cq, capacity), 0);
	c->cq.with_channel = true;
	c->polled = true;
	c->next = n->cqs;
	n->cqs = c;
	return c;
}

void world_cq_destroy(struct node *n, struct watched_cq *c)
{
	struct watched_cq **p = &n->cqs;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	cq_free(&c->cq);
	free(c->log);
	free(c);
}

void world_poll(struct watched_cq *c)
{
	const struct cqe *e;

	while ((e = cq_peek(&c->cq))) {
		c->log = world_grow(c->log, c->n, &c->room, sizeof(*c->log));
		c->log[c->n++] = *e;
		cq_pop(&c->cq);
	}
}

/* ---- engines ---- */

static u32 all_engines(const struct node *n)
{
	return (1u << n->num_engines) - 1;
}

struct engine *world_owner(struct node *n, bool is_pinned)
{
	return is_pinned ? n->engine : n->engines[n->next_owner++ % n->num_engines];
}

void world_know_qp(struct node *n, const struct qp *qp)
{
	n->qpns = world_grow(n->qpns, n->num_qpns, &n->qpns_room, sizeof(*n->qpns));
	n->qpns[n->num_qpns++] = qp->qpn;
}

void world_ring(struct node *n, struct qp *qp)
{
	struct engine *owner = engine_doorbell(qp);

	check(n->world, owner == qp_engine(qp) && engine_has_doorbells(owner));
	n->to_run |= 1u << engine_number(owner);
}

void world_move(struct node *n, struct qp *qp, u32 to)
{
	engine_move_qp(n->engines[to], qp, n->world->now_ns);
	check(n->world, qp_engine(qp) == n->engines[to]);
	n->world->moves++;
	/* as after everything that wants all engines held */
	n->to_run = all_engines(n);
}

static void move_some(struct world *w)
{
	struct node *n = &w->node[rng_below(&w->where, w->num_nodes)];
	struct qp *qp;

	if (!n->num_qpns || !rng_chance(&w->where, w->move_rate))
		return;
	qp = engine_find_qp(n->engine, n->qpns[rng_below(&w->where, n->num_qpns)]);
	if (qp && engine_may_move(qp))
		world_move(n, qp, rng_below(&w->where, n->num_engines));
}

u64 world_deadline_ns(const struct node *n)
{
	u64 earliest_ns = NSEC_NEVER;

	for (u32 i = 0; i < n->num_engines; i++)
		earliest_ns = min_u64(earliest_ns, engine_deadline_ns(n->engines[i]));
	return earliest_ns;
}

/* ---- steps ---- */

static void drain_events(struct node *n, struct engine *engine)
{
	struct engine_event e;

	for (u32 i = 0; engine_next_event(engine, &e); i++) {
		check(n->world, i < 10000);
		check(n->world, e.type && (e.type & (e.type - 1)) == 0); /* one thing an event */
		n->events = world_grow(n->events, n->num_events, &n->events_room,
				       sizeof(*n->events));
		n->events[n->num_events++] = e;
	}
}

static void run_engine(struct world *w, struct node *n, struct engine *engine)
{
	u8 *frame = malloc(PACKET_FRAME_MAX);
	u32 len, count = 0;

	assert_non_null(frame);
	while ((len = engine_output(engine, frame, PACKET_FRAME_MAX, w->now_ns)) > 0) {
		check(w, len <= PACKET_FRAME_MAX);
		check(w, ++count < OUTPUT_MAX);
		link_transmit(w, n->index, frame, len);
	}
	free(frame);
	drain_events(n, engine);
}

static void pump(struct world *w, struct node *n)
{
	while (n->to_run) {
		u32 number = (u32)__builtin_ctz(n->to_run), passed;

		n->to_run &= n->to_run - 1;
		run_engine(w, n, n->engines[number]);
		passed = engine_passed_doorbells(n->engines[number]);
		for (u32 i = 0; i < n->num_engines; i++)
			check(w, !(passed & 1u << i) || engine_has_doorbells(n->engines[i]));
		n->to_run |= passed;
	}
	/* nothing is left lying */
	for (u32 i = 0; i < n->num_engines; i++)
		check(w, !engine_has_doorbells(n->engines[i]));
	for (struct watched_cq *c = n->cqs; c; c = c->next)
		if (c->polled)
			world_poll(c);
}

void world_stop(struct node *n, u64 ns)
{
	n->stopped_until_ns = n->world->now_ns + ns;
}

static bool is_stopped(const struct node *n)
{
	return n->world->now_ns < n->stopped_until_ns;
}

void world_settle(struct world *w)
{
	for (u32 i = 0; i < w->num_nodes; i++) {
		if (is_stopped(&w->node[i]))
			continue;
		w->node[i].to_run = all_engines(&w->node[i]);
		pump(w, &w->node[i]);
	}
}

/* The time when a node sees an event of time_ns. */
static u64 seen_ns(const struct node *n, u64 time_ns)
{
	return max_u64(time_ns, n->stopped_until_ns);
}

static u64 flight_seen_ns(const struct world *w, const struct flight *f)
{
	return seen_ns(&w->node[f->to], f->time_ns);
}

static bool flight_is_before(const struct world *w, const struct flight *a, const struct flight *b)
{
	u64 a_ns = flight_seen_ns(w, a), b_ns = flight_seen_ns(w, b);

	if (a_ns != b_ns)
		return a_ns < b_ns;
	return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->sequence < b->sequence);
}

/* The next packet to be seen, or -1. */
static s64 next_flight(const struct world *w)
{
	s64 best = -1;

	for (u32 i = 0; i < w->num_flights; i++)
		if (best < 0 || flight_is_before(w, &w->flights[i], &w->flights[best]))
			best = i;
	return best;
}

static void arrive(struct world *w, u32 index)
{
	struct flight f = w->flights[index];

	w->flights[index] = w->flights[--w->num_flights];
	world_deliver(w, f.to, f.data, f.len);
	free(f.data);
}

static void expire(struct world *w, struct node *n)
{
	if (is_stopped(n))
		return;
	for (u32 i = 0; i < n->num_engines; i++)
		if (engine_deadline_ns(n->engines[i]) <= w->now_ns) {
			engine_expire(n->engines[i], w->now_ns);
			n->to_run |= 1u << i;
		}
	if (n->to_run)
		pump(w, n);
}

/* Does the next event if it is due by limit_ns. False if there is none. */
static bool step(struct world *w, u64 limit_ns)
{
	u64 next_ns = NSEC_NEVER;
	s64 flight = next_flight(w);

	if (flight >= 0)
		next_ns = flight_seen_ns(w, &w->flights[flight]);
	for (u32 i = 0; i < w->num_nodes; i++)
		next_ns = min_u64(next_ns, seen_ns(&w->node[i], world_deadline_ns(&w->node[i])));
	if (next_ns == NSEC_NEVER || next_ns > limit_ns)
		return false;
	if (next_ns > w->now_ns)
		w->now_ns = next_ns;
	if (flight >= 0 && flight_seen_ns(w, &w->flights[flight]) <= w->now_ns) {
		u32 to = w->flights[flight].to;

		if (w->move_rate)
			move_some(w);
		for (u32 i = 0; i < w->rx_batch; i++) {
			flight = next_flight(w);
			if (flight < 0 || w->flights[flight].to != to ||
			    flight_seen_ns(w, &w->flights[flight]) > w->now_ns)
				break;
			arrive(w, (u32)flight);
		}
		pump(w, &w->node[to]);
		return true;
	}
	for (u32 i = 0; i < w->num_nodes; i++)
		expire(w, &w->node[i]);
	return true;
}

static void run_until(struct world *w, u64 limit_ns)
{
	world_settle(w);
	for (u64 i = 0; step(w, limit_ns); i++)
		if (i > w->max_steps)
			world_check(w, false, "the run does not end", __FILE__, __LINE__);
}

void world_run(struct world *w)
{
	run_until(w, NSEC_NEVER);
}

void world_run_for(struct world *w, u64 ns)
{
	u64 limit_ns = w->now_ns + ns;

	run_until(w, limit_ns);
	w->now_ns = limit_ns;
}

/* ---- observations ---- */

u32 world_events(const struct node *n, enum engine_event_type type, const struct qp *qp)
{
	u32 count = 0;

	for (u32 i = 0; i < n->num_events; i++)
		count += n->events[i].type == type && (!qp || n->events[i].qp == qp);
	return count;
}

const struct sent_frame *world_sent(const struct world *w, u32 from, u8 low_opcode, u32 n)
{
	for (u32 i = 0; i < w->num_sent; i++)
		if (w->sent[i].from == from && (w->sent[i].packet.opcode & 0x1f) == low_opcode &&
		    n-- == 0)
			return &w->sent[i];
	return NULL;
}

u32 world_most_under_way(const struct world *w)
{
	u32 most = 0, first = 0, frames = 0;

	for (u32 i = 0; i < w->num_sent; i++) {
		if (w->sent[i].from != 0)
			continue;
		frames++;
		for (; w->sent[first].time_ns + w->latency_ns <= w->sent[i].time_ns; first++)
			frames -= w->sent[first].from == 0;
		most = frames > most ? frames : most;
	}
	return most;
}

u32 world_count_sent(const struct world *w, u32 from, u8 low_opcode)
{
	u32 n = 0;

	while (world_sent(w, from, low_opcode, n))
		n++;
	return n;
}
