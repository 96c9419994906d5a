#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Multicast groups, each process alone on its interface: every attached QP has one copy of each
# message, also at the sender's; no other QP has one; the host's own multicast goes on.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

GROUP_v4=239.77.1.2 GROUP_v6=ff15::77:1

member_ready() { grep -qx ready "$WORK/$1.out" || is_gone_or_zombie "$child"; }
is_member() { in_ns "$1" ip maddr show dev "$2" | grep -q "inet6\? *$3"; }

# to_members FAMILY RECEIVER-OPTIONS -- SENDER-OPTIONS: the receiver is on A, the sender on B.
to_members() {
	local family=$1 group receives sends receiver rc
	split_words receives sends "${@:2}"
	gids_for "$family" || return
	group=GROUP_$family
	group=${!group}
	start_on receiver a "$TOOLS/group" "${receives[@]}" $DEV_A "$gid_a" "$group" 200
	receiver=$child
	wait_until 20 member_ready receiver
	is_member a $IF_A "$group" || fail "the interface is no member"
	start_on sender b "$TOOLS/group" -s "${sends[@]}" $DEV_B "$gid_b" "$group" 200
	finish "$child" 30
	rc=$?
	[ $rc -eq 0 ] || { fail "the sender ended with $rc"; show sender; }
	finish "$receiver" 30
	rc=$?
	[ $rc -eq 0 ] || { fail "the receiver ended with $rc"; show receiver; }
	is_member a $IF_A "$group" && fail "the interface is a member still"
	need_line receiver '^ok$'
	need_line sender '^ok$'
}

# Perftest's own group is of IPv6.
perftest() {
	local options=(-F -g -c UD -s 1024 -n 500 "${@:2}" -d)
	gids_for v6 || return
	client_server 18515 40 "$1" "${options[@]}" $DEV_A -x "$gid_a" -- \
		"$1" "${options[@]}" $DEV_B -x "$gid_b" $IP4_A
}

# By the connection manager's library, and by the QP that is attached.
is_attached() { in_a ip maddr show dev $IF_A | grep -q "$1 users 2"; }

# both_mckeys ADDRESS-OF-A ADDRESS-OF-B GROUP [-o]: the connection manager's own program, which
# joins the group itself; its sender may only send.
both_mckeys() {
	start_on receiver a mckey -m "$3" -b "$1"
	receiver=$child
	wait_until 20 is_attached "$3" || { fail "it does not join"; show receiver; return; }
	start_on sender b mckey -m "$3" -b "$2" -s "${@:4}"
	finish "$child" 30 || { fail "the sender ended with $?"; show sender; }
	finish "$receiver" 30 || { fail "the receiver ended with $?"; show receiver; }
	need_line receiver 'data transfers complete'
}

core_cases=(members_v6 sender_is_member_v4 events_v4 event_loop_v6 perftest_bw)
for family in v4 v6; do
	tier_case members_$family to_members $family -m 2 -o 2 -- -m 0
	tier_case sender_is_member_$family to_members $family -m 2 -- -m 2
	tier_case events_$family to_members $family -e -m 3 -- -m 1 -e
	tier_case event_loop_$family to_members $family -p -m 1 -- -m 1 -p
done
tier_case perftest_bw perftest ib_send_bw
tier_case perftest_lat perftest ib_send_lat
if command -v mckey >/dev/null; then
	tier_case mckey_v4 both_mckeys $IP4_A $IP4_B $GROUP_v4
	tier_case mckey_v6 both_mckeys $IP6_A $IP6_B $GROUP_v6
	tier_case mckey_send_only both_mckeys $IP4_A $IP4_B $GROUP_v4 -o
else
	echo "skip mckey it is not installed"
fi
finish_cases
