#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Unmodified frameworks between two hosts that have no other test: gloo's ibverbs, the way that NCCL
# loads and uses verbs (nccl.c), uDAPL. Data is checked, and xroce's counters show that it went by
# RDMA.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/hosts.sh"

# pair SECONDS PORT SERVER... -- CLIENT...: a server on A, which listens on that TCP port, and a
# client on B; both must end with 0.
pair() {
	local bound=$1 port=$2 server client pid rc
	split_words server client "${@:3}"
	on_host server a "${server[@]}"
	pid=$child
	wait_until 20 listens_or_gone a "$port" "$pid"
	on_host client b "${client[@]}"
	finish "$child" "$bound"
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; stop "$pid"; show server; return 1; }
	finish "$pid" 20
	rc=$?
	[ $rc -eq 0 ] || { fail "the server ended with $rc"; show server; return 1; }
}

# ---- NCCL ----

# nccl MESSAGES BYTES: the sender is the client. Each message is a WRITE into a slot, one of the
# data and one with its size.
nccl() {
	pair 60 18700 "$TOOLS/nccl" -d $DEV_A -p 18700 -n "$1" -s "$2" -- \
		"$TOOLS/nccl" -d $DEV_B -p 18700 -n "$1" -s "$2" $IP4_A || return
	need_line server "^nccl ok: $1 messages of $2 bytes"
	need_equal "WRITEs of the receiver to the sender" "$(counted client WRITE)" "$1"
	need_equal "WRITEs of the sender to the receiver" "$(counted server WRITE)" $((2 * $1))
}

# Without the files, as by LD_LIBRARY_PATH alone, it finds no place.
nccl_without() {
	in_a "$XROCE" run --no-mounts --dev $IF_A -- "$TOOLS/nccl" -d $DEV_A -p 18700 >"$WORK/client.out" 2>&1 &&
		fail "it found its device without files"
	need_line client 'leads nowhere'
}

# ---- gloo ----

# gloo RANKS ELEMENTS: half of the ranks on each host, which share interfaces where they are two
gloo() {
	local ranks=$1 i ns dev pids=()
	skip_reason="cannot be compiled (packages g++, libgloo-dev)"
	if [ ! -x "$WORK/ring" ]; then
		g++ -std=c++17 -O1 -w -o "$WORK/ring" "$here/tests/netns/gloo/ring.cc" -lgloo \
			>"$WORK/compile.out" 2>&1 || return 77
	fi
	rm -rf "$WORK/meet" && mkdir "$WORK/meet"
	for ((i = 0; i < ranks; i++)); do
		ns=a dev=$DEV_A
		[ $((i % 2)) = 0 ] || ns=b dev=$DEV_B
		on_host "rank$i" $ns "$WORK/ring" ibverbs $dev $i "$ranks" "$WORK/meet" "$2" 3
		pids+=("$child")
	done
	for ((i = 0; i < ranks; i++)); do
		finish "${pids[i]}" 90 || { fail "rank $i ended with $?"; show "rank$i"; }
		need_line "rank$i" "^ring ok: $ranks ranks, 3 sums of $2 elements" || return
		need_counted "rank$i" RC $((ranks - 1)) && need_counted "rank$i" WRITE 6
	done
}

# ---- uDAPL ----

# What an administrator writes into /etc/dat.conf: both hosts call the provider by one name.
dat_conf() { printf 'xroce u2.0 nonthreadsafe default lib%s.so.2 dapl.2.0 "%s" ""\n' "$1" "$2" >"$3"; }
# dapl LIBRARY NAME-ON-A NAME-ON-B: connects, writes, reads, sends; it checks its messages
dapl() {
	skip_reason="dtest is not installed (packages dapl2-utils, libdapl2)"
	command -v dtest >/dev/null || return 77
	dat_conf "$1" "$2" "$WORK/dat.a"
	dat_conf "$1" "$3" "$WORK/dat.b"
	pair 90 15828 env DAT_OVERRIDE="$WORK/dat.a" dtest -P xroce -- \
		env DAT_OVERRIDE="$WORK/dat.b" dtest -P xroce -h $IP4_A || return
	need_line client 'DAPL Test Complete. PASSED'
	need_line server 'DAPL Test Complete. PASSED'
	need_counted server WRITE 1 && need_counted client READ 1
}

run_case nccl_small nccl 100 64
run_long_case nccl_large nccl 20 4194304
run_case nccl_without_files nccl_without
run_long_case gloo_2 gloo 2 200000
run_long_case gloo_4 gloo 4 50000
run_long_case dapl_cma dapl daplofa "$IF_A 0" "$IF_B 0"
run_long_case dapl_scm dapl daploscm "$DEV_A 1" "$DEV_B 1"
finish_cases
