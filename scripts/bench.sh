#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Measures xroce, raw AF_XDP, UDP and TCP on the same veth pair between two namespaces, and prints
# the ratios with their targets:
# bench.sh [--quick | --scaling | --sharing | --connecting | --observing] [BUILD]
#
#   --scaling	 several threads and shards on two receive queues
#   --sharing	 processes that share an interface, compared with a process alone
#   --connecting connections of librdmacm: connect, hold, disconnect
#   --observing	 the cost of each observer, compared with none
#
# Names that end in _n are measured with XDP in native mode at both ends (XROCE_XDP=native),
# sharded_* in native mode since they have several queues, all others in generic mode. Every
# repetition measures everything once, so that compared figures see the same load of the machine.
# TSV and SVG files are written to BUILD/bench/. No test depends on these figures: the exit status
# is 1 only if a program failed.
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
repeats=5 quick=0 sections=all
case ${1:-} in
--quick)
	repeats=2 quick=1
	shift
	;;
--scaling | --sharing | --connecting | --observing)
	sections=${1#--}
	shift
	;;
esac
repeats=${XROCE_BENCH_REPEATS:-$repeats}
BUILD=${1:-$top/build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
XROCE=$BUILD/bin/xroce
TOOLS=$BUILD/tests/bench
IDLE_QPS=$BUILD/tests/netns/idle_qps THREADS=$BUILD/tests/netns/threads
CONNECTIONS=$BUILD/tests/netns/connections
OUT=$BUILD/bench
export LC_ALL=C
unset XROCE_DEV LD_LIBRARY_PATH
for f in "$XROCE" "$TOOLS/engine" "$TOOLS/raw_xsk" "$TOOLS/udp" "$IDLE_QPS" "$THREADS" \
	"$CONNECTIONS"; do
	[ -x "$f" ] || { echo "bench: $f is not built: make all bench-tools" >&2; exit 1; }
done
. "$top/scripts/netns.sh"
mkdir -p "$OUT" || exit 1
raw=$OUT/raw.tsv
: >"$raw"
failed=0
# Each end is pinned to its own CPU.
CPU_A=0 CPU_B=1
[ "$(nproc)" -ge 2 ] || { echo "bench: two CPUs are needed" >&2; exit 1; }

# put NAME VALUE UNIT
put() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$raw"; }
lost() {
	echo "bench: $1 gave no figure" >&2
	[ -s "$WORK/bench.err" ] && sed 's/^/    /' "$WORK/bench.err" >&2
	failed=1
}

# first NAME UNIT FIELD COMMAND...: run it, keep that field of its line.
first() {
	local name=$1 unit=$2 field=$3 v
	shift 3
	v=$(timeout 60 "$@" 2>"$WORK/bench.err" | cut -f"$field")
	[ -n "$v" ] && put "$name" "$v" "$unit" || lost "$name"
}

# perftest NAME UNIT COLUMN TOOL OPTION...: server on A, client on B, or on $client.
client=b
perftest() {
	local name=$1 unit=$2 column=$3 tool=$4 server v
	shift 4
	case $name in *_n) local -x XROCE_XDP=native ;; esac
	start bench a taskset -c $CPU_A "$XROCE" run --dev $IF_A -- "$tool" -d $DEV_A -x 0 -F "$@"
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	local -n dev=IF_${client^^} rdma=DEV_${client^^}
	in_ns $client timeout 60 taskset -c $CPU_B "$XROCE" run --dev "$dev" -- "$tool" -d "$rdma" -x 0 -F "$@" $IP4_A >"$WORK/bench.err" 2>&1
	v=$(awk -v c="$column" '/^ *[0-9]+ +[0-9]+ / { v = $c } END { print v }' "$WORK/bench.err")
	# UD loses packets without a posted receive, and its server then waits for them for ever
	case " $* " in *" UD "*) stop "$server" ;; *) finish "$server" 10 ;; esac
	case $unit in
	msg/s) v=$(awk -v v="$v" 'BEGIN { if (v != "") printf "%.0f", v * 1e6 }') ;;
	Gbit/s) v=$(awk -v v="$v" 'BEGIN { if (v != "") printf "%.3f", v * 8 * 1048576 / 1e9 }') ;;
	esac
	[ -n "$v" ] && put "$name" "$v" "$unit" || lost "$name"
}

tcp() {
	local server v
	start iperf a taskset -c $CPU_A iperf3 -s -1 -p 5201
	server=$child
	wait_until 10 listens_or_gone a 5201 "$server"
	v=$(in_b timeout 30 taskset -c $CPU_B iperf3 -c $IP4_A -p 5201 -t "$seconds" -f g 2>"$WORK/bench.err" |
		awk '/receiver/ { for (i = 1; i < NF; i++) if ($(i + 1) == "Gbits/sec") print $i }')
	finish "$server" 5
	[ -n "$v" ] && put tcp_stream "$v" Gbit/s || lost tcp_stream
}

# sockperf NAME OPTION...: the median half round trip, both ends asleep in between.
sockperf_rtt() {
	local name=$1 server v
	shift
	start sockperf a taskset -c $CPU_A sockperf sr -i $IP4_A "$@"
	server=$child
	wait_until 10 sockperf_listens "$server"
	v=$(in_b timeout 30 taskset -c $CPU_B sockperf pp -i $IP4_A -m 64 -t 1 "$@" 2>"$WORK/bench.err" |
		sed -n 's/.*percentile 50\.000 *= *\([0-9.]*\).*/\1/p')
	stop "$server"
	[ -n "$v" ] && put "$name" "$v" us || lost "$name"
}
sockperf_listens() { [ -n "$(in_a ss -Hlnut 'sport = 11111')" ] || is_gone_or_zombie "$1"; }

# Processor time of a process with 100 connected, idle queue pairs, both ends; each end is one
# figure. Once: it takes ten seconds, and nothing moves.
idle() {
	local server v asleep blocked
	start idle a "$XROCE" run --dev $IF_A -- "$IDLE_QPS" -d $DEV_A -q 100
	server=$child
	wait_until 10 listens_or_gone a 18630 "$server"
	in_b timeout 60 "$XROCE" run --dev $IF_B -- "$IDLE_QPS" -d $DEV_B -q 100 $IP4_A >"$WORK/bench.err" 2>&1
	finish "$server" 10
	cat "$WORK/idle.out" >>"$WORK/bench.err"
	v=$(sed -n 's/^idle_qps: .*: \([0-9.]*\) % asleep, \([0-9.]*\) % in .*/\1 \2/p' "$WORK/bench.err")
	[ -n "$v" ] || { lost idle_100_qps; return; }
	while read -r asleep blocked; do
		put idle_100_qps "$asleep" "% of a core"
		put idle_100_qps_e "$blocked" "% of a core"
	done <<<"$v"
}

# threads NAME SHARDS THREADS OPTION...: server on A, client on B, two receive queues each. Thread i
# of each end runs on CPU i. All threads sleep when idle, and threads of the library do not spin
# before, since each CPU has threads of both ends.
threads() {
	local name=$1 server v cpus=$CPU_A
	local -x XROCE_SHARDS=$2 XROCE_SPIN_US=0
	[ "$3" = 1 ] || cpus=$CPU_A,$CPU_B
	set -- -T "$3" -p $cpus -e "${@:4}"
	start bench a "$XROCE" run --dev $IF_A -- "$THREADS" -d $DEV_A "$@"
	server=$child
	wait_until 10 listens_or_gone a 18640 "$server"
	in_b timeout 60 "$XROCE" run --dev $IF_B -- "$THREADS" -d $DEV_B "$@" $IP4_A >"$WORK/bench.err" 2>&1
	finish "$server" 10
	v=$(sed -n 's/^threads: .* QPs: \([0-9]*\) messages.*/\1/p' "$WORK/bench.err")
	[ -n "$v" ] && put "$name" "$v" msg/s || lost "$name"
}

# queues N: sets the number of queues in use, up to the number that the pair was created with.
# Retries, since the kernel may still be closing the sockets of an exited process.
set_queues() { in_ns "$1" ethtool -L "$2" rx "$3" tx "$3" >/dev/null 2>&1; }
queues() {
	wait_until 5 set_queues a $IF_A "$1" && wait_until 5 set_queues b $IF_B "$1" || netns_die "cannot set the number of queues"
}

# One thread and one core for both ends; two threads an end and two cores, with one engine and with
# two.
scaling() {
	local one two
	queues 2
	threads sharded_send_one 1 1 -o send -s 64 -n 300000
	threads sharded_send_s1 1 2 -o send -s 64 -n 300000
	threads sharded_send_s2 2 2 -o send -s 64 -n 300000
	threads sharded_write_one 1 1 -o write -s 65536 -n 6000
	threads sharded_write_s1 1 2 -o write -s 65536 -n 6000
	threads sharded_write_s2 2 2 -o write -s 65536 -n 6000
	queues 1
	# no kernel between the ends
	timeout 60 "$TOOLS/engine" -t $half -s send:64 >"$WORK/engine.out" 2>"$WORK/bench.err"
	read -r _ one two _ <"$WORK/engine.out" && put engine_sharded_one "$one" msg/s && put engine_sharded_two "$two" msg/s || lost engine_sharded
}

# What one process makes of the interface, as PREFIX_...
one_process() {
	perftest "$1_send_64" msg/s 5 ib_send_bw -s 64 -n 400000
	perftest "$1_write_64k" Gbit/s 4 ib_write_bw -s 65536 -n 10000
	perftest "$1_send_lat" us 5 ib_send_lat -s 64 -n 30000
	perftest "$1_read_lat" us 5 ib_read_lat -s 64 -n 30000
	perftest "$1_send_lat_e" us 5 ib_send_lat -s 64 -e -n 5000
}

# together NAME COUNT OPTION...: runs COUNT pairs of ib_send_bw or ib_write_bw at once and records
# the sum of the clients' figures.
together() {
	local name=$1 count=$2 tool=$3 i servers=() clients=() v
	shift 3
	for ((i = 0; i < count; i++)); do
		start "many$i" a taskset -c $CPU_A "$XROCE" run --dev $IF_A -- "$tool" -d $DEV_A -x 0 -F -p $((18600 + i)) "$@"
		servers+=("$child")
	done
	for ((i = 0; i < count; i++)); do
		wait_until 10 listens_or_gone a $((18600 + i)) "${servers[i]}"
	done
	for ((i = 0; i < count; i++)); do
		start "more$i" b taskset -c $CPU_B "$XROCE" run --dev $IF_B -- "$tool" -d $DEV_B -x 0 -F -p $((18600 + i)) "$@" $IP4_A
		clients+=("$child")
	done
	for ((i = 0; i < count; i++)); do
		finish "${clients[i]}" 60
		finish "${servers[i]}" 10
	done
	v=$(awk 'FNR == 1 { n++ } /^ *[0-9]+ +[0-9]+ / { sum += $4; seen++ } END { if (seen == n) printf "%.3f", sum * 8 * 1048576 / 1e9 }' "$WORK"/more*.out)
	rm -f "$WORK"/more*.out "$WORK"/many*.out
	[ -n "$v" ] && put "$name" "$v" Gbit/s || lost "$name"
}

# Both interfaces have brokers, or none.
brokers() {
	local do=$1
	in_a "$XROCE" $do $IF_A >"$WORK/bench.err" 2>&1 && in_b "$XROCE" ${do} $IF_B >>"$WORK/bench.err" 2>&1 || lost "xroce $do"
}

sharing() {
	queues 1
	one_process alone
	brokers "serve --background"
	one_process shared
	together together_1 1 ib_write_bw -s 65536 -n 8000
	together together_8 8 ib_write_bw -s 65536 -n 1000
	client=a
	one_process near
	client=b
	brokers stop
}

# observed NAME [COMMAND...]: what one process makes of the interface while that looks, at A.
observer=
observed() {
	local name=$1
	shift
	if [ $# -gt 0 ]; then
		start observer a "$XROCE" "$@"
		observer=$child
	fi
	perftest "${name}_send_64" msg/s 5 ib_send_bw -s 64 -n 200000
	perftest "${name}_write_64k" Gbit/s 4 ib_write_bw -s 65536 -n 4000
	perftest "${name}_send_lat" us 5 ib_send_lat -s 64 -n 5000
	[ -z "$observer" ] || stop "$observer"
	observer=
	rm -f "$WORK/observed"
}

# A QP number that no QP has here: the filter says no to each packet.
observing() {
	queues 1
	observed off
	observed stat stat -i 0.1 -d $IF_A
	observed top top --batch -i 0.1 -d $IF_A
	observed trace_other trace -q 2 $IF_A
	observed trace_all trace $IF_A
	observed capture capture --snaplen 128 -w "$WORK/observed" $IF_A
	observed capture_small capture --snaplen 128 --buffer 1 -w "$WORK/observed" $IF_A
}

# Each way of looking against none in the same repetition: median, least and most of the ratios.
observing_table() {
	awk -F'\t' '{ n = ++seen[$1]; v[$1, n] = $2; unit[$1] = $3; if (n == 1) order[++names] = $1 }
		END { for (k = 1; k <= names; k++) {
			name = order[k]; what = name
			if (!sub(/.*_(send_64|write_64k|send_lat)$/, "", what)) continue
			match(name, /(send_64|write_64k|send_lat)$/)
			base = "off_" substr(name, RSTART)
			m = 0
			for (i = 1; i <= seen[name]; i++) if (v[base, i] > 0) r[++m] = v[name, i] / v[base, i]
			for (i = 2; i <= m; i++) for (j = i; j > 1 && r[j] < r[j - 1]; j--) { t = r[j]; r[j] = r[j - 1]; r[j - 1] = t }
			if (m) printf "%s\t%.3f\t%.3f\t%.3f\t%d repetitions\n", name, r[int((m + 1) / 2)], r[1], r[m], m
		} }' "$OUT/raw.tsv"
}

# connection_server COMMAND...: its listener shows in no table of the kernel, but in ours.
connection_ends=
connection_server() {
	start bench a taskset -c $CPU_A "$XROCE" run --dev $IF_A -- "$@"
	connection_ends=$child
	wait_until 10 listens_by_cm "$connection_ends"
}
# connection_client SECONDS COMMAND...: stops the server if it does not exit within SECONDS.
listens_by_cm() { in_a "$XROCE" list $IF_A | grep -q "^  listens   pid $1 " || is_gone_or_zombie "$1"; }
connection_client() {
	local wait=$1
	shift
	in_b timeout 120 taskset -c $CPU_B "$XROCE" run --dev $IF_B -- "$@" >"$WORK/bench.err" 2>&1
	wait_until "$wait" is_gone_or_zombie "$connection_ends"
	stop "$connection_ends"
	wait_until 10 xdp_off $NS_A $IF_A
}
# connection_figure NAME UNIT EXPRESSION [FILE]: of what the client printed, or another
connection_figure() {
	local v
	v=$(sed -nE "s/$3/\\1/p" "${4:-$WORK/bench.err}")
	[ -n "$v" ] && put "$1" "$v" "$2" || lost "$1"
}

# 1,000 connections phase by phase; 4,000 made, ended and destroyed, many at a time and one; 10,000
# held at once; what lost MADs cost. cmtime's server does not end.
connecting() {
	local phase
	queues 1
	connection_server cmtime -b $IP4_A -c 1000
	connection_client 0 cmtime -s $IP4_A -c 1000
	for phase in 'create id' 'resolve addr' 'resolve route' 'create qp' connect disconnect destroy; do
		connection_figure "cm_${phase/ /_}" us "^$phase *:.* ([0-9.]+)\$"
	done
	connection_server "$CONNECTIONS" -n 4000 $IP4_A
	connection_client 20 "$CONNECTIONS" -n 4000 -c $IP4_A
	connection_figure cm_cycles conn/s '^connections: .* ended, ([0-9]+) a second$'
	connection_server "$CONNECTIONS" -n 1000 -w 1 $IP4_A
	connection_client 20 "$CONNECTIONS" -n 1000 -w 1 -c $IP4_A
	connection_figure cm_cycles_one conn/s '^connections: .* ended, ([0-9]+) a second$'
	connection_server "$CONNECTIONS" -k -n 10000 $IP4_A
	connection_client 20 "$CONNECTIONS" -k -n 10000 -c $IP4_A
	connection_figure cm_held_made conn/s '^connections: .* made ([0-9]+) a second.*'
	connection_figure cm_held_ended conn/s '^connections: .* ended ([0-9]+) a second.*'
	connection_figure cm_held_bytes bytes '^connections: .* ([0-9]+) bytes each$'
	connection_figure cm_held_bytes_server bytes '^connections: .* ([0-9]+) bytes each$' "$WORK/bench.out"
	"$top/scripts/bench-lost.sh" "$BUILD" >>"$raw" 2>"$WORK/bench.err" || lost "bench-lost.sh"
}

once() {
	local a=/run/netns/$NS_A b=/run/netns/$NS_B size mode
	for size in $sizes; do
		first "xsk_$size" pkt/s 1 "$TOOLS/raw_xsk" rate "$size" $half "$b:$IF_B:$CPU_B" "$a:$IF_A:$CPU_A"
	done
	first xsk_rtt_spin us 1 "$TOOLS/raw_xsk" rtt spin 64 $half "$b:$IF_B:$CPU_B" "$a:$IF_A:$CPU_A"
	first xsk_rtt_poll us 1 "$TOOLS/raw_xsk" rtt poll 64 $half "$b:$IF_B:$CPU_B" "$a:$IF_A:$CPU_A"
	first udp_64 pkt/s 1 "$TOOLS/udp" rate 64 $half "$b:$IP4_B:$CPU_B" "$a:$IP4_A:$CPU_A"
	first udp_rtt_spin us 1 "$TOOLS/udp" rtt spin 64 $half "$b:$IP4_B:$CPU_B" "$a:$IP4_A:$CPU_A"
	first udp_rtt_poll us 1 "$TOOLS/udp" rtt poll 64 $half "$b:$IP4_B:$CPU_B" "$a:$IP4_A:$CPU_A"
	[ $quick = 1 ] || { sockperf_rtt sockperf_udp; sockperf_rtt sockperf_tcp --tcp; }
	tcp
	# half a second each, as the baselines
	for mode in "" $native; do
		perftest send_64$mode msg/s 5 ib_send_bw -s 64 -n 800000
		perftest write_64k$mode Gbit/s 4 ib_write_bw -s 65536 -n 20000
		perftest write_1m$mode Gbit/s 4 ib_write_bw -s 1048576 -n 1200
		perftest read_64k$mode Gbit/s 4 ib_read_bw -s 65536 -n 20000
		perftest ud_1024$mode msg/s 5 ib_send_bw -s 1024 -c UD -n 700000
		perftest send_lat$mode us 5 ib_send_lat -s 64 -n 50000
		perftest read_lat$mode us 5 ib_read_lat -s 64 -n 50000
		perftest send_lat_e$mode us 5 ib_send_lat -s 64 -e -n 5000
	done
	first engine_send msg/s 2 taskset -c $CPU_B "$TOOLS/engine" -t $half send:64
	first qp_bytes bytes 2 "$TOOLS/engine" -m
	first engine_send_10k msg/s 2 taskset -c $CPU_B "$TOOLS/engine" -t $half send:64:10000
	# the slower end's figure: the throughput if each end had a core
	first engine_write Gbit/s 7 taskset -c $CPU_B "$TOOLS/engine" -t $half write:4096
	first engine_send_two msg/s 6 taskset -c $CPU_B "$TOOLS/engine" -t $half send:64
}

# Rate and bandwidth against message size, once: for the plots.
curves() {
	local size n tool mode
	: >"$OUT/curve.tsv"
	for size in 64 256 1024 4096 16384 65536 262144 1048576; do
		n=$((size < 4096 ? 60000 : 200000000 / size))
		for tool in send write read; do
			for mode in "" _n; do
				: >"$WORK/curve"
				raw=$WORK/curve perftest x$mode msg/s 5 ib_${tool}_bw -s $size -n $n
				awk -F'\t' -v s=$size -v t=$tool$mode '{ printf "%s\t%d\t%s\t%.3f\n", t, s, $2, $2 * s * 8 / 1e9 }' \
					"$WORK/curve" >>"$OUT/curve.tsv"
			done
		done
	done
}

# How half round trips are distributed, once: for the plot. latency.tsv: what, how many of 1000 took
# no longer, us.
latencies() {
	local a=/run/netns/$NS_A b=/run/netns/$NS_B mode
	: >"$OUT/latency.tsv"
	raw=/dev/null
	for mode in "" _n; do
		perftest send_lat$mode us 5 ib_send_lat -s 64 -n 50000 -H
		quantiles_of_perftest ib_send_lat$mode
	done
	perftest read_lat us 5 ib_read_lat -s 64 -n 50000 -H
	quantiles_of_perftest ib_read_lat
	export BENCH_QUANTILES=$WORK/quantiles
	first xsk us 1 "$TOOLS/raw_xsk" rtt spin 64 $half "$b:$IF_B:$CPU_B" "$a:$IF_A:$CPU_A"
	sed 's/^/AF_XDP\t/' "$WORK/quantiles" >>"$OUT/latency.tsv"
	first udp us 1 "$TOOLS/udp" rtt spin 64 $half "$b:$IP4_B:$CPU_B" "$a:$IP4_A:$CPU_A"
	sed 's/^/UDP\t/' "$WORK/quantiles" >>"$OUT/latency.tsv"
	unset BENCH_QUANTILES
	raw=$OUT/raw.tsv
}

# perftest -H has left them all in bench.err, sorted.
quantiles_of_perftest() {
	awk -F', ' -v name="$1" '/^[0-9]+, / { v[++n] = $2 }
		END { for (q = 1; n && q < 1000; q++) printf "%s\t%d\t%.3f\n", name, q, v[1 + int((n - 1) * q / 1000)] }' \
		"$WORK/bench.err" >>"$OUT/latency.tsv"
}

seconds=1 half=0.5 sizes="64 1102 2126 3400 4174" native=_n
# --quick takes three minutes: generic mode only, the default on this pair
[ $quick = 1 ] && sizes="64 1102 3400" native=
netns_pair 4500 2
queues 1
{
	date -u '+%Y-%m-%d %H:%M UTC'
	echo "kernel $(uname -r), $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs, load average $(cut -d' ' -f1-3 /proc/loadavg)"
	in_a "$XROCE" list $IF_A 2>&1 | sed 's/^/    /'
	echo "XROCE_TX=${XROCE_TX:-auto} (auto: UDP super-packets and AF_XDP; in native mode (_n) XDP redirection once both ends are open); veth, MTU 4500, default NAPI; server on CPU $CPU_A, client on CPU $CPU_B; $repeats repetitions, interleaved"
} | tee "$OUT/machine.txt"
for ((i = 1; i <= repeats; i++)); do
	printf 'repetition %d of %d\r' "$i" "$repeats" >&2
	case $sections in all) once ;; esac
	case $sections in all | scaling) scaling ;; esac
	case $sections in all | sharing) sharing ;; esac
	case $sections in all | connecting) connecting ;; esac
	case $sections in observing) observing ;; esac
done
if [ $sections = observing ]; then
	observing_table | tee "$OUT/observing.tsv"
	exit $failed
fi
if [ $sections = all ]; then
	idle
	[ $quick = 1 ] || { curves; latencies; }
fi
python3 "$top/scripts/bench-report.py" "$OUT" | tee "$OUT/table.txt" || failed=1
exit $failed
