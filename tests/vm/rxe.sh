#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
# tier: long sockets XROCE_PORT=sockets
#
# A peer that is not ours: the Soft-RoCE of Debian's 6.1 kernel in a virtual machine. Every opcode
# of RC, UC and UD both ways, with data and completions checked at both ends and every packet of
# ours judged in a capture; atomics while packets are lost and overtake each other; errors.
. "$(dirname "$0")/../netns/lib/case.sh"
. "$here/tests/netns/lib/cable.sh"
. "$here/tests/vm/lib/guest.sh"
. "$here/tests/vm/lib/peer.sh"
. "$here/tests/vm/lib/beside.sh"

if ! guest_possible || ! kernel_get 6.1; then
	echo "skip rxe_6.1 $skip_reason"
	exit 0
fi

boot() {
	local programs=(-p "$VM_TOOLS/opcodes" -p "$TOOLS/vdata") tool
	if beside_possible; then
		for tool in "${BESIDE_TOOLS[@]}"; do
			programs+=(-p "$tool")
		done
	fi
	guest_topology 4500
	guest_bridge
	guest_boot guest 6.1 2 "${programs[@]}" || return
	peer_up 4500
}

# operations CASE FAMILY PATH-MTU [OPTION...]: ours is side 0, the guest's Soft-RoCE side 1.
operations() {
	local case=$1 family=$2 mtu=$3
	shift 3
	peer_gids "$family" || return
	peer_capture pb
	peer_pair 18610 60 "$VM_TOOLS/opcodes" -m "$mtu" "$@" "$case" -- -r
	peer_judge "$mtu"
	need_line client "^opcodes: .* right$"
	need_line server "^opcodes: .* right$"
}

# Random data, several requests at a time in both directions.
data() {
	local transport=$1 family=$2 mtu=$3
	peer_gids "$family" || return
	peer_capture pb
	peer_pair 18600 60 "$TOOLS/vdata" -t "$transport" -m "$mtu" -n 20 -s 7 -x 20000 -T 18 -y 6
	peer_judge "$mtu"
	need_line client "^vdata: $transport .* bytes right"
	need_line server "^vdata: $transport .* bytes right"
}

# Through the bad cable. Our packets are captured before it, arriving ones after it.
lossy() {
	local family=$1 program=$2 port=$3
	shift 3
	cable_with -s 5 -l 10 -r 10
	peer_gids "$family" || return
	peer_capture pa
	peer_pair "$port" 120 "$program" "$@"
	peer_judge 1024
	need_line client ' right'
	need_line server ' right'
	cable_did dropped reordered
}

# The kernel's connection manager answers: `xroce ping` needs no program there.
ping_kernel() {
	local ip=$IP4_B
	[ "$1" = v4 ] || ip=$IP6_B
	guest_do guest ucm "modprobe rdma_ucm" || { fail "no rdma_ucm in the guest"; show ucm; return 1; }
	peer_capture pb
	in_a timeout 60 "$XROCE" ping --dev $IF_A -c 10 -i 0.05 -W 10 $ip >"$WORK/ping.out" 2>&1 || fail "xroce ping ended with $?"
	peer_judge 1024
	need_line ping '^10 sent, 10 received, 0% loss' || return
	need_line ping '^path MTU [0-9]* at most'
}

# Every opcode was sent, by them and by us.
all_opcodes() {
	local who op
	for who in ours theirs; do
		for op in "RC "{SEND_{FIRST,MIDDLE,LAST,LAST_IMM,LAST_INV,ONLY,ONLY_IMM,ONLY_INV},WRITE_{FIRST,MIDDLE,LAST,LAST_IMM,ONLY,ONLY_IMM},READ_REQUEST,READ_RESPONSE_{FIRST,MIDDLE,LAST,ONLY},CMP_SWAP,FETCH_ADD,ACKNOWLEDGE,ATOMIC_ACKNOWLEDGE} \
			"UC "{SEND_{FIRST,MIDDLE,LAST,LAST_IMM,ONLY,ONLY_IMM},WRITE_{FIRST,MIDDLE,LAST,LAST_IMM,ONLY,ONLY_IMM}} \
			"UD "SEND_{ONLY,ONLY_IMM}; do
			grep -q "^$who $op [1-9]" "$WORK/opcodes.seen" || fail "$who: no $op"
		done
	done
	grep -q '^ours RNR_NAK [1-9]' "$WORK/opcodes.seen" || fail "no RNR NAK of ours"
	grep -q '^flipped [1-9][0-9]*, unnoticed 0' "$WORK/opcodes.seen" || fail "the judge was not judged"
	need_least "judged packets" "$judged" 3000
}

: >"$WORK/opcodes.seen"
run_case boot boot
[ $case_failed = 0 ] || finish_cases
for family in v4 v6; do
	for case in rc uc ud inv rnr errors; do
		run_case ${case}_$family operations $case $family 1024
	done
done
run_case rc_256_v4 operations rc v4 256
run_case rc_4096_v6 operations rc v6 4096
for transport in rc uc ud; do
	run_case data_${transport}_v4 data $transport v4 2048
done
run_case data_rc_v6 data rc v6 1024
for family in v4 v6; do
	run_case ping_$family ping_kernel $family
done
run_case all_opcodes all_opcodes
guest_unbridge
in_a ethtool -K $IF_A tx off tso off gso off gro off >/dev/null
for family in v4 v6; do
	run_case lossy_atomics_$family lossy $family "$VM_TOOLS/opcodes" 18610 -n 200 atomics -- -r
done
run_case lossy_data lossy v4 "$TOOLS/vdata" 18600 -n 20 -s 8 -x 20000 -T 18 -y 6
[ -z "$cable" ] || stop "$cable"
if beside_possible; then
	run_case beside_up beside_up
	for case in second killed first alone_again; do
		run_case beside_$case beside_$case
	done
else
	echo "skip beside $skip_reason"
fi
guest_off guest
finish_cases
