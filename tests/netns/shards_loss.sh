#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Two shards over a bad cable, which spreads packets over the queues by their flow: what shards.sh
# sees on a good one.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/cable.sh"
netns_chain 4500 2

data() {
	local what=$1 seed=$2
	shift 2
	cable_with -s "$seed" -l 10 -u 10 -r 10 || return
	client_server 18640 100 "$TOOLS/threads" -d $DEV_A -b -c "$@" -- "$TOOLS/threads" -d $DEV_B -b -c "$@" $IP4_A || return
	need_line client '^threads: .* QPs: [0-9]+ messages/s'
	cable_did dropped duplicated reordered
}

core_cases=(send_2-C write_4 add_4)
seed=0
for t in 2 4; do
	for sharing in "" -C -R "-C -R" -E; do
		# shellcheck disable=SC2086 # options
		tier_case "send_$t$(tr -d ' ' <<<"$sharing")" data send $((++seed)) -T $t -n $((2000 / t)) -s 3000 -e $sharing
	done
	tier_case write_$t data write $((++seed)) -T $t -o write -n $((400 / t)) -s 20000 -e
	tier_case read_$t data read $((++seed)) -T $t -o read -n $((400 / t)) -s 20000 -e
	tier_case add_$t data add $((++seed)) -T $t -q 4 -o add -n $((1000 / t)) -e
	tier_case polling_$t data send $((++seed)) -T $t -n $((2000 / t)) -s 3000
done
[ -z "$cable" ] || stop "$cable"
finish_cases
