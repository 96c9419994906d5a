#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Installs what building and testing need, from Debian's packages and nothing else. When everything
# is there it does nothing and touches no network. It never removes or upgrades a package. `deps.sh
# bench`: also the programs that xroce is compared with. `deps.sh arch`: cross compilers, QEMU for
# other machines and musl, for make check-arch. `deps.sh vm`: for tests/vm, tests/ship/debian13.sh
# and rpm.sh, and tests/netns/cm_servers.sh and rootless.sh, which are skipped without these
# packages, so a missing one is no error. `deps.sh print` prints all names but the optional ones,
# and installs nothing.
set -u

packages=(
	# build
	gcc binutils make pkg-config clang libc6-dev linux-libc-dev bpftool
	libbpf-dev libxdp-dev libfuse3-dev libisal-dev libmnl-dev libibverbs-dev librdmacm-dev
	libmicrohttpd-dev libjson-c-dev libsmartcols-dev libncurses-dev
	# tests
	libcmocka-dev ibverbs-utils infiniband-diags rdmacm-utils perftest ucx-utils libucx-dev qperf fio
	libfabric-bin libgloo-dev g++ python3-pyverbs
	iperf3 curl python3 tshark gnuplot-nox
	iproute2 nftables iputils-ping ethtool strace util-linux mount procps tmux
	openmpi-bin libopenmpi-dev mpich libmpich-dev runc systemd-container
	prometheus python3-prometheus-client valgrind
	mandoc man-db bsdextrautils debhelper dpkg-dev lintian
	spin
)

# for tests of programs that other releases of Debian do not have
optional=(dapl2-utils libdapl2 librpma-dev tgt libiscsi-bin qemu-utils qemu-block-extra)

# other machines: make check-arch
if [ "${1:-}" = arch ]; then
	packages+=(mmdebstrap qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
	packages+=(gcc-s390x-linux-gnu libc6-dev-s390x-cross)
	packages+=(qemu-system-arm busybox-static cpio xz-utils)
	packages+=(musl-tools)
fi
if [ "${1:-}" = bench ]; then
	packages+=(iperf3 sockperf python3)
fi

# a virtual machine with Soft-RoCE, tools that capture its packets, and a chroot
vm_packages=(qemu-system-x86 busybox-static cpio xz-utils tcpdump ibverbs-providers xdp-tools
	mmdebstrap)
# tests/ship/rpm.sh
vm_packages+=(rpm)
# servers with event loops, and their clients
vm_packages+=(nginx-light redis-server redis-tools postgresql)
# a Ceph cluster
vm_packages+=(ceph-mon ceph-osd ceph-common)
# tests/netns/rootless.sh
vm_packages+=(podman)

installed() {
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if ! command -v dpkg-query >/dev/null; then
	echo "deps: this script knows Debian's packages only; install by hand: ${packages[*]}" >&2
	exit 1
fi

find_missing() {
	local p
	missing=()
	for p in "$@"; do
		installed "$p" || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ]
}

# The fuzzers' runtime is a separate package, named after Debian's version of clang.
runtime() { echo "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"; }

if [ "${1:-}" = print ]; then
	echo "${packages[@]}" "${vm_packages[@]}" "$(runtime)"
	exit 0
fi

# Keeps the installed packages from starting services, now and at the next boot. Does nothing if the
# machine already has a policy for that.
policy=/usr/sbin/policy-rc.d
start_nothing() {
	[ -e $policy ] && return
	printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy
	trap 'rm -f $policy' EXIT
}
start_as_ever() {
	local p
	for p in "${missing[@]}"; do
		case $p in
		prometheus | tgt | redis-server | postgresql) ;;
		nginx-light) p=nginx ;;
		podman)
			systemctl disable --quiet podman.socket podman.service podman-restart.service \
				podman-auto-update.service podman-auto-update.timer 2>/dev/null
			continue
			;;
		*) continue ;;
		esac
		systemctl disable --quiet "$p.service" 2>/dev/null
	done
	# only the policy of this script
	[ -z "$(trap -p EXIT)" ] || rm -f $policy
	trap - EXIT
}

updated=
install_missing() {
	if [ "$(id -u)" -ne 0 ]; then
		echo "deps: missing packages: ${missing[*]}" >&2
		echo "deps: run as root, or install them with: apt-get install ${missing[*]}" >&2
		exit 1
	fi
	echo "deps: installing ${missing[*]}"
	# The package lists of a fresh machine may be empty or old: fetch them once, then install.
	if [ -z "$updated" ]; then
		apt_get update && updated=yes
	fi
	start_nothing
	apt_get install --no-install-recommends "${missing[@]}"
	start_as_ever
	if find_missing "${missing[@]}"; then
		echo "deps: apt-get could not install: ${missing[*]}" >&2
		exit 1
	fi
}
# apt-get would upgrade the installed packages of the same source as a new one.
apt_get() {
	DEBIAN_FRONTEND=noninteractive apt-get -q -y -o APT::Get::Upgrade-By-Source-Package=false \
		-o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

if find_missing "${packages[@]}"; then
	install_missing
fi
# A package that the lists do not have is no reason to fetch them again.
available=()
find_missing "${optional[@]}"
for p in "${missing[@]}"; do
	[ -z "$(apt-cache madison "$p" 2>/dev/null)" ] || available+=("$p")
done
if [ ${#available[@]} -gt 0 ] && find_missing "${available[@]}"; then
	install_missing
fi
if find_missing "$(runtime)"; then
	install_missing
fi
if [ "${1:-}" = vm ] && find_missing "${vm_packages[@]}"; then
	(install_missing) || echo "deps: the tests with a virtual machine or servers will be skipped" >&2
fi
exit 0
