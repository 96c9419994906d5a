#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# The device of lo, at 127.0.0.1 and ::1: one process, two that share it on demand, two unprivileged
# ones with a broker, and connections by rdma_cm.
. "$(dirname "$0")/lib/case.sh"
NS_B=$NS_A IF_A=lo DEV_A=xroce_lo IP4_A=127.0.0.1 IP6_A=::1
netns_add $NS_A
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS/group" "$OWN/bin/group"
. "$here/tests/netns/lib/perf.sh"
. "$here/tests/netns/lib/exchange.sh"
. "$here/tests/netns/lib/cm.sh"

# Of lo's GIDs the IPv4 address is the first.
gids_for() {
	gids_are=$1
	case $1 in v4) gid_a=0 ;; v6) gid_a=1 ;; esac
}
# program user|need NS: of a user with a broker, or of root, with a broker on demand.
program() {
	case $1 in
	user) as_nobody always "$2" ;;
	need) words=("$XROCE" run --dev $IF_A --share auto --) ;;
	esac
}

alone() {
	in_a timeout 60 env LD_LIBRARY_PATH="$BUILD/lib" XROCE_DEV=$IF_A \
		"$TOOLS/cq_notify_stress" -L -d $DEV_A -n 200 >"$WORK/stress.out" 2>&1 ||
		{ fail "cq_notify_stress ends with $?"; show stress; }
}

gids_are_lo() {
	in_a "$XROCE" list $IF_A >"$WORK/list.out" 2>&1
	need_line list '::ffff:127\.0\.0\.1'
	need_line list '[^:0-9a-f]::1( |$)'
}

# A second process comes while the first has lo alone.
by_need() { pingpong need need a "$@"; }
# by_cm FAMILY: rping checks its data.
by_cm() {
	cm_place=user
	cm_family "$1"
	cm_pair 30 rping -s -a "$server_ip" -C 20 -v -- rping -c -a "$server_ip" -C 20 -v -V
}

# Each of two has one copy of each message to a group.
group_ready_or_gone() { grep -qx ready "$WORK/$1.out" || is_gone_or_zombie "$2"; }
to_a_group() {
	local receiver
	as_nobody auto a
	start receiver a "${words[@]}" "$OWN/bin/group" $DEV_A 0 239.77.1.2 100
	receiver=$child
	wait_until 30 group_ready_or_gone receiver "$receiver"
	start sender a "${words[@]}" "$OWN/bin/group" -s $DEV_A 0 239.77.1.2 100
	finish "$child" 40 || { fail "the sender ended with $?"; show sender; }
	finish "$receiver" 40 || { fail "the receiver ended with $?"; show receiver; }
	need_line receiver '^ok$'
}

run_case gids gids_are_lo
run_case alone alone
run_case need_rc_v4 by_need v4 ibv_rc_pingpong 4096 300 -c
run_long_case need_rc_v6 by_need v6 ibv_rc_pingpong 4096 300 -c -e
run_long_case need_ud by_need v4 ibv_ud_pingpong 2048 300 -c
serve a $IF_A || { cat "$WORK/case.notes"; exit 1; }
run_case user_rc_v4 pingpong user user a v4 ibv_rc_pingpong 4096 300 -c
run_case user_rc_v6 pingpong user user a v6 ibv_rc_pingpong 65536 100 -c -m 4096 -e
run_long_case user_uc pingpong user user a v4 ibv_uc_pingpong 4096 300 -c
run_long_case user_srq pingpong user user a v6 ibv_srq_pingpong 4096 300 -c
run_long_case user_ud pingpong user user a v6 ibv_ud_pingpong 2048 300 -c
run_case write_bw_both measure user user a v4 ib_write_bw 65536 1000 -b
run_long_case send_bw_ud measure user user a v6 ib_send_bw 1024 1000 -c UD
run_long_case read_lat measure user user a v4 ib_read_lat 4096 500
run_long_case atomic_bw measure user user a v6 ib_atomic_bw 8 1000
run_long_case to_a_group to_a_group
run_case cm_v4 by_cm v4
run_case cm_v6 by_cm v6
finish_cases
