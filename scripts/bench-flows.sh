#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Measures the cost of flows for the host's TCP: bench-flows.sh BUILD [ROUNDS], as root. iperf3
# sends from B to A over a veth pair without an xroce process, and with one process of 0, 1, 16 or
# 256 flows, which match none of the frames. Prints the medians of throughput and of the kernel's
# time in XDP for each frame. Sets kernel.bpf_stats_enabled and restores it.
ROUNDS=${2:-5}
set -- "$1"
. "$(dirname "$0")/../tests/netns/lib/case.sh"
stats=/proc/sys/kernel/bpf_stats_enabled
before=$(cat $stats)
trap 'echo $before >$stats; netns_cleanup' EXIT
netns_pair 1500
echo 1 >$stats
start server a iperf3 -s
wait_until 10 listens a 5201 || netns_die "no iperf3"

is_ready() { grep -q ready "$WORK/flows.out"; }
# spent ID: nanoseconds and runs of the program so far.
spent() { bpftool -j prog show id "$1" | python3 -c 'import json, sys; p = json.load(sys.stdin); print(p.get("run_time_ns", 0), p.get("run_cnt", 0))'; }
program() { in_a ip -j -d link show $IF_A | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["xdp"]["prog"]["id"])'; }

# measured WHAT: a line with it, Mbit/s and ns a frame.
measured() {
	local flows=$1 holder id old new mbps
	if [ "$flows" != without ]; then
		start_on flows a "$TOOLS/flow_cost" $DEV_A "$flows"
		holder=$child
		wait_until 20 is_ready || { show flows; netns_die "no flows"; }
		id=$(program)
		read -ra old < <(spent "$id")
	fi
	mbps=$(in_b timeout 20 iperf3 -c $IP4_A -t 2 -J | python3 -c 'import json, sys; print(round(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 1e6))')
	if [ "$flows" != without ]; then
		read -ra new < <(spent "$id")
		echo "$flows $mbps $(((new[0] - old[0]) / (new[1] - old[1] + 1)))"
		stop "$holder"
	else
		echo "$flows $mbps 0"
	fi
}

for ((round = 0; round < ROUNDS; round++)); do
	for flows in without 0 1 16 256; do
		measured $flows
	done
done >"$WORK/lines"
python3 - "$WORK/lines" <<-'PYTHON'
	import statistics, sys
	of = {}
	for line in open(sys.argv[1]):
	    what, mbps, ns = line.split()
	    of.setdefault(what, []).append((int(mbps), int(ns)))
	whole = statistics.median(m for m, n in of['without'])
	print('flows      Mbit/s  of that without  ns a frame')
	for what, runs in of.items():
	    m = statistics.median(r[0] for r in runs)
	    print(f'{what:8} {m:8.0f} {m / whole:16.2f} {statistics.median(r[1] for r in runs):11.0f}')
PYTHON
