/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A BPF ring buffer that packets arrive in (xroce_ring, struct xroce_rx_record in xroce/abi.h), in
 * a process that shares its interface. The records are mapped read-only. All under the shard's
 * lock.
 *
 *   XDP on any CPU                            here
 *   reserve: header with its busy bit,        rx_ring_peek: load producer (acquire)
 *            store producer (release)           load each header (acquire); stop at a busy one
 *   write the record                          use the records in place
 *   commit: exchange the header's length      rx_ring_release: store consumer (release): frees the
 *                                               space for XDP
 */
#ifndef IO_RX_RING_H
#define IO_RX_RING_H

#include "../os/kernel.h"
#include "../engine/types.h"

struct xsk_batch;

struct rx_ring {
	struct ring_memory memory;
	unsigned long at;   /* position up to which records have been released */
	unsigned long next; /* end of the batch that was peeked last */
};

/* Returns 0, -EINVAL if the ring is not usable, or -errno. */
int rx_ring_open(struct rx_ring *r, int fd, u32 bytes);
void rx_ring_close(struct rx_ring *r);

/*
 * Adds the next records to the empty batch b: up to XSK_RX_BATCH, and up to an eighth of the ring
 * plus a record. A record that is no packet becomes an odd one without parts. Sets b->unannounced
 * (packets with XROCE_RX_UNANNOUNCED) and b->taken (bytes). Unless b->taken is 0, rx_ring_release()
 * must follow.
 */
void rx_ring_peek(struct rx_ring *r, struct xsk_batch *b);
void rx_ring_release(struct rx_ring *r);
/* Returns the number of complete records that have not been taken. */
u32 rx_ring_left(const struct rx_ring *r);

/* Returns how many frames with the largest payload and the longest headers the ring holds. */
u32 rx_ring_frames(const struct rx_ring *r);

/*
 * Returns the address of the producer position's lower half, which moves with each record, to be
 * read like the producer of an AF_XDP ring.
 */
static inline u32 *rx_ring_producer_word(const struct rx_ring *r)
{
	const bool big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	return (u32 *)(uintptr_t)r->memory.producer +
	       (big_endian ? sizeof(*r->memory.producer) / sizeof(u32) - 1 : 0);
}

#endif
