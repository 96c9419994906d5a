/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * What a broker decides without the kernel: what a message is, whose a QP number is, what a user
 * may have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../user/broker/message.h"
#include "../../user/broker/numbers.h"
#include "../../user/broker/quota.h"
#include "../../user/broker/tap.h"

/* ---- messages ---- */

static void message_check__table(void **state)
{
	static const struct {
		struct ask ask;
		size_t len;
		int flags, want;
	} table[] = {
		{ { ASK_VERSION, ASK_HELLO, 0, 0, { { 0 } } }, sizeof(struct ask), 0, 0 },
		{ { ASK_VERSION, ASK_WHAT_MAX, ~0u, 0, { { 0 } } }, sizeof(struct ask), 0, 0 },
		{ { ASK_VERSION, 0, 0, 0, { { 0 } } }, sizeof(struct ask), 0, -EBADMSG },
		{ { ASK_VERSION, ASK_WHAT_MAX + 1, 0, 0, { { 0 } } },
		  sizeof(struct ask), 0, -EBADMSG },
		{ { ASK_VERSION, ~0u, 0, 0, { { 0 } } }, sizeof(struct ask), 0, -EBADMSG },
		{ { ASK_VERSION, ASK_HELLO, 0, 1, { { 0 } } }, sizeof(struct ask), 0, -EBADMSG },
		{ { ASK_VERSION, ASK_BIND, 0, 0, { { 1, { 1 }, 3, 0 } } },
		  sizeof(struct ask), 0, 0 },
		{ { ASK_VERSION, ASK_UNBIND, 0, 0, { { 1, { 1 }, 3, 0 } } },
		  sizeof(struct ask), 0, 0 },
		{ { ASK_VERSION, ASK_BIND, 0, 0, { { 1, { 1 }, 3, 1 } } },
		  sizeof(struct ask), 0, -EBADMSG },
		{ { ASK_VERSION, ASK_HELLO, 0, 0, { { 1, { 0 }, 0, 0 } } },
		  sizeof(struct ask), 0, -EBADMSG },
		{ { ASK_VERSION, ASK_DRAW, 0, 0, { { 0, { 0 }, 1, 0 } } },
		  sizeof(struct ask), 0, -EBADMSG },
		{ { ASK_VERSION, ASK_HELLO, 0, 0, { { 0 } } },
		  sizeof(struct ask) - 1, 0, -EBADMSG },
		{ { ASK_VERSION, ASK_HELLO, 0, 0, { { 0 } } }, 4, 0, -EBADMSG },
		{ { ASK_VERSION, ASK_HELLO, 0, 0, { { 0 } } }, 3, 0, -EBADMSG },
		{ { ASK_VERSION, ASK_HELLO, 0, 0, { { 0 } } },
		  sizeof(struct ask), MSG_TRUNC, -EBADMSG },
		{ { ASK_VERSION, ASK_HELLO, 0, 0, { { 0 } } },
		  sizeof(struct ask), MSG_CTRUNC, -EBADMSG },
		{ { ASK_VERSION + 1, ASK_HELLO, 0, 0, { { 0 } } },
		  sizeof(struct ask), 0, -EPROTONOSUPPORT },
		{ { ASK_VERSION + 1, ~0u, 7, 7, { { 0 } } }, 4, 0, -EPROTONOSUPPORT },
		{ { ASK_VERSION + 1, 0, 0, 0, { { 0 } } },
		  sizeof(struct ask), MSG_TRUNC, -EPROTONOSUPPORT },
		{ { ASK_VERSION + 1, 0, 0, 0, { { 0 } } },
		  sizeof(struct ask), MSG_CTRUNC, -EBADMSG },
		{ { ASK_VERSION, ASK_TRACE, 0, 0, { .trace = { { 1 }, 1, 1, 1, 1, 1, 0 } } },
		  sizeof(struct ask), 0, 0 },
		{ { ASK_VERSION, ASK_TRACE, 0, 0, { .trace = { { 1 }, 1, 1, 1, 1, 1, 1 } } },
		  sizeof(struct ask), 0, -EBADMSG },
		{ { ASK_VERSION, ASK_TRACE, 0, 1, { { 0 } } }, sizeof(struct ask), 0, -EBADMSG },
		{ { ASK_VERSION, ASK_UNTRACE, 0, 0, { .trace = { { 0 }, 1, 0, 0, 0, 0, 0 } } },
		  sizeof(struct ask), 0, -EBADMSG },
		{ { .version = 0 }, 0, 0, -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_int_equal(message_check(&table[i].ask, table[i].len, table[i].flags),
				 table[i].want);
}

/* Until the last of them has been read. */
static void message_is_unread__counts_answers(void **state)
{
	const struct ask_answer answer = { .what = ASK_LIST };
	struct ask_answer taken;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_false(message_is_unread(pair[0]));
	for (u32 i = 0; i < 2; i++)
		assert_int_equal(message_answer(pair[0], &answer, NULL), 0);
	for (u32 i = 0; i < 2; i++) {
		assert_true(message_is_unread(pair[0]));
		assert_int_equal(recv(pair[1], &taken, sizeof(taken), 0), sizeof(taken));
	}
	assert_false(message_is_unread(pair[0]));
	/* what the client has sent is not ours */
	assert_int_equal(send(pair[1], &answer, sizeof(struct ask), 0), sizeof(struct ask));
	assert_false(message_is_unread(pair[0]));
	close(pair[0]);
	close(pair[1]);
}

/* ---- numbers ---- */

static void numbers_check__reserved(void **state)
{
	static const u32 none[] = { 0, 1, 0xffffff, 0x1000000, 0x1000002, ~0u };

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		assert_int_equal(numbers_check(none[i]), -EINVAL);
	}
	assert_int_equal(numbers_check(2), 0);
	assert_int_equal(numbers_check(0xfffffe), 0);
}

static void numbers_claim__first_come(void **state)
{
	u32 a = NUMBERS_NONE, b = NUMBERS_NONE;
	struct numbers n;

	assert_int_equal(numbers_make(&n, 8, 12345), 0);
	assert_int_equal(numbers_claim(&n, 7, 0, &a), 0);
	assert_int_equal(numbers_claim(&n, 7, 0, &a), -EALREADY);
	assert_int_equal(numbers_claim(&n, 7, 1, &b), -EEXIST);
	assert_int_equal(numbers_release(&n, 7, 1, &b), -ENOENT);
	assert_int_equal(numbers_claim(&n, 7, 1, &b), -EEXIST);
	assert_int_equal(numbers_release(&n, 7, 0, &a), 0);
	assert_int_equal(numbers_release(&n, 7, 0, &a), -ENOENT);
	assert_int_equal(a, NUMBERS_NONE);
	assert_int_equal(numbers_claim(&n, 7, 1, &b), 0);
	assert_int_equal(numbers_claim(&n, 7, 0, &a), -EEXIST);
	numbers_unmake(&n);
}

static void numbers_claim__no_more(void **state)
{
	u32 a = NUMBERS_NONE, b = NUMBERS_NONE, qpn;
	struct numbers n;

	assert_int_equal(numbers_make(&n, 3, 1), 0);
	assert_int_equal(numbers_claim(&n, 10, 0, &a), 0);
	assert_int_equal(numbers_claim(&n, 11, 0, &a), 0);
	assert_int_equal(numbers_claim(&n, 12, 1, &b), 0);
	assert_int_equal(numbers_claim(&n, 13, 1, &b), -ENOSPC);
	/* whose it is is known all the same */
	assert_int_equal(numbers_claim(&n, 10, 1, &b), -EEXIST);
	assert_true(numbers_pop(&n, &a, &qpn));
	assert_int_equal(numbers_claim(&n, 13, 1, &b), 0);
	numbers_unmake(&n);
}

/* What a source of random bits gives next. */
struct row {
	u32 value[8];
	u32 given;
};

static u32 next_of(void *arg)
{
	struct row *row = arg;

	assert_true(row->given < ARRAY_SIZE(row->value));
	return row->value[row->given++];
}

/* A valid and free QP number, from the 24 drawn bits. */
static void numbers_draw__of_nobody(void **state)
{
	struct row row = { .value = { 0, 1, 0xffffff, 0x7000001, 7, 8, 0x9fffffe } };
	u32 a = NUMBERS_NONE, b = NUMBERS_NONE, qpn = 0;
	struct numbers n;

	assert_int_equal(numbers_make(&n, 8, 12345), 0);
	assert_int_equal(numbers_claim(&n, 7, 0, &a), 0);
	assert_int_equal(numbers_claim(&n, 8, 1, &b), 0);
	assert_int_equal(numbers_draw(&n, next_of, &row, 1, &b, &qpn), 0);
	assert_int_equal(qpn, 0xfffffe);
	assert_int_equal(row.given, 7);
	assert_int_equal(numbers_claim(&n, 0xfffffe, 0, &a), -EEXIST);
	assert_int_equal(numbers_release(&n, 0xfffffe, 1, &b), 0);
	numbers_unmake(&n);
}

/* Of one slot, too, which is the least that could be drawn. */
static u32 slot_of(void *arg)
{
	u64 *seed = arg;

	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(*seed >> 40) / XROCE_MAX_QP * XROCE_MAX_QP + 77;
}

/* A returned number is not drawn again soon: peers remember its old owner. */
static void numbers_draw__not_again_soon(void **state)
{
	u32 a = NUMBERS_NONE, last[15] = { 0 }, qpn;
	struct numbers n;
	u64 seed = 5;

	assert_int_equal(numbers_make(&n, 8, 1), 0);
	for (u32 i = 0; i < 20000; i++) {
		assert_int_equal(numbers_draw(&n, slot_of, &seed, 0, &a, &qpn), 0);
		assert_int_equal(qpn % XROCE_MAX_QP, 77);
		for (u32 k = 0; k < ARRAY_SIZE(last); k++)
			assert_int_not_equal(qpn, last[k]);
		last[i % ARRAY_SIZE(last)] = qpn;
		assert_int_equal(numbers_release(&n, qpn, 0, &a), 0);
	}
	numbers_unmake(&n);
}

static void numbers_draw__no_more(void **state)
{
	struct row row = { .value = { 10, 11, 12 } };
	u32 a = NUMBERS_NONE, qpn;
	struct numbers n;

	assert_int_equal(numbers_make(&n, 2, 1), 0);
	assert_int_equal(numbers_draw(&n, next_of, &row, 0, &a, &qpn), 0);
	assert_int_equal(numbers_draw(&n, next_of, &row, 0, &a, &qpn), 0);
	assert_int_equal(numbers_draw(&n, next_of, &row, 0, &a, &qpn), -ENOSPC);
	assert_int_equal(row.given, 3);
	numbers_unmake(&n);
}

static u32 drawn(void *arg)
{
	return (u32)rand();
}

/* Against an array that says whose each number is. */
static void numbers__as_an_array(void **state)
{
	enum { CLIENTS = 5, RANGE = 64, CAPACITY = 40 };
	u32 list[CLIENTS], count[CLIENTS] = { 0 }, total = 0, owner[RANGE], qpn;
	struct numbers n;

	srand(1);
	assert_int_equal(numbers_make(&n, CAPACITY, 0x9e3779b9), 0);
	memset(list, 0xff, sizeof(list));
	memset(owner, 0xff, sizeof(owner));
	for (u32 i = 0; i < 200000; i++) {
		const u32 c = (u32)rand() % CLIENTS, q = (u32)rand() % RANGE;
		int want;

		switch (rand() % 8) {
		case 0:
			/* in the range of the array only by chance */
			if (total == CAPACITY || numbers_draw(&n, drawn, NULL, c, &list[c], &qpn))
				break;
			if (qpn >= RANGE) {
				assert_int_equal(numbers_release(&n, qpn, c, &list[c]), 0);
				break;
			}
			assert_int_equal(owner[qpn], ~0u);
			owner[qpn] = c;
			count[c]++;
			total++;
			break;
		case 1: case 2: case 3:
			want = owner[q] == c ? -EALREADY : ~owner[q] ? -EEXIST :
			       total == CAPACITY			 ? -ENOSPC : 0;
			assert_int_equal(numbers_claim(&n, q, c, &list[c]), want);
			if (!want) {
				owner[q] = c;
				count[c]++;
				total++;
			}
			break;
		case 4: case 5: case 6:
			want = owner[q] == c ? 0 : -ENOENT;
			assert_int_equal(numbers_release(&n, q, c, &list[c]), want);
			if (!want) {
				owner[q] = ~0u;
				count[c]--;
				total--;
			}
			break;
		default:
			if (rand() % 16)
				break;
			while (numbers_pop(&n, &list[c], &qpn)) {
				assert_int_equal(owner[qpn], c);
				owner[qpn] = ~0u;
				count[c]--;
				total--;
			}
			assert_int_equal(count[c], 0);
		}
		assert_int_equal(list[c] == NUMBERS_NONE, count[c] == 0);
	}
	numbers_unmake(&n);
}

/* ---- quota ---- */

static const struct quota_limits few = {
	.user = { [QUOTA_CONNECTIONS] = 4,
		  [QUOTA_CLIENTS] = 2,
		  [QUOTA_QPS] = 3,
		  [QUOTA_RINGS] = 1 },
	.all = { [QUOTA_CONNECTIONS] = QUOTA_SPARE + 6,
		 [QUOTA_CLIENTS] = 3,
		 [QUOTA_QPS] = 100,
		 [QUOTA_RINGS] = 100 },
};
static struct quota quota;

static struct quota_user *come_as(u32 uid, bool admin)
{
	struct quota_user *u = quota_find(&quota, uid, admin);

	assert_non_null(u);
	assert_int_equal(quota_take(&quota, u, QUOTA_CONNECTIONS), 0);
	return u;
}
static struct quota_user *come(u32 uid) { return come_as(uid, false); }

static void quota__a_user(void **state)
{
	struct quota_user *u;

	quota_init(&quota, &few);
	u = come(1000);
	assert_ptr_equal(quota_find(&quota, 1000, false), u);
	assert_ptr_not_equal(quota_find(&quota, 1001, false), u);
	for (u32 i = 0; i < 3; i++)
		assert_int_equal(quota_take(&quota, u, QUOTA_QPS), 0);
	assert_int_equal(quota_take(&quota, u, QUOTA_QPS), -EDQUOT);
	quota_give(&quota, u, QUOTA_QPS, 2);
	assert_int_equal(quota_take(&quota, u, QUOTA_QPS), 0);
	assert_int_equal(quota_take(&quota, u, QUOTA_RINGS), 0);
	assert_int_equal(quota_take(&quota, u, QUOTA_RINGS), -EDQUOT);
	/* another's are its own */
	assert_int_equal(quota_take(&quota, come(1001), QUOTA_RINGS), 0);
}

/* Root of a container may have no capability: it is a user like others. */
static void quota__uid_0_is_a_user(void **state)
{
	struct quota_user *u;

	quota_init(&quota, &few);
	u = come(0);
	assert_ptr_not_equal(come_as(0, true), u);
	for (u32 i = 0; i < 3; i++)
		assert_int_equal(quota_take(&quota, u, QUOTA_QPS), 0);
	assert_int_equal(quota_take(&quota, u, QUOTA_QPS), -EDQUOT);
	assert_int_equal(quota_left(&quota, u, QUOTA_QPS), 0);
}

static void quota__admins_and_all(void **state)
{
	struct quota_user *root, *u;

	quota_init(&quota, &few);
	root = come_as(0, true);
	u = come(1000);
	for (u32 i = 0; i < 50; i++)
		assert_int_equal(quota_take(&quota, root, QUOTA_QPS), 0);
	for (u32 i = 0; i < 3; i++)
		assert_int_equal(quota_take(&quota, root, QUOTA_CLIENTS), 0);
	assert_int_equal(quota_take(&quota, root, QUOTA_CLIENTS), -ENOSPC);
	assert_int_equal(quota_take(&quota, u, QUOTA_CLIENTS), -ENOSPC);
	quota_give(&quota, root, QUOTA_CLIENTS, 1);
	assert_int_equal(quota_take(&quota, u, QUOTA_CLIENTS), 0);
}

/* Others leave room for root's last connections. */
static void quota__room_for_root(void **state)
{
	struct quota_user *u, *root;

	quota_init(&quota, &few);
	for (u32 i = 0; i < 6; i++)
		u = come(1000 + i);
	assert_int_equal(quota_take(&quota, u, QUOTA_CONNECTIONS), -ENOSPC);
	for (u32 i = 0; i < QUOTA_SPARE; i++)
		root = come_as(0, i % 2);
	assert_int_equal(quota_take(&quota, root, QUOTA_CONNECTIONS), -ENOSPC);
}

/* A user without clients leaves a free place, and no state in it. */
static void quota_find__a_place_each(void **state)
{
	struct quota_user *u;
	u32 uid;

	quota_init(&quota, &few);
	quota.limits.all[QUOTA_CONNECTIONS] = ~0u;
	for (uid = 1; uid <= QUOTA_USERS_MAX; uid++)
		come(uid);
	assert_null(quota_find(&quota, uid, false));
	u = quota_find(&quota, 5, false);
	u->served = 99;
	quota_give(&quota, u, QUOTA_CONNECTIONS, 1);
	assert_ptr_equal(quota_find(&quota, uid, false), u);
	assert_int_equal(u->uid, uid);
	assert_int_equal(u->served, 0);
}

/* ---- names ---- */

static void tap_is_hairpin__names(void **state)
{
	assert_true(tap_is_hairpin("xrt2"));
	assert_true(tap_is_hairpin("xrt2147483647"));
	assert_false(tap_is_hairpin("xrt2.0"));
	assert_false(tap_is_hairpin("xrt2."));
	assert_false(tap_is_hairpin("xrt0"));
	assert_false(tap_is_hairpin("xrt"));
	assert_false(tap_is_hairpin("xrt2x"));
	assert_false(tap_is_hairpin("xrt-2"));
	assert_false(tap_is_hairpin("xrt 2"));
	assert_false(tap_is_hairpin("xrt4294967298"));
	assert_false(tap_is_hairpin("xr2"));
	assert_false(tap_is_hairpin(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_check__table),
		cmocka_unit_test(message_is_unread__counts_answers),
		cmocka_unit_test(numbers_check__reserved),
		cmocka_unit_test(numbers_claim__first_come),
		cmocka_unit_test(numbers_claim__no_more),
		cmocka_unit_test(numbers_draw__of_nobody),
		cmocka_unit_test(numbers_draw__not_again_soon),
		cmocka_unit_test(numbers_draw__no_more),
		cmocka_unit_test(numbers__as_an_array),
		cmocka_unit_test(quota__a_user),
		cmocka_unit_test(quota__uid_0_is_a_user),
		cmocka_unit_test(quota__admins_and_all),
		cmocka_unit_test(quota__room_for_root),
		cmocka_unit_test(quota_find__a_place_each),
		cmocka_unit_test(tap_is_hairpin__names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
