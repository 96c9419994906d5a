#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# A user's limits at a broker: processes, QPs. One too many is an errno of the man page and one line
# that names the limit; the process's other objects keep working. Completion channels are not
# limited: channels beyond the limit of rings have none.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
install -m 755 "$TOOLS/limited" "$OWN/bin/limited"

limited() {
	local name=$1
	shift
	start "$name" a "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A --share always -- "$OWN/bin/limited" $DEV_A "$@"
}
to_its_end() {
	limited "$@"
	finish "$child" 60 || { fail "$2 ended with $?"; show "$1"; }
	need_line "$1" "^limited: $2\$"
}
need_one_line() { need_equal "lines like $2" "$(grep -cE "$2" "$WORK/$1.out")" 1; }

too_many_qps() {
	to_its_end own qps 5
	need_one_line own "^xroce: $IF_A: this user has reached its limit of QPs; .*--max-qps N $IF_A"
}

too_many_channels() {
	to_its_end own channels 4
	need_equal "lines of a limit" "$(grep -c 'this user has all' "$WORK/own.out")" 0
}

# The limit is the user's, over its processes, and only while they live.
too_many_processes() {
	local first second
	limited first hold
	first=$child
	limited second hold
	second=$child
	wait_until 20 grep -q holds "$WORK/first.out" && wait_until 20 grep -q holds "$WORK/second.out"
	to_its_end third port
	need_line third "^xroce: $IF_A: this user has reached its limit of processes; .*--max-clients N $IF_A"
	kill -9 "$first"
	finish "$first" 5
	limited third hold
	wait_until 20 grep -q holds "$WORK/third.out" || { fail "a dead process counts"; show third; }
	stop "$child"
	stop "$second"
}

start broker a "$XROCE" serve --max-clients 2 --max-qps 5 --max-rings 4 $IF_A
wait_until 10 broker_answers a $IF_A || netns_die "no broker"
run_case limit_of_qps too_many_qps
run_case limit_of_channels too_many_channels
run_case limit_of_processes too_many_processes
finish_cases
