#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The broker on other kernels: in a guest, two programs of a user without privileges on its
# interface, with each other and with a process outside. broker.sh BUILD [KERNEL...]
. "$(dirname "$0")/../netns/lib/case.sh"
. "$here/tests/vm/lib/guest.sh"
. "$here/tests/vm/lib/ends.sh"
shift
kernels=("$@")
[ ${#kernels[@]} -gt 0 ] || kernels=(6.1 6.12)

programs=(-p "$(command -v setpriv)")
for tool in ibv_{devinfo,{rc,uc,ud}_pingpong} ib_{send_bw,write_bw,read_lat}; do
	programs+=(-p "$(command -v $tool)")
done
# A user that reads what is the guest's, and writes nowhere.
AS_NOBODY="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all
	/xroce/bin/xroce run --dev eth0 --share always --"

broker_answers() { guest_do guest list "/xroce/bin/xroce list eth0" && grep -q 'broker *pid' "$WORK/list.out"; }

up() {
	guest_boot guest "$kernel" 2 "${programs[@]}" || return
	guest_do guest setup "modprobe tun; modprobe sch_ingress; modprobe cls_bpf; chmod 755 /xroce;
		ip link set eth0 mtu 4500 up; echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad;
		ip addr add $IP4_B/24 dev eth0; ip addr add $IP6_B/64 dev eth0 nodad" || { show setup; return 1; }
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || fail "no path to the guest"
}

serve() {
	guest_start guest broker "/xroce/bin/xroce serve eth0"
	wait_until 30 broker_answers || { fail "no broker in the guest"; show broker; show list; }
}

listening() { guest_do guest listens "netstat -ltn | grep -q ':18515 '" || guest_has_ended guest server; }

# near TOOL GID-OPTION OPTION...: both in the guest
near() {
	local tool=$1 rc
	shift
	guest_start guest server "$AS_NOBODY $tool -d xroce_eth0 $*"
	wait_until 20 listening
	guest_start guest client "$AS_NOBODY $tool -d xroce_eth0 $* $IP4_B"
	guest_wait guest client 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; guest_do guest kill "killall -9 $tool"; show server; return 1; }
	guest_wait guest server 10 || { fail "the server ended with $?"; show server; }
}

# wire TOOL OPTION...: the server in the guest, the client here, alone
wire() {
	local tool=$1 rc
	shift
	guest_start guest server "$AS_NOBODY $tool -d xroce_eth0 $*"
	wait_until 20 listening
	start client a "$XROCE" run --dev $IF_A --share never -- "$tool" -d $DEV_A "$@" $IP4_B
	finish "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; guest_do guest kill "killall -9 $tool"; show server; return 1; }
	guest_wait guest server 10 || { fail "the server ended with $?"; show server; }
}

# Its user looks at it meanwhile: what it sends is told by a program of BPF_PROG_TYPE_SYSCALL.
traced() {
	guest_start guest watch "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all
		/xroce/bin/xroce trace -c 3000 eth0"
	wire ibv_rc_pingpong -g 0 -n 2000 -c
	guest_wait guest watch 20 || fail "trace ended with $?"
	need_least "packets received" "$(grep -c ' ibv_rc_pingpong.* QP [0-9]* < ' "$WORK/watch.out")" 500
	need_least "packets sent" "$(grep -c ' ibv_rc_pingpong.* QP [0-9]* > ' "$WORK/watch.out")" 500
	need_line watch ' \* state '
}

ends() {
	guest_do guest stop "/xroce/bin/xroce stop eth0" || { fail "stop ends with $?"; show stop; }
	guest_wait guest broker 10 || { fail "the broker ended with $?"; show broker; }
	guest_do guest left "ip -o link show type tun" && [ ! -s "$WORK/left.out" ] || { fail "TAP devices are left"; show left; }
}

if ! guest_possible; then
	echo "skip broker $skip_reason"
	exit 0
fi
guest_topology 4500
guest_bridge
for kernel in "${kernels[@]}"; do
	if ! kernel_get "$kernel"; then
		echo "skip broker_$kernel $skip_reason"
		continue
	fi
	run_case ${kernel}_up up
	run_case ${kernel}_serve serve
	[ $case_failed = 0 ] || finish_cases
	for tool in rc uc ud; do
		run_case ${kernel}_near_$tool near ibv_${tool}_pingpong -g 0 -n 100 -c
		run_case ${kernel}_wire_$tool wire ibv_${tool}_pingpong -g 0 -n 100 -c
	done
	run_case ${kernel}_near_events near ibv_rc_pingpong -g 0 -n 100 -c -e
	run_case ${kernel}_near_write near ib_write_bw -x 0 -s 65536 -n 20 -F
	run_case ${kernel}_wire_write wire ib_write_bw -x 0 -s 65536 -n 20 -F
	run_case ${kernel}_traced traced
	run_case ${kernel}_ends ends
	guest_off guest
done
finish_cases
