#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# One version in one place, and all who say one say that. version.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

version=$(sed -n 's/^#define XROCE_VERSION "\(.*\)"$/\1/p' include/xroce/version.h)

version__is_three_numbers() { [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]; }

version__is_said_in_one_place() {
	local said

	said=$(grep -rnE 'define XROCE_VERSION|"xroce [0-9]+\.|fw_ver.*"[0-9]' include bpf user |
		grep -v '^include/xroce/version.h:')
	[ -z "$said" ] || { note "$said"; return 1; }
}

version__is_the_commands() { [ "$("$BUILD/bin/xroce" --version)" = "xroce $version" ]; }

# Without privileges: attributes are read from lo, which every namespace has.
version__is_the_devices() {
	XROCE_DEV=lo "$BUILD/bin/xroce" run -- ibv_devinfo >"$work/out" &&
		grep -qE "fw_ver:[[:space:]]+$version\$" "$work/out" || show out
}

version__is_the_changelogs() {
	[ "$(sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md | head -n 1)" = "$version" ]
}

version__is_the_packages() {
	[ "$(sed -n '1s/^xroce (\([0-9.]*\)) .*/\1/p' debian/changelog)" = "$version" ] &&
		grep -qE "^Version: +$version\$" share/rpm/xroce.spec
}

version__is_in_what_is_installed() {
	make_here -s "$BUILD/share/xroce.7" "$BUILD/share/xroce.8" "$BUILD/share/xroce.pc" &&
		grep -q "^\.Os \"xroce $version\"" "$BUILD/share/xroce.7" &&
		grep -q "^\.Os \"xroce $version\"" "$BUILD/share/xroce.8" &&
		grep -qx "Version: $version" "$BUILD/share/xroce.pc"
}

run_cases
