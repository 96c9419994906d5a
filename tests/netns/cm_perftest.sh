#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# perftest whose queue pairs librdmacm connects: ib_* -R. What it measures is not judged; that it
# ends, and reports all its iterations, is. perftest 4.5 resolves IPv4 addresses only with -R.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/perf.sh"
command -v ib_send_bw >/dev/null || skip_all "perftest is not installed"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"

# try_perf TOOL SIZE ITERATIONS [OPTION...]
try_perf() {
	local tool=$1 size=$2 n=$3 sized=(-s "$2")
	shift 3
	case $tool in ib_atomic_*) sized=() ;; esac
	with_quick_clock cm_pair 60 "$tool" -R "${sized[@]}" -n "$n" -F "$@" -- "$tool" -R "${sized[@]}" -n "$n" -F "$@" "$server_ip" ||
		return
	has_results client "$size" "$n"
}

all="between within user"
for tool in send_bw write_bw read_bw send_lat write_lat read_lat; do
	# one message at a time, of which the 30th is as the tenth
	n=100
	[[ $tool == *_bw ]] || n=30
	cm_case "$all" v4 $tool try_perf ib_$tool 65536 $n
done
for tool in atomic_bw atomic_lat; do
	cm_case "$all" v4 $tool try_perf ib_$tool 8 100
done
for tool in send_bw send_lat; do
	cm_case "$all" v4 ${tool}_ud try_perf ib_$tool 1024 100 -c UD
done
for tool in send_bw write_bw read_bw; do
	cm_case between v4 ${tool}_qps try_perf ib_$tool 65536 20 -q 8
	cm_case within v4 ${tool}_both try_perf ib_$tool 65536 100 -b
done
cm_case between v4 send_bw_events try_perf ib_send_bw 65536 100 -e
cm_case between v4 send_bw_tos try_perf ib_send_bw 65536 100 -T 8
cm_run
finish_cases
