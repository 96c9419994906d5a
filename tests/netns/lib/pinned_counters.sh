# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# All counters that keep_maps holds, read once: a test of many counters would start two programs for
# each. Sourced after case.sh.

# pinned_read TAG: into $pinned_value, by MAP.COUNTER, each summed over elements and CPUs. Fails if
# a map cannot be read. (bpftool 7.1 may report EBADF after the last command.)
declare -A pinned_value
pinned_read() {
	local maps="xroce_rx xroce_drop xroce_eng_stat xroce_eng_drop" tag=$1 name value
	pinned_value=()
	# shellcheck disable=SC2086 # a word a map
	while read -r name value; do
		pinned_value[$name]=$value
	done < <(printf "map dump pinned $WORK/bpf/$tag-%s\n" $maps | bpftool batch file - |
		awk -v maps="$maps" 'BEGIN { split(maps, map) }
			/^\[/ { n++ }
			/^ *"[a-z_0-9]+": [0-9]/ && $1 !~ /"(key|cpu)"/ { gsub(/[":,]/, ""); sum[map[n] "." $1] += $2 }
			END { if (n == 4) for (name in sum) print name, sum[name] }')
	[ ${#pinned_value[@]} -gt 0 ] || fail "the counters of $tag cannot be read"
}

# RoCEv2 packets that XDP handed over, counted one by one.
pinned_value_packets() {
	local rx=xroce_rx
	echo $((pinned_value[$rx.redirected] - pinned_value[$rx.super_packets] + pinned_value[$rx.super_segments]))
}
