#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Measures frameworks over xroce and over TCP between the same two namespaces, and prints the table
# of docs/frameworks.md: minimum, median and maximum of the repetitions. bench-frameworks.sh [-n
# REPETITIONS] [-q] [BUILD]: -q runs one short repetition to see that all work. Each repetition
# measures both transports, so that both see the same load of the machine. Each end is pinned to its
# own CPU.
#
# Run as root, it installs missing packages (scripts/deps.sh). A measurement that fails or takes
# more than 60 s is left out and named, and the exit status is 1. No test depends on these figures.
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
repeats=5 scale=1
while getopts n:q opt; do
	case $opt in
	n) repeats=$OPTARG ;;
	q) repeats=1 scale=10 ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
BUILD=${1:-$top/build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
XROCE=$BUILD/bin/xroce
NCCL=$BUILD/tests/netns/nccl
export LC_ALL=C
unset XROCE_DEV LD_LIBRARY_PATH
for f in "$XROCE" "$NCCL"; do
	[ -x "$f" ] || { echo "bench-frameworks: $f is not built: make all netns-tools" >&2; exit 1; }
done
[ "$(nproc)" -ge 2 ] || { echo "bench-frameworks: two CPUs are needed" >&2; exit 1; }
"$top/scripts/deps.sh" >&2 || exit 1
. "$top/scripts/netns.sh"
netns_pair 4500
. "$top/tests/netns/lib/hosts.sh"
failed=0
: >"$WORK/figures"

# Programs of ours for which a framework has none.
g++ -std=c++17 -O2 -w -o "$WORK/ring" "$top/tests/netns/gloo/ring.cc" -lgloo || exit 1
for mpi in openmpi mpich; do
	"mpicc.$mpi" -O2 -w -o "$WORK/rates.$mpi" "$top/tests/netns/mpi/rates.c" || exit 1
done

# ---- running ----

# at NAME NS WAY COMMAND...: `xroce`: as a user types it; `tcp`: the same without. In $child.
at() {
	local name=$1 ns=$2 way=$3 cpu=0 dev=$IF_A run=()
	shift 3
	[ "$ns" = a ] || cpu=1 dev=$IF_B
	# UCX looks for interfaces in /sys, which is another namespace's
	if [ "$way" = xroce ]; then
		run=("$XROCE" run --dev $dev --)
	else
		run=(unshare --mount sh -c 'mount -t sysfs sysfs /sys && exec "$@"' -)
	fi
	start "$name" "$ns" nsenter --target "${host_pid[$ns]}" --ipc --uts --pid --mount \
		taskset -c $cpu "${run[@]}" "$@"
}

# both WAY PORT SERVER... -- CLIENT...: what the client prints is in client.out. A server that is
# still there then is ended.
both() {
	local way=$1 port=$2 server client pid rc
	split_words server client "${@:3}"
	at server a "$way" "${server[@]}"
	pid=$child
	if [ "$port" = cm ]; then
		wait_until 10 listens_by_cm
	else
		wait_until 10 listens_or_gone a "$port" "$pid"
	fi
	at client b "$way" "${client[@]}"
	finish "$child" 60
	rc=$?
	wait_until 2 is_gone_or_zombie "$pid"
	end_server "$pid" "${server[0]}"
	return $rc
}
listens_by_cm() { in_a "$XROCE" list $IF_A | grep -q '^  listens   pid'; }
# The program itself: nsenter, which waits for it, does not hand signals on.
end_server() {
	local p
	if ! is_gone_or_zombie "$1"; then
		for p in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
			kill "$p" 2>/dev/null
		done
	fi
	finish "$1" 5
	return 0
}

# figure NAME WAY UNIT VALUE
figure() {
	if [ -n "$4" ] && awk -v v="$4" 'BEGIN { exit !(v + 0 > 0) }'; then
		printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$WORK/figures"
	else
		echo "bench-frameworks: $1 by $2 gave no figure:" >&2
		tail -n 4 "$WORK/client.out" "$WORK/server.out" >&2 2>/dev/null
		failed=1
	fi
}

# ---- the frameworks: each function is NAME WAY ... and makes a figure ----

# The last figure but of ucx_perftest: MB/s is of 2^20 bytes.
ucx() {
	local name=$1 way=$2 unit=$3 test=$4 size=$5 n=$6 tls=()
	[ "$way" = xroce ] || tls=(env UCX_TLS=tcp)
	both "$way" 13337 "${tls[@]}" ucx_perftest -- "${tls[@]}" ucx_perftest $IP4_A -t "$test" -s "$size" \
		-n $((n / scale)) -w 10
	case $unit in
	us) v=$(awk '/^Final:/ { print $3 }' "$WORK/client.out") ;;
	*) v=$(awk '/^Final:/ { printf "%.3f", $7 * 8 * 1048576 / 1e9 }' "$WORK/client.out") ;;
	esac
	figure "$name" "$way" "$unit" "$v"
}

# libfabric NAME WAY PROVIDER END-POINT TCP-PROVIDER TCP-END-POINT SIZE UNIT: fi_pingpong says MB/s
# of 10^6 bytes, and us a transfer, which is half a round trip.
libfabric() {
	local name=$1 way=$2 provider=$3 type=$4 size=$7 v
	[ "$way" = xroce ] || provider=$5 type=$6
	both "$way" 47592 fi_pingpong -p "$provider" -e "$type" -S "$size" -I $((2000 / scale)) -- \
		fi_pingpong -p "$provider" -e "$type" -S "$size" -I $((2000 / scale)) $IP4_A
	case $8 in
	us) v=$(awk 'NF >= 7 && $2 ~ /^[0-9]/ { print $7 }' "$WORK/client.out") ;;
	*) v=$(awk 'NF >= 7 && $2 ~ /^[0-9]/ { printf "%.3f", $6 * 8 / 1000 }' "$WORK/client.out") ;;
	esac
	figure "$name" "$way" "$8" "$v"
}

# A rank of MPI, and what stands for a remote shell to B.
cat >"$WORK/rank" <<END
#!/bin/bash
dev=$IF_A cpu=0
grep -q '^ *$IF_B:' /proc/net/dev && dev=$IF_B cpu=1
way=\$1
shift
[ "\$way" = tcp ] &&
	exec unshare --mount sh -c 'mount -t sysfs sysfs /sys && exec "\$@"' - taskset -c \$cpu "\$@"
exec taskset -c \$cpu "$XROCE" run --dev \$dev -- "\$@"
END
cat >"$WORK/agent" <<END
#!/bin/bash
[ "\$1" = -x ] && shift
shift
exec nsenter --target ${host_pid[b]} --net --ipc --uts --pid --mount sh -c "\$*"
END
chmod 755 "$WORK/rank" "$WORK/agent"

# mpi NAME WAY MPI: one rank a host; a latency and a bandwidth
mpi() {
	local name=$1 way=$2 mpi=$3 words only
	case $mpi-$way in
	openmpi-xroce) only=(--mca pml ucx --mca osc ucx) ;;
	openmpi-tcp) only=(--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include $IP4_A/24) ;;
	*) only=() ;;
	esac
	case $mpi in
	openmpi)
		words=(mpirun.openmpi --allow-run-as-root --bind-to none --mca plm_rsh_agent "$WORK/agent"
			--host $IP4_A:1,$IP4_B:1 -n 2 "${only[@]}")
		;;
	mpich)
		words=(mpiexec.hydra -launcher ssh -launcher-exec "$WORK/agent" -localhost $IP4_A
			-hosts $IP4_A,$IP4_B -n 2)
		[ "$way" = xroce ] || words+=(-genv UCX_TLS tcp,self)
		;;
	esac
	: >"$WORK/server.out"
	start client a "${words[@]}" "$WORK/rank" "$way" "$WORK/rates.$mpi" $((10000 / scale))
	finish "$child" 60
	figure "$name, 8 bytes" "$way" us "$(awk '$1 == "latency" { print $2 }' "$WORK/client.out")"
	figure "$name, 1 MiB" "$way" Gbit/s "$(awk '$1 == "bandwidth" { print $2 }' "$WORK/client.out")"
}

# with_qperf NAME WAY UNIT TEST TCP-TEST BYTES
with_qperf() {
	local name=$1 way=$2 unit=$3 v cm=(-cm1) test=$4
	[ "$way" = xroce ] || cm=() test=$5
	both "$way" 19765 qperf -- qperf "${cm[@]}" -t 1 -m "$6" -uu $IP4_A "$test"
	case $unit in
	us) v=$(tr -d , <"$WORK/client.out" | awk '$1 == "latency" { print $3 * ($4 ~ /^ns/ ? 1e-3 : $4 ~ /^sec/ ? 1e6 : 1) }') ;;
	*) v=$(tr -d , <"$WORK/client.out" | awk '$1 == "bw" { printf "%.3f", $3 * 8 / 1e9 }') ;;
	esac
	figure "$name" "$way" "$unit" "$v"
}

# with_fio NAME WAY: writes of 64 KiB from the client to the server
with_fio() {
	local name=$1 way=$2 v bytes=$((2048 / scale))m says=$WORK/client.out
	local any=(--bs=64k --size="$bytes" --thread --do_verify=0 --verify_state_save=0)
	if [ "$way" = xroce ]; then
		any+=(--ioengine=rdma --port=14200)
		both xroce cm fio "${any[@]}" --name=server --rw=read --iodepth=128 -- \
			fio "${any[@]}" --name=client --rw=write --iodepth=8 --verb=write --hostname=$IP4_A
	else
		any+=(--ioengine=net --protocol=tcp --port=14200)
		both tcp 14200 fio "${any[@]}" --name=server --rw=read --listen -- \
			fio "${any[@]}" --name=client --rw=write --hostname=$IP4_A
		# The server takes a short read for a whole one: it may be gone before its client,
		# which then ends by SIGPIPE and says nothing.
		says=$WORK/server.out
	fi
	# in bits of the net engine
	v=$(sed -nE 's/^ +(WRITE|READ): .*\(([0-9.]+)([kMG])(B|bit)\/s\).*/\2 \3 \4/p' "$says" |
		awk '{ printf "%.3f", $1 * ($3 == "B" ? 8 : 1) * ($2 == "k" ? 1e-6 : $2 == "M" ? 1e-3 : 1) }')
	figure "$name" "$way" Gbit/s "$v"
}

# with_nccl NAME WAY: NCCL's own way without RDMA is TCP sockets, which iperf3 has too.
with_nccl() {
	local v n=$((4000 / scale))
	if [ "$2" = xroce ]; then
		both xroce 18700 "$NCCL" -f -d $DEV_A -p 18700 -n $n -s 1048576 -- \
			"$NCCL" -f -d $DEV_B -p 18700 -n $n -s 1048576 $IP4_A
		v=$(sed -n 's/^nccl ok: .*, \([0-9.]*\) Gbit.*/\1/p' "$WORK/server.out")
	else
		both tcp 5201 iperf3 -s -1 -- iperf3 -c $IP4_A -t 1 -l 1M -f g
		v=$(awk '/receiver/ { for (i = 1; i < NF; i++) if ($(i + 1) == "Gbits/sec") print $i }' "$WORK/client.out")
	fi
	figure "$1" "$2" Gbit/s "$v"
}

# with_gloo NAME WAY
with_gloo() {
	local kind=ibverbs a=$DEV_A b=$DEV_B n=$((100 / scale))
	[ "$2" = xroce ] || kind=tcp a=$IF_A b=$IF_B
	rm -rf "$WORK/meet" && mkdir "$WORK/meet"
	at server a "$2" "$WORK/ring" $kind $a 0 2 "$WORK/meet" 1000000 $n
	local server=$child
	at client b "$2" "$WORK/ring" $kind $b 1 2 "$WORK/meet" 1000000 $n
	finish "$child" 60
	finish "$server" 10
	figure "$1" "$2" Gbit/s "$(sed -n 's/^ring ok: .*, \([0-9.]*\) Gbit.*/\1/p' "$WORK/client.out")"
}

# ---- all of them ----

everything() {
	local way=$1
	ucx "UCX tag, 8 bytes" "$way" us tag_lat 8 10000
	ucx "UCX tag, 64 KiB" "$way" Gbit/s tag_bw 65536 10000
	ucx "UCX tag, 1 MiB" "$way" Gbit/s tag_bw 1048576 1000
	ucx "UCX put, 1 MiB" "$way" Gbit/s ucp_put_bw 1048576 1000
	ucx "UCX get, 1 MiB" "$way" Gbit/s ucp_get 1048576 1000
	ucx "UCX fetch and add, 8 bytes" "$way" us ucp_fadd 8 10000
	mpi "Open MPI" "$way" openmpi
	mpi "MPICH" "$way" mpich
	libfabric "libfabric msg, 64 bytes" "$way" verbs msg tcp msg 64 us
	libfabric "libfabric msg, 1 MiB" "$way" verbs msg tcp msg 1048576 Gbit/s
	libfabric "libfabric rxm, 1 MiB" "$way" "verbs;ofi_rxm" rdm "tcp;ofi_rxm" rdm 1048576 Gbit/s
	libfabric "libfabric dgram, 64 bytes" "$way" verbs dgram udp dgram 64 us
	libfabric "libfabric rxd, 64 KiB" "$way" "verbs;ofi_rxd" rdm "tcp;ofi_rxm" rdm 65536 Gbit/s
	with_gloo "gloo, sum of 4 MB" "$way"
	with_nccl "NCCL's pattern, 1 MiB" "$way"
	with_qperf "qperf, 1 byte" "$way" us rc_lat tcp_lat 1
	with_qperf "qperf, 64 KiB" "$way" Gbit/s rc_bw tcp_bw 65536
	with_fio "fio, 64 KiB" "$way"
}

load=$(cut -d' ' -f1-3 /proc/loadavg)
for ((round = 0; round < repeats; round++)); do
	everything xroce
	everything tcp
done

# spread: minimum, median, maximum of numbers, a line each
spread() {
	sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.4g / %.4g / %.4g", v[1], v[int((NR + 1) / 2)], v[NR]; else printf "none" }'
}
echo "$(date -u '+%Y-%m-%d %H:%M UTC'), kernel $(uname -r), $(nproc) CPUs, load average before $load;"
echo "minimum / median / maximum of $repeats:"
echo
echo "| | unit | xroce | TCP |"
echo "|---|---|---|---|"
cut -f1,3 "$WORK/figures" | awk '!seen[$0]++' | while IFS=$'\t' read -r name unit; do
	printf '| %s | %s |' "$name" "$unit"
	for way in xroce tcp; do
		printf ' %s |' "$(awk -F'\t' -v n="$name" -v w=$way '$1 == n && $2 == w { print $4 }' "$WORK/figures" | spread)"
	done
	echo
done
exit $failed
