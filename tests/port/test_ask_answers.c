/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * user/client/ask.c: invalid answers, one of each kind. A refused answer leaves no descriptor, and
 * hangs up the conversation.
 */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <errno.h>

#include "../common/open_fds.h"
#include "ask_talk.h"

static void hello_fails(struct talk *t, const struct reply *r, int want)
{
	struct ask_port port = { 0 };
	const u32 before = open_fds();
	int fds[ASK_SOCKETS_FDS];

	say(t, r);
	assert_int_equal(ask_hello(&t->asker, false, &port, fds), want);
	assert_int_equal(open_fds(), before);
	is_over(t);
}

static void ask_check__refuses_what_is_too_short(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.len--;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_what_is_too_long(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.len++;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_an_empty_message_with_descriptors(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.len = 0;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_another_version(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.answer.version++;
	hello_fails(*state, &r, -EPROTONOSUPPORT);
}

static void ask_check__refuses_the_answer_to_another_question(void **state)
{
	struct reply r = yes(ASK_RING, ASK_FDS);

	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_a_positive_error(void **state)
{
	struct reply r = yes(ASK_HELLO, 0);

	r.answer.err = ENOSPC;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_an_error_that_is_none(void **state)
{
	struct reply r = yes(ASK_HELLO, 0);

	r.answer.err = INT32_MIN;
	hello_fails(*state, &r, -EPROTO);
}

/* The broker cannot claim the end of the conversation. */
static void ask_check__refuses_an_error_of_our_own(void **state)
{
	struct reply r = yes(ASK_HELLO, 0);

	r.answer.err = -EPIPE;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_fewer_descriptors(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS - 1);

	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_more_descriptors(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS + 1);

	hello_fails(*state, &r, -EPROTO);
}

/* A table is read up to its length, and must have the default P_Key, which QP 1 uses. */
static const struct pkey_table no_pkeys[] = {
	{ 0, { 0 } },
	{ 0, { 0xffff } },
	{ XROCE_MAX_PKEY + 1, { 0xffff } },
	{ ~0u, { 0xffff } },
	{ 1, { 0x8001 } },
	{ 1, { 0x7fff } },
	{ 2, { 0x8001, 0xffff } },
	{ 2, { 0xffff, 0x0000 } },
	{ 2, { 0xffff, 0x8000 } },
	{ 2, { 0xffff, 0xffff } },
	{ 3, { 0xffff, 0x8001, 0x8001 } },
	{ 1, { 0xffff, 0x8001 } },
};

static void ask_check__refuses_what_is_no_table(void **state)
{
	for (u32 i = 0; i < ARRAY_SIZE(no_pkeys); i++) {
		struct talk *t;
		struct reply r = yes(ASK_KIND, 0);
		struct ask_kind kind = { .pkeys.num = 77 };

		assert_int_equal(setup((void **)&t), 0);
		r.answer.kind.pkeys = no_pkeys[i];
		say(t, &r);
		assert_int_equal(ask_kind(&t->asker, &kind), -EPROTO);
		assert_int_equal(kind.pkeys.num, 77);
		is_over(t);
		teardown((void **)&t);

		assert_int_equal(setup((void **)&t), 0);
		r.answer.kind = (struct ask_kind){ PKEY_TABLE_DEFAULT, .udp = 2 };
		say(t, &r);
		assert_int_equal(ask_kind(&t->asker, &kind), -EPROTO);
		teardown((void **)&t);

		assert_int_equal(setup((void **)&t), 0);
		r.answer.kind = (struct ask_kind){ PKEY_TABLE_DEFAULT, .sole = 2 };
		say(t, &r);
		assert_int_equal(ask_kind(&t->asker, &kind), -EPROTO);
		teardown((void **)&t);

		assert_int_equal(setup((void **)&t), 0);
		r = yes(ASK_HELLO, ASK_FDS);
		r.answer.port.pkeys = no_pkeys[i];
		hello_fails(t, &r, -EPROTO);
		teardown((void **)&t);
	}
}

static void ask_check__refuses_more_descriptors_than_it_says(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.fds++;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_fewer_descriptors_than_it_says(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.answer.num_fds++;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_more_descriptors_than_there_is_room_for(void **state)
{
	struct reply r = yes(ASK_HELLO, MANY_FDS);

	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_descriptors_with_an_error(void **state)
{
	struct reply r = yes(ASK_HELLO, ASK_FDS);

	r.answer.err = -ENOSPC;
	hello_fails(*state, &r, -EPROTO);
}

static void ask_check__refuses_descriptors_that_nobody_wanted(void **state)
{
	struct talk *t = *state;
	struct reply r = yes(ASK_CLAIM, 1);
	const u32 before = open_fds();

	say(t, &r);
	assert_int_equal(ask_claim(&t->asker, 7), -EPROTO);
	assert_int_equal(open_fds(), before);
	is_over(t);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(ask_check__refuses_what_is_too_short),
		TEST(ask_check__refuses_what_is_too_long),
		TEST(ask_check__refuses_an_empty_message_with_descriptors),
		TEST(ask_check__refuses_another_version),
		TEST(ask_check__refuses_the_answer_to_another_question),
		TEST(ask_check__refuses_a_positive_error),
		TEST(ask_check__refuses_an_error_that_is_none),
		TEST(ask_check__refuses_an_error_of_our_own),
		TEST(ask_check__refuses_fewer_descriptors),
		TEST(ask_check__refuses_more_descriptors),
		TEST(ask_check__refuses_more_descriptors_than_it_says),
		TEST(ask_check__refuses_fewer_descriptors_than_it_says),
		TEST(ask_check__refuses_more_descriptors_than_there_is_room_for),
		TEST(ask_check__refuses_descriptors_with_an_error),
		TEST(ask_check__refuses_descriptors_that_nobody_wanted),
		TEST(ask_check__refuses_what_is_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
