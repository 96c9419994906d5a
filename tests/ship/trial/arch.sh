#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# Another machine: arch.sh BUILD arm64|s390x compiles everything with Debian's cross compiler for it
# and runs the unit and simulator tests under QEMU's user mode. s390x is big-endian. The libraries
# are unpacked into BUILD/arch/ARCH/root and nothing of this machine changes. As root; ten minutes
# and more, so no part of make check (make check-arch).
#
# XROCE_SIM_SEEDS (300 here), XROCE_SIM_PACKETS (6 here) and MIRROR=URL may be set.
set -u
cd "$(dirname "$0")/../../.." || exit 1
. tests/ship/trial/cross.sh
cross_possible "$1" "$2" || { echo "skip arch_$2 $skip_reason"; exit 0; }
bound=${XROCE_TEST_TIMEOUT:-900}
export XROCE_SIM_SEEDS=${XROCE_SIM_SEEDS:-300} XROCE_SIM_PACKETS=${XROCE_SIM_PACKETS:-6}

cross_unpack || { echo "not ok arch_${arch}__libraries"; exit 1; }
if cross_make all unit-tests sim-tests cm-tests; then
	echo "ok arch_${arch}__compiles"
else
	echo "not ok arch_${arch}__compiles"
fi

# Does a handler hear which address was touched? On machines of these two kinds it does. 0: yes.
fault_has_address() {
	$triplet-gcc --sysroot="$root" -O1 tests/ship/trial/sigbus.c -o "$dir/sigbus" &&
		$qemu -L "$root" "$dir/sigbus" "$@" >"$log" 2>&1
}
fault_has_address
sigbus=$?
fault_has_address wild
wild=$?

# What emulation does not do. Prints the reason.
emulation_lacks() {
	case $1 in
	test_masks16 | test_threads) echo "takes too long under emulation" ;;
	test_guard | test_memory)
		[ $sigbus -eq 0 ] || echo "$qemu tells no address of a SIGBUS (tests/ship/trial/sigbus.c)"
		;;
	test_odp)
		[ $wild -eq 0 ] || echo "$qemu tells no address that no process has (tests/ship/trial/sigbus.c)"
		;;
	esac
}

failed=0
for source in tests/{unit,sim,cm}/test_*.c; do
	name=$(basename "$source" .c)
	case=arch_${arch}__$name
	why=$(emulation_lacks "$name")
	if [ -n "$why" ]; then
		echo "skip $case $why"
	elif timeout "$bound" $qemu -L "$root" "$dir/build/${source%.c}" >"$log" 2>&1 </dev/null; then
		echo "ok $case"
	else
		grep -E 'ERROR|LINE|FAILED|qemu' "$log" | head -n 10
		echo "not ok $case"
		failed=1
	fi
done
exit $failed
