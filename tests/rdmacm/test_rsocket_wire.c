/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* The messages of rsockets, byte for byte, and invalid ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../user/rsocket/rsocket_protocol.h"

static const struct wire_conn conn = {
	.iomap = true,
	.credits = 384,
	.iomap_size = 128,
	.list = { 0x1122334455667788, 0x99aabbcc, 2 },
	.buffer = { 0x0102030405060708, 0x090a0b0c, 0x10000 },
};

static const u8 conn_bytes[WIRE_CONN_BYTES] = {
	1, 2, 1, 128, 0, 0, 0, 128,
	0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0, 0, 0, 2,
	1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 1, 0, 0,
};

static void wire_put_conn__bytes(void **state)
{
	u8 bytes[WIRE_CONN_BYTES];

	wire_put_conn(bytes, &conn);
	assert_memory_equal(bytes, conn_bytes, sizeof(bytes));
}

static void wire_get_conn__is_what_was_put(void **state)
{
	struct wire_conn got;

	assert_true(wire_get_conn(&got, conn_bytes, sizeof(conn_bytes)));
	assert_false(got.big_endian);
	assert_true(got.iomap);
	assert_int_equal(got.credits, 384);
	assert_int_equal(got.iomap_size, 128);
	assert_true(got.list.address == conn.list.address && got.list.key == conn.list.key);
	assert_int_equal(got.list.length, 2);
	assert_true(got.buffer.address == conn.buffer.address && got.buffer.key == conn.buffer.key);
	assert_int_equal(got.buffer.length, 0x10000);
}

static void wire_get_conn__refuses(void **state)
{
	u8 bytes[WIRE_CONN_BYTES];
	struct wire_conn got;
	u32 n;

	for (n = 0; n < sizeof(conn_bytes); n++)
		assert_false(wire_get_conn(&got, conn_bytes, n));
	memcpy(bytes, conn_bytes, sizeof(bytes));
	bytes[0] = 2;
	assert_false(wire_get_conn(&got, bytes, sizeof(bytes)));
	bytes[0] = 1;
	bytes[23] = 0; /* a list of no entries */
	assert_false(wire_get_conn(&got, bytes, sizeof(bytes)));
}

static void wire_get_conn__without_a_table(void **state)
{
	u8 bytes[WIRE_CONN_BYTES];
	struct wire_conn got;

	memcpy(bytes, conn_bytes, sizeof(bytes));
	bytes[1] = 1;
	assert_true(wire_get_conn(&got, bytes, sizeof(bytes)));
	assert_true(got.big_endian);
	assert_int_equal(got.iomap_size, 0);
}

static void wire_iomap_size__of_eight_bits(void **state)
{
	static const u32 sizes[][2] = {
		{ 0, 0 },     { 1, 1 },	    { 127, 127 },     { 128, 128 },	{ 129, 128 },
		{ 256, 256 }, { 300, 256 }, { 0x7f00, 0x7f00 }, { 0xffff, 0x7f00 }, { ~0u, 0x7f00 },
	};

	for (u32 i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_int_equal(wire_iomap_size(sizes[i][0]), sizes[i][1]);
}

static void wire_message__both_ways(void **state)
{
	u32 message = wire_message(WIRE_IOMAP, 0x12345);

	assert_int_equal(message, 0xc0012345);
	assert_int_equal(wire_op(message), WIRE_IOMAP);
	assert_int_equal(wire_number(message), 0x12345);
	assert_int_equal(wire_message(WIRE_CTRL, WIRE_SHUTDOWN), 0xe0000002);
	assert_int_equal(wire_message(WIRE_SGL, 384), 0x80000180);
	assert_int_equal(wire_message(WIRE_DATA, 1000), 1000);
}

static const struct wire_address ipv4 = { .version = 4, .port = 7174, .bytes = { 10, 0, 0, 1 } };
static const struct wire_address ipv6 = { .version = 6, .port = 1, .flowinfo = 0x0a0b0c0d,
					  .bytes = { 0xfd, [15] = 9 } };

static void wire_put_dgram__bytes(void **state)
{
	static const u8 v4[] = { 4, 8, 0x1c, 0x06, 10, 0, 0, 1 };
	static const u8 v6[] = { 6, 24, 0, 1, 10, 11, 12, 13, 0xfd, [23] = 9 };
	u8 bytes[WIRE_DGRAM_MAX_BYTES];

	assert_int_equal(wire_put_dgram(bytes, &ipv4), 8);
	assert_memory_equal(bytes, v4, 8);
	assert_int_equal(wire_put_dgram(bytes, &ipv6), 24);
	assert_memory_equal(bytes, v6, 24);
}

static void wire_get_dgram__whole_or_not(void **state)
{
	u8 bytes[WIRE_DGRAM_MAX_BYTES];
	struct wire_address got;
	u32 n;

	wire_put_dgram(bytes, &ipv6);
	assert_int_equal(wire_get_dgram(&got, bytes, 100), 24);
	assert_memory_equal(&got, &ipv6, sizeof(got));
	for (n = 0; n < 24; n++)
		assert_int_equal(wire_get_dgram(&got, bytes, n), 0);
	bytes[1] = 8; /* a length of another version */
	assert_int_equal(wire_get_dgram(&got, bytes, 100), 0);
	wire_put_dgram(bytes, &ipv4);
	assert_int_equal(wire_get_dgram(&got, bytes, 8), 8);
	assert_memory_equal(&got, &ipv4, sizeof(got));
	assert_int_equal(wire_get_dgram(&got, bytes, 7), 0);
	bytes[0] = 5;
	assert_int_equal(wire_get_dgram(&got, bytes, 8), 0);
}

static void wire_put_udp__bytes(void **state)
{
	static const u8 v4[] = { 0x55, 0x55, 0x55, 0x55, 4, 7, 16, 0, 0, 0x12, 0x34, 0x56,
				 10, 0, 0, 1 };
	struct wire_udp udp = { .op = WIRE_CTRL, .qpn = 0xff123456, .address = ipv4 };
	u8 bytes[WIRE_UDP_MAX_BYTES];

	assert_int_equal(wire_put_udp(bytes, &udp), 16);
	assert_memory_equal(bytes, v4, 16);
	udp.address = ipv6;
	assert_int_equal(wire_put_udp(bytes, &udp), 28);
	assert_int_equal(bytes[4], 6);
	assert_int_equal(bytes[6], 28);
	assert_memory_equal(bytes + 12, ipv6.bytes, 16);
}

static void wire_get_udp__whole_or_not(void **state)
{
	struct wire_udp got, udp = { .op = WIRE_DATA, .qpn = 17, .address = ipv4 };
	u8 bytes[WIRE_UDP_MAX_BYTES], bad[WIRE_UDP_MAX_BYTES];
	u32 n;

	wire_put_udp(bytes, &udp);
	assert_int_equal(wire_get_udp(&got, bytes, 2000), 16);
	assert_int_equal(got.op, WIRE_DATA);
	assert_int_equal(got.qpn, 17);
	assert_memory_equal(got.address.bytes, ipv4.bytes, 4);
	for (n = 0; n < 16; n++)
		assert_int_equal(wire_get_udp(&got, bytes, n), 0);
	/* tag, version, operation, length */
	for (n = 0; n < 7; n++) {
		memcpy(bad, bytes, sizeof(bad));
		bad[n] ^= 3;
		assert_int_equal(wire_get_udp(&got, bad, 2000), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wire_put_conn__bytes),
		cmocka_unit_test(wire_get_conn__is_what_was_put),
		cmocka_unit_test(wire_get_conn__refuses),
		cmocka_unit_test(wire_get_conn__without_a_table),
		cmocka_unit_test(wire_iomap_size__of_eight_bits),
		cmocka_unit_test(wire_message__both_ways),
		cmocka_unit_test(wire_put_dgram__bytes),
		cmocka_unit_test(wire_get_dgram__whole_or_not),
		cmocka_unit_test(wire_put_udp__bytes),
		cmocka_unit_test(wire_get_udp__whole_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
