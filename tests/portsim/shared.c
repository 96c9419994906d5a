/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A ring buffer for packets as in the kernel, and a way out; see shared.h. The producer's position
 * is stored as a processor does it, late unless a barrier follows. The next CPU that reserves waits
 * for that, as for the kernel's lock. A commit is a full barrier, and wakes the pollers of the ring
 * only if its flags ask for that.
 */
#define _GNU_SOURCE
#include "shared.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../user/os/kernel.h"
#include "../../user/io/xsk.h"

#define RING_BYTES_MAX (1u << 20)

struct packet_ring {
	int fd;
	u32 bytes;
	unsigned long consumer, producer;
	unsigned long reserved; /* the kernel's own */
	u8 *data;		/* twice in a row */
};

static struct packet_ring rings[NICS];

/* The same bytes twice, kept for the next run. */
static u8 *memory_of(struct packet_ring *r, u32 bytes)
{
	int fd;

	if (r->data && r->bytes == bytes)
		return r->data;
	if (r->data)
		munmap(r->data, 2ul * r->bytes);
	fd = memfd_create("ring", MFD_CLOEXEC);
	r->data = mmap(NULL, 2ul * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sim_check(fd >= 0 && ftruncate(fd, bytes) == 0 && r->data != MAP_FAILED);
	for (u32 i = 0; i < 2; i++)
		sim_check(mmap(r->data + i * (size_t)bytes, bytes, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	close(fd);
	return r->data;
}

int shared_ring_make(struct nic *n, u32 bytes)
{
	struct packet_ring *r = nic_get(0) == n ? &rings[0] : &rings[1];
	/* the lower half of the position is about to wrap */
	const unsigned long start = 0xffff0000ul;

	*r = (struct packet_ring){ .data = memory_of(r, bytes), .bytes = bytes,
				   .consumer = start, .producer = start, .reserved = start };
	r->fd = fd_open(FD_PACKETS, r);
	nic_maps(n)->packets = r;
	return r->fd;
}

bool packets_are_readable(const void *object)
{
	const struct packet_ring *r = object;

	return r->producer != r->consumer;
}


/* ---- the port's end ---- */

int kernel_ring_map(int fd, u32 bytes, struct ring_memory *out)
{
	struct packet_ring *r = fd_object(fd, FD_PACKETS);

	sim_check(bytes == r->bytes);
	*out = (struct ring_memory){ &r->consumer, &r->producer, r->data, bytes };
	return 0;
}

void kernel_ring_unmap(const struct ring_memory *memory)
{
}

/* ---- the program's ---- */

static struct packet_ring *ring_of(const void *record)
{
	for (u32 i = 0; i < NICS; i++)
		if ((const u8 *)record >= rings[i].data &&
		    (const u8 *)record < rings[i].data + 2ul * rings[i].bytes)
			return &rings[i];
	sched_fail("a record of no ring");
}

void *bpf_ringbuf_reserve(const void *map, __u64 size, __u64 flags);
void *bpf_ringbuf_reserve(const void *map, __u64 size, __u64 flags)
{
	struct packet_ring *r = xdp_packets();
	const u32 header[2] = { (u32)size | BPF_RINGBUF_BUSY_BIT };
	const u64 bytes = (size + sizeof(header) + 7) & ~7ull;
	u8 *at;

	sched_point("reserve");
	sched_drain();
	/* another CPU has the lock */
	while (r->producer != r->reserved)
		sched_give_way("lock of the ring");
	if (r->reserved + bytes - __atomic_load_n(&r->consumer, __ATOMIC_SEQ_CST) > r->bytes - 1)
		return NULL;
	at = r->data + (r->reserved & (r->bytes - 1));
	memcpy(at, header, sizeof(header));
	r->reserved += bytes;
	sched_store(&r->producer, sizeof(r->producer), r->reserved);
	sched_point("packet reserved");
	return at + sizeof(header);
}

static void commit(void *record, u32 discarded, u64 flags)
{
	struct packet_ring *r = ring_of(record);
	u32 *len = (u32 *)((u8 *)record - BPF_RINGBUF_HDR_SZ);

	sched_point("commit");
	sched_drain();
	*len = (*len & ~BPF_RINGBUF_BUSY_BIT) | discarded;
	if (flags & BPF_RB_FORCE_WAKEUP)
		fd_notify(r->fd);
	sched_point("committed");
}

void bpf_ringbuf_submit(void *record, __u64 flags);
void bpf_ringbuf_submit(void *record, __u64 flags)
{
	commit(record, 0, flags);
}

void bpf_ringbuf_discard(void *record, __u64 flags);
void bpf_ringbuf_discard(void *record, __u64 flags)
{
	commit(record, BPF_RINGBUF_DISCARD_BIT, flags);
}

/* ---- the way out ---- */

struct way_out {
	struct tx tx;
	struct nic *nic;
	u8 *free[XSK_TX_SLOTS];
	u32 num_free;
	struct {
		u8 *frame;
		u32 len;
	} queued[XSK_TX_SLOTS];
	u32 num_queued;
	u8 frames[XSK_TX_SLOTS][UMEM_TX_SLOT_BYTES];
};

static struct way_out *way_of(struct tx *tx)
{
	return container_of(tx, struct way_out, tx);
}

static u32 way_room(struct tx *tx, u64 now_ns)
{
	return way_of(tx)->num_free;
}

static u8 *way_frame(struct tx *tx)
{
	struct way_out *w = way_of(tx);

	return w->num_free ? w->free[--w->num_free] : NULL;
}

static void way_give_back(struct tx *tx, u8 *frame)
{
	struct way_out *w = way_of(tx);

	w->free[w->num_free++] = frame;
}

static void way_commit(struct tx *tx, u8 *frame, u32 len)
{
	struct way_out *w = way_of(tx);

	w->queued[w->num_queued].frame = frame;
	w->queued[w->num_queued++].len = len;
}

/* A call to write for each; the device may take none for a while. */
static bool way_flush(struct tx *tx)
{
	struct way_out *w = way_of(tx);
	u32 sent = 0;

	while (sent < w->num_queued && nic_send(w->nic, w->queued[sent].frame, w->queued[sent].len))
		way_give_back(tx, w->queued[sent++].frame);
	w->num_queued -= sent;
	memmove(w->queued, w->queued + sent, w->num_queued * sizeof(*w->queued));
	return w->num_queued == 0;
}

static void way_close(struct tx *tx)
{
	free(way_of(tx));
}

static const struct tx_ops way_ops = { way_room, way_frame, way_give_back, way_commit, NULL,
				       way_flush, way_close };

struct tx *shared_tx_open(struct nic *n)
{
	struct way_out *w = malloc(sizeof(*w));

	sim_check(w);
	w->tx.ops = &way_ops;
	w->nic = n;
	w->num_free = w->num_queued = 0;
	for (u32 i = 0; i < XSK_TX_SLOTS; i++)
		way_give_back(&w->tx, w->frames[i]);
	return &w->tx;
}
