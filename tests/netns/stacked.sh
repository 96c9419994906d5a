#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core XROCE_CASE=m*
# tier: core others XROCE_CASES=core XROCE_CASE=[!m]*
# tier: long long XROCE_CASES=long
#
# Stacked interfaces, and a router on the path: perftest for two seconds while ping runs, XDP modes,
# the lower interface going down, changing or being deleted, and the lower interface in use as well.
# `va` of A is a macvlan (its parent is in P), a bridge, a VXLAN, or a veth on a router (P).
# tests/vm/interop.sh covers VLANs and bonds.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/as_before.sh"
ENDS=(a b p)
. "$(dirname "$0")/lib/vdata.sh"
. "$(dirname "$0")/lib/python.sh"
. "$(dirname "$0")/lib/perf.sh"
netns_add $NS_A
netns_add $NS_B
netns_add $NS_P
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS"/{vdata,again} "$OWN/bin"
IP4_P=10.77.0.3

# ---- the interfaces ----

veth() { ip link add "$1" mtu 4500 netns "$2" type veth peer name "$3" mtu 4500 netns "$4"; }
make_macvlan() {
	veth pa $NS_P vb $NS_B && ip -n $NS_P link set pa up && ip -n $NS_P addr add $IP4_P/24 dev pa &&
		ip -n $NS_P link add va link pa netns $NS_A type macvlan mode bridge
}
make_bridge() {
	veth pa $NS_A vb $NS_B && ip -n $NS_A link add va mtu 4500 type bridge &&
		ip -n $NS_A link set pa master va up
}
# Both ends are bridges, with a second cable that is not plugged in yet.
make_bridges() {
	veth pa $NS_A ta $NS_B && veth qa $NS_A tb $NS_B && ip -n $NS_A link add va mtu 4500 type bridge &&
		ip -n $NS_B link add vb mtu 4500 type bridge && ip -n $NS_B link set ta master vb up &&
		ip -n $NS_B link set tb master vb up && ip -n $NS_A link set pa master va up &&
		ip -n $NS_A link set qa master va
}
make_vxlan() {
	ip link add ua mtu 4600 netns $NS_A type veth peer name ub mtu 4600 netns $NS_B &&
		vxlan $NS_A ua va 192.168.77.1 192.168.77.2 && vxlan $NS_B ub vb 192.168.77.2 192.168.77.1
}
vxlan() {
	ip -n "$1" addr add "$4/24" dev "$2" && ip -n "$1" link set "$2" up &&
		ip -n "$1" link add "$3" mtu 4500 type vxlan id 5 local "$4" remote "$5" dstport 4789 dev "$2"
}
make_router() {
	veth va $NS_A pa $NS_P && veth vb $NS_B pb $NS_P && ip -n $NS_P link set pa up && ip -n $NS_P link set pb up &&
		ip -n $NS_P addr add 10.77.0.254/24 dev pa && ip -n $NS_P addr add 10.78.0.254/24 dev pb &&
		in_p sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
}

# make KIND: `va` and `vb` with their addresses; saves the initial state in `before`.
make() {
	kind=$1 gids_are=
	"make_$kind" || netns_die "cannot make a $kind"
	netns_host $NS_A $IF_A $MAC_A $IP4_A $IP6_A
	netns_host $NS_B $IF_B $MAC_B $IP4_B $IP6_B
	if [ "$kind" = router ]; then
		netns_wait_ready no-path
	else
		netns_wait_ready
	fi
	there_is >"$WORK/before.out"
}
unmake() {
	local dev
	for dev in va ua pa qa; do
		ip -n $NS_A link del $dev 2>/dev/null
	done
	for dev in vb ub; do
		ip -n $NS_B link del $dev 2>/dev/null
	done
	for dev in pa pb; do
		ip -n $NS_P link del $dev 2>/dev/null
	done
	return 0
}

# ---- perftest for two seconds, with ping ----

ping_begin() {
	start ping b ping -q -n -i 0.05 -W 5 "${1:-$IP4_A}"
	pinger=$child
}
ping_end() {
	kill -INT "$pinger"
	finish "$pinger" 10
	need_line ping '^([1-9][0-9]*) packets transmitted, \1 received'
}

# two_seconds TOOL SIZE [OPTION...]
two_seconds() {
	local tool=$1 size=$2
	shift 2
	gids_once v4 || return
	ping_begin
	with_quick_clock client_server 18515 60 \
		"$tool" -d $DEV_A -x "$gid_a" -s "$size" -D 2 -u $perf_timeout -F "$@" -- \
		"$tool" -d $DEV_B -x "$gid_b" -s "$size" -D 2 -u $perf_timeout -F "$@" $IP4_A
	ping_end
	awk -v s="$size" '$1 == s && $2 >= 1 { found = 1 } END { exit !found }' "$WORK/client.out" ||
		{ fail "no line of results"; show client; }
	nothing_left
}

# ---- modes ----

# waits PORT [VARIABLE=VALUE...]: a pingpong on A that waits for its client, in $waiting
waits() {
	start_on waiting a env "${@:2}" ibv_rc_pingpong -d $DEV_A -g "$gid_a" -p "$1"
	waiting=$child
	wait_until 10 listens_or_gone a "$1" "$waiting"
}
generic() {
	gids_once v4 || return
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	need_line list 'XDP +nothing attached; generic when'
	waits 18530
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	need_line list 'XDP +generic, program [0-9]+ xroce_xdp, exclusive$'
	in_a "$XROCE" list --json $IF_A >"$WORK/json.out"
	need_equal "its mode in JSON" "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["devices"][0]["xdp"]["mode"])' <"$WORK/json.out")" generic
	stop "$waiting"
	nothing_left
}
# No native XDP on these interfaces: refused at once with a message.
native() {
	gids_once v4 || return
	waits 18531 XROCE_XDP=native
	listens a 18531 && fail "it has a queue pair"
	finish_at_most "$waiting" 5 && fail "it ends with 0"
	need_line waiting "^xroce: $IF_A: cannot attach .*: Operation not supported; run .xroce doctor $IF_A"
	in_a env XROCE_XDP=native "$XROCE" doctor $IF_A >"$WORK/doctor.out" 2>&1
	need_equal "status of doctor" $? 1
	need_line doctor "^FAIL  $IF_A XDP mode: .*native"
	nothing_left
}

# ---- changes of the lower interface ----

# begin: checked traffic between A and B until $WORK/go is removed, in $server and $client
begin() {
	gids_once v4 || return
	: >"$WORK/go"
	start_on server a "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -k "$WORK/go" -n 1 -T 18 -i 2
	server=$child
	wait_until 10 listens_or_gone a 18600 "$server"
	start_on client b "$TOOLS/vdata" -d $DEV_B -g "$gid_b" -k "$WORK/go" -n 1 -T 18 -i 2 $IP4_A
	client=$child
	goes_on
}

list_says() { in_a "$XROCE" list $IF_A >"$WORK/list.out" && grep -qE "$1" "$WORK/list.out"; }
parent_down() {
	begin || return
	ip -n $NS_P link set pa down
	wait_until 5 list_says 'link +down' || { fail "no word of the link"; show list; }
	ip -n $NS_P link set pa up
	wait_until 5 list_says 'link +up' || { fail "no word of the link"; show list; }
	goes_on
	vdata_ends
	nothing_left
}
# Another process uses the lower interface, and talks to B as well. The kernel allows this if the
# lower one begins first; it refuses the other order, with a message.
parent_in_use() {
	gids_once v4 || return
	start below p "$XROCE" run --dev pa -- "$TOOLS/again" -d xroce_pa -g 0
	below=$child
	wait_until 10 listens_or_gone p 18650 "$below"
	begin || return
	start other b "$XROCE" run --dev $IF_B -- "$TOOLS/again" -d $DEV_B -g "$gid_b" $IP4_P
	finish "$child" 60 || { fail "the exchange with the interface below ends with $?"; show other; show below; }
	goes_on
	stop "$below"
	goes_on
	start below p "$XROCE" run --port xdp --dev pa -- "$TOOLS/again" -d xroce_pa -g 0
	finish_at_most "$child" 10
	need_equal "exit status of one that comes to the interface below" $? 1
	need_line below '^xroce: pa: cannot attach the XDP program: an interface stacked on this one already has an XDP program; '
	goes_on
	vdata_ends
	nothing_left
}
# Both ends get the event, as their interfaces disappear.
parent_deleted() {
	local rc side
	begin || return
	ip -n $NS_P link del pa
	for side in server client; do
		finish "${!side}" 30
		rc=$?
		# 1: it reports the error; no crash, no kill
		need_equal "exit status of the $side" $rc 1
	done
	in_a "$XROCE" list $IF_A >"$WORK/list.out" 2>&1
	need_equal "exit status of list" $? 2
	rm -f "$WORK/go"
}

# Frames for the bridge pass a lower interface that has a broker.
port_served() {
	serve a pa || return
	begin || return
	traffic_of_host
	goes_on
	stop "$broker"
	goes_on
	vdata_ends
	nothing_left
}
# The host's TCP and UDP traffic runs at the same time.
traffic_of_host() {
	local what
	for what in tcp:5000 udp:4790 udp:4792; do
		start other a "$TOOLS/traffic" ${what%:*} ${what#*:}
		wait_until 5 bound_or_gone ${what%:*} ${what#*:} "$child"
		in_b timeout 30 "$TOOLS/traffic" ${what%:*} ${what#*:} $IP4_A >"$WORK/other_client.out" 2>&1 ||
			{ fail "$what: the client ends with $?"; show other_client; }
		finish "$child" 10 || { fail "$what: the server ends with $?"; show other; }
	done
}
bound_or_gone() { in_a ss -Hln --"$1" "sport = :$2" | grep -q . || is_gone_or_zombie "$3"; }

# The only cable is unplugged and the other one plugged in, and back.
other_cable() {
	begin || return
	for cables in "pa qa" "qa pa"; do
		ip -n $NS_A link set "${cables% *}" down
		ip -n $NS_A link set "${cables#* }" up
		goes_on || break
	done
	vdata_ends
}

# ---- a router ----

route() {
	ip -n $NS_A route replace 10.78.0.0/24 via 10.77.0.254
	ip -n $NS_B route replace 10.77.0.0/24 via 10.78.0.254
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || fail "the router does not work"
}
# The device exists, and a process uses it, before there is a route.
no_route() {
	start keeper a "$XROCE" run --dev $IF_A -- "$TOOLS/again" -d $DEV_A -g 0
	keeper=$child
	wait_until 10 listens_or_gone a 18650 "$keeper"
	in_a timeout 5 "$XROCE" ping -c 1 -d $IF_A $IP4_B >"$WORK/unreachable.out" 2>&1
	need_equal "exit status of xroce ping without a route" $? 2
	need_line unreachable "^xroce ping: .*$IP4_B"
	route
	start other b "$XROCE" run --dev $IF_B -- "$TOOLS/again" -d $DEV_B -g 0 $IP4_A
	finish "$child" 60 || { fail "the exchange by the router ends with $?"; show other; show keeper; }
	stop "$keeper"
}
# The kernel resolves the route for RoCE with the route's hop limit, not with the program's, which
# is 1 in these pingpongs.
routed_pingpong() {
	route
	client_server 18515 30 "ibv_$1_pingpong" -d $DEV_A -g 0 -n 300 -- "ibv_$1_pingpong" -d $DEV_B -g 0 -n 300 $IP4_A || return
	need_line client '^300 iters'
}
routed_bandwidth() {
	route
	two_seconds ib_send_bw 65536 -m 1024
}
# A narrow link beyond the router: packets that fit pass; the failure of larger ones is explained.
narrow_router() {
	ip -n $NS_P link set pb mtu 1500
	route
	perf ib_write_bw 65536 100 -m 1024
	start_on narrow b "$TOOLS/staged" -d $DEV_B -g 0 -m 4096 bulk
	narrow=$child
	wait_until 10 listens_or_gone b 18640 "$narrow"
	start_on wide a "$TOOLS/staged" -d $DEV_A -g 0 -m 4096 bulk $IP4_B
	wide=$child
	wait_at_most 30 explained a "$wide" mtu-of-path || { fail "nothing of a narrow path"; show explained; }
	stop "$wide"
	stop "$narrow"
	ip -n $NS_P link set pb mtu 4500
}
explained() { in_ns "$1" timeout 20 "$XROCE" explain --json "$2" >"$WORK/explained.out" 2>&1; grep -q "\"$3\"" "$WORK/explained.out"; }

core_cases=(macvlan_bandwidth macvlan_native macvlan_in_use bridge_native other_cable router_route router_rc router_ud)
for each in macvlan bridge vxlan bridges; do
	make $each
	case $each in
	bridges) ;;
	*)
		tier_case ${each}_bandwidth two_seconds ib_send_bw 65536
		tier_case ${each}_latency two_seconds ib_write_lat 64
		tier_case ${each}_uc two_seconds ib_write_bw 4096 -c UC
		tier_case ${each}_generic generic
		tier_case ${each}_native native
		;;
	esac
	case $each in
	macvlan)
		tier_case macvlan_down parent_down
		tier_case macvlan_in_use parent_in_use
		tier_case macvlan_deleted parent_deleted
		;;
	bridge) tier_case bridge_served port_served ;;
	bridges) tier_case other_cable other_cable ;;
	esac
	unmake
done
IP4_B=10.78.0.2
make router
tier_case router_route no_route
for each in rc uc ud srq; do
	tier_case router_$each routed_pingpong $each
done
tier_case router_bandwidth routed_bandwidth
tier_case router_narrow narrow_router
finish_cases
