/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The opcode table against the protocol sheet: the expected rows are typed in from its tables of
 * opcodes and headers, not taken from wire.h.
 */
#include "unit.h"

#include "../../user/engine/packet.h"

/* Sizes of the extension headers, from the protocol sheet. */
enum {
	RETH = 16,
	ATOMIC_ETH = 28,
	AETH = 4,
	ATOMIC_ACK_ETH = 8,
	DETH = 8,
	IMM = 4,
	IETH = 4,
	XRC_ETH = 4,
	FETH = 4
};

enum { START = 1, END = 2, ONLY = 3, PAYLOAD = 4, REQUEST = 8, RESPONSE = 16 };

static const struct row {
	const char *name;
	int low;
	unsigned int ext; /* bytes on RC */
	int kind;
	bool on_uc, on_ud;
} rows[] = {
	{ "SEND_FIRST", 0x00, 0, REQUEST | PAYLOAD | START, true, false },
	{ "SEND_MIDDLE", 0x01, 0, REQUEST | PAYLOAD, true, false },
	{ "SEND_LAST", 0x02, 0, REQUEST | PAYLOAD | END, true, false },
	{ "SEND_LAST_IMM", 0x03, IMM, REQUEST | PAYLOAD | END, true, false },
	{ "SEND_ONLY", 0x04, 0, REQUEST | PAYLOAD | ONLY, true, true },
	{ "SEND_ONLY_IMM", 0x05, IMM, REQUEST | PAYLOAD | ONLY, true, true },
	{ "WRITE_FIRST", 0x06, RETH, REQUEST | PAYLOAD | START, true, false },
	{ "WRITE_MIDDLE", 0x07, 0, REQUEST | PAYLOAD, true, false },
	{ "WRITE_LAST", 0x08, 0, REQUEST | PAYLOAD | END, true, false },
	{ "WRITE_LAST_IMM", 0x09, IMM, REQUEST | PAYLOAD | END, true, false },
	{ "WRITE_ONLY", 0x0a, RETH, REQUEST | PAYLOAD | ONLY, true, false },
	{ "WRITE_ONLY_IMM", 0x0b, RETH + IMM, REQUEST | PAYLOAD | ONLY, true, false },
	{ "READ_REQUEST", 0x0c, RETH, REQUEST | ONLY, false, false },
	{ "READ_RESPONSE_FIRST", 0x0d, AETH, RESPONSE | PAYLOAD | START, false, false },
	{ "READ_RESPONSE_MIDDLE", 0x0e, 0, RESPONSE | PAYLOAD, false, false },
	{ "READ_RESPONSE_LAST", 0x0f, AETH, RESPONSE | PAYLOAD | END, false, false },
	{ "READ_RESPONSE_ONLY", 0x10, AETH, RESPONSE | PAYLOAD | ONLY, false, false },
	{ "ACKNOWLEDGE", 0x11, AETH, RESPONSE | ONLY, false, false },
	{ "ATOMIC_ACKNOWLEDGE", 0x12, AETH + ATOMIC_ACK_ETH, RESPONSE | ONLY, false, false },
	{ "CMP_SWAP", 0x13, ATOMIC_ETH, REQUEST | ONLY, false, false },
	{ "FETCH_ADD", 0x14, ATOMIC_ETH, REQUEST | ONLY, false, false },
	{ "SEND_LAST_INV", 0x16, IETH, REQUEST | PAYLOAD | END, false, false },
	{ "SEND_ONLY_INV", 0x17, IETH, REQUEST | PAYLOAD | ONLY, false, false },
	{ "FLUSH", 0x1c, FETH + RETH, REQUEST | ONLY, false, false },
	{ "ATOMIC_WRITE", 0x1d, RETH, REQUEST | PAYLOAD | ONLY, false, false },
};

static const struct row *find_row(int low)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].low == low)
			return &rows[i];
	return NULL;
}

enum { RC = 0x00, UC = 0x20, UD = 0x60, XRC = 0xa0 };

/*
 * The row of an existing opcode, and the bytes of its extension headers on its transport; NULL for
 * an undefined one.
 */
static const struct row *expected(int opcode, unsigned int *ext)
{
	const struct row *r = find_row(opcode & 0x1f);

	if (!r)
		return NULL;
	*ext = r->ext;
	switch (opcode & 0xe0) {
	case RC:
		return r;
	case UC:
		return r->on_uc ? r : NULL;
	case UD:
		*ext += DETH;
		return r->on_ud ? r : NULL;
	case XRC:
		*ext += r->kind & REQUEST ? XRC_ETH : 0;
		return r;
	}
	return NULL;
}

static void opcode_flags__every_opcode(void **state)
{
	unsigned int valid = 0;

	for (int opcode = 0; opcode < 256; opcode++) {
		u32 flags = opcode_flags((u8)opcode);
		unsigned int ext;
		const struct row *r;

		if (opcode == 0x81 || opcode == 0xc0 || opcode == 0xc1)
			continue;
		r = expected(opcode, &ext);
		if (!r) {
			/* RC and XRC refuse a reserved opcode as a request of any payload */
			assert_int_equal(flags,
					 (opcode & 0xe0) == RC || (opcode & 0xe0) == XRC ?
						 OP_REQUEST | OP_PAYLOAD :
						 0);
			continue;
		}
		valid++;
		assert_true(flags & OP_VALID);
		assert_int_equal(roce_ext_bytes(flags), ext);
		assert_int_equal(!!(flags & OP_START), !!(r->kind & START));
		assert_int_equal(!!(flags & OP_END), !!(r->kind & END));
		assert_int_equal(!!(flags & OP_PAYLOAD), !!(r->kind & PAYLOAD));
		assert_int_equal(!!(flags & OP_REQUEST), !!(r->kind & REQUEST));
		assert_int_equal(!!(flags & OP_RESPONSE), !!(r->kind & RESPONSE));
		assert_int_equal(!!(flags & OP_DETH), (opcode & 0xe0) == UD);
		assert_int_equal(!!(flags & OP_XRC_ETH),
				 (opcode & 0xe0) == XRC && (r->kind & REQUEST));
		assert_int_equal(!!(flags & OP_SEND), !strncmp(r->name, "SEND", 4));
		assert_int_equal(!!(flags & OP_WRITE), !strncmp(r->name, "WRITE", 5));
		assert_int_equal(!!(flags & OP_READ), !strncmp(r->name, "READ", 4));
		assert_int_equal(!!(flags & OP_ATOMIC), r->low >= 0x12 && r->low <= 0x14);
		assert_int_equal(!!(flags & OP_ACK), r->low == 0x11);
		assert_int_equal(!!(flags & OP_IMM), !!strstr(r->name, "IMM"));
		assert_int_equal(!!(flags & OP_IETH), !!strstr(r->name, "INV"));
		assert_int_equal(!!(flags & OP_FLUSH), r->low == 0x1c);
		assert_int_equal(!!(flags & OP_ATOMIC_WRITE), r->low == 0x1d);
	}
	assert_int_equal(valid, 25 + 12 + 2 + 25);
}

static void opcode_flags__cnp(void **state)
{
	u32 flags = opcode_flags(0x81);

	assert_int_equal(flags & ((1u << OP_EXT_BYTES_SHIFT) - 1), OP_VALID | OP_CNP | OP_ONLY);
	assert_int_equal(roce_ext_bytes(flags), 16);
}

/* Of the manufacturers' range, with a DETH and 8 bytes. */
static void opcode_flags__flow(void **state)
{
	for (u8 opcode = 0xc0; opcode <= 0xc1; opcode++) {
		u32 flags = opcode_flags(opcode);

		assert_int_equal(flags & ((1u << OP_EXT_BYTES_SHIFT) - 1),
				 OP_VALID | OP_CREDIT | OP_DETH);
		assert_int_equal(roce_ext_bytes(flags), 16);
	}
}

static void opcode_name__every_opcode(void **state)
{
	static const char *const transport[8] = { "RC", "UC", NULL, "UD", NULL, "XRC" };

	for (int opcode = 0; opcode < 256; opcode++) {
		unsigned int ext;
		const struct row *r = expected(opcode, &ext);
		char name[64] = "unknown";

		if (opcode == 0x81)
			strcpy(name, "CNP");
		else if (opcode == 0xc0 || opcode == 0xc1)
			strcpy(name, opcode == 0xc0 ? "FLOW_PROBE" : "FLOW_ANSWER");
		else if (r)
			snprintf(name, sizeof(name), "%s %s", transport[opcode >> 5], r->name);
		assert_string_equal(opcode_name((u8)opcode), name);
	}
}

/* P_Keys: low 15 bits equal and at least one side a full member. */
static void roce_pkey_matches__membership(void **state)
{
	assert_true(roce_pkey_matches(0xffff, 0xffff));
	assert_true(roce_pkey_matches(0xffff, 0x7fff));
	assert_true(roce_pkey_matches(0x7fff, 0xffff));
	assert_false(roce_pkey_matches(0x7fff, 0x7fff));
	assert_false(roce_pkey_matches(0xffff, 0xfffe));
	assert_false(roce_pkey_matches(0x8001, 0x8002));
	assert_true(roce_pkey_matches(0x8001, 0x0001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opcode_flags__every_opcode),
		cmocka_unit_test(opcode_flags__cnp),
		cmocka_unit_test(opcode_flags__flow),
		cmocka_unit_test(opcode_name__every_opcode),
		cmocka_unit_test(roce_pkey_matches__membership),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
