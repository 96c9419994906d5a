#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Every perftest tool over the reliable services, on a cable that drops, duplicates and reorders 1 %
# of the packets: each exits with 0 and reports all its iterations. loss.sh checks the bytes on the
# same cable.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/perf.sh"
. "$(dirname "$0")/lib/perftest.sh"
netns_chain 4500
start cable p "$TOOLS/impair" -s 5 -l 10 -u 10 -r 10 pa pb
cable=$child
wait_until 5 grep -q forwarding "$WORK/cable.out" || netns_die "the cable does not forward"
# Without ib_send_lat -e and ib_write_lat: docs/limits.md, "Programs of others".
core_cases=(send_bw_65536 read_bw_65536 send_lat_4096_xrc atomic_bw_8_add send_bw_4096_events)
perftest_cases cable "" perf_of
kill "$cable"
finish "$cable" 5
# of both tiers
for what in dropped duplicated reordered; do
	judge_case $what need_line cable "$what [1-9]"
done
finish_cases
