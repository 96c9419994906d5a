#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# fio's rdma engine, which connects by librdmacm: memory semantics (write, read), channel semantics
# (send), whose data the server verifies. The server takes no --bindname, as fio 3.33 derives a
# wrong address from it (from its first letter); the engine knows IPv4 only. The client does not
# wait for receives, and asks for no repetition: the server posts all of them before.
. "$(dirname "$0")/lib/case.sh"
command -v fio >/dev/null || skip_all "fio is not installed"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"
FIO=(fio --ioengine=rdma --port=14200 --bs=64k --size=8m --thread)
SERVER=("${FIO[@]}" --name=server --rw=read --iodepth=128)
CLIENT=("${FIO[@]}" --name=client --rw=write --iodepth=8 --do_verify=0 --verify_state_save=0)

# try_fio VERB [OPTION...]: 128 blocks from the client to the server.
try_fio() {
	local verb=$1
	shift
	cm_pair 60 "${SERVER[@]}" "$@" -- "${CLIENT[@]}" --hostname="$server_ip" --verb="$verb" "$@" || return
	need_line client ' err= 0: ' && need_line server ' err= 0: ' || return
	need_line client 'issued rwts: total=0,128,' || return
	[ "$verb" != send ] || need_line server 'issued rwts: total=128,'
}

# What no client has marked must not pass.
try_unmarked() {
	cm_serve "${SERVER[@]}" --verify=crc32c || return
	cm_start client client "${CLIENT[@]}" --hostname="$server_ip" --verb=send
	local client=$child
	wait_until 20 is_gone_or_zombie "$cm_server" || fail "the server goes on"
	stop "$client"
	stop "$cm_server"
	need_line server 'bad magic header|verify type mismatch'
}

# A client whose server is killed gets an error completion. fio then waits for an event that cannot
# come (docs/limits.md), so it is killed.
try_server_killed() {
	local client
	cm_serve "${SERVER[@]}" --size=800g || return
	cm_start client client "${CLIENT[@]}" --size=800g --rate_iops=500 --hostname="$server_ip" \
		--verb="$1"
	client=$child
	wait_until 20 is_busy || fail "no connection"
	kill -9 "$cm_server"
	finish "$cm_server" 5
	wait_at_most 30 grep -q 'cq completion status 12' "$WORK/client.out" ||
		{ fail "the client was not told"; show client; }
	kill -9 "$client"
	finish "$client" 5
	return 0
}
is_busy() { [[ $(in_b "$XROCE" qp) =~ ' RC '+rts ]]; }

all="between within user"
for verb in write read send; do
	cm_case "$all" v4 $verb try_fio $verb
done
cm_case "$all" v4 verify try_fio send --verify=crc32c
cm_case between v4 verify_fails try_unmarked
for verb in write send; do
	cm_case between v4 ${verb}_server_killed try_server_killed $verb
done
core_cases=(write_between_v4 verify_user_v4)
cm_run
finish_cases
