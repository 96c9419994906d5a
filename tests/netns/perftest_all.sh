#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Every perftest tool over every transport service that it knows, from 1 byte to 8 MiB, with its
# ways of using verbs (events, SRQ, several queue pairs, both directions). What it measures is not
# judged; that it ends, and reports all its iterations, is. That the bytes are right is shown by
# data.sh.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/perf.sh"

netns_pair 4500
for size in 1 4096 1048576 8388608; do
	many=$(iterations $size 200)
	# one message at a time, of which the 50th is as the tenth
	few=$(iterations $size 50)
	for tool in send_bw write_bw read_bw send_lat write_lat read_lat; do
		n=$few && [[ $tool != *_bw ]] || n=$many
		run_case rc_${tool}_$size perf ib_$tool $size "$n"
	done
	for tool in send_bw write_bw send_lat write_lat; do
		n=$few && [[ $tool != *_bw ]] || n=$many
		run_case uc_${tool}_$size perf ib_$tool $size "$n" -c UC
	done
	for tool in send_bw write_bw read_bw send_lat write_lat; do
		n=$few && [[ $tool != *_bw ]] || n=$many
		run_case xrc_${tool}_$size perf ib_$tool $size "$n" -c XRC
	done
done
for size in 1 1024 2048; do
	run_case ud_send_lat_$size perf ib_send_lat $size 50 -c UD
done
# perftest takes active_mtu for the longest datagram, and that is 4096 where nothing is redirected;
# that longer ones work is shown by data.sh
XROCE_TX=xsk run_case ud_send_lat_4096 perf ib_send_lat 4096 50 -c UD
for operation in FETCH_AND_ADD CMP_AND_SWAP; do
	run_case atomic_bw_$operation perf ib_atomic_bw 8 200 -A $operation
	run_case atomic_lat_$operation perf ib_atomic_lat 8 50 -A $operation
done
# as many outstanding as the device says, which is perftest's default for READs, and as rxe has
run_case read_bw_deep perf ib_read_bw 1024 200 -o 128
run_case atomic_bw_deep perf ib_atomic_bw 8 200 -o 128
for tool in send_bw write_bw read_bw; do
	run_case ${tool}_both perf ib_$tool 65536 100 -b
	run_case ${tool}_qps perf ib_$tool 65536 100 -q 8
	# perftest has no events for WRITE
	[ $tool = write_bw ] || run_case ${tool}_events perf ib_$tool 65536 100 -e
done
run_case send_lat_events perf ib_send_lat 64 50 -e
run_case read_lat_events perf ib_read_lat 64 50 -e
run_case send_bw_srq perf ib_send_bw 4096 200 --use-srq -q 4
run_case send_lat_srq perf ib_send_lat 4096 50 --use-srq
finish_cases
