#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Builds and runs the tests: check.sh BUILD [PART...], all parts if none is named. Prints a line a
# check as scripts/check-run.sh has it. The last line is `N passed, N failed, N skipped`; the exit
# status is 0 only if nothing failed and something passed.
#
# What needs processors alone runs in a pool of as many processes as there are; what has interfaces,
# namespaces or a guest comes after that, one at a time.
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$top" || exit 1
BUILD=${1:-build}
[ $# -gt 0 ] && shift
MAKE=${MAKE:-make}
# A part alone keeps its output apart, so that several may run at the same time.
logs=$BUILD/check
[ $# -eq 1 ] && logs=$BUILD/check-$1
pooled="tree portsim model unit sim cm san fuzz ship"
single="bpf verbs port netns vm"
asked="arch" # run only if named
parts=${*:-$pooled $single}

# The variables of an outer make must not change what the inner ones build.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES SAN
# A warning is an error here, in what the tests themselves build as well.
export WERROR=1
export LC_ALL=C
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0
. scripts/check-run.sh

rm -rf "$logs" && mkdir -p "$logs" && : >"$logs/results" && : >"$logs/again" || exit 1

# cmocka_kind HOW KIND BUILD TAG: the test programs of a kind, by their sources; the longest first,
# so that none is left alone in the end. HOW: pool, or nothing.
cmocka_kind() {
	local how=$1 kind=$2 build=$3 tag=$4 src base

	for src in tests/"$kind"/test_{masks16,loss,random}.c tests/"$kind"/test_*.c; do
		base=$(basename "$src" .c)
		[ -e "$src" ] || continue
		[ -e "$logs/$kind-$base$tag.begun" ] && continue
		: >"$logs/$kind-$base$tag.begun"
		$how cmocka "$kind-$base$tag" "$build/tests/$kind/$base"
	done
	rm -f "$logs/$kind-"*.begun
}
# shell_kind HOW DIRECTORY
shell_kind() {
	local how=$1 dir=$2 t

	for t in tests/"$dir"/*.sh; do
		$how shell_test "$dir-$(basename "$t" .sh)" bash "$t" "$BUILD"
	done
}

# ---- the parts ----

part_tree() {
	step includes scripts/check-includes.sh
	step kernel scripts/check-kernel.sh
	built build-gen "$BUILD"/gen/xroce{,_tx,_broker}.skel.h &&
		step atomics scripts/check-atomics.sh "$BUILD"
	step errno scripts/check-errno.sh
	step licences scripts/check-licences.sh
	step documents scripts/check-docs.sh
	step counters scripts/check-counters.sh
	step width scripts/check-width.sh
	step mutations tests/mutate.sh -c
	step mutations-verbs tests/mutate-verbs.sh -c
}

part_unit() {
	built build-unit unit-tests measure-tests || return
	cmocka_kind pool unit "$BUILD" ""
	cmocka_kind pool measure "$BUILD" ""
}

part_sim() {
	local src base

	built build-sim sim-tests || return
	cmocka_kind pool sim "$BUILD" ""
	# Again on devices of three engines, but for the longest ones, of which test_random has such
	# devices anyway.
	export XROCE_SIM_ENGINES=3
	for src in tests/sim/test_*.c; do
		base=$(basename "$src" .c)
		case $base in test_masks16 | test_random) continue ;; esac
		pool cmocka "sim-$base-engines" "$BUILD/tests/sim/$base"
	done
	unset XROCE_SIM_ENGINES
	# A figure to look at, never a limit.
	if "$MAKE" --no-print-directory BUILD="$BUILD" "$BUILD/tests/bench/engine" \
		>"$logs/bench-instructions.log" 2>&1; then
		timeout 60 scripts/bench-instructions.sh "$BUILD" 2>&1 | sed 's/^/info /'
	fi
}

part_cm() {
	built build-cm cm-tests || return
	cmocka_kind pool cm "$BUILD" ""
}

part_portsim() {
	built build-portsim portsim-tests brokersim-tests || return
	cmocka_kind pool portsim "$BUILD" ""
	cmocka_kind pool brokersim "$BUILD" ""
}

part_model() {
	pool shell_test model bash tests/model/run.sh "$BUILD"
}

part_san() {
	BUILD=$BUILD-san built build-san SAN=1 unit-tests measure-tests sim-tests cm-tests ||
		return
	cmocka_kind pool sim "$BUILD-san" -san
	cmocka_kind pool unit "$BUILD-san" -san
	cmocka_kind pool measure "$BUILD-san" -san
	cmocka_kind pool cm "$BUILD-san" -san
}

part_fuzz() {
	local seconds=${XROCE_FUZZ_SECONDS:-}

	built build-fuzz fuzzers || return
	pool step fuzz-engine scripts/fuzz.sh "$BUILD" engine "${seconds:-40}"
	pool step fuzz-packet scripts/fuzz.sh "$BUILD" packet "${seconds:-20}"
	pool step fuzz-ask scripts/fuzz.sh "$BUILD" ask "${seconds:-10}"
	pool step fuzz-cm scripts/fuzz.sh "$BUILD" cm "${seconds:-15}"
	pool step fuzz-record scripts/fuzz.sh "$BUILD" record "${seconds:-15}"
	pool step fuzz-segments scripts/fuzz.sh "$BUILD" segments "${seconds:-15}"
}

part_ship() {
	built build-ship all texts || return
	shell_kind pool ship
}

part_bpf() {
	built build-bpf bpf-tests || return
	cmocka_kind "" bpf "$BUILD" ""
}

part_verbs() {
	built build-verbs all netns-tools rdmacm-tests || return
	shell_kind "" verbs
	cmocka_kind "" rdmacm "$BUILD" ""
	shell_kind "" rdmacm
}

part_port() {
	built build-port all port-tests netns-tools || return
	cmocka_kind "" port "$BUILD" ""
	shell_kind "" port
}

part_netns() {
	local t

	built build-netns all netns-tools || return
	shell_kind "" netns
	shell_kind "" foreign
	# What all interfaces but veth have: these again in native mode (tests/netns/paths*.sh have
	# both, and XROCE_TX beside).
	for t in data pingpong loss wake events event_ways bursts; do
		XROCE_XDP=native shell_test "netns-$t-native" bash "tests/netns/$t.sh" "$BUILD"
	done
	# And with two receive queues, each with a shard.
	for t in data loss wake events crash tags port_events bursts memory lost sniffer parting; do
		XROCE_TEST_QUEUES=2 shell_test "netns-$t-shards" bash "tests/netns/$t.sh" "$BUILD"
	done
	XROCE_TEST_QUEUES=2 XROCE_FIRST_TIMES=5 \
		shell_test netns-first-shards bash tests/netns/first.sh "$BUILD"
	# And by brokers at both ends.
	for t in data tags fields loss wake event_ways bursts memory counted parting; do
		XROCE_TEST_BROKER=1 shell_test "netns-$t-shared" bash "tests/netns/$t.sh" "$BUILD"
	done
}

# Against an implementation that is not ours.
part_vm() {
	built build-vm all netns-tools vm-tools || return
	shell_test vm-rxe bash tests/vm/rxe.sh "$BUILD"
	shell_test vm-broker bash tests/vm/broker.sh "$BUILD" 6.1
}

# Other machines, under emulation, and another C library. One check is all programs of one.
part_arch() {
	local arch bound=7200

	for arch in arm64 s390x; do
		shell_test "arch-$arch" bash tests/ship/trial/arch.sh "$BUILD" $arch
	done
	shell_test arch-musl bash tests/ship/trial/musl.sh "$BUILD"
}

# Where there are few process numbers (32768, unless a distribution raises that), these tests use
# each of them again every few minutes. bash then takes a new child for an old one that had its
# number, and waits for ever for what has ended. So there are more for as long as the tests run.
pid_max=/proc/sys/kernel/pid_max
pid_max_before=$(cat $pid_max)
[ "$pid_max_before" -ge 4194304 ] || echo 4194304 2>/dev/null >$pid_max
pid_max_restore() { [ "$(cat $pid_max)" = "$pid_max_before" ] || echo "$pid_max_before" >$pid_max; }

interrupted() {
	pid_max_restore
	printf '%s\tinterrupted\t0\t1\t0\t\t0\n' "${part:-none}" >>"$logs/results"
	# shellcheck disable=SC2086 # words
	summary $parts
}
trap interrupted EXIT
trap 'exit 130' INT TERM HUP

for part in $parts; do
	case " $pooled $single $asked " in
	*" $part "*) ;;
	*)
		echo "check.sh: no part '$part'; there are: $pooled $single $asked" >&2
		exit 2
		;;
	esac
done
for part in $parts; do
	case " $single " in *" $part "*) pool_drain ;; esac
	"part_$part"
done
pool_drain
pid_max_restore
# shellcheck disable=SC2086
summary $parts
