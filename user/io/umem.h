/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frames of a UMEM and the owner of each frame. umem.c is the only file that changes an owner.
 *
 *   receive frame (one chunk)
 *   FREE --umem_rx_take-----> FILL    in a fill ring
 *   FILL --umem_rx_received-> HELD    pump and engine
 *   HELD --umem_rx_release--> FREE
 *
 *   transmit slot (two chunks in a row)
 *   FREE --umem_tx_take-----> HELD    the engine writes it, or it waits for the loopback
 *   HELD --umem_tx_send-----> KERNEL  in the transmit ring or beyond
 *   KERNEL --umem_tx_completed, for its last descriptor--> FREE
 *   HELD --umem_tx_release--> FREE
 *
 * Chunks are 4096 bytes, the largest size that every kernel takes. A frame with 4096 bytes of
 * payload needs two: it is received in two receive frames, and sent from one slot as two
 * descriptors. Both free lists are last in, first out, and the UMEM is small, because the cache
 * limits AF_XDP at large frames.
 *
 * Each shard has its own UMEM: all functions are called under the shard's lock.
 */
#ifndef IO_UMEM_H
#define IO_UMEM_H

#include "../engine/packet.h"
#include "../engine/types.h"

#define UMEM_CHUNK	   4096u
#define UMEM_TX_SLOT_BYTES (2 * UMEM_CHUNK)
#define UMEM_NONE	   UINT64_MAX
_Static_assert(PACKET_FRAME_MAX <= UMEM_TX_SLOT_BYTES, "a slot holds any frame in one piece");

struct umem {
	u8 *area; /* a shared mapping, which fork() does not copy */
	u64 bytes;
	u32 rx_frames;	 /* chunks 0 .. rx_frames - 1 */
	u32 tx_slots;	 /* in the chunks after the receive frames, two each */
	u8 *rx_owner;	 /* enum umem_owner of each receive frame */
	u8 *tx_owner;	 /* of each slot */
	u8 *tx_pending;	 /* descriptors of the slot that the kernel has not completed */
	u32 *rx_free;
	u32 rx_free_count;
	u32 *tx_free;
	u32 tx_free_count;
	u32 tx_kernel_count; /* slots that the kernel owns */
};

enum umem_owner { UMEM_FREE = 0, UMEM_FILL, UMEM_HELD, UMEM_KERNEL };

/* Returns 0 or -errno. Touches the memory, so that no packet waits for a page fault. */
int umem_create(struct umem *u, u32 rx_frames, u32 tx_slots);
void umem_destroy(struct umem *u);

/* Takes a free receive frame, to be put into a fill ring at once. Returns UMEM_NONE if none. */
u64 umem_rx_take(struct umem *u);
/*
 * Takes over the buffer of a descriptor from a receive ring. Returns its data, or NULL if (addr,
 * len) is not within a frame that is in a fill ring.
 */
u8 *umem_rx_received(struct umem *u, u64 addr, u32 len);
/* Frees the frame of a descriptor that umem_rx_received() accepted. */
void umem_rx_release(struct umem *u, u64 addr);
/* Frees the one or two frames of a packet. */
static inline void umem_rx_release_frame(struct umem *u, const struct rx_frame *frame)
{
	umem_rx_release(u, (u64)(frame->data - u->area));
	if (frame->frag)
		umem_rx_release(u, (u64)(frame->frag - u->area));
}

/* Returns a free slot of UMEM_TX_SLOT_BYTES, or NULL. */
u8 *umem_tx_take(struct umem *u);
void umem_tx_release(struct umem *u, u8 *frame);
/* Hands the slot to the kernel as 1 or 2 descriptors. Returns the address of the first. */
u64 umem_tx_send(struct umem *u, u8 *frame, u32 descriptors);
/* Records the completion of one descriptor. Returns false if the address was not in flight. */
bool umem_tx_completed(struct umem *u, u64 addr);

#endif
