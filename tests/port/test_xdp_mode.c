/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* In which mode XDP would be attached (user/os/netdev_link.c); nothing is attached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../user/os/netdev.h"

/* No interface has this name: no driver is queried about it. */
static const struct netdev card = { .name = "nosuch0", .rx_queues = 4, .is_hardware = true };
static const struct netdev bond = { .name = "nosuch1", .rx_queues = 4, .is_stacked = true };

static void xdp_mode__generic_on_stacked_interfaces(void **state)
{
	assert_int_equal(xdp_mode(&card), XDP_MODE_ANY);
	assert_int_equal(xdp_mode(&bond), XDP_MODE_GENERIC);
}

static void xdp_mode__environment_first(void **state)
{
	setenv("XROCE_XDP", "native", 1);
	assert_int_equal(xdp_mode(&bond), XDP_MODE_NATIVE);
	setenv("XROCE_XDP", "generic", 1);
	assert_int_equal(xdp_mode(&card), XDP_MODE_GENERIC);
	unsetenv("XROCE_XDP");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xdp_mode__generic_on_stacked_interfaces),
		cmocka_unit_test(xdp_mode__environment_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
