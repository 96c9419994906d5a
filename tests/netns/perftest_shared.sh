#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# perftest between two processes of one interface, of a user without privileges: each tool with
# each transport, and with the ways to complete, directions, numbers of queue pairs and sizes that
# it has. shared.sh and shared_far.sh have some of them over the wire, too.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/perf.sh"

# near TOOL SIZE ITERATIONS [OPTION...]
near() {
	local tool=$1 size=$2 n=$3 sized=(-s "$2")
	shift 3
	case $tool in ib_atomic_*) sized=() ;; esac
	with_quick_clock between_two 18515 "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A --share always -- \
		"$tool" -d $DEV_A -x "$gid_a" "${sized[@]}" -n "$n" -F "$@" || return
	has_results client "$size" "$n"
}

serve a $IF_A && gids_for v4 || { cat "$WORK/case.notes"; exit 1; }

# SIZES TOOLS OPTIONS: each tool at each size
while IFS=: read -r sizes tools options; do
	for tool in $tools; do
		for size in $sizes; do
			name=${tool}_$size$(tr -d ' -' <<<"$options")
			# one message at a time, of which the 60th is as the tenth
			most=300
			[[ $tool == *_bw ]] || most=60
			# shellcheck disable=SC2086 # several words
			run_case "$name" near ib_$tool "$size" "$(iterations "$size" $most)" $options
		done
	done
done <<'END'
1 1000 4096 1000000:send_bw write_bw read_bw
1 1000 4096 1000000:send_lat write_lat read_lat
1 64 4096 65536:send_bw send_lat write_bw write_lat:-c UC
1 64 2048:send_bw:-c UD
1 2048:send_lat:-c UD
8:atomic_bw atomic_lat:-A FETCH_AND_ADD
8:atomic_bw atomic_lat:-A CMP_AND_SWAP
64 65536:send_bw send_lat read_bw read_lat:-e
8:atomic_bw atomic_lat:-e
64 65536:send_bw send_lat:-e -c UC
64:send_bw send_lat:-e -c UD
64 65536:send_bw write_bw read_bw:-b
8:atomic_bw:-b
4096:send_bw write_bw:-b -c UC
64:send_bw:-b -c UD
64 65536:send_bw write_bw read_bw:-q 8
8:atomic_bw:-q 8
4096:send_bw write_bw:-q 8 -c UC
64:send_bw:-q 8 -c UD
END
finish_cases
