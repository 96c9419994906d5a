#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# libfabric's fi_pingpong over its verbs provider, which connects by librdmacm: message end points,
# and reliable datagrams made of them (ofi_rxm); datagrams of UD, and reliable ones made of those
# (ofi_rxd). The program takes IPv4 addresses.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"
PINGPONG_PORT=47592
# Both ends poll, so on a busy machine each message takes as long as the other programs run.
messages=100
[ "${XROCE_CASES:-}" != core ] || messages=20

# pingpong PROVIDER END-POINT [ENDED]: an end that exits with an error, or does not exit, must
# satisfy ENDED NAME STATUS. Output comes by lines, so that an end that is killed has shown its
# results.
pingpong() {
	local server name largest=1m ended=${3:-false}
	[ "$2" != dgram ] || largest=4k
	cm_start server server stdbuf -oL fi_pingpong -p "$1" -e "$2" -c -I $messages
	server=$child
	wait_until 20 listens_or_gone a $PINGPONG_PORT "$server"
	cm_start client client stdbuf -oL fi_pingpong -p "$1" -e "$2" -c -I $messages "$server_ip"
	ends client "$child" 60 "$ended" || { stop "$server"; show server; return 1; }
	ends server "$server" 20 "$ended"
	# a line a size, the largest last
	for name in server client; do
		need_line $name "^64 +$messages "
		need_line $name "^$largest +$messages "
	done
}
# ends NAME PID SECONDS ENDED
ends() {
	local rc wait=finish
	[ "$4" = false ] || wait=finish_at_most
	$wait "$2" "$3"
	rc=$?
	[ $rc -eq 0 ] || "$4" "$1" $rc || { fail "$1 ended with $rc"; show "$1"; }
}

# Whether an end of ofi_rxm has all its results, and the other one has disconnected before it had
# its last message. ofi_rxm polls its CQ, and after that its event queue: where the other end
# disconnects between the two, the receives that it still has are flushed, and the program exits
# with that error, or it destroys the QP with the completion of the last message and waits for that
# until it is killed (124). The device must flush and purge them.
was_overtaken_at_the_end() {
	grep -q "^1m \+$messages " "$WORK/$1.out" &&
		{ [ "$2" -eq 124 ] || grep -q 'cq_readerr: Work Request Flushed Error' "$WORK/$1.out"; }
}

core_cases=(msg_user_v4 dgram_between_v4)
cm_case "between within user" v4 msg pingpong verbs msg
cm_case "between within user" v4 rxm pingpong 'verbs;ofi_rxm' rdm was_overtaken_at_the_end
# of UD alone nothing is sent again, here nothing is lost
cm_case "between within" v4 dgram pingpong verbs dgram
cm_case "between within" v4 rxd pingpong 'verbs;ofi_rxd' rdm
cm_run
finish_cases
