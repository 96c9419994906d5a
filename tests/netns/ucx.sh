#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# UCX between two hosts, as a program that reads what adapters put into completions: over UD it
# looks in `sl` for where a datagram's addresses are, and drops what says otherwise.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# Without a terminal Debian 13's ucx_perftest is a program of MPI, unless -P 0 says otherwise.
# Debian 12's does not have that option.
no_mpi=()
! ucx_perftest -h 2>&1 | grep -q '^ *-P <0|1>' || no_mpi=(-P 0)

# start_ucx NAME NS TRANSPORT GID-INDEX ARG...: ucx_perftest; all that it may send by is this
# device.
start_ucx() {
	local name=$1 ns=$2 dev=$IF_A tls=$3 gid=$4
	shift 4
	[ "$ns" = b ] && dev=$IF_B
	start_on "$name" "$ns" env UCX_TLS="$tls" UCX_NET_DEVICES=xroce_$dev:1 UCX_IB_GID_INDEX="$gid" \
		UCX_WARN_UNUSED_ENV_VARS=n ucx_perftest "${no_mpi[@]}" "$@"
}

# ucx TRANSPORT FAMILY MESSAGES BYTES
ucx() {
	local server client messages=$3
	gids_for "$2" || return
	start_ucx server b "$1" "$gid_b" -t tag_lat -n "$messages" -w 10 -s "$4"
	server=$child
	wait_until 10 listens_by b 13337 "$server" || { fail "the server does not listen"; show server; return; }
	start_ucx client a "$1" "$gid_a" $IP4_B -t tag_lat -n "$messages" -w 10 -s "$4"
	client=$child
	finish "$client" 60 || { fail "the client ended with $?"; show client; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	need_line client "^Final: +$messages "
}

if ! command -v ucx_perftest >/dev/null; then
	for name in ud_v4 ud_v6 ud_long rc_v4; do
		echo "skip $name ucx_perftest is not installed (package ucx-utils)"
	done
	exit 0
fi
run_case ud_v4 ucx ud_verbs v4 1000 8
run_long_case ud_v6 ucx ud_verbs v6 1000 8
run_long_case ud_long ucx ud_verbs v4 50 100000
# UCX connects its RC queue pairs over UD
run_case rc_v4 ucx rc_verbs,ud_verbs:aux v4 1000 8
finish_cases
