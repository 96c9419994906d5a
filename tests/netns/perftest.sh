#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Unmodified perftest between two hosts: each tool over each transport service that it has, from 1
# byte to 8 MiB, over both address families, with its ways of using verbs. The core has each tool,
# service and way once. The results are not judged. A tool has to exit with 0, to report all its
# iterations, and to get its packets through XDP. data.sh checks the bytes.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/pinned_counters.sh"
. "$(dirname "$0")/lib/perf.sh"
. "$(dirname "$0")/lib/perftest.sh"
preload_make halt perftest/halt.c
netns_pair 4500

# counted_perf FAMILY TOOL SIZE ITERATIONS [OPTION...]: also judges the server's counters. The
# server receives the data of SEND and WRITE, and requests of READs and atomics.
counted_perf() {
	local tool=$2 size=$3 n=$4 least=$4
	keep=halted perf_of "$@" || return
	case $tool in
	ib_send_* | ib_write_*) [ "$size" -le 4096 ] || least=$((n * (size / 4096))) ;;
	esac
	pinned_read server || return
	need_least "packets by xroce_rx" "$(pinned_value_packets)" "$least"
	need_equal "packets with a wrong ICRC" "${pinned_value[xroce_eng_drop.icrc]:-none}" 0
	drop_maps server
}

core_cases=(
	send_bw_64 write_bw_65536 read_bw_64_v6 read_lat_64
	send_bw_4096_uc write_lat_64_uc_v6 send_lat_64_ud_v6 send_bw_4096_xrc
	atomic_bw_8_swap_v6 atomic_lat_8_add
	send_lat_64_events_v6 write_bw_4096_both_v6 write_bw_64_qps send_bw_64_srq
)
perftest_cases wire "" counted_perf
# perftest takes active_mtu for the longest datagram, which is 4096 where nothing is redirected.
# data.sh has longer ones.
XROCE_TX=xsk run_long_case send_lat_4096_ud counted_perf v4 ib_send_lat 4096 60 -c UD
finish_cases
