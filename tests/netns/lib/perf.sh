# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# One run of a perftest tool, for the tests that run all of them. Sourced after case.sh.

. "$(dirname "${BASH_SOURCE[0]}")/perf_clock.sh"

# has_results NAME BYTES ITERATIONS: checks for the line of results in that program's output. With
# -b a tool counts both directions. A low rate is printed as 0.
has_results() {
	awk -v s="$2" -v n="$3" '
		$1 == s && $2 % n == 0 && NF >= 5 && $4 + 0 >= 0 { found = 1 }
		END { exit !found }' "$WORK/$1.out" || { fail "no line of results"; show "$1"; }
}

# perf_of FAMILY TOOL SIZE ITERATIONS [OPTION...]: runs the server on A and the client on B.
# perftest takes no size for atomics, which have 8 bytes.
perf_of() {
	local family=$1 tool=$2 size=$3 n=$4
	shift 4
	local sized=(-s "$size")
	case $tool in ib_atomic_*) sized=() ;; esac
	gids_once "$family" || return
	with_quick_clock client_server 18515 90 \
		"$tool" -d $DEV_A -x "$gid_a" "${sized[@]}" -n "$n" -u "$perf_timeout" -F "$@" -- \
		"$tool" -d $DEV_B -x "$gid_b" "${sized[@]}" -n "$n" -u "$perf_timeout" -F "$@" \
		$IP4_A || return
	has_results client "$size" "$n"
}
# perftest's -u: the time after which a QP sends again is 4.096 us * 2^16, 0.27 s. On a busy machine
# an end waits for a processor for half a second, and seven retries of 2^14 are over then.
perf_timeout=16

# perf TOOL SIZE ITERATIONS [OPTION...]
perf() { perf_of v4 "$@"; }
