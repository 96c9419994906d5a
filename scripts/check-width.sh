#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Lines of C, of comments and of documents end by column 100, so that two files fit side by side (a
# tab goes on to the next multiple of 8). Rows of tables cannot be broken and may be longer, as may
# a line that is one word (an address), and a command of a shell script.
#
# check-width.sh [ROOT]
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1
export LC_ALL=C.UTF-8

find ./*.md docs bpf include scripts tests user -type f \( -name '*.[chS]' -o \
	-name '*.md' -o -name '*.pml' -o -name '*.sh' \) -not -path 'tests/golden/*' -print0 2>/dev/null |
	xargs -0 awk '
		FNR == 1 { files++; shell = FILENAME ~ /\.sh$/ }
		/^\|/ || !/[ \t].*[ \t]/ || (shell && !/^[ \t]*#/) { next }
		{
			n = 0
			for (i = 1; i <= length($0); i++)
				n = substr($0, i, 1) == "\t" ? n - n % 8 + 8 : n + 1
			if (n > 100) {
				printf "%s:%d: %d columns\n", FILENAME, FNR, n > "/dev/stderr"
				bad = 1
			}
		}
		END { printf "%d files looked at\n", files; exit bad || !files }'
