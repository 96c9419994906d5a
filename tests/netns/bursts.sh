#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long native XROCE_XDP=native
# tier: long shards XROCE_TEST_QUEUES=2
# tier: long shared XROCE_TEST_BROKER=1
# needs: alone
#
# UC and UD lose nothing on a path that loses nothing: perftest with its defaults, whose bursts are
# several times the receiver's ring, ends with all its data, because a sender waits for the
# receiver's room. Without flow control each of these hung in most runs. Alone: the veth pair does
# lose frames while the thread that empties its ring waits for a processor.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/preload.sh"
preload_make halt perftest/halt.c
netns_pair 4500

# Frames that the kernel did not hand to the other interface: a ring of veth has 256 places, and who
# empties it waits for a processor at times.
path_drops() { { in_a cat /proc/net/dev && in_b cat /proc/net/dev; } | awk '$1 ~ /^v[ab]:/ { n += $13 } END { print n + 0 }'; }

# Where it was lost, as far as anybody counts it.
say_where() {
	local map
	for map in xroce_rx xroce_drop xroce_sock xroce_eng_drop xroce_eng_stat; do
		fail "$map: $(kept_dump server $map | tr '\n' ' ')"
	done
	fail "frames that the path dropped: $(path_drops)"
	return 1
}

# all_arrives TOOL [OPTION...]: every packet that reached the server's XDP was taken by its engine,
# and none of them found no receive.
all_arrives() {
	local tool=$1 taken
	shift
	gids_once v4 || return
	keep=halted client_server 18515 60 "$tool" -d $DEV_A -x "$gid_a" -F "$@" -- "$tool" -d $DEV_B -x "$gid_b" -F "$@" $IP4_A || { say_where; return; }
	need_line client '^[[:space:]]*[0-9]+[[:space:]]+[0-9]+[[:space:]]+[0-9.]+[[:space:]]+[0-9.]+[[:space:]]+[0-9.]+'
	taken=$(($(kept server xroce_eng_stat rx_packets) - $(kept server xroce_eng_stat loopback_packets)))
	need_equal "packets that the engine took" "$taken" "$(kept_packets server)"
	need_least "packets that the engine took" "$taken" 1000
	need_equal "packets that found no receive" "$(kept server xroce_eng_drop no_receive)" 0
	need_equal "packets out of sequence" "$(kept server xroce_eng_drop sequence)" 0
	need_least "times that the server said what it can take" "$(kept server xroce_eng_stat flow_answers)" 1
	drop_maps server
}

# ib_send_bw, while its threads are moved between two CPUs. With several queues frames leave by the
# CPU's queue, and frames of UC must not overtake each other.
cat >"$WORK/moved" <<-'END'
	#!/bin/bash
	(n=0; while kill -0 $$; do taskset -apc $((n++ & 1)) $$; done) >/dev/null 2>&1 &
	exec ib_send_bw "$@"
END
chmod +x "$WORK/moved"

run_case uc_send all_arrives ib_send_bw -c UC
run_long_case uc_send_small all_arrives ib_send_bw -c UC -s 64 -n 20000
run_long_case uc_send_qps all_arrives ib_send_bw -c UC -q 4
run_long_case uc_send_8_qps all_arrives ib_send_bw -c UC -q 8 -b
run_long_case uc_send_moved all_arrives "$WORK/moved" -c UC -n 5000
run_long_case uc_send_events all_arrives ib_send_bw -c UC -e
run_long_case uc_write all_arrives ib_write_bw -c UC
run_case uc_write_large all_arrives ib_write_bw -c UC -s 1048576 -n 100
run_long_case ud_send all_arrives ib_send_bw -c UD -n 5000
run_long_case ud_send_8_qps all_arrives ib_send_bw -c UD -q 8 -b
run_long_case ud_send_small all_arrives ib_send_bw -c UD -s 64 -n 20000
run_case ud_send_both all_arrives ib_send_bw -c UD -b
finish_cases
