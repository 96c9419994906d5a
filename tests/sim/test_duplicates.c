/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san XROCE_SIM_ENGINES=3 */
/* tier: long engines XROCE_SIM_ENGINES=3 */
/*
 * The responses to a requester that goes back, as rxe does, for SENDs and WRITEs that were executed
 * before. rxe takes a plain ACK at an atomic's PSN for the atomic's response.
 */
#include "raw.h"

#include <setjmp.h>
#include <cmocka.h>

static void write_packet(struct raw *r, u8 low, u32 psn, bool ackreq)
{
	struct packet p = raw_access(r, OPCODE(XROCE_RC, low), psn, 0,
				     low == OP5_WRITE_FIRST ? 3 * RAW_PMTU : 64);

	p.ackreq = ackreq;
	raw_send(r, p, NULL, low == OP5_WRITE_ONLY ? 64 : RAW_PMTU);
}

/* FIRST, MIDDLE and LAST: a duplicate is answered if it has AckReq or ends the message. */
static void duplicate__is_answered_if_it_asks_or_ends(void **state)
{
	static const u8 low[] = { OP5_WRITE_FIRST, OP5_WRITE_MIDDLE, OP5_WRITE_LAST };

	for (u32 i = 0; i < 3; i++)
		for (u32 asks = 0; asks < 2; asks++) {
			struct raw r = raw_create_small("test_duplicates asks or ends");

			for (u32 k = 0; k < 3; k++)
				write_packet(&r, low[k], RAW_PSN + k, false);
			expect_silence(&r);
			write_packet(&r, low[i], RAW_PSN + i, asks);
			if (asks || i == 2)
				expect_ack(&r, SYNDROME_ACK, RAW_PSN + 2, 1);
			expect_silence(&r);
			raw_destroy(&r);
		}
}

static void duplicates__one_answer_a_run(void **state)
{
	struct raw r = raw_create_small("test_duplicates run");

	for (u32 i = 0; i < 20; i++) {
		write_packet(&r, OP5_WRITE_ONLY, RAW_PSN + i, true);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN + i, i + 1);
	}
	for (u32 run = 0; run < 3; run++) {
		for (u32 i = 5 * run; i < 20; i++) {
			write_packet(&r, OP5_WRITE_ONLY, RAW_PSN + i, true);
			if (i == 5 * run)
				expect_ack(&r, SYNDROME_ACK, RAW_PSN + 19, 20);
			expect_silence(&r);
		}
		/* the requester continues after them */
	}
	/* the same packet again counts as a new run: the answer was lost */
	write_packet(&r, OP5_WRITE_ONLY, RAW_PSN + 19, true);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 19, 20);
	write_packet(&r, OP5_WRITE_ONLY, RAW_PSN + 20, true);
	expect_ack(&r, SYNDROME_ACK, RAW_PSN + 20, 21);
	raw_destroy(&r);
}

/*
 * WRITE, atomic or READ, WRITE: the first is acknowledged for itself, the one between by its
 * response alone.
 */
static void duplicate__never_acknowledges_a_response(void **state)
{
	for (u32 is_read = 0; is_read < 2; is_read++)
		for (u32 behind = 0; behind < 2; behind++) {
			struct raw r = raw_create_small("test_duplicates response");
			struct packet p = raw_access(&r, is_read ? RC(READ_REQUEST) : RC(FETCH_ADD),
						     RAW_PSN + 2, 64, is_read ? 2 * RAW_PMTU : 0);
			u32 after = RAW_PSN + 3 + is_read;

			write_packet(&r, OP5_WRITE_ONLY, RAW_PSN, true);
			write_packet(&r, OP5_WRITE_ONLY, RAW_PSN + 1, true);
			raw_send(&r, p, NULL, 0);
			if (behind)
				write_packet(&r, OP5_WRITE_ONLY, after, true);
			while (raw_answer(&r))
				;
			/* all of that was lost */
			write_packet(&r, OP5_WRITE_ONLY, RAW_PSN, true);
			expect_ack(&r, SYNDROME_ACK, RAW_PSN + 1, 3 + behind);
			write_packet(&r, OP5_WRITE_ONLY, RAW_PSN + 1, true);
			expect_silence(&r);
			raw_send(&r, p, NULL, 0);
			for (u32 i = 0; i <= is_read; i++)
				check_eq(r.w, raw_answer(&r)->psn, RAW_PSN + 2 + i);
			expect_silence(&r);
			if (behind) {
				write_packet(&r, OP5_WRITE_ONLY, after, true);
				expect_ack(&r, SYNDROME_ACK, after, 4);
			}
			raw_destroy(&r);
		}
}

/*
 * A WRITE is under way after a complete one, and both are sent again. The ACK to rxe covers the
 * first alone; a part of the second with AckReq gets its own ACK, or its requester would wait.
 */
static void duplicate__never_overtakes_rxe_in_a_message(void **state)
{
	static const u8 low[] = { OP5_WRITE_FIRST, OP5_WRITE_MIDDLE, OP5_WRITE_LAST };

	for (u32 is_rxe = 0; is_rxe < 2; is_rxe++) {
		struct raw r = raw_create_small("test_duplicates in a message");

		r.is_rxe = is_rxe;
		write_packet(&r, OP5_WRITE_ONLY, RAW_PSN, true);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN, 1);
		for (u32 i = 0; i < 2; i++)
			write_packet(&r, low[i], RAW_PSN + 1 + i, false);
		expect_silence(&r);
		write_packet(&r, OP5_WRITE_ONLY, RAW_PSN, true);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN + (is_rxe ? 0 : 2), 1);
		write_packet(&r, low[0], RAW_PSN + 1, false);
		expect_silence(&r);
		/* asked for by each that the window ends with, its ACK lost again */
		write_packet(&r, low[0], RAW_PSN + 1, true);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN + (is_rxe ? 1 : 2), 1);
		write_packet(&r, low[1], RAW_PSN + 2, true);
		if (is_rxe)
			expect_ack(&r, SYNDROME_ACK, RAW_PSN + 2, 1);
		expect_silence(&r);
		write_packet(&r, low[2], RAW_PSN + 3, true);
		expect_ack(&r, SYNDROME_ACK, RAW_PSN + 3, 2);
		raw_destroy(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(duplicate__is_answered_if_it_asks_or_ends),
		cmocka_unit_test(duplicates__one_answer_a_run),
		cmocka_unit_test(duplicate__never_acknowledges_a_response),
		cmocka_unit_test(duplicate__never_overtakes_rxe_in_a_message),
	};

	return cmocka_run_group_tests_name("duplicates", tests, NULL, NULL);
}
