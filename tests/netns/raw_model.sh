#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long san XROCE_MODEL_SEEDS=1 XROCE_MODEL_ROUNDS=50
# tier: long tsan XROCE_MODEL_SEEDS=1 XROCE_MODEL_ROUNDS=50
#
# Raw packet QPs by their man pages alone: flows created and destroyed at random, their masks,
# priorities and actions, against a model (raw_model.c); receive side scaling against our own hash
# (raw_hash.c). Each frame is followed to all possible receivers, the kernel among them. Case names
# end in the seed. XROCE_MODEL_SEEDS="N..." draws others, XROCE_MODEL_ROUNDS more of each.
. "$(dirname "$0")/lib/case.sh"
# one queue: frames come in the order they were sent
netns_pair 1500 1
# the only frames that A receives are ours, as they are counted
in_b sh -c "echo 1 > /proc/sys/net/ipv6/conf/$IF_B/disable_ipv6" && ip -n $NS_B addr flush dev $IF_B && ip -n $NS_B link set $IF_B arp off

# against PROGRAM ROUNDS SEED
against() {
	start_on "$1" a "$TOOLS/$1" $DEV_A /run/netns/$NS_B $IF_B "${XROCE_MODEL_ROUNDS:-$2}" "$3"
	finish "$child" 100 || { fail "$1 failed with seed $3"; show "$1"; return 1; }
}

flows() {
	against raw_model 400 "$1" || return
	need_line raw_model '^model: [0-9]+ frames, [1-9][0-9]* of the kernel, [1-9][0-9]* copies$'
}

hash() {
	against raw_hash 60 "$1" || return
	need_line raw_hash '^hash: [0-9]+ frames, [1-9][0-9]* hashed$'
}

tunnels() {
	against raw_tunnels 200 "$1" || return
	need_line raw_tunnels '^tunnels: [0-9]+ frames, [1-9][0-9]* taken$'
}

# The first seed is the core's.
run=run_case
for seed in ${XROCE_MODEL_SEEDS:-1 2 3}; do
	$run flows_$seed flows "$seed"
	$run hash_$seed hash "$seed"
	$run tunnels_$seed tunnels "$seed"
	run=run_long_case
done
finish_cases
