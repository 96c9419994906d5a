#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# The Debian packages: they build from the files in git, lintian finds no error, and unpacked they
# run, the libraries also without the command. chroot.sh installs them on a separate system.
# package.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

for tool in dpkg-buildpackage dh lintian; do
	command -v $tool >/dev/null || { echo "skip package no $tool"; exit 0; }
done
tree=$work/xroce
mkdir "$tree"
{ git ls-files -z 2>/dev/null || find . -path ./build\* -prune -o -type f -print0; } |
	xargs -0 cp -P --parents -t "$tree"
# This build's settings are not for the package.
(cd "$tree" && env -u WERROR -u CC dpkg-buildpackage -us -uc -b -j"$(nproc)") >"$work/build" 2>&1
built=$?
debs=()
for name in xroce xroce-libs xroce-dev; do
	debs+=("$(echo "$work/${name}"_*.deb)")
done

package__builds() {
	[ $built -eq 0 ] && ls "${debs[@]}" >"$work/out" || { tail -n 30 "$work/build"; return 1; }
}

package__lintian_finds_nothing() {
	lintian --allow-root --fail-on error,warning "${debs[@]}"
}

# holds DEB FILE...: patterns of its files below /usr
holds() {
	local deb=$1 file
	shift

	dpkg-deb -c "$deb" >"$work/files" || return
	for file in "$@"; do
		grep -qE " \./usr/$file( -> .*)?\$" "$work/files" ||
			{ note "not in $deb: $file"; return 1; }
	done
}

package__holds_what_is_installed() {
	# shellcheck disable=SC2046 # words
	holds "${debs[0]}" bin/xroce 'lib/[^/]*/xroce/bin/rdma' $(man_pages .gz) share/doc/xroce/copyright \
		share/bash-completion/completions/xroce lib/systemd/system/xroce{@,-export}.service \
		share/xroce/{grafana/xroce.json,lab/wire.toml,prometheus/xroce.rules.yml} \
		share/xroce/files.conf &&
		! grep '\.so' "$work/files" &&
		holds "${debs[1]}" 'lib/[^/]*/xroce/lib'{ibverbs,rdmacm}.so.1 \
			'lib/[^/]*/xroce/librspreload.so' &&
		holds "${debs[2]}" 'lib/[^/]*/pkgconfig/xroce.pc' 'lib/[^/]*/xroce/lib'{ibverbs,rdmacm}.so
}

package__holds_maintainer_scripts() {
	local name

	dpkg-deb -e "${debs[0]}" "$work/control" || return
	for name in postinst prerm postrm; do
		[ -x "$work/control/$name" ] && sh -n "$work/control/$name" &&
			! grep -q '#DEBHELPER#' "$work/control/$name" || { note "no $name"; return 1; }
	done
	# dh_installsystemd would enable and start the exporter
	! grep -q 'deb-systemd-helper' "$work/control"/p* &&
		grep -q 'deb-systemd-invoke restart' "$work/control/postinst" &&
		grep -q 'deb-systemd-invoke stop' "$work/control/prerm"
}

package__unpacked_runs() {
	local deb

	for deb in "${debs[@]}"; do
		dpkg-deb -x "$deb" "$work/root" || return
	done
	"$work/root/usr/bin/xroce" --version || return
	XROCE_DEV=lo "$work/root/usr/bin/xroce" run -- ibv_devinfo >"$work/out"
	grep -q xroce_lo "$work/out" || show out
}

# A program on the libraries alone: a broker of another process has to serve it.
package__libraries_need_no_command() {
	local libs

	dpkg-deb -x "${debs[1]}" "$work/alone" || return
	libs=$(echo "$work"/alone/usr/lib/*/xroce)
	LD_LIBRARY_PATH=$libs XROCE_DEV=lo ibv_devices >"$work/out" 2>&1
	grep -q xroce_lo "$work/out" || show out
}

run_cases
