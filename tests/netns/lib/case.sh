# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Shared by every test of tests/netns: the topology, the paths of the build, and the lines of
# results on standard output. Sourced, with the build directory as the first argument of the script.
#
#   ok NAME             the case holds
#   not ok NAME         it does not; the reasons follow in lines with `# `
#   late NAME DETAIL    an event came after its deadline, so the case could not be judged
#   skip NAME REASON    it cannot run here
#   slow NAME DETAIL    it holds, and waited longer than it should

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
BUILD=${1:-$here/build}
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac
GOLDEN=$here/tests/golden
XROCE=$BUILD/bin/xroce
TOOLS=$BUILD/tests/netns
. "$here/scripts/netns.sh"
. "$here/tests/common/sanitized.sh"
export LC_ALL=C
unset XROCE_DEV LD_LIBRARY_PATH

case_failed=0 case_late=0 case_ran=0

# fail MESSAGE: note a failed assertion of the running case, and go on. Returns 1, so that `||
# return` can end the case.
fail() {
	echo "# $*" >>"$WORK/case.notes"
	return 1
}

# late MESSAGE: the running case waited for an event that came after its deadline, so that the rest
# cannot be judged. Returns 1. A case that notes a failed assertion as well has failed.
late() {
	echo "$*" >>"$WORK/case.late"
	return 1
}

# show NAME: add a program's output to the case's notes; if long, its ends and xroce's lines.
# Standard error may come first, as that is not buffered.
show() {
	[ -f "$WORK/$1.out" ] || return 0
	{
		echo "# output of $1:"
		awk '{ l[NR] = $0 } END { for (i = 1; i <= NR; i++) if (i <= 12 || i > NR - 12 || l[i] ~ /xroce: /) print "#   " l[i]; else if (i == 13) print "#   ..." }' "$WORK/$1.out"
	} >>"$WORK/case.notes"
}

# run_long_case NAME FUNCTION [ARG...]: as run_case, for a case of the long tier. XROCE_CASES=core
# runs the cases of run_case alone, XROCE_CASES=long the cases of run_long_case; the default is all.
# The head of the script then has `tier: core XROCE_CASES=core`, `tier: long long XROCE_CASES=long`.
run_long_case() {
	[ "${XROCE_CASES:-}" != core ] || return 0
	judge_case "$@"
}
# run_case NAME FUNCTION [ARG...]: the case holds if the function made no fail() and returned 0. 77
# means skipped, with the reason in $skip_reason. XROCE_CASE, if set, is a pattern: only cases whose
# names match it are run.
run_case() {
	[ "${XROCE_CASES:-}" != long ] || return 0
	judge_case "$@"
}
# tier_case NAME FUNCTION [ARG...]: as run_case if the array core_cases has the name, and as
# run_long_case if not. finish_cases fails for a name in the list that no case has.
core_cases=()
declare -A core_found=()
tier_case() {
	if [[ " ${core_cases[*]} " == *" $1 "* ]]; then
		core_found[$1]=1
		run_case "$@"
	else
		run_long_case "$@"
	fi
}
judge_case() {
	local name=$1 rc line
	shift
	# shellcheck disable=SC2053 # a pattern
	[[ $name == ${XROCE_CASE:-*} ]] || return 0
	case_ran=1
	: >"$WORK/case.notes"
	: >"$WORK/case.late"
	: >"$WORK/case.slow"
	skip_reason=
	"$@"
	rc=$?
	if [ $rc -eq 77 ]; then
		echo "skip $name $skip_reason"
	elif [ -s "$WORK/case.late" ] && [ ! -s "$WORK/case.notes" ]; then
		echo "late $name $(tr '\n' ' ' <"$WORK/case.late")"
		case_late=1
	elif [ $rc -eq 0 ] && [ ! -s "$WORK/case.notes" ]; then
		echo "ok $name"
	else
		echo "not ok $name"
		[ $rc -eq 0 ] || echo "# the case returned $rc"
		cat "$WORK/case.notes"
		case_failed=1
	fi
	while read -r line; do
		echo "slow $name $line"
	done <"$WORK/case.slow"
}

# skip_all REASON: nothing of the test can run here.
skip_all() { echo "skip $(basename "$0" .sh) $*"; exit 0; }

# The last line of each test. The status 75 says that all cases ended, some late and none failed.
finish_cases() {
	local name
	for name in "${core_cases[@]}"; do
		[ -n "${core_found[$name]:-}" ] || { echo "not ok no case is named $name"; exit 1; }
	done
	[ $case_ran = 1 ] || { echo "not ok no case is named ${XROCE_CASE:-}"; exit 1; }
	[ $case_failed = 1 ] || [ $case_late = 0 ] || exit 75
	exit $case_failed
}

# need_equal WHAT GOT WANT, need_least WHAT GOT LEAST
need_equal() { [ "$2" = "$3" ] || fail "$1 is '$2', not '$3'"; }
need_least() { [ -n "$2" ] && [ "$2" -ge "$3" ] 2>/dev/null || fail "$1 is '$2', less than $3"; }
need_line() { grep -qE -- "$2" "$WORK/$1.out" || { fail "$1 printed no line like: $2"; show "$1"; return 1; }; }
need_no_line() { ! grep -qE -- "$2" "$WORK/$1.out" || { fail "$1 printed a line like: $2"; show "$1"; return 1; }; }

# How a program runs on our library, as an array to be expanded before it.
on_a() { in_a "$XROCE" run --dev $IF_A -- "$@"; }
on_b() { in_b "$XROCE" run --dev $IF_B -- "$@"; }
start_on() {
	local name=$1 ns=$2 dev=$IF_A
	shift 2
	[ "$ns" = b ] && dev=$IF_B
	start "$name" "$ns" "$XROCE" run --dev $dev -- "$@"
}

# gid_index NS PREFIX: the index of the first GID that starts so, from ibv_devinfo.
gid_index() {
	"on_$1" timeout 10 ibv_devinfo -v 2>/dev/null |
		sed -n 's/^[[:space:]]*GID\[ *\([0-9]*\)\]:[[:space:]]*\([^,[:space:]]*\).*/\1 \2/p' |
		awk -v p="$2" 'index($2, p) == 1 { print $1; found = 1; exit } END { exit !found }'
}

# gids_for FAMILY: sets gid_a and gid_b.
gids_for() {
	gids_are=$1
	case $1 in
	v4) gid_a=$(gid_index a ::ffff:$IP4_A) && gid_b=$(gid_index b ::ffff:$IP4_B) ;;
	v6) gid_a=$(gid_index a fd77:) && gid_b=$(gid_index b fd77:) ;;
	esac || { gids_are=; fail "no $1 GID in ibv_devinfo -v"; }
}

# The same where interfaces keep their addresses: two programs fewer for each case.
gids_are=
gids_once() { [ "$gids_are" = "$1" ] || gids_for "$1"; }

# halts_or_ends SERVER CLIENT: the server has stopped or ended, or the client has ended. Asked
# often, so it starts no process. A process's state follows its name.
halts_or_ends() {
	local stat=
	read -r -d '' stat 2>/dev/null <"/proc/$1/stat"
	[[ ${stat##*) } == T* ]] || is_gone_or_zombie "$1" || is_gone_or_zombie "${2:-$1}"
}

# keep_of_halted SERVER CLIENT SECONDS: of a server that makes its queue pair, and so the maps, only
# when the client has called. halt.c stops it before it takes them away. The client may wait for its
# last acknowledgment meanwhile.
keep_of_halted() {
	local rc
	wait_until "$3" halts_or_ends "$1" "$2"
	wait_at_most 10 halts_or_ends "$1"
	keep_maps "$1" server
	rc=$?
	kill -CONT "$1"
	return $rc
}

# client_server PORT SECONDS SERVER... -- CLIENT...: the server on A, the client on B once the
# server listens on the TCP port; both must exit with 0 in time. Outputs are named `server` and
# `client`. keep=1 keeps the server's counters as `server`, not the client's, if it has_bpf_maps;
# keep=halted is for a server without maps when it begins to listen. $before_client, if set, is
# called before the client starts.
client_server() {
	local port=$1 bound=$2 server client halt=() rc
	split_words server client "${@:3}"
	[ "${keep:-}" != halted ] || halt=(env "LD_PRELOAD=$WORK/halt.so${LD_PRELOAD:+:$LD_PRELOAD}")
	start_on server a "${halt[@]}" "${server[@]}"
	server_pid=$child
	wait_until 30 listens_or_gone a "$port" "$server_pid"
	if ! listens_by a "$port" "$server_pid"; then
		stop "$server_pid"
		fail "the server does not listen: ${server[*]}"
		show server
		return 1
	fi
	drop_maps server
	[ "${keep:-}" != 1 ] || ! has_bpf_maps || keep_maps "$server_pid" server || fail "the server has no maps of ours"
	${before_client:-:}
	start_on client b "${client[@]}"
	client_pid=$child
	[ "${keep:-}" != halted ] || keep_of_halted "$server_pid" "$client_pid" "$bound" || fail "the server has no maps of ours"
	finish "$client_pid" "$bound"
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc: ${client[*]}"; show client; }
	if [ $rc -ne 0 ]; then
		stop "$server_pid"
		show server
		return 1
	fi
	finish "$server_pid" 10
	rc=$?
	[ $rc -eq 0 ] || { fail "the server ended with $rc: ${server[*]}"; show server; return 1; }
}
