#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long shared XROCE_TEST_BROKER=1
# needs: processors
#
# A bad cable that counts its losses, and the counters of both ends: to the packet, by the
# equations of docs/maps.md and docs/counters.md. While both ends are idle, all tools report the
# same counters: the maps, xroce stat, qp and export, and the files of `xroce run`.
. "$(dirname "$0")/lib/case.sh"
. "$here/tests/netns/lib/cable.sh"
export XROCE_ECN=1
netns_chain 4500

# of_cable IFACE WHAT: what the cable did to packets that came from there.
of_cable() {
	awk -v from="$1:" -v what="$2" '$1 == "from" && $2 == from {
		for (i = 3; i < NF; i++) if ($i == what) { print $(i + 1); seen = 1 } }
		END { exit !seen }' "$WORK/did.out"
}

# rests NAME: the program has finished its work, and keeps its objects.
rests() { grep -q '^rests$' "$WORK/$1.out"; }
rests_or_gone() { rests "$1" || is_gone_or_zombie "$2"; }
# let_go NAME: opens its FIFO for writing, without a wait for an exited one.
let_go() { : <>"$WORK/$1.fifo"; }

# settled TAG: all frames from XDP have reached an engine, and the sockets' own counters were read.
settled() {
	[ "$(kept "$1" xroce_eng_stat rx_packets)" -eq $(($(kept_packets "$1") + $(kept "$1" xroce_eng_stat loopback_packets))) ] &&
		[ "$(kept "$1" xroce_rx redirected)" -eq $(($(kept "$1" xroce_sock rx_frames) + $(kept "$1" xroce_sock rx_left))) ]
}

# agrees NAME NS DEVICE PID: every tool reports the values of its maps (lib/agree.py).
agrees() {
	local at=$WORK/$1.d dev=xroce_$3 name id
	rm -rf "$at"
	mkdir "$at"
	while read -r name id; do
		case $name in xroce_rx | xroce_drop | xroce_sock | xroce_eng_* | xroce_qp | xroce_qp_stat)
			bpftool -j map dump id "$id" >"$at/$name.json" ;;
		esac
	done < <(maps_of "$4")
	in_ns "$2" timeout 20 "$XROCE" stat --json --dev "$3" >"$at/stat.json" &&
		in_ns "$2" timeout 20 "$XROCE" qp --json --dev "$3" >"$at/qp.json" &&
		in_ns "$2" timeout 20 "$XROCE" export --once --dev "$3" >"$at/metrics" ||
		{ fail "xroce tells nothing of $1"; return 1; }
	# shellcheck disable=SC2016 # the inner shell's
	in_ns "$2" timeout 60 "$XROCE" run --dev "$3" -- sh -c 'cd "$0" && grep "" counters/* hw_counters/* | sed "s/:/ /"' \
		"/sys/class/infiniband/$dev/ports/1" >"$at/files" || { fail "no files of $dev"; return 1; }
	/usr/bin/python3 -B "$here/tests/netns/lib/agree.py" "$at" "$4" "$here/docs/counters.md" "$3" "$gids_are" >"$WORK/$1-agrees.out" 2>&1 ||
		{ fail "not all say the same of the $1"; show "$1-agrees"; }
}

# sent_is TAG IFACE: each packet that left by the interface was seen by the cable.
sent_is() {
	local sent lost looped
	sent=$(kept "$1" xroce_eng_stat tx_packets) && lost=$(kept "$1" xroce_eng_stat tx_lost) &&
		looped=$(kept "$1" xroce_eng_stat loopback_packets) || { fail "no counters of $1"; return 1; }
	need_equal "packets that $1 sent" $((sent - lost - looped)) "$(of_cable "$2" roce)"
}

# came_is TAG IFACE MARKS: each packet that the cable forwarded from the interface reached XDP, all
# packets from XDP reached an engine, and the corrupted and the marked ones are counted as such.
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

# both_rest: wait for it, and hold their counters.
both_rest() {
	local name pid
	for name in server client; do
		pid=${!name}
		wait_until 60 rests_or_gone $name "$pid"
		rests $name || { fail "the $name does not rest"; show $name; return 1; }
		keep_maps "$pid" $name || { fail "no counters of the $name"; return 1; }
	done
}

# counted FAMILY MARKS PROGRAM... -- OPTION-OF-IMPAIR...
counted() {
	local marks=$2 server client name program impaired
	gids_once "$1" || return
	split_words program impaired "${@:3}"
	cable_with "${impaired[@]}" || return
	rm -f "$WORK/did.out"
	for name in server client; do
		drop_maps $name
		rm -f "$WORK/$name.fifo"
		mkfifo "$WORK/$name.fifo"
	done
	start_on server a "$TOOLS/${program[0]}" "${program[@]:1}" -g "$gid_a" -q "$WORK/server.fifo" -d $DEV_A
	server=$child
	wait_until 10 listens_or_gone a 18600 "$server"
	start_on client b "$TOOLS/${program[0]}" "${program[@]:1}" -g "$gid_b" -q "$WORK/client.fifo" -d $DEV_B $IP4_A
	client=$child
	if both_rest; then
		cable_did
		cp "$WORK/cable.out" "$WORK/did.out"
		wait_until 10 settled server
		wait_until 10 settled client
		agrees server a $IF_A "$server"
		agrees client b $IF_B "$client"
	fi
	# a good one, by which they end
	cable_with
	let_go server
	let_go client
	finish "$client" 20 || { fail "the client ends with $?"; show client; }
	finish "$server" 20 || { fail "the server ends with $?"; show server; }
	[ -e "$WORK/did.out" ] || return
	sent_is server pa
	sent_is client pb
	came_is client pa "$marks"
	came_is server pb "$marks"
	[ ! -s "$WORK/case.notes" ] || {
		kept_dump server xroce_drop | sed 's/^/# server drop /'
		kept_dump client xroce_drop | sed 's/^/# client drop /'
		show did
	} >>"$WORK/case.notes"
}

core_cases=(counted_rc_v4 counted_uc_lossy counted_ud_lossy_v6)
VDATA=(vdata -m 1024 -n 40 -s 5 -t)
ALL=(-l 20 -u 20 -r 20 -c 20 -e 200)
tier_case counted_rc_v4 counted v4 yes "${VDATA[@]}" rc -- -s 3 "${ALL[@]}"
tier_case counted_rc_v6 counted v6 yes "${VDATA[@]}" rc -- -s 4 "${ALL[@]}"
XROCE_TX=gso tier_case counted_rc_gso counted v4 yes "${VDATA[@]}" rc -- -s 7 "${ALL[@]}"
tier_case counted_uc counted v4 yes "${VDATA[@]}" uc -- -s 5 -e 200
tier_case counted_ud counted v4 no "${VDATA[@]}" ud -- -s 6
tier_case counted_uc_lossy counted v4 yes lossy -t uc -n 2000 -- -s 8 "${ALL[@]}"
tier_case counted_ud_lossy counted v4 yes lossy -t ud -n 2000 -- -s 9 "${ALL[@]}"
tier_case counted_ud_lossy_v6 counted v6 yes lossy -t ud -n 2000 -- -s 10 "${ALL[@]}"
finish_cases
