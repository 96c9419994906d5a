#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The Makefile puts lists of the sources into manual pages. Compares the lists of X macros with what
# the preprocessor finds in each, names and texts in the same order: a line that the Makefile's
# expression does not read would be missing in the page. Every list is in a page.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf --one-file-system "$work"' EXIT

bad=0 seen=0
complain() {
	echo "$*" >&2
	bad=1
}

# compare LIST HEADER COLUMN MACRO...: the list has that column of X(name, number, text), and text.
compare() {
	local list=$1 header=$2 column=$3
	shift 3
	make -s --no-print-directory BUILD="$work" "$work/share/$list" >&2 ||
		{ complain "no list $list"; return; }
	# only the lists: other macros of the header may have the name of an entry
	{ sed -n '/^#define [A-Z_]*(X)/,/[^\\]$/p' "$header"; printf '%s(X)\n' "$@"; } | cpp -P |
		grep -oE 'X\([A-Za-z_]+, ([0-9]+, )?"[^"]*"\)' |
		sed -E "s/X\(([A-Za-z_]+), (([0-9]+), )?\"(.*)\"\)/\\$column \4/" >"$work/source"
	sed -nE '/^\.It /{s/^\.It (Li )?//;N;s/\n/ /;p}' "$work/share/$list" >"$work/list"
	seen=$((seen + $(wc -l <"$work/source")))
	[ -s "$work/source" ] && diff "$work/source" "$work/list" >&2 ||
		complain "$list differs from $header"
}
compare EVENTS include/xroce/trace.h 1 XROCE_EVENTS
compare DROP_REASONS include/xroce/abi.h 1 XROCE_DROP_REASONS XROCE_EGRESS_REASONS
compare VENDOR_ERRORS user/engine/cq.h 3 VENDOR_ERRORS

for list in $(sed -n 's/^LISTS *:= //p' Makefile); do
	grep -qx "@$list@" man/*.[78] || complain "no manual page has @$list@"
done
echo "$seen entries looked at"
exit $bad
