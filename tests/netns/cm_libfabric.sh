#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# libfabric's fi_pingpong over its verbs provider, which connects by librdmacm: message end points,
# and reliable datagrams made of them (ofi_rxm); datagrams of UD, and reliable ones made of those
# (ofi_rxd). The program takes IPv4 addresses.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"
PINGPONG_PORT=47592

# try_pingpong PROVIDER END-POINT
try_pingpong() {
	local server rc
	cm_start server server fi_pingpong -p "$1" -e "$2" -c -I 100
	server=$child
	wait_until 20 listens_or_gone a $PINGPONG_PORT "$server"
	cm_start client client fi_pingpong -p "$1" -e "$2" -c -I 100 "$server_ip"
	cm_end client "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { stop "$server"; show server; return 1; }
	cm_end server "$server" 20
	# a line a size, of which 64 bytes are one
	need_line client '^64 +100 '
}

# Perhaps an end was told of the other's going before it had looked for its last completion: ofi_rxm
# looks for completions, and then for events, and may wait for a processor in between. All data is
# there, and the last message is flushed.
is_overtaken() {
	grep -qs 'cq_readerr: Work Request Flushed Error' "$WORK"/{server,client}.out &&
		grep -q '^1m ' "$WORK/server.out" && grep -q '^1m ' "$WORK/client.out"
}

cm_case "between within user" v4 msg try_pingpong verbs msg
cm_case "between within user" v4 rxm again_if is_overtaken try_pingpong 'verbs;ofi_rxm' rdm
# of UD alone nothing is sent again, here nothing is lost
cm_case "between within" v4 dgram try_pingpong verbs dgram
cm_case "between within" v4 rxd try_pingpong 'verbs;ofi_rxd' rdm
cm_run
finish_cases
