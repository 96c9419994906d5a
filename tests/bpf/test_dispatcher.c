/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The XDP program as it is in a dispatcher, where it may daemonize its process: while that has its
 * socket on the first queue all is as ever; without it every packet passes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench.h"

static struct frame f;

static void build(uint32_t qpn)
{
	struct frame_spec s = bench_spec();

	bench_reset();
	s.ecn_qpn = qpn;
	frame_build(&f, &s);
}

static void steer_is_left_behind__process_lives(void **state)
{
	build(BENCH_RC_QPN);
	bench_expect_redirect("to a QP", f.bytes, f.len, BENCH_RC_QPN);
	build(0x4321);
	bench_expect_drop("to no QP", f.bytes, f.len, XROCE_DROP_qp_unknown, 0);
}

static void steer_is_left_behind__process_has_ended(void **state)
{
	build(BENCH_RC_QPN);
	bench_put_xsk(0, false);
	bench_expect_pass("to a QP", f.bytes, f.len, false);
	build(0x4321);
	bench_put_xsk(0, false);
	bench_expect_pass("to no QP", f.bytes, f.len, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steer_is_left_behind__process_lives),
		cmocka_unit_test(steer_is_left_behind__process_has_ended),
	};

	bench_in_dispatcher = true;
	return cmocka_run_group_tests_name("dispatcher", tests, bench_setup, bench_teardown);
}
