/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Super-packets in buffers of every shape, cut: the result equals single packets, the ICRC
 * included. Each buffer is its own allocation, so that a sanitizer sees an access outside it.
 */
#include "packets.h"

#include "../../user/engine/gso.h"

#define SUPER_MAX    65535
#define L3	     14u
#define BTH	     (L3 + 28u)
#define SEGMENT_TOO_LONG (XROCE_SEGMENT_MAX + 4)

static u64 seed;
static u8 super[L3 + SUPER_MAX];
static u8 expected[XROCE_SEGMENTS_MAX][PACKET_FRAME_MAX];
static u32 expected_len[XROCE_SEGMENTS_MAX], expected_count, super_len;
static struct segments s;
/* as a UDP socket sends them: identifications from 0 on, and a code for the length */
static bool by_code;
static u8 *allocated[SEGMENTS_PARTS_MAX];

static int reseed(void **state)
{
	seed = 0x5e9;
	by_code = false;
	return 0;
}

static u32 build(u8 *frame, const struct path *path, struct packet *p, u16 id, const u8 *payload)
{
	u8 *at;

	p->ip_id = id;
	at = packet_put_headers(frame, path, p);
	memcpy(at, payload, p->payload_len);
	return packet_seal(frame, at, p->payload_len);
}

/*
 * count packets with that payload length, the last with last: as the kernel would number them, and
 * as expected.
 */
static void make_super(u8 opcode, u32 payload_len, u32 last, u32 count)
{
	static u8 payload[ROCE_PMTU_MAX], frame[PACKET_FRAME_MAX];
	struct path path = random_path(&seed, false, false);
	u32 size = 0;

	super_len = BTH;
	expected_count = count;
	for (u32 i = 0; i < count; i++) {
		struct packet p = random_packet(&seed, opcode);
		u32 len;

		p.payload_len = i + 1 < count ? payload_len : last;
		fill_random(&seed, payload, p.payload_len);
		expected_len[i] = build(expected[i], &path, &p, 0, payload);
		if (i == 0)
			size = expected_len[i] - BTH;
		len = build(frame, &path, &p, (u16)((by_code ? 0 : size) + i), payload);
		if (i == 0 && by_code) {
			assert_int_not_equal(gso_segment_code(size), 0);
			frame[BTH + 4] |= (u8)gso_segment_code(size);
			expected[0][BTH + 4] |= (u8)gso_segment_code(size);
		}
		if (i == 0)
			memcpy(super, frame, BTH);
		assert_true(super_len + len <= sizeof(super));
		memcpy(super + super_len, frame + BTH, len - BTH);
		super_len += len - BTH;
	}
	super[L3 + 2] = (u8)((super_len - L3) >> 8);
	super[L3 + 3] = (u8)(super_len - L3);
}

static void lay_out(u32 first, u32 others, u32 room)
{
	s.parts = 0;
	for (u32 at = 0; at < super_len;) {
		u32 len = min_u32(at ? others : first, super_len - at);

		assert_true(s.parts < SEGMENTS_PARTS_MAX);
		allocated[s.parts] = malloc(room + len);
		assert_non_null(allocated[s.parts]);
		memcpy(allocated[s.parts] + room, super + at, len);
		s.part[s.parts] = (struct segment_part){ .data = allocated[s.parts] + room,
							 .len = len,
							 .room = room };
		s.parts++;
		at += len;
	}
}

static void put_away(void)
{
	for (u32 i = 0; i < s.parts; i++)
		free(allocated[i]);
}

static void check_segment(const struct rx_frame *frame, u32 i)
{
	const u32 len = frame->len + frame->frag_len;
	u8 *linear = malloc(len);
	struct packet p;

	assert_int_equal(len, expected_len[i]);
	memcpy(linear, frame->data, frame->len);
	if (frame->frag_len)
		memcpy(linear + frame->len, frame->frag, frame->frag_len);
	/* all but the UDP checksum, which is not read */
	assert_memory_equal(linear, expected[i], BTH - 2);
	assert_memory_equal(linear + BTH, expected[i] + BTH, len - BTH);
	assert_int_equal(packet_parse(&p, frame), 0);
	assert_true(packet_icrc_ok(&p));
	assert_int_equal(p.ip_id, 0);
	free(linear);
}

static void cut_all(void)
{
	struct rx_frame frame;
	u32 n = 0;

	assert_true(segments_begin(&s, L3));
	for (; segments_next(&s, &frame); n++) {
		assert_true(n < expected_count);
		check_segment(&frame, n);
	}
	assert_int_equal(n, expected_count);
}

static const struct {
	u8 opcode;
	u32 payload_len, last, count;
} kinds[] = {
	{ OPCODE(XROCE_RC, OP5_SEND_ONLY), 64, 64, 64 },
	{ OPCODE(XROCE_RC, OP5_SEND_ONLY), 0, 0, 64 },
	{ OPCODE(XROCE_RC, OP5_SEND_ONLY), 1, 0, 2 },
	{ OPCODE(XROCE_RC, OP5_WRITE_MIDDLE), 4096, 4096, 15 },
	{ OPCODE(XROCE_RC, OP5_WRITE_MIDDLE), 4096, 100, 15 },
	{ OPCODE(XROCE_RC, OP5_WRITE_MIDDLE), 2048, 2048, 31 },
	{ OPCODE(XROCE_RC, OP5_READ_RESPONSE_MIDDLE), 1024, 1024, 60 },
	{ OPCODE(XROCE_RC, OP5_ACKNOWLEDGE), 0, 0, 64 },
	{ OPCODE(XROCE_UD, OP5_SEND_ONLY), 1000, 999, 33 },
};

/* As AF_XDP lays it out: buffers of 3840 bytes, with the headroom in front. */
static void segments__as_af_xdp_has_them(void **state)
{
	for (u32 k = 0; k < ARRAY_SIZE(kinds); k++) {
		make_super(kinds[k].opcode, kinds[k].payload_len, kinds[k].last, kinds[k].count);
		lay_out(3840, 3840, 256);
		cut_all();
		put_away();
	}
}

/* In one read-only piece: it stays unchanged. */
static void segments__read_only(void **state)
{
	for (u32 k = 0; k < ARRAY_SIZE(kinds); k++) {
		make_super(kinds[k].opcode, kinds[k].payload_len, kinds[k].last, kinds[k].count);
		lay_out(super_len, super_len, 0);
		cut_all();
		assert_memory_equal(allocated[0], super, super_len);
		put_away();
	}
}

static void segments__from_a_udp_socket(void **state)
{
	by_code = true;
	for (u32 k = 0; k < ARRAY_SIZE(kinds); k++) {
		const u32 room = k % 2 ? 256 : 0;

		if (kinds[k].payload_len == 1000 || kinds[k].payload_len < 4)
			continue;
		make_super(kinds[k].opcode, kinds[k].payload_len, kinds[k].last, kinds[k].count);
		lay_out(room ? 3840 : super_len, room ? 3840 : super_len, room);
		cut_all();
		put_away();
	}
}

/* Each code has one length, each path MTU and each small message a code. */
static void segments__codes(void **state)
{
	static const u32 headers[] = { 0, 4, 8, 16 };

	assert_int_equal(roce_segment_of_code[0], 0);
	for (u32 code = 1; code < 64; code++)
		assert_int_equal(gso_segment_code(roce_segment_of_code[code]), code);
	for (u32 pmtu = 256; pmtu <= 4096; pmtu *= 2)
		for (u32 i = 0; i < ARRAY_SIZE(headers); i++)
			assert_int_not_equal(gso_segment_code(16 + headers[i] + pmtu), 0);
	for (u32 len = 20; len <= 188; len += 4)
		assert_int_not_equal(gso_segment_code(len), 0);
	assert_int_equal(gso_segment_code(16), 0);
	assert_int_equal(gso_segment_code(21), 0);
	assert_int_equal(gso_segment_code(192), 0);
	assert_int_equal(gso_segment_code(SEGMENT_TOO_LONG), 0);
}

/* A segment that begins anywhere in a buffer, and buffers with much room, little and none. */
static void segments__in_any_buffers(void **state)
{
	for (u32 round = 0; round < 3000; round++) {
		const u32 count = 2 + random_below(&seed, 12), payload = random_below(&seed, 4097);
		u32 others, first;

		make_super(OPCODE(XROCE_RC, OP5_SEND_ONLY), payload,
			   random_below(&seed, payload + 1), count);
		others = super_len / (SEGMENTS_PARTS_MAX - 1) + 1 + random_below(&seed, 4000);
		first = BTH + 1 + random_below(&seed, 4000);
		lay_out(first, others, random_below(&seed, 2) ? random_below(&seed, 256) : 256);
		cut_all();
		put_away();
	}
}

/*
 * A rest that is no packet is handed over like one: its parser reports and counts it.
 */
static void segments__left_over(void **state)
{
	for (u32 left = 1; left < 16; left++) {
		struct rx_frame frame;
		struct packet p;

		make_super(OPCODE(XROCE_RC, OP5_SEND_ONLY), 64, 64, 3);
		super_len -= 80 - left;
		super[L3 + 2] = (u8)((super_len - L3) >> 8);
		super[L3 + 3] = (u8)(super_len - L3);
		lay_out(3840, 3840, 256);
		assert_true(segments_begin(&s, L3));
		for (u32 i = 0; i < 2; i++) {
			assert_true(segments_next(&s, &frame));
			check_segment(&frame, i);
		}
		assert_true(segments_next(&s, &frame));
		assert_int_equal(frame.len, BTH + left);
		assert_int_equal(packet_parse(&p, &frame), XROCE_DROP_bth_short);
		assert_false(segments_next(&s, &frame));
		put_away();
	}
}

/* Whatever the header and the lengths: no access outside a buffer, and it ends. */
static void segments__hostile(void **state)
{
	for (u32 round = 0; round < 20000; round++) {
		struct rx_frame frame;
		u32 n = 0;

		super_len = 1 + random_below(&seed, 3000);
		fill_random(&seed, super, super_len);
		if (random_below(&seed, 4))
			super[L3] = 0x45;
		if (random_below(&seed, 2))
			super[L3 + 2] = (u8)(super_len >> 8);
		if (random_below(&seed, 2))
			super[L3 + 4] = (u8)random_below(&seed, 2);
		lay_out(1 + random_below(&seed, 500), super_len / 18 + 1 + random_below(&seed, 500),
			random_below(&seed, 80));
		if (segments_begin(&s, random_below(&seed, 2) ? L3 : random_below(&seed, 256)))
			while (segments_next(&s, &frame)) {
				struct packet p;

				assert_true(++n <= super_len / 16 + 1);
				if (packet_parse(&p, &frame) == 0)
					packet_icrc_ok(&p);
			}
		put_away();
	}
}

static void segments__refused(void **state)
{
	static const struct {
		u32 at;
		u8 value;
	} bad[] = {
		{ L3, 0x46 },			 /* options */
		{ L3, 0x65 },			 /* not IPv4 */
		{ L3 + 2, 0xff },		 /* longer than the frame */
		/* with a length of less than the headers: see below */
		{ L3 + 2, 0x00 },
		{ L3 + 4, 0xff },		 /* segments longer than any packet */
	};

	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		make_super(OPCODE(XROCE_RC, OP5_SEND_ONLY), 256, 256, 4);
		super[bad[i].at] = bad[i].value;
		if (bad[i].value == 0)
			super[L3 + 3] = 27;
		lay_out(3840, 3840, 256);
		assert_false(segments_begin(&s, L3));
		put_away();
	}
	make_super(OPCODE(XROCE_RC, OP5_SEND_ONLY), 256, 256, 4);
	super[L3 + 4] = 0;
	super[L3 + 5] = 15; /* no room for a BTH and an ICRC */
	lay_out(3840, 3840, 256);
	assert_false(segments_begin(&s, L3));
	put_away();
	make_super(OPCODE(XROCE_RC, OP5_SEND_ONLY), 0, 0, XROCE_SEGMENTS_MAX);
	lay_out(3840, 3840, 256);
	cut_all();
	put_away();
	super_len += 4; /* of one packet more */
	super[L3 + 2] = (u8)((super_len - L3) >> 8);
	super[L3 + 3] = (u8)(super_len - L3);
	lay_out(3840, 3840, 256);
	assert_false(segments_begin(&s, L3));
	put_away();
	s.parts = 0;
	assert_false(segments_begin(&s, L3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(segments__as_af_xdp_has_them, reseed),
		cmocka_unit_test_setup(segments__read_only, reseed),
		cmocka_unit_test_setup(segments__from_a_udp_socket, reseed),
		cmocka_unit_test_setup(segments__codes, reseed),
		cmocka_unit_test_setup(segments__in_any_buffers, reseed),
		cmocka_unit_test_setup(segments__left_over, reseed),
		cmocka_unit_test_setup(segments__hostile, reseed),
		cmocka_unit_test_setup(segments__refused, reseed),
	};

	return cmocka_run_group_tests_name("segments", tests, NULL, NULL);
}
