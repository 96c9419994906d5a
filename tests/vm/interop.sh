#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The whole matrix against Soft-RoCE, and of our library inside guests: `make interop`. interop.sh
# BUILD [KERNEL...] prints a table; docs/interop.md holds its output. A row counts runs that
# succeeded at both ends; the errors of the others follow in lines with `# `.
. "$(dirname "$0")/../netns/lib/case.sh"
. "$here/tests/netns/lib/cable.sh"
. "$here/tests/vm/lib/guest.sh"
. "$here/tests/vm/lib/peer.sh"
. "$here/tests/vm/lib/ends.sh"
shift
kernels=("$@")
[ ${#kernels[@]} -gt 0 ] || kernels=(6.1 6.12)
OPCODES=$VM_TOOLS/opcodes VDATA=$TOOLS/vdata
failed_runs=0

# row NAME: the runs since the last row. ran NAME COMMAND...: one run.
row_passed=0 row_ran=0
ran() {
	local name=$1
	shift
	: >"$WORK/case.notes"
	row_ran=$((row_ran + 1))
	if "$@" && [ ! -s "$WORK/case.notes" ]; then
		row_passed=$((row_passed + 1))
	else
		failed_runs=$((failed_runs + 1))
		{
			echo "# $kernel, $name:"
			# the runs, and how each program's output begins
			awk '/^#   / { if (++n > 3) next } !/^#   / { n = 0 } 1' "$WORK/case.notes"
		} >>"$WORK/failures"
	fi
}
row() {
	printf '| %s | %s | %d of %d |\n' "$kernel" "$1" $row_passed $row_ran
	[ $row_passed -eq $row_ran ] || cat "$WORK/failures"
	: >"$WORK/failures"
	row_passed=0 row_ran=0
}

programs=()
for tool in opcodes vdata /usr/bin/ibv_{devinfo,{rc,uc,ud,srq}_pingpong} /usr/bin/ib_{send,write,read,atomic}_{bw,lat}; do
	case $tool in opcodes) tool=$OPCODES ;; vdata) tool=$VDATA ;; esac
	programs+=(-p "$tool")
done

# data SERVER CLIENT: everything that the two programs do, over both families.
operations() {
	local server=$1 client=$2 family=$3 mtu=$4 case=$5 rxe=()
	shift 5
	case $server$client in *rxe*) rxe=(-r) ;; esac
	end_pair "$server" "$client" "$family" 18610 240 "$OPCODES" -g "${rxe[@]}" -m "$mtu" "$@" "$case"
}
data() {
	local server=$1 client=$2 family=$3 mtu=$4 transport=$5
	end_pair "$server" "$client" "$family" 18600 240 "$VDATA" -g -t "$transport" -m "$mtu" -n 12 -s 3 \
		-x 20000 -T 18 -y 6
}
everything() {
	local server=$1 client=$2 mtu=$3 name=$4 families=${5:-v4 v6} family case
	for family in $families; do
		for case in rc uc ud inv rnr atomics errors; do
			ran "$case $family" operations "$server" "$client" $family "$mtu" $case
		done
		for case in rc uc ud; do
			ran "data $case $family" data "$server" "$client" $family "$mtu" $case
		done
	done
	row "$name: every operation and random data, IPv4 and IPv6"
}

pingpong() {
	local server=$1 client=$2 kind=$3
	end_pair "$server" "$client" v4 18515 60 ibv_${kind}_pingpong -g -n 100 -s 1000 -m 1024
}
pingpongs() {
	local server=$1 client=$2 name=$3 kind
	for kind in rc uc ud srq; do
		case $kind in
		ud) ran "$kind" end_pair "$server" "$client" v4 18515 60 ibv_ud_pingpong -g -n 100 -s 1000 ;;
		*) ran "$kind" pingpong "$server" "$client" $kind ;;
		esac
	done
	row "$name: rc, uc, ud and srq pingpong"
}

perftest() {
	local server=$1 client=$2 tool=$3
	shift 3
	end_pair "$server" "$client" v4 18515 60 ib_$tool -x -n 50 -F "$@"
}
perftests() {
	local server=$1 client=$2 name=$3 tool size
	for tool in {send,write,read,atomic}_{bw,lat}; do
		case $tool in atomic_*) size= ;; *) size='-s 16384' ;; esac
		ran "$tool RC" perftest "$server" "$client" $tool -m 1024 -u 18 $size
	done
	for tool in {send,write}_{bw,lat}; do
		ran "$tool UC" perftest "$server" "$client" $tool -m 1024 -c UC -s 4096 -t 8
	done
	for tool in send_{bw,lat}; do
		ran "$tool UD" perftest "$server" "$client" $tool -c UD -s 1024 -t 16
	done
	for tool in {send,write,read}_bw; do
		ran "$tool both" perftest "$server" "$client" $tool -m 1024 -u 18 -s 16384 -b
		ran "$tool 4 QPs" perftest "$server" "$client" $tool -m 1024 -u 18 -s 16384 -q 4
	done
	row "$name: perftest, RC, UC, UD, bandwidth and latency, both directions, 4 QPs"
}

# The guest's card, for this part of the matrix: its queues are fixed when it is made.
tap_again() {
	ip -n $NS_P link del pb
	guest_tap pb "$@"
}
# no_guest: the message where a part cannot run at all.
no_guest() {
	failed_runs=$((failed_runs + 1))
	echo "# $kernel, $1: no guest"
	cat "$WORK/case.notes"
}

guest_up() {
	local guest=$1 tap=$2 ip4=$3 ip6=$4 mtu=$5
	shift 5
	end_address "$guest" "$ip4"
	# the guest loads virtio_net alone by itself
	guest_do "$guest" setup "[ -e /sys/class/net/eth0 ] || modprobe ${VM_MODEL:-virtio_net};
		ip link set eth0 mtu $mtu up; echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad;
		ip addr add $ip4/24 dev eth0; ip addr add $ip6/64 dev eth0 nodad; $*" ||
		{ show setup; return 1; }
	wait_until 10 in_a ping -q -c 1 -W 1 "$ip4" || fail "no path to $guest"
}

# ---- our library on the host, Soft-RoCE in the guest ----

against_rxe() {
	local mtu way family
	end_gids=()
	tap_again
	guest_boot guest "$kernel" 2 "${programs[@]}" &&
		guest_up guest pb $IP4_B $IP6_B 4500 "rdma link add rxe0 type rxe netdev eth0" ||
		{ no_guest rxe; return 1; }
	everything host guest/rxe0 1024 "we serve rxe"
	everything guest/rxe0 host 1024 "rxe serves us"
	pingpongs host guest/rxe0 "we serve rxe"
	pingpongs guest/rxe0 host "rxe serves us"
	perftests host guest/rxe0 "we serve rxe"
	perftests guest/rxe0 host "rxe serves us"
	for mtu in 256 512 1024 2048 4096; do
		for family in v4 v6; do
			ran "rc $mtu $family" operations host guest/rxe0 $family $mtu rc
			ran "uc $mtu $family" operations host guest/rxe0 $family $mtu uc
			ran "data $mtu $family" data host guest/rxe0 $family $mtu rc
		done
	done
	row "path MTU 256 to 4096: RC and UC operations, random data"
	for mtu in 0xfffffe 0xffffff 0 0x7fffff 0x800000; do
		ran "rc from $mtu" operations host guest/rxe0 v4 256 rc -P $mtu
		ran "atomics from $mtu" operations host guest/rxe0 v4 256 atomics -P $mtu
	done
	row "first PSNs at the wrap and the half"
	for way in xsk tap live gso; do
		export XROCE_TX=$way
		for family in v4 v6; do
			ran "$way rc $family" operations host guest/rxe0 $family 1024 rc
			ran "$way data $family" data host guest/rxe0 $family 1024 rc
			ran "$way uc $family" data host guest/rxe0 $family 1024 uc
		done
		ran "$way write_bw" perftest host guest/rxe0 write_bw -m 1024 -u 18
		unset XROCE_TX
	done
	row "frames leave by AF_XDP, TAP, live frames, super-packets"
	impaired
	guest_do guest mtu "rdma link del rxe0; ip link set eth0 mtu 1500; rdma link add rxe0 type rxe netdev eth0"
	end_gids=()
	for family in v4 v6; do
		ran "rc $family" operations host guest/rxe0 $family 1024 rc
		ran "data $family" data guest/rxe0 host $family 1024 rc
	done
	ran "pingpong" pingpong host guest/rxe0 rc
	ran "send_bw" perftest host guest/rxe0 send_bw -m 1024 -u 18
	row "the guest's link MTU is 1500, ours 4500"
	guest_off guest
}

impaired() {
	local family seed
	guest_unbridge
	in_a ethtool -K $IF_A tx off tso off gso off gro off >/dev/null
	for seed in 1 2 3; do
		cable_with -s $seed -l 10 -u 5 -r 10
		for family in v4 v6; do
			ran "atomics seed $seed $family" operations host guest/rxe0 $family 1024 atomics -n 150
			ran "data seed $seed $family" data host guest/rxe0 $family 1024 rc
		done
	done
	stop "$cable"
	cable=
	in_a ethtool -K $IF_A tx on tso on gso on gro on >/dev/null
	guest_bridge
	row "1 % lost, 1 % overtaken, 0.5 % twice: atomics and random data"
}

# ---- our library in the guest ----

# second_rxe COMMAND...: Soft-RoCE in a second guest, whatever the first one's card is.
second_rxe() {
	ip -n $NS_P link del pc 2>/dev/null
	guest_tap pc
	VM_MODEL='' VM_QUEUES=1 VM_CARD=$VM_PLAIN VM_TAP=pc VM_MAC=52:54:00:00:77:04 guest_boot second "$kernel" 1 "${programs[@]}" &&
		VM_MODEL='' guest_up second pc 10.77.0.3 fd77::3 4500 "rdma link add rxe0 type rxe netdev eth0; $*"
}

# What our library makes of a guest's card, while a program has it: by which kind of XDP it
# receives, and how it sends.
show_device() {
	end_gid guest/xroce_eth0 v4 || return
	guest_start guest holder "/xroce/bin/xroce run --dev eth0 -- ibv_rc_pingpong -d xroce_eth0 -g $end_gid"
	wait_until 20 end_listens guest/xroce_eth0 18515 holder
	guest_do guest device "/xroce/bin/xroce doctor eth0; /xroce/bin/xroce list eth0; killall ibv_rc_pingpong"
	guest_wait guest holder 10
	sed 's/^/# /' "$WORK/device.out"
}

ours_in_guest() {
	local what=$1 queues=$2
	end_gids=()
	tap_again "$([ "$queues" -gt 1 ] && echo multi_queue)"
	VM_QUEUES=$queues guest_boot guest "$kernel" 2 "${programs[@]}" &&
		guest_up guest pb $IP4_B $IP6_B 4500 "modprobe tun" || { no_guest "$what"; return 1; }
	show_device
	everything host guest/xroce_eth0 1024 "ours in the guest on $what, ours outside"
	pingpongs guest/xroce_eth0 host "ours in the guest on $what, ours outside"
	perftests host guest/xroce_eth0 "ours in the guest on $what, ours outside"
	if second_rxe; then
		everything second/rxe0 guest/xroce_eth0 1024 "ours in the guest on $what, rxe in another"
		guest_off second
	else
		no_guest "$what, rxe in another"
	fi
	guest_off guest
}

# With a second guest, whose Soft-RoCE is on eth0 and on VLAN 5.
stacked() {
	local kind
	tap_again
	end_gids=()
	guest_boot guest "$kernel" 2 "${programs[@]}" &&
		guest_up guest pb $IP4_B $IP6_B 4500 "modprobe tun; modprobe 8021q; modprobe bonding max_bonds=0;
			modprobe macvlan; modprobe bridge" &&
		second_rxe "modprobe 8021q; ip link add link eth0 name eth0.5 type vlan id 5; ip addr add 10.78.0.3/24 dev eth0.5;
			echo 0 >/proc/sys/net/ipv6/conf/eth0.5/accept_dad; ip link set eth0.5 up;
			ip addr add fd77:5::3/64 dev eth0.5 nodad" ||
		{ no_guest stacked; return 1; }
	guest_do guest stack "ip link add link eth0 name eth0.5 type vlan id 5; ip addr add 10.78.0.2/24 dev eth0.5;
		echo 0 >/proc/sys/net/ipv6/conf/eth0.5/accept_dad; ip link set eth0.5 up; ip addr add fd77:5::2/64 dev eth0.5 nodad"
	everything second/rxe0 guest/xroce_eth0.5 1024 "ours in the guest on a VLAN interface, rxe with a VLAN in another" 'vlan4 vlan6'
	for kind in gso xsk; do
		END_ENV=XROCE_TX=$kind
		ran "$kind rc" data second/rxe0 guest/xroce_eth0.5 vlan4 1024 rc
		ran "$kind uc" data second/rxe0 guest/xroce_eth0.5 vlan4 1024 uc
	done
	END_ENV=
	row "the same with XROCE_TX=gso and xsk"
	guest_do guest stack "ip link del eth0.5; ip link add macvlan0 link eth0 type macvlan mode bridge;
		echo 0 >/proc/sys/net/ipv6/conf/macvlan0/accept_dad; ip link set macvlan0 up;
		ip addr add 10.77.0.4/24 dev macvlan0; ip addr add fd77::4/64 dev macvlan0 nodad"
	everything second/rxe0 guest/xroce_macvlan0 1024 "ours in the guest on a macvlan, rxe in another"
	guest_do guest stack "ip link del macvlan0; ip addr flush dev eth0; ip link add br0 type bridge mcast_snooping 0;
		ip link set br0 address $MAC_B; ip link set eth0 master br0; ip link set br0 mtu 4500;
		echo 0 >/proc/sys/net/ipv6/conf/br0/accept_dad; ip link set br0 up;
		ip addr add $IP4_B/24 dev br0; ip addr add $IP6_B/64 dev br0 nodad"
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B
	everything second/rxe0 guest/xroce_br0 1024 "ours in the guest on a bridge, rxe in another"
	guest_do guest stack "ip link del br0; ip link set eth0 down; ip link add bond0 type bond mode active-backup miimon 100;
		ip link set eth0 master bond0; ip link set bond0 mtu 4500 up; echo 0 >/proc/sys/net/ipv6/conf/bond0/accept_dad;
		ip addr add $IP4_B/24 dev bond0; ip addr add $IP6_B/64 dev bond0 nodad"
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B
	everything second/rxe0 guest/xroce_bond0 1024 "ours in the guest on a bond, rxe in another"
	guest_off second
	guest_off guest
}

guest_possible || { echo "skip interop $skip_reason"; exit 0; }
: >"$WORK/failures"
guest_topology 4500
guest_bridge
echo "$(date -u +%Y-%m-%d), host kernel $(uname -r), perftest $(dpkg-query -W -f '${Version}' perftest), rdma-core $(dpkg-query -W -f '${Version}' libibverbs1)"
echo
echo '| guest | what | passed |'
echo '|---|---|---|'
for kernel in "${kernels[@]}"; do
	if ! kernel_get "$kernel"; then
		echo "skip $kernel $skip_reason"
		continue
	fi
	for part in ${XROCE_INTEROP_PARTS:-rxe virtio queues e1000e stacked}; do
		case $part in
		rxe) against_rxe ;;
		virtio) ours_in_guest "virtio_net without offloads" 1 ;;
		queues) VM_CARD='' ours_in_guest "virtio_net with offloads and two queues" 2 ;;
		e1000e) VM_MODEL=e1000e ours_in_guest e1000e 1 ;;
		stacked) stacked ;;
		esac
	done
done
echo
echo "$failed_runs runs failed"
[ $failed_runs -eq 0 ]
