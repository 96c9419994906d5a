/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The simulator's clock, links and nodes. It never looks into an engine: what it knows of one comes
 * from the contract.
 */
#include "world.h"

#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#define GUARD_BYTES 64
#define GUARD_BYTE  0xa5
#define OUTPUT_MAX  1000000 /* frames in one go: more is an engine that does not stop */

struct flight {
	u64 time_ns;
	u64 sequence;
	u32 to;
	u32 from;
	u32 overtake;	/* packets still to pass this one */
	bool held;
	u8 *data;
	u32 len;
};

static const char *const fate_names[] = { "",		" DROPPED", " DUPLICATED",
					  " CORRUPTED", " HELD",    " NO SUCH NODE" };

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

/* Room for one more element of a growing array. */
static void *grow(void *array, u32 n, u32 *room, size_t size)
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
						.line_rate = o->line_rate };

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
		c->log = grow(c->log, c->n, &c->room, sizeof(*c->log));
		c->log[c->n++] = *e;
		cq_pop(&c->cq);
	}
}

/* ---- links ---- */

static void trace_frame(const struct world *w, const struct sent_frame *f)
{
	const struct packet *p = &f->packet;

	fprintf(stderr, "%10llu %u>%u %-28s qp %06x psn %06x%s%s", (unsigned long long)f->time_ns,
		f->from, f->to, opcode_name(p->opcode), p->dest_qpn, p->psn, p->ackreq ? " A" : "",
		p->solicited ? " SE" : "");
	if (p->flags & OP_AETH)
		fprintf(stderr, " syndrome %02x msn %u", p->syndrome, p->msn);
	if (p->flags & (OP_RETH | OP_ATOMIC_ETH))
		fprintf(stderr, " rkey %08x len %u", p->rkey, p->dma_len);
	fprintf(stderr, " payload %u%s\n", p->payload_len, fate_names[f->fate]);
}

static void launch(struct world *w, u32 from, u32 to, const u8 *data, u32 len, u64 time_ns,
		   u32 overtake)
{
	struct flight *f;

	w->flights = grow(w->flights, w->num_flights, &w->flights_room, sizeof(*w->flights));
	f = &w->flights[w->num_flights++];
	*f = (struct flight){ .time_ns = time_ns,
			      .sequence = w->flight_sequence++,
			      .from = from,
			      .to = to,
			      .overtake = overtake,
			      .held = overtake > 0,
			      .len = len };
	f->data = malloc(len);
	assert_non_null(f->data);
	memcpy(f->data, data, len);
}

/* One more packet passed those that are held back in this direction. */
static void release_held(struct world *w, u32 from, u32 to)
{
	for (u32 i = 0; i < w->num_flights; i++) {
		struct flight *f = &w->flights[i];

		if (!f->held || f->from != from || f->to != to || --f->overtake)
			continue;
		f->held = false;
		f->time_ns = w->now_ns + w->latency_ns;
		f->sequence = w->flight_sequence++;
	}
}

static bool scheduled(u64 mask, u64 n)
{
	return n < 64 && mask >> n & 1;
}

static enum fate choose_fate(struct world *w, struct faults *l, const struct sent_frame *f)
{
	u64 n = l->count++;

	if (l->dead || scheduled(l->drop, n) || (l->drops && l->drops(f, l->drops_arg)))
		return FATE_DROPPED;
	if (scheduled(l->duplicate, n))
		return FATE_DUPLICATED;
	if (scheduled(l->corrupt, n))
		return FATE_CORRUPTED;
	if (scheduled(l->hold, n))
		return FATE_HELD;
	if (l->drop_rate && rng_chance(&w->rng, l->drop_rate))
		return FATE_DROPPED;
	if (l->duplicate_rate && rng_chance(&w->rng, l->duplicate_rate))
		return FATE_DUPLICATED;
	if (l->corrupt_rate && rng_chance(&w->rng, l->corrupt_rate))
		return FATE_CORRUPTED;
	if (l->hold_rate && rng_chance(&w->rng, l->hold_rate))
		return FATE_HELD;
	return FATE_DELIVERED;
}

/* Flip one bit that the ICRC covers: extension headers, payload, or the ICRC itself. */
static void corrupt(struct world *w, u8 *data, u32 len, const struct packet *p)
{
	u32 first = (u32)(p->ip - data) + (p->is_ipv6 ? 40 : 20) + 8 + 12;

	data[first + rng_below(&w->rng, len - first)] ^= (u8)(1u << rng_below(&w->rng, 8));
}

static void transmit(struct world *w, u32 from, u8 *frame, u32 len)
{
	struct rx_frame rx = { .data = frame, .len = len };
	struct sent_frame f = { .time_ns = w->now_ns,
				.from = from,
				.to = WORLD_MAX_NODES,
				.fate = FATE_NO_NODE,
				.len = len };
	struct faults *l = NULL;

	/* Whatever an engine sends must be a good packet. */
	check_eq(w, packet_parse(&f.packet, &rx), 0);
	check(w, packet_icrc_ok(&f.packet));
	for (u32 i = 0; i < w->num_nodes; i++)
		if (gid_equal(&f.packet.dst, &w->node[i].gid4) ||
		    gid_equal(&f.packet.dst, &w->node[i].gid6))
			f.to = i;
	if (f.to < w->num_nodes) {
		check(w, memcmp(frame, w->node[f.to].mac, 6) == 0 &&
				 memcmp(frame + 6, w->node[from].mac, 6) == 0);
		l = &w->node[from].to[f.to];
		f.fate = choose_fate(w, l, &f);
		release_held(w, from, f.to);
	}
	if (w->trace)
		trace_frame(w, &f);
	if (w->keep_frames) {
		f.data = malloc(len);
		assert_non_null(f.data);
		memcpy(f.data, frame, len);
		rx.data = f.data;
		check_eq(w, packet_parse(&f.packet, &rx), 0);
		w->sent = grow(w->sent, w->num_sent, &w->sent_room, sizeof(*w->sent));
		w->sent[w->num_sent++] = f;
	}
	/*
	 * a congested switch; over IPv4 it mends the header checksum as well, which nobody here
	 * looks at
	 */
	if (l && l->mark_rate && !f.packet.is_ipv6 && f.packet.tos & 3 &&
	    rng_chance(&w->rng, l->mark_rate))
		frame[14 + 1] |= 3;
	switch (f.fate) {
	case FATE_DROPPED:
	case FATE_NO_NODE:
		return;
	case FATE_CORRUPTED:
		corrupt(w, frame, len,
			&(struct packet){ .ip = frame + (f.packet.has_vlan ? 18 : 14),
					  .is_ipv6 = f.packet.is_ipv6 });
		break;
	case FATE_DUPLICATED:
		launch(w, from, f.to, frame, len, w->now_ns + w->latency_ns, 0);
		break;
	case FATE_HELD:
		/* Where nothing follows to overtake it, it comes late all the same. */
		launch(w, from, f.to, frame, len, w->now_ns + 20 * w->latency_ns,
		       l->hold_packets ? l->hold_packets : 1);
		return;
	case FATE_DELIVERED:
		break;
	}
	launch(w, from, f.to, frame, len, w->now_ns + w->latency_ns, 0);
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
	n->qpns = grow(n->qpns, n->num_qpns, &n->qpns_room, sizeof(*n->qpns));
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

/*
 * Whose is the frame? It comes to any of the node's engines, which leaves it alone if it is
 * another's; one that is no packet is dropped anywhere.
 */
static struct engine *owner_of(struct world *w, struct node *n, const struct rx_frame *rx)
{
	struct qp *qp = engine_frame_qp(n->engine, rx);
	struct engine *owner = qp ? qp_engine(qp) : n->engine,
		      *here = n->engines[rng_below(&w->where, n->num_engines)];
	const struct engine_frame f = { .frame = *rx };
	struct packet p;
	u64 away = 0;

	if (here != owner && qp && packet_parse(&p, rx) == 0) {
		check_eq(w, engine_input_batch(here, &f, 1, w->now_ns, &away), 0);
		check_eq(w, away, 1);
	}
	return owner;
}

/*
 * ---- XDP's part in it: which response wakes the reader of the send CQ, as bpf/wake.h has it ----
 */

struct woken {
	struct qp *qp;	/* NULL: it is not asked */
	bool wakes;
	u32 before;	/* what the send CQ had got */
};

static bool xdp_wakes(const struct node *n, const struct packet *p)
{
	const u32 first = n->expect[XROCE_QP_SLOT(p->dest_qpn)].psn;
	const u8 class = p->flags & OP_AETH ? p->syndrome & AETH_CLASS_MASK : AETH_ACK;
	u32 last = p->psn;

	if (class == AETH_NAK && p->syndrome & AETH_VALUE_MASK)
		return true;
	if (class != AETH_ACK || !(p->flags & OP_END))
		last = psn_add(last, ROCE_PSN_MASK);
	return first & XROCE_EXPECTED && psn_diff(last, first & ROCE_PSN_MASK) >= 0;
}

/*
 * Responses that came early complete with one that is no message's end: those are found by whoever
 * runs the engine.
 */
static struct woken xdp_sees(const struct node *n, const struct rx_frame *rx)
{
	struct woken x = { 0 };
	struct packet p;

	if (packet_parse(&p, rx) || !(p.flags & OP_RESPONSE))
		return x;
	x.qp = engine_find_qp(n->engine, p.dest_qpn);
	if (!x.qp || !x.qp->tells_xdp || x.qp->req.early.head) {
		x.qp = NULL;
		return x;
	}
	x.wakes = xdp_wakes(n, &p);
	x.before = cq_next_index(x.qp->send_cq);
	return x;
}

/* A send has completed by that packet: XDP knew. */
static void check_woken(struct world *w, const struct woken *x)
{
	const struct cq *cq = x->qp ? x->qp->send_cq : NULL;

	for (u32 i = x->before; cq && !x->wakes && i != cq_next_index(cq); i++) {
		const struct cqe *e = &cq->ring[i & cq->mask];

		check(w, e->qpn != x->qp->qpn || e->opcode >= CQE_RECV || e->status != CQE_SUCCESS);
	}
}

enum xroce_drop world_deliver(struct world *w, u32 to, const u8 *frame, u32 len)
{
	struct node *n = &w->node[to];
	struct engine *owner = n->engine;
	u32 head = len > w->split_bytes ? w->split_bytes : len;
	struct rx_frame rx = { .len = head, .frag_len = len - head };
	struct woken woken;
	u8 *linear = malloc(head), *frag = len > head ? malloc(len - head) : NULL;
	enum xroce_drop result;

	/* Copies of exactly their size: a read past the end is a sanitizer's report. */
	assert_non_null(linear);
	memcpy(linear, frame, head);
	rx.data = linear;
	if (frag) {
		memcpy(frag, frame + head, len - head);
		rx.frag = frag;
	}
	if (n->num_engines > 1)
		owner = owner_of(w, n, &rx);
	n->to_run |= 1u << engine_number(owner);
	woken = xdp_sees(n, &rx);
	result = engine_input(owner, NULL, &rx, w->now_ns);
	check_woken(w, &woken);
	free(linear);
	free(frag);
	return result;
}

/* ---- steps ---- */

static void drain_events(struct node *n, struct engine *engine)
{
	struct engine_event e;

	for (u32 i = 0; engine_next_event(engine, &e); i++) {
		check(n->world, i < 10000);
		check(n->world, e.type && (e.type & (e.type - 1)) == 0); /* one thing an event */
		n->events = grow(n->events, n->num_events, &n->events_room, sizeof(*n->events));
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
		transmit(w, n->index, frame, len);
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

/* When a node sees what happens to it at time_ns. */
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

/* Do what comes next if it comes by limit_ns. False if nothing does. */
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

/* ---- what was seen ---- */

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

u32 world_count_sent(const struct world *w, u32 from, u8 low_opcode)
{
	u32 n = 0;

	while (world_sent(w, from, low_opcode, n))
		n++;
	return n;
}
