#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
# crashes: test_cq_claim test_engine test_guard
#
# Debian 13: the packages of scripts/deps.sh exist there, and in a chroot of it the project builds,
# its unit tests and its demonstration run, and perftest of that release runs on our libraries. As
# root, with mmdebstrap and a mirror. debian13.sh BUILD keeps the chroot as BUILD/debian13/*.tar,
# with which a second run needs no mirror.
#
# MIRROR=URL, if not this machine's own.
skip_all() { echo "skip debian13 $*"; exit 0; }
[ "$(id -u)" -eq 0 ] || skip_all "needs root"
if [ -z "${XROCE_DEBIAN13:-}" ]; then
	# The mounts below end with the mount namespace.
	XROCE_DEBIAN13=1 exec unshare --mount --propagation private "$0" "$@"
fi
unset XROCE_DEBIAN13
. "$(dirname "$0")/lib/case.sh"
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
. tests/ship/lib/chroot.sh

# Few packages: no recommended ones, and no pages or translations of any.
packages=(
	gcc make pkg-config clang libc6-dev linux-libc-dev bpftool
	libbpf-dev libxdp-dev libfuse3-dev libisal-dev libmnl-dev libibverbs-dev librdmacm-dev
	libmicrohttpd-dev libjson-c-dev libsmartcols-dev libncurses-dev libcmocka-dev
	ibverbs-utils perftest iproute2 iputils-ping procps util-linux mount
)
mmdebstrap_options=(--mode=root --variant=apt --skip=cleanup/apt/lists
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*'
	--dpkgopt='path-exclude=/usr/share/locale/*')

# Its name is a hash of its contents' list.
sum=$(printf '%s\n' "${packages[@]}" "${mmdebstrap_options[@]}" | sha256sum)
tar=$BUILD/debian13/${sum:0:16}.tar

# Makes the tar in a file system of memory: dpkg calls fsync() after each file.
bootstrap() {
	local mirror

	command -v mmdebstrap >/dev/null || skip_all "no mmdebstrap"
	mirror=$(scripts/mirror.sh)
	mirror=${mirror%/}
	/usr/lib/apt/apt-helper download-file "$mirror/dists/trixie/InRelease" "$work/release" \
		>"$work/bootstrap" 2>&1 || skip_all "no mirror has the release"
	mkdir -p "${tar%/*}" && mmdebstrap "${mmdebstrap_options[@]}" \
		--include="$(IFS=,; echo "${packages[*]}")" trixie "$root" "$mirror" \
		>"$work/bootstrap" 2>&1 || return
	rm -f "${tar%/*}"/*.tar
	tar -C "$root" --one-file-system --exclude=./dev -cf "$tar.new" . && mv "$tar.new" "$tar"
}

if [ -s "$tar" ]; then
	tar -C "$root" -xf "$tar" || exit 1
elif ! bootstrap; then
	tail -n 30 "$work/bootstrap"
	echo "not ok debian13__bootstrap"
	exit 1
fi
chroot_mounts && mkdir "$root/xroce" || exit 1
{ git ls-files -z 2>/dev/null || find . -path ./build\* -prune -o -type f -print0; } |
	xargs -0 cp -P --parents -t "$root/xroce" || exit 1

# inside COMMAND...: in the chroot, at the top of the sources. The check finds processes by a
# variable, so the environment stays.
inside() {
	env PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/tmp chroot "$root" \
		sh -c 'cd /xroce && exec "$@"' sh "$@"
}

debian13__has_the_packages_of_deps() {
	local names

	names=$(inside scripts/deps.sh print) && [ -n "$names" ] || return
	# shellcheck disable=SC2086 # words
	inside apt-get -s --no-install-recommends install $names >"$work/out" 2>&1 ||
		{ grep '^E:' "$work/out"; return 1; }
}

debian13__builds_without_a_warning() {
	inside make -s -k -j"$(nproc)" CFLAGS=-O2 WERROR=1 all tests \
		>"$work/out" 2>&1 && ! grep 'warning:' "$work/out" ||
		{ grep -E 'error:|Error' "$work/out"; return 1; }
}

debian13__unit_tests() {
	local program ran=0

	for program in "$root"/xroce/build/tests/unit/test_*; do
		[ "${program##*.}" != d ] || continue
		inside "${program#"$root/xroce/"}" >"$work/out" 2>&1 ||
			{ grep -E 'ERROR|LINE|FAILED' "$work/out"; note "${program##*/} failed"; return 1; }
		ran=$((ran + 1))
	done
	[ $ran -gt 30 ]
}

debian13__demo() { inside scripts/demo.sh; }

# passes PROGRAM COUNT CASES: COUNT cases of a test program that match CASES pass.
passes() {
	XROCE_CASE=$3 XROCE_CASES='' inside "tests/netns/$1" build >"$work/out" 2>&1
	[ "$(grep -c '^ok ' "$work/out")" -eq "$2" ] || show out
}
debian13__perftest() {
	passes perftest.sh 4 '@(send_bw_64|write_lat_64|read_bw_64|atomic_lat_8_add)'
}
debian13__raw_ethernet() { passes raw.sh 2 'perftest_@(bw|lat)'; }

run_cases
