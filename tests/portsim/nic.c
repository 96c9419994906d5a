/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* AF_XDP sockets, receive queues and the cable; see nic.h. */
#define _GNU_SOURCE
#include "nic.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <stdlib.h>
#include <string.h>
#include <xdp/xsk.h>

#include "../../user/os/kernel.h"

#define CHUNK	       4096u
#define CHUNKS_MAX     2048u
#define HEADROOM       256u /* the kernel's, before each received packet */
#define LINEAR	       3000u /* of a packet of several buffers, what its headers are in */
#define SEND_BUDGET    32u
#define CONTINUES      1u /* XDP_PKT_CONTD */
#define NEEDS_WAKEUP   XDP_RING_NEED_WAKEUP
#define RING_ENTRIES   512u
#define FRAME_MAX      8192u

/* The shared part of a ring; the kernel's own index is stored separately. */
struct ring {
	u32 producer, consumer, flags;
	u32 size, mine;
	union {
		u64 addr[RING_ENTRIES];
		struct xdp_desc desc[RING_ENTRIES];
	};
};

enum chunk_state { CHUNK_USER, CHUNK_KERNEL, CHUNK_PUBLISHED };

struct xsk_umem {
	u8 *area;
	u64 bytes;
	u8 state[CHUNKS_MAX]; /* enum chunk_state */
	u32 position[CHUNKS_MAX]; /* published: where in the receive ring, */
	struct xsk_socket *by[CHUNKS_MAX]; /* of this socket */
	struct xsk_ring_prod *first_fill;
	u32 fill_size;
};

struct xsk_socket {
	int fd;
	struct nic *nic;
	u32 queue;
	struct xsk_umem *umem;
	struct ring fill, completion, rx, tx;
	struct xdp_statistics lost;
};

/* A packet on the cable, and the socket that wants to hear that it has left. */
struct flight {
	struct flight *next;
	u64 at_ns;
	struct xsk_socket *from;
	u64 addr[2];
	u32 num_addr, len;
	u8 bytes[];
};

struct queue {
	struct nic *nic;
	u32 number;
	char name[16];
	struct actor *actor;
	struct flight *flights; /* by their time */
	u64 last_ns;
	u32 polled; /* packets that the poll has taken and not published */
	struct flight *current;
	struct xsk_socket *socket;
};

struct nic {
	u32 number;
	struct nic_options o;
	struct port_maps *maps;
	struct queue queue[NIC_QUEUES];
	u8 queue_of[16]; /* by the low bits of a destination QPN */
	bool attached, stop;
	u64 lost;
};

static struct nic *nics[NICS];

const char *nic_name(u32 number)
{
	static const char *const names[NICS] = { "sim0", "sim1" };

	return names[number];
}

void nic_mac(u32 number, u8 mac[6])
{
	static const u8 base[6] = { 2, 0, 0, 0, 0, 1 };

	memcpy(mac, base, sizeof(base));
	mac[5] = (u8)(mac[5] + number);
}

struct nic *nic_get(u32 number)
{
	return nics[number];
}

struct port_maps *nic_maps(struct nic *n)
{
	return n->maps;
}

/* ---- the cable ---- */

static void tell_sender(struct flight *f)
{
	struct ring *r;

	if (!f->from)
		return;
	r = &f->from->completion;
	for (u32 i = 0; i < f->num_addr; i++) {
		/* the sender has no more on the way than fit */
		sim_check(r->mine - __atomic_load_n(&r->consumer, __ATOMIC_SEQ_CST) < r->size);
		sim_check(f->from->umem->state[f->addr[i] / CHUNK] == CHUNK_KERNEL);
		f->from->umem->state[f->addr[i] / CHUNK] = CHUNK_USER;
		r->addr[r->mine++ % r->size] = f->addr[i];
	}
	__atomic_store_n(&r->producer, r->mine, __ATOMIC_SEQ_CST);
}

static void lose(struct nic *n, struct flight *f, const char *why)
{
	sched_trace("packet of %u bytes is lost: %s", f->len, why);
	n->lost++;
	tell_sender(f);
	free(f);
}

/* Returns the receive queue for a packet: mostly its QP's. */
static struct queue *queue_for(struct nic *n, const u8 *frame)
{
	struct rng *rng = sched_rng();
	/* the BTH after Ethernet, IPv4 and UDP headers */
	u8 *of = &n->queue_of[frame[14 + 20 + 8 + 7] % 16];

	if (n->o.queues == 1)
		return &n->queue[0];
	if (rng_chance(rng, n->o.move_rate))
		*of = (u8)rng_below(rng, n->o.queues);
	return &n->queue[rng_chance(rng, n->o.stray_rate) ? rng_below(rng, n->o.queues) : *of];
}

static void arrive_at(struct queue *q, struct flight *f)
{
	struct flight **at = &q->flights;

	while (*at && (*at)->at_ns <= f->at_ns)
		at = &(*at)->next;
	f->next = *at;
	*at = f;
	if (q->actor)
		sched_wake(q->actor, 0);
}

static void cable_send(struct nic *from, struct flight *f)
{
	struct nic *to = NULL;
	struct rng *rng = sched_rng();
	struct queue *q;
	u8 mac[6];

	for (u32 i = 0; i < NICS; i++) {
		nic_mac(i, mac);
		if (nics[i] && memcmp(mac, f->bytes, 6) == 0)
			to = nics[i];
	}
	if (!to || !to->attached || rng_chance(rng, from->o.loss_rate)) {
		lose(from, f, to ? "on the cable" : "no such interface");
		return;
	}
	q = queue_for(to, f->bytes);
	f->at_ns = sched_now_ns() + from->o.latency_ns + rng_next(rng) % (from->o.jitter_ns + 1);
	if (!rng_chance(rng, from->o.reorder_rate))
		f->at_ns = q->last_ns = max_u64(f->at_ns, q->last_ns);
	arrive_at(q, f);
}

/* ---- receiving: the kernel's poll of a queue ---- */

static u64 take_fill(struct xsk_socket *x)
{
	struct ring *r = &x->fill;
	u64 addr;
	u32 chunk;

	if (r->mine == __atomic_load_n(&r->producer, __ATOMIC_SEQ_CST))
		return UINT64_MAX;
	addr = r->addr[r->mine++ % r->size];
	chunk = (u32)(addr / CHUNK);
	if (addr >= x->umem->bytes || addr % CHUNK)
		sched_fail("the fill ring names no frame: %llx", (unsigned long long)addr);
	/*
	 * a frame in a receive ring is not user space's until the ring's producer has moved
	 */
	if (x->umem->state[chunk] == CHUNK_PUBLISHED) {
		const struct xsk_socket *by = x->umem->by[chunk];

		if ((s32)(__atomic_load_n(&by->rx.consumer, __ATOMIC_SEQ_CST) -
			  x->umem->position[chunk]) <= 0)
			sched_fail(
				"frame %u is given to the kernel while it lies in a receive ring",
				chunk);
	}
	if (x->umem->state[chunk] == CHUNK_KERNEL)
		sched_fail("frame %u is given to the kernel twice", chunk);
	x->umem->state[chunk] = CHUNK_KERNEL;
	return addr;
}

static bool rx_has_room(const struct ring *r, u32 n)
{
	return r->size - (r->mine - __atomic_load_n(&r->consumer, __ATOMIC_SEQ_CST)) >= n;
}

static u32 fill_available(const struct ring *r)
{
	return __atomic_load_n(&r->producer, __ATOMIC_SEQ_CST) - r->mine;
}

static void put_buffer(struct xsk_socket *x, const u8 *bytes, u32 len, const struct xdp_packet *p,
		       bool continues)
{
	struct ring *r = &x->rx;
	const u64 addr = take_fill(x) + HEADROOM;
	u8 *to = x->umem->area + addr;

	/* a stale owner sees another packet */
	if (p)
		memcpy(to - p->meta_len, p->meta, p->meta_len);
	memcpy(to, bytes, len);
	r->desc[r->mine++ % r->size] =
		(struct xdp_desc){ .addr = addr, .len = len, .options = continues ? CONTINUES : 0 };
}

static u32 cpu_of(const struct queue *q)
{
	return q->nic->number * NIC_QUEUES + q->number;
}

/* The program hands it over itself. */
static void receive_shared(struct queue *q, struct xdp_packet *p)
{
	const struct xroce_drops *drops = &q->nic->maps->drop;
	const u64 before = drops->ring_full;

	xdp_run(q->nic->maps, p, q->number, cpu_of(q));
	if (drops->ring_full != before) {
		q->nic->lost++;
		sched_trace("packet of %u bytes is lost: the ring buffer is full", p->len);
	}
}

static void receive(struct queue *q, struct flight *f)
{
	struct xdp_packet p = { .bytes = f->bytes, .len = f->len };
	struct xsk_socket *x = q->socket;
	const u32 room = CHUNK - HEADROOM, buffers = f->len > room ? 2 : 1;

	p.linear = buffers == 1 ? p.len : LINEAR;
	if (q->nic->maps->packets) {
		receive_shared(q, &p);
	} else if (!xdp_run(q->nic->maps, &p, q->number, cpu_of(q))) {
		sched_trace("packet of %u bytes is not redirected", f->len);
	} else if (!rx_has_room(&x->rx, buffers)) {
		x->lost.rx_ring_full++;
		q->nic->lost++;
		sched_trace("packet of %u bytes is lost: the receive ring is full", f->len);
	} else if (fill_available(&x->fill) < buffers) {
		x->lost.rx_fill_ring_empty_descs++;
		x->lost.rx_dropped++;
		q->nic->lost++;
		sched_trace("packet of %u bytes is lost: the fill ring is empty", f->len);
	} else {
		put_buffer(x, f->bytes, min_u32(f->len, room), &p, buffers > 1);
		if (buffers > 1)
			put_buffer(x, f->bytes + room, f->len - room, NULL, false);
		sched_trace("packet of %u bytes in queue %u", f->len, q->number);
	}
	tell_sender(f);
	free(f);
}

/* Ends a poll: publishes the received packets, then the free places in the fill ring. */
static void publish(struct queue *q)
{
	struct xsk_socket *x = q->socket;
	const u32 shown = x->rx.producer;
	for (u32 i = shown; i != x->rx.mine; i++) {
		const u32 chunk = (u32)(x->rx.desc[i % x->rx.size].addr / CHUNK);

		x->umem->state[chunk] = CHUNK_PUBLISHED;
		x->umem->position[chunk] = i;
		x->umem->by[chunk] = x;
	}
	__atomic_store_n(&x->rx.producer, x->rx.mine, __ATOMIC_SEQ_CST);
	q->polled = 0;
	sched_point("publish");
	__atomic_store_n(&x->fill.consumer, x->fill.mine, __ATOMIC_SEQ_CST);
	if (x->rx.mine != shown) {
		sched_trace("%u descriptors are published in queue %u", x->rx.mine - shown,
			    q->number);
		fd_notify(x->fd);
	}
	sched_point("published");
}

static void poll_queue(struct queue *q)
{
	struct rng *rng = sched_rng();
	const u32 budget = 1 + rng_below(rng, q->nic->o.budget);

	for (u32 i = 0; i < budget && !q->nic->stop; i++) {
		struct flight *f = q->flights;

		if (!f || f->at_ns > sched_now_ns())
			break;
		q->flights = f->next;
		q->polled++;
		q->current = f;
		receive(q, f);
		q->current = NULL;
		sched_point("received");
	}
	if (q->polled && rng_chance(rng, q->nic->o.hold_rate))
		sched_sleep("poll", rng_next(rng) % q->nic->o.hold_max_ns);
	if (q->socket)
		publish(q);
	q->polled = 0;
}

static void queue_main(void *arg)
{
	struct queue *q = arg;

	while (!q->nic->stop)
		if (q->flights && q->flights->at_ns <= sched_now_ns())
			poll_queue(q);
		else
			sched_block("packet", q->flights ? q->flights->at_ns : NSEC_NEVER);
}

/* ---- interfaces ---- */

struct nic *nic_make(u32 number, const struct nic_options *o)
{
	struct nic *n = calloc(1, sizeof(*n));

	sim_check(n && o->queues <= NIC_QUEUES);
	n->number = number;
	n->o = *o;
	n->maps = xdp_maps_new();
	for (u32 i = 0; i < 16; i++)
		n->queue_of[i] = (u8)rng_below(sched_rng(), o->queues);
	for (u32 i = 0; i < o->queues; i++) {
		struct queue *q = &n->queue[i];

		q->nic = n;
		q->number = i;
		snprintf(q->name, sizeof(q->name), "%s queue %u", nic_name(number), i);
	}
	nics[number] = n;
	return n;
}

void nic_attach(struct nic *n)
{
	n->attached = true;
	for (u32 i = 0; i < n->o.queues; i++)
		n->queue[i].actor = sched_spawn(n->queue[i].name, queue_main, &n->queue[i]);
}

void nic_detach(struct nic *n)
{
	if (!n->attached)
		return;
	n->attached = false;
	n->stop = true;
	for (u32 i = 0; i < n->o.queues; i++) {
		struct queue *q = &n->queue[i];

		sched_wake(q->actor, 0);
		sched_join(q->actor);
		while (q->flights) {
			struct flight *f = q->flights;

			q->flights = f->next;
			lose(n, f, "the interface is detached");
		}
	}
}

void nic_free(struct nic *n)
{
	nics[n->number] = NULL;
	xdp_maps_free(n->maps);
	free(n);
}

u32 nic_unread(const struct nic *n, u32 queue)
{
	const struct xsk_socket *x = n->queue[queue].socket;

	return x ? x->rx.producer - x->rx.consumer :
	       n->maps->packets ? packets_are_readable(n->maps->packets) :
				  0;
}

u32 nic_on_the_way(const struct nic *n)
{
	u32 count = 0;

	for (u32 i = 0; i < n->o.queues; i++) {
		count += n->queue[i].polled;
		for (const struct flight *f = n->queue[i].flights; f; f = f->next)
			count++;
	}
	return count;
}

u64 nic_lost(const struct nic *n)
{
	return n->lost;
}

int nic_socket_fd(const struct nic *n, u32 queue)
{
	return n->queue[queue].socket ? n->queue[queue].socket->fd : -1;
}

void nic_count_frames(const struct nic *n, u32 queue, u8 *has)
{
	const struct xsk_socket *x = n->queue[queue].socket;

	for (u32 i = x->fill.mine; i != x->fill.producer; i++)
		has[x->fill.addr[i % x->fill.size] / CHUNK]++;
	for (u32 i = x->rx.consumer; i != x->rx.mine; i++)
		has[x->rx.desc[i % x->rx.size].addr / CHUNK]++;
	for (u32 i = x->tx.mine; i != x->tx.producer; i++)
		has[x->tx.desc[i % x->tx.size].addr / CHUNK]++;
}

/* ---- AF_XDP sockets: libxdp's functions ---- */

static void make_prod(struct xsk_ring_prod *p, struct ring *r, u32 size, u32 flags)
{
	sim_check(size <= RING_ENTRIES);
	*r = (struct ring){ .size = size, .flags = flags };
	*p = (struct xsk_ring_prod){ .cached_cons = size, .mask = size - 1, .size = size,
				     .producer = &r->producer, .consumer = &r->consumer,
				     .ring = r->addr, .flags = &r->flags };
}

static void make_cons(struct xsk_ring_cons *c, struct ring *r, u32 size)
{
	sim_check(size <= RING_ENTRIES);
	*r = (struct ring){ .size = size };
	*c = (struct xsk_ring_cons){ .mask = size - 1, .size = size, .producer = &r->producer,
				     .consumer = &r->consumer, .ring = r->addr,
				     .flags = &r->flags };
}

int xsk_umem__create(struct xsk_umem **out, void *area, __u64 size, struct xsk_ring_prod *fill,
		     struct xsk_ring_cons *completion, const struct xsk_umem_config *config)
{
	struct xsk_umem *u = calloc(1, sizeof(*u));

	sim_check(u && size / CHUNK <= CHUNKS_MAX);
	*u = (struct xsk_umem){ .area = area, .bytes = size, .fill_size = config->fill_size };
	*out = u;
	return 0;
}

int xsk_umem__delete(struct xsk_umem *umem)
{
	free(umem);
	return 0;
}

int xsk_socket__create_shared(struct xsk_socket **out, const char *name, __u32 queue,
			      struct xsk_umem *umem, struct xsk_ring_cons *rx,
			      struct xsk_ring_prod *tx, struct xsk_ring_prod *fill,
			      struct xsk_ring_cons *completion,
			      const struct xsk_socket_config *config)
{
	struct xsk_socket *x = calloc(1, sizeof(*x));

	sim_check(x);
	for (u32 i = 0; i < NICS; i++)
		if (nics[i] && strcmp(nic_name(i), name) == 0)
			x->nic = nics[i];
	sim_check(x->nic && queue < x->nic->o.queues && !x->nic->queue[queue].socket);
	x->queue = queue;
	x->umem = umem;
	x->fd = fd_open(FD_XSK, x);
	make_prod(fill, &x->fill, umem->fill_size, 0);
	make_cons(completion, &x->completion, config->tx_size);
	make_cons(rx, &x->rx, config->rx_size);
	make_prod(tx, &x->tx, config->tx_size, NEEDS_WAKEUP);
	x->nic->queue[queue].socket = x;
	*out = x;
	return 0;
}

int xsk_socket__fd(const struct xsk_socket *x)
{
	return x->fd;
}

static void forget_sender(struct queue *q, const struct xsk_socket *x)
{
	for (struct flight *f = q->flights; f; f = f->next)
		if (f->from == x)
			f->from = NULL;
	if (q->current && q->current->from == x)
		q->current->from = NULL;
}

void xsk_socket__delete(struct xsk_socket *x)
{
	x->nic->queue[x->queue].socket = NULL;
	kernel_close(x->fd);
	/* packets still under way need no completion */
	for (u32 i = 0; i < NICS; i++)
		for (u32 q = 0; nics[i] && q < nics[i]->o.queues; q++)
			forget_sender(&nics[i]->queue[q], x);
	free(x);
}

bool xsk_is_readable(const void *xsk)
{
	const struct xsk_socket *x = xsk;

	return x->rx.producer != x->rx.consumer;
}

int kernel_xsk_count(int fd, struct xdp_statistics *out)
{
	const struct xsk_socket *x = fd_object(fd, FD_XSK);

	sched_point("getsockopt");
	*out = x->lost;
	return 0;
}

void kernel_xsk_tune(int fd)
{
	fd_object(fd, FD_XSK);
}

void kernel_xsk_receive(int fd)
{
	fd_object(fd, FD_XSK);
}

static void add_buffer(struct xsk_socket *x, struct flight *f, const struct xdp_desc *d)
{
	if (d->addr >= x->umem->bytes || d->len > CHUNK - d->addr % CHUNK ||
	    f->len + d->len > FRAME_MAX)
		sched_fail("the transmit ring names no frame");
	if (x->umem->state[d->addr / CHUNK] == CHUNK_KERNEL)
		sched_fail("frame %u is sent while it is the kernel's", (u32)(d->addr / CHUNK));
	x->umem->state[d->addr / CHUNK] = CHUNK_KERNEL;
	memcpy(f->bytes + f->len, x->umem->area + d->addr, d->len);
	f->len += d->len;
	f->addr[f->num_addr++] = d->addr;
}

/* A call to send: as many packets as its budget allows, or memory. */
void kernel_xsk_send(int fd)
{
	struct xsk_socket *x = fd_object(fd, FD_XSK);
	struct ring *r = &x->tx;
	struct rng *rng = sched_rng();

	sched_point("send");
	sched_drain();
	if (rng_chance(rng, x->nic->o.block_rate))
		return;
	for (u32 i = 0; i < SEND_BUDGET; i++) {
		struct flight *f;
		struct xdp_desc d;

		if (r->mine == __atomic_load_n(&r->producer, __ATOMIC_SEQ_CST))
			break;
		f = calloc(1, sizeof(*f) + FRAME_MAX);
		sim_check(f);
		f->from = x;
		do {
			d = r->desc[r->mine++ % r->size];
			add_buffer(x, f, &d);
		} while (d.options & CONTINUES);
		__atomic_store_n(&r->consumer, r->mine, __ATOMIC_SEQ_CST);
		sched_trace("sends %u bytes", f->len);
		cable_send(x->nic, f);
		sched_point("sent");
	}
}

bool nic_send(struct nic *n, const u8 *frame, u32 len)
{
	struct flight *f;

	sched_point("send");
	sched_drain();
	if (rng_chance(sched_rng(), n->o.block_rate))
		return false;
	f = calloc(1, sizeof(*f) + len);
	sim_check(f);
	memcpy(f->bytes, frame, len);
	f->len = len;
	sched_trace("sends %u bytes", len);
	cable_send(n, f);
	sched_point("sent");
	return true;
}
