# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by the tests of this directory. Each function named PROGRAM__CASE is a test; run_cases
# runs them in the order of the file, each in its own shell, and prints a line for each: `ok`, `not
# ok` or `skip`, as scripts/check.sh counts them. Scratch is in $work, gone at the end.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
self=$(realpath "$0")
cd "$here" || exit 1
BUILD=${1:-build}
program=$(basename "$0" .sh)
work=$(mktemp -d)
# Never into what a test may have mounted there.
trap 'rm -rf --one-file-system "$work"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
export LC_ALL=C

note() { echo "    $*"; }
# show FILE: a scratch file, as the reason of a failure.
show() { cat "$work/$1"; return 1; }
# subcommands, options_of SUBCOMMAND: as the command's help has them, a line each.
subcommands() { "$BUILD/bin/xroce" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; }
options_of() { "$BUILD/bin/xroce" "$1" --help | sed -nE 's/^  (-., )?(--[a-z0-9-]+).*/\2/p'; }
make_here() { "${MAKE:-make}" --no-print-directory -C "$here" BUILD="$BUILD" "$@"; }

# man_pages [SUFFIX]: where each manual page is installed, below the prefix.
man_pages() { (cd man && ls -- *.[78]) | sed -E "s,.*\.([78])\$,share/man/man\1/&${1:-},"; }

# skip REASON: this case cannot be run here.
skip() {
	echo "$*" >"$work/skip"
	exit 77
}

run_cases() {
	local name rc bad=0
	for name in $(grep -oE "^${program}__[a-z0-9_]+" "$self"); do
		(
			"$name"
		) >"$work/output" 2>&1
		rc=$?
		if [ $rc -eq 77 ]; then
			echo "skip $name $(cat "$work/skip")"
		elif [ $rc -eq 0 ]; then
			echo "ok $name"
		else
			sed 's/^/    /' "$work/output"
			echo "not ok $name"
			bad=1
		fi
	done
	exit $bad
}
