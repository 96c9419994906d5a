/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A ring buffer for packets in memory of the test's, with the test as XDP and the kernel. As of a
 * real one, the reader has the data twice in a row, and can only read it: a write ends the test.
 */
#ifndef PORT_RX_RING_MEMORY_H
#define PORT_RX_RING_MEMORY_H

#include "../unit/unit.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/io/xsk.h"

struct rx_ring_memory {
	u8 *data;		 /* to be written */
	unsigned long consumer, producer;
	u32 bytes;
	struct ring_memory reader;
};

static inline void rx_ring_memory_make(struct rx_ring_memory *m, u32 bytes, unsigned long start)
{
	u8 *view = mmap(NULL, 2ul * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fd = memfd_create("ring", MFD_CLOEXEC);

	*m = (struct rx_ring_memory){ .bytes = bytes, .consumer = start, .producer = start };
	assert_return_code(ftruncate(fd, bytes), 0);
	m->data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(m->data, MAP_FAILED);
	for (u32 i = 0; i < 2; i++)
		assert_ptr_equal(mmap(view + i * (size_t)bytes, bytes, PROT_READ,
				      MAP_SHARED | MAP_FIXED, fd, 0),
				 view + i * (size_t)bytes);
	close(fd);
	m->reader = (struct ring_memory){ &m->consumer, &m->producer, view, bytes };
}

static inline void rx_ring_memory_free(struct rx_ring_memory *m)
{
	munmap(m->data, m->bytes);
	munmap((void *)(uintptr_t)m->reader.data, 2ul * m->bytes);
}

/* Sets the state that xsk_open_ring() makes. */
static inline void rx_ring_memory_open(struct rx_ring_memory *m, struct xsk_set *set, struct xsk *x,
				       struct xroce_sock *stats)
{
	*set = (struct xsk_set){ .step = 1, .count = 1, .xsk = x, .multibuffer = true };
	set->ring = (struct rx_ring){ .memory = m->reader, .at = m->consumer, .next = m->consumer };
	*x = (struct xsk){ .fd = -1,
			   .stats = stats,
			   .rx.producer = rx_ring_producer_word(&set->ring) };
	x->taken = (u32)m->consumer;
}

static inline void rx_ring_memory_write(struct rx_ring_memory *m, unsigned long at,
					const void *from, u32 len)
{
	for (u32 i = 0; i < len; i++)
		m->data[(at + i) & (m->bytes - 1)] = ((const u8 *)from)[i];
}

static inline u32 rx_ring_memory_room(u32 len)
{
	return (len + BPF_RINGBUF_HDR_SZ + 7) & ~7u;
}

/* Reserves a record of that length. Returns its place, UINT64_MAX if the ring is too full. */
static inline u64 rx_ring_memory_reserve(struct rx_ring_memory *m, u32 len)
{
	const u32 header[2] = { len | BPF_RINGBUF_BUSY_BIT };
	const unsigned long at = m->producer, next = at + rx_ring_memory_room(len);

	if (next - m->consumer > m->bytes - 1)
		return UINT64_MAX;
	rx_ring_memory_write(m, at, header, sizeof(header));
	m->producer = next;
	return at;
}

/* Commits the record, with BPF_RINGBUF_DISCARD_BIT in len or without. */
static inline void rx_ring_memory_commit(struct rx_ring_memory *m, u64 at, u32 len)
{
	rx_ring_memory_write(m, at, &len, sizeof(len));
}

/* A whole record: of a frame, with room for class bytes. Returns false if the ring is full. */
static inline bool rx_ring_memory_put(struct rx_ring_memory *m, const struct xroce_rx_cqe *cqe,
				      const void *frame, u32 len, u32 class)
{
	const struct xroce_rx_record record = { .cqe = *cqe, .len = len };
	const u64 at = rx_ring_memory_reserve(m, sizeof(record) + class);

	if (at == UINT64_MAX)
		return false;
	rx_ring_memory_write(m, at + BPF_RINGBUF_HDR_SZ, &record, sizeof(record));
	rx_ring_memory_write(m, at + BPF_RINGBUF_HDR_SZ + sizeof(record), frame, len);
	rx_ring_memory_commit(m, at, sizeof(record) + class);
	return true;
}

#endif
