#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Our connection manager against the kernel's, with Soft-RoCE, in a guest: Debian's rdmacm-utils at
# both ends, both directions, IPv4 and IPv6; rejected and unanswered connects. cm.sh BUILD
# [KERNEL...]
. "$(dirname "$0")/../netns/lib/case.sh"
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/cm.sh"
. "$here/tests/vm/lib/guest.sh"
. "$here/tests/vm/lib/peer.sh"
shift
kernels=("$@")
[ ${#kernels[@]} -gt 0 ] || kernels=(6.1)
CM_PROGRAMS=(rping ucmatose udaddy mckey rstream cmtime)

up() {
	local programs=() tool
	for tool in "${CM_PROGRAMS[@]}"; do
		programs+=(-p "$(command -v "$tool")")
	done
	guest_boot guest "$kernel" 2 "${programs[@]}" || return
	peer_up 4500 || return
	guest_do guest ucm "modprobe rdma_ucm && echo 127.0.0.1 localhost >/etc/hosts" || { fail "no rdma_ucm in the guest"; show ucm; }
}

family() {
	case $1 in
	v4) ours_ip=$IP4_A theirs_ip=$IP4_B family_word=ip ;;
	v6) ours_ip=$IP6_A theirs_ip=$IP6_B family_word=ipv6 ;;
	esac
}

guest_serves() { guest_do guest listens "rdma resource show cm_id | grep -q 'state LISTEN'" || guest_has_ended guest server; }

# pair ours|theirs SECONDS SERVER... -- CLIENT...: whose side serves; both must end with 0.
pair() {
	local who=$1 bound=$2 server client rc=0
	split_words server client "${@:3}"
	if [ "$who" = ours ]; then
		cm_serve "${server[@]}" || return
		guest_start guest client "${client[*]}"
		guest_wait guest client "$bound" || { fail "the guest's client ended with $?: ${client[*]}"; rc=1; }
		[ $rc -eq 0 ] && cm_end server "$cm_server" 20 && return
		stop "$cm_server"
	else
		guest_start guest server "${server[*]}"
		wait_until 20 guest_serves
		cm_start client server "${client[@]}"
		finish "$child" "$bound" || { fail "our client ended with $?: ${client[*]}"; rc=1; }
		[ $rc -eq 0 ] && guest_wait guest server 20 && return
		fail "the guest's server ended with $?: ${server[*]}"
	fi
	show client
	guest_do guest kill "killall -9 ${server[0]}"
	show server
	return 1
}
# sets $ip: where the server is
serves() { [ "$1" = ours ] && ip=$ours_ip || ip=$theirs_ip; }

try_rping() {
	serves "$1"
	pair "$1" 60 rping -s -a $ip -C 10 -- rping -c -v -V -a $ip -C 10 || return
	[ "$(grep -c '^ping data: rdma-ping-' "$WORK/client.out")" -eq 10 ] || { fail "not 10 pings"; show client; }
}
try_matose() {
	local program=$2
	serves "$1"
	pair "$1" 60 "$program" -f $family_word -b $ip -c 10 -- "$program" -f $family_word -s $ip -c 10 || return
	need_line client '^return status 0$' && need_line server '^return status 0$'
}
# so few that the guest's time-outs do not end under emulation
try_rstream() {
	serves "$1"
	pair "$1" 90 rstream -f $family_word -b $ip -S 1000 -C 10 -I 20 -T v -- \
		rstream -f $family_word -s $ip -S 1000 -C 10 -I 20 -T v || return
	need_line client '^custom '
}
# Ours is one member; the other end sends.
try_mckey() {
	local group=239.7.7.7
	[ "$family_word" = ip ] || group=ff15::7:7
	if [ "$1" = ours ]; then
		cm_start server server mckey -m $group -b $ours_ip
		cm_server=$child
		wait_until 20 grep -q 'waiting for data\|receiving' "$WORK/server.out"
		guest_start guest client "mckey -m $group -b $theirs_ip -s"
		guest_wait guest client 30 || { fail "the guest's sender ended with $?"; show client; }
		cm_end server "$cm_server" 30
	else
		guest_start guest server "mckey -m $group -b $theirs_ip"
		cm_start client server mckey -m $group -b $ours_ip -s
		cm_end client "$child" 30
		guest_wait guest server 30 || { fail "the guest's member ended with $?"; show server; }
	fi
	need_line client '^return status 0$' && need_line server '^return status 0$'
}

# The peer has a CM and no listener at that port.
refused_by_us() {
	local rc
	cm_serve rping -s -P -a $ours_ip || return
	guest_start guest client "rping -c -d -a $ours_ip -p 9999 -C 1"
	guest_wait guest client 30
	rc=$?
	stop "$cm_server"
	[ $rc -ne 0 ] && [ $rc -ne 124 ] || fail "rping ended with $rc"
	need_line client 'RDMA_CM_EVENT_REJECTED, error 8$'
}
refused_by_them() {
	local rc
	cm_start client server rping -c -d -a $theirs_ip -p 9999 -C 1
	finish "$child" 30
	rc=$?
	[ $rc -ne 0 ] && [ $rc -ne 124 ] || fail "rping ended with $rc"
	need_line client 'RDMA_CM_EVENT_REJECTED, error 8$'
}

# No answer: P has an address and no CM. Both sides at once, as each repeats its request 15 times,
# 4.3 s and more apart, before the program gets the event.
unanswered() {
	local nobody_ip=10.77.0.9 rc ours
	in_p ip addr add $nobody_ip/24 dev br0
	guest_start guest theirs "rping -c -d -a $nobody_ip -C 1"
	cm_start client server rping -c -d -a $nobody_ip -C 1
	finish "$child" 200
	ours=$?
	guest_wait guest theirs 200
	rc=$?
	in_p ip addr del $nobody_ip/24 dev br0
	[ $ours -ne 0 ] && [ $ours -ne 124 ] || fail "our rping ended with $ours"
	[ $rc -ne 0 ] && [ $rc -ne 124 ] || fail "the guest's rping ended with $rc"
	need_line client 'RDMA_CM_EVENT_UNREACHABLE, error -110$'
	need_line theirs 'RDMA_CM_EVENT_UNREACHABLE, error -110$'
}

if ! guest_possible; then
	echo "skip cm $skip_reason"
	exit 0
fi
guest_topology 4500
guest_bridge
for kernel in "${kernels[@]}"; do
	if ! kernel_get "$kernel"; then
		echo "skip cm_$kernel $skip_reason"
		continue
	fi
	run_case ${kernel}_up up
	[ $case_failed = 0 ] || finish_cases
	for who in ours theirs; do
		for f in v4 v6; do
			family $f
			run_case ${kernel}_rping_${who}_$f try_rping $who
			run_case ${kernel}_ucmatose_${who}_$f try_matose $who ucmatose
			run_case ${kernel}_udaddy_${who}_$f try_matose $who udaddy
			run_case ${kernel}_rstream_${who}_$f try_rstream $who
		done
		family v4
		run_case ${kernel}_mckey_${who} try_mckey $who
	done
	for f in v4 v6; do
		family $f
		run_case ${kernel}_refused_by_us_$f refused_by_us
		run_case ${kernel}_refused_by_them_$f refused_by_them
	done
	family v4
	run_case ${kernel}_unanswered unanswered
	guest_off guest
done
finish_cases
