/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A BPF ring buffer that packets come in by (xroce_ring, struct xroce_rx_record in xroce/abi.h), in
 * a process that shares its interface with others. The memory of its records is mapped to be read
 * only. All under the shard's lock.
 *
 *   XDP on any CPU                            here
 *   reserve: header with its busy bit,        rx_ring_peek: load producer (acquire)
 *            store producer (release)           load each header (acquire); busy: no further
 *   write the record                          the records are used where they lie
 *   commit: exchange the header's length      rx_ring_release: store consumer (release): the place
 *                                               is XDP's again
 */
#ifndef IO_RX_RING_H
#define IO_RX_RING_H

#include "../os/kernel.h"
#include "../engine/types.h"

struct xsk_batch;

struct rx_ring {
	struct ring_memory memory;
	unsigned long at;   /* up to where records have been released */
	unsigned long next; /* up to where they are in the batch that was peeked at last */
};

/* Returns 0, -EINVAL if this is no such ring, or -errno. */
int rx_ring_open(struct rx_ring *r, int fd, u32 bytes);
void rx_ring_close(struct rx_ring *r);

/*
 * Adds the records that come next to the batch, which is empty: up to XSK_RX_BATCH, and up to an
 * eighth of the ring or a record more. What is no record of a packet is an odd one without a part.
 * unannounced: how many of them have XROCE_RX_UNANNOUNCED. taken: the bytes that the batch takes;
 * unless that is 0, rx_ring_release() comes next.
 */
void rx_ring_peek(struct rx_ring *r, struct xsk_batch *b);
void rx_ring_release(struct rx_ring *r);
/* Records that nobody has taken. */
u32 rx_ring_left(const struct rx_ring *r);

/* Frames with the largest payload and the longest headers that the ring holds. */
u32 rx_ring_frames(const struct rx_ring *r);

/*
 * The lower half of the producer's position, which moves with each record: as the producer of an
 * AF_XDP ring is looked at.
 */
static inline u32 *rx_ring_producer_word(const struct rx_ring *r)
{
	const bool big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	return (u32 *)(uintptr_t)r->memory.producer +
	       (big_endian ? sizeof(*r->memory.producer) / sizeof(u32) - 1 : 0);
}

#endif
