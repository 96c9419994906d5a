/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads records of a ring buffer as a batch of packets; see rx_ring.h. XDP writes the lengths in
 * the ring, but they are checked: nothing is read beyond the producer's position.
 */
#include "rx_ring.h"

#include <linux/bpf.h>
#include <linux/if_ether.h>

#include "xsk.h"

/* What the kernel writes before each record, at a multiple of 8. */
struct rx_ring_header {
	u32 len; /* with BPF_RINGBUF_BUSY_BIT and BPF_RINGBUF_DISCARD_BIT */
	u32 page;
};
_Static_assert(sizeof(struct rx_ring_header) == BPF_RINGBUF_HDR_SZ, "the kernel's");

#define RECORD_ALIGN 8ul
#define BYTES_MIN    4096u
#define BYTES_MAX    (1u << 30) /* positions are compared in 32 bits */
/* The size of a record with the longest packet: whole cache lines (bpf/deliver.h). */
#define FULL_RECORD                                                                                \
	((sizeof(struct rx_ring_header) + sizeof(struct xroce_rx_record) + PACKET_FRAME_MAX +      \
	  CACHE_LINE - 1) & -CACHE_LINE)
/* Prefetch distance in records, most of which have the same size. */
#define AHEAD	     4u

int rx_ring_open(struct rx_ring *r, int fd, u32 bytes)
{
	unsigned long there;
	int err;

	*r = (struct rx_ring){ 0 };
	if (bytes < BYTES_MIN || bytes > BYTES_MAX || bytes & (bytes - 1))
		return -EINVAL;
	err = kernel_ring_map(fd, bytes, &r->memory);
	if (err) {
		r->memory = (struct ring_memory){ 0 };
		return err;
	}
	r->at = r->next = atomic_load_explicit(shared_word(r->memory.consumer),
					       memory_order_relaxed);
	there = atomic_load_explicit(shared_word(r->memory.producer), memory_order_relaxed) - r->at;
	if (!(r->at % RECORD_ALIGN) && there <= bytes)
		return 0;
	rx_ring_close(r);
	return -EINVAL;
}

void rx_ring_close(struct rx_ring *r)
{
	kernel_ring_unmap(&r->memory);
	*r = (struct rx_ring){ 0 };
}

/* ---- records ---- */

static const struct rx_ring_header *rx_ring_at(const struct rx_ring *r, unsigned long at)
{
	return (const struct rx_ring_header *)(r->memory.data + (at & (r->memory.bytes - 1)));
}

/* Returns how many bytes are reserved from position at on: at most the ring's size. */
static unsigned long rx_ring_there(const struct rx_ring *r, unsigned long at)
{
	/* acquire: pairs with the release in the kernel's bpf_ringbuf_reserve() */
	const unsigned long there =
		atomic_load_explicit(shared_word(r->memory.producer), memory_order_acquire) - at;

	return there <= r->memory.bytes ? there : 0;
}

/*
 * Reads the header of a record of which `there` bytes are in the ring. Sets its length in *len and
 * its size in the ring in *bytes; a record that does not fit takes the rest. Returns false if it is
 * still being written.
 */
static per_packet bool rx_ring_header(const struct rx_ring_header *header, unsigned long there,
				      u32 *len, unsigned long *bytes)
{
	/* acquire: pairs with the exchange in the kernel's commit */
	*len = atomic_load_explicit(shared_word(&header->len), memory_order_acquire);
	*bytes = ((*len & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT)) + sizeof(*header) +
		  RECORD_ALIGN - 1) & ~(RECORD_ALIGN - 1);
	if (unlikely(*bytes > there)) {
		*bytes = there;
		*len &= BPF_RINGBUF_BUSY_BIT; /* no record */
	}
	return !(*len & BPF_RINGBUF_BUSY_BIT);
}

static rare void rx_ring_take_odd(struct xsk_batch *b, u32 i, const u8 *data, u32 len)
{
	b->odd |= 1ull << i;
	b->odd_first[i] = (u8)b->num_parts;
	b->odd_parts[i] = data != NULL;
	b->frame[i].frame.data = NULL;
	if (data)
		/* room 0: the ring is read-only */
		b->part[b->num_parts++] = (struct segment_part){ (u8 *)(uintptr_t)data, len, 0 };
}

/* Adds the packet of a record with len bytes. Returns the flags of its hint. */
static per_packet u32 rx_ring_take(struct xsk_batch *b, const struct xroce_rx_record *record,
				   u32 len)
{
	const u32 i = b->n++;
	u32 frame_len;

	if (unlikely(len < sizeof(*record) + ETH_HLEN)) {
		rx_ring_take_odd(b, i, NULL, 0);
		return 0;
	}
	frame_len = record->len;
	if (unlikely(frame_len < ETH_HLEN || frame_len > len - sizeof(*record))) {
		rx_ring_take_odd(b, i, NULL, 0);
		return 0;
	}
	b->frame[i] = (struct engine_frame){ .frame = { .data = record->frame, .len = frame_len },
					     .hint = &record->cqe };
	if (unlikely(record->cqe.flags & XROCE_RX_GSO))
		rx_ring_take_odd(b, i, record->frame, frame_len);
	return record->cqe.flags;
}

void rx_ring_peek(struct rx_ring *r, struct xsk_batch *b)
{
	const unsigned long there = rx_ring_there(r, r->at), most = r->memory.bytes / 8;
	unsigned long passed = 0, bytes;
	u32 len, marked = 0;

	while (b->n < XSK_RX_BATCH && passed < there && passed < most) {
		const struct rx_ring_header *header = rx_ring_at(r, r->at + passed);

		if (unlikely(!rx_ring_header(header, there - passed, &len, &bytes)))
			break;
		__builtin_prefetch(rx_ring_at(r, r->at + passed + AHEAD * bytes));
		__builtin_prefetch((const u8 *)rx_ring_at(r, r->at + passed + AHEAD * bytes) +
				   CACHE_LINE);
		if (likely(!(len & BPF_RINGBUF_DISCARD_BIT)))
			marked += !!(rx_ring_take(b, (const struct xroce_rx_record *)(header + 1),
						  len) &
				     XROCE_RX_UNANNOUNCED);
		passed += bytes;
	}
	r->next = r->at + passed;
	b->unannounced = marked;
	b->taken = (u32)passed;
}

void rx_ring_release(struct rx_ring *r)
{
	r->at = r->next;
	/* release: pairs with the acquire in the kernel's bpf_ringbuf_reserve() */
	atomic_store_explicit(shared_word(r->memory.consumer), r->at, memory_order_release);
}

u32 rx_ring_left(const struct rx_ring *r)
{
	const unsigned long there = rx_ring_there(r, r->at);
	unsigned long passed = 0, bytes;
	u32 len, left = 0;

	for (; passed < there; passed += bytes) {
		if (!rx_ring_header(rx_ring_at(r, r->at + passed), there - passed, &len, &bytes))
			break;
		left += !(len & BPF_RINGBUF_DISCARD_BIT);
	}
	return left;
}

u32 rx_ring_frames(const struct rx_ring *r)
{
	return (u32)((r->memory.bytes - 1) / FULL_RECORD);
}
