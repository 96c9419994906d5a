/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The AF_XDP sockets of a shard, one on each of its receive queues, all on the shard's UMEM; what
 * comes in through them. Or, in a process that shares its interface with others, a ring buffer
 * (rx_ring.h) as the only receive queue, with neither sockets nor UMEM. All of it under the shard's
 * lock, but for the descriptors, which any thread may poll.
 */
#ifndef IO_XSK_H
#define IO_XSK_H

#include <stdatomic.h>
#include <xdp/xsk.h>
#include <xroce/abi.h>

#include "../engine/engine.h"
#include "../engine/gso.h"
#include "rx_ring.h"
#include "umem.h"

/*
 * One socket. Its four rings are shared with the kernel, one producer and one consumer each;
 * libxdp's helpers have the barriers. Or the ring buffer: fd is its own, rx.producer a half of its
 * producer's position, and positions are in bytes, not in descriptors.
 */
struct xsk {
	struct xsk_socket *socket;
	int fd;
	struct xsk_ring_prod fill;
	struct xsk_ring_cons completion;
	struct xsk_ring_cons rx;
	struct xsk_ring_prod tx;
	u32 owed;	 /* places that the fill ring could have more */
	_Atomic u64 unannounced; /* packets marked so that have come; any thread reads it */
	struct xroce_sock *stats; /* its element of the map, or memory of the caller's */
	/* the receive ring's index up to which it was emptied; any thread reads it */
	_Atomic u32 taken;
	u32 mark;	/* up to which it was filled at xsk_mark() */
};

struct xsk_set {
	struct umem *umem;
	struct xsk_umem *kernel_umem;
	u32 first, step; /* receive queues first, first + step ... */
	u32 count;
	struct xsk *xsk; /* count of them; [0] sends */
	struct rx_ring ring; /* in place of sockets: xsk_is_ring() */
	/*
	 * Another set, of one queue, and by its own another: that by which packets of other
	 * processes of the interface come, with a UMEM of its own, and the ring buffer of copies.
	 * NULL: none has come yet. They stay until this one is closed. Any thread reads it
	 */
	struct xsk_set *_Atomic local;
	bool zero_copy;
	bool multibuffer;
};

#define XSK_TX_RING	256u
#define XSK_TX_SLOTS	128u /* what is in flight at most: fits the rings of a veth or NIC (256) */

/* acquire: pairs with the release in xsk_join() */
static inline struct xsk_set *xsk_local(const struct xsk_set *s)
{
	return atomic_load_explicit(&((struct xsk_set *)s)->local, memory_order_acquire);
}

static inline u32 xsk_queue(const struct xsk_set *s, u32 i)
{
	return s->first + i * s->step;
}

/* Receive frames for each queue of an interface with that many; a fill ring holds as many. */
u32 xsk_rx_frames(u32 queues);

/*
 * Open the sockets of every step-th of the interface's queues, from first on: the first of
 * zero-copy (if try_zero_copy) or copy, with or without multi-buffer, that the kernel takes. A
 * socket that was closed a moment ago may still hold its queue: waits for it up to XSK_BUSY_MS.
 * stats: an element for each of the interface's queues. Returns 0 or -errno of the last attempt.
 */
int xsk_open(struct xsk_set *s, struct umem *umem, const char *ifname, u32 first, u32 step,
	     u32 queues, bool try_zero_copy, struct xroce_sock *stats);
/*
 * Receive by a ring buffer of that many bytes instead: one queue, number 0, that sends nothing.
 * stats: its element. The descriptor stays the caller's, to be closed after xsk_close(). Returns 0,
 * -EINVAL if it is no such ring, or -errno.
 */
int xsk_open_ring(struct xsk_set *s, int ring_fd, u32 ring_bytes, struct xroce_sock *stats);
/*
 * Counts what lies in the receive rings as left. Nothing must be redirected to the sockets, or
 * written to the ring buffer, any more.
 */
void xsk_close(struct xsk_set *s);

/* XDP wakes nobody for what it writes to the ring buffer, unless it is told to (xroce_vector). */
static inline bool xsk_is_ring(const struct xsk_set *s)
{
	return s->ring.memory.data;
}

/* Frames with the largest payload that each of the receive queues holds. */
u32 xsk_receive_frames(const struct xsk_set *s);

/*
 * Between showing a ring's descriptors and reading its need_wakeup flag: the driver sets that and
 * then looks at the ring once more, its smp_mb() pairs with this. In copy mode it is always set.
 */
static inline void xsk_before_need_wakeup(const struct xsk_set *s)
{
	if (s->zero_copy)
		atomic_thread_fence(memory_order_seq_cst);
}

/* A look at the receive rings, as a hint; the local sets' are not among them. [any thread] */
static inline bool xsk_has_own_input(const struct xsk_set *s)
{
	for (u32 i = 0; i < s->count; i++)
		if (atomic_load_explicit(shared_word(s->xsk[i].rx.producer),
					 memory_order_relaxed) !=
		    atomic_load_explicit(&s->xsk[i].taken, memory_order_relaxed))
			return true;
	return false;
}

static inline bool xsk_has_local_input(const struct xsk_set *s)
{
	const struct xsk_set *local = xsk_local(s);

	for (; unlikely(local != NULL); local = xsk_local(local))
		if (xsk_has_own_input(local))
			return true;
	return false;
}

static inline bool xsk_has_input(const struct xsk_set *s)
{
	return xsk_has_own_input(s) || xsk_has_local_input(s);
}

/*
 * Packets of other processes of the interface, or copies, come by that set from here on, under the
 * shard's lock; it may be one of its sets already. It is closed after s.
 */
static inline void xsk_join(struct xsk_set *s, struct xsk_set *local)
{
	struct xsk_set *next;

	for (; s != local; s = next) {
		next = xsk_local(s);
		if (next)
			continue;
		/* release: pairs with the acquire in xsk_local() */
		atomic_store_explicit(&s->local, local, memory_order_release);
		return;
	}
}

/*
 * The descriptors that are readable when something has come, and POLLIN: at most XSK_POLLS of them.
 * Returns how many. [any thread]
 */
#define XSK_POLLS (XROCE_MAX_QUEUE + XSK_LOCALS)
#define XSK_LOCALS 2u /* sets beside it at most */
struct pollfd;
u32 xsk_polls(const struct xsk_set *s, struct pollfd *fds);
/* Of its local sets alone, which are XSK_LOCALS at most. */
u32 xsk_local_polls(const struct xsk_set *s, struct pollfd *fds);

/*
 * What lies in the receive rings now is marked; has all that was marked been taken? These and those
 * below are of the local sets as well.
 */
void xsk_mark(struct xsk_set *s);
bool xsk_is_past_mark(const struct xsk_set *s);

/* Descriptors that are taken at a time, and so packets at most; the last may have more buffers. */
#define XSK_RX_BATCH 64u

/*
 * Packets that have come, in their order; all their buffers are the caller's until xsk_release().
 * Packet i is frame[i], whose hint nobody changes meanwhile, unless it is odd: a super-packet,
 * whose hint says so, or one of more buffers than a frame has, or without an end. Of an odd one
 * frame[i] has no data; its buffers are odd_parts[i] of part, from odd_first[i] on, or 0 where a
 * descriptor names no buffer of ours, or a record of the ring buffer is none of a packet.
 */
struct xsk_batch {
	u32 n, taken; /* packets; descriptors, or bytes of the ring buffer */
	u64 odd;      /* packets, a bit each */
	u32 num_parts;
	u8 odd_first[XSK_RX_BATCH], odd_parts[XSK_RX_BATCH];
	struct engine_frame frame[XSK_RX_BATCH];
	struct xroce_rx_cqe hint[XSK_RX_BATCH];
	struct segment_part part[XSK_RX_BATCH - 1 + SEGMENTS_PARTS_MAX];
	u32 unannounced; /* packets that XDP has marked so; of the ring buffer's alone */
};

u32 xsk_peek_sockets(struct xsk_set *s, struct xsk *x, struct xsk_batch *b);
void xsk_release_sockets(struct xsk_set *s, struct xsk *x, const struct xsk_batch *b);
u32 xsk_peek_ring(struct xsk_set *s, struct xsk *x, struct xsk_batch *b);
void xsk_release_ring(struct xsk_set *s, struct xsk *x);

/*
 * The packets of the next XSK_RX_BATCH descriptors of x, of the last one all; the kernel shows
 * packets whole. Or those of the next records of the ring buffer. Returns what it took; unless that
 * is 0, xsk_release() comes next: the buffers are free, and the kernel gets places back, many at a
 * time. The caller keeps a frame by setting its data to NULL, and gives it back with
 * umem_rx_release_frame(); the ring buffer's cannot be kept.
 */
static inline u32 xsk_peek(struct xsk_set *s, struct xsk *x, struct xsk_batch *b)
{
	return xsk_is_ring(s) ? xsk_peek_ring(s, x, b) : xsk_peek_sockets(s, x, b);
}
static inline void xsk_release(struct xsk_set *s, struct xsk *x, const struct xsk_batch *b)
{
	x->stats->rx_frames += b->n;
	if (xsk_is_ring(s))
		xsk_release_ring(s, x);
	else
		xsk_release_sockets(s, x, b);
}
/*
 * Write what the kernel has counted into each socket's stats: a system call for each. Of a ring
 * buffer XDP counts what did not fit (ring_full).
 */
void xsk_account(struct xsk_set *s);
/*
 * Frames that were kept have been given back: the kernel gets its places, without which nothing
 * would come to be received.
 */
void xsk_refill(struct xsk_set *s);

#endif
