#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The first process of an interface does not notice that the library starts a broker when another
# comes: its waits continue, it gets no signal and no child, however it handles SIGCHLD.
. "$(dirname "$0")/lib/case.sh"

netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"

is_ready() { grep -q '^ready' "$WORK/first.out"; }
has_guest() { in_a "$XROCE" list $IF_A | grep -q '^  client .* of nobody, 1 QP'; }

# undisturbed default|handler|ignore
undisturbed() {
	local first guest
	wait_until 10 has_no_broker a $IF_A || fail "somebody has $IF_A"
	start first a "$XROCE" run --dev $IF_A -- "$TOOLS/first_waiter" $DEV_A "$1"
	first=$child
	wait_until 10 is_ready || fail "it does not wait"
	start guest a "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p 18611
	guest=$child
	wait_until 20 has_guest || { fail "the guest has no QP"; show guest; }
	stop "$guest"
	stop "$first"
	need_no_line first '^interrupted'
	need_line first '^signals 0$'
	need_line first '^no child$'
}

for how in default handler ignore; do
	run_case undisturbed_$how undisturbed $how
done
finish_cases
