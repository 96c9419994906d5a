#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# What the calls of rsocket(7) answer, and what hostile peers get: tests/netns/rsockets.c, both ends
# in one process.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# Its lines are this test's.
calls() {
	local rc
	on_a timeout 300 "$TOOLS/rsockets" "$1" "${XROCE_CASE:-*}" >"$WORK/calls.out" 2>&1
	rc=$?
	cat "$WORK/calls.out"
	case $rc in 0) ;; 1) case_failed=1 ;; *) echo "not ok calls_$1 it ended with $rc"; case_failed=1 ;; esac
	case_ran=1
}

calls $IP4_A
calls $IP6_A
finish_cases
