#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The table of programs by release in docs/frameworks.md has the rows that tests/ship/releases.sh
# runs, in their order, and a result in each cell.
#
# check-releases.sh [ROOT]
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

table=$(sed -n '/^<!-- releases: begin/,/^<!-- releases: end/p' docs/frameworks.md | grep '^|')
rows=$(tests/ship/releases.sh build rows)
n=$(wc -l <<<"$rows")
[ "$n" -gt 20 ] || { echo "tests/ship/releases.sh has $n rows" >&2; exit 1; }
if ! diff <(echo "$rows") <(tail -n +3 <<<"$table" | cut -d '|' -f 2 | sed 's/^ //; s/ $//') >&2; then
	echo "docs/frameworks.md has other rows: tests/ship/releases.sh BUILD table" >&2
	exit 1
fi
awk -F ' *[|] *' 'NR > 2 { for (i = 3; i < 6; i++) if ($i == "" || $i == "not run") {
		print "docs/frameworks.md: no result of " $2 > "/dev/stderr"
		bad = 1
	} } END { exit bad }' <<<"$table" || exit
echo "$n rows"
