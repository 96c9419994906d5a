#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Two interfaces of one network namespace, unmodified programs on each. Where both have brokers,
# what they send each other turns round at the hairpins and never leaves the machine; to an
# interface that one process has alone it goes by the wire.
. "$(dirname "$0")/lib/case.sh"
NS_B=$NS_A
netns_add $NS_A
ip -n $NS_A link add $IF_A mtu 4500 type veth peer name $IF_B mtu 4500 || netns_die "cannot make a veth pair"
netns_host $NS_A $IF_A $MAC_A $IP4_A $IP6_A
netns_host $NS_A $IF_B $MAC_B $IP4_B $IP6_B
netns_wait_ready
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/perf.sh"
. "$here/tests/netns/lib/exchange.sh"

all_programs() {
	local name=$1 who=("$2" "$3" b) family t
	for family in v4 v6; do
		for t in rc uc srq; do
			run_case ${name}_${t}_$family pingpong "${who[@]}" $family ibv_${t}_pingpong 4096 300 -c
			run_case ${name}_${t}_large_$family pingpong "${who[@]}" $family ibv_${t}_pingpong 65536 60 -c -m 4096 -e
		done
		run_case ${name}_ud_$family pingpong "${who[@]}" $family ibv_ud_pingpong 2048 300 -c
		run_case ${name}_send_bw_ud_$family measure "${who[@]}" $family ib_send_bw 1024 500 -c UD -e
		run_case ${name}_read_bw_$family measure "${who[@]}" $family ib_read_bw 65536 100
	done
	for t in send_bw write_bw read_lat; do
		run_case ${name}_${t}_64 measure "${who[@]}" v4 ib_$t 64 500
	done
	run_case ${name}_send_bw_65536 measure "${who[@]}" v4 ib_send_bw 65536 100
	run_case ${name}_atomic measure "${who[@]}" v4 ib_atomic_bw 8 500
}

sent() { ip -n $NS_A -s -j link show dev "$1" | grep -oE '"tx":\{"bytes":[0-9]+' | grep -oE '[0-9]+$'; }

# All of them near, and next to nothing on the wire: ARP, neighbour discovery.
both_served() {
	local before
	before=$(($(sent $IF_A) + $(sent $IF_B)))
	all_programs "$1" user user
	wire=$(($(sent $IF_A) + $(sent $IF_B) - before))
	run_case "$1"_not_by_wire little_by_wire
}
little_by_wire() { [ "$wire" -lt 100000 ] || fail "$wire bytes left by the interfaces"; }

serve a $IF_A $IF_B || { cat "$WORK/case.notes"; exit 1; }
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
