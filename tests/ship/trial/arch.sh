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
arch=$2
case $arch in
arm64) triplet=aarch64-linux-gnu qemu=qemu-aarch64 ;;
s390x) triplet=s390x-linux-gnu qemu=qemu-s390x ;;
*) echo "arch.sh: no architecture '$arch'" >&2; exit 2 ;;
esac
for tool in mmdebstrap $qemu $triplet-gcc; do
	command -v $tool >/dev/null || { echo "skip arch_$arch $tool is not installed"; exit 0; }
done
mkdir -p "$1/arch/$arch" && dir=$(cd "$1/arch/$arch" && pwd) || exit 1
root=$dir/root
log=$dir/log
bound=${XROCE_TEST_TIMEOUT:-900}
export XROCE_SIM_SEEDS=${XROCE_SIM_SEEDS:-300} XROCE_SIM_PACKETS=${XROCE_SIM_PACKETS:-6}

if [ ! -e "$dir/unpacked" ]; then
	rm -rf "$root"
	packages=libc6-dev,linux-libc-dev,bpftool
	for p in bpf xdp fuse3 isal mnl ibverbs cmocka microhttpd json-c smartcols ncurses; do packages+=,lib$p-dev; done
	mmdebstrap --variant=extract --architectures=$arch --include="$packages" \
		"$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" \
		"$(scripts/mirror.sh)" >"$log" 2>&1 && : >"$dir/unpacked" ||
		{ tail -n 20 "$log"; echo "not ok arch_${arch}__libraries"; exit 1; }
fi

pkgconfig=$root/usr/lib/$triplet/pkgconfig:$root/usr/share/pkgconfig
# The skeleton of a big-endian BPF object is made by a big-endian bpftool.
if make --no-print-directory -k -j"$(nproc)" BUILD="$dir/build" WERROR=1 \
	CC="$triplet-gcc --sysroot=$root" AR=$triplet-ar \
	PKG_CONFIG="env PKG_CONFIG_LIBDIR=$pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config" \
	BPFTOOL="$qemu -L $root $root/usr/sbin/bpftool" all unit-tests sim-tests cm-tests >"$log" 2>&1; then
	echo "ok arch_${arch}__compiles"
else
	grep -v '^  ' "$log" | tail -n 20
	echo "not ok arch_${arch}__compiles"
fi

# Does a handler of SIGBUS hear which address was touched? On a real machine it does. 0: yes.
sigbus_has_address() {
	$triplet-gcc --sysroot="$root" -O1 tests/ship/trial/sigbus.c -o "$dir/sigbus" &&
		$qemu -L "$root" "$dir/sigbus" >"$log" 2>&1
}
sigbus_has_address
sigbus=$?

# What emulation does not do. Prints the reason.
emulation_lacks() {
	case $1 in
	test_masks16 | test_threads) echo "takes too long under emulation" ;;
	test_guard | test_memory)
		[ $sigbus -eq 0 ] || echo "$qemu tells no address of a SIGBUS (tests/ship/trial/sigbus.c)"
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
