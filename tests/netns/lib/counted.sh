# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The work of programs, by the lines of XROCE_COUNTERS in their output. Sourced after case.sh.

# counted NAME WORD: the sum, over all processes in that output, of the number after WORD: RC, UC,
# UD, XRC (queue pairs), in, out, loopback (packets), WRITE, READ, atomic (executed for peers).
counted() {
	awk -v want="$2" '/xroce: xroce_.*executed for peers/ {
			gsub(/;/, ""); seen = 1
			for (i = 1; i < NF; i++) if ($i == want) n += $(i + 1)
		} END { if (!seen) exit 1; printf "%d\n", n }' "$WORK/$1.out"
}

# need_counted NAME WORD LEAST
need_counted() {
	local n
	n=$(counted "$1" "$2") || { fail "$1 used no interface of ours"; show "$1"; return 1; }
	need_least "$2 of $1" "$n" "$3" || show "$1"
}
