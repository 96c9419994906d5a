#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# docs/counters.md has each counter of user/tools/counters.c, with its unit and meaning, and
# no other.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1
table=$(sed -nE '/\{ NAME_/{N;s/.*NAME_[A-Z0-9]+, "([a-z_0-9]+)", "([^"]+)",\n\t  "(.*)",/\1 | \2 | \3/;s/\\"/"/g;p}' user/tools/counters.c | sort)
page=$(sed -nE 's/^\| `([a-z_0-9]+)` \| ([^|]+) \| ([^|]+) \| .*/\1 | \2 | \3/p' docs/counters.md | sort)
[ -n "$table" ] || { echo "no counter in user/tools/counters.c" >&2; exit 1; }
diff <(echo "$table") <(echo "$page") >&2 || { echo "docs/counters.md differs from user/tools/counters.c" >&2; exit 1; }
echo "$(wc -l <<<"$table") counters looked at"
