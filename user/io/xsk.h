/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The AF_XDP sockets of a shard, and reception through them: one socket on each of its receive
 * queues, all on the shard's UMEM. In a process that shares its interface, a ring buffer
 * (rx_ring.h) is the only receive queue, without sockets or UMEM. All of it is under the shard's
 * lock, except the descriptors, which any thread may poll.
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
 * libxdp's helpers have the barriers. For a ring buffer, fd is the ring's, rx.producer points to
 * half of its producer position, and positions count bytes, not descriptors.
 */
struct xsk {
	struct xsk_socket *socket;
	int fd;
	struct xsk_ring_prod fill;
	struct xsk_ring_cons completion;
	struct xsk_ring_cons rx;
	struct xsk_ring_prod tx;
	u32 owed;	 /* entries that the fill ring still has room for */
	/* packets received with XROCE_RX_UNANNOUNCED; any thread reads it */
	_Atomic u64 unannounced;
	struct xroce_sock *stats; /* its element of the map, or memory of the caller */
	/* receive ring index up to which it was emptied; any thread reads it */
	_Atomic u32 taken;
	u32 mark;	/* rx.producer at the last xsk_mark() */
};

struct xsk_set {
	struct umem *umem;
	struct xsk_umem *kernel_umem;
	u32 first, step; /* receive queues first, first + step, ... */
	u32 count;
	struct xsk *xsk; /* `count` of them; [0] sends */
	struct rx_ring ring; /* used instead of sockets if xsk_is_ring() */
	/*
	 * a socket that becomes readable with the ring, and a descriptor that is always readable;
	 * -1: the ring's own descriptor becomes readable
	 */
	int event_fd, ready_fd;
	bool copies; /* the ring has copies of frames that went elsewhere (bpf/sniff.h) */
	/*
	 * Next set of a list. Each set is a ring buffer: one for packets from other processes on
	 * the interface, one for copies. NULL: none yet. They stay until this set is closed. Any
	 * thread reads it.
	 */
	struct xsk_set *_Atomic local;
	bool zero_copy;
	bool multibuffer;
	bool is_lost; /* xsk_lose() has been called */
};

#define XSK_TX_RING	256u
#define XSK_TX_SLOTS	128u /* most frames in flight: fits the rings of a veth or NIC (256) */

/* acquire: pairs with the release in xsk_join() */
static inline struct xsk_set *xsk_local(const struct xsk_set *s)
{
	return atomic_load_explicit(&((struct xsk_set *)s)->local, memory_order_acquire);
}

static inline u32 xsk_queue(const struct xsk_set *s, u32 i)
{
	return s->first + i * s->step;
}

/*
 * Returns the number of receive frames for each queue of an interface with `queues` queues, and so
 * the size of a fill ring.
 */
u32 xsk_rx_frames(u32 queues);

/*
 * Opens the sockets of every step-th queue of the interface, starting at first. Uses the first mode
 * that the kernel accepts: zero-copy (if try_zero_copy) or copy, with or without multi-buffer. A
 * socket that was just closed may still hold its queue: waits for it up to XSK_BUSY_MS. stats has
 * an element for each queue of the interface. Returns 0 or -errno of the last attempt.
 */
int xsk_open(struct xsk_set *s, struct umem *umem, const char *ifname, u32 first, u32 step,
	     u32 queues, bool try_zero_copy, struct xroce_sock *stats);
/*
 * Receives through a ring buffer of ring_bytes instead: one queue, number 0, which cannot send.
 * stats is its element. The caller closes the descriptor after xsk_close(). Returns 0, -EINVAL if
 * it is not such a ring, or -errno.
 */
int xsk_open_ring(struct xsk_set *s, int ring_fd, u32 ring_bytes, struct xroce_sock *stats);
/*
 * Closes the set, and counts unread packets in the receive rings as rx_left. Nothing may be
 * redirected to the sockets or written to the ring buffer any more.
 */
void xsk_close(struct xsk_set *s);

/*
 * Releases the interface's queues, as the interface or the broker is gone: another process can open
 * sockets on them before xsk_close(). The rings become private memory with the same content, and
 * the descriptors are never readable. Does nothing for a ring buffer. If memory or descriptors are
 * short, the queues stay taken until xsk_close().
 */
void xsk_lose(struct xsk_set *s);

/* Returns whether a ring buffer is used; its records wake a thread only if xroce_vector asks. */
static inline bool xsk_is_ring(const struct xsk_set *s)
{
	return s->ring.memory.data;
}

/* Returns how many frames with the largest payload each receive queue holds. */
u32 xsk_receive_frames(const struct xsk_set *s);

/*
 * Fence between publishing a ring's descriptors and reading its need_wakeup flag. The driver sets
 * the flag and then checks the ring again; its smp_mb() pairs with this. In copy mode the flag is
 * always set.
 */
static inline void xsk_before_need_wakeup(const struct xsk_set *s)
{
	if (s->zero_copy)
		atomic_thread_fence(memory_order_seq_cst);
}

/* Returns whether the set's own receive rings may hold input; a hint. [any thread] */
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
 * Adds a local set, for packets or copies from other processes on the interface; does nothing if it
 * is in the list. Under the shard's lock. The local set must be closed after s.
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
 * Has xsk_polls() use a socket in place of the ring's descriptor, to which packets that arrive
 * while `watched` of xroce_vector is not 0 send a message. It stays the caller's. Returns 0 or
 * -errno.
 */
int xsk_set_event(struct xsk_set *s, int event_fd);
/*
 * Fills in descriptors that become readable on input, with POLLIN: at most XSK_POLLS of them.
 * Returns how many. [any thread]
 */
#define XSK_POLLS (XROCE_MAX_QUEUE + XSK_LOCALS)
#define XSK_LOCALS 2u /* most local sets of a set */
struct pollfd;
u32 xsk_polls(const struct xsk_set *s, struct pollfd *fds);
/* As xsk_polls(), for the local sets only: at most XSK_LOCALS. */
u32 xsk_local_polls(const struct xsk_set *s, struct pollfd *fds);

/*
 * xsk_mark() marks the current content of the receive rings; xsk_is_past_mark() returns whether all
 * of it has been taken. These two and the functions below include the local sets.
 */
void xsk_mark(struct xsk_set *s);
bool xsk_is_past_mark(const struct xsk_set *s);

/* Descriptors, and so at most packets, in one batch; the last packet may have more descriptors. */
#define XSK_RX_BATCH 64u

/*
 * Received packets in order; the caller owns all their buffers until xsk_release(). Packet i is
 * frame[i], whose hint does not change until then, unless the packet is odd: a super-packet (its
 * hint has XROCE_RX_GSO), a packet with more buffers than a frame holds, or one without an end. For
 * an odd packet frame[i] has no data; its buffers are odd_parts[i] elements of part, from
 * odd_first[i] on. odd_parts[i] is 0 if a descriptor names no buffer of the UMEM, or a ring buffer
 * record is no packet.
 */
struct xsk_batch {
	u32 n, taken; /* packets; descriptors, or bytes of the ring buffer */
	u64 odd;      /* a bitmap of packets */
	u32 num_parts;
	u8 odd_first[XSK_RX_BATCH], odd_parts[XSK_RX_BATCH];
	struct engine_frame frame[XSK_RX_BATCH];
	struct xroce_rx_cqe hint[XSK_RX_BATCH];
	struct segment_part part[XSK_RX_BATCH - 1 + SEGMENTS_PARTS_MAX];
	u32 unannounced; /* packets with XROCE_RX_UNANNOUNCED; ring buffer only */
};

u32 xsk_peek_sockets(struct xsk_set *s, struct xsk *x, struct xsk_batch *b);
void xsk_release_sockets(struct xsk_set *s, struct xsk *x, const struct xsk_batch *b);
u32 xsk_peek_ring(struct xsk_set *s, struct xsk *x, struct xsk_batch *b);
void xsk_release_ring(struct xsk_set *s, struct xsk *x);

/*
 * Takes the packets of the next XSK_RX_BATCH descriptors of x and the rest of the last packet,
 * which the kernel publishes whole; or the packets of the next records of the ring buffer. Returns
 * the number of descriptors or bytes taken. Unless that is 0, xsk_release() must follow: it frees
 * the buffers, and refills the fill ring many entries at a time. To keep a frame, the caller sets
 * its data to NULL, and later calls umem_rx_release_frame(); frames in the ring buffer cannot be
 * kept.
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
 * Writes the kernel's counters into each socket's stats, with one system call each. Drops at a full
 * ring buffer are counted by XDP (ring_full).
 */
void xsk_account(struct xsk_set *s);
/* Refills the fill rings after kept frames were released; an empty fill ring receives nothing. */
void xsk_refill(struct xsk_set *s);

#endif
