#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long sockets XROCE_CASES=core XROCE_PORT=sockets
#
# UCX whose end points connect by librdmacm: io_demo, which checks all data, and the package's
# example of client and server.
. "$(dirname "$0")/lib/case.sh"
command -v io_demo >/dev/null || skip_all "no io_demo (package ucx-utils)"
example_source=/usr/share/doc/libucx-dev/examples/ucp_client_server.c
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"
UCX=(env "UCX_TLS=rc_verbs,ud_verbs" UCX_SOCKADDR_TLS_PRIORITY=rdmacm UCX_RNDV_THRESH=1000
	UCX_WARN_UNUSED_ENV_VARS=n)

# try_io_demo [OPTION...]: reads and writes of up to 100,000 bytes, most of them by rendezvous. The
# server takes IPv4 alone, and ends by a signal.
try_io_demo() {
	local options=(-p 7475 -q -o 'read,write' -d 16:100000 "$@")
	cm_serve "${UCX[@]}" io_demo "${options[@]}" || return
	cm_start client client "${UCX[@]}" io_demo "${options[@]}" -i 200 -w 8 "$server_ip"
	cm_end client "$child" 90 || { stop "$cm_server"; show server; return 1; }
	stop "$cm_server"
	need_no_line client '[Cc]orrupt|ERROR' || show server
}

# server_said COUNT LINE, or it has ended
server_said() {
	is_gone_or_zombie "$cm_server" || [ "$(grep -c "^$2" "$WORK/server.out")" -ge "$1" ]
}

# 20 messages of each of two clients, by rendezvous: a send is complete then when the other side has
# the data. (Its streams and active messages are left out: the client ends its connection before the
# server has read all, and active messages that come together are one to it.) The server refuses a
# second client as long as it has one.
try_example() {
	local i example=("$OWN/bin/ucp_client_server" -c tag -i 20 -s 2000)
	[ "$family_word" = ip ] || example+=(-6)
	cm_serve "${UCX[@]}" stdbuf -oL "${example[@]}" -l "$server_ip" || return
	for i in 1 2; do
		cm_start client client "${UCX[@]}" "${example[@]}" -a "$server_ip"
		if ! cm_end client "$child" 60 ||
			! wait_until 20 server_said $((i + 1)) 'Waiting for connection'; then
			fail "client $i"
			stop "$cm_server"
			show server
			return 1
		fi
		need_line client '^Client: iteration #20$'
		need_equal "clients of whom all messages came" \
			"$(grep -c '^Server: iteration #20$' "$WORK/server.out")" "$i"
	done
	stop "$cm_server"
}

cm_case "between within user" v4 io_demo_tag try_io_demo
cm_case "between within user" v4 io_demo_am try_io_demo -A
if [ -s $example_source ]; then
	gcc -o "$OWN/bin/ucp_client_server" $example_source -lucp -lucs 2>"$WORK/compile.out" ||
		{ cat "$WORK/compile.out"; netns_die "cannot compile $example_source"; }
	chmod 755 "$OWN/bin/ucp_client_server"
	cm_everywhere example try_example
else
	echo "skip example no ucp_client_server.c (package libucx-dev)"
fi
core_cases=(io_demo_am_between_v4 example_within_v6)
cm_run
finish_cases
