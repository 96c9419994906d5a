# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The runs of perftest: one table for all paths between two ends. Each script walks the table with
# its own way to start the ends. Sourced after perf.sh.

# perftest_table: prints the table. A line is PATHS:WORD:TOOLS:SIZES:FAMILIES:OPTIONS, and stands
# for a run of each tool with each size and each family of addresses. WORD is the part of the
# case's name for OPTIONS. The paths:
#
#   wire      root on two hosts, each alone on its interface (perftest.sh)
#   cable     the same, and the cable loses, duplicates and reorders (perftest_bad_cable.sh)
#   two       two processes of a user, on one interface of a broker (perftest_shared.sh)
#   mixed     a user on a broker's interface, root alone on the other (shared.sh)
#   far       users on two hosts, both with brokers (shared_far.sh)
#   near      two interfaces of one network namespace (neighbours.sh)
#   between within user    by rdma_cm, in the three places of cm.sh (cm_perftest.sh)
perftest_table() {
	cat <<'END'
wire two::send_bw write_bw read_bw send_lat write_lat read_lat:1 64 1000 4096 65536 1000000:v4:
wire::send_bw write_bw read_bw send_lat write_lat read_lat:8388608:v4:
wire::send_bw write_bw read_bw send_lat write_lat read_lat:64 65536:v6:
cable between within user::send_bw write_bw read_bw send_lat read_lat:65536:v4:
between within user::write_lat:65536:v4:
mixed far::send_bw write_bw read_bw send_lat write_lat read_lat:64 65536:v4:
near::send_bw write_bw read_lat:64:v4:
near::send_bw:65536:v4:
near::read_bw:65536:v4 v6:
wire two:uc:send_bw write_bw send_lat write_lat:1 64 4096 65536:v4:-c UC
wire:uc:send_bw write_bw send_lat write_lat:1000000 8388608:v4:-c UC
wire:uc:write_lat:64:v6:-c UC
wire:xrc:send_bw write_bw read_bw send_lat write_lat read_lat:1 4096 1000000 8388608:v4:-c XRC
cable:xrc:send_bw write_bw read_bw send_lat read_lat:4096:v4:-c XRC
two:ud:send_bw:1 64 2048:v4:-c UD
wire two:ud:send_lat:1 1024 2048:v4:-c UD
wire:ud:send_lat:64:v6:-c UD
mixed far:ud:send_lat:64:v4:-c UD
between within user:ud:send_bw send_lat:1024:v4:-c UD
wire two cable:add:atomic_bw atomic_lat:8:v4:-A FETCH_AND_ADD
wire two:swap:atomic_bw atomic_lat:8:v4:-A CMP_AND_SWAP
wire:swap:atomic_bw:8:v6:-A CMP_AND_SWAP
mixed far near between within user::atomic_bw:8:v4:
between within user::atomic_lat:8:v4:
wire:deep:read_bw:1000:v4:-o 128
wire:deep:atomic_bw:8:v4:-o 128
wire two:events:send_bw send_lat read_bw read_lat:64 65536:v4:-e
wire:events:send_lat:64:v6:-e
two:events:atomic_bw atomic_lat:8:v4:-e
mixed far:events:send_bw:64:v4:-e
between:events:send_bw:65536:v4:-e
cable:events:send_bw read_lat:4096:v4:-e
two:uc_events:send_bw send_lat:64 65536:v4:-e -c UC
two:ud_events:send_bw send_lat:64:v4:-e -c UD
near:ud_events:send_bw:1024:v4 v6:-e -c UD
wire two:both:send_bw write_bw read_bw:64 65536:v4:-b
wire:both:write_bw:4096:v6:-b
within:both:send_bw write_bw read_bw:65536:v4:-b
mixed far:both:write_bw:65536:v4:-b
two:both:atomic_bw:8:v4:-b
two:uc_both:send_bw write_bw:4096:v4:-b -c UC
two:ud_both:send_bw:64:v4:-b -c UD
wire two:qps:send_bw write_bw read_bw:64 65536:v4:-q 8
between:qps:send_bw write_bw read_bw:65536:v4:-q 8
mixed far:qps:send_bw:4096:v4:-q 8
cable:both_qps:write_bw:65536:v4:-b -q 4
two:qps:atomic_bw:8:v4:-q 8
two:uc_qps:send_bw write_bw:4096:v4:-q 8 -c UC
two:ud_qps:send_bw:64:v4:-q 8 -c UD
wire:srq:send_bw:64:v4:--use-srq
wire:srq:send_lat:4096:v4:--use-srq
wire:srq_qps:send_bw:4096:v4:--use-srq -q 4
wire:list:write_bw:64:v4:-l 10
wire:old_post:write_bw:64:v4:--use_old_post_send
wire:inline:write_lat:64:v4:-I 64
between:tos:send_bw:65536:v4:-T 8
END
}

# perftest_cases PATH PREFIX COMMAND...: makes a case of each run of that path, of the core if
# core_cases has its name with PREFIX. The command gets FAMILY TOOL SIZE ITERATIONS [OPTION...] as
# well.
perftest_cases() {
	local path=$1 prefix=$2 lines line paths word tools sizes families options
	local tool size family name n
	shift 2
	mapfile -t lines < <(perftest_table)
	for line in "${lines[@]}"; do
		IFS=: read -r paths word tools sizes families options <<<"$line"
		[[ " $paths " == *" $path "* ]] || continue
		for tool in $tools; do
			for size in $sizes; do
				iterations "$tool" "$size"
				for family in $families; do
					name=$prefix${tool}_$size${word:+_$word}
					[ "$family" = v4 ] || name+=_$family
					# shellcheck disable=SC2086 # several words
					tier_case "$name" "$@" "$family" "ib_$tool" "$size" "$n" $options
				done
			done
		done
	done
}

# iterations TOOL SIZE: sets $n to the number of messages that together have 8 MiB, but to at least
# 5, which is perftest's minimum, and at most 300; of a latency tool 60, because it sends one at a
# time. More than 100 are a multiple of 100: with -q, perftest asks for a completion every 100
# messages and counts the last one of a QP as 100. With another number it has all completions that
# it wants before the slowest QP is done, stops polling and waits forever.
iterations() {
	local most=300
	[[ $1 != *_lat ]] || most=60
	n=$((8388608 / $2))
	[ $n -le $most ] || n=$most
	[ $n -ge 5 ] || n=5
	[ $n -le 100 ] || n=$((n / 100 * 100))
}
