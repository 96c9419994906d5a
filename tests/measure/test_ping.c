/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* Datagrams of xroce ping: filled ones are accepted, and all others are not. */
#include "../unit/unit.h"

#include "../../user/tools/bench/ping.h"

#define SESSION 0x0123456789abcdefull

static void ping_fill__layout(void **state)
{
	static const u8 want[] = { 'X',	 'R',  'P',  'G',  1,	 0,    0,    0,	   0x01, 0x23,
				   0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0,    0,	   0,	 0,
				   0,	 0,    0x12, 0x34, 0x4c, 0x4d, 0x4e };
	u8 data[sizeof(want)];

	ping_fill(data, sizeof(data), PING_REQUEST, SESSION, 0x1234);
	assert_memory_equal(data, want, sizeof(want));
}

static void ping_check__sizes(void **state)
{
	static const u32 size[] = { 24, 25, 64, 255, 256, 1024, 4096 };
	u64 session, seq;

	for (size_t i = 0; i < ARRAY_SIZE(size); i++) {
		u8 *data = malloc(size[i]);

		ping_fill(data, size[i], PING_REPLY, SESSION, 77 + i);
		assert_true(ping_check(data, size[i], PING_REPLY, &session, &seq));
		assert_true(session == SESSION && seq == 77 + i);
		assert_false(ping_check(data, size[i], PING_REQUEST, &session, &seq));
		free(data);
	}
}

/* No length before the header's end is read beyond, and no byte may differ. */
static void ping_check__damage(void **state)
{
	u64 session, seq;
	u8 data[64];

	ping_fill(data, sizeof(data), PING_REQUEST, SESSION, 5);
	for (u32 len = 0; len < sizeof(struct ping_header); len++) {
		u8 *copy = exact_copy(data, len);

		assert_false(ping_check(copy, len, PING_REQUEST, &session, &seq));
		free(copy);
	}
	for (u32 i = 0; i < sizeof(data); i++) {
		data[i] ^= 0x40;
		/* in the header any session is valid, and any number that fits the bytes */
		if (i >= 8 && i < 16) {
			assert_true(ping_check(data, sizeof(data), PING_REQUEST, &session, &seq));
			assert_true(session != SESSION);
		} else if (i >= 16 && i < 23) {
			assert_true(ping_check(data, sizeof(data), PING_REQUEST, &session, &seq));
			assert_true(seq != 5);
		} else {
			assert_false(ping_check(data, sizeof(data), PING_REQUEST, &session, &seq));
		}
		data[i] ^= 0x40;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ping_fill__layout),
		cmocka_unit_test(ping_check__sizes),
		cmocka_unit_test(ping_check__damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
