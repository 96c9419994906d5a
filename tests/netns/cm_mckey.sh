#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Multicast groups by rdma_cm, as mckey uses them: a member and a sender, a sender only,
# several QPs. A member that misses a message waits until the time-out.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# mckey NAME NS ARG...: in the background, on all interfaces.
mckey_on() {
	local name=$1 ns=$2
	shift 2
	start "$name" "$ns" "$XROCE" run -- timeout 60 stdbuf -oL mckey "$@"
}
has_joined() { [ "$(grep -c 'joined dgid' "$WORK/$1.out")" -ge "$2" ]; }
local_of() {
	case $1$2 in
	av4) echo $IP4_A ;;
	bv4) echo $IP4_B ;;
	av6) echo $IP6_A ;;
	bv6) echo $IP6_B ;;
	esac
}

# group FAMILY GROUP MEMBERS QPS MESSAGES ARG...: MEMBERS members in A, and a sender in B, which
# gets ARG too. QPs and messages are the same at all of them.
group() {
	local family=$1 group=$2 members=$3 qps=$4 messages=$5 pids=() i
	shift 5
	for ((i = 0; i < members; i++)); do
		mckey_on "member$i" a -m "$group" -b "$(local_of a "$family")" -c "$qps" -C "$messages"
		pids+=("$child")
	done
	for ((i = 0; i < members; i++)); do
		wait_until 30 has_joined "member$i" "$qps" || fail "member $i does not join"
	done
	mckey_on sender b -m "$group" -b "$(local_of b "$family")" -c "$qps" -C "$messages" -s "$@"
	finish "$child" 60 || { fail "the sender ended with $?"; show sender; }
	need_line sender "joined dgid: (::ffff:)?$group "
	need_line sender "return status 0"
	for ((i = 0; i < members; i++)); do
		finish "${pids[i]}" 30 || { fail "member $i ended with $?"; show "member$i"; }
		need_line "member$i" "receiving data transfers"
		need_line "member$i" "return status 0"
	done
}

core_cases=(mckey_qps_v4)
for family in v4 v6; do
	[ $family = v4 ] && group=239.1.2.3 || group=ff15::77
	tier_case mckey_$family group $family $group 1 1 50
	tier_case mckey_send_only_$family group $family $group 1 1 50 -o
	tier_case mckey_qps_$family group $family $group 1 4 20 -o
done
finish_cases
