#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# 10,000 connections of librdmacm between two processes, held at once, each of which carries a
# message; and thousands that are made and ended. None of them has the kernel list addresses or
# links.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"
CONNECTIONS=$TOOLS/connections

# try_many WANTED OPTION...
try_many() {
	local wanted=$1
	shift
	cm_pair 120 "$CONNECTIONS" "$@" "$server_ip" -- "$CONNECTIONS" "$@" -c "$server_ip" || return
	need_line client "^connections: $wanted, " && need_line server "^connections: $wanted, " &&
		need_line client '^asked: 0 sockets, 0 dumps$' && need_line server '^asked: 0 sockets, 0 dumps$'
}

cm_case between v4 held try_many '10000 held' -k -n 10000
cm_case between "v4 v6" ended try_many '3000 made and ended' -n 3000
core_cases=(ended_between_v6)
cm_run
finish_cases
