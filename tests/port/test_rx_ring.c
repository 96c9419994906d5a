/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * xsk_peek() and xsk_release() on a ring buffer in this test's memory: each record is in a batch
 * once, whatever lengths are in it, and nothing is read beyond it or written to it.
 */
#define _GNU_SOURCE /* memfd_create() */
#include "rx_ring_memory.h"

#include "../unit/reference.h"

#define RING (64u << 10)
#define FRAME_MAX 1500u

static struct rx_ring_memory memory;
static struct xsk_set set;
static struct xsk xsk;
static struct xroce_sock stats;
static u64 seed;

/* Frames put and not yet taken: a frame's first bytes are its number. */
static struct {
	u32 number, len;
} queued[RING / 8];
static u32 put_count, taken_count;

static int setup(void **state)
{
	seed = 0x5eed;
	put_count = taken_count = 0;
	memset(&stats, 0, sizeof(stats));
	/* the lower half of the position wraps in each test, the ring many times */
	rx_ring_memory_make(&memory, RING, 0xffff8000ul);
	rx_ring_memory_open(&memory, &set, &xsk, &stats);
	return 0;
}

static int teardown(void **state)
{
	rx_ring_memory_free(&memory);
	return 0;
}

/* Puts a frame of that length, in a record with `more` more room. False if the ring is full. */
static bool put(u32 len, u32 more, u8 flags)
{
	const struct xroce_rx_cqe cqe = { .qpn = put_count, .flags = flags };
	u8 frame[1 << 16];

	memset(frame, (u8)put_count, len);
	memcpy(frame, &put_count, sizeof(put_count));
	if (!rx_ring_memory_put(&memory, &cqe, frame, len, len + more))
		return false;
	queued[put_count % ARRAY_SIZE(queued)].len = len;
	put_count++;
	return true;
}

/* A record of that length, all of it one byte, in which the frame's length is as said. */
static void put_raw(u32 len, u32 frame_len)
{
	const u64 at = rx_ring_memory_reserve(&memory, len);
	struct xroce_rx_record record;

	assert_int_not_equal(at, UINT64_MAX);
	memset(&record, 0, sizeof(record));
	record.len = frame_len;
	rx_ring_memory_write(&memory, at + BPF_RINGBUF_HDR_SZ, &record,
			     min_u32(len, sizeof(record)));
	rx_ring_memory_commit(&memory, at, len);
}

static void expect_frame(const u8 *data, u32 len)
{
	assert_int_equal(len, queued[taken_count % ARRAY_SIZE(queued)].len);
	assert_memory_equal(data, &taken_count, sizeof(taken_count));
	for (u32 i = sizeof(taken_count); i < len; i++)
		assert_int_equal(data[i], (u8)taken_count);
	taken_count++;
}

/* Of the next batch, what put() has put is there in its order. Returns odd ones without a part. */
static u32 take(u32 packets)
{
	const u64 frames = stats.rx_frames;
	struct xsk_batch b;
	u32 refused = 0;

	assert_int_equal(xsk_peek(&set, &xsk, &b) != 0, packets != 0);
	assert_int_equal(b.n, packets);
	for (u32 i = 0; i < b.n; i++) {
		const struct engine_frame *f = &b.frame[i];

		if (!(b.odd >> i & 1)) {
			assert_int_equal(f->hint->qpn, taken_count);
			expect_frame(f->frame.data, f->frame.len);
			assert_null(f->frame.frag);
		} else if (b.odd_parts[i]) {
			const struct segment_part *part = &b.part[b.odd_first[i]];

			assert_int_equal(b.odd_parts[i], 1);
			assert_int_equal(part->room, 0);
			assert_int_equal(f->hint->flags, XROCE_RX_GSO);
			assert_null(f->frame.data);
			expect_frame(part->data, part->len);
		} else {
			assert_null(f->frame.data);
			refused++;
		}
	}
	if (b.n)
		xsk_release(&set, &xsk, &b);
	assert_int_equal(stats.rx_frames, frames + packets);
	return refused;
}

/* All is taken, and the kernel has its places back. */
static void expect_empty(void)
{
	take(0);
	assert_int_equal(taken_count, put_count);
	assert_int_equal(memory.consumer, memory.producer);
	assert_false(xsk_has_input(&set));
}

static void rx_ring_peek__frames(void **state)
{
	for (u32 round = 0; round < 300; round++) {
		const u32 n = 1 + (u32)(next_random(&seed) % XSK_RX_BATCH);
		u32 bytes = 0, there = 0;

		for (; there < n && bytes < RING / 8 - 3000; there++) {
			const u32 len = 14 + (u32)(next_random(&seed) % FRAME_MAX);

			bytes += len + 100;
			assert_true(put(len, (u32)(next_random(&seed) % 50), 0));
			assert_true(xsk_has_input(&set));
		}
		assert_int_equal(take(there), 0);
		expect_empty();
	}
}

/* At most a batch of packets, or of bytes, at a time; never more than available. */
static void rx_ring_peek__batch(void **state)
{
	for (u32 i = 0; i < XSK_RX_BATCH + 1; i++)
		put(64, 0, 0);
	take(XSK_RX_BATCH);
	assert_true(xsk_has_input(&set));
	take(1);
	expect_empty();
	for (u32 i = 0; i < 6; i++)
		assert_true(put(RING / 8 - 1000, 0, 0));
	for (u32 i = 0; i < 3; i++)
		take(2);
	expect_empty();
	/* one larger than a batch */
	put(RING / 2, 0, 0);
	take(1);
	expect_empty();
}

/* A record that is still being written hides later ones. */
static void rx_ring_peek__busy(void **state)
{
	const u32 len = sizeof(struct xroce_rx_record) + 64;
	u64 at;

	put(64, 0, 0);
	at = rx_ring_memory_reserve(&memory, len);
	put(64, 0, 0);
	take(1);
	take(0);
	assert_true(xsk_has_input(&set));
	rx_ring_memory_commit(&memory, at, len | BPF_RINGBUF_DISCARD_BIT);
	take(1);
	expect_empty();
}

static void rx_ring_peek__discarded(void **state)
{
	struct xsk_batch b;

	for (u32 i = 0; i < 3; i++) {
		const u64 at = rx_ring_memory_reserve(&memory, 100 * i);

		rx_ring_memory_commit(&memory, at, (100 * i) | BPF_RINGBUF_DISCARD_BIT);
	}
	/* nothing for the engine, but places for the kernel */
	assert_int_not_equal(xsk_peek(&set, &xsk, &b), 0);
	assert_int_equal(b.n, 0);
	xsk_release(&set, &xsk, &b);
	expect_empty();
}

/* Records that XDP would never write. Their neighbours are taken. */
static void rx_ring_peek__no_record(void **state)
{
	const u32 head = sizeof(struct xroce_rx_record);
	u64 at;

	put(64, 0, 0);
	put_raw(0, 0);
	put_raw(head - 1, 64);
	put_raw(head, 0);
	put_raw(head + 64, 13);
	put_raw(head + 64, 65);
	put_raw(head + 64, UINT32_MAX);
	put_raw(head + 13, 14);
	put(64, 0, 0);
	assert_int_equal(take(9), 7);
	expect_empty();
	/* a length beyond the valid records: nothing after it can be trusted */
	put(64, 0, 0);
	at = rx_ring_memory_reserve(&memory, head + 64);
	rx_ring_memory_commit(&memory, at, head + 100000);
	assert_int_equal(take(2), 1);
	expect_empty();
	at = rx_ring_memory_reserve(&memory, head + 64);
	rx_ring_memory_commit(&memory, at, ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT));
	assert_int_equal(take(1), 1);
	/* a discarded one as well */
	at = rx_ring_memory_reserve(&memory, head + 64);
	rx_ring_memory_commit(&memory, at, ~BPF_RINGBUF_BUSY_BIT);
	assert_int_equal(take(1), 1);
	expect_empty();
	put(64, 0, 0);
	take(1);
	expect_empty();
	/* more than the ring has */
	memory.producer += 2 * RING;
	take(0);
}

static void rx_ring_peek__super_packets(void **state)
{
	put(64, 0, 0);
	put(30000, 2000, XROCE_RX_GSO);
	put(64, 0, 0);
	take(2);
	take(1);
	expect_empty();
}

/* For packets that XDP has not announced; also for super-packets. */
static void rx_ring_peek__unannounced(void **state)
{
	put(64, 0, XROCE_RX_UNANNOUNCED);
	put(64, 0, XROCE_RX_SOLICITED);
	put(64, 0, XROCE_RX_UNANNOUNCED | XROCE_RX_SOLICITED);
	take(3);
	assert_int_equal(xsk.unannounced, 2);
	put(64, 0, XROCE_RX_UNANNOUNCED);
	take(1);
	assert_int_equal(xsk.unannounced, 3);
	expect_empty();
}

static void rx_ring_left__counts(void **state)
{
	const u32 len = sizeof(struct xroce_rx_record) + 64;
	u64 at;

	assert_int_equal(rx_ring_left(&set.ring), 0);
	put(64, 0, 0);
	take(1);
	put(64, 0, 0);
	at = rx_ring_memory_reserve(&memory, len);
	rx_ring_memory_commit(&memory, at, len | BPF_RINGBUF_DISCARD_BIT);
	put(64, 0, 0);
	rx_ring_memory_reserve(&memory, len);
	put(64, 0, 0);
	assert_int_equal(rx_ring_left(&set.ring), 2);
}

static void xsk_mark__ring(void **state)
{
	xsk_mark(&set);
	assert_true(xsk_is_past_mark(&set));
	for (u32 round = 0; round < 1000; round++) {
		for (u32 i = 0; i < XSK_RX_BATCH; i++)
			put(64, 0, 0);
		xsk_mark(&set);
		put(64, 0, 0);
		assert_false(xsk_is_past_mark(&set));
		take(XSK_RX_BATCH);
		assert_true(xsk_is_past_mark(&set));
		take(1);
	}
}

/* Frames of the largest size, each in as many cache lines as it needs. */
static void xsk_receive_frames__ring(void **state)
{
	const u32 bytes = BPF_RINGBUF_HDR_SZ + sizeof(struct xroce_rx_record) + PACKET_FRAME_MAX;
	u32 there = 0;

	while (put(PACKET_FRAME_MAX, -bytes % 64, 0))
		there++;
	assert_int_equal(xsk_receive_frames(&set), there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rx_ring_peek__frames, setup, teardown),
		cmocka_unit_test_setup_teardown(rx_ring_peek__batch, setup, teardown),
		cmocka_unit_test_setup_teardown(rx_ring_peek__busy, setup, teardown),
		cmocka_unit_test_setup_teardown(rx_ring_peek__discarded, setup, teardown),
		cmocka_unit_test_setup_teardown(rx_ring_peek__no_record, setup, teardown),
		cmocka_unit_test_setup_teardown(rx_ring_peek__super_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(rx_ring_peek__unannounced, setup, teardown),
		cmocka_unit_test_setup_teardown(rx_ring_left__counts, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_mark__ring, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_receive_frames__ring, setup, teardown),
	};

	return cmocka_run_group_tests_name("rx_ring", tests, NULL, NULL);
}
