# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Small libraries for LD_PRELOAD that make programs use less CPU. Sourced after case.sh.

# preload_make NAME SOURCE: a file of tests/netns
preload_make() {
	# shellcheck disable=SC2154 # case.sh's
	! command -v gcc >/dev/null ||
		gcc -O2 -shared -fPIC -o "$WORK/$1.so" "$here/tests/netns/$2" || exit 1
}

# preloaded NAME COMMAND...: without a compiler the command as it is
preloaded() {
	local so=$WORK/$1.so
	shift
	if [ -e "$so" ]; then
		LD_PRELOAD=$so "$@"
	else
		"$@"
	fi
}
