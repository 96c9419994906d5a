#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# crashes: own_faults
# tier: core
#
# A program's own SIGSEGV and SIGBUS do what sigaction(2) says (own_faults.c), with the library's
# handlers in place. What these are for: memory.sh.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

own_faults() {
	start_on faults a "$TOOLS/own_faults" -d $DEV_A
	finish "$child" 60 || { fail "ended with $?"; show faults; }
	need_line faults '^own_faults: 14 signals as asked for$'
}

run_case own_faults own_faults
finish_cases
