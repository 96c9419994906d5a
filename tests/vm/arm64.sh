#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# arm64: the cross-built libraries and command in an emulated guest with Debian's kernel, between
# two network namespaces of it. The BPF programs load and attach, and data is checked, by XDP and by
# UDP sockets. arm64.sh BUILD [KERNEL...]. Part of make check-arch.
VM_ARCH=arm64 VM_TAP=none
. "$(dirname "$0")/../netns/lib/case.sh"
cd "$here" || exit 1
. tests/ship/trial/cross.sh
cross_possible "$BUILD" arm64 || skip_all "$skip_reason"
VM_ROOT=$root VM_BUILD=$dir/build VM_LOADER="$qemu -L $root $root/lib/ld-linux-aarch64.so.1"
. tests/vm/lib/guest.sh
shift
kernels=("$@")
[ ${#kernels[@]} -gt 0 ] || kernels=(6.1 6.12)

# of the handlers of faults, in which user emulation differs (tests/ship/trial/arch.sh)
FAULTS=(unit/test_guard sim/test_memory sim/test_odp)
programs=(-p "$VM_TOOLS/opcodes")
for test in "${FAULTS[@]}"; do
	programs+=(-p "$VM_BUILD/tests/$test")
done
for tool in ibv_{rc,uc,ud}_pingpong; do
	programs+=(-p "$root/usr/bin/$tool")
done

up() {
	guest_boot guest "$kernel" 2 "${programs[@]}" || return
	guest_do guest setup "set -e; modprobe veth; modprobe tun; modprobe udp_diag; ip netns add a; ip netns add b;
		ip link add $IF_A mtu 4500 netns a type veth peer name $IF_B mtu 4500 netns b;
		ip -n a link set lo up; ip -n a link set $IF_A up; ip -n a addr add $IP4_A/24 dev $IF_A;
		ip -n b link set lo up; ip -n b link set $IF_B up; ip -n b addr add $IP4_B/24 dev $IF_B" ||
		{ fail "no veth pair in the guest"; show setup; }
}

# at NS PORT: the words before a program on the interface of a namespace. PORT: xdp, sockets, or
# xdp, and variables after commas (xdp,XROCE_TX=tap)
at() {
	local dev=$IF_A
	[ "$1" = a ] || dev=$IF_B
	echo "env XROCE_PORT=${2//,/ } nsenter --net=/run/netns/$1 /xroce/bin/xroce run --dev $dev -- "
}
listening() { guest_do guest listens "nsenter --net=/run/netns/a netstat -ltn | grep -q ':$tcp_port '" || guest_has_ended guest server; }
# after the broker of the programs before has ended: it may be one of another kind
serve() {
	ends
	guest_start guest server "$(at a "$1") ${*:2} -d $DEV_A"
	wait_until 30 listening
}
connect() {
	guest_start guest client "$(at b "$1") ${*:2} -d $DEV_B $IP4_A"
	both_end "$2"
}
both_end() {
	guest_wait guest client 60 || { fail "the client ended with $?"; show client; guest_do guest kill "killall -9 $1"; show server; return 1; }
	guest_wait guest server 20 || { fail "the server ended with $?"; show server; }
}

# pair PORT PROGRAM OPTION...
pair() { serve "$@" && connect "$@"; }

# pingpong TRANSPORT PORT OPTION...: -c checks the data
pingpong() {
	tcp_port=18515
	pair "$2" "ibv_$1_pingpong" -g 0 -c "${@:3}"
}

# sends_by WORDS PORT: the count of frames that `xroce list` has for a way, while they are sent
sends_by() {
	tcp_port=18515
	serve "$2" ibv_rc_pingpong -g 0 -n 2000 -c
	guest_start guest client "$(at b "$2") ibv_rc_pingpong -g 0 -n 2000 -c -d $DEV_B $IP4_A"
	wait_until 30 sent_by_or_gone "$1"
	need_line list "sent by .*$1 [1-9]"
	both_end ibv_rc_pingpong
}
sent_by_or_gone() { list && grep -qE "sent by .*$1 [1-9]" "$WORK/list.out" || guest_has_ended guest client; }

# Two programs on one interface, by a broker that serves it.
shared() {
	local transport program
	ends
	guest_start guest broker "nsenter --net=/run/netns/a /xroce/bin/xroce serve $IF_A"
	wait_until 30 broker_answers || { fail "no broker"; show broker; }
	tcp_port=18515
	for transport in rc ud; do
		program="$(at a xdp) ibv_${transport}_pingpong -d $DEV_A -g 0 -n 200 -c"
		guest_start guest server "$program"
		wait_until 30 listening
		guest_start guest client "$program $IP4_A"
		both_end ibv_${transport}_pingpong
	done
	guest_do guest stop "nsenter --net=/run/netns/a /xroce/bin/xroce stop $IF_A" || { fail "stop ended with $?"; show stop; }
	guest_wait guest broker 20 || { fail "the broker ended with $?"; show broker; }
}
broker_answers() { list && grep -q 'broker *pid' "$WORK/list.out"; }

# operations CASE: every byte, and every field of a completion
operations() {
	tcp_port=18610
	pair xdp opcodes -g 0 -m 1024 "$1"
	need_line client 'bytes right$'
}

faults() {
	guest_start guest test "$1"
	guest_wait guest test 120 || { fail "it ended with $?"; show test; }
	need_line test '\[  PASSED  \] [1-9]'
}

list() { guest_do guest list "nsenter --net=/run/netns/a /xroce/bin/xroce list $IF_A"; }

# shows PORT LINE...: what `xroce list` prints while a server listens
shows() {
	local line
	tcp_port=18515
	serve "$1" ibv_rc_pingpong -g 0 -n 100 || return
	list || fail "list ended with $?"
	for line in "${@:2}"; do
		need_line list "$line"
	done
	connect "$1" ibv_rc_pingpong -g 0 -n 100
}

doctor() {
	guest_do guest doctor "nsenter --net=/run/netns/a /xroce/bin/xroce doctor $IF_A" || { fail "doctor ended with $?"; show doctor; }
	need_line doctor '^ok +XDP program: loads, with all its maps'
	need_line doctor '^ok +bpf_link: attaches XDP'
	need_line doctor '^ok +AF_XDP: sockets bind'
	need_no_line doctor '^FAIL'
	[ "$kernel" = 6.1 ] || need_line doctor '^ok +redirection:'
}

left() { guest_do guest left "ps | grep -v grep | grep -E 'xroce serve|pingpong'; ls /run/xroce/*.sock 2>/dev/null; ip -n a link show | grep xdp; ip -n b link show | grep xdp"; [ ! -s "$WORK/left.out" ]; }
ends() { wait_until 20 left || { fail "something is left"; show left; }; }

guest_possible || skip_all "$skip_reason"
cross_unpack || { echo "not ok arm64_libraries"; exit 1; }
cross_make all "$VM_TOOLS/opcodes" "${FAULTS[@]/#/$VM_BUILD/tests/}" || { echo "not ok arm64_compiles"; exit 1; }
for kernel in "${kernels[@]}"; do
	if ! kernel_get "$kernel"; then
		echo "skip arm64_$kernel $skip_reason"
		continue
	fi
	run_case ${kernel}_up up
	[ -e "$WORK/guest/up" ] || continue
	run_case ${kernel}_doctor doctor
	run_case ${kernel}_list_xdp shows xdp,XROCE_XDP=native 'XDP +native, program [0-9]+ xroce_xdp, exclusive' 'client +1: .*ibv_rc_pingpong'
	run_case ${kernel}_list_sockets shows sockets 'receives by UDP sockets' 'client +1: .*ibv_rc_pingpong'
	for port in xdp sockets; do
		for transport in rc uc ud; do
			run_case ${kernel}_${port}_$transport pingpong $transport $port -n 200
		done
		run_case ${kernel}_${port}_events pingpong rc $port -n 200 -e
	done
	if [ "$kernel" != 6.1 ]; then
		run_case ${kernel}_sends_by_tap sends_by "TAP device" xdp,XROCE_XDP=native,XROCE_TX=tap
		run_case ${kernel}_sends_by_live sends_by "live frames" xdp,XROCE_XDP=native,XROCE_TX=live
		run_case ${kernel}_sends_by_gso sends_by super-packets xdp,XROCE_TX=gso
	fi
	run_case ${kernel}_shared shared
	for case in rc uc ud inv atomics; do
		run_case ${kernel}_operations_$case operations $case
	done
	for test in "${FAULTS[@]}"; do
		run_case ${kernel}_${test#*/} faults "${test#*/}"
	done
	run_case ${kernel}_ends ends
	guest_off guest
done
finish_cases
