#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The Debian packages on a system without anything else: a fresh chroot of this release, into which
# apt installs them with their dependencies. Then the installed command is used as a user would. As
# root, with mmdebstrap and a Debian mirror; a few minutes, so no part of make check.
#
# chroot.sh [DIRECTORY]: which has the packages; else they are built. MIRROR=URL, if not
# this machine's own.
packages=$(realpath "${1:-/nonexistent}")
. "$(dirname "$0")/../lib/chroot.sh"
set --
BUILD=build
. scripts/netns.sh
trap 'chroot_end; netns_cleanup' EXIT

mirror=$(scripts/mirror.sh)
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
if [ ! -d "$packages" ]; then
	mkdir "$work/xroce"
	git ls-files -z | xargs -0 cp -P --parents -t "$work/xroce"
	(cd "$work/xroce" && dpkg-buildpackage -us -uc -b -j"$(nproc)") >"$work/build" 2>&1 ||
		{ tail -n 30 "$work/build"; echo "not ok chroot__package"; exit 1; }
	packages=$work
fi
debs=("$packages"/xroce_*.deb "$packages"/xroce-libs_*.deb)
mmdebstrap --variant=minbase --include=ibverbs-utils,man-db,bash-completion,mandoc \
	--dpkgopt='path-include=/usr/share/man/*' \
	--customize-hook="copy-in ${debs[*]} /" \
	--customize-hook="chroot \"\$1\" apt-get -qy install --no-install-recommends ${debs[*]/#*\//\/}" \
	--customize-hook='rm "$1"/xroce*.deb' --skip=cleanup/apt \
	"$release" "$work/root.tar" "$mirror" >"$work/bootstrap" 2>&1 &&
	tar -C "$root" -xf "$work/root.tar" --exclude=./dev || {
	tail -n 30 "$work/bootstrap"
	echo "not ok chroot__bootstrap"
	exit 1
}
chroot_mounts || exit 1
netns_pair 4500
# inside NS COMMAND...: in the chroot, in that network namespace.
inside() { local ns=$1; shift; in_ns "$ns" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@"; }

chroot__is_installed() {
	inside a dpkg-query -W -f '${Status} ${Version}\n' xroce xroce-libs | tee "$work/out"
	[ "$(grep -c '^install ok installed ' "$work/out")" -eq 2 ]
}

chroot__system_library_is_not_touched() {
	inside a ldconfig && inside a ldconfig -p >"$work/out" && ! grep xroce "$work/out"
	inside a sh -c 'ldd $(which ibv_devices)' | grep libibverbs | tee "$work/out"
	! grep -q /xroce/ "$work/out"
}

chroot__version_and_list() {
	inside a xroce --version && inside a xroce list va >"$work/out" && grep -q '^xroce_va$' "$work/out" ||
		show out
}

chroot__doctor_finds_nothing_missing() { inside a xroce doctor va; }

chroot__manual_and_completion() {
	inside a man -P cat 8 xroce >"$work/out" && grep -q 'xroce run' "$work/out" || show out || return
	inside a bash -ic '. /usr/share/bash-completion/bash_completion; _completion_loader xroce
		complete -p xroce' >"$work/out" 2>&1
	grep -q -e '-F _xroce xroce' "$work/out" || show out
}

chroot__pingpong() {
	local kind server

	for kind in rc uc ud; do
		netns_children=()
		inside a xroce run --dev va -- ibv_${kind}_pingpong -g 0 -n 200 >"$work/server" 2>&1 &
		server=$!
		wait_until 20 listens_or_gone a 18515 $server
		timeout 60 nsenter --net=/run/netns/"$NS_B" chroot "$root" \
			xroce run --dev vb -- ibv_${kind}_pingpong -g 0 -n 200 "$IP4_A" && wait $server ||
			{ kill $server 2>/dev/null; show server; return; }
	done
}

chroot__purge_leaves_nothing() {
	inside a dpkg --purge xroce xroce-libs >"$work/out" 2>&1 || show out || return
	! find "$root/usr" "$root/etc" -name '*xroce*' | grep .
}

run_cases
