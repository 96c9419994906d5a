#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The time of a connection at its active end, phase by phase: cmtime makes 1,000 at once from a
# guest to a server of ours outside, by the kernel's rdma_cm with Soft-RoCE, and by ours: `make
# bench-vm`. cmtime.sh BUILD [KERNEL...] prints a table. The guest is emulated, as fast as its host
# has time for: the ratio is an orientation, the times are not a machine's.
. "$(dirname "$0")/../netns/lib/case.sh"
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/cm.sh"
. "$here/tests/vm/lib/guest.sh"
. "$here/tests/vm/lib/peer.sh"
shift
kernels=("$@")
[ ${#kernels[@]} -gt 0 ] || kernels=(6.1)
CONNECTIONS=${XROCE_BENCH_COUNT:-1000}
REPETITIONS=3
PHASES=('create id' 'resolve addr' 'resolve route' 'create qp' connect disconnect destroy)

# cmtime_by WORD...: one run in the guest, `client`. The server does not end.
cmtime_by() {
	local rc
	cm_serve cmtime -b $IP4_A -c $CONNECTIONS || return
	guest_start guest client "$* cmtime -s $IP4_A -c $CONNECTIONS"
	guest_wait guest client 240
	rc=$?
	stop "$cm_server"
	wait_until 10 xdp_off $NS_A $IF_A
	[ $rc -eq 0 ] || { fail "cmtime in the guest ended with $rc"; show client; return 1; }
}
# keep WHO: microseconds of each phase, to WORK/WHO.PHASE
keep() {
	local phase
	for phase in "${PHASES[@]}"; do
		sed -nE "s/^$phase *:.* ([0-9.]+)\$/\\1/p" "$WORK/client.out" >>"$WORK/$1.${phase// /_}"
	done
}
# median_of WHO PHASE
median_of() { sort -n "$WORK/$1.${2// /_}" | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'; }

guest_possible || { echo "skip cmtime $skip_reason"; exit 0; }
guest_topology 4500
guest_bridge
echo "$(date -u +%Y-%m-%d); us a connection, $CONNECTIONS at once, medians of $REPETITIONS"
echo
echo '| guest | phase | rdma_cm and Soft-RoCE | xroce | xroce / Soft-RoCE |'
echo '|---|---|---|---|---|'
for kernel in "${kernels[@]}"; do
	kernel_get "$kernel" || { echo "skip $kernel $skip_reason"; continue; }
	guest_boot guest "$kernel" 2 -p "$(command -v cmtime)" && peer_up 4500 || { cat "$WORK/case.notes"; exit 1; }
	guest_do guest ucm "modprobe rdma_ucm && modprobe tun && echo 127.0.0.1 localhost >/etc/hosts"
	for ((i = 0; i < REPETITIONS; i++)); do
		cmtime_by "" && keep rxe
		cmtime_by "/xroce/bin/xroce run --dev eth0 --" && keep xroce
		[ ! -s "$WORK/case.notes" ] || { cat "$WORK/case.notes"; exit 1; }
	done
	for phase in "${PHASES[@]}"; do
		rxe=$(median_of rxe "$phase") ours=$(median_of xroce "$phase")
		echo "| $kernel | $phase | $rxe | $ours | $(awk -v r="$rxe" -v o="$ours" 'BEGIN { if (r > 0) printf "%.2f", o / r; else print "-" }') |"
	done
	rm -f "$WORK"/rxe.* "$WORK"/xroce.*
	guest_off guest
done
