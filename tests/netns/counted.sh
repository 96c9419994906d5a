#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A bad cable that counts what it does, and the counters of both ends: to the packet, by the
# equations of docs/maps.md and docs/counters.md.
. "$(dirname "$0")/lib/case.sh"
. "$here/tests/netns/lib/cable.sh"
export XROCE_ECN=1
netns_chain 4500

# of_cable IFACE WHAT: what the cable did to packets that came from there.
of_cable() {
	awk -v from="$1:" -v what="$2" '$1 == "from" && $2 == from {
		for (i = 3; i < NF; i++) if ($i == what) { print $(i + 1); seen = 1 } }
		END { exit !seen }' "$WORK/cable.out"
}

# keep_live PID TAG: hold its counters from when it has them; it is stopped meanwhile.
keep_live() {
	local rc
	until map_id "$1" xroce_eng_drop >/dev/null; do
		is_gone_or_zombie "$1" && return 1
	done
	kill -STOP "$1"
	keep_maps "$1" "$2"
	rc=$?
	kill -CONT "$1"
	return $rc
}

# sent_is TAG IFACE: each packet that left by the interface is one that the cable saw.
sent_is() {
	local sent lost looped
	sent=$(kept "$1" xroce_eng_stat tx_packets) && lost=$(kept "$1" xroce_eng_stat tx_lost) &&
		looped=$(kept "$1" xroce_eng_stat loopback_packets) || { fail "no counters of $1"; return 1; }
	need_equal "packets that $1 sent" $((sent - lost - looped)) "$(of_cable "$2" roce)"
}

# came_is TAG IFACE MARKS: each packet that the cable forwarded from the interface came to XDP, all
# that XDP handed over came to an engine, and of these the spoiled ones and the marked ones are
# counted as such.
came_is() {
	local roce dropped duplicated came refused handed
	roce=$(of_cable "$2" roce) && dropped=$(of_cable "$2" dropped) &&
		duplicated=$(of_cable "$2" duplicated) || { fail "the cable said nothing"; return 1; }
	handed=$(kept_packets "$1")
	refused=$(kept "$1" xroce_rx dropped)
	came=$((handed + refused))
	need_equal "packets that came to $1" "$came" $((roce - dropped + duplicated))
	need_equal "packets of $1's engines" "$(kept "$1" xroce_eng_stat rx_packets)" "$handed"
	need_equal "wrong ICRCs at $1" "$(kept "$1" xroce_eng_drop icrc)" "$(of_cable "$2" spoiled)"
	[ "$3" = no ] || need_equal "marks at $1" "$(kept "$1" xroce_eng_stat rx_ce)" "$(of_cable "$2" marked)"
}

# counted FAMILY TRANSPORT MARKS OPTION-OF-IMPAIR...
counted() {
	local transport=$2 marks=$3 server client
	gids_once "$1" || return
	cable_with "${@:4}" || return
	drop_maps server
	drop_maps client
	start_on server a "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t "$transport" -m 1024 -n 40 -s 5
	server=$child
	wait_until 10 listens_or_gone a 18600 "$server"
	start_on client b "$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t "$transport" -m 1024 -n 40 -s 5 $IP4_A
	client=$child
	keep_live "$server" server || fail "no counters of the server"
	keep_live "$client" client || fail "no counters of the client"
	finish "$client" 60 || { fail "the client ends with $?"; show client; }
	finish "$server" 20 || { fail "the server ends with $?"; show server; }
	cable_did
	sent_is server pa
	sent_is client pb
	came_is client pa "$marks"
	came_is server pb "$marks"
	[ ! -s "$WORK/case.notes" ] || {
		kept_dump server xroce_drop | sed 's/^/# server drop /'
		kept_dump client xroce_drop | sed 's/^/# client drop /'
		show cable
	} >>"$WORK/case.notes"
}

run_case counted_rc_v4 counted v4 rc yes -s 3 -l 20 -u 20 -r 20 -c 20 -e 200
run_case counted_rc_v6 counted v6 rc yes -s 4 -l 20 -u 20 -r 20 -c 20 -e 200
XROCE_TX=gso run_case counted_rc_gso counted v4 rc yes -s 7 -l 20 -u 20 -r 20 -c 20 -e 200
run_case counted_uc counted v4 uc yes -s 5 -e 200
run_case counted_ud counted v4 ud no -s 6
finish_cases
