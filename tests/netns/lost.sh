#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long shards XROCE_TEST_QUEUES=2
#
# A receiver that is stopped while packets of all kinds come: its rings fill, and each frame that
# XDP redirected is counted once, as taken by an engine or as lost in the socket. So it is at the
# end of the process, too.
. "$(dirname "$0")/lib/case.sh"
QKEY=0x11111111 # udsink's

# begin OPTION...: a UD queue pair on A.
begin() {
	start_on sink a "$TOOLS/udsink" "$@" $DEV_A
	sink=$child
	wait_until 10 grep -q QPN "$WORK/sink.out" || { fail "no queue pair"; show sink; return; }
	qpn=$(sed -n 's/^QPN //p' "$WORK/sink.out")
	drop_maps server
	keep_maps "$sink" server || fail "it has no maps of ours"
}

sum() {
	local map=$1 n=0 v f
	shift
	for f in "$@"; do
		v=$(kept server "$map" "$f") || return 1
		n=$((n + v))
	done
	echo $n
}
lost() { sum xroce_sock rx_ring_full rx_dropped; }
# Every frame was taken or lost; and every packet of the taken frames reached an engine.
frames_add_up() { [ "$(sum xroce_rx redirected)" = "$(sum xroce_sock rx_frames rx_ring_full rx_dropped rx_left)" ]; }
packets_taken() { echo $(($(sum xroce_sock rx_frames rx_super_segments) - $(sum xroce_sock rx_super_packets))); }
packets_of_engines() { echo $(($(sum xroce_eng_stat rx_packets) - $(sum xroce_eng_stat loopback_packets))); }
packets_add_up() { [ "$(packets_taken)" = "$(packets_of_engines)" ]; }
add_up() {
	wait_until 10 frames_add_up || fail "XDP redirected $(sum xroce_rx redirected), not $(kept_dump server xroce_sock | tr '\n' ' ')"
	wait_until 10 packets_add_up || fail "$(packets_taken) packets were taken, $(packets_of_engines) came to engines"
}

flood() {
	local port
	for port in "${ports[@]}"; do
		in_b "$TOOLS/supers" -i $IF_B -D $MAC_A -S $IP4_B -T $IP4_A -q "$qpn" -Q $QKEY -P "$port" "$@" >"$WORK/supers.out" 2>&1 ||
			{ fail "supers ends with $?"; show supers; }
	done
}
# The engine's own view of each packet, used or not: each is taken exactly once.
flood_of_all_kinds() {
	flood -n 700
	flood -n 300 -l 4096
	flood -n 100 -s 30 -l 64
	flood -n 100 -s 2 -l 2048
	flood -n 50 -s 30 -w
}

# A signal stops a process when its threads get to see it, which takes a while on a busy machine.
stop_sink() {
	kill -STOP "$sink"
	wait_until 10 is_stopped "$sink" || fail "it does not stop"
}
is_stopped() { ! cut -d' ' -f3 /proc/"$1"/task/*/stat | grep -qv T; }

# Stopped until all packets arrived, then resumed. The listed values equal the maps'.
stopped() {
	local before
	begin "$@" || return
	before=$(lost)
	stop_sink
	flood_of_all_kinds
	kill -CONT "$sink"
	add_up
	need_least "frames lost" $(($(lost) - before)) 100
	in_a "$XROCE" list $IF_A >"$WORK/list.out" 2>&1 || fail "xroce list ends with $?"
	need_line list "received +$(sum xroce_rx redirected) frames, .* lost $(lost) \(receive ring full"
	# once more, with the rings as they are now
	flood_of_all_kinds
	add_up
	need_equal "frames left" "$(kept server xroce_sock rx_left)" 0
	end
}

end() {
	kill "$sink"
	finish "$sink" 10 || { fail "it ends with $?"; show sink; }
}

# Frames in the ring when the process exits were neither taken nor lost on the way there.
ended() {
	begin "$@" || return
	stop_sink
	flood -n 200
	flood -n 1500
	kill "$sink"
	kill -CONT "$sink"
	end
	add_up
	need_least "frames lost" "$(lost)" 100
}

# The queue that a frame comes by follows from its port: some ports' are the other shard's.
handed_over() {
	ports=(49152 49153 49154 49155 49156 49157 49158 49159)
	stopped "$@"
	need_least "frames for another shard" "$(kept server xroce_eng_stat rx_handed)" 100
	ended
}

netns_pair 9000
ports=(49152)
if [ "${XROCE_TEST_QUEUES:-1}" -eq 1 ]; then
	run_case asleep stopped
	run_long_case polling stopped -p
	run_long_case ended ended
	run_long_case exited ended -x
else
	XROCE_XDP=native run_case handed_over handed_over
	XROCE_XDP=native run_case handed_over_polling handed_over -p
fi
finish_cases
