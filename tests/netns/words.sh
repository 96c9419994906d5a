#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long native XROCE_XDP=native XROCE_WORDS_JOBS=60
# tier: long shards XROCE_TEST_QUEUES=2 XROCE_WORDS_JOBS=60
# tier: long shared XROCE_TEST_BROKER=1 XROCE_WORDS_JOBS=60
# tier: long sockets XROCE_PORT=sockets XROCE_WORDS_JOBS=60
#
# Memory that the processor accesses while peers read and write it (words.c), looked at after each
# instruction: between two hosts and within a process. words_loss.sh has a bad cable.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
jobs=${XROCE_WORDS_JOBS:-8}
seed=${XROCE_WORDS_SEED:-1}
did="^words: .* jobs"
in_one=$((jobs / 2)) # all of it is stepped through: 0.7 s a job

# words OPTION...: two processes.
words() {
	gids_once v4 || return
	client_server 18660 100 "$TOOLS/words" -d $DEV_A -g "$gid_a" -n "$jobs" -s "$seed" "$@" -- \
		"$TOOLS/words" -d $DEV_B -g "$gid_b" -n "$jobs" -s "$seed" "$@" $IP4_A || return
	need_line server "$did"
	need_line client "$did"
}

loopback() {
	gids_once v4 || return
	start_on loop a "$TOOLS/words" -L -d $DEV_A -g "$gid_a" -n "$in_one" -s "$seed" "$@"
	finish "$child" 100 || { fail "words -L ends with $?"; show loop; }
	need_line loop "$did"
}

run_case two_hosts words
run_long_case two_hosts_thread words -t
run_case loopback loopback
run_long_case loopback_thread loopback -t
finish_cases
