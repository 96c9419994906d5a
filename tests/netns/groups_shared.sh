#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Multicast groups of several unprivileged processes on one interface: each process with members has
# a copy of each message. The sender may be a process of the same interface, a member or not, or a
# remote one. The same holds for the process that was there first.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"

COUNT=100
GROUP_v4=239.77.1.2 GROUP_v6=ff15::77:1
install -m 755 "$TOOLS/group" "$OWN/bin/group"

ready_or_gone() { grep -qx ready "$WORK/$1.out" || is_gone_or_zombie "$2"; }

# run_as WHO NAME NS OPTION...: `user` is the user nobody with a broker, `first` is root, which
# others join, `alone` is root without a broker. Waits until its QPs are attached.
run_as() {
	local who=$1 name=$2 ns=$3 dev=$DEV_A iface=$IF_A gid=$gid_a words
	shift 3
	[ "$ns" = b ] && dev=$DEV_B iface=$IF_B gid=$gid_b
	case $who in
	user) words=("${NOBODY[@]}" "$OWN/bin/xroce" run --dev $iface --share auto -- "$OWN/bin/group") ;;
	first) words=("$XROCE" run --dev $iface --share auto -- "$TOOLS/group") ;;
	alone) words=("$XROCE" run --dev $iface --share never -- "$TOOLS/group") ;;
	esac
	start "$name" "$ns" "${words[@]}" "$@" $dev "$gid" "$group" $COUNT
	pid[$name]=$child
	wait_until 30 ready_or_gone "$name" "$child"
	need_line "$name" '^ready$'
}

ends_well() {
	local name
	for name in "$@"; do
		finish "${pid[$name]}" 40 || fail "$name ended with $?"
		need_line "$name" '^ok$'
	done
}

# A process without a member never gets anything: it is ended.
stranger_ends() {
	kill "${pid[stranger]}"
	ends_well stranger
}

group_of() {
	gids_for "$1" || return
	group=GROUP_$1
	group=${!group}
}

# from_within FAMILY SENDER-MEMBERS: all of it on A, and one on B, which has it by the wire.
from_within() {
	local -A pid
	local group
	group_of "$1" || return
	run_as user one a -m 2 && run_as user two a -e && run_as user stranger a -m 0 -o 2 &&
		run_as alone far b -m 2 && run_as user sender a -s -m "$2" || return
	ends_well sender one two far
	stranger_ends
}

from_elsewhere() {
	local -A pid
	local group
	group_of "$1" || return
	run_as user one a -m 2 && run_as user two a -p && run_as user three a -m 3 -e &&
		run_as user stranger a -m 0 -o 2 && run_as alone sender b -s -m 1 || return
	ends_well sender one two three
	stranger_ends
}

# A process that is killed, or leaves, is not waited for; later members get later messages.
some_go() {
	local -A pid
	local group
	group_of v4 || return
	run_as user gone a -m 2 && run_as user one a -m 1 && run_as user two a -m 1 || return
	kill -9 "${pid[gone]}"
	finish "${pid[gone]}" 10
	run_as user late a -m 2 -e && run_as user sender a -s -m 1 || return
	ends_well sender one two late
	! in_a ip maddr show dev $IF_A | grep -q "$group" || fail "the interface is a member still"
}

# The process that was there first has AF_XDP sockets: it receives with the others, and sends to
# them.
first_receives() {
	local -A pid
	local group
	group_of "$1" || return
	run_as first first a -m 2 && run_as user one a -m 2 -e && run_as user two a -m 1 &&
		run_as alone far b -m 1 && run_as user sender a -s -m 1 || return
	ends_well sender one two far first
}

first_sends() {
	local -A pid
	local group
	group_of "$1" || return
	run_as first holder a -m 1 && run_as user one a -m 2 && run_as user two a -m 1 -p &&
		run_as alone far b -s -m 1 || return
	ends_well far holder one two
}

no_broker() { ! in_ns a "$XROCE" list | grep -q 'broker *pid'; }

core_cases=(within_sender_is_member_v4 elsewhere_v6 some_go first_receives_v6)
core_cases+=(first_with_others_v4)
XROCE_SHARE=
serve a $IF_A
for family in v4 v6; do
	tier_case within_$family from_within $family 0
	tier_case within_sender_is_member_$family from_within $family 2
	tier_case elsewhere_$family from_elsewhere $family
done
tier_case some_go some_go
stop "$broker"
for family in v4 v6; do
	tier_case first_receives_$family first_receives $family
	wait_until 10 no_broker
	tier_case first_with_others_$family first_sends $family
	wait_until 10 no_broker
done
finish_cases
