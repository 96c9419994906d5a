#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# rsockets of a user without any privilege, on an interface that a broker shares, over both
# families: streams and mapped buffers of several sizes, files; by the preload library a
# server that forks.
. "$(dirname "$0")/lib/case.sh"
for program in rstream riostream rcopy; do
	command -v $program >/dev/null || skip_all "no $program (rdmacm-utils)"
done
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"

# both PROGRAM OPTION...: the same options at both ends; the client prints its duration.
both() {
	local program=$1
	shift
	cm_pair 120 "$program" -b "$server_ip" "$@" -- "$program" -s "$server_ip" "$@" || return
	need_line client ' [0-9.]+s +[0-9.]+ '
}

# Checked data in messages from a byte to some megabytes. (All of the program's own sizes take it
# minutes.)
sizes() {
	local size
	for size in 1 100 5000 70000 1000000 6000000; do
		both "$1" -T v -S $size -C 4 -I 2 || { fail "of $size bytes"; return 1; }
	done
}

# A file goes there; the server ends by a signal. (rcopy cuts an address at its first colon, so it
# takes none of IPv6.)
file() {
	local from=$OWN/home/from to=$OWN/home/to
	head -c 3000000 /dev/urandom >"$from"
	chmod 644 "$from"
	rm -f "$to"
	cm_serve rcopy -p 7427 || return
	cm_start client client rcopy "$from" "$server_ip:$to" -p 7427
	cm_end client "$child" 60
	stop "$cm_server"
	cmp "$from" "$to" 2>>"$WORK/case.notes" || fail "another file arrived"
}

# A connection begins by TCP, and moves into the server's child, where it is an rsocket.
forks() {
	local server
	CM_RUN=(--rsockets)
	cm_start server server env RDMAV_FORK_SAFE=1 rstream -T f -T b -T v -S 10000 -C 20 -I 20 -b "$server_ip"
	server=$child
	wait_until 20 listens_or_gone a 7471 "$server"
	cm_start client client env RDMAV_FORK_SAFE=1 rstream -s "$server_ip" -T f -T b -T v -S 10000 -C 20 -I 20
	CM_RUN=()
	cm_end client "$child" 60 || { stop "$server"; show server; return 1; }
	cm_end server "$server" 20
}

cm_case user "v4 v6" stream both rstream -T v -S 10000 -C 20 -I 20
cm_case user "v4 v6" stream_sizes sizes rstream
cm_case user "v4 v6" mapped both riostream -T v -S 10000 -C 20 -I 20
cm_case user "v4 v6" mapped_sizes sizes riostream
cm_case user v4 file file
cm_case user "v4 v6" forks forks
core_cases=(stream_user_v4 mapped_user_v6 file_user_v4 forks_user_v4)
cm_run
finish_cases
