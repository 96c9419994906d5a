#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Debian's rdmacm-utils, unmodified, that send datagrams: udaddy, whose queue pairs SIDR makes known
# to each other, and mckey, whose members of a group, each a process, receive what one of them
# sends.
. "$(dirname "$0")/lib/case.sh"
command -v udaddy >/dev/null || skip_all "udaddy is not installed (rdmacm-utils)"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"

# try_udaddy [OPTION...]: ten connections, ten messages each way on each
try_udaddy() {
	cm_pair 60 udaddy -f $family_word -b "$server_ip" -c 10 "$@" -- \
		udaddy -f $family_word -s "$server_ip" -c 10 "$@" || return
	need_line client '^return status 0$' && need_line server '^return status 0$'
}

has_joined() { grep -q 'joined dgid' "$WORK/$1.out"; }

# try_mckey MEMBERS [SENDER'S-OPTION...]: MEMBERS members at the server's side; 10 messages to each.
try_mckey() {
	local members=$1 group=239.7.7.7 i pids=()
	shift
	[ "$family_word" = ip ] || group=ff15::7:7
	for ((i = 0; i < members; i++)); do
		cm_start member$i server stdbuf -oL mckey -m $group -b "$server_ip"
		pids+=("$child")
	done
	for ((i = 0; i < members; i++)); do
		wait_until 20 has_joined member$i || { fail "no member"; show member$i; }
	done
	cm_start sender client mckey -m $group -b "$client_ip" -s "$@"
	cm_end sender "$child" 30 && need_line sender '^return status 0$'
	for ((i = 0; i < members; i++)); do
		cm_end member$i "${pids[i]}" 30 && need_line member$i '^return status 0$'
	done
}

cm_everywhere udaddy try_udaddy
cm_case "between within user" v4 udaddy_large try_udaddy -S 2000
cm_case user "v4 v6" mckey try_mckey 1
cm_case user "v4 v6" mckey_members try_mckey 3
cm_case user v4 mckey_send_only try_mckey 2 -o
core_cases=(udaddy_between_v6 udaddy_large_user_v4 mckey_members_user_v4)
cm_run
finish_cases
