/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Super-packets: the packets that share one, and its segments when it is cut as the kernel cuts UDP
 * segmentation offload: each segment gets the headers of the whole with its own lengths and IPv4
 * checksum, and the next identification.
 */
#include "packets.h"

#include "../../user/engine/gso.h"

#define FRAMES 80

static u64 seed;
static u8 buf[FRAMES][PACKET_FRAME_MAX];
static struct gso_frame frame[FRAMES];
static struct gso_ids ids;

static int setup(void **state)
{
	seed = 0x650;
	memset(&ids, 0, sizeof(ids));
	return 0;
}

/* RFC 1071 as it stands there. */
static u32 checksum(const u8 *at, u32 bytes, u32 sum)
{
	for (u32 i = 0; i < bytes; i += 2)
		sum += get16(at + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

static void make(u32 i, const struct path *path, u8 opcode, u32 payload_len, u16 id)
{
	struct packet p = random_packet(&seed, opcode);
	u8 *payload;

	/* to one QP, if the path is one */
	p.dest_qpn = 0x123456;
	p.pkey = 0xffff;
	p.qkey = 0x11112222;
	p.payload_len = payload_len;
	p.ip_id = id;
	payload = packet_put_headers(buf[i], path, &p);
	fill_random(&seed, payload, payload_len);
	frame[i] = (struct gso_frame){ buf[i], packet_seal(buf[i], payload, payload_len) };
}

static void make_sends(const struct path *path, u32 n, u32 payload_len)
{
	for (u32 i = 0; i < n; i++)
		make(i, path, OPCODE(XROCE_RC, OP5_SEND_MIDDLE), payload_len, 0);
}

static void assert_right(const u8 *bytes, u32 len, u32 id)
{
	struct rx_frame f = { .data = bytes, .len = len };
	struct packet p;

	assert_int_equal(packet_parse(&p, &f), 0);
	assert_true(packet_icrc_ok(&p));
	assert_int_equal(p.ip_id, id);
	assert_int_equal(checksum(bytes + 14, 20, 0), 0);
	assert_int_equal(get16(bytes + 16), len - 14);
}

/* ---- which frames ---- */

static void gso_count__equal_and_one_shorter(void **state)
{
	struct path path = random_path(&seed, false, false);

	make_sends(&path, 10, 256);
	assert_int_equal(gso_count(frame, 10), 10);
	assert_int_equal(gso_count(frame, 3), 3);
	assert_int_equal(gso_count(frame, 1), 1);
	/* a shorter one is the last, a longer one is another's first */
	make(6, &path, OPCODE(XROCE_RC, OP5_SEND_LAST), 100, 0);
	assert_int_equal(gso_count(frame, 10), 7);
	assert_int_equal(gso_count(frame + 6, 4), 1);
	make(1, &path, OPCODE(XROCE_RC, OP5_SEND_LAST_IMM), 256, 0);
	assert_int_equal(gso_count(frame, 10), 1);
	assert_int_equal(gso_count(frame + 1, 9), 2);
}

static void gso_count__bounds(void **state)
{
	struct path path = random_path(&seed, false, false);
	static const struct {
		u32 payload, count;
	} rows[] = {
		{ 0, GSO_SEGMENTS_MAX },
		{ 64, GSO_SEGMENTS_MAX },
		{ 1004, GSO_SEGMENTS_MAX },
		{ 1008, 63 },
		{ 1024, 62 },
		{ 2048, 31 },
		{ 4096, 15 },
		/* 64 KiB but 1: 42 + 47 * 1392 = 65466, 42 + 45 * 1456 = 65562 */
		{ 1376, 47 },
		{ 1440, 44 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		make_sends(&path, FRAMES, rows[i].payload);
		assert_int_equal(gso_count(frame, FRAMES), rows[i].count);
	}
	/* the last may be so short that it does fit */
	make_sends(&path, 20, 4096);
	/* 42 + 15 * 4112 + 16 + 3768 = 65506 */
	make(15, &path, OPCODE(XROCE_RC, OP5_SEND_LAST), 3768, 0);
	assert_int_equal(gso_count(frame, 20), 16);
	make(15, &path, OPCODE(XROCE_RC, OP5_SEND_LAST), 3796, 0); /* 65534 */
	assert_int_equal(gso_count(frame, 20), 16);
	make(15, &path, OPCODE(XROCE_RC, OP5_SEND_LAST), 3800, 0); /* 65538 */
	assert_int_equal(gso_count(frame, 20), 15);
}

/* frames[i] was made from order[i]. */
static void assert_order(const u32 *order, u32 n)
{
	gso_order(frame, n);
	for (u32 i = 0; i < n; i++)
		assert_ptr_equal(frame[i].bytes, buf[order[i]]);
}

static void gso_order__requests_pass_acks(void **state)
{
	const u8 ack = OPCODE(XROCE_RC, OP5_ACKNOWLEDGE), send = OPCODE(XROCE_RC, OP5_SEND_ONLY);
	struct path path = random_path(&seed, false, false),
		    other = random_path(&seed, false, false);

	make(0, &path, ack, 0, 0);
	make(1, &path, send, 64, 0);
	assert_int_equal(gso_count(frame, 2), 1);
	assert_order((const u32[]){ 1, 0 }, 2);
	assert_int_equal(gso_count(frame, 2), 2);
	/* all of them, and an ACK that is passed passes nothing */
	make(0, &path, ack, 0, 0);
	make(1, &path, send, 64, 0);
	make(2, &path, OPCODE(XROCE_RC, OP5_READ_REQUEST), 0, 0);
	make(3, &path, send, 64, 0);
	make(4, &path, ack, 0, 0);
	assert_order((const u32[]){ 1, 2, 3, 0, 4 }, 5);
	/* no longer, another flow, a response */
	make(0, &path, ack, 0, 0);
	make(1, &path, send, 0, 0);
	make(2, &path, ack, 0, 0);
	make(3, &other, send, 64, 0);
	make(4, &path, ack, 0, 0);
	make(5, &path, OPCODE(XROCE_RC, OP5_READ_RESPONSE_ONLY), 64, 0);
	make(6, &path, OPCODE(XROCE_RC, OP5_READ_RESPONSE_MIDDLE), 0, 0);
	make(7, &path, send, 64, 0);
	assert_order((const u32[]){ 0, 1, 2, 3, 4, 5, 6, 7 }, 8);
}

/* Every bit of the headers that is not a segment's own keeps the second frame out. */
static void gso_count__each_bit(void **state)
{
	struct path path = random_path(&seed, false, false);

	make_sends(&path, 3, 64);
	for (u32 bit = 0; bit < GSO_HEADER_BYTES * 8; bit++) {
		u32 at = bit / 8;
		/* identification, IPv4 checksum */
		bool own = at == 18 || at == 19 || at == 24 || at == 25;

		buf[1][at] ^= 1 << bit % 8;
		assert_int_equal(gso_count(frame, 3), own ? 3 : 1);
		buf[1][at] ^= 1 << bit % 8;
	}
}

/*
 * Nor does one join that the receiver's XDP would have to judge by its own headers: see
 * gso_is_for_same_qp().
 */
static void gso_count__for_one_qp(void **state)
{
	static const u8 alike[20] = { 0xe0, 0, 0xff, 0xff, 0, 0xff, 0xff, 0xff }, of_ud = 0xff;
	const u8 opcodes[] = { OPCODE(XROCE_RC, OP5_SEND_MIDDLE), OPCODE(XROCE_UD, OP5_SEND_ONLY) };

	for (u32 ud = 0; ud < ARRAY_SIZE(opcodes); ud++) {
		struct path path = random_path(&seed, false, false);

		for (u32 i = 0; i < 3; i++)
			make(i, &path, opcodes[ud], 64, 0);
		/* the BTH, and of UD the DETH, which begins with the Q_Key */
		for (u32 bit = 0; bit < sizeof(alike) * 8; bit++) {
			const u32 at = bit / 8,
				  mask = at >= 12 && at < 16 && ud ? of_ud : alike[at];

			buf[1][GSO_HEADER_BYTES + at] ^= 1 << bit % 8;
			assert_int_equal(gso_count(frame, 3), mask >> bit % 8 & 1 ? 1 : 3);
			buf[1][GSO_HEADER_BYTES + at] ^= 1 << bit % 8;
		}
	}
}

/* What all of them have in common must be IPv4 and UDP as it is meant here. */
static void gso_count__not_that_kind(void **state)
{
	static const struct {
		u8 at, value;
		u32 count;
	} rows[] = {
		{ 13, 0x06, 1 }, { 12, 0x86, 1 }, { 14, 0x46, 1 }, { 14, 0x65, 1 }, { 20, 0x20, 1 },
		{ 20, 0x60, 1 }, { 21, 0x01, 1 }, { 20, 0x1f, 1 }, { 23, 6, 1 },    { 17, 0, 1 },
		{ 39, 0, 1 },	 { 20, 0x00, 4 }, { 20, 0x40, 4 }, { 22, 1, 4 },    { 15, 1, 4 },
		{ 37, 0, 4 },	 { 41, 1, 4 },	      { 0, 0x33, 1 },	 { 0, 0x32, 4 },
	};
	struct path path = random_path(&seed, false, false), other;

	for (u32 r = 0; r < ARRAY_SIZE(rows); r++) {
		make_sends(&path, 4, 64);
		for (u32 i = 0; i < 4; i++)
			buf[i][rows[r].at] = rows[r].value;
		assert_int_equal(gso_count(frame, 4), rows[r].count);
	}
	other = random_path(&seed, true, false);
	make_sends(&other, 4, 64);
	assert_int_equal(gso_count(frame, 4), 1);
	other = random_path(&seed, false, true);
	make_sends(&other, 4, 64);
	assert_int_equal(gso_count(frame, 4), 1);
}

/*
 * Frames that are cut short, or end in the middle of a word: no byte after them is read, and none
 * joins.
 */
static void gso_count__any_length(void **state)
{
	struct path path = random_path(&seed, false, false);

	make_sends(&path, 2, 64);
	for (u32 len = 1; len < frame[0].len; len++) {
		u8 *lead = exact_copy(buf[0], len), *follow = exact_copy(buf[1], len);
		const struct gso_frame as_lead[2] = { { lead, len }, frame[1] },
				       as_follow[2] = { frame[0], { follow, len } };

		if (len >= GSO_HEADER_BYTES) {
			put16(lead + 16, len - 14);
			put16(lead + 38, len - 34);
			put16(follow + 16, len - 14);
			put16(follow + 38, len - 34);
		}
		assert_int_equal(gso_count(as_lead, 2), 1);
		assert_int_equal(
			gso_count(as_follow, 2),
			len % 4 == GSO_HEADER_BYTES % 4 && len >= GSO_HEADER_BYTES + 16 ? 2 : 1);
		free(lead);
		free(follow);
	}
}

/* ---- the super-packet ---- */

/* They join; the frames stay right, and the whole is cut into the same frames. */
static void join_and_cut(u32 count, bool cut)
{
	static u8 whole[1 << 16], segment[PACKET_FRAME_MAX];
	u8 header[GSO_HEADER_BYTES];
	u32 size, total = GSO_HEADER_BYTES, at = GSO_HEADER_BYTES;

	assert_int_equal(gso_count(frame, count), count);
	size = gso_join(&ids, frame, count, header);
	assert_int_equal(size, frame[0].len - GSO_HEADER_BYTES);
	memcpy(whole, header, sizeof(header));
	for (u32 i = 0; i < count; i++) {
		assert_right(frame[i].bytes, frame[i].len, size + i);
		memcpy(whole + total, frame[i].bytes + GSO_HEADER_BYTES,
		       frame[i].len - GSO_HEADER_BYTES);
		total += frame[i].len - GSO_HEADER_BYTES;
	}
	assert_in_range(total, 1, GSO_FRAME_MAX);
	if (!cut)
		return;
	assert_int_equal(get16(whole + 16), total - 14);
	assert_int_equal(get16(whole + 18), size);
	assert_int_equal(checksum(whole + 14, 20, 0), 0);
	assert_int_equal(get16(whole + 38), total - 34);
	assert_int_equal(get16(whole + 40), checksum(whole + 26, 8, 17 + total - 34) ^ 0xffff);
	for (u32 i = 0; i < count; i++, at += size) {
		u32 payload = min_u32(size, total - at);

		memcpy(segment, whole, GSO_HEADER_BYTES);
		memcpy(segment + GSO_HEADER_BYTES, whole + at, payload);
		put16(segment + 16, 28 + payload);
		put16(segment + 18, get16(whole + 18) + i);
		put16(segment + 24, 0);
		put16(segment + 24, checksum(segment + 14, 20, 0));
		put16(segment + 38, 8 + payload);
		assert_int_equal(GSO_HEADER_BYTES + payload, frame[i].len);
		assert_right(segment, frame[i].len, size + i);
		/* the UDP checksum is a segment's own */
		assert_memory_equal(segment, frame[i].bytes, 40);
		assert_memory_equal(segment + 42, frame[i].bytes + 42, payload);
	}
}

static void gso_join__as_it_is_cut(void **state)
{
	static const u32 payloads[] = { 0, 4, 64, 100, 256, 512, 1004, 1024, 2048, 4096 };

	for (u32 i = 0; i < ARRAY_SIZE(payloads); i++)
		for (u32 round = 0; round < 6; round++) {
			struct path path = random_path(&seed, false, false);
			u32 count;

			for (u32 k = 0; k < FRAMES; k++)
				make(k, &path, OPCODE(XROCE_RC, OP5_SEND_MIDDLE), payloads[i],
				     round % 2 ? (u16)next_random(&seed) : 0);
			count = gso_count(frame, FRAMES);
			if (round >= 2)
				count = 2 + random_below(&seed, count - 1);
			if (round >= 4 && payloads[i])
				make(count - 1, &path, OPCODE(XROCE_RC, OP5_SEND_LAST),
				     random_below(&seed, payloads[i]), (u16)next_random(&seed));
			join_and_cut(count, true);
		}
}

/* Unsent frames are joined again, with others. */
static void gso_join__again(void **state)
{
	struct path path = random_path(&seed, false, false);

	make_sends(&path, 12, 512);
	join_and_cut(12, false);
	memmove(frame, frame + 5, 7 * sizeof(frame[0]));
	join_and_cut(7, true);
	memmove(frame, frame + 1, 6 * sizeof(frame[0]));
	join_and_cut(2, true);
}

/* MADs to QP 1 leave one by one, as the receiver's processes share it. */
static void gso_count__for_qp1(void **state)
{
	static const u32 qpns[] = { 1, 0x10001, 0x101, 0 };
	const u8 opcodes[] = { OPCODE(XROCE_UD, OP5_SEND_ONLY), OPCODE(XROCE_RC, OP5_SEND_MIDDLE) };

	for (u32 k = 0; k < ARRAY_SIZE(opcodes) * ARRAY_SIZE(qpns); k++) {
		const u32 qpn = qpns[k % ARRAY_SIZE(qpns)], is_rc = k / ARRAY_SIZE(qpns);
		struct path path = random_path(&seed, false, false);

		for (u32 i = 0; i < 3; i++) {
			make(i, &path, opcodes[is_rc], 256, 0);
			buf[i][GSO_HEADER_BYTES + 5] = (u8)(qpn >> 16);
			buf[i][GSO_HEADER_BYTES + 6] = (u8)(qpn >> 8);
			buf[i][GSO_HEADER_BYTES + 7] = (u8)qpn;
		}
		assert_int_equal(gso_count(frame, 3), qpn == 1 && !is_rc ? 1 : 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(gso_count__equal_and_one_shorter, setup),
		cmocka_unit_test_setup(gso_count__bounds, setup),
		cmocka_unit_test_setup(gso_order__requests_pass_acks, setup),
		cmocka_unit_test_setup(gso_count__each_bit, setup),
		cmocka_unit_test_setup(gso_count__for_one_qp, setup),
		cmocka_unit_test_setup(gso_count__for_qp1, setup),
		cmocka_unit_test_setup(gso_count__not_that_kind, setup),
		cmocka_unit_test_setup(gso_count__any_length, setup),
		cmocka_unit_test_setup(gso_join__as_it_is_cut, setup),
		cmocka_unit_test_setup(gso_join__again, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
