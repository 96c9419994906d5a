#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Two interfaces of one network namespace, unmodified programs on each. If both have brokers, their
# traffic turns round at the hairpins and never leaves the machine; traffic to an interface with a
# single owner goes by the wire.
. "$(dirname "$0")/lib/case.sh"
NS_B=$NS_A
netns_add $NS_A
ip -n $NS_A link add $IF_A mtu 4500 type veth peer name $IF_B mtu 4500 || netns_die "cannot make a veth pair"
netns_host $NS_A $IF_A $MAC_A $IP4_A $IP6_A
netns_host $NS_A $IF_B $MAC_B $IP4_B $IP6_B
netns_wait_ready
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/perf.sh"
. "$here/tests/netns/lib/perftest.sh"
. "$here/tests/netns/lib/exchange.sh"

# all_programs NAME SERVER CLIENT: the core has one pingpong and the runs of core_cases.
all_programs() {
	local name=$1 who=("$2" "$3" b) family t
	run_case ${name}_rc_v6 pingpong "${who[@]}" v6 ibv_rc_pingpong 4096 300 -c
	run_long_case ${name}_rc_v4 pingpong "${who[@]}" v4 ibv_rc_pingpong 4096 300 -c
	for family in v4 v6; do
		for t in uc srq; do
			run_long_case ${name}_${t}_$family \
				pingpong "${who[@]}" $family ibv_${t}_pingpong 4096 300 -c
		done
		for t in rc uc srq; do
			run_long_case ${name}_${t}_large_$family \
				pingpong "${who[@]}" $family ibv_${t}_pingpong 65536 60 -c -m 4096 -e
		done
		run_long_case ${name}_ud_$family \
			pingpong "${who[@]}" $family ibv_ud_pingpong 2048 300 -c
	done
	perftest_cases near ${name}_ measure "${who[@]}"
}

sent() { ip -n $NS_A -s -j link show dev "$1" | grep -oE '"tx":\{"bytes":[0-9]+' | grep -oE '[0-9]+$'; }

# All of them near, and next to nothing on the wire: ARP, neighbour discovery.
both_served() {
	local before
	before=$(($(sent $IF_A) + $(sent $IF_B)))
	all_programs "$1" user user
	wire=$(($(sent $IF_A) + $(sent $IF_B) - before))
	# of both tiers
	judge_case "$1"_not_by_wire little_by_wire
}
little_by_wire() { [ "$wire" -lt 100000 ] || fail "$wire bytes left by the interfaces"; }

serve a $IF_A $IF_B || { cat "$WORK/case.notes"; exit 1; }
core_cases=(
	one_process_write_bw_64 one_process_send_bw_1024_ud_events_v6 to_shared_read_bw_65536
	two_processes_read_bw_65536 two_processes_atomic_bw_8 to_exclusive_send_bw_65536
)
both_served one_process
stop $broker
serve a $IF_A || { cat "$WORK/case.notes"; exit 1; }
broker_a=$broker
all_programs to_shared user alone
serve b $IF_B || { cat "$WORK/case.notes"; exit 1; }
both_served two_processes
stop $broker_a
all_programs to_exclusive alone user
finish_cases
