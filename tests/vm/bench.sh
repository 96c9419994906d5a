#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions of one operation, both ends together, by us, by Soft-RoCE and by TCP in one guest
# kernel: `make bench-vm`. bench.sh BUILD [KERNEL...] prints a table. The guest has one processor
# that QEMU counts the instructions of, so a measurement does not depend on what else this machine
# does.
. "$(dirname "$0")/../netns/lib/case.sh"
. "$here/tests/vm/lib/guest.sh"
shift
kernels=("$@")
[ ${#kernels[@]} -gt 0 ] || kernels=(6.1 6.12)
IP_0=10.80.0.1 IP_1=10.80.0.2

# Both ends of a veth in one namespace, as Soft-RoCE knows only the first: what one address sends to
# the other leaves by the interface all the same, because the table of local addresses comes later.
WIRE="ip link add v0 mtu 4500 type veth peer name v1 mtu 4500 &&
	for i in all v0 v1; do
		echo 1 >/proc/sys/net/ipv4/conf/\$i/accept_local; echo 0 >/proc/sys/net/ipv4/conf/\$i/rp_filter;
	done;
	echo 1 >/proc/sys/net/ipv6/conf/v0/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/v1/disable_ipv6;
	ip link set v0 up && ip link set v1 up &&
	ip addr add $IP_0/24 dev v0 && ip addr add $IP_1/24 dev v1 &&
	ip rule add pref 100 lookup local && ip rule del pref 0 &&
	ip rule add pref 10 from $IP_0 to $IP_1 iif lo lookup 101 && ip route add $IP_1 dev v0 src $IP_0 table 101 &&
	ip rule add pref 11 from $IP_1 to $IP_0 iif lo lookup 102 && ip route add $IP_0 dev v1 src $IP_1 table 102 &&
	ip neigh replace $IP_1 lladdr \$(cat /sys/class/net/v1/address) dev v0 nud permanent &&
	ip neigh replace $IP_0 lladdr \$(cat /sys/class/net/v0/address) dev v1 nud permanent"

# measure WHO OPERATION BYTES PATH-MTU DEPTH: "min median max", or what went wrong
measure() {
	local who=$1 op=$2 bytes=$3 mtu=$4 depth=$5 command
	case $who in
	rxe) command="instructions verbs rxe0,$rxe_gid rxe1,$rxe_gid" ;;
	xroce) command="env ${XROCE_BENCH_ENV:-} /xroce/bin/xroce run -- instructions verbs xroce_v0,0 xroce_v1,0" ;;
	tcp) command="instructions tcp $IP_0 $IP_1" ;;
	esac
	guest_start guest measured "$command $op $bytes $mtu ${XROCE_BENCH_COUNT:-100} $depth"
	guest_wait guest measured 180
	sed -n 's/^instructions: min \([0-9]*\) median \([0-9]*\) max \([0-9]*\) .*/\1 \2 \3/p' "$WORK/measured.out" |
		grep . || { tail -1 "$WORK/measured.out" >&2; false; }
}

# cell MIN MEDIAN MAX
cell() { [ $# -eq 3 ] && echo "$1 / $2 / $3" || echo "-"; }

table() {
	local op bytes mtu depth rxe ours tcp ratio
	local -A tcp_of=()
	for depth in 1 8; do
		for mtu in 1024 4096; do
			# AF_XDP takes frames of several buffers from 6.6 on
			[ $mtu = 4096 ] && [ "$kernel" = 6.1 ] && continue
			while read -r op bytes; do
				rxe=$(measure rxe "$op" "$bytes" $mtu $depth </dev/null)
				ours=$(measure xroce "$op" "$bytes" $mtu $depth </dev/null)
				[ -n "${tcp_of[$op$depth]:-}" ] || tcp_of[$op$depth]=$(measure tcp "$op" "$bytes" 0 $depth </dev/null)
				tcp=${tcp_of[$op$depth]}
				ratio=$(awk -v r="$rxe" -v o="$ours" 'BEGIN { split(r, a); split(o, b); if (a[2] && b[2]) printf "%.2f", b[2] / a[2]; else print "-" }')
				# shellcheck disable=SC2086
				echo "| $kernel | $op $bytes | $depth | $mtu | $(cell $rxe) | $(cell $ours) | $(cell $tcp) | $ratio |"
			done <<-OPS
				send 64
				write 65536
				read 65536
				atomic 8
			OPS
		done
	done
}

guest_possible || { echo "skip bench-vm $skip_reason"; exit 0; }
guest_topology 4500
echo "$(date -u +%Y-%m-%d); instructions at both ends together, for one operation: least / median / most of ${XROCE_BENCH_COUNT:-100}"
echo
echo '| guest | operation, bytes | at once | PMTU | Soft-RoCE | xroce | TCP | xroce / Soft-RoCE |'
echo '|---|---|---|---|---|---|---|---|'
for kernel in "${kernels[@]}"; do
	kernel_get "$kernel" || { echo "skip $kernel $skip_reason"; continue; }
	# with carry-less multiplication, as every processor of these years has it: both compute
	# CRCs by it. The time stamp counter, an instruction a nanosecond here, is the clock, as it
	# is there: the time by the HPET is a system call, and counted.
	VM_KARGS='clocksource=tsc tsc=reliable' XROCE_VM_CPU=max,-erms XROCE_VM_ACCEL=tcg,thread=single \
		guest_boot guest "$kernel" 1 -p "$VM_TOOLS/instructions" -icount shift=0,sleep=off || { cat "$WORK/case.notes"; exit 1; }
	guest_do guest wire "modprobe crc32-pclmul; modprobe veth; modprobe tun; $WIRE && rdma link add rxe0 type rxe netdev v0 &&
		rdma link add rxe1 type rxe netdev v1 && grep -l '0000:ffff:' /sys/class/infiniband/rxe0/ports/1/gids/*" ||
		{ cat "$WORK/wire.out"; exit 1; }
	rxe_gid=$(sed -n 's#.*/gids/##p' "$WORK/wire.out" | head -1)
	table
	guest_off guest
done
