#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Every perftest tool over the reliable services, on a cable that loses, repeats and reorders 1 % of
# the packets: each ends and reports all its iterations. That the bytes are right under the same is
# shown by loss.sh.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/perf.sh"
netns_chain 4500
start cable p "$TOOLS/impair" -s 5 -l 10 -u 10 -r 10 pa pb
cable=$child
wait_until 5 grep -q forwarding "$WORK/cable.out" || echo "not ok cable"
for tool in send_bw write_bw read_bw send_lat write_lat read_lat; do
	run_case bad_cable_rc_$tool perf ib_$tool 65536 100
	run_case bad_cable_xrc_$tool perf ib_$tool 4096 200 -c XRC
done
run_case bad_cable_qps perf ib_write_bw 65536 50 -q 4 -b
run_case bad_cable_atomic perf ib_atomic_bw 8 300 -A FETCH_AND_ADD
# Not ib_send_lat: docs/limits.md, "Programs of others".
run_case bad_cable_events_bw perf ib_send_bw 4096 500 -e
run_case bad_cable_events_lat perf ib_read_lat 4096 200 -e
kill "$cable"
finish "$cable" 5
for what in dropped duplicated reordered; do
	run_case bad_cable_$what need_line cable "$what [1-9]"
done
finish_cases
