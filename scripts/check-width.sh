#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Lines of the documents end by column 100; rows of tables cannot be broken and may be longer.
#
# check-width.sh [ROOT]
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1
export LC_ALL=C.UTF-8

files=(README.md docs/*.md tests/README.md)
awk '
	FNR == 1 { n++ }
	/^\|/ { next }
	length > 100 { printf "%s:%d: %d columns\n", FILENAME, FNR, length >"/dev/stderr"; bad++ }
	END { printf "%d files looked at\n", n; exit bad > 0 || !n }' "${files[@]}"
