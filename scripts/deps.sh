#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Installs what building and testing need, from Debian's packages and nothing else. When everything is there it does
# nothing and touches no network. It never removes or upgrades a package.
set -u

packages=(
	# build
	gcc make pkg-config clang libc6-dev linux-libc-dev bpftool
	libbpf-dev libxdp-dev libisal-dev libmnl-dev libibverbs-dev
	# tests
	libcmocka-dev ibverbs-utils perftest iproute2 iputils-ping ethtool strace util-linux procps
)

installed() {
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if ! command -v dpkg-query >/dev/null; then
	echo "deps: this script knows Debian's packages only; install by hand: ${packages[*]}" >&2
	exit 1
fi

missing=()
for p in "${packages[@]}"; do
	installed "$p" || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "deps: missing packages: ${missing[*]}" >&2
	echo "deps: run as root, or install them with: apt-get install ${missing[*]}" >&2
	exit 1
fi

echo "deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt_get=(apt-get -q -y -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=120)
# The package lists of a fresh machine may be empty or old: fetch them once, then install.
if ! "${apt_get[@]}" update </dev/null || ! "${apt_get[@]}" install --no-install-recommends "${missing[@]}" </dev/null; then
	echo "deps: apt-get failed; missing: ${missing[*]}" >&2
	exit 1
fi
for p in "${missing[@]}"; do
	if ! installed "$p"; then
		echo "deps: $p is still not installed" >&2
		exit 1
	fi
done
