/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* The view of /proc for first processes that wait for orphans, and for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../user/tools/run/daemonize.h"

static void status__of_known_ones(void **state)
{
	static const struct {
		const char *name, *status;
		bool reaps;
	} rows[] = {
		{ "systemd", "Name:\tsystemd\nSigBlk:\t7fe3c0fe28014a03\n"
			     "SigIgn:\t0000000000001000\n"
			     "SigCgt:\t00000000000004ec\n", true },
		{ "tini", "Name:\ttini\nSigBlk:\tfffffffe7fdbfaff\n"
			  "SigIgn:\t0000000000300000\n", true },
		{ "ignored", "Name:\tx\nSigBlk:\t0000000000000000\n"
			     "SigIgn:\t0000000000010000\n", true },
		{ "sleep", "Name:\tsleep\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
			   "SigCgt:\t0000000000000000\n", false },
		{ "Go", "Name:\tapp\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
			"SigCgt:\tfffffffd7fc1feff\n", false },
		{ "a name", "Name:\tSigBlk:\t10000\nSigIgn:\t0000000000000000\n", false },
		{ "nothing", "", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (adopter_status_reaps(rows[i].status) != rows[i].reaps)
			fail_msg("%s", rows[i].name);
}

static void stat__of_children_waited_for(void **state)
{
	assert_true(adopter_stat_reaps("S 0 1 1 0 -1 4194560 7412 51873 21 94 3 7 12 5 20 0"));
	assert_false(adopter_stat_reaps("S 0 1 1 0 -1 4194560 7412 0 21 0 3 7 0 0 20 0"));
	assert_false(adopter_stat_reaps("S 0 1 1 0 -1 4194560 7412"));
	assert_false(adopter_stat_reaps(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status__of_known_ones),
		cmocka_unit_test(stat__of_children_waited_for),
	};

	return cmocka_run_group_tests_name("adopter", tests, NULL, NULL);
}
