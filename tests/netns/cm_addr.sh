#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Addresses of rdma_cm where there are two interfaces: routes, neighbours that come late or never,
# interfaces that come, go and change, loopback addresses, groups.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# second: another cable, vc in A and vd in B.
second() {
	ip -n $NS_A link add vc address 02:00:00:78:00:01 mtu 4500 type veth peer name vd netns $NS_B &&
		in_b ip link set vd address 02:00:00:78:00:02 mtu 4500 up && in_a ip link set vc up &&
		in_a ip addr add 10.78.0.1/24 dev vc && in_b ip addr add 10.78.0.2/24 dev vd &&
		in_a ip addr add fd78::1/64 dev vc nodad && in_b ip addr add fd78::2/64 dev vd nodad
}
second || netns_die "cannot make a second cable"
in_a ip route add 192.0.2.0/24 via 10.78.0.2
in_a ip route add unreachable 198.51.100.0/24
in_a ip addr add 10.79.0.1/32 dev lo

# cm NAME NS ARG...: cm_addr in the background on all interfaces, as NAME.
cm() {
	local name=$1 ns=$2
	shift 2
	start "$name" "$ns" "$XROCE" run -- "$TOOLS/cm_addr" "$@"
}
has_line() { grep -qE -- "$2" "$WORK/$1.out"; }
# says NAME LINE: it has printed such a line, or does in time.
says() { wait_until 20 has_line "$1" "$2" || need_line "$1" "$2"; }
# answer NS LINE ARG...: the last line that it prints.
answer() {
	local ns=$1 want=$2
	shift 2
	cm one "$ns" "$@"
	finish "$child" 30 || fail "cm_addr $* ended with $?"
	need_equal "cm_addr $*" "$(tail -n 1 "$WORK/one.out")" "$want"
}

resolves() {
	answer a "resolved xroce_va 10.77.0.1" resolve 10.77.0.2 20000
	answer a "resolved xroce_vc 10.78.0.1" resolve 10.78.0.2 20000
	answer a "resolved xroce_vc 10.78.0.1" resolve 192.0.2.9 20000
	answer a "resolved xroce_va 10.77.0.1" resolve 10.77.0.2 20000 10.77.0.1
	answer a "resolved xroce_vc fd78::1" resolve fd78::2 20000
	answer a "resolved xroce_va fe80::a" resolve fe80::b%va 20000
	# this host's own
	answer a "resolved xroce_vc 10.78.0.1" resolve 10.78.0.1 20000
	answer a "resolved xroce_va 10.77.0.1" resolve 10.77.0.1 20000 10.77.0.1
	answer a "resolved xroce_va 127.0.0.1" resolve 127.0.0.1 20000
	answer a "resolved xroce_va ::1" resolve ::1 20000
	answer a "resolved xroce_va 127.0.0.1" resolve 0.0.0.0 20000
}

resolves_not() {
	answer a "rdma_resolve_addr: ENETUNREACH" resolve 203.0.113.1 20000
	answer a "rdma_resolve_addr: EHOSTUNREACH" resolve 198.51.100.1 20000
	answer a "rdma_resolve_addr: EADDRNOTAVAIL" resolve 10.77.0.2 20000 10.77.0.9
	answer a "rdma_resolve_addr: EINVAL" resolve 10.77.0.2 20000 fd77::1
	answer a "rdma_resolve_addr: EINVAL" resolve fe80::b 20000
	# over the other interface there is none
	answer a "rdma_resolve_addr: ENETUNREACH" resolve 192.0.2.9 20000 10.77.0.1
	answer a "RDMA_CM_EVENT_ADDR_ERROR ENODEV" resolve 10.79.0.1 20000
	answer a "RDMA_CM_EVENT_ADDR_ERROR ETIMEDOUT" resolve 10.77.0.99 100
	answer a "RDMA_CM_EVENT_ADDR_ERROR ETIMEDOUT" resolve fd77::99 100
}

# A neighbour that answers when the question has been asked for a while.
late_neighbour() {
	cm late a resolve "$1" 20000
	local pid=$child
	says late resolving
	wait_until 10 failed_neighbour "$1"
	in_b ip addr add "$1/$2" dev vb ${4:-}
	finish "$pid" 30
	need_equal "cm_addr" "$(tail -n 1 "$WORK/late.out")" "resolved xroce_va $3"
	in_b ip addr del "$1/$2" dev vb
}
# The kernel has given it up once, and we have asked again.
failed_neighbour() { in_a ip neigh show "$1" | grep -qE 'FAILED|INCOMPLETE'; }

# The state of a neighbour, a route or an address is queried again each time.
resolves_again() {
	in_a ip neigh add 10.77.0.60 lladdr 02:00:00:77:00:60 dev va nud permanent
	answer a "resolved xroce_va 10.77.0.1" again 10.77.0.60 true
	answer a "RDMA_CM_EVENT_ADDR_ERROR ETIMEDOUT" again 10.77.0.60 "ip neigh del 10.77.0.60 dev va"
	in_a ip route add 192.0.3.0/24 via 10.78.0.2
	answer a "rdma_resolve_addr: ENETUNREACH" again 192.0.3.1 "ip route del 192.0.3.0/24"
	answer a "resolved xroce_vc 10.78.0.9" again 192.0.2.1 \
		"ip addr add 10.78.0.9/32 dev vc; ip route replace 192.0.2.0/24 via 10.78.0.2 src 10.78.0.9"
	in_a ip route replace 192.0.2.0/24 via 10.78.0.2
	in_a ip addr del 10.78.0.9/32 dev vc
}

binds() {
	answer a "bound xroce_va" bind 10.77.0.1 7000
	answer a "bound xroce_vc" bind fd78::1 0
	answer a "bound xroce_va" bind fe80::a%va 7000
	answer a "bound -" bind 0.0.0.0 7000
	answer a "bound -" bind 127.0.0.1 7000
	answer a "rdma_bind_addr: EADDRNOTAVAIL" bind 10.77.0.2 7000
	answer a "rdma_bind_addr: ENODEV" bind 10.79.0.1 7000
	answer a "rdma_bind_addr: EINVAL" bind fe80::a 7000
	answer a "rdma_bind_addr: ENODEV" bind fe80::a%vc 7000
}

# refused NS ADDRESS: without a listener there.
refused() { answer "$1" "RDMA_CM_EVENT_REJECTED 8" ask "$2" 7471; }
# asked NS ADDRESS DEVICE: the listener gets the request, at that device, and rejects it.
asked() {
	answer "$1" "RDMA_CM_EVENT_REJECTED 28" ask "$2" 7471
	need_equal "the listener's last line" "$(tail -n 1 "$WORK/server.out")" \
		"RDMA_CM_EVENT_CONNECT_REQUEST $3 ${4:-$2}"
}

wildcards() {
	cm server a listen 0.0.0.0 7471
	local pid=$child
	says server listening
	asked b 10.77.0.1 xroce_va
	asked b 10.78.0.1 xroce_vc
	refused b fd77::1
	stop "$pid"
	cm server a listen :: 7471
	pid=$child
	says server listening
	asked b fd77::1 xroce_va
	asked b 10.78.0.1 xroce_vc
	stop "$pid"
	cm server a listen :: 7471 only
	pid=$child
	says server listening
	asked b fd78::1 xroce_vc
	refused b 10.77.0.1
	stop "$pid"
}

one_address() {
	cm server a listen 10.78.0.1 7471
	local pid=$child
	says server listening
	asked b 10.78.0.1 xroce_vc
	refused b fd78::1
	stop "$pid"
}

# Loopback addresses: only between two processes of this host.
loopback() {
	local pid
	cm server a listen 0.0.0.0 7471
	pid=$child
	says server listening
	asked a 127.0.0.1 xroce_va
	asked a 10.77.0.1 xroce_va
	asked a 10.78.0.1 xroce_vc
	stop "$pid"
	cm server a listen 127.0.0.1 7471
	pid=$child
	says server listening
	asked a 127.0.0.1 xroce_va
	refused a 10.77.0.1
	refused b 10.77.0.1
	stop "$pid"
	cm server a listen ::1 7471
	pid=$child
	says server listening
	asked a ::1 xroce_va
	refused b fd77::1
	stop "$pid"
}

# The port of one process is not another's; when it ends it is.
processes() {
	cm server a listen "$1" 7471
	local pid=$child
	says server listening
	answer a "rdma_bind_addr: EADDRINUSE" bind "$1" 7471
	answer a "rdma_bind_addr: EADDRINUSE" bind "$2" 7471
	answer a "$4" bind "$3" 7471
	stop "$pid"
	answer a "$5" bind "$1" 7471
}

# A listener on all interfaces: one interface disappears and returns, another is new.
interfaces_come() {
	in_a ip link del vc
	cm server a listen 0.0.0.0 7471
	local pid=$child
	says server listening
	asked b 10.77.0.1 xroce_va
	for _ in 1 2; do
		second || fail "no second cable"
		wait_until 20 asks_well 10.78.0.1
		asked b 10.78.0.1 xroce_vc
		asked b 10.77.0.1 xroce_va
		in_a ip link del vc
	done
	second || fail "no second cable"
	stop "$pid"
}
asks_well() {
	cm try b ask "$1" 7471
	finish "$child" 30
	grep -q "REJECTED 28" "$WORK/try.out"
}

addresses_change() {
	cm server a watch 10.77.0.1
	local pid=$child
	says server bound
	in_a ip link set va address 02:00:00:77:00:09
	says server RDMA_CM_EVENT_ADDR_CHANGE
	in_a ip link set va address $MAC_A
	stop "$pid"
}

is_member() { in_a ip maddr show dev va | grep -q "$1"; }
is_no_member() { ! is_member "$1"; }
memberships() {
	local group=$1
	cm server a join "$2" "$group"
	local pid=$child
	says server joined
	is_member "$group" || fail "the interface is no member of $group"
	stop "$pid"
	wait_until 10 is_no_member "$group" || fail "the interface stays a member of $group"
}

in_a ip addr add fe80::a/64 dev va nodad
in_b ip addr add fe80::b/64 dev vb nodad
run_case addr_resolves resolves
run_long_case addr_resolves_not resolves_not
run_case addr_late_neighbour_v4 late_neighbour 10.77.0.50 24 10.77.0.1
run_long_case addr_late_neighbour_v6 late_neighbour fd77::50 64 fd77::1 nodad
run_long_case addr_resolves_again resolves_again
run_case addr_binds binds
run_long_case addr_wildcards wildcards
run_case addr_one_address one_address
run_long_case addr_loopback loopback
run_case addr_processes processes 10.77.0.1 0.0.0.0 10.78.0.1 "bound xroce_vc" "bound xroce_va"
taken="rdma_bind_addr: EADDRINUSE"
run_long_case addr_processes_any processes 0.0.0.0 10.77.0.1 127.0.0.1 "$taken" "bound -"
run_long_case addr_interfaces_come interfaces_come
run_case addr_change addresses_change
run_case addr_member_v4 memberships 239.1.2.3 10.77.0.1
run_long_case addr_member_v6 memberships ff15::77 fd77::1
finish_cases
