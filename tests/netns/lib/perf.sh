# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# One run of a perftest tool, for the tests that go through all of them. Sourced behind case.sh.

. "$(dirname "${BASH_SOURCE[0]}")/perf_clock.sh"

# has_results NAME BYTES ITERATIONS: in that program's output; with -b the tool counts both ways.
has_results() {
	awk -v s="$2" -v n="$3" '$1 == s && $2 % n == 0 && NF >= 5 && $4 + 0 >= 0 { found = 1 } END { exit !found }' "$WORK/$1.out" ||
		{ fail "no line of results"; show "$1"; }
}

# perf TOOL SIZE ITERATIONS [OPTION...]
perf() {
	local tool=$1 size=$2 n=$3
	shift 3
	local sized=(-s "$size")
	case $tool in ib_atomic_*) sized=() ;; esac
	gids_once v4 || return
	with_quick_clock client_server 18515 90 "$tool" -d $DEV_A -x "$gid_a" "${sized[@]}" -n "$n" -u 14 -F "$@" -- \
		"$tool" -d $DEV_B -x "$gid_b" "${sized[@]}" -n "$n" -u 14 -F "$@" $IP4_A || return
	has_results client "$size" "$n"
}

# iterations BYTES [MOST]: so many as move some megabytes at most; perftest wants at least 5.
iterations() {
	local n=$((8388608 / $1)) most=${2:-500}
	[ $n -gt "$most" ] && n=$most
	[ $n -lt 5 ] && n=5
	echo $n
}
