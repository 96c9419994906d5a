# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Two unmodified programs that talk to each other, each of a user without privileges by a broker, or
# of root with the interface alone. Sourced after unprivileged.sh and, for measure(), perf.sh.

. "$(dirname "${BASH_SOURCE[0]}")/perf_clock.sh"

iface_of() { if [ "$1" = a ]; then echo $IF_A; else echo $IF_B; fi; }

# as_nobody SHARE NS: in words what stands before a program of that user.
as_nobody() {
	words=("${NOBODY[@]}" "$OWN/bin/xroce" run --dev "$(iface_of "$2")" --share "$1" --)
}

# program WHO NS: `user` is the user nobody, with a broker; `alone` is root, without one.
program() {
	case $1 in
	user) as_nobody always "$2" ;;
	alone) words=("$XROCE" run --dev "$(iface_of "$2")" --share never --) ;;
	esac
}

# exchange SERVER CLIENT NS BOUND TOOL... : the server is a SERVER on A, the client a CLIENT on NS.
exchange() {
	local server=$1 client=$2 ns=$3 bound=$4 dev=$DEV_A gid=$gid_a rc pid
	shift 4
	local tool=("$@")
	[ "$ns" = b ] && dev=$DEV_B && gid=$gid_b
	local flag=-g
	case $1 in ib_*) flag=-x ;; esac
	program "$server" a
	start server a "${words[@]}" "${tool[0]}" -d $DEV_A $flag "$gid_a" "${tool[@]:1}"
	pid=$child
	wait_until 10 listens_or_gone a 18515 "$pid"
	program "$client" "$ns"
	start client "$ns" "${words[@]}" "${tool[0]}" -d $dev $flag "$gid" "${tool[@]:1}" $IP4_A
	finish "$child" "$bound"
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; stop "$pid"; show server; return 1; }
	finish "$pid" 10
	rc=$?
	[ $rc -eq 0 ] || { fail "the server ended with $rc"; show server; return 1; }
}

# pingpong SERVER CLIENT NS FAMILY TOOL SIZE ITERATIONS [OPTION...]
pingpong() {
	local who=("$1" "$2" "$3") family=$4 tool=$5 size=$6 n=$7 side
	shift 7
	gids_once "$family" || return
	exchange "${who[@]}" 60 "$tool" -s "$size" -n "$n" "$@" || return
	for side in server client; do
		need_line $side "^$((2 * size * n)) bytes in "
		need_no_line $side 'invalid data'
	done
}

# measure SERVER CLIENT NS FAMILY TOOL SIZE ITERATIONS [OPTION...]
measure() {
	local who=("$1" "$2" "$3") family=$4 tool=$5 size=$6 n=$7
	shift 7
	local sized=(-s "$size")
	case $tool in ib_atomic_*) sized=() ;; esac
	gids_once "$family" || return
	with_quick_clock exchange "${who[@]}" 90 \
		"$tool" "${sized[@]}" -n "$n" -u "$perf_timeout" -F "$@" || return
	has_results client "$size" "$n"
}

# pingpong_cases NAME SERVER CLIENT NS: runs the cases of the pingpongs; core_cases selects the
# core's.
pingpong_cases() {
	local name=$1 who=("${@:2}") t
	for t in rc uc srq; do
		tier_case ${name}_${t}_v4 \
			pingpong "${who[@]}" v4 ibv_${t}_pingpong 4096 300 -c
		tier_case ${name}_${t}_events_v6 \
			pingpong "${who[@]}" v6 ibv_${t}_pingpong 4096 300 -c -e
		tier_case ${name}_${t}_large \
			pingpong "${who[@]}" v4 ibv_${t}_pingpong 65536 60 -c -m 4096
	done
	tier_case ${name}_ud pingpong "${who[@]}" v4 ibv_ud_pingpong 2048 300 -c
	tier_case ${name}_ud_events_v6 \
		pingpong "${who[@]}" v6 ibv_ud_pingpong 2048 300 -c -e
}
