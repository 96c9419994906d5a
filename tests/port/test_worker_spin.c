/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* How long workers spin, by the environment and by how many processors there are. */
#include "../unit/unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "../../user/run/worker.h"

static long processors;

/* In place of the C library's. */
long sysconf(int name)
{
	return processors;
}

static void spins(const char *text, long on, u64 us)
{
	if (text)
		setenv("XROCE_SPIN_US", text, 1);
	else
		unsetenv("XROCE_SPIN_US");
	processors = on;
	assert_int_equal(worker_spin_max_ns(), us * NSEC_PER_USEC);
}

static void worker_spin_max_ns__where_another_processor_can_bring_work(void **state)
{
	spins(NULL, 2, 100);
	spins(NULL, 64, 100);
	spins(NULL, 1, 0);
	spins(NULL, -1, 100); /* not told */
}

static void worker_spin_max_ns__as_the_environment_says(void **state)
{
	spins("20", 2, 20);
	spins("20", 1, 20);
	spins("0", 2, 0);
	spins("1000001", 2, 100); /* out of range: not heeded */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_spin_max_ns__where_another_processor_can_bring_work),
		cmocka_unit_test(worker_spin_max_ns__as_the_environment_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
