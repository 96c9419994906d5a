#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# The Debian package: it builds from the files in git, lintian finds no error, and unpacked it runs.
# chroot.sh installs it on a separate system. package.sh [BUILD]
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
deb=$(echo "$work"/xroce_*.deb)

package__builds() { [ $built -eq 0 ] && [ -s "$deb" ] || { tail -n 30 "$work/build"; return 1; }; }

package__lintian_finds_nothing() {
	lintian --allow-root --fail-on error,warning "$deb"
}

package__holds_what_is_installed() {
	local file

	dpkg-deb -c "$deb" >"$work/files" || return
	for file in bin/xroce 'lib/[^/]*/xroce/lib'{ibverbs,rdmacm}.so.1 'lib/[^/]*/pkgconfig/xroce.pc' \
		$(man_pages .gz) \
		share/doc/xroce/copyright \
		share/bash-completion/completions/xroce lib/systemd/system/xroce{@,-export}.service \
		share/xroce/grafana/xroce.json share/xroce/prometheus/xroce.rules.yml share/xroce/files.conf; do
		grep -qE " \./usr/$file\$" "$work/files" ||
			{ note "not in the package: $file"; return 1; }
	done
}

package__holds_maintainer_scripts() {
	local name

	dpkg-deb -e "$deb" "$work/control" || return
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
	dpkg-deb -x "$deb" "$work/root" && "$work/root/usr/bin/xroce" --version || return
	XROCE_DEV=lo "$work/root/usr/bin/xroce" run -- ibv_devinfo >"$work/out"
	grep -q xroce_lo "$work/out" || show out
}

run_cases
