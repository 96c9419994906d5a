/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* Which frames must keep their order, by all headers that the engine puts in front of them. */
#include "../unit/packets.h"

#include "../../user/io/tx_gso.h"

static void expect(u8 opcode, bool matters)
{
	u64 seed = opcode;

	for (u32 i = 0; i < 4; i++) {
		struct path path = random_path(&seed, i & 1, i & 2);
		struct packet p = random_packet(&seed, opcode);
		u8 frame[PACKET_FRAME_MAX], *payload = packet_put_headers(frame, &path, &p);

		packet_seal(frame, payload, 0);
		assert_int_equal(tx_order_matters(frame), matters);
	}
}

static void tx_order_matters__by_service(void **state)
{
	expect(OPCODE(XROCE_UC, OP5_SEND_ONLY), true);
	expect(OPCODE(XROCE_UC, OP5_WRITE_MIDDLE), true);
	expect(OPCODE_CREDIT_PROBE, true);
	expect(OPCODE_CREDIT_ANSWER, false);
	expect(OPCODE(XROCE_RC, OP5_SEND_ONLY), false);
	expect(OPCODE(XROCE_RC, OP5_ACKNOWLEDGE), false);
	expect(OPCODE(XROCE_UD, OP5_SEND_ONLY), true);
	expect(OPCODE(XROCE_XRC, OP5_SEND_ONLY), false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tx_order_matters__by_service),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
