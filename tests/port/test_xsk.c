/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * xsk_peek() and xsk_release() on rings that are this test's own memory, with the test as the
 * kernel: each packet that it puts into the receive ring is in a batch once, and each buffer comes
 * back once, whatever the descriptors say.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <stdlib.h>

#include "../unit/unit.h"

#include "../../user/io/xsk.h"

#define RING   256u
#define FRAMES 128u
#define ROOM   256u /* in front of a packet, as AF_XDP has it */

static struct umem umem;
static struct xsk_set set;
static struct xsk xsk;
static struct xroce_sock stats;
static struct {
	u32 producer, consumer, flags;
	struct xdp_desc desc[RING];
} rx_ring;
static struct {
	u32 producer, consumer, flags;
	u64 addr[RING];
} fill_ring;

/* What the batches had. */
static struct {
	u32 frames, bytes;
	u32 supers, too_long, not_ours; /* odd ones */
	u32 super_bytes;
	bool keep;
	struct rx_frame kept[RING];
	u32 num_kept;
	u32 not_back; /* buffers that no descriptor has brought back */
} seen;

static void take_odd(const struct xsk_batch *b, u32 i)
{
	const struct engine_frame *f = &b->frame[i];

	assert_null(f->frame.data);
	if (!b->odd_parts[i]) {
		seen.not_ours++;
		return;
	}
	if (!f->hint || !(f->hint->flags & XROCE_RX_GSO)) {
		seen.too_long++;
		return;
	}
	seen.supers++;
	for (u32 p = b->odd_first[i]; p < b->odd_first[i] + b->odd_parts[i]; p++) {
		assert_int_equal(b->part[p].room, ROOM);
		seen.super_bytes += b->part[p].len;
	}
}

static void take_packets(struct xsk_batch *b)
{
	for (u32 i = 0; i < b->n; i++) {
		struct rx_frame *f = &b->frame[i].frame;

		if (b->odd >> i & 1) {
			take_odd(b, i);
			continue;
		}
		seen.frames++;
		seen.bytes += f->len + f->frag_len;
		if (!seen.keep)
			continue;
		seen.kept[seen.num_kept++] = *f;
		f->data = NULL;
	}
}

static int setup(void **state)
{
	memset(&seen, 0, sizeof(seen));
	memset(&stats, 0, sizeof(stats));
	memset(&rx_ring, 0, sizeof(rx_ring));
	memset(&fill_ring, 0, sizeof(fill_ring));
	assert_int_equal(umem_create(&umem, FRAMES, 1), 0);
	xsk = (struct xsk){
		.fd = -1,
		.stats = &stats,
		.rx = { .mask = RING - 1,
			.size = RING,
			.producer = &rx_ring.producer,
			.consumer = &rx_ring.consumer,
			.ring = rx_ring.desc,
			.flags = &rx_ring.flags },
		.fill = { .cached_cons = RING,
			  .mask = RING - 1,
			  .size = RING,
			  .producer = &fill_ring.producer,
			  .consumer = &fill_ring.consumer,
			  .ring = fill_ring.addr,
			  .flags = &fill_ring.flags },
	};
	set = (struct xsk_set){ .umem = &umem, .count = 1, .xsk = &xsk };
	return 0;
}

static int teardown(void **state)
{
	umem_destroy(&umem);
	return 0;
}

/* A descriptor as the kernel makes it, of a buffer that it was given. Returns the buffer. */
static u8 *put(u32 len, bool goes_on)
{
	const u64 addr = umem_rx_take(&umem) + ROOM;

	rx_ring.desc[rx_ring.producer++ & (RING - 1)] =
		(struct xdp_desc){ addr, len, goes_on ? 1 : 0 };
	memset(umem.area + addr - sizeof(struct xroce_rx_cqe), 0, sizeof(struct xroce_rx_cqe));
	return umem.area + addr;
}

static void put_raw(u64 addr, u32 len)
{
	rx_ring.desc[rx_ring.producer++ & (RING - 1)] = (struct xdp_desc){ addr, len, 0 };
}

/* Buffers that XDP says are a super-packet. */
static void put_super(u32 buffers)
{
	const struct xroce_rx_cqe cqe = { .flags = XROCE_RX_GSO };
	u8 *to = put(3840, buffers > 1);

	memcpy(to - sizeof(cqe), &cqe, sizeof(cqe));
	for (u32 i = 2; i <= buffers; i++)
		put(3840, i < buffers);
}

/*
 * All of it, and then: as many packets were taken as were put, each was in a batch, and every
 * buffer is back.
 */
static void receive_all(u32 packets)
{
	u32 rounds = 0;
	struct xsk_batch b;

	while (xsk_peek(&set, &xsk, &b)) {
		take_packets(&b);
		xsk_release(&set, &xsk, &b);
		assert_true(++rounds <= RING);
	}
	assert_false(xsk_has_input(&set));
	assert_int_equal(stats.rx_frames, packets);
	assert_int_equal(seen.frames + seen.supers + seen.too_long + seen.not_ours, packets);
	for (u32 i = 0; i < seen.num_kept; i++)
		umem_rx_release_frame(&umem, &seen.kept[i]);
	assert_int_equal(umem.rx_free_count + fill_ring.producer + seen.not_back, FRAMES);
}

static void xsk_peek__frames(void **state)
{
	for (u32 i = 0; i < 40; i++) {
		put(100 + i, false);
		put(3840, true);
		put(300, false);
	}
	receive_all(80);
	assert_int_equal(seen.frames, 80);
	assert_int_equal(seen.bytes, 40 * (100 + 3840 + 300) + 39 * 40 / 2);
}

static void xsk_peek__kept(void **state)
{
	seen.keep = true;
	put(100, false);
	put(3840, true);
	put(300, false);
	receive_all(2);
	assert_int_equal(seen.num_kept, 2);
}

/* More buffers than any packet has: one packet, whichever way it ends. */
static void xsk_peek__too_many_buffers(void **state)
{
	for (u32 n = 3; n <= SEGMENTS_PARTS_MAX + 3; n++) {
		setup(state);
		put(64, false);
		for (u32 i = 1; i < n; i++)
			put(200, true);
		put(200, false);
		put(64, false);
		receive_all(3);
		assert_int_equal(seen.frames, 2);
		assert_int_equal(seen.too_long, 1);
		if (n < SEGMENTS_PARTS_MAX + 3)
			teardown(state);
	}
}

/* Descriptors that the kernel would never write. */
static void xsk_peek__not_ours(void **state)
{
	u8 *part;

	put_raw((u64)FRAMES * UMEM_CHUNK, 64);	/* after the receive frames */
	put_raw(UINT64_MAX, 64);
	put_raw(5 * UMEM_CHUNK, 64);		/* a buffer that was not given */
	put(UMEM_CHUNK, false);			/* beyond its end */
	seen.not_back = 1;
	receive_all(4);
	assert_int_equal(seen.not_ours, 4);
	/* in the midst of a packet: of it the others come back */
	part = put(3840, true);
	put_raw((u64)(part - umem.area), 64); /* the same one again */
	put(64, false);
	receive_all(6);
	assert_int_equal(seen.frames, 1);
	assert_int_equal(seen.not_ours, 5);
}

static void xsk_peek__super_packets(void **state)
{
	put(64, false);
	put_super(SEGMENTS_PARTS_MAX);
	put(64, false);
	put_super(1);
	receive_all(4);
	assert_int_equal(seen.frames, 2);
	assert_int_equal(seen.supers, 2);
	assert_int_equal(seen.super_bytes, (SEGMENTS_PARTS_MAX + 1) * 3840);
}

/* The last packet of a batch is whole, whatever follows it. */
static void xsk_peek__last_is_long(void **state)
{
	for (u32 i = 1; i < XSK_RX_BATCH; i++)
		put(64, false);
	put_super(SEGMENTS_PARTS_MAX);
	put_super(SEGMENTS_PARTS_MAX);
	receive_all(XSK_RX_BATCH + 1);
	assert_int_equal(seen.frames, XSK_RX_BATCH - 1);
	assert_int_equal(seen.super_bytes, 2 * SEGMENTS_PARTS_MAX * 3840);
}

/* The kernel shows packets whole; one without an end is taken out of the ring all the same. */
static void xsk_peek__no_end(void **state)
{
	put(64, false);
	put(64, true);
	receive_all(2);
	assert_int_equal(seen.too_long, 1);
	for (u32 i = 0; i < FRAMES / 2; i++)
		put(64, true);
	receive_all(3);
	assert_int_equal(seen.too_long, 2);
}

/* ---- the kernel's sockets, in a network namespace of the test's own ---- */

#define IFACE "xsk0"

static void open_sockets(struct xsk_set *s, struct umem *u, struct xroce_sock *counted)
{
	assert_int_equal(umem_create(u, xsk_rx_frames(1), XSK_TX_SLOTS), 0);
	assert_int_equal(xsk_open(s, u, IFACE, 0, 1, 1, false, counted), 0);
}

/*
 * A set that has lost its interface leaves the queue to another one, is never readable, and is
 * closed as ever.
 */
static void xsk_lose__frees_the_queue(void **state)
{
	static struct xsk_set lost, next;
	static struct umem umem_of_lost, umem_of_next;
	static struct xroce_sock counted[2];
	struct pollfd p[XSK_POLLS];
	u32 filled;

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	assert_int_equal(system("ip link add " IFACE " type veth peer name xsk1 && "
				"ip link set " IFACE " up && ip link set xsk1 up"), 0);
	open_sockets(&lost, &umem_of_lost, &counted[0]);
	filled = *lost.xsk->fill.producer;
	assert_int_equal(filled, umem_of_lost.rx_frames);
	xsk_lose(&lost);
	open_sockets(&next, &umem_of_next, &counted[1]);
	assert_int_equal(*lost.xsk->fill.producer, filled);
	assert_false(xsk_has_input(&lost));
	assert_int_equal(xsk_polls(&lost, p), 1);
	assert_int_equal(poll(p, 1, 0), 0);
	xsk_lose(&lost);
	xsk_account(&lost);
	xsk_close(&lost);
	umem_destroy(&umem_of_lost);
	xsk_close(&next);
	umem_destroy(&umem_of_next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(xsk_peek__frames, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_peek__kept, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_peek__too_many_buffers, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_peek__not_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_peek__super_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_peek__last_is_long, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_peek__no_end, setup, teardown),
		cmocka_unit_test(xsk_lose__frees_the_queue),
	};

	return cmocka_run_group_tests_name("xsk", tests, NULL, NULL);
}
