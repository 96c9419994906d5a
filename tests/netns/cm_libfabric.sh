#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# libfabric's fi_pingpong over its verbs provider, which connects by librdmacm: message end points,
# and reliable datagrams over them (ofi_rxm); UD datagrams, and reliable datagrams over these
# (ofi_rxd). The program takes IPv4 addresses.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"
PINGPONG_PORT=47592
# Both ends poll, so on a busy machine each message takes as long as the other programs run.
messages=100
[ "${XROCE_CASES:-}" != core ] || messages=20

# pingpong PROVIDER END-POINT [EXCUSE]: one end may exit with an error, or not at all, if EXCUSE
# NAME PID STATUS holds; the other one must exit with 0. Output comes by lines, so that an end that
# is killed has shown its results.
pingpong() {
	local server client name largest=1m
	[ "$2" != dgram ] || largest=4k
	excuse=${3:-} excused=
	cm_start server server stdbuf -oL fi_pingpong -p "$1" -e "$2" -c -I $messages
	server=$child
	wait_until 20 listens_or_gone a $PINGPONG_PORT "$server"
	cm_start client client stdbuf -oL fi_pingpong -p "$1" -e "$2" -c -I $messages "$server_ip"
	client=$child
	ends client "$client" 60 || { stop "$server"; show server; return 1; }
	ends server "$server" 20
	# a line a size, the largest last
	for name in server client; do
		need_line $name "^64 +$messages "
		need_line $name "^$largest +$messages "
	done
}
# ends NAME PID SECONDS
ends() {
	local rc=running
	wait_until "$3" has_ended "$1" "$2"
	# an end that has closed its connection exits soon, or never
	if [ -z "$excuse" ] || wait_at_most 5 is_gone_or_zombie "$2"; then
		finish "$2" "$3"
		rc=$?
	fi
	[ $rc != 0 ] || return 0
	if [ -n "$excuse" ] && [ -z "$excused" ] && "$excuse" "$1" "$2" $rc; then
		excused=$1
	else
		show "$1"
		fail "$1 ended with $rc"
	fi
	rc=$?
	[ -z "$excuse" ] || stop "$2"
	return $rc
}
has_ended() { is_gone_or_zombie "$2" || { [ -n "$excuse" ] && "$excuse" "$1" "$2" running; }; }

# Whether an end of ofi_rxm lost its last completion by itself. ofi_rxm polls its CQ, then reads the
# events, and destroys the QP of a peer that has disconnected. If the thread loses the processor
# between the two, the last message and its ACK are in the CQ by then and go with the QP, as on
# adapters (docs/frameworks.md). The program exits with an error for its SEND, or polls for a
# message for ever. An RC QP in addition to the connection manager's QP 1 would mean that the
# message was lost elsewhere.
was_overtaken_at_the_end() {
	local ns=a qps
	[ "$cm_place.$1" != between.client ] || ns=b
	grep -q "^1m \+$messages " "$WORK/$1.out" || return
	if [ "$3" = running ]; then
		qps=$(in_ns $ns "$XROCE" qp --pid "$2")
		[[ $qps == *' UD '* && $qps != *' RC '* ]]
	else
		grep -q 'cq_readerr: Work Request Flushed Error' "$WORK/$1.out"
	fi
}

core_cases=(msg_user_v4 dgram_between_v4)
cm_case "between within user" v4 msg pingpong verbs msg
cm_case "between within user" v4 rxm pingpong 'verbs;ofi_rxm' rdm was_overtaken_at_the_end
# of UD alone nothing is sent again, here nothing is lost
cm_case "between within" v4 dgram pingpong verbs dgram
cm_case "between within" v4 rxd pingpong 'verbs;ofi_rxd' rdm
cm_run
finish_cases
