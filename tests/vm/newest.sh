#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# The newest kernel that Debian has, sid's: in a guest, programs on a port by XDP, also with a
# broker, and on one by UDP sockets; with each other and with our library outside. newest.sh BUILD
. "$(dirname "$0")/../netns/lib/case.sh"
. "$here/tests/vm/lib/guest.sh"
. "$here/tests/vm/lib/ends.sh"

programs=(-p "$(command -v setpriv)")
for tool in ibv_{rc,ud}_pingpong ib_write_bw; do
	programs+=(-p "$(command -v $tool)")
done
RUN="/xroce/bin/xroce run --dev eth0"
ALONE="$RUN --port xdp --share never --"
AS_NOBODY="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all $RUN"

# It is no kernel that the other tests have as well.
up() {
	local release
	guest_boot guest newest 2 "${programs[@]}" || return
	read -r _ _ _ release <"$WORK/guest/up"
	printf '%s\n' 6.13 "$release" | sort -VC || fail "the newest kernel is $release"
	guest_do guest setup "modprobe tun; modprobe sch_ingress; modprobe cls_bpf; modprobe udp_diag; rmmod rdma_rxe;
		ip link set eth0 mtu 4500 up; echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad;
		ip addr add $IP4_B/24 dev eth0; ip addr add $IP6_B/64 dev eth0 nodad" || { show setup; return 1; }
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || fail "no path to the guest"
}

broker_answers() { guest_do guest list "/xroce/bin/xroce list eth0" && grep -q 'broker *pid' "$WORK/list.out"; }
serve() {
	guest_start guest broker "/xroce/bin/xroce serve eth0"
	wait_until 30 broker_answers || { fail "no broker in the guest"; show broker; show list; }
}
ends() {
	guest_do guest stop "/xroce/bin/xroce stop eth0" || { fail "stop ended with $?"; show stop; }
	guest_wait guest broker 10 || { fail "the broker ended with $?"; show broker; }
}

if ! guest_possible; then
	echo "skip newest $skip_reason"
	exit 0
fi
if ! kernel_get newest; then
	echo "skip newest $skip_reason"
	exit 0
fi
guest_topology 4500
guest_bridge
run_case up up
[ $case_failed = 0 ] || finish_cases
for tool in rc ud; do
	run_case xdp_wire_$tool wire "$ALONE" ibv_${tool}_pingpong -g 0 -n 100 -c
done
run_case xdp_wire_v6 wire "$ALONE" ibv_rc_pingpong -g 1 -n 100 -c
run_case xdp_wire_write wire "$ALONE" ib_write_bw -x 0 -s 65536 -n 20 -F
run_case serve serve
run_case broker_near_rc near "$AS_NOBODY --share always --" ibv_rc_pingpong -g 0 -n 100 -c
run_case broker_wire_rc wire "$AS_NOBODY --share always --" ibv_rc_pingpong -g 0 -n 100 -c
run_case broker_ends ends
for tool in rc ud; do
	run_case sockets_near_$tool near "$AS_NOBODY --port sockets --" ibv_${tool}_pingpong -g 0 -n 100 -c
	run_case sockets_wire_$tool wire "$AS_NOBODY --port sockets --" ibv_${tool}_pingpong -g 0 -n 100 -c
done
run_case sockets_wire_write wire "$AS_NOBODY --port sockets --" ib_write_bw -x 0 -s 65536 -n 20 -F
guest_off guest
finish_cases
