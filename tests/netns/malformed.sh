#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Malformed packets, thousands of kinds, at an interface in the middle of an exchange: counted drops
# by their reason, and nothing else.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

gids_for v4 || netns_die "no GID"

begin() {
	start_on server a ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 100000000
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start_on client b ibv_rc_pingpong -d $DEV_B -g "$gid_b" -n 100000000 $IP4_A
	client=$child
	wait_until 10 packets_flow "$server" 1000 || { fail "no packets flow"; show server; show client; return; }
	# The pingpong's own words stay in its buffer until it ends.
	qpn=$(bpftool map dump id "$(map_id "$server" xroce_qp)" | field qpn)
	need_least QPN "$qpn" 2
}

packets_flow() { local n; n=$(counter "$1" xroce_rx redirected) && [ "$n" -gt "$2" ]; }
dropped() { echo $(($(counter "$server" xroce_drop "$1") + $(counter "$server" xroce_eng_drop "$1"))); }

# replay OPTION...: at A, from B's own interface.
replay() {
	in_b timeout 60 "$TOOLS/replay" -i $IF_B -D $MAC_A -4 $IP4_B,$IP4_A -6 $IP6_B,$IP6_A "$@" >"$WORK/replay.out" 2>&1 ||
		{ fail "replay ends with $?"; show replay; }
	need_line replay '^sent [1-9]'
}

# The exchange goes on: alive and moving, on the same queue pairs.
unharmed() {
	local n
	n=$(counter "$server" xroce_rx redirected) || fail "the server's maps are gone"
	wait_until 10 packets_flow "$server" $((n + 1000)) || { fail "the exchange has stopped"; show server; show client; }
	is_gone_or_zombie "$server" && { fail "the server has ended"; show server; }
	is_gone_or_zombie "$client" && { fail "the client has ended"; show client; }
	return 0
}

# counted REASON LEAST COMMAND...: the reason's counter grows by at least LEAST.
counted() {
	local reason=$1 least=$2 before after
	shift 2
	before=$(dropped "$reason")
	"$@"
	# The last packets may still be on their way.
	wait_until 5 has_moved "$reason" $((before + least))
	after=$(dropped "$reason")
	need_least "drops for $reason" $((after - before)) "$least"
	unharmed
}
has_moved() { [ "$(dropped "$1")" -ge "$2" ]; }

files() { ls "$GOLDEN"/*.pcap | grep -vE 'burst|pmtu4096|ackloss'; }
mapfile -t captures < <(files)

run_case begin begin
run_case whole_unknown_qp counted qp_unknown 100 replay -c none "${captures[@]}"
run_case cut_ip_length counted ip_length 1000 replay -c cut "$GOLDEN"/v[46]-rc-send-imm.pcap "$GOLDEN"/v[46]-uc-write.pcap "$GOLDEN"/v4-rc-cas.pcap
run_case fit_bth_short counted bth_short 100 replay -c fit "$GOLDEN"/v[46]-rc-send-imm.pcap "$GOLDEN"/v[46]-ud-send.pcap
run_case fit_ext_short counted ext_short 100 replay -c fit "$GOLDEN"/v[46]-rc-read-multi.pcap "$GOLDEN"/v4-rc-cas.pcap "$GOLDEN"/v6-rc-write-imm.pcap
# At the very queue pair that is at work: right address, right peer, right transport, wrong ICRC.
run_case aimed_icrc counted icrc 20 replay -c none -q "$qpn" "$GOLDEN"/v4-rc-send-first.pcap "$GOLDEN"/v4-rc-write-multi.pcap "$GOLDEN"/v4-rc-read-multi.pcap "$GOLDEN"/v4-rc-rnr.pcap
run_case aimed_transport counted qp_transport 4 replay -c none -q "$qpn" "$GOLDEN"/v4-uc-send-multi.pcap "$GOLDEN"/v4-ud-send.pcap
run_case aimed_peer counted peer 4 replay -c none -q "$qpn" "$GOLDEN"/v6-rc-send-imm.pcap
for seed in 1 2 3; do
	run_case aimed_flips_$seed counted bth_version 10 replay -c flip -n 30 -s $seed -q "$qpn" "${captures[@]}"
done
run_case aimed_cuts counted ip_length 1000 replay -c cut -q "$qpn" "$GOLDEN"/v4-rc-send-pad123.pcap "$GOLDEN"/v4-rc-fadd.pcap
run_case aimed_fits counted icrc 1000 replay -c fit -q "$qpn" "$GOLDEN"/v4-rc-send-pad123.pcap "$GOLDEN"/v4-rc-write-multi.pcap
stop "$client"
stop "$server"
finish_cases
