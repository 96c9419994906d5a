/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* Records of several rings come in the order of their times, however the rings are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../user/tools/trace/records.h"

#define RECORDS_MAX 4096

struct seen {
	u32 num;
	u64 time_ns[RECORDS_MAX];
	char ring[RECORDS_MAX];
	u32 nth[RECORDS_MAX];
};

static void see(void *arg, struct traced *from, struct xroce_record *r, u32 size)
{
	struct seen *s = arg;

	assert_true(s->num < RECORDS_MAX);
	assert_int_equal(size, sizeof(*r) + sizeof(u32));
	s->time_ns[s->num] = r->cqe.rx_time_ns;
	s->ring[s->num] = *(const char *)from;
	memcpy(&s->nth[s->num++], r->data, sizeof(u32));
}

static void put(struct records *s, const char *ring, u64 time_ns, u32 nth)
{
	const struct xroce_record head = { .cqe.rx_time_ns = time_ns };

	assert_int_equal(records_put(s, (struct traced *)(uintptr_t)ring, &head, &nth, sizeof(nth)),
			 0);
}

/* Both ends of a connection, as `xroce capture` read them: a packet is lost, B sends a NAK. */
static void give__a_nak_after_its_cause(void **state)
{
	static const char a[] = "A", b[] = "B";
	struct records s = { 0 };
	struct seen seen = { 0 };

	/* A's ring is read at 100, B's at 130: the packet that was sent at 110 is in the next */
	put(&s, a, 90, 1);
	put(&s, b, 95, 1);
	put(&s, b, 115, 3); /* received */
	put(&s, b, 120, 4); /* the NAK for it */
	assert_int_equal(records_give(&s, 100, see, &seen), 2);
	put(&s, a, 110, 3); /* sent */
	put(&s, a, 125, 4); /* the NAK has arrived */
	assert_int_equal(records_give(&s, 130, see, &seen), 4);
	assert_memory_equal(seen.ring, "ABABBA", 6);
	assert_memory_equal(seen.nth, ((u32[]){ 1, 1, 3, 3, 4, 4 }), 6 * sizeof(u32));
	assert_int_equal(s.late, 0);
	records_free(&s);
}

static void give__one_time_as_they_came(void **state)
{
	static const char a[] = "A";
	struct records s = { 0 };
	struct seen seen = { 0 };

	for (u32 i = 0; i < 3000; i++)
		put(&s, a, 7, i);
	assert_int_equal(records_give(&s, 7, see, &seen), 0);
	assert_int_equal(records_give(&s, 8, see, &seen), 3000);
	for (u32 i = 0; i < 3000; i++)
		assert_int_equal(seen.nth[i], i);
	records_free(&s);
}

static void give__late_ones_are_counted(void **state)
{
	static const char a[] = "A", b[] = "B";
	struct records s = { 0 };
	struct seen seen = { 0 };

	put(&s, a, 10, 1);
	put(&s, a, 20, 2);
	assert_int_equal(records_give(&s, 15, see, &seen), 1);
	put(&s, b, 5, 1);
	put(&s, b, 12, 2);
	assert_int_equal(records_give(&s, NSEC_NEVER, see, &seen), 3);
	assert_memory_equal(seen.ring, "ABBA", 4);
	assert_int_equal(s.late, 1);
	records_free(&s);
}

/* Rings that are read in any order, each in its own, within the window. */
static void give__random(void **state)
{
	static const char rings[] = "abcdefgh";
	u32 next[8] = { 0 }, order;

	srand(1);
	for (u32 run = 0; run < 50; run++) {
		struct records s = { 0 };
		struct seen seen = { 0 };
		u64 read_ns[8] = { 0 }, given = 0, put_ = 0;

		for (u64 round = 1; round <= 40; round++) {
			const u64 begin_ns = round * 100;

			for (u32 i = 0; i < 8; i++) {
				/* it is read a while after the round began */
				const u64 end_ns = begin_ns + (u64)(rand() % 100);

				while (read_ns[i] + 60 < end_ns) {
					read_ns[i] += 1 + (u64)(rand() % 60);
					put(&s, rings + i, read_ns[i], next[i]++);
					put_++;
				}
			}
			/* writes before its start were read, except in the window */
			given += records_give(&s, begin_ns > 60 ? begin_ns - 60 : 0, see, &seen);
		}
		given += records_give(&s, NSEC_NEVER, see, &seen);
		assert_int_equal(given, put_);
		assert_int_equal(s.late, 0);
		for (u32 i = 1; i < seen.num; i++)
			assert_true(seen.time_ns[i] >= seen.time_ns[i - 1]);
		for (u32 ring = 0; ring < 8; ring++) {
			order = 0;
			for (u32 i = 0; i < seen.num; i++)
				if (seen.ring[i] == rings[ring]) {
					assert_true(!order || seen.nth[i] == order);
					order = seen.nth[i] + 1;
				}
		}
		records_free(&s);
	}
}

/* As `xroce qp` prints them, and as `-q` accepts them. */
static void decode__queue_pairs_in_hexadecimal(void **state)
{
	const struct packet p = { .opcode = 0x64, .flags = OP_DETH, .dest_qpn = 0x12ab, .psn = 17,
				  .src_qpn = 0xfffffe, .qkey = 0x11111111 };
	char text[256];

	decode_text(&p, text, sizeof(text));
	assert_string_equal(text, "UD SEND_ONLY QP 0x0012ab PSN 17, "
				  "from QP 0xfffffe, Q_Key 0x11111111");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(give__a_nak_after_its_cause),
		cmocka_unit_test(give__one_time_as_they_came),
		cmocka_unit_test(give__late_ones_are_counted),
		cmocka_unit_test(give__random),
		cmocka_unit_test(decode__queue_pairs_in_hexadecimal),
	};

	return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
