#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
# tier: long tsan
#
# No wake-up is lost between two threads of one process, over its own GID (cq_notify_stress.c).
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500 2

loopback() {
	in_a timeout 200 env LD_LIBRARY_PATH="$BUILD/lib" XROCE_TEST_QUEUES=2 \
		"$TOOLS/cq_notify_stress" -L -d $DEV_A -n 2000 >"$WORK/stress.out" 2>&1 ||
		{ fail "cq_notify_stress ends with $?"; show stress; }
}

run_case loopback loopback
finish_cases
