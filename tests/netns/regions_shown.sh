#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# `xroce mr` after each change of regions and windows: it shows their real state
# (regions_shown.c).
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

each_change() {
	start_on shown a "$TOOLS/regions_shown" $DEV_A "$XROCE"
	finish "$child" 30 || { fail "it ended with $?"; show shown; }
	need_no_line shown '^not ok'
	need_line shown '^ok none_is_left'
	need_equal "steps" "$(grep -c '^ok ' "$WORK/shown.out")" 18
}

run_case each_change each_change
finish_cases
