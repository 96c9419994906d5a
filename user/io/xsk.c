/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * AF_XDP sockets through libxdp's ring helpers, and the sender through the first of them; the
 * program is attached elsewhere (client/attach.c). A socket is used only here. rx_ring.c has the
 * ring buffer that replaces sockets.
 *
 * An entry that the kernel writes into a ring is copied once, and the copy is checked against the
 * UMEM before it is used.
 */
#define _GNU_SOURCE
#include <linux/if_link.h>
#include <stdlib.h>
#include <unistd.h>

#include "../os/kernel.h"
#include "tx.h"
#include "xsk.h"

/* Newer than Debian 12's headers. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD 1
#endif

/*
 * The kernel releases the queue of a closed socket later, in a worker that waits for RTNL. On a
 * machine where interfaces come and go that has taken more than a second.
 */
#define XSK_BUSY_MS	    4000
#define XSK_BUSY_LOOK_MS    32 /* longest pause between two tries */
/* Entries in one refill. Each submission moves a cache line from the receiving CPU and back. */
#define FILL_BATCH	    64u
#define RX_FRAMES_A_QUEUE   1024u
#define RX_FRAMES_TOTAL	    4096u
#define RX_FRAMES_A_QUEUE_MIN 128u

u32 xsk_rx_frames(u32 queues)
{
	u32 each = RX_FRAMES_A_QUEUE;

	while (each * queues > RX_FRAMES_TOTAL && each > RX_FRAMES_A_QUEUE_MIN)
		each /= 2;
	return each;
}

/*
 * Refills the fill ring with free frames, up to x->owed. The ring has room for all frames of a
 * queue, but the kernel publishes packets just before it frees their entries; frames that do not
 * fit stay owed.
 */
static void xsk_fill(struct xsk_set *s, struct xsk *x)
{
	u32 n = x->owed;
	u32 room = xsk_prod_nb_free(&x->fill, n);
	u32 idx, done = 0;

	n = n < room ? n : room;
	n = n < s->umem->rx_free_count ? n : s->umem->rx_free_count;
	if (n == 0 || xsk_ring_prod__reserve(&x->fill, n, &idx) != n)
		return;
	for (; done < n; done++)
		*xsk_ring_prod__fill_addr(&x->fill, idx + done) = umem_rx_take(s->umem);
	xsk_ring_prod__submit(&x->fill, n);
	x->owed -= n;
	xsk_before_need_wakeup(s);
	/* only zero-copy drivers set it */
	if (xsk_ring_prod__needs_wakeup(&x->fill))
		kernel_xsk_receive(x->fd);
}

static int make_kernel_umem(struct xsk_set *s, u32 fill_size)
{
	const struct xsk_umem_config config = {
		.fill_size = fill_size,
		.comp_size = XSK_TX_RING,
		.frame_size = UMEM_CHUNK,
		.frame_headroom = 0,
	};

	return xsk_umem__create(&s->kernel_umem, s->umem->area, s->umem->bytes, &s->xsk[0].fill,
				&s->xsk[0].completion, &config);
}

static int open_one(struct xsk_set *s, u32 i, const char *ifname, u32 ring_size, u16 bind_flags)
{
	const struct xsk_socket_config config = {
		.rx_size = ring_size,
		.tx_size = XSK_TX_RING,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = bind_flags,
	};
	struct xsk *x = &s->xsk[i];
	int err;

	err = xsk_socket__create_shared(&x->socket, ifname, xsk_queue(s, i), s->kernel_umem, &x->rx,
					&x->tx, &x->fill, &x->completion, &config);
	if (err) {
		x->socket = NULL;
		/* without a descriptor glibc's if_nametoindex() fails with ENOENT (libxdp) */
		return err == -ENOENT ? -EMFILE : err;
	}
	x->fd = xsk_socket__fd(x->socket);
	kernel_xsk_tune(x->fd);
	return 0;
}

static int open_all(struct xsk_set *s, const char *ifname, u16 bind_flags)
{
	u32 each = s->umem->rx_frames / s->count;
	int err = make_kernel_umem(s, each);

	if (err) {
		s->kernel_umem = NULL;
		return err;
	}
	for (u32 i = 0; i < s->count; i++) {
		err = open_one(s, i, ifname, each, bind_flags);
		if (err)
			return err;
	}
	return 0;
}

/* A ring as its socket has mapped it: from its first word to its last entry, in whole pages. */
struct xsk_mapping {
	void *at;
	u64 bytes;
};

static struct xsk_mapping xsk_mapping_of(const u32 *producer, const void *ring, u32 size,
					 size_t entry)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t begin = (uintptr_t)producer & ~(page - 1);
	const uintptr_t end = ((uintptr_t)ring + size * entry + page - 1) & ~(page - 1);

	return (struct xsk_mapping){ (void *)begin, end - begin };
}

static void xsk_mappings(const struct xsk *x, struct xsk_mapping m[4])
{
	m[0] = xsk_mapping_of(x->rx.producer, x->rx.ring, x->rx.size, sizeof(struct xdp_desc));
	m[1] = xsk_mapping_of(x->tx.producer, x->tx.ring, x->tx.size, sizeof(struct xdp_desc));
	m[2] = xsk_mapping_of(x->fill.producer, x->fill.ring, x->fill.size, sizeof(u64));
	m[3] = xsk_mapping_of(x->completion.producer, x->completion.ring, x->completion.size,
			      sizeof(u64));
}

/* The kernel closes a socket once neither a descriptor nor a mapping refers to it. */
void xsk_lose(struct xsk_set *s)
{
	const int never_fd = xsk_is_ring(s) || s->is_lost ? -1 : kernel_event_make(false);
	struct xsk_mapping m[4];

	if (never_fd < 0)
		return;
	s->is_lost = true;
	for (u32 i = 0; i < s->count; i++) {
		xsk_mappings(&s->xsk[i], m);
		for (u32 j = 0; j < ARRAY_SIZE(m); j++)
			kernel_memory_make_private(m[j].at, m[j].bytes);
		kernel_replace(never_fd, s->xsk[i].fd);
	}
	kernel_close(never_fd);
}

/* libxdp unmaps only what belongs to a socket. */
static void xsk_unmap_lost(const struct xsk_set *s)
{
	struct xsk_mapping m[4];

	for (u32 i = 0; i < s->count; i++) {
		xsk_mappings(&s->xsk[i], m);
		for (u32 j = 0; j < ARRAY_SIZE(m); j++)
			kernel_memory_free(m[j].at, m[j].bytes);
	}
}

static void close_all(struct xsk_set *s)
{
	if (s->is_lost)
		xsk_unmap_lost(s);
	for (u32 i = s->count; i-- > 0;)
		if (s->xsk[i].socket)
			xsk_socket__delete(s->xsk[i].socket);
	/*
	 * Unmaps the first fill and completion ring if no socket took them: their structs must
	 * still be whole.
	 */
	if (s->kernel_umem)
		xsk_umem__delete(s->kernel_umem);
	s->kernel_umem = NULL;
	memset(s->xsk, 0, s->count * sizeof(*s->xsk));
}

static int open_when_free(struct xsk_set *s, const char *ifname, u16 bind_flags)
{
	const u64 end_ns = clock_now_ns() + XSK_BUSY_MS * NSEC_PER_MSEC;
	u64 now_ns;
	int err;

	for (u32 ms = 1;; ms = min_u32(2 * ms, XSK_BUSY_LOOK_MS)) {
		err = open_all(s, ifname, bind_flags);
		if (err)
			close_all(s);
		now_ns = clock_now_ns();
		if (err != -EBUSY || now_ns >= end_ns)
			return err;
		kernel_await(NULL, 0, now_ns + ms * NSEC_PER_MSEC);
	}
}

int xsk_open(struct xsk_set *s, struct umem *umem, const char *ifname, u32 first, u32 step,
	     u32 queues, bool try_zero_copy, struct xroce_sock *stats)
{
	/* Multi-buffer matters more than zero-copy: without it the path MTU halves. */
	static const u16 modes[] = { XDP_ZEROCOPY | XDP_USE_SG, XDP_COPY | XDP_USE_SG, XDP_ZEROCOPY,
				     XDP_COPY };
	int err = -EOPNOTSUPP;

	*s = (struct xsk_set){ .umem = umem,
			       .first = first,
			       .step = step,
			       .count = (queues - first + step - 1) / step };
	s->xsk = calloc(s->count, sizeof(*s->xsk));
	if (!s->xsk)
		return -ENOMEM;
	for (u32 i = 0; i < ARRAY_SIZE(modes); i++) {
		if (modes[i] & XDP_ZEROCOPY && !try_zero_copy)
			continue;
		err = open_when_free(s, ifname, modes[i] | XDP_USE_NEED_WAKEUP);
		if (err == 0) {
			s->zero_copy = modes[i] & XDP_ZEROCOPY;
			s->multibuffer = modes[i] & XDP_USE_SG;
			for (u32 j = 0; j < s->count; j++) {
				s->xsk[j].owed = umem->rx_frames / s->count;
				s->xsk[j].stats = &stats[xsk_queue(s, j)];
				xsk_fill(s, &s->xsk[j]);
			}
			return 0;
		}
		if (err == -EBUSY || err == -EPERM || err == -ENOMEM)
			break; /* no other mode would help */
	}
	xsk_close(s);
	return err;
}

int xsk_open_ring(struct xsk_set *s, int ring_fd, u32 ring_bytes, struct xroce_sock *stats)
{
	struct xsk *x = calloc(1, sizeof(*x));
	int err;

	*s = (struct xsk_set){
		.step = 1, .count = 1, .xsk = x, .multibuffer = true, .event_fd = -1,
		.ready_fd = -1
	};
	err = x ? rx_ring_open(&s->ring, ring_fd, ring_bytes) : -ENOMEM;
	if (err) {
		free(x);
		*s = (struct xsk_set){ 0 };
		return err;
	}
	x->fd = ring_fd;
	x->rx.producer = rx_ring_producer_word(&s->ring);
	x->stats = stats;
	atomic_store_explicit(&x->taken, (u32)s->ring.at, memory_order_relaxed);
	return 0;
}

u32 xsk_receive_frames(const struct xsk_set *s)
{
	return xsk_is_ring(s) ? rx_ring_frames(&s->ring) : s->umem->rx_frames / s->count;
}

/* The kernel's counters start at 0 with each socket. */
static void xsk_account_one(const struct xsk *x)
{
	struct xdp_statistics kernel = { 0 };

	if (kernel_xsk_count(x->fd, &kernel))
		return;
	x->stats->rx_ring_full = kernel.rx_ring_full;
	x->stats->rx_dropped = kernel.rx_dropped;
	x->stats->rx_fill_ring_empty = kernel.rx_fill_ring_empty_descs;
	x->stats->rx_invalid_descs = kernel.rx_invalid_descs;
	x->stats->tx_invalid_descs = kernel.tx_invalid_descs;
	x->stats->tx_ring_empty = kernel.tx_ring_empty_descs;
}

void xsk_account(struct xsk_set *s)
{
	for (u32 i = 0; i < s->count && !xsk_is_ring(s); i++)
		xsk_account_one(&s->xsk[i]);
	if (xsk_local(s))
		xsk_account(xsk_local(s));
}

/* Returns the number of complete unread frames. */
static u32 left_in(struct xsk *x)
{
	u32 idx = 0, n = xsk_ring_cons__peek(&x->rx, x->rx.size, &idx), frames = 0;

	for (u32 i = 0; i < n; i++)
		frames += !(xsk_ring_cons__rx_desc(&x->rx, idx + i)->options & XDP_PKT_CONTD);
	return frames;
}

static void xsk_close_ring(struct xsk_set *s)
{
	s->xsk->stats->rx_left += rx_ring_left(&s->ring);
	rx_ring_close(&s->ring);
	if (s->ready_fd >= 0)
		kernel_close(s->ready_fd);
	free(s->xsk);
	*s = (struct xsk_set){ 0 };
}

void xsk_close(struct xsk_set *s)
{
	if (xsk_is_ring(s)) {
		xsk_close_ring(s);
		return;
	}
	for (u32 i = 0; i < s->count && s->xsk; i++) {
		struct xsk *x = &s->xsk[i];

		if (!x->stats)
			continue;
		xsk_account_one(x);
		x->stats->rx_left += left_in(x);
	}
	if (s->xsk)
		close_all(s);
	free(s->xsk);
	*s = (struct xsk_set){ 0 };
}

void xsk_refill(struct xsk_set *s)
{
	for (u32 i = 0; i < s->count; i++)
		if (s->xsk[i].owed >= FILL_BATCH)
			xsk_fill(s, &s->xsk[i]);
	if (xsk_local(s))
		xsk_refill(xsk_local(s));
}

u32 xsk_local_polls(const struct xsk_set *s, struct pollfd *fds)
{
	u32 n = 0;

	for (s = xsk_local(s); s && n < XSK_LOCALS; s = xsk_local(s))
		fds[n++] = (struct pollfd){ .fd = s->xsk->fd, .events = POLLIN };
	return n;
}

int xsk_set_event(struct xsk_set *s, int event_fd)
{
	s->ready_fd = kernel_event_make(false);
	if (s->ready_fd < 0)
		return s->ready_fd;
	kernel_event_raise(s->ready_fd);
	s->event_fd = event_fd;
	return 0;
}

/*
 * A thread that watches the ring, and is counted in `watched`, empties the socket, then looks: a
 * packet that comes later sends a message again.
 */
static void xsk_poll_event(const struct xsk_set *s, struct pollfd *fd)
{
	kernel_drain(s->event_fd);
	/* pairs with the barrier after the producer's position in host_ring_reserve() */
	atomic_thread_fence(memory_order_seq_cst);
	*fd = (struct pollfd){ .fd = xsk_has_own_input(s) ? s->ready_fd : s->event_fd,
			       .events = POLLIN };
}

u32 xsk_polls(const struct xsk_set *s, struct pollfd *fds)
{
	u32 n = 0;

	if (xsk_is_ring(s) && s->event_fd >= 0) {
		xsk_poll_event(s, fds);
		return 1 + xsk_local_polls(s, fds + 1);
	}
	for (u32 i = 0; i < s->count; i++)
		fds[n++] = (struct pollfd){ .fd = s->xsk[i].fd, .events = POLLIN };
	return n + xsk_local_polls(s, fds + n);
}

void xsk_mark(struct xsk_set *s)
{
	for (u32 i = 0; i < s->count; i++)
		s->xsk[i].mark = atomic_load_explicit(shared_word(s->xsk[i].rx.producer),
						      memory_order_relaxed);
	if (xsk_local(s))
		xsk_mark(xsk_local(s));
}

bool xsk_is_past_mark(const struct xsk_set *s)
{
	for (u32 i = 0; i < s->count; i++)
		if ((s32)(atomic_load_explicit(&s->xsk[i].taken, memory_order_relaxed) -
			  s->xsk[i].mark) < 0)
			return false;
	return !xsk_local(s) || xsk_is_past_mark(xsk_local(s));
}

/* Reads the first of n descriptors. Returns its buffer, or NULL if it is outside the UMEM. */
static per_packet u8 *xsk_peek_buffer(struct xsk_set *s, struct xsk *x, u32 idx, u32 n,
				      struct xdp_desc *desc)
{
	*desc = *xsk_ring_cons__rx_desc(&x->rx, idx);
	if (n > 1)
		__builtin_prefetch(s->umem->area + xsk_ring_cons__rx_desc(&x->rx, idx + 1)->addr);
	return umem_rx_received(s->umem, desc->addr, desc->len);
}

static per_packet void xsk_count_unannounced(struct xsk *x, u32 n)
{
	atomic_store_explicit(&x->unannounced,
			      atomic_load_explicit(&x->unannounced, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Copies the CQE before the frame, if there is room for one. Returns false for a super-packet. */
static per_packet bool xsk_peek_hint(struct xsk *x, struct engine_frame *to, u64 room,
				     struct xroce_rx_cqe *hint)
{
	if (room < sizeof(*hint))
		return true;
	to->hint = memcpy(hint, to->frame.data - sizeof(*hint), sizeof(*hint));
	if (hint->flags & XROCE_RX_UNANNOUNCED)
		xsk_count_unannounced(x, 1);
	return !(hint->flags & XROCE_RX_GSO);
}

/* Records an odd packet with its buffers in part. Returns how many descriptors it has. */
static rare u32 xsk_peek_odd(struct xsk_batch *b, u32 i, u32 taken, u32 parts)
{
	b->odd |= 1ull << i;
	b->odd_first[i] = (u8)b->num_parts;
	b->odd_parts[i] = parts == taken ? (u8)parts : 0;
	b->num_parts += parts;
	b->frame[i].frame.data = NULL;
	return taken;
}

/*
 * Adds the packet that begins at idx, where n descriptors are available. Returns how many
 * descriptors it has. If the last available one does not end it, the packet is odd.
 */
static u32 xsk_peek_packet(struct xsk_set *s, struct xsk *x, struct xsk_batch *b, u32 idx, u32 n)
{
	const u32 i = b->n++;
	struct engine_frame *to = &b->frame[i];
	struct segment_part *part = &b->part[b->num_parts];
	struct xdp_desc desc;
	u8 *data = xsk_peek_buffer(s, x, idx, n, &desc);
	u32 taken = 1, parts = 0;
	bool one;

	*to = (struct engine_frame){ .frame = { .data = data, .len = desc.len } };
	one = data && xsk_peek_hint(x, to, desc.addr % UMEM_CHUNK, &b->hint[i]);
	if (one && !(desc.options & XDP_PKT_CONTD))
		return 1;
	for (;; taken++) {
		if (likely(data != NULL))
			part[parts++] = (struct segment_part){ data, desc.len,
							       (u32)(desc.addr % UMEM_CHUNK) };
		if (!(desc.options & XDP_PKT_CONTD) || taken == n)
			break;
		data = xsk_peek_buffer(s, x, idx + taken, n - taken, &desc);
	}
	to->frame.frag = data;
	to->frame.frag_len = desc.len;
	if (likely(one && data && taken == 2 && !(desc.options & XDP_PKT_CONTD)))
		return 2;
	return xsk_peek_odd(b, i, taken, parts);
}

u32 xsk_peek_sockets(struct xsk_set *s, struct xsk *x, struct xsk_batch *b)
{
	u32 idx = 0, taken = 0;
	const u32 n = xsk_ring_cons__peek(&x->rx, ARRAY_SIZE(b->part), &idx);

	b->n = b->num_parts = 0;
	b->odd = 0;
	while (taken < n && taken < XSK_RX_BATCH)
		taken += xsk_peek_packet(s, x, b, idx + taken, n - taken);
	xsk_ring_cons__cancel(&x->rx, n - taken);
	b->taken = taken;
	return taken;
}

void xsk_release_sockets(struct xsk_set *s, struct xsk *x, const struct xsk_batch *b)
{
	for (u32 i = 0; i < b->n; i++)
		if (likely(b->frame[i].frame.data != NULL))
			umem_rx_release_frame(s->umem, &b->frame[i].frame);
	for (u32 i = 0; i < b->num_parts; i++)
		umem_rx_release(s->umem, (u64)(b->part[i].data - s->umem->area));
	xsk_ring_cons__release(&x->rx, b->taken);
	atomic_store_explicit(&x->taken,
			      atomic_load_explicit(&x->taken, memory_order_relaxed) + b->taken,
			      memory_order_relaxed);
	x->owed += b->taken;
	if (x->owed >= FILL_BATCH)
		xsk_fill(s, x);
}

/* ---- the ring buffer ---- */

u32 xsk_peek_ring(struct xsk_set *s, struct xsk *x, struct xsk_batch *b)
{
	b->n = b->num_parts = 0;
	b->odd = 0;
	rx_ring_peek(&s->ring, b);
	if (b->unannounced)
		xsk_count_unannounced(x, b->unannounced);
	return b->taken;
}

void xsk_release_ring(struct xsk_set *s, struct xsk *x)
{
	rx_ring_release(&s->ring);
	atomic_store_explicit(&x->taken, (u32)s->ring.at, memory_order_relaxed);
}

/*
 * Sends frames through the transmit ring of the shard's first AF_XDP socket. A frame longer than a
 * chunk leaves as two descriptors of one slot, which is free after the second completion.
 */

/*
 * Bounds the calls of one flush. Each call moves at least 32 descriptors; after twice the calls for
 * a full ring the interface takes nothing.
 */
#define FLUSH_CALLS_MAX (2 * XSK_TX_RING / 32)

struct tx_xsk {
	struct tx tx;
	struct xsk_set *set;
	struct xsk *x;
	struct xroce_engine_stats *stats;
	u32 unsubmitted; /* descriptors written, not yet visible to the kernel */
};

static struct tx_xsk *tx_xsk_of(struct tx *tx)
{
	return container_of(tx, struct tx_xsk, tx);
}

static void tx_xsk_reap(struct tx_xsk *t)
{
	u32 idx = 0, n = xsk_ring_cons__peek(&t->x->completion, XSK_TX_RING, &idx);

	for (u32 i = 0; i < n; i++)
		umem_tx_completed(t->set->umem,
				  *xsk_ring_cons__comp_addr(&t->x->completion, idx + i));
	if (n)
		xsk_ring_cons__release(&t->x->completion, n);
}

static u32 tx_xsk_room(struct tx *tx, u64 now_ns)
{
	struct tx_xsk *t = tx_xsk_of(tx);
	u32 descriptors;

	tx_xsk_reap(t);
	descriptors = xsk_prod_nb_free(&t->x->tx, XSK_TX_RING);
	return min_u32(t->set->umem->tx_free_count, descriptors / 2);
}

static u8 *tx_xsk_frame(struct tx *tx)
{
	return umem_tx_take(tx_xsk_of(tx)->set->umem);
}

static void tx_xsk_give_back(struct tx *tx, u8 *buf)
{
	umem_tx_release(tx_xsk_of(tx)->set->umem, buf);
}

static void tx_xsk_commit(struct tx *tx, u8 *buf, u32 len)
{
	struct tx_xsk *t = tx_xsk_of(tx);
	const bool two = len > UMEM_CHUNK;
	struct xdp_desc *desc;
	u32 idx;
	u64 addr;

	/* The ring has two descriptors for each slot, so this does not fail. */
	if (xsk_ring_prod__reserve(&t->x->tx, 1 + two, &idx) == 0) {
		umem_tx_release(t->set->umem, buf);
		return;
	}
	addr = umem_tx_send(t->set->umem, buf, 1 + two);
	desc = xsk_ring_prod__tx_desc(&t->x->tx, idx);
	*desc = (struct xdp_desc){ .addr = addr,
				   .len = two ? UMEM_CHUNK : len,
				   .options = two ? XDP_PKT_CONTD : 0 };
	if (two) {
		desc = xsk_ring_prod__tx_desc(&t->x->tx, idx + 1);
		*desc = (struct xdp_desc){ .addr = addr + UMEM_CHUNK, .len = len - UMEM_CHUNK };
	}
	t->unsubmitted += 1 + two;
	t->stats->tx_xsk++;
}

static bool ring_empty(const struct xsk_ring_prod *tx)
{
	/* acquire, here and below: pairs with the kernel's release (net/xdp/xsk_queue.h) */
	return atomic_load_explicit(shared_word(tx->consumer), memory_order_acquire) ==
	       *tx->producer;
}

/*
 * A call sends a budget of descriptors. It returns EAGAIN both if more are left and if memory is
 * short, so the ring shows the progress.
 */
static bool tx_xsk_flush(struct tx *tx)
{
	struct tx_xsk *t = tx_xsk_of(tx);
	struct xsk_ring_prod *ring = &t->x->tx;

	if (t->unsubmitted) {
		xsk_ring_prod__submit(ring, t->unsubmitted);
		t->unsubmitted = 0;
		xsk_before_need_wakeup(t->set);
	}
	for (u32 i = 0;
	     i < FLUSH_CALLS_MAX && !ring_empty(ring) && xsk_ring_prod__needs_wakeup(ring); i++) {
		u32 before =
			atomic_load_explicit(shared_word(ring->consumer), memory_order_relaxed);

		kernel_xsk_send(t->x->fd);
		if (atomic_load_explicit(shared_word(ring->consumer), memory_order_acquire) ==
		    before)
			break;
	}
	return ring_empty(ring) || !xsk_ring_prod__needs_wakeup(ring);
}

static void tx_xsk_close(struct tx *tx)
{
	free(tx_xsk_of(tx));
}

static const struct tx_ops ops = {
	.room = tx_xsk_room,
	.frame = tx_xsk_frame,
	.give_back = tx_xsk_give_back,
	.commit = tx_xsk_commit,
	.flush = tx_xsk_flush,
	.close = tx_xsk_close,
};

struct tx *tx_xsk_open(struct xsk_set *s, struct xroce_engine_stats *stats)
{
	struct tx_xsk *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->tx.ops = &ops;
	t->set = s;
	t->stats = stats;
	t->x = &s->xsk[0];
	return &t->tx;
}
