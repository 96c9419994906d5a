#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# A reader of the first process's output, standard error too, gets its end of file when it exits,
# though the broker that it started serves others on.
. "$(dirname "$0")/lib/case.sh"

netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"

has_broker() { in_a "$XROCE" list $IF_A | grep -q '^  broker  *pid'; }
has_guest() { in_a "$XROCE" list $IF_A | grep -q '^  client .* of nobody, 1 QP'; }

# The reader ends when the last write end is closed.
reader_is_told() {
	local first guest reader
	mkfifo "$WORK/errors"
	cat "$WORK/errors" >"$WORK/first.out" &
	reader=$!
	netns_children+=("$reader")
	nsenter --net=/run/netns/$NS_A "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p 18610 </dev/null >/dev/null 2>"$WORK/errors" &
	first=$!
	netns_children+=("$first")
	wait_until 10 listens_or_gone a 18610 "$first"
	start guest a "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p 18611
	guest=$child
	wait_until 20 has_guest || { fail "the guest has no QP"; show guest; }
	stop "$first"
	wait_until 3 is_gone_or_zombie "$reader" || fail "whoever reads the first process's standard error waits for the broker"
	has_broker && has_guest || fail "the guest has not stayed"
	stop "$guest"
	stop "$reader"
}

run_case reader_is_told reader_is_told

finish_cases
