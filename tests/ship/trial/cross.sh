# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The build for another machine that arch.sh and tests/vm/arm64.sh share, in BUILD/arch/ARCH:
# Debian's packages of that machine, unpacked into $root, and what its cross compiler makes, in
# $dir/build. Nothing of this machine changes. Sourced at the top of the tree.
#
#   cross_possible BUILD ARCH	arm64 or s390x; sets $triplet, $qemu, $dir, $root and $log,
#				or $skip_reason
#   cross_unpack		the packages, once
#   cross_make GOAL...
#
# The last two print the end of a log and return 1 if they fail. One program at a time runs them.
# MIRROR=URL may be set.

# libraries with headers; the programs are for the guest
cross_packages=libc6-dev,linux-libc-dev,bpftool,dash,busybox-static,iproute2,ibverbs-utils
for p in bpf xdp fuse3 isal mnl ibverbs rdmacm cmocka microhttpd json-c smartcols ncurses; do
	cross_packages+=,lib$p-dev
done

cross_possible() {
	local tool
	arch=$2
	case $arch in
	arm64) triplet=aarch64-linux-gnu qemu=qemu-aarch64 ;;
	s390x) triplet=s390x-linux-gnu qemu=qemu-s390x ;;
	*) echo "cross.sh: no architecture '$arch'" >&2; exit 2 ;;
	esac
	for tool in mmdebstrap $qemu $triplet-gcc; do
		command -v $tool >/dev/null || { skip_reason="$tool is not installed"; return 1; }
	done
	mkdir -p "$1/arch/$arch" && dir=$(cd "$1/arch/$arch" && pwd) || exit 1
	root=$dir/root
	log=$dir/log
}

cross_unpack() {
	(
		flock 9
		[ "$(cat "$dir/unpacked" 2>/dev/null)" != "$cross_packages" ] || exit 0
		rm -rf "$root" "$dir/unpacked"
		mmdebstrap --variant=extract --architectures="$arch" --include="$cross_packages" \
			"$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" \
			"$(scripts/mirror.sh)" >"$dir/unpacking" 2>&1 ||
			{ tail -n 20 "$dir/unpacking"; exit 1; }
		echo "$cross_packages" >"$dir/unpacked"
	) 9>"$dir/lock"
}

# The skeleton of a big-endian BPF object is made by a big-endian bpftool.
cross_make() {
	local pkgconfig=$root/usr/lib/$triplet/pkgconfig:$root/usr/share/pkgconfig
	(
		flock 9
		make --no-print-directory -k -j"$(nproc)" BUILD="$dir/build" WERROR=1 \
			CC="$triplet-gcc --sysroot=$root" AR=$triplet-ar \
			PKG_CONFIG="env PKG_CONFIG_LIBDIR=$pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config" \
			BPFTOOL="$qemu -L $root $root/usr/sbin/bpftool" "$@" >"$dir/making" 2>&1 9>&- ||
			{ grep -v '^  ' "$dir/making" | tail -n 20; exit 1; }
	) 9>"$dir/lock"
}
