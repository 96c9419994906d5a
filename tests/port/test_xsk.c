/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xsk_receive() on rings that are this test's own memory, with the test as the kernel: each frame
 * that it puts into the receive ring is handed over once, or refused once for a reason, and each
 * buffer comes back once, whatever the descriptors say.
 */
#include "../unit/packets.h"

#include "../../user/xsk/xsk.h"
#include "../../user/transport/gso.h"

#define RING   256u
#define FRAMES 128u
#define ROOM   256u /* in front of a packet, as AF_XDP has it */
#define L3     14u

static u64 seed;
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

/* What the sink saw. */
static struct {
	u32 frames, segments, bytes;
	u32 wrong_at; /* the segment, counted from 1, whose ICRC is said to be wrong */
	u32 refused[XROCE_DROP_END];
	bool keep;
	struct rx_frame kept[RING];
	u32 num_kept;
	u32 not_back; /* buffers that no descriptor has brought back */
} seen;

static void take_frames(void *arg, struct engine_frame *frames, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		seen.frames++;
		seen.bytes += frames[i].frame.len + frames[i].frame.frag_len;
		if (!seen.keep)
			continue;
		seen.kept[seen.num_kept++] = frames[i].frame;
		frames[i].frame.data = NULL;
	}
}

static bool take_segment(void *arg, const struct engine_frame *frame)
{
	return ++seen.segments != seen.wrong_at;
}

static void take_refused(void *arg, enum xroce_drop reason, u32 n)
{
	seen.refused[reason] += n;
}

static const struct xsk_sink sink = { take_frames, take_segment, take_refused, NULL };

static int setup(void **state)
{
	seed = 0x5eed;
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

/* A super-packet of so many segments in buffers of that size, with the CQE that says so. */
static void put_super(u32 segments, u32 payload_len, u32 buffer)
{
	static u8 bytes[GSO_SEGMENTS_MAX][PACKET_FRAME_MAX], whole[1 << 17];
	struct path path = random_path(&seed, false, false);
	struct gso_frame frame[GSO_SEGMENTS_MAX];
	static struct gso_ids ids;
	u32 len = GSO_HEADER_BYTES;

	for (u32 i = 0; i < segments; i++) {
		struct packet p = random_packet(&seed, OPCODE(XROCE_RC, OP5_SEND_MIDDLE));
		u8 *payload;

		p.payload_len = payload_len;
		payload = packet_put_headers(bytes[i], &path, &p);
		fill_random(&seed, payload, payload_len);
		frame[i] =
			(struct gso_frame){ bytes[i], packet_seal(bytes[i], payload, payload_len) };
	}
	gso_join(&ids, frame, segments, whole);
	for (u32 i = 0; i < segments; i++) {
		memcpy(whole + len, bytes[i] + GSO_HEADER_BYTES, frame[i].len - GSO_HEADER_BYTES);
		len += frame[i].len - GSO_HEADER_BYTES;
	}
	for (u32 at = 0; at < len; at += buffer) {
		const u32 n = min_u32(buffer, len - at);
		u8 *to = put(n, at + n < len);

		memcpy(to, whole + at, n);
		if (at == 0) {
			const struct xroce_rx_cqe cqe = { .flags = XROCE_RX_GSO, .l3_offset = L3 };

			memcpy(to - sizeof(cqe), &cqe, sizeof(cqe));
		}
	}
}

static u32 refused(void)
{
	u32 n = 0;

	for (u32 i = 0; i < XROCE_DROP_END; i++)
		n += seen.refused[i];
	return n;
}

/*
 * All of it, and then: as many frames were taken as were put, every packet of theirs was shown or
 * refused, and every buffer is back.
 */
static void receive_all(u32 frames, u32 supers, u32 segments)
{
	u32 rounds = 0;

	while (xsk_receive(&set, &xsk, &sink))
		assert_true(++rounds <= RING);
	assert_int_equal(stats.rx_frames, frames);
	assert_int_equal(stats.rx_super_packets, supers);
	assert_int_equal(stats.rx_super_segments, segments);
	assert_int_equal(seen.frames + seen.segments + refused(), frames - supers + segments);
	for (u32 i = 0; i < seen.num_kept; i++)
		umem_rx_release_frame(&umem, &seen.kept[i]);
	assert_int_equal(umem.rx_free_count + fill_ring.producer + seen.not_back, FRAMES);
}

static void xsk_receive__frames(void **state)
{
	for (u32 i = 0; i < 40; i++) {
		put(100 + i, false);
		put(3840, true);
		put(300, false);
	}
	receive_all(80, 0, 0);
	assert_int_equal(seen.frames, 80);
	assert_int_equal(seen.bytes, 40 * (100 + 3840 + 300) + 39 * 40 / 2);
}

static void xsk_receive__kept(void **state)
{
	seen.keep = true;
	put(100, false);
	put(3840, true);
	put(300, false);
	receive_all(2, 0, 0);
	assert_int_equal(seen.num_kept, 2);
}

/* More buffers than any packet has: one packet, whichever way it ends. */
static void xsk_receive__too_many_buffers(void **state)
{
	for (u32 n = 3; n <= SEGMENTS_PARTS_MAX + 3; n++) {
		setup(state);
		put(64, false);
		for (u32 i = 1; i < n; i++)
			put(200, true);
		put(200, false);
		put(64, false);
		receive_all(3, 0, 0);
		assert_int_equal(seen.frames, 2);
		assert_int_equal(seen.refused[XROCE_DROP_multibuffer], 1);
		if (n < SEGMENTS_PARTS_MAX + 3)
			teardown(state);
	}
}

/* Descriptors that the kernel would never write. */
static void xsk_receive__not_ours(void **state)
{
	u8 *part;

	put_raw((u64)FRAMES * UMEM_CHUNK, 64);	/* behind the receive frames */
	put_raw(UINT64_MAX, 64);
	put_raw(5 * UMEM_CHUNK, 64);		/* a buffer that was not given */
	put(UMEM_CHUNK, false);			/* beyond its end */
	seen.not_back = 1;
	receive_all(4, 0, 0);
	assert_int_equal(seen.refused[XROCE_DROP_descriptor], 4);
	/* in the midst of a packet: of it the others come back */
	part = put(3840, true);
	put_raw((u64)(part - umem.area), 64); /* the same one again */
	put(64, false);
	receive_all(6, 0, 0);
	assert_int_equal(seen.frames, 1);
	assert_int_equal(seen.refused[XROCE_DROP_descriptor], 5);
}

static void xsk_receive__super_packets(void **state)
{
	put(64, false);
	put_super(30, 64, 3840);
	put(64, false);
	put_super(10, 1024, 3840);
	receive_all(4, 2, 40);
	assert_int_equal(seen.frames, 2);
	assert_int_equal(seen.segments, 40);
}

/* The first packet's ICRC tells whether a RoCEv2 sender made it. */
static void xsk_receive__first_wrong(void **state)
{
	seen.wrong_at = 1;
	put_super(30, 64, 3840);
	receive_all(1, 1, 30);
	assert_int_equal(seen.segments, 1);
	assert_int_equal(seen.refused[XROCE_DROP_icrc], 29);
	/* of another that is none's fault but its own */
	seen.wrong_at = 1 + 5;
	put_super(30, 64, 3840);
	receive_all(2, 2, 60);
	assert_int_equal(seen.segments, 31);
	assert_int_equal(seen.refused[XROCE_DROP_icrc], 29);
}

/* XDP says that it is one, and it cannot be cut: as any other frame. */
static void xsk_receive__no_super_packet(void **state)
{
	const struct xroce_rx_cqe cqe = { .flags = XROCE_RX_GSO, .l3_offset = L3 };
	u8 *to = put(200, false);

	memset(to, 0, 200);
	memcpy(to - sizeof(cqe), &cqe, sizeof(cqe));
	receive_all(1, 0, 0);
	assert_int_equal(seen.frames, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(xsk_receive__frames, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_receive__kept, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_receive__too_many_buffers, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_receive__not_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_receive__super_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_receive__first_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(xsk_receive__no_super_packet, setup, teardown),
	};

	return cmocka_run_group_tests_name("xsk", tests, NULL, NULL);
}
