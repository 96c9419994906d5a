#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Every source file has its licence in its first three lines, and both licence texts exist. The top
# of the repository has only the files and folders that are named here.
set -u
cd "$(dirname "$0")/.." || exit 1

want='SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause'
bad=0 seen=0
while IFS= read -r f; do
	seen=$((seen + 1))
	if ! head -n 3 "$f" | grep -qF "$want"; then
		echo "$f: no line '$want' at its head" >&2
		bad=1
	fi
done < <(find Makefile .ci bpf include scripts tests user -type f \
	\( -name '*.[chS]' -o -name '*.sh' -o -name '*.py' -o -name '*.map' -o -name Makefile -o -name '*.mk' -o -path .ci/run \) 2>/dev/null | sort)
for l in GPL-2.0-only BSD-2-Clause; do
	[ -s "LICENSES/$l.txt" ] || { echo "LICENSES/$l.txt is missing" >&2; bad=1; }
done
# A program of a minute was committed there once. Without a repository there is nothing to look at.
for f in $(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u); do
	case $f in
	.* | LICENSES | Makefile | *.md | bpf | debian | docs | include | man | scripts | share | tests | user) ;;
	*) echo "$f: what is it?" >&2; bad=1 ;;
	esac
done
[ $seen -gt 0 ] || { echo "found no source file" >&2; bad=1; }
echo "$seen files looked at"
exit $bad
