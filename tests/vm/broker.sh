#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# The broker on other kernels: in a guest, two unprivileged programs on its interface, with each
# other and with an outside process; and its files together with the files of the kernel's devices,
# and before the kernel has the class. broker.sh BUILD [KERNEL...]
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
# A user that reads the guest's files, and writes nowhere.
AS_NOBODY="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all
	/xroce/bin/xroce run --dev eth0 --share always --"

broker_answers() { guest_do guest list "/xroce/bin/xroce list eth0" && grep -q 'broker *pid' "$WORK/list.out"; }

up() {
	guest_boot guest "$kernel" 2 "${programs[@]}" || return
	guest_do guest setup "modprobe tun; modprobe sch_ingress; modprobe cls_bpf; modprobe udp_diag; chmod 755 /xroce;
		ip link set eth0 mtu 4500 up; echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad;
		ip addr add $IP4_B/24 dev eth0; ip addr add $IP6_B/64 dev eth0 nodad" || { show setup; return 1; }
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || fail "no path to the guest"
}

serve() {
	guest_start guest broker "/xroce/bin/xroce serve eth0"
	wait_until 30 broker_answers || { fail "no broker in the guest"; show broker; show list; }
}

# Its user inspects it at that time: a program of BPF_PROG_TYPE_SYSCALL reports its sent packets.
traced() {
	guest_start guest watch "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all
		/xroce/bin/xroce trace -c 3000 eth0"
	wire "$AS_NOBODY" ibv_rc_pingpong -g 0 -n 2000 -c
	guest_wait guest watch 20 || fail "trace ended with $?"
	need_least "packets received" "$(grep -c ' ibv_rc_pingpong.* QP 0x[0-9a-f]* < ' "$WORK/watch.out")" 500
	need_least "packets sent" "$(grep -c ' ibv_rc_pingpong.* QP 0x[0-9a-f]* > ' "$WORK/watch.out")" 500
	need_line watch ' \* state '
}

ends() {
	guest_do guest stop "/xroce/bin/xroce stop eth0" || { fail "stop ends with $?"; show stop; }
	guest_wait guest broker 10 || { fail "the broker ended with $?"; show broker; }
	guest_do guest left "ip -o link show type tun" && [ ! -s "$WORK/left.out" ] || { fail "TAP devices are left"; show left; }
}

# ---- files for all: tests/netns/sysfs_global.sh checks their content ----

files_begin() {
	guest_start guest broker "/xroce/bin/xroce serve --files eth0"
	wait_until 30 broker_answers || { fail "no broker in the guest"; show broker; show list; return 1; }
	guest_do guest shown "until test -c /dev/infiniband/xroce_eth0; do sleep 0.1; done; cd /sys/class/infiniband/xroce_eth0/ports/1 &&
		cat state counters/port_xmit_packets gids/0 && : >/dev/infiniband/xroce_eth0" || { fail "no files"; show broker; show shown; return 1; }
	need_equal "what they say" "$(tr '\n' ' ' <"$WORK/shown.out")" '4: ACTIVE 0 0000:0000:0000:0000:0000:ffff:0a4d:0002 '
}
# at [COMMAND]: lists the class's directory, after it
devices() {
	guest_do guest devices "${1:-true}; ls /sys/class/infiniband"
	tr '\n' ' ' <"$WORK/devices.out"
}
files_end() {
	ends
	guest_do guest files "ls -d /dev/infiniband/xroce_eth0 /run/xroce/files 2>/dev/null; grep ' xroce ' /proc/self/mountinfo" &&
		{ fail "something is left"; show files; }
	need_equal "what is left" "$(cat "$WORK/files.out")" ''
}
# A file that was looked up before it exists is found when it comes, and gone when it is removed.
files_beside_kernels() {
	guest_do guest setup "modprobe overlay; modprobe fuse; modprobe rdma_rxe; rdma link add rxe0 type rxe netdev lo" || { fail "no rxe"; show setup; return 1; }
	need_equal "devices before" "$(devices)" 'rxe0 '
	files_begin || return
	need_equal "devices" "$(devices)" 'rxe0 xroce_eth0 '
	need_equal "one that comes" "$(devices 'ls -d /sys/class/infiniband/rxe1 2>/dev/null; rdma link add rxe1 type rxe netdev eth0;
		for i in 1 2 3 4 5 6 7 8 9 10; do ls -d /sys/class/infiniband/rxe1 2>/dev/null && break; sleep 0.2; done')" '/sys/class/infiniband/rxe1 rxe0 rxe1 xroce_eth0 '
	need_equal "one that goes" "$(devices 'rdma link del rxe1')" 'rxe0 xroce_eth0 '
	guest_do guest mounted "sed -n 's/.* \(\/sys[^ ]*\) .* - overlay xroce .*/\1/p' /proc/self/mountinfo"
	need_equal "what is covered" "$(cat "$WORK/mounted.out")" /sys/class/infiniband
	files_end
	need_equal "devices after" "$(devices)" 'rxe0 '
}
# A class that a module adds is there, and a write to its attribute arrives.
files_without_class() {
	guest_do guest setup "rdma link del rxe0; rmmod rdma_rxe; rmmod ib_uverbs; rmmod ib_core; ! test -e /sys/class/infiniband" ||
		{ fail "the kernel has the class"; show setup; return 1; }
	files_begin || return
	need_equal "devices" "$(devices)" 'xroce_eth0 '
	guest_do guest class "ls -d /sys/class/net/bonding_masters 2>/dev/null; modprobe bonding; ip link del bond0 2>/dev/null; sleep 1;
		echo +b7 >/sys/class/net/bonding_masters && cat /sys/class/net/bonding_masters && ip -o link show dev b7 && echo -b7 >/sys/class/net/bonding_masters"
	need_equal "a class's attribute is written" $? 0 || show class
	need_line class '^b7'
	files_end
	guest_do guest after "! test -e /sys/class/infiniband && test -e /sys/class/net/bonding_masters" || fail "the class is as it was not"
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
		run_case ${kernel}_near_$tool near "$AS_NOBODY" ibv_${tool}_pingpong -g 0 -n 100 -c
		run_case ${kernel}_wire_$tool wire "$AS_NOBODY" ibv_${tool}_pingpong -g 0 -n 100 -c
	done
	run_case ${kernel}_near_events near "$AS_NOBODY" ibv_rc_pingpong -g 0 -n 100 -c -e
	run_case ${kernel}_near_write near "$AS_NOBODY" ib_write_bw -x 0 -s 65536 -n 20 -F
	run_case ${kernel}_wire_write wire "$AS_NOBODY" ib_write_bw -x 0 -s 65536 -n 20 -F
	run_case ${kernel}_traced traced
	run_case ${kernel}_ends ends
	run_case ${kernel}_files_beside_kernels files_beside_kernels
	run_case ${kernel}_files_without_class files_without_class
	guest_off guest
done
finish_cases
