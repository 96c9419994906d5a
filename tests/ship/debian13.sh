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
. "$(dirname "$0")/lib/chroot.sh"

packages=(
	gcc make pkg-config clang libc6-dev linux-libc-dev bpftool
	libbpf-dev libxdp-dev libfuse3-dev libisal-dev libmnl-dev libibverbs-dev librdmacm-dev
	libmicrohttpd-dev libjson-c-dev libsmartcols-dev libncurses-dev libcmocka-dev
	ibverbs-utils perftest iproute2 iputils-ping procps util-linux mount
)
chroot_make trixie MIRROR "$BUILD/debian13/HASH.tar" \
	"$(printf '%s\n' "${packages[@]}" "${chroot_options_bare[@]}")" "$work/bootstrap" \
	"${chroot_options_bare[@]}" --include="$(IFS=,; echo "${packages[*]}")"
chroot_sources || exit 1

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
