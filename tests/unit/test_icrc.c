/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The ICRC against a second implementation that goes bit by bit (reference.h), against published
 * values of CRC-32, and against the rule which bits do not count.
 */
#include "unit.h"

#include "../../user/engine/icrc.h"
#include "reference.h"

#define LEN_MAX 4400

static u64 seed;

static int reseed(void **state)
{
	seed = 0x1c7c;
	return 0;
}

static void icrc_start__both_families(void **state)
{
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++)
		for (int i = 0; i < 200; i++) {
			u32 bytes = is_ipv6 ? 60 : 40;
			u8 b[60], *exact;

			assert_int_equal(icrc_start_bytes(is_ipv6), bytes);
			fill_random(&seed, b, sizeof(b));
			exact = exact_copy(b, bytes);
			assert_int_equal(icrc_start(exact, is_ipv6),
					 reference_icrc(b, is_ipv6, bytes));
			assert_memory_equal(exact, b, bytes);
			free(exact);
		}
}

static void icrc_packet__every_length(void **state)
{
	static u8 b[LEN_MAX];

	fill_random(&seed, b, sizeof(b));
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++)
		for (size_t len = icrc_start_bytes(is_ipv6); len < 600; len++) {
			u8 *exact = exact_copy(b, len);

			assert_int_equal(icrc_packet(exact, is_ipv6, len),
					 reference_icrc(b, is_ipv6, len));
			assert_memory_equal(exact, b, len);
			free(exact);
		}
	assert_int_equal(icrc_packet(b, false, LEN_MAX), reference_icrc(b, false, LEN_MAX));
	assert_int_equal(icrc_packet(b, true, LEN_MAX), reference_icrc(b, true, LEN_MAX));
}

/*
 * A packet whose identification is changed and its ICRC by the same measure is as good as one made
 * with the other identification.
 */
static void icrc_id_change__as_if_made_so(void **state)
{
	static const size_t lengths[] = { 40, 44, 104, 1064, 4136 };
	static u8 b[LEN_MAX];

	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct icrc_id c;
		u16 flipped = 0;

		icrc_id_init(&c, (u32)lengths[i] - 6);
		assert_int_equal(c.tail, lengths[i] - 6);
		for (u32 n = 0; n < 200; n++, flipped = (u16)(flipped * 3 + 0x8421)) {
			u32 before, after;

			fill_random(&seed, b, lengths[i]);
			icrc_store(reference_icrc(b, false, lengths[i]), (u8 *)&before);
			b[4] ^= (u8)(flipped >> 8);
			b[5] ^= (u8)flipped;
			icrc_store(reference_icrc(b, false, lengths[i]), (u8 *)&after);
			assert_int_equal(before ^ icrc_id_change(&c, flipped), after);
			assert_int_equal(before ^ icrc_id_change_once(c.tail, flipped), after);
		}
	}
}

/*
 * Each identification, with and without "don't fragment", explains its own difference. With one of
 * them and another byte wrong, the packet is refused: for the few differences in 2^32 that the
 * fields explain by chance, see icrc_unknown__explains_few.
 */
static void icrc_unknown__every_identification(void **state)
{
	static const size_t lengths[] = { 40, 44, 104, 1064, 4136 };
	static u8 b[LEN_MAX];

	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
		const size_t len = lengths[i];
		struct icrc_unknown unknown;
		icrc_t plain;
		u8 stored[4];

		icrc_unknown_init(&unknown, (u32)len - 6);
		fill_random(&seed, b, len);
		b[4] = b[5] = 0;
		b[6] = 0x40;
		b[7] = 0;
		plain = icrc_packet(b, false, len);
		for (u32 n = 0; n < 2 << 16; n += len > 200 ? 61 : 1) {
			b[4] = (u8)(n >> 8);
			b[5] = (u8)n;
			b[6] = n >> 16 ? 0 : 0x40;
			icrc_store(icrc_packet(b, false, len), stored);
			assert_true(icrc_unknown_explains(&unknown,
							  icrc_difference(plain, stored)));
			b[len - 1] ^= 0x10;
			icrc_store(icrc_packet(b, false, len), stored);
			b[len - 1] ^= 0x10;
			assert_false(icrc_unknown_explains(&unknown,
							   icrc_difference(plain, stored)));
		}
	}
}

/* Of all differences, one in 2^15 is explained; and no single bit of a packet of 96 bytes. */
static void icrc_unknown__explains_few(void **state)
{
	struct icrc_unknown unknown;
	u32 explained = 0, difference;
	u8 b[92] = { 0 }, stored[4];
	icrc_t plain;

	icrc_unknown_init(&unknown, sizeof(b) - 6);
	for (u32 i = 0; i < 1u << 22; i++) {
		fill_random(&seed, (u8 *)&difference, sizeof(difference));
		explained += icrc_unknown_explains(&unknown, difference);
	}
	assert_in_range(explained, 64, 256); /* 128 expected */

	plain = icrc_packet(b, false, sizeof(b));
	for (u32 bit = 0; bit < sizeof(b) * 8; bit++) {
		const bool is_unknown = bit / 8 == 4 || bit / 8 == 5 || bit == 6 * 8 + 6;
		const bool counts = !(icrc_masked_bits(false, bit / 8) >> bit % 8 & 1);

		b[bit / 8] ^= 1 << bit % 8;
		icrc_store(icrc_packet(b, false, sizeof(b)), stored);
		b[bit / 8] ^= 1 << bit % 8;
		assert_int_equal(
			icrc_unknown_explains(&unknown, icrc_difference(plain, stored)),
			is_unknown || !counts);
	}
}

/* Each identification, with the flag and without it, is found by its effect. */
static void icrc_unknown_solve__finds_the_fields(void **state)
{
	static const u32 tails[] = { 2, 34, 1054, ICRC_ID_TAIL_MAX };
	struct icrc_unknown unknown;
	bool may_fragment;
	u16 id;

	for (u32 i = 0; i < ARRAY_SIZE(tails); i++) {
		const u32 flag = icrc_id_change_once(tails[i] - 2, 0x4000);

		icrc_unknown_init(&unknown, tails[i]);
		for (u32 want = 0; want < 1 << 16; want += 1 + i * 37) {
			const u32 change = icrc_id_change_once(tails[i], (u16)want);

			assert_true(icrc_unknown_solve(&unknown, le32toh(change), &id,
						       &may_fragment));
			assert_int_equal(id, want);
			assert_false(may_fragment);
			assert_true(icrc_unknown_solve(&unknown, le32toh(change ^ flag), &id,
						       &may_fragment));
			assert_int_equal(id, want);
			assert_true(may_fragment);
		}
		assert_false(icrc_unknown_solve(&unknown, le32toh(flag) ^ 1, &id, &may_fragment) &&
			     icrc_unknown_solve(&unknown, le32toh(flag) ^ 2, &id, &may_fragment));
	}
}

/*
 * No single bit of a packet of any length is explained by a low identification, and two by another
 * one. A packet's distances between bits are those of the end of a longer one.
 */
static void icrc_unknown__single_bits(void **state)
{
	static u8 b[ICRC_ID_TAIL_MAX];
	struct icrc_unknown unknown;
	u32 explained = 0;
	u8 stored[4];
	icrc_t plain;

	icrc_unknown_init(&unknown, sizeof(b) - 6);
	plain = icrc_packet(b, false, sizeof(b));
	for (u32 bit = 0; bit < sizeof(b) * 8; bit++) {
		const bool is_low = bit / 8 == 5 || (bit / 8 == 4 && bit % 8 < ICRC_LOW_BITS - 8);
		u32 difference;

		if (icrc_masked_bits(false, bit / 8) >> bit % 8 & 1)
			continue;
		b[bit / 8] ^= 1 << bit % 8;
		icrc_store(icrc_packet(b, false, sizeof(b)), stored);
		b[bit / 8] ^= 1 << bit % 8;
		difference = icrc_difference(plain, stored);
		assert_int_equal(icrc_unknown_is_low(&unknown, difference), is_low);
		if (icrc_unknown_explains(&unknown, difference))
			explained++;
	}
	assert_int_equal(explained, ICRC_UNKNOWN_BITS + 2);
}

/* In one piece, in two, byte by byte: the same value. */
static void icrc_update__any_pieces(void **state)
{
	u8 b[1200];

	fill_random(&seed, b, sizeof(b));
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		u32 from = icrc_start_bytes(is_ipv6);
		u32 want = reference_icrc(b, is_ipv6, sizeof(b));
		icrc_t crc = icrc_start(b, is_ipv6);

		for (size_t at = from; at <= sizeof(b); at++) {
			icrc_t c = icrc_update(icrc_start(b, is_ipv6), b + from, at - from);

			assert_int_equal(icrc_update(c, b + at, sizeof(b) - at), want);
		}
		for (size_t at = from; at < sizeof(b); at++)
			crc = icrc_update(crc, b + at, 1);
		assert_int_equal(crc, want);
		assert_int_equal(icrc_update(crc, NULL, 0), want);
	}
}

/*
 * The check value of CRC-32/ISO-HDLC, and the register after 8 bytes of ones (protocol sheet), as
 * running values are complemented.
 */
static void icrc_update__published_values(void **state)
{
	static const u8 ones[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	assert_int_equal(icrc_update(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(~icrc_update(0, ones, sizeof(ones)), 0xdebb20e3);
}

/* Flip each bit of a packet in turn: the ICRC changes exactly for the bits that are not masked. */
static void icrc_packet__each_bit(void **state)
{
	static const size_t lens[] = { 60, 64, 200, 256, 257, 700 };
	u8 b[700];

	fill_random(&seed, b, sizeof(b));
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++)
		for (size_t l = 0; l < ARRAY_SIZE(lens); l++) {
			icrc_t crc = icrc_packet(b, is_ipv6, lens[l]);
			size_t masked = 0;

			for (size_t bit = 0; bit < lens[l] * 8; bit++) {
				bool counts = !(icrc_masked_bits(is_ipv6, bit / 8) >> bit % 8 & 1);

				b[bit / 8] ^= 1 << bit % 8;
				assert_int_equal(icrc_packet(b, is_ipv6, lens[l]) != crc, counts);
				b[bit / 8] ^= 1 << bit % 8;
				masked += !counts;
			}
			/*
			 * IPv4: TOS, TTL, checksum; IPv6: class, label, hop limit; both: UDP
			 * checksum and BTH byte 4
			 */
			assert_int_equal(masked,
					 is_ipv6 ? 8 + 20 + 8 + 16 + 8 : 8 + 8 + 16 + 16 + 8);
		}
}

static void icrc_store__little_endian(void **state)
{
	u8 out[6] = { 0xa5, 0, 0, 0, 0, 0xa5 };

	icrc_store(0x11223344, out + 1);
	assert_memory_equal(out, ((u8[]){ 0xa5, 0x44, 0x33, 0x22, 0x11, 0xa5 }), 6);
}

static void icrc_equal__every_byte_counts(void **state)
{
	u8 stored[4] = { 0x44, 0x33, 0x22, 0x11 };

	assert_true(icrc_equal(0x11223344, stored));
	assert_false(icrc_equal(0x44332211, stored));
	for (int bit = 0; bit < 32; bit++) {
		stored[bit / 8] ^= 1 << bit % 8;
		assert_false(icrc_equal(0x11223344, stored));
		stored[bit / 8] ^= 1 << bit % 8;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(icrc_start__both_families, reseed),
		cmocka_unit_test_setup(icrc_packet__every_length, reseed),
		cmocka_unit_test_setup(icrc_packet__each_bit, reseed),
		cmocka_unit_test_setup(icrc_id_change__as_if_made_so, reseed),
		cmocka_unit_test_setup(icrc_unknown__every_identification, reseed),
		cmocka_unit_test_setup(icrc_unknown__explains_few, reseed),
		cmocka_unit_test_setup(icrc_unknown__single_bits, reseed),
		cmocka_unit_test_setup(icrc_unknown_solve__finds_the_fields, reseed),
		cmocka_unit_test_setup(icrc_update__any_pieces, reseed),
		cmocka_unit_test(icrc_update__published_values),
		cmocka_unit_test(icrc_store__little_endian),
		cmocka_unit_test(icrc_equal__every_byte_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
