#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# A kernel that does not load the XDP program: in a guest with 5.10, programs of root and of an
# unprivileged user run by UDP sockets, which one line explains, with each other and with our
# library by XDP outside. sockets.sh BUILD [KERNEL...]
. "$(dirname "$0")/../netns/lib/case.sh"
. "$here/tests/vm/lib/guest.sh"
. "$here/tests/vm/lib/ends.sh"
shift
kernels=("$@")
[ ${#kernels[@]} -gt 0 ] || kernels=(5.10)

programs=(-p "$(command -v setpriv)")
for tool in ibv_{devinfo,{rc,uc,ud}_pingpong} ib_{send_bw,write_bw,read_lat}; do
	programs+=(-p "$(command -v $tool)")
done
OURS="/xroce/bin/xroce run --dev eth0 --"
AS_NOBODY="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all $OURS"

up() {
	guest_boot guest "$kernel" 2 "${programs[@]}" || return
	# rdma_rxe has the UDP port as soon as it is loaded
	guest_do guest setup "rmmod rdma_rxe; ip link set eth0 mtu 4500 up; echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad;
		ip addr add $IP4_B/24 dev eth0; ip addr add $IP6_B/64 dev eth0 nodad" || { show setup; return 1; }
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || fail "no path to the guest"
}

# says REASON: why the server's port is one by UDP sockets, and nothing else of ours
says() {
	need_line server "^xroce: eth0: .*$1"
	need_line server '^xroce: eth0: .*using UDP sockets, which are slower'
	need_no_line server '^libbpf'
}

# first WHO REASON: a broker that this program starts
first() {
	wire "$1" ibv_rc_pingpong -g 0 -n 100 -c && says "$2"
	ends
}

left() { guest_do guest left "ps | grep -v grep | grep 'xroce serve'; netstat -lun | grep ':4791 '; ls /run/xroce/*.sock" >/dev/null; [ ! -s "$WORK/left.out" ] || grep -q 'No such file' "$WORK/left.out"; }
ends() { wait_until 10 left || { fail "something is left"; show left; }; }

if ! guest_possible; then
	echo "skip sockets $skip_reason"
	exit 0
fi
guest_topology 4500
guest_bridge
for kernel in "${kernels[@]}"; do
	if ! kernel_get "$kernel"; then
		echo "skip sockets_$kernel $skip_reason"
		continue
	fi
	run_case ${kernel}_up up
	[ $case_failed = 0 ] || finish_cases
	run_case ${kernel}_root first "$OURS" 'cannot load'
	run_case ${kernel}_nobody first "$AS_NOBODY" 'no privileges for XDP'
	for tool in rc uc ud; do
		run_case ${kernel}_near_$tool near "$AS_NOBODY" ibv_${tool}_pingpong -g 0 -n 100 -c
		run_case ${kernel}_wire_$tool wire "$AS_NOBODY" ibv_${tool}_pingpong -g 0 -n 100 -c
	done
	run_case ${kernel}_wire_v6 wire "$AS_NOBODY" ibv_rc_pingpong -g 1 -n 100 -c
	run_case ${kernel}_near_events near "$AS_NOBODY" ibv_rc_pingpong -g 0 -n 100 -c -e
	run_case ${kernel}_near_write near "$AS_NOBODY" ib_write_bw -x 0 -s 65536 -n 20 -F
	run_case ${kernel}_wire_write wire "$AS_NOBODY" ib_write_bw -x 0 -s 65536 -n 20 -F
	run_case ${kernel}_wire_read wire "$AS_NOBODY" ib_read_lat -x 0 -s 4096 -n 20 -F
	run_case ${kernel}_ends ends
	guest_off guest
done
finish_cases
