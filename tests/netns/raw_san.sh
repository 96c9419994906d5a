#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# Raw packets, their flows, sniffers, counters and work queues with frames on the wire, under
# sanitizers:
# raw_san.sh BUILD. Library and programs are built in BUILD-san with ASan and UBSan, where leaks
# count too, and in BUILD-tsan with ThreadSanitizer; a report fails the case in which it was made.
# Case names begin with the build's and the script's. XROCE_MODEL_ROUNDS and XROCE_MODEL_SEEDS as in
# raw_model.sh.
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
BUILD=${1:?usage: raw_san.sh BUILD}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
WORK=$(mktemp -d "${TMPDIR:-/tmp}/xroce.XXXXXX") || exit 1
trap 'rm -rf "$WORK"' EXIT
failed=0

# sanitized KIND MAKE_VARIABLE: builds BUILD-KIND.
sanitized() {
	local to=$BUILD-$1
	"${MAKE:-make}" --no-print-directory -C "$here" BUILD="$to" "$2=1" -j"$(nproc)" "$to/bin/xroce" "$to/lib/libibverbs.so.1" \
		"$to/tests/netns/raw" "$to/tests/netns/raw_rss" "$to/tests/netns/raw_model" "$to/tests/netns/raw_hash" "$to/tests/netns/raw_tunnels" "$to/tests/netns/flows" "$to/tests/netns/sniffer" "$to/tests/netns/supers" >"$WORK/make.out" 2>&1 && return
	cat "$WORK/make.out"
	exit 1
}

# cases KIND SCRIPT [COMMAND...]
cases() {
	local kind=$1 script=$2
	shift 2
	"$@" bash "$here/tests/netns/$script.sh" "$BUILD-$kind" >"$WORK/out" 2>&1 || failed=1
	sed -E "s/^(ok|not ok|skip) /\1 ${kind}_${script}__/" "$WORK/out"
	# one that was not run to its end has printed nothing
	grep -q '^ok' "$WORK/out" || failed=1
}

all() {
	cases "$1" flows "${@:2}"
	XROCE_MODEL_SEEDS=${XROCE_MODEL_SEEDS:-1} XROCE_MODEL_ROUNDS=${XROCE_MODEL_ROUNDS:-50} cases "$1" raw_model "${@:2}"
	XROCE_CASE='@(everything*|own_packets|spread*|super_packets*|full)' cases "$1" sniffer "${@:2}"
	XROCE_CASE='@(udp4|tagged|fragments_by_address|events_*|without_*|with_*)' cases "$1" raw_rss "${@:2}"
}

sanitized san SAN
# SIGSEGV is the library's: memory of a program's that goes bad (docs/memory.md).
export ASAN_OPTIONS=detect_leaks=1:handle_segv=0:allow_user_segv_handler=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
all san

sanitized tsan TSAN
# As tests/common/sanitized.sh has them. A program that asks for a broker forks one.
printf 'race:%s\n' kernel_event_make kernel_set_make >"$WORK/suppressions"
export TSAN_OPTIONS="halt_on_error=0 exitcode=66 die_after_fork=0 suppressions=$WORK/suppressions print_suppressions=0"
all tsan setarch -R
exit $failed
