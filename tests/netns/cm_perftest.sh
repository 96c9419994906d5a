#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# perftest whose queue pairs librdmacm connects: ib_* -R. The results are not judged. A tool has to
# exit with 0 and to report all its iterations. perftest 4.5 resolves only IPv4 addresses with -R.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/perf.sh"
. "$(dirname "$0")/lib/perftest.sh"
command -v ib_send_bw >/dev/null || skip_all "perftest is not installed"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"

# connected FAMILY TOOL SIZE ITERATIONS [OPTION...]
connected() {
	local family=$1 tool=$2 size=$3 n=$4 sized=(-s "$3")
	shift 4
	case $tool in ib_atomic_*) sized=() ;; esac
	cm_family "$family"
	with_quick_clock cm_pair 60 "$tool" -R "${sized[@]}" -n "$n" -F "$@" -- \
		"$tool" -R "${sized[@]}" -n "$n" -F "$@" "$server_ip" || return
	has_results client "$size" "$n"
}

core_cases=(
	between_send_bw_65536_events between_write_bw_65536_qps within_write_bw_65536_both
	within_send_lat_1024_ud user_read_lat_65536 user_atomic_bw_8
)
for place in between within user; do
	cm_place $place || { cat "$WORK/case.notes"; netns_die "no broker"; }
	perftest_cases $place ${place}_ connected
done
finish_cases
